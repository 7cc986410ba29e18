"""When an attempt is given up, and what is said of it."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from seawall.contract.failure import FailureCode
from seawall.contract.policy import RunPolicy
from seawall.contract.tool import Tool
from seawall.layers.timeout import Timeout, argued_duration, shown_seconds
from seawall.pipeline.clock import SystemClock
from seawall.pipeline.layer import LayerContext, compose
from seawall.testing import FakeClock, LayerBench, scripted

if TYPE_CHECKING:
    from seawall.contract.result import ToolResult


class Trial:
    """The timeout layer around one tool."""

    def __init__(
        self,
        executor: Any = None,
        *,
        bounded: bool = False,
        widen: bool = True,
        clock: Any = None,
        duration: float | str | None = None,
        **policy: Any,
    ) -> None:
        self.clock: Any = clock or FakeClock()
        self.takes_s = 9.0
        self.log: list[Any] = []
        tool = Tool(
            name="t",
            description="",
            input_schema={},
            executor=executor or self._sleeps,
            duration=duration,
        )
        self.bench = LayerBench(
            RunPolicy(**{"timeout_s": 5, **policy}), tool=tool, clock=self.clock
        )
        bench = self.bench
        self.context = LayerContext(
            tool,
            bench.policy,
            self.clock,
            bench.chance,
            bench.states,
            lambda layer, event: bench.events.append((layer, event)),
            bounded=bounded,
            widen=widen,
        )
        layer = Timeout.for_tool(self.context)
        self.there = layer is not None
        self.handler = compose([layer] if layer else [], bench.execute())

    async def _sleeps(self, arguments: Any, context: Any) -> str:
        try:
            await self.clock.sleep(self.takes_s)
        finally:
            self.log.append(self.clock.now())
        return "done"

    async def call(self, arguments: Any = None, **fields: Any) -> ToolResult:
        return await self.bench.call(self.handler, arguments, **fields)


def reason(result: ToolResult) -> str:
    return "" if result.failure is None else result.failure.reason


@pytest.mark.parametrize(
    ("policy", "bounded", "there"),
    [
        ({"timeout_s": 5}, False, True),
        ({"timeout_s": None}, False, False),
        ({"timeout_s": None, "deadline_s": 9}, False, True),
        ({"timeout_s": None}, True, True),
        ({"timeout_s": 5, "timeout_mode": "shadow"}, False, True),
        ({"timeout_s": 5, "timeout_mode": "off"}, False, False),
    ],
)
def test_the_layer_is_there_only_where_there_is_a_limit(
    policy: Any, bounded: bool, there: bool
) -> None:
    assert Trial(bounded=bounded, **policy).there is there


async def test_an_attempt_past_its_limit_is_cancelled_and_told_of() -> None:
    trial = Trial()

    result = await trial.call()

    failure = result.failure
    assert failure is not None
    assert (failure.code, failure.reason, failure.layer) == (
        FailureCode.TIMEOUT,
        "attempt_timeout",
        "timeout",
    )
    assert failure.may_have_run is True
    assert "t gave no answer within 5 s" in failure.message
    assert trial.log == [5]
    assert trial.bench.events == [("timeout", "expired")]


async def test_an_attempt_in_time_is_left_alone() -> None:
    trial = Trial(timeout_s=10)

    assert (await trial.call()).text == "done"
    assert trial.bench.events == []


@pytest.mark.parametrize(("timeout_s", "noted"), [(5, True), (9, True), (10, False)])
async def test_a_limit_that_only_watches_ends_nothing_and_notes_what_took_longer(
    timeout_s: float, noted: bool
) -> None:
    trial = Trial(timeout_s=timeout_s, timeout_mode="shadow")
    call = trial.bench.invocation()

    result = await trial.clock.run(trial.handler(call))

    assert result.text == "done"
    assert trial.bench.events == [("timeout", "shadow_refused")] * noted
    assert call.verdicts == ("timeout:would_refuse:attempt_timeout",) * noted


async def test_limits_that_a_call_brings_count_where_the_policys_only_watches() -> None:
    own = await Trial(timeout_mode="shadow", bounded=True).call(timeout_s=2)
    deadline = await Trial(timeout_mode="shadow", bounded=True).call(deadline=3.0)

    assert (reason(own), reason(deadline)) == ("attempt_timeout", "deadline_exceeded")


async def test_a_duration_widens_what_is_watched() -> None:
    trial = Trial(timeout_mode="shadow", duration=8)

    await trial.call()

    assert trial.bench.events == []


@pytest.mark.parametrize("fields", [{}, {"timeout_s": 2}, {"deadline": 3.0}])
async def test_what_is_answered_at_once_takes_no_timer(fields: Any) -> None:
    async def answers(arguments: Any, context: Any) -> str:
        return "at once"

    trial = Trial(answers)

    assert (await trial.call(**fields)).text == "at once"
    assert trial.clock._timers == []


@pytest.mark.parametrize(
    ("fields", "ends_at"), [({}, 5), ({"timeout_s": 6}, 6), ({"deadline": 4.5}, 4.5)]
)
async def test_a_first_step_that_takes_long_is_part_of_the_attempt(
    fields: Any, ends_at: float
) -> None:
    async def blocks(arguments: Any, context: Any) -> str:
        trial.clock._now += 4  # it works without waiting: nothing else can run
        await trial.clock.sleep(3)
        return "too late"

    trial = Trial(blocks)

    result = await trial.call(**fields)

    assert reason(result) == ("deadline_exceeded" if "deadline" in fields else "attempt_timeout")
    assert trial.clock.now() == ends_at


async def test_a_cancel_that_a_tool_asks_for_itself_in_its_first_step_is_the_callers() -> None:
    async def gives_up(arguments: Any, context: Any) -> str:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await trial.clock.sleep(3)
        return "never"

    trial = Trial(gives_up)

    with pytest.raises(asyncio.CancelledError):
        await trial.handler(trial.bench.invocation())
    task = asyncio.current_task()
    assert task is not None
    task.uncancel()


async def test_equal_limits_share_one_timer() -> None:
    trial = Trial(timeout_s=10)
    calls = [asyncio.ensure_future(trial.handler(trial.bench.invocation())) for _ in range(20)]
    await trial.clock.settle()

    timers = [timer for _, _, timer in trial.clock._timers if timer.callback is not None]

    assert len(timers) == 20 + 1  # the sleep of each, and the limit of all
    await trial.clock.advance(20)
    assert all(call.done() for call in calls)


@pytest.mark.parametrize(
    ("fields", "ends_at", "said"),
    [
        ({"timeout_s": 2}, 2, "attempt_timeout"),
        ({"timeout_s": 20}, 9, ""),
        ({"deadline": 3.0}, 3, "deadline_exceeded"),
        ({"deadline": 7.0}, 5, "attempt_timeout"),
        ({"deadline": 3.0, "timeout_s": 2}, 2, "attempt_timeout"),
        ({"deadline": 2.0, "timeout_s": 4}, 2, "deadline_exceeded"),
        ({"deadline": 5.0, "timeout_s": 8}, 5, "deadline_exceeded"),
    ],
)
async def test_a_calls_own_limit_and_its_deadline_count(
    fields: Any, ends_at: float, said: str
) -> None:
    trial = Trial()

    result = await trial.call(**fields)

    assert (trial.clock.now(), reason(result)) == (ends_at, said)


async def test_a_deadline_that_is_over_lets_nothing_begin() -> None:
    trial = Trial()

    result = await trial.call(deadline=0.0)

    assert reason(result) == "deadline_exceeded"
    assert result.failure is not None
    assert result.failure.may_have_run is False
    assert not trial.log


async def test_a_chain_for_bounded_calls_runs_others_without_a_limit() -> None:
    trial = Trial(timeout_s=None, bounded=True)

    assert (await trial.call()).text == "done"
    assert reason(await trial.call(timeout_s=1)) == "attempt_timeout"


async def test_silence_ends_an_attempt_and_each_report_renews_its_time() -> None:
    async def reports(arguments: Any, context: Any) -> str:
        for _ in range(arguments["reports"]):
            await clock.sleep(2)
            context.progress("still here")
        await clock.sleep(4)
        return "done"

    clock = FakeClock()
    patient = Trial(reports, clock=clock, timeout_s=60, idle_timeout_s=5)
    hasty = Trial(reports, clock=clock, timeout_s=60, idle_timeout_s=3)

    assert (await patient.call({"reports": 5})).text == "done"
    silent = await hasty.call({"reports": 2})

    assert reason(silent) == "attempt_timeout"
    assert "no progress for 3 s" in silent.text


# --- durations


@pytest.mark.parametrize(
    ("duration", "arguments", "widen", "ends_at"),
    [
        (20.0, {}, True, 25),
        (20.0, {}, False, 5),
        (0.5, {}, True, 5.5),
        (0, {}, True, 5),
        ("seconds", {"seconds": 20}, True, 25),
        ("wait_ms", {"wait_ms": 20_000}, True, 25),
        ("seconds", {"seconds": 20}, False, 5),
        ("seconds", {}, True, 5),
        ("seconds", {"seconds": "20"}, True, 5),
        ("seconds", {"seconds": True}, True, 5),
        ("seconds", {"seconds": -7}, True, 5),
        ("seconds", {"seconds": float("inf")}, True, 5),
    ],
)
async def test_what_a_tool_is_known_to_take_widens_its_limit(
    duration: Any, arguments: Any, widen: bool, ends_at: float
) -> None:
    trial = Trial(duration=duration, widen=widen)
    trial.takes_s = 1000

    assert reason(await trial.call(arguments)) == "attempt_timeout"
    assert trial.clock.now() == ends_at


async def test_the_calls_own_limit_is_not_widened() -> None:
    trial = Trial(duration="seconds")

    await trial.call({"seconds": 60}, timeout_s=2)

    assert trial.clock.now() == 2


@pytest.mark.parametrize(("arguments", "found"), [({}, 30), ({"seconds": 7}, 7)])
def test_an_argument_that_is_not_given_holds_its_default(arguments: Any, found: float) -> None:
    schema = {"type": "object", "properties": {"seconds": {"type": "number", "default": 30}}}
    bench = LayerBench(tool=replace(scripted(), input_schema=schema))
    call = bench.invocation(arguments)

    assert argued_duration(call, "seconds") == found


async def test_arguments_that_were_refused_hold_no_duration() -> None:
    call = LayerBench().invocation({"seconds": 5})
    call.prepare = lambda call: call.refuse(FailureCode.INVALID_ARGUMENT, "no")

    assert argued_duration(call, "seconds") == 0


@pytest.mark.parametrize("said", [10**400, 1e308, 86_401])
@pytest.mark.parametrize(("name", "factor"), [("seconds", 1), ("wait_ms", 1000)])
def test_an_argued_duration_is_a_day_at_most(said: float, name: str, factor: int) -> None:
    call = LayerBench().invocation({})
    call.prepared()
    call.arguments = {name: said if said > 1e9 else said * factor}

    assert argued_duration(call, name) == 86_400


# --- tools that do not stop


def deaf(clock: FakeClock) -> Any:
    """Make an executor that takes no notice of cancels for a minute."""

    async def executor(arguments: Any, context: Any) -> None:
        end = clock.now() + 60
        while clock.now() < end:
            try:
                await clock.sleep(end - clock.now())
            except asyncio.CancelledError:
                continue

    return executor


async def test_a_deaf_tool_is_ended_after_its_grace_and_counted() -> None:
    clock = FakeClock()
    trial = Trial(deaf(clock), clock=clock, timeout_s=2, grace_s=0.5)

    result = await trial.call()

    assert clock.now() == 2.5
    assert "did not stop" in result.text
    assert trial.bench.events == [("timeout", "expired"), ("timeout", "let_go")]


async def test_the_callers_cancel_beats_a_let_go_at_the_same_moment() -> None:
    clock = FakeClock()
    trial = Trial(deaf(clock), clock=clock, timeout_s=2, grace_s=1)
    task = asyncio.ensure_future(trial.handler(trial.bench.invocation()))
    await clock.advance(2.5)

    task.cancel()
    await clock.advance(1)

    assert task.cancelled()
    await clock.advance(100)


async def test_a_sync_tool_cannot_be_stopped_and_the_result_says_so() -> None:
    finish = threading.Event()

    def works(arguments: Any, context: Any) -> None:
        finish.wait(5)

    trial = Trial(works, clock=SystemClock(), timeout_s=0.02)

    result = await trial.handler(trial.bench.invocation())

    finish.set()
    assert "cannot be stopped" in result.text
    assert result.failure is not None
    assert result.failure.may_have_run is True
    assert ("timeout", "thread_abandoned") in trial.bench.events


async def test_a_sync_tool_that_got_no_thread_in_time_was_not_begun() -> None:
    finish = threading.Event()

    def works(arguments: Any, context: Any) -> None:
        finish.wait(5)

    trial = Trial(works, clock=SystemClock(), timeout_s=0.03, max_threads=1)
    calls = [trial.handler(trial.bench.invocation()) for _ in range(2)]
    first, second = await asyncio.gather(*calls)

    finish.set()
    assert "not begun" in second.text
    assert second.failure is not None
    assert second.failure.may_have_run is False
    assert second.duration_ms is None
    assert first.failure is not None
    assert first.failure.may_have_run is True


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0.1, "100 ms"),
        (0.0005, "0.5 ms"),
        (0.9996, "0.9996 s"),
        (1, "1 s"),
        (90, "90 s"),
        (2.5, "2.5 s"),
    ],
)
def test_a_limit_is_written_for_a_reader(seconds: float, shown: str) -> None:
    assert shown_seconds(seconds) == shown
