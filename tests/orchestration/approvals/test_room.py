"""What waits of one caller is bounded, and takes the place of nobody else, on every store."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from seawall import Policies, Session
from seawall.contract.approval import ApprovalsFull, ApprovalStatus, WaitingRoom
from seawall.contract.errors import ConfigurationError
from seawall.contract.failure import FailureCode

if TYPE_CHECKING:
    from tests.orchestration.approvals.conftest import Place

    from seawall import Pipeline, ToolResult


def having(
    place: Place, requests: int | None = 3, size: int | None = None, **more: Any
) -> Pipeline:
    room = WaitingRoom(max_waiting=requests, max_waiting_bytes=size)
    return place.pipeline(policies=Policies(approvals=room), **more)


async def ask(pipeline: Pipeline, caller: str, text: str = "x") -> ToolResult:
    return await pipeline.call("delete", {"what": text}, session=Session(caller, caller=caller))


def reason_of(result: ToolResult) -> str:
    assert result.failure is not None
    return result.failure.reason


async def test_who_has_as_many_requests_as_may_wait_is_refused_alone(place: Place) -> None:
    pipeline = having(place)
    waiting = [await ask(pipeline, "greedy", str(number)) for number in range(3)]
    assert {reason_of(result) for result in waiting} == {"approval_required"}

    refused = await ask(pipeline, "greedy", "one more")

    assert refused.failure is not None
    assert (refused.failure.code, refused.failure.reason) == (
        FailureCode.RATE_LIMITED,
        "approvals_full",
    )
    assert "3 requests of this caller wait" in refused.failure.message
    assert "seawall approvals" in refused.failure.guidance
    assert refused.failure.may_have_run is False
    assert refused.failure.retry_after_s == 60
    assert reason_of(await ask(pipeline, "shop")) == "approval_required"
    assert len(await pipeline.approvals.list()) == 4


@pytest.mark.parametrize("answer", ["approve and run", "deny", "withdraw"])
async def test_what_is_answered_makes_room(place: Place, answer: str) -> None:
    pipeline = having(place, 1)
    request = str((await ask(pipeline, "ann")).metadata["approval_id"])  # type: ignore[index]  # there

    if answer == "approve and run":
        await pipeline.approvals.approve(request)
        assert reason_of(await ask(pipeline, "ann")) == "approvals_full"  # it is not run yet
        await pipeline.resume(request)
    else:
        await getattr(pipeline.approvals, answer)(request)

    assert reason_of(await ask(pipeline, "ann")) == "approval_required"


async def test_what_nobody_answered_in_time_takes_no_room(place: Place) -> None:
    pipeline = having(place, 1, settings={"expires_after_s": 60})
    await ask(pipeline, "ann")
    assert reason_of(await ask(pipeline, "ann")) == "approvals_full"

    await place.clock.advance(61)

    assert reason_of(await ask(pipeline, "ann")) == "approval_required"


async def test_the_bytes_of_what_waits_are_bounded_too(place: Place) -> None:
    pipeline = having(place, None, 20_000)
    first = await ask(pipeline, "ann", "x" * 12_000)
    second = await ask(pipeline, "ann", "y" * 12_000)
    third = await ask(pipeline, "ann", "z" * 50)
    never = await ask(pipeline, "bob", "b" * 30_000)

    reasons = [reason_of(result) for result in (first, second, third, never)]
    assert reasons == ["approval_required", "approvals_full", "approval_required", "approvals_full"]
    assert "larger" in never.failure.message  # type: ignore[union-attr]  # looked at above
    assert "of 20,000 bytes" in second.failure.message  # type: ignore[union-attr]  # as above


async def test_however_many_ask_at_once_no_more_wait(place: Place) -> None:
    pipelines = [having(place, 5), having(place, 5)]

    results = await asyncio.gather(
        *(ask(pipelines[number % 2], "ann", str(number)) for number in range(24))
    )

    reasons = [reason_of(result) for result in results]
    assert reasons.count("approval_required") == 5
    assert reasons.count("approvals_full") == 19
    assert len(await pipelines[0].approvals.list()) == 5


async def test_a_turn_without_room_runs_nothing_and_leaves_nothing(place: Place) -> None:
    pipeline = having(place, 1)
    session = Session("ann", caller="ann")
    await ask(pipeline, "ann")

    turn = await pipeline.turn([("read", {}, "a"), ("delete", {}, "b")], session=session)

    assert [reason_of(result) for result in turn.results] == ["not_executed", "approvals_full"]
    assert turn.approval is None
    assert place.effects == []
    assert len(await pipeline.approvals.list(None)) == 1


async def test_the_callers_name_may_be_anything(place: Place) -> None:
    pipeline = having(place, 1)
    for caller in ("", "\0", "a\0b", "x" * 5_000):
        assert reason_of(await ask(pipeline, caller)) == "approval_required"
        assert reason_of(await ask(pipeline, caller)) == "approvals_full"


async def test_bounds_follow_a_policy_that_is_replaced(memory: Place) -> None:
    pipeline = having(memory, 1)
    await ask(pipeline, "ann")

    pipeline.replace_policies(Policies(approvals=WaitingRoom(max_waiting=2)))

    assert reason_of(await ask(pipeline, "ann")) == "approval_required"
    assert reason_of(await ask(pipeline, "ann")) == "approvals_full"


@pytest.mark.parametrize("field", ["max_waiting", "max_waiting_bytes"])
def test_a_bound_is_at_least_one_or_none(field: str) -> None:
    counted = (0, 10**12) if field.endswith("bytes") else (10**6, 0)
    WaitingRoom(**{field: None}).check(*counted, 1)
    with pytest.raises(ConfigurationError, match=field):
        WaitingRoom(**{field: 0})


async def test_a_part_of_the_list_says_how_many_are_left_and_how_to_get_them(place: Place) -> None:
    pipeline = having(place, None)
    asked = []
    for number in range(7):
        result = await ask(pipeline, "ann", str(number))
        asked.append(str((result.metadata or {})["approval_id"]))
        await place.clock.advance(1)
    await pipeline.approvals.deny(asked.pop(3))

    first = await pipeline.approvals.page(limit=2)
    await ask(pipeline, "ann", "another")  # newer ones move nothing
    second = await pipeline.approvals.page(limit=3, after=first.after)
    last = await pipeline.approvals.page(limit=3, after=second.after)

    parts = [[batch.id for batch in part.approvals] for part in (first, second, last)]
    assert [one for part in parts for one in part] == asked[::-1]
    assert [(part.more, part.after is None) for part in (first, second, last)] == [
        (4, False),
        (1, False),
        (0, True),
    ]
    denied = await pipeline.approvals.page(ApprovalStatus.DENIED)
    assert (len(denied.approvals), denied.more, denied.after) == (1, 0, None)


@pytest.mark.parametrize("after", ["", "x", "nan_apr_1", "inf_apr_1", "1e999_apr_1", "1.0"])
async def test_what_gives_no_part_of_the_list_is_told(memory: Place, after: str) -> None:
    with pytest.raises(ValueError, match=r"part|float"):
        await memory.pipeline().approvals.page(after=after)


def test_there_is_no_room_is_no_other_error() -> None:
    assert not issubclass(ApprovalsFull, (ValueError, LookupError, OSError))
