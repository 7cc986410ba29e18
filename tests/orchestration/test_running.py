"""The limits of a call: what they bound, and when they cut."""

from __future__ import annotations

import asyncio
import math
from typing import TYPE_CHECKING, Any

import pytest
from tests.orchestration.desk import Desk, reason

from seawall import (
    Annotations,
    FailureCode,
    Risk,
    RunPolicy,
    ToolResult,
)
from seawall.testing import FakeClock, scripted

if TYPE_CHECKING:
    from seawall import Invocation


@pytest.mark.parametrize("limit", [{"timeout_s": 2}, {"deadline_s": 2}])
@pytest.mark.parametrize("layers", [None, []])
async def test_a_limit_given_with_the_call_holds_whatever_the_layers(
    limit: Any, layers: Any
) -> None:
    desk = Desk(scripted(("sleep", 9), name="t"), layers=layers)

    result = await desk.call(**limit)

    assert result.failure is not None
    assert result.failure.code is FailureCode.TIMEOUT
    assert desk.clock.now() == 2


@pytest.mark.parametrize("name", ["timeout_s", "deadline_s"])
@pytest.mark.parametrize("seconds", [0, -1, math.nan])
async def test_a_limit_that_makes_no_sense_is_an_error_of_the_caller(
    name: str, seconds: float
) -> None:
    desk = Desk()

    with pytest.raises(ValueError, match=f"{name} must be above 0"):
        await desk.call(**{name: seconds})
    assert len(desk.pipeline.trace) == 0
    assert desk.pipeline.usage.snapshot()["t"].invocations == 0


async def test_a_deadline_bounds_attempts_and_waits_together() -> None:
    policy = RunPolicy(timeout_s=4, max_retries=5, base_delay_s=1, deadline_s=8)
    tool = scripted(("sleep", 99), name="t", annotations=Annotations.for_reading())
    desk = Desk(tool, policy=policy)

    result = await desk.call()

    assert reason(result) == "deadline_exceeded"
    assert (desk.clock.now(), result.attempts) == (8, 2)
    assert result.failure is not None
    assert result.failure.may_have_run is None  # it only reads


async def test_calls_under_the_policys_deadline_share_one_timer() -> None:
    policy = RunPolicy(timeout_s=4, deadline_s=8)
    desk = Desk(scripted(*[("sleep", 99)] * 20, name="t"), policy=policy)
    calls = [asyncio.ensure_future(desk.pipeline.call("t")) for _ in range(20)]
    await desk.clock.settle()

    timers = [timer for _, _, timer in desk.clock._timers if timer.callback is not None]

    assert len(timers) == 20 + 2  # the sleep of each; the limit and the deadline of all
    await desk.clock.advance(8)
    assert all(reason(call.result()) == "attempt_timeout" for call in calls)


async def test_a_deadline_of_the_policy_cuts_what_comes_before_any_attempt() -> None:
    clock = FakeClock()

    async def confirm(*asked: Any) -> str:
        await clock.sleep(1000)
        return "yes"

    tool = scripted("well", name="t", risk=Risk.HIGH)
    desk = Desk(tool, clock=clock, confirm=confirm, policy=RunPolicy(deadline_s=5))
    desk.clock = clock

    first = asyncio.ensure_future(desk.pipeline.call("t"))
    await clock.advance(2)
    second = await desk.call()

    assert (reason(first.result()), reason(second)) == ("deadline_exceeded", "deadline_exceeded")
    assert clock.now() == 7


async def test_a_deadline_bounds_the_wait_for_a_person_too() -> None:
    clock = FakeClock()

    async def confirm(*asked: Any) -> str:
        await clock.sleep(1000)
        return "yes"

    desk = Desk(scripted("well", name="t", risk=Risk.HIGH), clock=clock, confirm=confirm)
    desk.clock = clock

    result = await desk.call(deadline_s=5)

    assert (reason(result), clock.now()) == ("deadline_exceeded", 5)
    assert result.failure is not None
    assert result.failure.may_have_run is False


async def test_a_layer_of_ones_own_that_waits_is_cut_by_the_deadline() -> None:
    desk: Desk

    async def waits(call: Invocation, proceed: Any) -> ToolResult:
        await desk.clock.sleep(1000)
        result: ToolResult = await proceed(call)
        return result

    desk = Desk(layers=[waits])

    result = await desk.call(deadline_s=5)

    assert (reason(result), desk.clock.now()) == ("deadline_exceeded", 5)
