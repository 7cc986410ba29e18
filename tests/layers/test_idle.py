"""The limit on silence: renewed by progress, and bounded by all other limits."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from seawall import Annotations, BreakerPolicy, Pipeline, Policies, RunPolicy, Tool, ToolResult
from seawall.layers.idle import IdleWait
from seawall.layers.timeout import DURATION_MARGIN_S, Timeout
from seawall.pipeline.layer import compose
from seawall.testing import FakeClock, LayerBench


def talker(
    clock: FakeClock, *waits: float, report: Any = "on it", name: str = "t", **fields: Any
) -> Tool:
    """A tool that reports after each wait but the last."""

    async def execute(arguments: dict[str, Any], context: Any) -> str:
        for wait in waits[:-1]:
            await clock.sleep(wait)
            context.progress(report)
        await clock.sleep(waits[-1])
        return "done"

    return Tool(name, "", {"type": "object"}, execute, **fields)


async def called(
    *waits: float, policy: RunPolicy, tool: dict[str, Any] | None = None, **options: Any
) -> tuple[ToolResult, FakeClock]:
    clock = FakeClock()
    pipeline = Pipeline(
        [talker(clock, *waits, **(tool or {}))], policies=Policies(default=policy), clock=clock
    )
    result = await clock.run(pipeline.call("t", options.pop("arguments", {}), **options))
    return result, clock


IDLE = RunPolicy(idle_timeout_s=0.5)


async def test_a_tool_that_reports_may_take_as_long_as_it_wants() -> None:
    result, clock = await called(*[0.4] * 10, policy=IDLE)

    assert result.text == "done"
    assert clock.now() == pytest.approx(4)


async def test_a_tool_that_falls_silent_is_given_up() -> None:
    result, clock = await called(0.4, 0.4, 60, policy=IDLE)

    assert result.failure is not None
    assert (result.failure.code, result.failure.reason) == ("timeout", "attempt_timeout")
    assert "idle: no progress for 500 ms" in result.failure.message
    assert result.failure.may_have_run
    assert clock.now() == pytest.approx(1.3)


async def test_progress_renews_no_other_limit() -> None:
    policy = RunPolicy(idle_timeout_s=0.5, timeout_s=1)

    result, clock = await called(*[0.4] * 10, policy=policy)

    assert result.failure is not None
    assert result.failure.reason == "attempt_timeout"
    assert "idle" not in result.failure.message
    assert clock.now() == pytest.approx(1)


@pytest.mark.parametrize("by_caller", [True, False])
async def test_the_deadline_of_the_call_bounds_it(by_caller: bool) -> None:
    policy = RunPolicy(idle_timeout_s=0.5, deadline_s=None if by_caller else 1)

    options: dict[str, Any] = {"deadline_s": 1} if by_caller else {}
    result, clock = await called(*[0.4] * 10, policy=policy, **options)

    assert result.failure is not None
    assert result.failure.reason == "deadline_exceeded"
    assert clock.now() == pytest.approx(1)


async def test_silence_under_a_deadline_is_told_as_silence() -> None:
    reasons: list[str | None] = []
    clock = FakeClock()

    async def execute(arguments: dict[str, Any], context: Any) -> None:
        try:
            await clock.sleep(60)
        finally:
            reasons.append(context.cancelled.reason)

    pipeline = Pipeline(
        [Tool("t", "", {"type": "object"}, execute)],
        policies=Policies(default=RunPolicy(idle_timeout_s=0.5, deadline_s=9)),
        clock=clock,
    )
    result = await clock.run(pipeline.call("t"))

    assert result.failure is not None
    assert result.failure.reason == "attempt_timeout"
    assert reasons == ["attempt_timeout"]


async def test_the_shorter_of_two_limits_ends_it_once_although_the_tool_takes_its_time() -> None:
    clock = FakeClock()

    async def execute(arguments: dict[str, Any], context: Any) -> None:
        try:
            await clock.sleep(60)
        finally:
            await clock.sleep(0.3)  # the other limit is over meanwhile

    policy = RunPolicy(idle_timeout_s=0.5, timeout_s=0.6)
    pipeline = Pipeline(
        [Tool("t", "", {"type": "object"}, execute)],
        policies=Policies(default=policy),
        clock=clock,
    )
    task = asyncio.current_task()
    assert task is not None

    result = await clock.run(pipeline.call("t"))

    assert result.failure is not None
    assert "idle" in result.failure.message
    assert task.cancelling() == 0


async def test_each_attempt_is_heard_anew() -> None:
    policy = RunPolicy(idle_timeout_s=0.5, max_retries=1, base_delay_s=0)

    result, clock = await called(
        0.4, 60, policy=policy, tool={"annotations": Annotations.for_reading()}
    )

    assert result.attempts == 2
    assert clock.now() == pytest.approx(1.8)


async def test_silence_counts_for_the_breaker_as_a_timeout_does() -> None:
    clock = FakeClock()
    policy = RunPolicy(idle_timeout_s=0.5, breaker=BreakerPolicy(threshold=1))
    pipeline = Pipeline([talker(clock, 60)], policies=Policies(default=policy), clock=clock)

    await clock.run(pipeline.call("t"))

    assert pipeline.breakers.state("t") == "open"


@pytest.mark.parametrize(
    ("duration", "arguments", "most"),
    [
        (2, {}, 2 + DURATION_MARGIN_S),
        ("seconds", {"seconds": 3}, 3 + DURATION_MARGIN_S),
        ("seconds", {}, DURATION_MARGIN_S),
        (None, {}, 0.5),
    ],
)
async def test_a_tool_that_knows_how_long_it_takes_may_be_silent_so_long(
    duration: Any, arguments: dict[str, Any], most: float
) -> None:
    result, clock = await called(60, policy=IDLE, tool={"duration": duration}, arguments=arguments)

    assert result.is_error
    assert clock.now() == pytest.approx(most)


async def test_a_tool_that_calls_another_is_not_idle_while_that_reports() -> None:
    clock = FakeClock()

    async def outer(arguments: dict[str, Any], context: Any) -> str:
        return (await context.call_tool("t")).text  # type: ignore[no-any-return]  # text

    pipeline = Pipeline(
        [talker(clock, *[0.4] * 5), Tool("outer", "", {"type": "object"}, outer)],
        policies=Policies(default=IDLE),
        clock=clock,
    )

    result = await clock.run(pipeline.call("outer"))

    assert result.text == "done"


async def test_waiting_for_a_thread_is_not_silence() -> None:
    clock = FakeClock()
    call = LayerBench(IDLE, clock=clock).invocation()
    wait, waiter = IdleWait(clock, call, 0.5, None), Waiter()
    wait.enter(waiter)

    await clock.advance(10)
    assert waiter.times == 0

    call.begun, call.attempt_started = True, clock.now()
    await clock.advance(0.4)
    assert waiter.times == 0
    await clock.advance(0.6)
    assert (waiter.times, wait.idle, wait.seconds) == (1, True, 0.5)


async def test_a_policy_without_it_keeps_no_time_of_progress() -> None:
    bench = LayerBench(RunPolicy(timeout_s=9))
    call = bench.invocation()

    call.reported()

    assert call.progress_at == 0.0


@pytest.mark.parametrize("policy", [IDLE, RunPolicy(idle_timeout_s=0.5, timeout_s=9)])
async def test_a_tool_without_a_timeout_is_bound_all_the_same(policy: RunPolicy) -> None:
    bench = LayerBench(policy)
    layer = Timeout.for_tool(bench.context)
    assert layer is not None

    result = await bench.call(compose([layer], bench.slow_tool(60)))

    assert result.is_error
    assert bench.clock.now() == pytest.approx(0.5)
    assert bench.events == [("timeout", "expired")]


class Waiter:
    def __init__(self) -> None:
        self.times = 0

    def expire(self) -> None:
        self.times += 1


async def test_a_thousand_reports_cost_one_timer() -> None:
    clock = FakeClock()
    bench = LayerBench(IDLE, clock=clock)
    call = bench.invocation(begun=True)
    wait, waiter = IdleWait(clock, call, 0.5, None), Waiter()
    wait.enter(waiter)

    for _ in range(1000):
        await clock.advance(0.001)
        call.reported()
        assert len(clock._timers) <= 2

    assert waiter.times == 0
    wait.leave(waiter)
    await clock.advance(10)
    assert waiter.times == 0
