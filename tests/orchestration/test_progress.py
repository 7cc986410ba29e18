"""What tools report while they run: how much of it is passed on, and what hooks leave of it."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from seawall import (
    Abort,
    Annotations,
    HedgePolicy,
    Hook,
    HookContext,
    Pipeline,
    Policies,
    Replace,
    RunPolicy,
    TextContent,
    Tool,
    ToolResult,
    TurnStatus,
)
from seawall.orchestration.progress import EVERY_S, MAX_AT_ONCE, MAX_REPORT_BYTES, Pace
from seawall.testing import FakeClock

SECRET = "4111 1111"
READS = Annotations(read_only=True)


def left_of(result: ToolResult | None) -> Replace:
    assert result is not None
    return Replace(content=result.text.replace(SECRET, "…"))


class Redacts(Hook):
    """Keeps a number from whoever reads results."""

    def after(self, context: HookContext) -> Replace:
        return left_of(context.result)

    report = after


class RedactsLater(Hook):
    """The same, after it has waited for something."""

    async def after(self, context: HookContext) -> Replace:
        await asyncio.sleep(0)
        return left_of(context.result)

    report = after


class Heard(list[Any]):
    """A listener that keeps what it hears, as texts."""

    def __call__(self, report: Any, done: float | None, total: float | None) -> None:
        self.append(report if isinstance(report, str) else report.text)


async def streams(arguments: dict[str, Any], context: Any) -> str:
    """A tool that shows its output as it comes."""
    context.progress(ToolResult.of_text(f"card {SECRET}"))
    context.progress(f"found {SECRET}", 1, 2)
    await asyncio.sleep(0.01)
    return f"paid with {SECRET}"


def pay(executor: Any = streams) -> Tool:
    return Tool("pay", "", {"type": "object"}, executor)


@pytest.mark.parametrize("hook", [Redacts(), RedactsLater()])
async def test_hooks_that_redact_results_redact_reports_and_partial_results(hook: Hook) -> None:
    mine, of_all = Heard(), Heard()
    pipeline = Pipeline([pay()], hooks=[hook], on_progress=of_all)

    result = await pipeline.call("pay", {}, on_progress=mine)

    assert mine == of_all == ["card …", "found …"]
    assert result.text == "paid with …"


async def test_reports_of_a_turn_and_of_nested_calls_are_redacted_too() -> None:
    async def outer(arguments: dict[str, Any], context: Any) -> str:
        return str((await context.call_tool("pay")).text)

    told: list[Any] = []
    of_all = Heard()
    tools = [pay(), Tool("outer", "", {"type": "object"}, outer)]
    pipeline = Pipeline(tools, hooks=[Redacts()], on_progress=of_all)

    await pipeline.turn([("pay", {})], on_event=told.append)
    await pipeline.call("outer")

    updates = [event.report for event in told if event.kind == "update"]
    assert [one if isinstance(one, str) else one.text for one in updates] == of_all[:2]
    assert len(of_all) == 4
    assert SECRET not in str(of_all)


async def test_reports_of_a_hedged_call_are_redacted_too() -> None:
    heard = Heard()
    policies = Policies(tools={"pay": RunPolicy(hedge=HedgePolicy(delay_s=5))})
    tool = Tool("pay", "", {"type": "object"}, streams, annotations=READS)
    pipeline = Pipeline([tool], policies=policies, hooks=[Redacts()])

    await pipeline.call("pay", {}, on_progress=heard)

    assert len(heard) == 2
    assert SECRET not in str(heard)


async def test_reports_of_a_thread_are_redacted_too() -> None:
    def counts(arguments: dict[str, Any], context: Any) -> str:
        context.progress(f"at {SECRET}")
        return SECRET

    heard = Heard()

    result = await Pipeline([pay(counts)], hooks=[Redacts()]).call("pay", {}, on_progress=heard)

    assert (heard, result.text) == (["at …"], "…")


async def test_a_partial_result_keeps_what_a_hook_replaces_and_no_more() -> None:
    class Cuts(Hook):
        def report(self, context: HookContext) -> Replace:
            return Replace(content=[TextContent(text="cut")])

    async def shows(arguments: dict[str, Any], context: Any) -> str:
        context.progress(ToolResult(content=(), structured_content={"card": SECRET}))
        return "end"

    got: list[Any] = []

    result = await Pipeline([pay(shows)], hooks=[Cuts()]).call(
        "pay", {}, on_progress=lambda *news: got.append(news[0])
    )

    assert (got[0].text, got[0].structured_content, result.text) == ("cut", None, "end")


class Raises(Hook):
    """Fails at what is no result yet."""

    def report(self, context: HookContext) -> Any:
        raise OSError


class Talks(Hook):
    """Answers what is none."""

    def report(self, context: HookContext) -> Any:
        return "nonsense"


class GivesFuture(Hook):
    """Is plain, and gives something to wait for."""

    def report(self, context: HookContext) -> Any:
        return asyncio.sleep(0)


class Ends(Hook):
    """Would end the turn for what is no result yet."""

    def report(self, context: HookContext) -> Any:
        return Abort("enough")


@pytest.mark.parametrize("hook", [Raises(), Talks(), GivesFuture(), Ends()])
async def test_a_report_is_withheld_if_a_hook_fails_at_it_and_the_call_goes_on(hook: Hook) -> None:
    heard = Heard()

    result = await Pipeline([pay()], hooks=[hook]).call("pay", {}, on_progress=heard)

    assert heard == []
    assert result.failure is None


async def test_a_report_injects_nothing() -> None:
    class Injects(Hook):
        def report(self, context: HookContext) -> None:
            context.inject("once for each report")

    told: list[Any] = []

    outcome = await Pipeline([pay()], hooks=[Injects()]).turn([("pay", {})], on_event=told.append)

    assert (outcome.status, outcome.messages) == (TurnStatus.DONE, ())
    assert [event.kind for event in told].count("update") == 2


async def test_what_a_tool_reports_is_no_result_and_passes_no_after() -> None:
    class Counts(Hook):
        def __init__(self) -> None:
            self.seen: list[str] = []

        def after(self, context: HookContext) -> None:
            assert context.result is not None
            self.seen.append(context.result.text)

    hook, heard = Counts(), Heard()

    await Pipeline([pay()], hooks=[hook]).call("pay", {}, on_progress=heard)

    assert hook.seen == [f"paid with {SECRET}"]
    assert heard == [f"card {SECRET}", f"found {SECRET}"]


async def test_a_hook_knows_the_call_of_a_report_and_is_asked_only_if_somebody_listens() -> None:
    class Remembers(Hook):
        def __init__(self) -> None:
            self.asked = 0

        def before(self, context: HookContext) -> None:
            context.memory["secret"] = SECRET

        def report(self, context: HookContext) -> Replace | None:
            self.asked += 1
            assert context.result is not None
            said = context.result.text.replace(context.memory["secret"], "…")
            return Replace(content=said)

    hook, heard = Remembers(), Heard()
    pipeline = Pipeline([pay()], hooks=[hook])

    await pipeline.call("pay", {})
    unheard = hook.asked
    await pipeline.call("pay", {}, on_progress=heard)

    assert (unheard, hook.asked) == (0, 2)
    assert SECRET not in str(heard)


async def test_nothing_is_told_by_an_async_hook_once_the_call_has_ended() -> None:
    going_on = asyncio.Event()

    class Slow(Hook):
        async def report(self, context: HookContext) -> None:
            await going_on.wait()

    heard = Heard()

    await Pipeline([pay()], hooks=[Slow()]).call("pay", {}, on_progress=heard)
    going_on.set()
    await asyncio.sleep(0.01)

    assert heard == []


# How much is passed on


async def test_of_what_comes_too_fast_the_newest_is_told() -> None:
    clock, heard = FakeClock(), Heard()

    async def floods(arguments: dict[str, Any], context: Any) -> str:
        for at in range(MAX_AT_ONCE + 50):
            context.progress(f"{at}")
        await clock.sleep(EVERY_S * 1.5)
        context.progress("later")
        await clock.sleep(EVERY_S * 1.5)
        context.progress("too late")
        context.progress("far too late")
        return "done"

    call = Pipeline([pay(floods)], clock=clock).call("pay", {}, on_progress=heard)
    result = await clock.run(call)

    first = [str(at) for at in range(MAX_AT_ONCE)]
    assert heard[:MAX_AT_ONCE] == first
    assert heard[MAX_AT_ONCE:] == [str(MAX_AT_ONCE + 49), "later", "too late"]
    assert result.text == "done"


async def test_a_thread_that_reports_without_end_is_bounded_in_memory_and_in_what_is_told() -> None:
    heard = Heard()

    def floods(arguments: dict[str, Any], context: Any) -> str:
        for at in range(50_000):
            context.progress(f"{at:08}")
        return "done"

    began = time.monotonic()
    result = await Pipeline([pay(floods)]).call("pay", {}, on_progress=heard)
    took_s = time.monotonic() - began

    assert result.text == "done"
    assert heard == sorted(heard)
    assert len(heard) <= MAX_AT_ONCE + took_s / EVERY_S + 1


@pytest.mark.parametrize("letter", ["a", "é", "漢", "😀", "\ud800"])
async def test_a_long_line_is_cut_between_two_characters_and_says_so(letter: str) -> None:
    heard = Heard()

    async def tells(arguments: dict[str, Any], context: Any) -> str:
        context.progress(letter * 1_000_000)
        context.progress(letter * 100)
        return "done"

    await Pipeline([pay(tells)]).call("pay", {}, on_progress=heard)

    long, whole = heard
    assert whole == letter * 100
    assert long.endswith("… [cut: it has 1,000,000 characters]")
    assert MAX_REPORT_BYTES - 8 < len(long.encode()) <= MAX_REPORT_BYTES
    assert set(long.partition("…")[0]) == {"?" if letter == "\ud800" else letter}


async def test_what_a_hook_makes_of_a_line_is_bounded_too() -> None:
    class Doubles(Hook):
        def report(self, context: HookContext) -> Replace:
            assert context.result is not None
            return Replace(content=context.result.text * 3)

    heard = Heard()

    async def tells(arguments: dict[str, Any], context: Any) -> str:
        context.progress("a" * 5_000)
        return "done"

    await Pipeline([pay(tells)], hooks=[Doubles()]).call("pay", {}, on_progress=heard)

    assert heard[0].endswith("… [cut: it has 15,000 characters]")


async def test_partial_results_and_lines_are_cut_as_the_results_of_their_tool_are() -> None:
    heard: list[Any] = []

    async def tells(arguments: dict[str, Any], context: Any) -> Any:
        context.progress("b" * 5_000)
        yield "a" * 50_000
        yield "done"

    async def streams(arguments: dict[str, Any], context: Any) -> Any:
        context.progress("b" * 5_000)
        context.progress(ToolResult.of_text("a" * 50_000))
        return "done"

    policies = Policies(default=RunPolicy(max_result_bytes=2_000))
    for tool in (pay(tells), pay(streams)):
        heard.clear()
        await Pipeline([tool], policies=policies).call(
            "pay", {}, on_progress=lambda report, *_: heard.append(report)
        )
        line, partial = heard
        assert line.endswith("… [cut: it has 5,000 characters]")
        assert len(line) <= 2_000
        assert "bytes were cut here" in partial.text
        assert len(partial.text) <= 2_000


@pytest.mark.parametrize(
    ("passed_s", "left"), [(0, 0), (0.05, 0), (0.1, 1), (0.35, 3), (9.9, 99), (50, MAX_AT_ONCE)]
)
def test_room_for_reports_comes_back_with_time(passed_s: float, left: int) -> None:
    pace = Pace()
    full = pace.left(0)
    pace.take(full)

    assert full == MAX_AT_ONCE
    assert pace.left(passed_s) == left
