"""The breaker around a tool: what it counts, whom it refuses, and what policies change."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from seawall.contract.failure import Failure, FailureCode, ToolFailed
from seawall.contract.policy import BreakerPolicy, RunPolicy
from seawall.layers.breaker import Breaker
from seawall.layers.timeout import Timeout
from seawall.pipeline.layer import compose
from seawall.testing import FakeClock, LayerBench, scripted

if TYPE_CHECKING:
    from seawall.contract.result import ToolResult
    from seawall.layers.breaker.circuit import Circuit


class Trial:
    """The breaker, and if asked the timeout, around a scripted tool."""

    def __init__(self, *answers: Any, timeout_s: float | None = None, **breaker: Any) -> None:
        self.clock = FakeClock()
        self.tool = scripted(*answers, clock=self.clock, name="t")
        self.bench = LayerBench(self.policy(timeout_s, **breaker), tool=self.tool, clock=self.clock)
        self.handler = self.chain()

    def policy(self, timeout_s: float | None = None, **breaker: Any) -> RunPolicy:
        settings = {"threshold": 2, "cooldown_s": 10, **breaker}
        return RunPolicy(timeout_s=timeout_s, breaker=BreakerPolicy(**settings))

    def chain(self) -> Any:
        layers = [Breaker.for_tool(self.bench.context), Timeout.for_tool(self.bench.context)]
        return compose([layer for layer in layers if layer], self.bench.execute())

    async def call(self, **fields: Any) -> ToolResult:
        return await self.bench.call(self.handler, **fields)

    async def calls(self, times: int) -> list[str]:
        return [reason(await self.call()) for _ in range(times)]

    @property
    def slot(self) -> Any:
        return self.bench.context.slots.find("circuit")

    @property
    def circuit(self) -> Circuit:
        found: Circuit = self.slot.made()
        return found

    @property
    def runs(self) -> int:
        executor: Any = self.tool.executor
        return len(executor.calls)


def reason(result: ToolResult) -> str:
    return "" if result.failure is None else result.failure.reason


def answered(code: FailureCode, **fields: Any) -> ToolFailed:
    return ToolFailed(Failure(code=code, message="no", **fields))


@pytest.mark.parametrize(
    ("policy", "there"),
    [
        (RunPolicy(), False),
        (RunPolicy(breaker=BreakerPolicy(mode="off")), False),
        (RunPolicy(breaker=BreakerPolicy(mode="shadow")), True),
        (RunPolicy(breaker=BreakerPolicy()), True),
    ],
)
def test_the_layer_is_there_only_where_the_policy_has_a_breaker(
    policy: RunPolicy, there: bool
) -> None:
    assert (Breaker.for_tool(LayerBench(policy).context) is not None) is there


async def test_a_tool_that_never_failed_has_no_circuit() -> None:
    trial = Trial("well")

    await trial.calls(3)

    assert trial.slot.circuit is None


async def test_failures_in_a_row_open_it_and_then_nothing_runs() -> None:
    trial = Trial(OSError("down"))

    assert await trial.calls(4) == ["tool_failed", "tool_failed", "circuit_open", "circuit_open"]
    assert trial.runs == 2
    assert trial.bench.events == [("breaker", "open")]


async def test_the_refusal_says_why_and_until_when() -> None:
    trial = Trial(OSError("down"), threshold=1)
    await trial.call()
    await trial.clock.advance(2.5)

    failure = (await trial.call()).failure

    assert failure is not None
    assert (failure.code, failure.layer, failure.retry_after_s) == (
        FailureCode.CIRCUIT_OPEN,
        "breaker",
        7.5,
    )
    assert "last: OSError" in failure.message
    assert "again in 8 s" in failure.message
    assert failure.may_have_run is False


async def test_a_circuit_opened_by_hand_has_no_last_error_to_tell() -> None:
    trial = Trial("well")
    trial.circuit.force_open()

    result = await trial.call()

    assert reason(result) == "circuit_open"
    assert "last" not in result.text


async def test_a_success_between_failures_begins_the_count_anew() -> None:
    trial = Trial(OSError(), "well", OSError(), "well")

    assert "circuit_open" not in await trial.calls(4)


@pytest.mark.parametrize(
    "answer",
    [
        answered(FailureCode.NOT_FOUND),
        answered(FailureCode.EXECUTION_FAILED),
        FileNotFoundError("x"),
        PermissionError("x"),
        NotImplementedError(),
    ],
    ids=lambda answer: type(answer).__name__,
)
async def test_what_a_tool_answers_is_neither_success_nor_failure(answer: Exception) -> None:
    trial = Trial(OSError(), answer, OSError())

    await trial.calls(3)

    assert trial.circuit.state == "open"
    assert trial.circuit.counts.neutral == 1


@pytest.mark.parametrize(
    "error",
    [
        OSError(),
        ValueError(),
        TimeoutError(),
        answered(FailureCode.TIMEOUT),
        answered(FailureCode.EXECUTION_FAILED, reason="transport"),
        ExceptionGroup("g", [OSError()]),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_timeouts_broken_io_and_crashes_are_failures(error: Exception) -> None:
    trial = Trial(error, threshold=1)

    await trial.call()

    assert trial.circuit.state == "open"


async def test_our_own_timeout_is_a_failure_and_named_so() -> None:
    trial = Trial(("sleep", 9), timeout_s=1, threshold=1)

    await trial.call()

    assert (trial.circuit.state, trial.circuit.last_error) == ("open", "attempt_timeout")


@pytest.mark.parametrize(
    ("ignore", "error", "counted"),
    [
        (("ValueError",), ValueError(), 0),
        (("Exception",), ValueError(), 0),
        (("ExceptionGroup",), ExceptionGroup("g", [OSError()]), 0),
        (("OSError",), ExceptionGroup("g", [ConnectionError()]), 0),
        (("KeyError",), ValueError(), 1),
        ((), ValueError(), 1),
        (("ValueError",), answered(FailureCode.TIMEOUT), 1),
    ],
)
async def test_errors_that_the_policy_ignores_say_nothing(
    ignore: tuple[str, ...], error: Exception, counted: int
) -> None:
    trial = Trial(error, ignore=ignore)

    await trial.call()

    assert trial.circuit.failures == counted


@pytest.mark.parametrize(
    ("code", "why", "layer", "counted"),
    [
        (FailureCode.TIMEOUT, "deadline_exceeded", "timeout", 0),
        (FailureCode.RATE_LIMITED, "overloaded", "timeout", 0),
        (FailureCode.TIMEOUT, "deadline_exceeded", "executor", 1),
    ],
)
async def test_the_callers_haste_and_a_full_house_are_not_the_tools_fault(
    code: FailureCode, why: str, layer: str, counted: int
) -> None:
    trial = Trial("well")
    made = Breaker.for_tool(trial.bench.context)
    assert made is not None

    async def refuses(call: Any) -> ToolResult:
        call.attempt += 1
        refusal: ToolResult = call.refuse(code, "no", reason=why, layer=layer)
        return refusal

    await trial.bench.call(compose([made], refuses))

    assert trial.circuit.failures == counted


async def test_an_attempt_that_waited_for_a_thread_in_vain_says_nothing() -> None:
    trial = Trial("well")
    made = Breaker.for_tool(trial.bench.context)
    assert made is not None

    async def no_thread(call: Any) -> ToolResult:
        call.attempt += 1
        refusal: ToolResult = call.refuse(FailureCode.TIMEOUT, "", reason="attempt_timeout")
        return refusal

    await trial.bench.call(compose([made], no_thread), started=True, begun=False)

    assert trial.circuit.failures == 0


async def test_a_refusal_further_in_hands_the_probe_back() -> None:
    trial = Trial(OSError(), threshold=1)
    await trial.call()
    await trial.clock.advance(10)
    made = Breaker.for_tool(trial.bench.context)
    assert made is not None

    async def refuses(call: Any) -> ToolResult:
        refusal: ToolResult = call.refuse(FailureCode.PERMISSION_DENIED, "no", layer="inner")
        return refusal

    await trial.bench.call(compose([made], refuses))

    assert trial.circuit.state == "half_open"
    assert trial.circuit.counts.given_back == 1
    assert reason(await trial.call()) == "tool_failed"


async def test_a_cancelled_attempt_hands_its_permit_back() -> None:
    trial = Trial(OSError(), ("sleep", 9), threshold=1)
    await trial.call()
    await trial.clock.advance(10)
    task = asyncio.ensure_future(trial.handler(trial.bench.invocation()))
    await trial.clock.settle()

    task.cancel()
    await trial.clock.settle()

    assert task.cancelled()
    assert trial.circuit.state == "half_open"
    assert trial.circuit.seconds_to_probe() == 0


async def test_a_cancel_before_anything_failed_needs_no_circuit() -> None:
    trial = Trial(("sleep", 9))
    task = asyncio.ensure_future(trial.handler(trial.bench.invocation()))
    await trial.clock.settle()

    task.cancel()
    await trial.clock.settle()

    assert trial.slot.circuit is None


async def test_in_half_open_an_answer_closes_it() -> None:
    trial = Trial(OSError(), answered(FailureCode.NOT_FOUND), threshold=1)
    await trial.call()
    await trial.clock.advance(10)

    await trial.call()

    assert trial.circuit.state == "closed"
    assert [event for _, event in trial.bench.events] == ["open", "half_open", "closed"]


async def test_in_shadow_it_only_says_what_it_would_have_done() -> None:
    trial = Trial(OSError("down"), mode="shadow", threshold=1)
    await trial.call()
    call = trial.bench.invocation()

    result = await trial.clock.run(trial.handler(call))

    assert reason(result) == "tool_failed"
    assert call.verdicts == ("breaker:would_refuse:circuit_open",)
    assert ("breaker", "shadow_refused") in trial.bench.events


# --- other policies, other tools


def test_the_same_policy_finds_the_same_circuit() -> None:
    trial = Trial("well")
    circuit = trial.circuit

    trial.handler = trial.chain()

    assert trial.circuit is circuit


async def test_under_new_numbers_an_open_circuit_stays_open_as_long_as_it_was_going_to() -> None:
    trial = Trial(OSError("down"))
    await trial.calls(2)
    await trial.clock.advance(9)

    trial.bench.policy = trial.policy(threshold=5, cooldown_s=20)
    trial.handler = trial.chain()

    refused = (await trial.call()).failure
    assert refused is not None
    left_s = trial.circuit.seconds_to_probe()
    assert 0 < left_s < 20
    assert (refused.code, refused.retry_after_s) == (FailureCode.CIRCUIT_OPEN, left_s)
    assert "OSError" in refused.message


async def test_under_new_numbers_a_circuit_held_open_stays_held() -> None:
    trial = Trial("well")
    trial.circuit.force_open()

    trial.bench.policy = trial.policy(cooldown_s=1)
    trial.handler = trial.chain()
    await trial.clock.advance(1000)

    assert reason(await trial.call()) == "circuit_open"


async def test_under_new_numbers_the_streak_goes_on() -> None:
    trial = Trial(OSError())
    await trial.call()

    trial.bench.policy = trial.policy(threshold=3)
    trial.handler = trial.chain()
    await trial.calls(2)

    assert trial.circuit.state == "open"


async def test_tools_that_name_the_same_circuit_share_it() -> None:
    one = Trial(OSError("down"), shared="api")
    other = Trial(OSError("down"), shared="api")
    other.bench.states = one.bench.states
    other.handler = other.chain()

    results = [reason(await trial.call()) for trial in (one, other, one, other)]

    assert results == ["tool_failed", "tool_failed", "circuit_open", "circuit_open"]
