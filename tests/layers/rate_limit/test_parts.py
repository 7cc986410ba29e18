"""A rate that several processes keep without a store: each grants its part."""

from __future__ import annotations

import pytest

from seawall import Pipeline, Policies, RunPolicy, Session, tool
from seawall.layers.rate_limit.parts import part_of_rate, part_of_window, parts_for
from seawall.layers.rate_limit.strategies import STRATEGIES, parse_rate
from seawall.policy.settings import SharedSettings
from seawall.testing import FakeClock


@pytest.mark.parametrize(
    ("rate", "replicas", "cost", "capacity", "period_s"),
    [
        ("120/minute", 4, 1, 30.0, 60.0),
        ("30/minute", 4, 1, 7.5, 60.0),
        ("1/minute", 4, 1, 1.0, 240.0),
        ("12/minute", 4, 10, 10.0, 200.0),
    ],
)
def test_a_part_is_never_more_than_its_share_in_the_long_run(
    rate: str, replicas: int, cost: int, capacity: float, period_s: float
) -> None:
    item = parse_rate(rate)

    part = part_of_rate(item.amount, item.get_expiry(), replicas, cost)

    assert (part.capacity, part.period_s) == (capacity, period_s)
    assert part.capacity / part.period_s * replicas <= item.amount / item.get_expiry() + 1e-12


@pytest.mark.parametrize(
    ("rate", "replicas", "cost", "amount", "seconds"),
    [
        ("120/minute", 4, 1, 30, 60),
        ("30/minute", 4, 1, 7, 60),
        ("1/minute", 4, 1, 1, 240),
        ("12/minute", 4, 10, 10, 240),
    ],
)
def test_a_part_of_a_window_is_of_whole_calls(
    rate: str, replicas: int, cost: int, amount: int, seconds: int
) -> None:
    part = part_of_window(parse_rate(rate), replicas, cost)

    assert (part.amount, part.get_expiry()) == (amount, seconds)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_all_parts_together_grant_the_rate_and_no_more(strategy: str) -> None:
    clock = FakeClock()
    item = parse_rate("20/minute")
    bound = [parts_for(strategy, clock.now, 4).bind(item, 1, "key") for _ in range(4)]

    granted = sum(one.take().granted for one in bound for _ in range(20))

    assert granted == 20


@pytest.mark.parametrize("strategy", STRATEGIES)
async def test_a_policy_that_says_how_many_share_a_rate_divides_it(strategy: str) -> None:
    @tool
    async def work() -> str:
        """Work."""
        return "done"

    policies = Policies(
        RunPolicy(rate="20/hour", rate_strategy=strategy), shared=SharedSettings(replicas=4)
    )
    async with Pipeline([work], policies=policies, clock=FakeClock()) as pipeline:
        results = [await pipeline.call("work", {}) for _ in range(6)]

    assert [result.is_error for result in results] == [False] * 5 + [True]
    assert "20/hour by 4 processes together" in results[-1].text


async def test_callers_have_their_part_each() -> None:
    @tool
    async def work() -> str:
        """Work."""
        return "done"

    policies = Policies(
        RunPolicy(rate="4/hour", rate_key=("caller",)), shared=SharedSettings(replicas=4)
    )
    async with Pipeline([work], policies=policies, clock=FakeClock()) as pipeline:
        answers = [
            (await pipeline.call("work", {}, session=Session(caller=caller))).is_error
            for caller in ("a", "a", "b", "b")
        ]

    assert answers == [False, True, False, True]


async def test_the_share_that_is_left_is_that_of_the_part() -> None:
    @tool
    async def work() -> str:
        """Work."""
        return "done"

    policies = Policies(RunPolicy(rate="20/hour"), shared=SharedSettings(replicas=4))
    async with Pipeline([work], policies=policies, clock=FakeClock()) as pipeline:
        await pipeline.call("work", {})
        slots = pipeline.states.find("work")

    assert slots is not None
    assert (slots.find("tokens_left")(), slots.find("tokens_most")) == (4.0, 5.0)
