"""Attempts that race each other: when one begins, which one counts, what becomes of losers."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seawall import (
    Annotations,
    BreakerPolicy,
    Failure,
    FailureCode,
    Pipeline,
    Policies,
    Risk,
    RunPolicy,
    Tool,
    ToolFailed,
    ToolResult,
)
from seawall.contract.errors import ConfigurationError
from seawall.contract.optional_policies import HedgePolicy, RetryBudgetPolicy
from seawall.testing import FakeClock

READING = Annotations.for_reading()
PLENTY = RetryBudgetPolicy(share=1.0, min_retries=1000)


class Backend:
    """A tool whose runs take as long, and end, as a script says; it counts what is under way."""

    def __init__(self, *script: tuple[float, Any]) -> None:
        self.clock = FakeClock()
        self.script = list(script)
        self.begun: list[float] = []
        self.cancelled = 0
        self.running = 0

    async def __call__(self, arguments: dict[str, Any], context: Any) -> Any:
        seconds, answer = self.script[min(len(self.begun), len(self.script) - 1)]
        self.begun.append(self.clock.now())
        self.running += 1
        try:
            if answer == "shows":
                context.progress(f"{context.attempt}", 1)
            if isinstance(answer, list):
                context.progress(ToolResult.of_text("part"))
            await self.clock.sleep(seconds)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.running -= 1
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def pipeline(
        self, hedge: dict[str, Any], annotations: Annotations = READING, **policy: Any
    ) -> Pipeline:
        tool = Tool("t", "", {"type": "object"}, self, annotations=annotations, risk=Risk.LOW)
        settings = {"retry_budget": PLENTY, "timeout_s": 60, **policy}
        return Pipeline(
            [tool],
            policies=Policies(RunPolicy(hedge=HedgePolicy(**hedge), **settings)),
            clock=self.clock,
        )

    async def answer(self, pipeline: Pipeline) -> ToolResult:
        return await self.clock.run(pipeline.call("t"))


def events(pipeline: Pipeline) -> dict[str, float]:
    found = {}
    for line in pipeline.metrics.text().decode().splitlines():
        if line.startswith("seawall_events_total") and 'layer="hedge"' in line:
            found[line.split('event="')[1].split('"')[0]] = float(line.split()[-1])
    return found


def spans(pipeline: Pipeline) -> list[tuple[int, str, str, tuple[str, ...]]]:
    return sorted(
        (span.attempt, span.outcome.value, span.reason, span.verdicts)
        for span in pipeline.trace.spans()
    )


async def test_a_fast_answer_is_never_hedged() -> None:
    backend = Backend((1, "one"))
    pipeline = backend.pipeline({"delay_s": 2})

    result = await backend.answer(pipeline)

    assert (result.text, result.attempts, result.duration_ms) == ("one", 1, 1000)
    assert len(backend.begun) == 1
    assert spans(pipeline) == [(1, "success", "", ())]


async def test_a_slow_first_attempt_is_overtaken_and_cancelled() -> None:
    backend = Backend((30, "one"), (1, "two"))
    pipeline = backend.pipeline({"delay_s": 2})

    result = await backend.answer(pipeline)
    await backend.clock.settle()

    assert (result.text, result.attempts, backend.clock.now()) == ("two", 2, 3)
    assert backend.begun == [0, 2]
    assert (backend.cancelled, backend.running) == (1, 0)
    assert events(pipeline) == {"begun": 1, "won": 1, "cancelled": 1}
    assert spans(pipeline) == [
        (1, "failed", "cancelled", ("hedge:lost",)),
        (2, "success", "", ("hedge:extra",)),
    ]


async def test_a_hedge_is_no_retry_in_the_metrics() -> None:
    backend = Backend((30, "one"), (1, "two"))
    pipeline = backend.pipeline({"delay_s": 2})

    await backend.answer(pipeline)

    assert b'seawall_retries_total{tool="t"} 1' not in pipeline.metrics.text()


async def test_the_first_attempt_may_still_win() -> None:
    backend = Backend((5, "one"), (30, "two"))
    pipeline = backend.pipeline({"delay_s": 2})

    assert (await backend.answer(pipeline)).text == "one"
    await backend.clock.settle()
    assert events(pipeline) == {"begun": 1, "cancelled": 1}
    assert backend.running == 0


@pytest.mark.parametrize(
    "annotations",
    [
        Annotations(),
        Annotations.for_overwriting(),
        Annotations.for_changing(),
        Annotations.for_destroying(),
    ],
)
async def test_a_tool_that_does_more_than_read_is_never_hedged(annotations: Annotations) -> None:
    backend = Backend((30, "one"))
    pipeline = backend.pipeline({"delay_s": 1, "max_extra": 3}, annotations)

    await backend.answer(pipeline)

    assert len(backend.begun) == 1


async def test_at_most_the_stated_extra_attempts_each_after_another_delay() -> None:
    backend = Backend((30, "slow"))
    pipeline = backend.pipeline({"delay_s": 2, "max_extra": 2})

    result = await backend.answer(pipeline)

    assert backend.begun == [0, 2, 4]
    assert (result.text, result.attempts, backend.clock.now()) == ("slow", 3, 30)


async def test_an_answer_of_the_tool_decides_even_if_it_is_an_error() -> None:
    no = ToolFailed(Failure(code=FailureCode.NOT_FOUND, message="no such city"))
    backend = Backend((30, "one"), (1, no))
    pipeline = backend.pipeline({"delay_s": 2})

    result = await backend.answer(pipeline)

    assert result.failure is not None
    assert result.failure.code is FailureCode.NOT_FOUND
    assert backend.clock.now() == 3


async def test_an_attempt_that_fails_waits_for_the_others() -> None:
    backend = Backend((5, ConnectionError("reset")), (9, "two"))
    pipeline = backend.pipeline({"delay_s": 2})

    result = await backend.answer(pipeline)

    assert (result.text, backend.clock.now()) == ("two", 11)
    assert [span[:3] for span in spans(pipeline)] == [
        (1, "failed", "tool_failed"),
        (2, "success", ""),
    ]


async def test_when_all_fail_the_first_failure_is_told_and_retry_may_go_on() -> None:
    backend = Backend((5, ConnectionError("one")), (9, ConnectionError("two")), (1, "third"))
    pipeline = backend.pipeline({"delay_s": 2}, max_retries=1)

    result = await backend.answer(pipeline)

    assert (result.text, result.attempts) == ("third", 3)
    assert [span[0] for span in spans(pipeline)] == [1, 2, 3]
    assert b'seawall_retries_total{tool="t"} 1' in pipeline.metrics.text()


async def test_the_callers_cancel_ends_all_attempts_before_it_is_raised() -> None:
    backend = Backend((30, "one"))
    pipeline = backend.pipeline({"delay_s": 2}, breaker=BreakerPolicy(threshold=1))
    task = asyncio.ensure_future(pipeline.call("t"))
    await backend.clock.advance(3)
    assert backend.running == 2

    task.cancel()
    await asyncio.gather(task, return_exceptions=True)

    assert task.cancelled()
    assert (backend.running, backend.cancelled) == (0, 2)
    assert pipeline.breakers.state("t") == "closed"
    assert [span[:3] for span in spans(pipeline)] == [
        (1, "failed", "cancelled"),
        (2, "failed", "cancelled"),
    ]


async def test_each_attempt_has_a_timeout_of_its_own() -> None:
    backend = Backend((30, "one"), (4, "two"))
    pipeline = backend.pipeline({"delay_s": 3}, timeout_s=5)

    result = await backend.answer(pipeline)

    assert (result.text, backend.clock.now()) == ("two", 7)
    assert [span[:3] for span in spans(pipeline)] == [
        (1, "failed", "attempt_timeout"),
        (2, "success", ""),
    ]


async def test_the_deadline_of_the_call_ends_all_attempts() -> None:
    backend = Backend((30, "one"))
    pipeline = backend.pipeline({"delay_s": 2}, deadline_s=5)

    result = await backend.answer(pipeline)
    await backend.clock.settle()

    assert result.failure is not None
    assert result.failure.reason == "deadline_exceeded"
    assert (backend.clock.now(), backend.running) == (5, 0)


async def test_an_open_circuit_lets_no_extra_attempt_through_and_costs_no_budget() -> None:
    backend = Backend((5, "one"))
    breaker = BreakerPolicy(threshold=1, cooldown_s=100)
    budget = RetryBudgetPolicy(share=0.2, min_retries=1)
    pipeline = backend.pipeline({"delay_s": 2}, breaker=breaker, retry_budget=budget)
    task = asyncio.ensure_future(pipeline.call("t"))
    await backend.clock.advance(1)
    pipeline.breakers.open("t")
    await backend.clock.advance(9)

    assert task.result().text == "one"
    assert len(backend.begun) == 1
    slot = pipeline.states.of_tool("t").find("retry_budget")
    assert (slot.calls, slot.extra) == (1, 0)


async def test_output_that_was_shown_belongs_to_the_first_attempt() -> None:
    backend = Backend((9, ["streams"]), (1, "two"))
    pipeline = backend.pipeline({"delay_s": 2})

    assert (await backend.answer(pipeline)).structured_content == ["streams"]
    assert len(backend.begun) == 1


async def test_only_the_first_attempt_is_heard() -> None:
    heard: list[Any] = []
    backend = Backend((9, "shows"))
    pipeline = backend.pipeline({"delay_s": 2})

    call = pipeline.call("t", on_progress=lambda *report: heard.append(report))
    await backend.clock.run(call)

    assert len(backend.begun) == 2
    assert heard == [("1", 1, None)]


async def test_all_attempts_have_one_idempotency_key() -> None:
    keys = []
    clock = FakeClock()

    async def run(arguments: dict[str, Any], context: Any) -> str:
        keys.append(context.idempotency_key)
        await clock.sleep(10)
        return "done"

    tool = Tool("t", "", {"type": "object"}, run, annotations=READING)
    policy = RunPolicy(hedge=HedgePolicy(delay_s=1))
    await clock.run(Pipeline([tool], policies=Policies(policy), clock=clock).call("t"))

    assert len(keys) == 2
    assert keys[0] == keys[1]


async def test_the_delay_follows_the_latencies_once_enough_are_known() -> None:
    backend = Backend(*[(1, "fast")] * 19, (3, "slower"), (30, "slow"), (1, "fast"))
    pipeline = backend.pipeline({"delay_s": 10, "quantile": 0.95, "min_samples": 20})
    for _ in range(20):
        await backend.answer(pipeline)
    began = backend.clock.now()

    result = await backend.answer(pipeline)

    assert result.text == "fast"
    assert backend.begun[-2:] == [began, began + 1]


async def test_a_call_over_budget_waits_for_its_first_attempt() -> None:
    backend = Backend((5, "slow"))
    budget = RetryBudgetPolicy(share=0.2, min_retries=1)
    pipeline = backend.pipeline({"delay_s": 1}, retry_budget=budget)

    results = [await backend.answer(pipeline) for _ in range(3)]

    assert [result.attempts for result in results] == [2, 1, 1]
    assert events(pipeline)["over_budget"] == 2


async def test_retries_and_hedges_share_one_budget() -> None:
    backend = Backend((5, "slow"), (5, "slow"), (0.1, ConnectionError("reset")))
    budget = RetryBudgetPolicy(share=0.01, min_retries=1)
    pipeline = backend.pipeline({"delay_s": 1}, retry_budget=budget, max_retries=3)
    await backend.answer(pipeline)

    result = await backend.answer(pipeline)

    assert (result.is_error, result.attempts) == (True, 1)


async def test_without_a_policy_for_it_hedges_have_the_usual_budget() -> None:
    backend = Backend((5, "slow"))
    pipeline = backend.pipeline({"delay_s": 1}, retry_budget=None)

    results = [await backend.answer(pipeline) for _ in range(6)]

    assert [result.attempts for result in results] == [2, 2, 2, 1, 1, 1]


SCRIPTS = st.lists(
    st.tuples(
        st.floats(0.1, 20).map(lambda s: round(s, 1)),
        st.sampled_from(["ok", "broken", "no"]),
    ),
    min_size=1,
    max_size=6,
)


@settings(deadline=None)
@given(script=SCRIPTS, delay_s=st.sampled_from([0.537, 2.013, 7.019]), extra=st.integers(1, 3))
def test_a_race_comes_to_what_a_plain_model_says(
    script: list[tuple[float, str]], delay_s: float, extra: int
) -> None:
    asyncio.run(_against_model(script, delay_s, extra))


async def _against_model(script: list[tuple[float, str]], delay_s: float, extra: int) -> None:
    ends = {
        "ok": "ok",
        "broken": ConnectionError("reset"),
        "no": ToolFailed(Failure(code=FailureCode.NOT_FOUND, message="no", reason="no")),
    }
    backend = Backend(*((seconds, ends[how]) for seconds, how in script))
    pipeline = backend.pipeline({"delay_s": delay_s, "max_extra": extra})

    result = await backend.answer(pipeline)
    ended = backend.clock.now()
    await backend.clock.advance(100)

    at, how, begun = modelled(script, delay_s, extra)
    said = "ok" if result.failure is None else result.failure.reason
    assert (round(ended, 6), said) == (round(at, 6), {"broken": "tool_failed"}.get(how, how))
    assert len(backend.begun) == result.attempts == begun
    assert len(backend.begun) <= 1 + extra
    assert backend.running == 0
    assert sorted(span.attempt for span in pipeline.trace.spans()) == list(range(1, begun + 1))


def modelled(script: list[tuple[float, str]], delay_s: float, extra: int) -> tuple[float, str, int]:
    """When the race ends, how, and how many attempts it had: from event to event.

    Delays are such that no attempt ends at the moment at which another is due.
    """
    ends: list[tuple[float, str]] = []
    begun = 0
    now = 0.0
    waits_until = 0.0
    while True:
        if begun == 0 or (begun <= extra and now >= waits_until):
            seconds, how = script[min(begun, len(script) - 1)]
            ends.append((now + seconds, how))
            begun += 1
            waits_until = now + delay_s
        over = [end for end in ends if end[0] <= now]
        for at, how in over:
            if how != "broken":
                return at, how, begun
        if len(over) == len(ends):
            return now, "broken", begun
        next_end = min(at for at, _ in ends if at > now)
        now = next_end if begun > extra else min(next_end, waits_until)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"delay_s": -1}, "hedge.delay_s: must not be negative (got -1)"),
        ({"quantile": 95}, "hedge.quantile: must be above 0 and at most 1 (got 95)"),
        ({"max_extra": 0}, "hedge.max_extra: must be at least 1 (got 0)"),
        ({"max_extra": 11}, "hedge.max_extra: must be at most 10"),
        ({"min_samples": 101}, "hedge.min_samples: must be at most 100, which are kept"),
    ],
)
def test_settings_that_cannot_be_are_refused(values: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        HedgePolicy(**values)

    assert str(caught.value) == said
