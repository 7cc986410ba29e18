from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import httpx
import msgspec
import pytest
from tests.edges.gateway.serving import (
    APPROVER,
    CALLER,
    add,
    asking,
    bearer,
    call,
    listening,
)
from tests.waiting import until

from seawall import (
    Annotations,
    Failure,
    FailureCode,
    Pipeline,
    Policies,
    Registry,
    Risk,
    RunPolicy,
    Tool,
    ToolContext,
    ToolFailed,
    tool,
)
from seawall.contract.span import Outcome
from seawall.edges.gateway.app import Gateway
from seawall.edges.gateway.settings import GatewaySettings
from seawall.edges.gateway.tokens import token_of
from seawall.testing import FakeClock
from seawall.toolkit import bundled

if TYPE_CHECKING:
    from pathlib import Path


async def test_a_call_is_answered_with_its_result_and_its_request_id() -> None:
    async with asking() as client:
        response = await call(client, "add", {"a": 1, "b": 2}, requestId="r-1")

    assert response.status_code == 200
    body = response.json()
    assert body["requestId"] == "r-1"
    assert (body["text"], body["structuredContent"], body["failure"]) == ("3", 3, None)


async def test_a_request_id_is_made_if_there_is_none() -> None:
    async with asking() as client:
        first = (await call(client, "add", {"a": 1, "b": 2})).json()["requestId"]
        second = (await call(client, "add", {"a": 1, "b": 2})).json()["requestId"]

    assert first
    assert first != second


async def test_the_request_id_is_the_call_id_of_the_span() -> None:
    async with asking() as client:
        await call(client, "add", {"a": 1, "b": 2}, requestId="mine")
        spans = (await client.get("/traces", params={"requestId": "mine"})).json()["spans"]

    assert [span["requestId"] for span in spans] == ["mine"]


async def test_arguments_may_be_json_text_as_models_write_it() -> None:
    async with asking() as client:
        response = await call(client, "add", '{"a": "1", "b": 2,}')

    assert response.json()["structuredContent"] == 3


@pytest.mark.parametrize(
    ("arguments", "given"),
    [
        ('{"a": 1, "b": "x"}', {"a": 1, "b": "x"}),
        ('{"a": 1.5, "b": null, "c": true}', {"a": 1.5, "b": None, "c": True}),
        ('{"a": "http://x: y", "b": "{[\\""}', {"a": "http://x: y", "b": '{["'}),
        ('{"a": {"b": [1, {"c": 2}]}, "d": [3]}', {"a": {"b": [1, {"c": 2}]}, "d": [3]}),
        ('{"a": {}}', {"a": {}}),
        ('{"a": 123456789012345678901234567890}', {"a": 123456789012345678901234567890}),
        ("{}", {}),
        ("null", {}),
        ('""', {}),
    ],
)
async def test_arguments_reach_the_tool_as_they_were_sent(arguments: str, given: Any) -> None:
    seen: list[Any] = []

    async def note(arguments: dict[str, Any], _: ToolContext) -> str:
        seen.append(arguments)
        return "noted"

    async with asking([Tool("note", "Note.", {"type": "object"}, note, risk=Risk.LOW)]) as client:
        response = await client.post(
            "/tools/call",
            content=f'{{"tool": "note", "arguments": {arguments}}}',
            headers={"content-type": "application/json"},
        )

    assert (response.status_code, seen) == (200, [given])


@pytest.mark.parametrize(
    "arguments",
    ['{"a": 1, "b": 2, "a": 3}', '{"a": 1, "b": 2, "c": {"d": 1, "d": 2}}'],
)
async def test_a_key_that_comes_twice_is_refused_and_nothing_runs(arguments: str) -> None:
    async with asking() as client:
        response = await client.post(
            "/tools/call",
            content=f'{{"tool": "add", "arguments": {arguments}}}',
            headers={"content-type": "application/json"},
        )

    assert response.status_code == 422
    assert "appears twice" in response.json()["failure"]["message"]


@pytest.mark.parametrize(
    "arguments",
    [
        b'{"a": "\xff"}',
        b'{"\xff": 1}',
        b'"\xff"',
    ],
)
async def test_arguments_that_are_no_utf_8_are_a_bad_request_and_nothing_runs(
    arguments: bytes,
) -> None:
    pipeline = Pipeline([add])
    async with asking(pipeline=pipeline) as client:
        body = b'{"tool": "add", "arguments": ' + arguments + b"}"
        response = await client.post(
            "/tools/call", content=body, headers={"Content-Type": "application/json"}
        )

    failure = response.json()["failure"]
    assert (response.status_code, failure["reason"]) == (400, "bad_request")
    assert "arguments" in failure["message"]
    assert not pipeline.trace.spans(10)


async def test_equal_calls_without_a_session_are_no_loop() -> None:
    async with asking() as client:
        alone = [(await call(client, "add", {"a": 1, "b": 2})).status_code for _ in range(8)]
        together = [
            (await call(client, "add", {"a": 1, "b": 2}, sessionId="s")).status_code
            for _ in range(8)
        ]

    assert alone == [200] * 8
    assert together[-1] == 403


async def test_an_unknown_tool_is_404_with_hints_and_nothing_runs() -> None:
    async with asking() as client:
        response = await call(client, "ad", {"a": 1, "b": 2})
        spans = (await client.get("/traces")).json()["spans"]

    assert response.status_code == 404
    failure = response.json()["failure"]
    assert (failure["reason"], failure["hints"]) == ("tool_not_found", ["add"])
    assert failure["mayHaveRun"] is False
    assert spans == []


async def test_a_missing_argument_is_422_with_its_reason_and_field() -> None:
    async with asking() as client:
        response = await call(client, "add", {"a": 1})

    assert response.status_code == 422
    failure = response.json()["failure"]
    assert (failure["reason"], failure["fields"]) == ("argument_missing", ["b"])


@pytest.mark.parametrize(
    ("code", "reason", "status"),
    [
        (FailureCode.NOT_FOUND, "not_found", 404),
        (FailureCode.PERMISSION_DENIED, "permission_denied", 403),
        (FailureCode.TIMEOUT, "timeout", 504),
        (FailureCode.RATE_LIMITED, "rate_limited", 429),
        (FailureCode.RATE_LIMITED, "overloaded", 503),
        (FailureCode.CIRCUIT_OPEN, "circuit_open", 503),
        (FailureCode.EXECUTION_FAILED, "tool_failed", 502),
        (FailureCode.UNKNOWN, "outcome_unknown", 502),
        (FailureCode.UNSUPPORTED, "unsupported", 501),
    ],
)
async def test_each_kind_of_failure_has_its_status(
    code: FailureCode, reason: str, status: int
) -> None:
    @tool
    def fail() -> str:
        """Fail."""
        raise ToolFailed(Failure(code=code, message="so it is", reason=reason))

    async with asking([fail]) as client:
        response = await call(client, "fail")

    assert response.status_code == status
    assert response.json()["failure"]["reason"] == reason


async def test_a_used_up_rate_says_when_to_come_back_and_what_is_left() -> None:
    pipeline = Pipeline(
        [add], policies=Policies(default=RunPolicy(rate="4/minute")), clock=FakeClock()
    )
    async with asking(pipeline=pipeline) as client:
        answers = [await call(client, "add", {"a": 1, "b": 2}) for _ in range(5)]

    assert [answer.headers.get("ratelimit") for answer in answers] == [
        None,
        '"tool";r=2;t=30',
        '"tool";r=1;t=45',
        '"tool";r=0;t=60',
        '"tool";r=0;t=60',
    ]
    assert answers[-1].headers["ratelimit-policy"] == '"tool";q=4;w=60'
    assert answers[-1].status_code == 429
    assert answers[-1].headers["retry-after"] == "15"


async def test_what_needs_approval_is_refused_where_nobody_can_be_asked() -> None:
    async with asking() as client:
        response = await call(client, "drop_table", {"name": "users"})

    assert response.status_code == 403
    assert response.json()["failure"]["reason"] == "approval_required"


@pytest.mark.parametrize(
    ("content", "media", "status", "reason"),
    [
        ("{}", "text/plain", 415, "media_type_unsupported"),
        ("{", "application/json", 400, "bad_request"),
        ("[]", "application/json", 400, "bad_request"),
        ("{}", "application/json", 400, "bad_request"),
        ('{"tool": 1}', "application/json", 400, "bad_request"),
        ('{"tool": "add", "requestId": "\\n"}', "application/json", 400, "bad_request"),
        ('{"tool": "add", "timeoutS": -1}', "application/json", 400, "bad_request"),
        ('{"tool": "add", "timeoutS": 1e9}', "application/json", 400, "bad_request"),
        ('{"tool": "add", "arguments": 5}', "application/json; charset=utf-8", 422, None),
        ('{"tool": "add", "arguments": "\\ud800"}', "application/json", 400, "bad_request"),
        ("[" * 100_000, "application/json", 400, "bad_request"),
    ],
)
async def test_a_request_that_is_none_is_said_to_be_none(
    content: str, media: str, status: int, reason: str | None
) -> None:
    async with asking() as client:
        response = await client.post(
            "/tools/call", content=content, headers={"content-type": media}
        )

    assert response.status_code == status
    assert reason in (None, response.json()["failure"]["reason"])


@pytest.mark.parametrize("announced", [True, False])
async def test_a_body_beyond_the_bound_is_413(announced: bool) -> None:
    async def parts() -> Any:
        for _ in range(10):
            yield b" " * 100

    content = b" " * 1_000 if announced else parts()
    async with asking(max_body_bytes=500) as client:
        response = await client.post(
            "/tools/call", content=content, headers={"content-type": "application/json"}
        )

    assert response.status_code == 413


async def test_progress_is_streamed_before_the_result() -> None:
    async with asking() as client:
        response = await call(client, "count_to", {"n": 2}, headers={"accept": "text/event-stream"})

    assert response.headers["content-type"].startswith("text/event-stream")
    events = _events(response.text)
    assert [event for event, _ in events] == ["progress", "progress", "result"]
    assert events[0][1] == {"message": "at 1", "done": 1, "total": 2}
    assert events[-1][1]["text"] == "counted"


async def test_a_stream_without_progress_has_the_status_of_its_result() -> None:
    async with asking() as client:
        response = await call(client, "add", {"a": 1}, headers={"accept": "text/event-stream"})

    assert response.status_code == 422
    assert _events(response.text)[0][1]["failure"]["reason"] == "argument_missing"


def _events(text: str) -> list[tuple[str, Any]]:
    found = []
    for block in text.strip().split("\n\n"):
        event, data = block.split("\n")
        found.append((event.removeprefix("event: "), json.loads(data.removeprefix("data: "))))
    return found


class _Effects:
    """A tool that waits to be let through, and counts what it did."""

    def __init__(self, *, detach: bool = False, read_only: bool = False) -> None:
        self.begun = asyncio.Event()
        self.let = asyncio.Event()
        self.ended = asyncio.Event()
        self.count = 0
        hints = Annotations.for_reading() if read_only else Annotations()
        self.tool = tool(self.effect, name="effect", annotations=hints, detach=detach, risk="low")

    async def effect(self, n: int = 0) -> str:
        """Have an effect, once let through."""
        self.begun.set()
        try:
            await self.let.wait()
            self.count += 1
        finally:
            self.ended.set()
        return "done"


async def _hung_up(base: str, effects: _Effects, **headers: str) -> None:
    """Begin a call and close the connection while it runs."""
    async with httpx.AsyncClient(base_url=base) as client:
        asked = asyncio.ensure_future(call(client, "effect", {}, requestId="c1", headers=headers))
        await effects.begun.wait()
        asked.cancel()
        await asyncio.gather(asked, return_exceptions=True)


async def test_a_call_whose_client_goes_is_cancelled_and_says_why() -> None:
    effects = _Effects()
    pipeline = Pipeline([effects.tool])
    async with listening(pipeline) as base:
        await _hung_up(base, effects)
        await effects.ended.wait()
        await asyncio.sleep(0)

    assert effects.count == 0
    assert [span.reason for span in pipeline.trace.spans(call_id="c1")] == ["client_gone"]


async def test_a_detached_tool_goes_on_without_its_client() -> None:
    effects = _Effects(detach=True)
    async with listening(Pipeline([effects.tool])) as base:
        await _hung_up(base, effects)
        assert not effects.ended.is_set()
        effects.let.set()
        await effects.ended.wait()

    assert effects.count == 1


async def test_a_detached_tool_is_waited_for_when_the_gateway_stops() -> None:
    effects = _Effects(detach=True)
    pipeline = Pipeline([effects.tool])
    async with listening(pipeline) as base:
        await _hung_up(base, effects)
        asyncio.get_running_loop().call_later(0.3, effects.let.set)

    assert effects.count == 1
    assert [span.outcome for span in pipeline.trace.spans(call_id="c1")] == [Outcome.SUCCESS]


@pytest.mark.parametrize("detach", [True, False])
async def test_what_does_not_end_before_the_gateway_must_is_broken_off_and_recorded(
    detach: bool, tmp_path: Path
) -> None:
    effects = _Effects(detach=detach)
    state = f"sqlite:///{tmp_path}/state.db"
    pipeline = Pipeline([effects.tool], state=state)
    key = {"idempotency-key": "k"}
    async with httpx.AsyncClient() as client, listening(pipeline, drain_s=0.1) as base:
        client.base_url = base
        asked = asyncio.ensure_future(call(client, "effect", {}, requestId="c1", headers=key))
        await effects.begun.wait()
        if detach:
            asked.cancel()
            await asyncio.gather(asked, return_exceptions=True)
    assert [span.reason for span in pipeline.trace.spans(call_id="c1")] == ["gateway_stopped"]

    effects.let.set()
    async with (
        listening(Pipeline([effects.tool], state=state)) as base,
        httpx.AsyncClient(base_url=base) as client,
    ):
        again = await call(client, "effect", {}, headers=key)
    assert again.json()["failure"]["reason"] == "outcome_unknown"
    assert effects.count == 0


@pytest.mark.parametrize("detach", [True, False])
async def test_who_waits_for_a_call_that_is_broken_off_is_told_that_its_outcome_is_not_known(
    detach: bool,
) -> None:
    effects = _Effects(detach=detach)
    async with httpx.AsyncClient() as client:
        async with listening(Pipeline([effects.tool]), drain_s=0.1) as base:
            client.base_url = base
            asked = asyncio.ensure_future(call(client, "effect", {}, requestId="c1"))
            await effects.begun.wait()
        answer = await asked

    assert answer.status_code == 502
    assert answer.json()["failure"]["reason"] == "outcome_unknown"
    assert effects.count == 0


async def test_the_same_key_and_call_gets_the_first_answer_again() -> None:
    effects = _Effects()
    effects.let.set()
    async with asking([effects.tool]) as client:
        first = await call(client, "effect", {"n": 1}, headers={"idempotency-key": "k"})
        again = await call(client, "effect", {"n": 1}, headers={"idempotency-key": "k"})

    assert effects.count == 1
    assert again.json() == first.json()
    assert again.headers["idempotency-replayed"] == "true"
    assert "idempotency-replayed" not in first.headers


async def test_a_key_used_for_another_call_is_422() -> None:
    effects = _Effects()
    effects.let.set()
    async with asking([effects.tool]) as client:
        await call(client, "effect", {"n": 1}, headers={"idempotency-key": "k"})
        other = await call(client, "effect", {"n": 2}, headers={"idempotency-key": "k"})

    assert (other.status_code, effects.count) == (422, 1)
    assert other.json()["failure"]["reason"] == "idempotency_conflict"


async def test_a_key_whose_call_still_runs_is_409() -> None:
    effects = _Effects()
    async with asking([effects.tool]) as client:
        first = asyncio.ensure_future(call(client, "effect", {}, headers={"idempotency-key": "k"}))
        await effects.begun.wait()
        second = await call(client, "effect", {}, headers={"idempotency-key": "k"})
        effects.let.set()
        answer = await first

    assert (second.status_code, effects.count) == (409, 1)
    assert second.json()["requestId"] == answer.json()["requestId"] != ""
    assert second.headers["retry-after"] == "1"


async def test_a_refused_call_does_not_use_its_key_up() -> None:
    effects = _Effects()
    effects.let.set()
    policies = Policies(default=RunPolicy(rate="1/minute"))
    clock = FakeClock()
    async with asking(pipeline=Pipeline([effects.tool], policies=policies, clock=clock)) as client:
        await call(client, "effect", {})
        refused = await call(client, "effect", {}, headers={"idempotency-key": "k"})
        await clock.advance(60)
        again = await call(client, "effect", {}, headers={"idempotency-key": "k"})

    assert (refused.status_code, again.status_code) == (429, 200)


async def test_a_key_of_a_call_that_was_broken_off_is_never_run_again() -> None:
    effects = _Effects()
    async with listening(Pipeline([effects.tool])) as base:
        await _hung_up(base, effects, **{"idempotency-key": "k"})
        await effects.ended.wait()
        effects.let.set()
        async with httpx.AsyncClient(base_url=base) as client:
            again = await call(client, "effect", {}, headers={"idempotency-key": "k"})

    assert (again.status_code, effects.count) == (502, 0)
    assert again.json()["failure"]["reason"] == "outcome_unknown"


@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize("waits_for", ["exclusive", "bulkhead", "person", "no ledger"])
async def test_a_key_whose_call_never_began_is_free_when_its_client_has_gone(
    waits_for: str, kept: bool, tmp_path: Path
) -> None:
    ran: list[int] = []
    begun, let, asked = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def effect(n: int) -> str:
        """Have an effect, once let through."""
        begun.set()
        await let.wait()
        ran.append(n)
        return "done"

    async def confirm(*_: Any) -> bool:
        asked.set()
        await let.wait()
        return True

    by_person = waits_for == "person"
    exclusive = "till" if waits_for in ("exclusive", "no ledger") else None
    policy = RunPolicy(
        max_concurrency=1 if waits_for == "bulkhead" else None,
        ledger="off" if waits_for == "no ledger" else "on",
    )
    pipeline = Pipeline(
        [tool(effect, exclusive=exclusive, risk="high" if by_person else "low")],
        policies=Policies(policy),
        state=f"sqlite:///{tmp_path}/state.db" if kept else None,
        confirm=confirm,
    )
    key = {"idempotency-key": "k"}
    async with listening(pipeline) as base, httpx.AsyncClient(base_url=base) as client:
        if not by_person:
            first = asyncio.ensure_future(call(client, "effect", {"n": 1}))
            await begun.wait()
        async with httpx.AsyncClient(base_url=base) as other:
            gone = asyncio.ensure_future(
                call(other, "effect", {"n": 2}, requestId="c2", headers=key)
            )
            await (asked.wait() if by_person else until(lambda: _in_flight(pipeline) == 2))
            await asyncio.sleep(0.05)
            gone.cancel()
            await asyncio.gather(gone, return_exceptions=True)
        await until(lambda: pipeline.trace.spans(call_id="c2"))
        let.set()
        if not by_person:
            await first
        again = await until_answered(lambda: call(client, "effect", {"n": 2}, headers=key))

    assert (again.status_code, again.json()["text"]) == (200, "done")
    assert ran == ([2] if by_person else [1, 2])


def _in_flight(pipeline: Pipeline) -> int:
    return pipeline._routes["effect"].in_flight


async def until_answered(ask: Any) -> Any:
    """Ask until the key is not that of a call that is still on its way out."""

    async def other_than_running() -> Any:
        found = await ask()
        return None if found.status_code == 409 else found

    return await until(other_than_running)


async def test_what_came_of_a_call_is_kept_although_its_client_went_while_that_was_stored() -> None:
    ran: list[int] = []

    @tool(risk="low")
    async def effect() -> str:
        """Have an effect."""
        ran.append(1)
        return "done"

    stored, key = asyncio.Event(), {"idempotency-key": "k"}
    gateway = Gateway(Pipeline([effect]), GatewaySettings())

    async def keep(*_: Any) -> None:
        stored.set()
        await asyncio.Event().wait()

    gateway.calls.asked_before.keep = keep  # type: ignore[method-assign, assignment]  # a slow state
    transport = httpx.ASGITransport(gateway)
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        gone = asyncio.ensure_future(call(client, "effect", {}, headers=key))
        await stored.wait()
        gone.cancel()
        await asyncio.gather(gone, return_exceptions=True)
        again = await call(client, "effect", {}, headers=key)

    assert (again.status_code, again.json()["text"], ran) == (200, "done", [1])


async def test_a_call_that_had_not_begun_when_the_gateway_had_to_end_is_told_so() -> None:
    begun, asked = asyncio.Event(), []

    async def effect(n: int) -> str:
        """Have an effect."""
        begun.set()
        await asyncio.Event().wait()
        return "done"

    pipeline = Pipeline([tool(effect, exclusive="till", risk="low")])
    async with httpx.AsyncClient() as client, listening(pipeline, drain_s=0.1) as base:
        client.base_url = base
        asked.append(asyncio.ensure_future(call(client, "effect", {"n": 1})))
        await begun.wait()
        asked.append(asyncio.ensure_future(call(client, "effect", {"n": 2})))
        await until(lambda: _in_flight(pipeline) == 2)
        serving = [asyncio.ensure_future(asyncio.wait(asked))]
    await asyncio.gather(*serving)
    told = [one.result() for one in asked]

    assert [one.status_code for one in told] == [502, 503]
    assert [one.json()["failure"]["mayHaveRun"] for one in told] == [None, False]


@pytest.mark.parametrize(
    "same",
    [
        '{"to": "ada", "amount": 1}',
        '{"amount":1,"to":"ada"}',
        '{"amount":1.0,"to":"ada"}',
        '"{\\"to\\": \\"ada\\", \\"amount\\": 1}"',
    ],
)
async def test_the_same_call_under_a_key_may_be_written_in_another_way(same: str) -> None:
    ran: list[float] = []

    @tool(risk="low")
    def pay(to: str, amount: float) -> str:
        """Pay."""
        ran.append(amount)
        return "paid"

    headers = {"idempotency-key": "k", "content-type": "application/json"}
    async with asking([pay]) as client:
        for arguments in ('{"to":"ada","amount":1}', same, '{"to":"ada","amount":1.01}'):
            body = f'{{"tool":"pay","arguments":{arguments}}}'
            answer = await client.post("/tools/call", content=body, headers=headers)
            if arguments == same:
                again = answer

    assert (again.status_code, again.headers.get("idempotency-replayed")) == (200, "true")
    assert (answer.status_code, ran) == (422, [1])


@pytest.mark.parametrize(
    ("first", "other"), [("null", "{}"), ("null", '""'), ("[1,]", "[1, ]"), ("{", "{ ")]
)
async def test_no_arguments_are_an_empty_object_and_text_that_is_none_is_itself(
    first: str, other: str
) -> None:
    effects = _Effects()
    effects.let.set()
    async with asking([effects.tool]) as client:
        for text in (first, other):
            body = {"tool": "effect", "arguments": None if text == "null" else text}
            answer = await client.post("/tools/call", json=body, headers={"idempotency-key": "k"})

    if first == "null":
        assert (answer.headers["idempotency-replayed"], effects.count) == ("true", 1)
    else:
        assert (answer.json()["failure"]["layer"], effects.count) == ("argument_check", 0)


@pytest.mark.parametrize("session", [{"sessionId": "chat"}, {}])
async def test_clients_do_not_read_each_others_notes(session: dict[str, str]) -> None:
    tokens = token_of("shop", CALLER, "call") + token_of("other", APPROVER, "call")
    shop, other = bearer(CALLER), bearer(APPROVER)
    async with asking(bundled(), tokens=tokens) as client:
        await call(client, "note_add", {"text": "the PIN is 4711"}, headers=shop, **session)
        own = await call(client, "note_search", {}, headers=shop, **session)
        read = await call(client, "note_search", {}, headers=other, **session)

    assert own.json()["structuredContent"]["found"] == 1
    assert read.json()["structuredContent"] == {"notes": [], "found": 0, "kept": 0}


async def test_a_declared_name_is_the_tools_own_before_anything_is_made_of_it() -> None:
    effects = _Effects()
    effects.let.set()
    registry = Registry([msgspec.structs.replace(effects.tool, name="pay.all")])
    registry.declarations("openai")
    async with asking(pipeline=Pipeline(registry), console_allow=("pay_*",)) as client:
        first = await call(client, "pay_all", {}, headers={"idempotency-key": "k"})
        again = await call(client, "pay.all", {}, headers={"idempotency-key": "k"})
        released = await client.post("/console/call", json={"tool": "pay_all", "arguments": {}})

    assert first.json()["tool"] == "pay.all"
    assert (again.headers["idempotency-replayed"], effects.count) == ("true", 1)
    assert released.json()["failure"]["reason"] == "denied_by_policy"


async def test_a_session_belongs_to_its_client_and_is_kept() -> None:
    seen: list[str] = []

    @tool
    def who(context: ToolContext) -> str:
        """Say who asks."""
        seen.append(context.session_id)
        return "ok"

    async with asking([who]) as client:
        await call(client, "who", {}, sessionId="s1")
        await call(client, "who", {})

    assert seen == ["s1", ""]
