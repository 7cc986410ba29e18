"""What is tried again, when, and how often."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seawall.contract.annotations import Annotations
from seawall.contract.failure import Failure, FailureCode, ToolFailed
from seawall.contract.policy import RunPolicy
from seawall.layers.retry import MAX_EXPONENT, Retry, Waits
from seawall.pipeline.chance import SystemChance
from seawall.pipeline.layer import compose
from seawall.testing import FakeClock, FixedChance, LayerBench, scripted

if TYPE_CHECKING:
    from seawall.contract.result import ToolResult

READS = Annotations.for_reading()


class Trial:
    """The retry layer around a scripted tool that may be repeated."""

    def __init__(
        self, *answers: Any, share: float = 1.0, annotations: Annotations = READS, **policy: Any
    ) -> None:
        self.clock = FakeClock()
        self.tool = scripted(*answers, clock=self.clock, name="t", annotations=annotations)
        self.bench = LayerBench(
            RunPolicy(**{"max_retries": 2, "base_delay_s": 1, **policy}),
            tool=self.tool,
            clock=self.clock,
            chance=FixedChance(share),
        )
        layer = Retry.for_tool(self.bench.context)
        self.handler = self.bench.execute() if layer is None else compose([layer], self.inner)
        self.execute = self.bench.execute()
        self.closed: list[tuple[int, str]] = []

    async def inner(self, call: Any) -> ToolResult:
        return await self.execute(call)

    async def call(self, **fields: Any) -> ToolResult:
        fields.setdefault("close_attempt", self._close)
        return await self.bench.call(self.handler, **fields)

    def _close(self, call: Any, result: ToolResult) -> None:
        assert result.failure is not None
        self.closed.append((call.attempt, result.failure.reason))

    @property
    def runs(self) -> int:
        executor: Any = self.tool.executor
        return len(executor.calls)


def failing(code: FailureCode, **fields: Any) -> ToolFailed:
    return ToolFailed(Failure(code=code, message="no", **fields))


@pytest.mark.parametrize(
    ("annotations", "policy", "there"),
    [
        (READS, {"max_retries": 1}, True),
        (Annotations(idempotent=True), {"max_retries": 1}, True),
        (READS, {"delays_s": (1,), "max_retries": 0}, True),
        (READS, {"max_retries": 0}, False),
        (Annotations(), {"max_retries": 9}, False),
        (Annotations.for_destroying(), {"max_retries": 9}, False),
    ],
)
def test_the_layer_is_there_only_for_what_may_be_repeated(
    annotations: Annotations, policy: Any, there: bool
) -> None:
    bench = LayerBench(RunPolicy(**policy), tool=scripted(annotations=annotations))

    assert (Retry.for_tool(bench.context) is not None) is there


async def test_a_call_that_succeeds_is_made_once() -> None:
    trial = Trial("well")

    assert (await trial.call()).text == "well"
    assert (trial.runs, trial.clock.now(), trial.bench.events) == (1, 0, [])


async def test_a_failure_is_followed_by_longer_and_longer_waits() -> None:
    trial = Trial(OSError(), OSError(), "well")

    result = await trial.call()

    assert (result.text, result.attempts) == ("well", 3)
    assert trial.clock.now() == 1 + 2
    assert trial.closed == [(1, "tool_failed"), (2, "tool_failed")]
    assert trial.bench.events == [("retry", "retried")] * 2


async def test_the_last_failure_is_the_answer() -> None:
    trial = Trial(OSError("1"), OSError("2"), OSError("3"))

    result = await trial.call()

    assert "3" in result.text
    assert trial.runs == 3
    assert trial.closed == [(1, "tool_failed"), (2, "tool_failed")]


async def test_the_tools_own_hint_lengthens_the_wait_and_never_shortens_it() -> None:
    hints = [failing(FailureCode.RATE_LIMITED, retry_after_s=s) for s in (10, 0.1)]
    trial = Trial(*hints, "well")

    assert (await trial.call()).text == "well"
    assert trial.clock.now() == 10 + 2


async def test_a_hint_above_the_longest_wait_ends_the_call_and_is_handed_on() -> None:
    trial = Trial(failing(FailureCode.RATE_LIMITED, retry_after_s=31), "well", max_delay_s=30)

    result = await trial.call()

    assert trial.runs == 1
    assert result.failure is not None
    assert result.failure.retry_after_s == 31


@pytest.mark.parametrize(("deadline", "runs"), [(1.0, 1), (1.5, 2), (3.0, 2), (3.5, 3)])
async def test_no_attempt_is_begun_past_the_deadline(deadline: float, runs: int) -> None:
    trial = Trial(OSError())

    await trial.call(deadline=deadline)

    assert trial.runs == runs
    assert trial.clock.now() < deadline


async def test_output_that_was_shown_is_not_shown_again() -> None:
    trial = Trial(OSError())

    await trial.call(shown=True)

    assert trial.runs == 1


async def test_a_circuit_that_opens_on_the_way_leaves_the_calls_own_failure() -> None:
    trial = Trial(OSError("its own"))
    execute, tries = trial.execute, 0

    async def guarded(call: Any) -> ToolResult:
        nonlocal tries
        tries += 1
        if tries == 2:
            return call.refuse(FailureCode.CIRCUIT_OPEN, "left alone", layer="breaker")  # type: ignore[no-any-return]  # the call is of any kind here
        return await execute(call)

    trial.execute = guarded

    result = await trial.call()

    assert "its own" in result.text
    assert (tries, trial.runs) == (2, 1)


async def test_a_circuit_of_the_tools_own_is_its_answer() -> None:
    trial = Trial(OSError("first"), failing(FailureCode.CIRCUIT_OPEN))

    result = await trial.call()

    assert result.failure is not None
    assert (result.failure.code, result.attempts) == (FailureCode.CIRCUIT_OPEN, 2)


async def test_a_cancel_during_the_wait_begins_nothing_more() -> None:
    trial = Trial(OSError())
    task = asyncio.ensure_future(trial.handler(trial.bench.invocation()))
    await trial.clock.advance(0.5)

    task.cancel()
    await trial.clock.advance(100)

    assert task.cancelled()
    assert trial.runs == 1


async def test_exact_waits_are_kept_to_the_letter() -> None:
    trial = Trial(OSError(), share=0.0, delays_s=(2, 5, 10), max_delay_s=30)

    await trial.call()

    assert (trial.runs, trial.clock.now()) == (4, 17)


# --- the arithmetic of waits


@given(
    base=st.floats(0, 1e6, allow_subnormal=False),
    most=st.floats(0.001, 1e6),
    retry=st.integers(-5, 10_000),
    seed=st.integers(),
)
def test_a_wait_is_never_negative_nor_above_its_ceiling(
    base: float, most: float, retry: int, seed: int
) -> None:
    waits = Waits(RunPolicy(base_delay_s=base, max_delay_s=most), SystemChance(seed))

    assert 0 <= waits.draw(retry) <= waits.ceiling(retry) <= most


@pytest.mark.parametrize(
    ("retry", "ceiling"), [(-1, 0.5), (0, 0.5), (1, 1), (2, 2), (6, 30), (MAX_EXPONENT + 5, 30)]
)
def test_the_ceiling_doubles_up_to_the_longest_wait(retry: int, ceiling: float) -> None:
    waits = Waits(RunPolicy(base_delay_s=0.5, max_delay_s=30), FixedChance())

    assert waits.ceiling(retry) == ceiling == waits.draw(retry)


def test_listed_waits_are_not_drawn() -> None:
    waits = Waits(RunPolicy(delays_s=(1, 2)), FixedChance(0.0))

    assert [waits.draw(retry) for retry in (-1, 0, 1, 2)] == [0, 1, 2, 2]


async def test_a_first_retry_without_a_wait_is_made_at_once_and_more_let_others_work() -> None:
    trial = Trial(OSError("1"), OSError("2"), OSError("3"), "well", max_retries=3, base_delay_s=0)
    seen: list[int] = []
    asyncio.get_running_loop().call_soon(lambda: seen.append(trial.runs))

    result = await trial.handler(trial.bench.invocation(close_attempt=lambda call, result: None))

    assert result.text == "well"
    assert seen == [2]


@pytest.mark.parametrize(
    ("annotations", "first", "found"),
    [
        (
            Annotations(read_only=False, destructive=False, idempotent=True),
            ConnectionResetError("reset"),
            None,
        ),
        (
            Annotations(read_only=False, destructive=False, idempotent=True),
            ToolFailed(Failure(code=FailureCode.TIMEOUT, message="", may_have_run=True)),
            True,
        ),
        (
            Annotations(read_only=False, destructive=False, idempotent=True),
            ToolFailed(Failure(code=FailureCode.TIMEOUT, message="", may_have_run=False)),
            False,
        ),
        (READS, ConnectionResetError("reset"), False),
    ],
)
async def test_a_last_attempt_that_did_nothing_hides_no_earlier_one_that_may_have(
    annotations: Annotations, first: BaseException, found: bool | None
) -> None:
    nothing = Failure(code=FailureCode.EXECUTION_FAILED, message="no route", may_have_run=False)
    trial = Trial(first, ToolFailed(nothing), ToolFailed(nothing), annotations=annotations)

    result = await trial.call()

    assert trial.runs == 3
    assert result.failure is not None
    assert result.failure.may_have_run is found
    assert ("Nothing was run." in result.text) is (found is False)
