"""Extra attempts are a share of the calls, over a window that slides."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seawall import Annotations, BreakerPolicy, Pipeline, Policies, RunPolicy
from seawall.contract.errors import ConfigurationError
from seawall.contract.optional_policies import RetryBudgetPolicy
from seawall.layers.budget import PARTS, Budget
from seawall.testing import FakeClock, LayerBench, scripted

READING = Annotations.for_reading()


class Books:
    """A budget on a clock moved by hand."""

    def __init__(self, **policy: Any) -> None:
        self.at = 0.0
        self.bench = LayerBench()
        self.budget = Budget(RetryBudgetPolicy(**policy), lambda: self.at)

    def calls(self, count: int) -> None:
        for _ in range(count):
            self.budget.entered(self.bench.invocation())

    def taken(self, tries: int) -> int:
        return sum(self.budget.take() for _ in range(tries))


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("wait"), st.floats(0, 25, allow_nan=False)),
        st.tuples(st.just("call"), st.integers(1, 30)),
        st.tuples(st.just("take"), st.integers(1, 10)),
        st.tuples(st.just("back"), st.integers(1, 3)),
    ),
    max_size=40,
)


@given(
    share=st.sampled_from([0.1, 0.2, 0.5, 1.0]),
    least=st.integers(0, 5),
    window_s=st.sampled_from([1.0, 10.0, 60.0]),
    steps=STEPS,
)
def test_a_budget_grants_what_a_plain_model_grants(
    share: float, least: int, window_s: float, steps: Any
) -> None:
    books = Books(share=share, min_retries=least, window_s=window_s)
    calls: list[int] = []
    extra: list[int] = []
    for what, amount in steps:
        if what == "wait":
            books.at += amount
            continue
        part = math.floor(books.at / (window_s / PARTS))
        calls = [one for one in calls if one > part - PARTS]
        extra = [one for one in extra if one > part - PARTS]
        if what == "call":
            books.calls(amount)
            calls += [part] * amount
        elif what == "back":
            for _ in range(amount):
                books.budget.give_back()
                extra = extra[:-1]
        else:
            for _ in range(amount):
                granted = len(extra) + 1 <= max(least, share * len(calls)) + 1e-9
                assert books.budget.take() is granted
                extra += [part] * granted
        assert (books.budget.calls, books.budget.extra) == (len(calls), len(extra))
        assert len(books.budget._parts) <= PARTS


def test_a_tool_in_little_use_is_retried_a_few_times() -> None:
    books = Books()
    books.calls(1)

    assert books.taken(10) == 3


def test_a_fifth_of_many_calls_may_be_repeated() -> None:
    books = Books()
    books.calls(1000)

    assert books.taken(1000) == 200


def test_what_was_not_used_is_given_back() -> None:
    books = Books(min_retries=1)
    books.calls(1)
    assert books.taken(2) == 1

    books.budget.give_back()

    assert books.taken(2) == 1


def test_a_call_makes_room_once_however_many_layers_see_it() -> None:
    books = Books()
    call = books.bench.invocation()

    books.budget.entered(call)
    books.budget.entered(call)

    assert books.budget.calls == 1


def test_other_numbers_go_on_and_another_window_begins_anew() -> None:
    books = Books()
    books.calls(10)

    books.budget.retune(RetryBudgetPolicy(share=0.5))
    assert books.taken(10) == 5
    books.budget.retune(RetryBudgetPolicy(window_s=5))
    assert (books.budget.calls, books.budget.extra) == (0, 0)


def test_a_step_of_the_wall_clock_changes_nothing() -> None:
    clock = FakeClock()
    budget = Budget(RetryBudgetPolicy(min_retries=1), clock.now)
    assert budget.take()

    clock.step_wall(3600)

    assert not budget.take()


async def test_retries_over_budget_end_the_call_with_its_own_failure() -> None:
    clock = FakeClock()
    tool = scripted(ConnectionError("down"), name="t", annotations=READING)
    policy = RunPolicy(
        max_retries=3, base_delay_s=0.1, retry_budget=RetryBudgetPolicy(min_retries=4)
    )
    pipeline = Pipeline([tool], policies=Policies(policy), clock=clock)

    results = [await clock.run(pipeline.call("t")) for _ in range(4)]

    assert [result.attempts for result in results] == [4, 2, 1, 1]
    assert {r.failure.reason for r in results if r.failure} == {"tool_failed"}
    assert pipeline.trace.spans()[0].verdicts == ("retry:over_budget",)
    assert b'event="over_budget",layer="retry",tool="t"} 3' in pipeline.metrics.text()


async def test_a_retry_that_the_circuit_refuses_uses_up_no_budget() -> None:
    clock = FakeClock()
    tool = scripted(ConnectionError("down"), name="t", annotations=READING)
    policy = RunPolicy(
        max_retries=3,
        base_delay_s=0.1,
        breaker=BreakerPolicy(threshold=2),
        retry_budget=RetryBudgetPolicy(min_retries=9),
    )
    pipeline = Pipeline([tool], policies=Policies(policy), clock=clock)

    await clock.run(pipeline.call("t"))
    for _ in range(5):
        await clock.run(pipeline.call("t"))

    assert pipeline.states.of_tool("t").find("retry_budget").extra == 1


async def test_a_budget_outlives_a_reload() -> None:
    clock = FakeClock()
    tool = scripted(ConnectionError("down"), name="t", annotations=READING)
    policy = RunPolicy(
        max_retries=1, base_delay_s=0.1, retry_budget=RetryBudgetPolicy(min_retries=1)
    )
    pipeline = Pipeline([tool], policies=Policies(policy), clock=clock)
    await clock.run(pipeline.call("t"))

    pipeline.replace_policies(Policies(policy))

    assert (await clock.run(pipeline.call("t"))).attempts == 1


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"share": 0}, "retry_budget.share: must be above 0 and at most 1 (got 0)"),
        ({"share": 20}, "retry_budget.share: must be above 0 and at most 1 (got 20)"),
        ({"min_retries": -1}, "retry_budget.min_retries: must be at least 0 (got -1)"),
        (
            {"window_s": None},
            "retry_budget.window_s: must be above 0; leave it out for no limit (got 0)",
        ),
    ],
)
def test_settings_that_cannot_be_are_refused(values: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        RetryBudgetPolicy(**values)

    assert str(caught.value) == said
