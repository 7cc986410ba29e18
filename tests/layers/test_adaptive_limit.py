"""The layer around the limit: who waits, what it learns from, and what policies change."""

from __future__ import annotations

import asyncio
import math
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from seawall.contract.annotations import Annotations
from seawall.contract.errors import ConfigurationError
from seawall.contract.failure import Failure, FailureCode, ToolFailed
from seawall.contract.optional_policies import AdaptiveLimitPolicy
from seawall.contract.policy import RunPolicy
from seawall.layers.adaptive_limit import AdaptiveLimit
from seawall.layers.retry import Retry
from seawall.layers.timeout import Timeout
from seawall.pipeline.layer import compose
from seawall.testing import FakeClock, LayerBench, scripted

if TYPE_CHECKING:
    from seawall.contract.result import ToolResult


class Trial:
    """The layer around a tool that has so many workers, each busy for a tenth of a second."""

    def __init__(self, workers: int = 5, **adaptive: Any) -> None:
        self.clock = FakeClock()
        self.workers = asyncio.Semaphore(workers)
        self.answer: Any = "done"
        self.most = self.running = 0
        self.bench = LayerBench(clock=self.clock)
        self.use(**adaptive)

    def use(self, timeout_s: float | None = 10, **adaptive: Any) -> None:
        policy = AdaptiveLimitPolicy(**{"initial": 10, **adaptive})
        self.bench.policy = RunPolicy(timeout_s=timeout_s, adaptive_limit=policy)
        layers = [
            AdaptiveLimit.for_tool(self.bench.context),
            Timeout.for_tool(self.bench.context),
        ]
        execute = self.bench.execute(msgspec.structs.replace(self.bench.tool, executor=self.run))
        self.handler = compose([layer for layer in layers if layer], execute)

    async def run(self, arguments: Any, context: Any) -> Any:
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            async with self.workers:
                await self.clock.sleep(arguments.get("s", 0.1))
        finally:
            self.running -= 1
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer

    def start(self, **arguments: Any) -> asyncio.Future[ToolResult]:
        return asyncio.ensure_future(self.handler(self.bench.invocation(arguments)))


def adapting(trial: Trial) -> Any:
    return trial.bench.context.slots.find("adaptive_limit")


async def test_calls_beyond_the_limit_wait_and_beyond_the_line_are_refused() -> None:
    trial = Trial(initial=2)
    calls = [trial.start() for _ in range(11)]
    await trial.clock.settle()

    assert trial.most == 2
    refused = calls[-1].result().failure
    assert refused is not None
    assert (refused.reason, refused.layer) == ("overloaded", "adaptive_limit")
    await trial.clock.advance(10)
    assert [call.result().is_error for call in calls] == [False] * 10 + [True]
    assert adapting(trial).room.idle


async def test_it_finds_what_the_tool_can_take_and_follows_when_that_halves() -> None:
    trial = Trial(workers=20, initial=4)
    limits = []

    async def keep_calling() -> None:
        while True:
            result = await trial.handler(trial.bench.invocation({}))
            if result.is_error:  # the line is full
                await trial.clock.sleep(0.1)

    busy = [asyncio.ensure_future(keep_calling()) for _ in range(120)]
    await trial.clock.advance(20)
    limits.append(adapting(trial).room.limit)
    for _ in range(10):
        await trial.clock.run(trial.workers.acquire())
    await trial.clock.advance(20)
    limits.append(adapting(trial).room.limit)
    for _ in range(10):
        trial.workers.release()
    await trial.clock.advance(20)
    limits.append(adapting(trial).room.limit)
    for task in busy:
        task.cancel()
    await asyncio.gather(*busy, return_exceptions=True)

    assert 16 <= limits[0] <= 34
    assert 8 <= limits[1] <= 22
    assert 16 <= limits[2] <= 34
    assert adapting(trial).room.idle


async def test_a_cancelled_call_gives_its_place_back_and_teaches_nothing() -> None:
    trial = Trial(initial=1)
    first, second = trial.start(s=50), trial.start()
    await trial.clock.advance(1)

    first.cancel()
    await trial.clock.advance(1)

    assert second.result().text == "done"
    assert adapting(trial).vegas.base_s == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("answer", "seconds", "lower"),
    [
        ("done", 20, True),
        (ToolFailed(Failure(code=FailureCode.RATE_LIMITED, message="busy")), 0.1, True),
        (ToolFailed(Failure(code=FailureCode.NOT_FOUND, message="no")), 0.1, False),
        (OSError("reset"), 0.1, False),
    ],
)
async def test_timeouts_and_being_sent_away_lower_it_and_other_failures_do_not(
    answer: Any, seconds: float, lower: bool
) -> None:
    trial = Trial(initial=10)
    trial.answer = answer

    await trial.clock.run(trial.start(s=seconds))

    assert (adapting(trial).vegas.limit < 10) is lower


async def test_a_call_that_was_repeated_is_no_sample() -> None:
    bench = LayerBench(
        RunPolicy(adaptive_limit=AdaptiveLimitPolicy(initial=1), max_retries=1, base_delay_s=1),
        tool=scripted(OSError("x"), "ok", annotations=Annotations.for_reading()),
    )
    layers = [AdaptiveLimit.for_tool(bench.context), Retry.for_tool(bench.context)]
    handler = compose([layer for layer in layers if layer], bench.execute())

    assert (await bench.call(handler)).text == "ok"
    assert math.isinf(bench.context.slots.find("adaptive_limit").vegas.base_s)


async def test_shadow_holds_nobody_up_and_says_who_would_have_waited() -> None:
    trial = Trial(initial=1, mode="shadow")
    call = trial.bench.invocation({})
    first, second = trial.start(), asyncio.ensure_future(trial.handler(call))
    await trial.clock.advance(1)

    assert trial.most == 2
    assert first.done()
    assert second.done()
    assert call.verdicts == ("adaptive_limit:would_wait",)
    assert ("adaptive_limit", "shadow_held") in trial.bench.events


async def test_what_was_learnt_outlives_a_reload_within_the_new_bounds() -> None:
    trial = Trial(initial=10)
    adapting(trial).vegas.limit = 57.0

    trial.use(max_limit=40)

    assert adapting(trial).room.limit == 40


async def test_calls_in_line_go_on_when_the_limit_is_taken_away() -> None:
    trial = Trial(initial=1)
    calls = [trial.start(s=5) for _ in range(3)]
    await trial.clock.advance(1)

    trial.bench.policy = RunPolicy()
    assert AdaptiveLimit.for_tool(trial.bench.context) is None
    await trial.clock.settle()

    assert trial.running == 3
    await trial.clock.advance(5)
    assert all(call.done() for call in calls)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"min_limit": 0}, "adaptive_limit.min_limit: must be at least 1 (got 0)"),
        ({"initial": 500}, "adaptive_limit.initial: must be from 1 to 200"),
        ({"mode": "maybe"}, "adaptive_limit.mode: is 'maybe'; use one of on, shadow, off"),
    ],
)
def test_settings_that_cannot_be_are_refused(values: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        AdaptiveLimitPolicy(**values)

    assert str(caught.value) == said
