"""What was approved for a session with a state runs with that state, or not at all."""

from __future__ import annotations

import dataclasses
import enum
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import msgspec
import pydantic
import pytest
from tests.orchestration.approvals.test_resuming import ONE, approved, ends

from seawall import ApprovalStatus, Services, Session
from seawall.orchestration.approvals.kept import Envelope
from seawall.orchestration.approvals.surroundings import digest_of_state

if TYPE_CHECKING:
    from tests.orchestration.approvals.conftest import Place

    from seawall import Pipeline, TurnOutcome


def chat(state: Any = None, services: Any = None) -> Session:
    return Session("chat", caller="shop", state=state, services=services)


ACME = {"tenant": "acme", "roles": ["ops"]}


async def still_approved(pipeline: Pipeline, batch_id: str) -> bool:
    return (await pipeline.approvals.show(batch_id)).status is ApprovalStatus.APPROVED


def message(outcome: TurnOutcome) -> str:
    failure = outcome.results[0].failure
    return "" if failure is None else failure.message


async def test_where_nobody_holds_the_session_one_with_the_same_state_has_to_be_given(
    place: Place,
) -> None:
    batch_id = await approved(place.pipeline(), session=chat(ACME))
    next_process = place.pipeline()

    without = await next_process.resume(batch_id)
    empty = await next_process.resume(batch_id, session=chat())
    other = await next_process.resume(batch_id, session=chat({**ACME, "tenant": "all"}))
    assert place.effects == []
    assert await still_approved(next_process, batch_id)
    right = await next_process.resume(batch_id, session=chat({"roles": ["ops"], **ACME}))

    assert [ends(one) for one in (without, empty, other)] == [["approval_mismatch"]] * 3
    assert "session=" in message(without)
    assert "not what it was" in message(other)
    assert ends(right) == ["ok"]


async def test_the_process_that_asked_holds_the_session(place: Place) -> None:
    pipeline = place.pipeline()
    session = chat({"tenant": object()})

    without = await pipeline.resume(await approved(pipeline, session=session))
    given = await pipeline.resume(await approved(pipeline, session=session), session=session)
    view = session.offering({"more": 1})
    viewed = await pipeline.resume(await approved(pipeline, session=session), session=view)

    assert [ends(one) for one in (without, given, viewed)] == [["ok"]] * 3


async def test_a_session_that_had_no_state_is_not_given_one(memory: Place) -> None:
    batch_id = await approved(memory.pipeline(), session=chat())

    refused = await memory.pipeline().resume(batch_id, session=chat(ACME))

    assert ends(refused) == ["approval_mismatch"]
    assert ends(await memory.pipeline().resume(batch_id)) == ["ok"]


async def test_without_a_key_the_state_is_compared_as_well(
    postgres: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SEAWALL_STATE_KEY")
    batch_id = await approved(postgres.pipeline(), session=chat(ACME))
    arguments = ONE[0][1]
    resume = postgres.pipeline().resume

    other = await resume(batch_id, arguments=arguments, session=chat({"tenant": "all"}))
    right = await resume(batch_id, arguments=arguments, session=chat(ACME))

    assert (ends(other), ends(right)) == (["approval_mismatch"], ["ok"])


async def test_a_state_that_cannot_be_compared_is_resumed_where_it_was_asked_for(
    memory: Place,
) -> None:
    batch_id = await approved(memory.pipeline(), session=chat({"tenant": object()}))

    refused = await memory.pipeline().resume(batch_id, session=chat({"tenant": object()}))

    assert ends(refused) == ["approval_mismatch"]
    assert "holds a builtins.object" in message(refused)


async def test_services_that_were_offered_have_to_be_offered(memory: Place) -> None:
    batch_id = await approved(memory.pipeline(), session=chat(services={"vault": 1, "log": 2}))
    next_process = memory.pipeline()

    without = await next_process.resume(batch_id)
    fewer = await next_process.resume(batch_id, session=chat(services={"log": 2}))
    assert await still_approved(next_process, batch_id)
    right = await next_process.resume(
        batch_id, session=chat(services=Services({"log": 3, "vault": 4}))
    )

    assert (ends(without), ends(fewer)) == (["approval_mismatch"], ["approval_mismatch"])
    assert "'vault'" in message(fewer)
    assert ends(right) == ["ok"]


async def test_services_of_a_single_call_are_not_waited_for(memory: Place) -> None:
    view = chat().offering({"run": 1}).offering({"deeper": 2})

    batch_id = await approved(memory.pipeline(), session=view)

    assert ends(await memory.pipeline().resume(batch_id)) == ["ok"]


async def test_what_ran_before_a_crash_is_told_without_the_session(memory: Place) -> None:
    pipeline = memory.pipeline()
    batch_id = await approved(pipeline, session=chat(ACME))
    await pipeline.resume(batch_id)

    outcome = await memory.pipeline().outcome(batch_id)

    assert ends(outcome) == ["ok"]


class Colour(enum.Enum):
    RED = 1


@dataclasses.dataclass
class Tenant:
    name: str


class Shop(msgspec.Struct):
    name: str


class Model(pydantic.BaseModel):
    name: str


MOMENT = datetime(2026, 1, 2, tzinfo=UTC)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, 1.0),
        (1, "1"),
        (1, True),
        (None, "None"),
        (b"a", "61"),
        ([1, 2], [2, 1]),
        ({1: "a"}, {"1": "a"}),
        (Decimal("1.10"), Decimal("1.1")),
        (MOMENT, MOMENT.isoformat()),
        (Colour.RED, 1),
        (Tenant("a"), Tenant("b")),
        (Shop("a"), Shop("b")),
        (Model(name="a"), Model(name="b")),
        (Tenant("a"), Shop("a")),
        ({1, 2}, {1, 3}),
    ],
)
def test_states_that_differ_have_other_digests(one: Any, other: Any) -> None:
    envelope = Envelope.new("apr_1", None, "00" * 16)

    def digest(value: Any) -> str:
        return digest_of_state(chat({"a": value}), envelope)

    assert digest(one) == digest(one)
    assert digest(one) != digest(other)
    assert not digest(one).startswith("not comparable")


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


class Failing(pydantic.BaseModel):
    def model_dump(self, **_: Any) -> dict[str, Any]:
        raise RuntimeError("no")


@pytest.mark.parametrize(
    "value",
    [object(), len, {(1, 2): 3}, nested(80), list(range(200_000)), [Tenant], Failing()],
)
def test_what_cannot_be_told_is_never_the_same(value: Any) -> None:
    envelope = Envelope.new("apr_1", None, "00" * 16)

    assert digest_of_state(chat({"a": value}), envelope).startswith("not comparable")
