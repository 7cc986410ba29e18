"""What an executor is handed, and when it learns that it was given up."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from seawall import Annotations, Pipeline, Policies, RunPolicy, Session, Tool, ToolResult
from seawall.pipeline.context import MAX_DEPTH, ToolContext
from seawall.testing import FakeClock, LayerBench


class House:
    """A pipeline with one tool whose body is given."""

    def __init__(self, body: Any, **policy: Any) -> None:
        self.clock = FakeClock()
        self.seen: list[Any] = []
        self.reports: list[Any] = []
        self.contexts: list[ToolContext] = []
        self.body = body
        tool = Tool(
            name="t",
            description="",
            input_schema={"type": "object"},
            executor=self._execute,
            annotations=Annotations.for_reading(),
        )
        self.pipeline = Pipeline(
            [tool],
            policies=Policies(default=RunPolicy(**policy)),
            clock=self.clock,
            on_progress=lambda *report: self.reports.append(report),
        )

    async def _execute(self, arguments: dict[str, Any], context: ToolContext) -> Any:
        self.contexts.append(context)
        return await self.body(self, arguments, context)

    async def call(self, arguments: Any = None, **options: Any) -> ToolResult:
        return await self.clock.run(self.pipeline.call("t", arguments, **options))


async def test_a_tool_sees_its_call_and_what_the_session_was_given() -> None:
    async def body(house: House, arguments: Any, context: ToolContext) -> None:
        house.seen.append((context.call_id, context.session_id, context.attempt, context.batch_id))
        house.seen.append((context.caller, context.state["user"], context.services.get("db")))

    house = House(body)

    session = Session("s1", caller="shop", state={"user": "ada"}, services={"db": "DB"})
    await house.call(call_id="c1", session=session)

    assert house.seen == [("c1", "s1", 1, None), ("shop", "ada", "DB")]


async def test_the_idempotency_key_is_one_for_all_attempts_and_never_the_models() -> None:
    async def body(house: House, arguments: Any, context: ToolContext) -> None:
        house.seen.append(context.idempotency_key)
        raise OSError

    house = House(body, max_retries=1)

    await house.call(call_id="c1")
    await house.call(call_id="c1")
    await house.call(idempotency_key="the caller's own")

    first, again, second, _, own, _ = house.seen
    assert first == again != second
    assert "c1" not in (first, second)
    assert len(first) == 32
    assert own == "the caller's own"


async def test_progress_reaches_the_listeners_while_the_attempt_runs_and_not_later() -> None:
    async def body(house: House, arguments: Any, context: ToolContext) -> str:
        context.progress("half", 1, 2)
        context.progress(ToolResult.of_text("partial"))
        return "done"

    house = House(body)
    mine: list[Any] = []

    await house.call(on_progress=lambda *report: mine.append(report))
    house.contexts[0].progress("too late")

    assert mine == house.reports
    assert [report[0] for report in mine][:1] == ["half"]
    assert mine[0][1:] == (1, 2)
    assert len(mine) == 2


async def test_a_tool_that_was_let_go_reports_no_more_and_does_not_disturb_the_next_attempt() -> (
    None
):
    async def body(house: House, arguments: Any, context: ToolContext) -> str:
        if context.attempt == 2:
            await house.clock.sleep(5)
            context.progress("second attempt")
            house.seen.append(bool(context.cancelled))
            return "done"
        end = house.clock.now() + 8
        while house.clock.now() < end:
            try:
                await house.clock.sleep(end - house.clock.now())
            except asyncio.CancelledError:
                house.seen.append((bool(context.cancelled), context.cancelled.reason))
        context.progress("of the dead")
        raise OSError("nobody hears this")

    house = House(body, timeout_s=6, grace_s=1, max_retries=1)

    result = await house.call()

    assert (result.text, result.attempts) == ("done", 2)
    assert [report[0] for report in house.reports] == ["second attempt"]
    assert house.seen == [(True, "attempt_timeout"), False]
    assert result.duration_ms == 12_000  # 7 until it was let go, 5 of the second
    assert house.contexts[0].cancelled.reason == "attempt_timeout"


@pytest.mark.parametrize(
    ("policy", "reason"),
    [({"timeout_s": 1}, "attempt_timeout"), ({"deadline_s": 1}, "deadline_exceeded")],
)
async def test_a_tool_learns_why_it_is_given_up(policy: Any, reason: str) -> None:
    async def body(house: House, arguments: Any, context: ToolContext) -> None:
        cancelled = context.cancelled
        house.seen.append((bool(cancelled), cancelled.reason))
        try:
            await house.clock.sleep(9)
        finally:
            house.seen.append((bool(cancelled), cancelled.reason))

    house = House(body, **policy)

    await house.call()

    assert house.seen == [(False, None), (True, reason)]


async def test_the_callers_cancel_is_a_reason_of_its_own_also_in_a_later_attempt() -> None:
    async def body(house: House, arguments: Any, context: ToolContext) -> None:
        try:
            await house.clock.sleep(9)
        finally:
            house.seen.append(context.cancelled.reason)

    house = House(body, timeout_s=1, max_retries=1)
    task = asyncio.ensure_future(house.pipeline.call("t"))
    await house.clock.advance(1.5)

    task.cancel()
    await house.clock.settle()

    assert task.cancelled()
    assert house.seen == ["attempt_timeout", "cancelled"]


async def test_tools_may_call_tools_so_deep_and_no_deeper() -> None:
    async def body(house: House, arguments: Any, context: ToolContext) -> Any:
        return await context.call_tool("t", {})

    house = House(body)

    result = await house.call()

    assert len(house.contexts) == MAX_DEPTH
    assert result.failure is not None
    assert result.failure.reason == "denied_by_policy"


async def test_a_call_made_by_a_tool_has_its_session_and_what_is_left_of_its_time() -> None:
    async def body(house: House, arguments: Any, context: ToolContext) -> Any:
        house.seen.append(context.session_id)
        if arguments.get("inner"):
            await house.clock.sleep(99)
        await house.clock.sleep(2)
        inner = await context.call_tool("t", {"inner": True})
        house.seen.append((house.clock.now(), inner.failure and inner.failure.reason))
        return "outer"

    house = House(body)

    result = await house.call(session=Session("s"), deadline_s=5)

    assert house.seen[0] == house.seen[1] == "s"
    assert result.is_error
    assert house.clock.now() == pytest.approx(5)


async def test_a_call_of_an_unknown_tool_from_a_tool_is_answered_as_any() -> None:
    async def body(house: House, arguments: Any, context: ToolContext) -> Any:
        return await context.call_tool("tt")

    result = await House(body).call()

    assert result.failure is not None
    assert result.failure.reason == "tool_not_found"


async def test_outside_of_its_attempt_a_context_says_that_it_is_over() -> None:
    bench = LayerBench()
    call = bench.invocation()
    context = ToolContext(call, call.attempt)

    assert context.cancelled
    assert context.cancelled.reason == "cancelled"


async def test_a_call_that_has_ended_makes_no_calls_any_more() -> None:
    async def body(house: House, arguments: Any, context: ToolContext) -> str:
        return "done"

    house = House(body)
    await house.call()

    late = await house.contexts[0].call_tool("t")

    assert late.failure is not None
    assert (late.failure.reason, late.failure.may_have_run) == ("denied_by_policy", False)
    assert len(house.contexts) == 1


async def test_an_attempt_that_another_one_followed_makes_no_calls_any_more() -> None:
    late: list[ToolResult] = []

    async def body(house: House, arguments: Any, context: ToolContext) -> str:
        if context.attempt == 1:
            raise OSError("again")
        late.append(await house.contexts[0].call_tool("t"))
        return "done"

    house = House(body, max_retries=1)
    await house.call()

    assert late[0].is_error
    assert len(house.contexts) == 2
