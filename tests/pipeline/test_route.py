"""The books of a call: what is told of its attempts and of its end."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from seawall import (
    Annotations,
    FailureCode,
    Invocation,
    Outcome,
    Pipeline,
    Policies,
    RunPolicy,
    Session,
    ToolResult,
)
from seawall.pipeline.recorder import Finished, ToolRecorder
from seawall.testing import FakeClock, FixedChance, scripted

if TYPE_CHECKING:
    from seawall.contract.span import Span


class Books:
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.finished: list[Finished] = []
        self.events: list[tuple[str, str]] = []

    def for_tool(self, tool: str) -> ToolRecorder:
        return ToolRecorder(
            self.spans.append, self.finished.append, lambda *event: self.events.append(event)
        )

    def unknown(self) -> None:
        self.events.append(("registry", "unknown"))


class Desk:
    """A pipeline with one scripted tool, and its books."""

    def __init__(self, *answers: Any, layers: Any = None, **policy: Any) -> None:
        self.clock = FakeClock()
        self.books = Books()
        self.tool = scripted(
            *answers,
            clock=self.clock,
            name="t",
            annotations=Annotations.for_reading(),
            input_schema={"type": "object", "properties": {"n": {"type": "integer"}}},
        )
        self.pipeline = Pipeline(
            [self.tool],
            policies=Policies(default=RunPolicy(**policy)),
            clock=self.clock,
            chance=FixedChance(),
            layers=layers,
            recorders=[self.books],
        )
        self.route = self.pipeline._routes["t"]

    async def call(self, arguments: Any = None, **options: Any) -> ToolResult:
        return await self.clock.run(self.pipeline.call("t", arguments, **options))


async def test_every_attempt_has_a_span_with_its_own_time_and_wait() -> None:
    desk = Desk(max_retries=1, base_delay_s=3)

    async def flaky(arguments: Any, context: Any) -> str:
        await desk.clock.sleep(context.attempt)
        if context.attempt == 1:
            raise OSError("down")
        return "well"

    changed = msgspec.structs.replace(desk.tool, executor=flaky)
    desk.pipeline.registry.register(changed, on_duplicate="replace")
    await desk.clock.advance(10)

    await desk.call({"n": "5"})

    first, second = desk.books.spans
    assert (first.attempt, first.outcome, first.reason) == (1, Outcome.FAILED, "tool_failed")
    assert (second.attempt, second.outcome, second.reason) == (2, Outcome.SUCCESS, "")
    assert (first.duration_ms, first.queue_ms, first.offset_s) == (1000, 0, 10)
    assert (second.duration_ms, second.queue_ms, second.offset_s) == (2000, 4000, 10)
    assert second.started - first.started == 4
    assert first.digest == second.digest is not None
    assert first.mended == second.mended != ()


async def test_a_call_that_ended_is_told_once_with_its_result() -> None:
    desk = Desk("well")

    result = await desk.call(session=Session("s", caller="ada"), call_id="c1")

    (told,) = desk.books.finished
    assert told.result is result
    assert (told.call_id, told.tool, told.session_id, told.caller) == ("c1", "t", "s", "ada")
    assert (told.outcome, told.reason, told.layer, told.attempts) == (Outcome.SUCCESS, "", "", 1)
    assert told.executed_s == told.elapsed_s == 0


async def test_a_recorder_that_asks_for_successes_hears_of_them_by_that_alone() -> None:
    class Quick(Books):
        def __init__(self) -> None:
            super().__init__()
            self.successes: list[tuple[Span, float]] = []

        def for_tool(self, tool: str) -> ToolRecorder:
            recorder = super().for_tool(tool)
            recorder.on_success = lambda *news: self.successes.append(news)
            return recorder

    books, beside = Quick(), Books()
    answers = ["well", OSError("down"), "well", OSError("down")]
    clock = FakeClock()
    pipeline = Pipeline(
        [scripted(*answers, clock=clock, name="t", annotations=Annotations.for_reading())],
        policies=Policies(default=RunPolicy(max_retries=1)),
        clock=clock,
        chance=FixedChance(),
        recorders=[books, beside],
    )

    for _ in range(3):
        await clock.run(pipeline.call("t"))

    well, failed, repeated, *others = beside.spans
    assert [span for span, _ in books.successes] == [well, repeated]
    assert books.spans == [failed, *others]
    assert [executed_s for _, executed_s in books.successes] == [
        told.executed_s for told in beside.finished[:2]
    ]
    assert books.finished == beside.finished[2:]
    assert [told.outcome for told in beside.finished] == [
        Outcome.SUCCESS,
        Outcome.SUCCESS,
        Outcome.FAILED,
    ]


async def test_a_refusal_has_one_span_without_an_attempt() -> None:
    desk = Desk("well")

    await desk.call({"n": "x"})

    (span,), (told,) = desk.books.spans, desk.books.finished
    assert (span.attempt, span.outcome, span.reason) == (0, Outcome.DENIED, "argument_type")
    assert (told.outcome, told.layer, told.executed_s) == (Outcome.DENIED, "argument_check", None)


async def test_the_digest_of_a_refused_call_is_that_of_what_came() -> None:
    desk = Desk("well")

    await desk.call({"n": "x"})
    await desk.call({"n": 5})
    await desk.call({"n": "5"})

    refused, ran, mended = desk.books.spans
    assert refused.digest == desk.pipeline.digester.of("t", {"n": "x"})
    assert ran.digest == mended.digest == desk.pipeline.digester.of("t", {"n": 5})


async def test_a_cancelled_call_is_told_without_a_result() -> None:
    desk = Desk(("sleep", 9))
    task = asyncio.ensure_future(desk.pipeline.call("t"))
    await desk.clock.advance(2)

    task.cancel()
    await desk.clock.settle()

    (span,), (told,) = desk.books.spans, desk.books.finished
    assert (span.outcome, span.reason, span.duration_ms) == (Outcome.FAILED, "cancelled", 2000)
    assert (told.outcome, told.reason, told.result) == (Outcome.FAILED, "cancelled", None)


async def test_a_defect_that_is_let_through_is_not_told_as_a_cancel() -> None:
    desk = Desk("well")
    route = desk.route
    before = Invocation(route.tool, route.policy, route.prepare, {}, "c", Session(), 0)
    begun = Invocation(route.tool, route.policy, route.prepare, {}, "c", Session(), 0)
    begun.attempt, begun.attempt_open = 1, True

    route.broken_off(before, ValueError())
    route.broken_off(begun, ValueError())

    assert [(s.attempt, s.outcome, s.reason) for s in desk.books.spans] == [
        (0, Outcome.DENIED, "gate_failed"),
        (1, Outcome.FAILED, "tool_failed"),
    ]


async def test_an_attempt_is_closed_once_by_a_layer_that_begins_another() -> None:
    async def twice(call: Invocation, proceed: Any) -> ToolResult:
        first: ToolResult = await proceed(call)
        for _ in range(2):
            call.close_attempt(call, first)
        second: ToolResult = await proceed(call)
        return second

    desk = Desk("one", "two", layers=[twice])

    assert (await desk.call()).text == "two"
    assert [(span.attempt, span.outcome) for span in desk.books.spans] == [
        (1, Outcome.SUCCESS),
        (2, Outcome.SUCCESS),
    ]


async def test_a_layers_own_result_is_completed() -> None:
    async def answers_itself(call: Invocation, proceed: Any) -> ToolResult:
        return ToolResult.of_text("from a layer")

    desk = Desk("well", layers=[answers_itself])

    result = await desk.call(call_id="c1")

    assert (result.call_id, result.tool, result.attempts, result.duration_ms) == (
        "c1",
        "t",
        0,
        None,
    )
    assert [(span.attempt, span.outcome) for span in desk.books.spans] == [(0, Outcome.SUCCESS)]
    assert [told.outcome for told in desk.books.finished] == [Outcome.SUCCESS]


async def test_a_refusal_after_an_attempt_keeps_what_the_attempt_took() -> None:
    async def refuses(call: Invocation, proceed: Any) -> ToolResult:
        await proceed(call)
        return call.refuse(FailureCode.UNKNOWN, "too late", layer="mine")

    desk = Desk(("sleep", 2, "well"), layers=[refuses])

    result = await desk.call()

    assert (result.attempts, result.duration_ms) == (1, 2000)
    assert result.failure is not None
    assert result.failure.may_have_run is None
    assert [told.layer for told in desk.books.finished] == ["mine"]


async def test_a_large_result_is_cut_before_anybody_gets_it() -> None:
    desk = Desk("x" * 10_000, max_result_bytes=1_000)

    result = await desk.call()

    assert len(result.text) <= 1_000
    assert desk.books.finished[0].result is result


async def test_what_layers_decided_is_in_the_span() -> None:
    desk = Desk("well", rate="1/minute", rate_mode="shadow", rate_key=("caller",))

    for _ in range(2):
        await desk.call()

    assert [span.verdicts for span in desk.books.spans] == [
        (),
        ("rate_limit:would_refuse:rate_limited",),
    ]
    assert desk.books.events == [("rate_limit", "shadow_refused")]
    assert len({span.key for span in desk.books.spans}) == 1
    assert desk.books.spans[0].key


@pytest.mark.parametrize("bounded", [False, True])
async def test_calls_with_limits_of_their_own_have_a_chain_made_once(bounded: bool) -> None:
    desk = Desk("well")

    for _ in range(2):
        await desk.call(timeout_s=5 if bounded else None)

    assert (desk.route.bounded is not None) is bounded
    assert desk.route.with_limits() is desk.route.with_limits()
