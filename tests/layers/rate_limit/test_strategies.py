"""Strategies by name, asked in one way; rates as text."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from limits.storage import MemoryStorage

from seawall.contract.errors import ConfigurationError
from seawall.layers.rate_limit.bucket import MemoryBuckets, TokenBucket
from seawall.layers.rate_limit.memory_windows import MemoryWindows
from seawall.layers.rate_limit.strategies import (
    STRATEGIES,
    Limiter,
    WindowLimiter,
    limiter_for,
    parse_rate,
)

if TYPE_CHECKING:
    from collections.abc import Callable

WINDOWS = [name for name in STRATEGIES if name != "token-bucket"]


class Hands:
    """A clock moved by hand."""

    def __init__(self, at: float = 0.0) -> None:
        self.at = at

    def __call__(self) -> float:
        return self.at


def test_the_known_strategies_are_ours_and_those_of_limits() -> None:
    assert STRATEGIES == (
        "token-bucket",
        "fixed-window",
        "moving-window",
        "sliding-window-counter",
    )


def test_the_default_of_a_policy_is_a_token_bucket() -> None:
    assert isinstance(limiter_for("token-bucket", None, Hands()), TokenBucket)


@pytest.mark.parametrize("name", WINDOWS)
def test_a_window_strategy_is_the_one_of_limits_by_that_name(name: str) -> None:
    limiter = limiter_for(name, None, Hands())

    assert isinstance(limiter, WindowLimiter)
    expected = name.title().replace("-", "") + "RateLimiter"
    assert type(limiter.strategy).__name__ == expected
    assert type(limiter.strategy).__module__ == "limits.strategies"


def test_an_unknown_strategy_is_told_with_the_known_ones() -> None:
    with pytest.raises(ConfigurationError) as caught:
        limiter_for("leaky-bucket", None, Hands())

    assert str(caught.value) == (
        "rate_strategy: is 'leaky-bucket'; use one of "
        "token-bucket, fixed-window, moving-window, sliding-window-counter"
    )


def test_a_text_is_read_once_however_many_tools_have_it() -> None:
    assert parse_rate("7 per 3 hours") is parse_rate("7 per 3 hours")


def test_a_storage_that_is_handed_in_is_used() -> None:
    buckets, windows = MemoryBuckets(), MemoryWindows(Hands())
    item = parse_rate("2/minute")

    limiter_for("token-bucket", buckets, Hands()).take(item, "t")
    limiter_for("fixed-window", windows, Hands()).take(item, "t")

    assert (buckets.tracked, windows.tracked) == (1, 1)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("10/min", "10/minute"),
        ("10 / Sec.", "10/second"),
        ("5 requests per 2 hrs", "5 per 2 hours"),
        ("100rpm", "100/minute"),
        ("3 a day", "3/day"),
        ("10/minuite", "10/minute"),
    ],
)
def test_a_rate_as_others_write_it_is_told_as_it_is_written_here(text: str, meant: str) -> None:
    with pytest.raises(ConfigurationError, match=f"; did you mean {meant}\\?$"):
        parse_rate(text)

    assert parse_rate(meant).amount > 0


@pytest.mark.parametrize("text", ["10/fortnight", "0/min", "10/0min", "10", "1/min; 2/s", "/min"])
def test_a_rate_that_may_mean_anything_is_told_by_example(text: str) -> None:
    with pytest.raises(ConfigurationError, match="like 120/minute or 10 per 2 hours"):
        parse_rate(text)


@pytest.mark.parametrize(
    ("name", "make", "needed"),
    [
        ("token-bucket", lambda: MemoryWindows(Hands()), "MemoryBuckets"),
        ("moving-window", MemoryBuckets, "MemoryWindows"),
        ("fixed-window", MemoryStorage, "MemoryWindows"),
    ],
)
def test_a_storage_of_another_kind_is_refused(
    name: str, make: Callable[[], Any], needed: str
) -> None:
    with pytest.raises(ConfigurationError, match=f"strategy {name} needs {needed}"):
        limiter_for(name, make(), Hands())


# What all strategies have in common.


@pytest.fixture(params=STRATEGIES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_every_strategy_grants_the_amount_and_then_refuses(name: str) -> None:
    limiter = limiter_for(name, None, Hands(120.0))
    item = parse_rate("3/minute")

    taken = [limiter.take(item, "t") for _ in range(4)]

    assert [one.granted for one in taken] == [True, True, True, False]
    assert [one.left for one in taken] == [2.0, 1.0, 0.0, 0.0]
    assert [one.retry_after_s for one in taken[:3]] == [0.0, 0.0, 0.0]
    assert (taken[3].retry_after_s or 0) > 0


def test_every_strategy_tells_a_cost_that_can_never_be_granted(name: str) -> None:
    limiter = limiter_for(name, None, Hands())

    taken = limiter.take(parse_rate("10/minute"), "t", cost=11)

    assert (taken.granted, taken.retry_after_s, taken.left) == (False, None, 10.0)
    assert limiter.tracked == 0


def test_no_strategy_counts_what_it_refused(name: str) -> None:
    limiter = limiter_for(name, None, Hands())
    item = parse_rate("10/minute")

    for cost in (100, 11, 10, 100, 1):
        limiter.take(item, "t", cost=cost)
    limiter.give_back(item, "t")

    assert limiter.take(item, "t").granted
    assert not limiter.take(item, "t").granted


def test_every_strategy_refuses_a_cost_below_one(name: str) -> None:
    limiter = limiter_for(name, None, Hands())

    with pytest.raises(ValueError, match="must be at least 1"):
        limiter.take(parse_rate("10/minute"), "t", cost=0)
    with pytest.raises(ValueError, match="must be at least 1"):
        limiter.give_back(parse_rate("10/minute"), "t", cost=-1)


def test_every_strategy_keeps_keys_apart_whatever_is_in_them(name: str) -> None:
    limiter = limiter_for(name, None, Hands())
    item = parse_rate("1/minute")

    granted = [
        limiter.take(item, *identifiers).granted
        for identifiers in (("a", "b"), ("a/b",), ("a%2Fb",), ("a/b",))
    ]

    assert granted == [True, True, True, False]


def test_every_strategy_can_be_bound_to_a_key(name: str) -> None:
    limiter = limiter_for(name, None, Hands())
    item = parse_rate("2/minute")
    bound = limiter.bind(item, "t")

    assert bound.take(cost=2).granted
    assert not limiter.take(item, "t").granted
    bound.give_back(cost=2)

    assert limiter.take(item, "t", cost=2).granted


def test_no_strategy_makes_state_for_what_is_given_back_unasked(name: str) -> None:
    limiter = limiter_for(name, None, Hands())
    item = parse_rate("2/minute")

    limiter.give_back(item, "t", cost=2)

    assert limiter.tracked == 0
    assert not limiter.take(item, "t", cost=3).granted


def test_no_strategy_lets_a_clock_that_steps_back_mint(name: str) -> None:
    hands = Hands(600.0)
    limiter = limiter_for(name, None, hands)
    item = parse_rate("2/minute")
    limiter.take(item, "t", cost=2)

    granted = []
    for hands.at in (0.0, 30.0, 570.0, 600.0):
        granted.append(limiter.take(item, "t").granted)

    assert granted == [False, False, False, False]


# Models.


def fixed(calls: list[tuple[float, int]], at: float, period_s: int) -> float:
    begin, count = -math.inf, 0
    for made, cost in calls:
        if made >= begin + period_s:
            begin, count = made, 0
        count += cost
    return count if at < begin + period_s else 0


def moving(calls: list[tuple[float, int]], at: float, period_s: int) -> float:
    return sum(cost for made, cost in calls if made + period_s > at)


def sliding(calls: list[tuple[float, int]], at: float, period_s: int) -> float:
    now = math.floor(at / period_s)
    counts = [
        sum(cost for made, cost in calls if math.floor(made / period_s) == index)
        for index in (now - 1, now)
    ]
    return math.floor(counts[0] * ((now + 1) * period_s - at) / period_s + counts[1])


COUNTED = {"fixed-window": fixed, "moving-window": moving, "sliding-window-counter": sliding}


@pytest.mark.parametrize("name", WINDOWS)
@settings(max_examples=80, deadline=None)
@given(
    amount=st.integers(1, 6),
    asks=st.lists(st.tuples(st.integers(0, 200), st.integers(1, 6)), min_size=1, max_size=30),
)
def test_a_window_counts_as_its_plain_definition_does(
    name: str, amount: int, asks: list[tuple[int, int]]
) -> None:
    hands = Hands()
    limiter = limiter_for(name, None, hands)
    item = parse_rate(f"{amount} per 8 second")
    calls: list[tuple[float, int]] = []

    for sixteenths, cost in asks:
        hands.at += sixteenths / 16
        counted = COUNTED[name](calls, hands.at, 8)

        taken = limiter.take(item, "t", cost=cost)

        assert taken.granted == (counted + cost <= amount)
        if taken.granted:
            calls.append((hands.at, cost))
        assert taken.left == amount - COUNTED[name](calls, hands.at, 8)


@pytest.mark.parametrize("name", WINDOWS)
@settings(max_examples=150, deadline=None)
@given(
    start=st.floats(0, 1e7),
    amount=st.integers(1, 8),
    asks=st.lists(st.tuples(st.floats(0, 15), st.integers(1, 8)), min_size=1, max_size=20),
)
def test_a_call_when_it_was_told_to_return_is_granted_and_one_before_is_not(
    name: str, start: float, amount: int, asks: list[tuple[float, int]]
) -> None:
    hands = Hands(start)
    limiter = limiter_for(name, None, hands)
    bound = limiter.bind(parse_rate(f"{amount} per 10 second"), "t")

    for pause, cost in asks:
        hands.at += pause
        taken = bound.take(cost)
        assert taken.granted == (taken.retry_after_s == 0.0)
        if taken.retry_after_s:
            due = hands.at + taken.retry_after_s
            hands.at = max(hands.at, due - 1e-6)
            assert taken.retry_after_s < 2e-6 or not bound.take(cost).granted
            hands.at = due
            assert bound.take(cost).granted


# Rates as text.


@pytest.mark.parametrize(
    ("text", "amount", "period_s"),
    [
        ("120/minute", 120, 60),
        ("120 per minute", 120, 60),
        (" 10 per 2 hours ", 10, 7200),
        ("1/10 seconds", 1, 10),
        ("5/DAY", 5, 86_400),
        ("1000000000/second", 10**9, 1),
    ],
)
def test_a_rate_is_read_as_limits_reads_it(text: str, amount: int, period_s: int) -> None:
    item = parse_rate(text)

    assert (item.amount, item.get_expiry()) == (amount, period_s)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("0/minute", "is '0/minute'; it must be above 0, or left out for no limit"),
        ("1 per 0 second", "is '1 per 0 second'; it must be above 0"),
        ("1/00minutes", "it must be above 0"),
        ("-1/minute", "is '-1/minute'; give one rate, like 120/minute or 10 per 2 hours"),
        ("1.5/minute", "is '1.5/minute'; give one rate"),
        ("fast", "is 'fast'; give one rate"),
        ("", "is ''; give one rate"),
        ("10/fortnight", "is '10/fortnight'; give one rate"),
        ("5/minute; 10/hour", "is '5/minute; 10/hour'; give one rate"),
        (60, "is 60; give one rate"),
        (None, "is None; give one rate"),
        ("1000000001/second", "neither calls nor seconds may be above 1,000,000,000"),
        ("1/100 years", "neither calls nor seconds may be above 1,000,000,000"),
        ("9" * 5000 + "/minute", "give one rate"),
    ],
)
def test_a_rate_that_cannot_be_meant_is_refused_with_what_was_read(
    text: object, complaint: str
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        parse_rate(text)

    [fault] = caught.value.faults
    assert fault.key == "rate"
    assert complaint in fault.message
    assert len(fault.message) < 250


def test_both_kinds_of_limiter_are_what_the_layer_asks_for() -> None:
    limiters: list[Limiter] = [
        TokenBucket(MemoryBuckets(), Hands()),
        WindowLimiter("fixed-window", MemoryWindows(Hands())),
    ]

    assert [limiter.tracked for limiter in limiters] == [0, 0]
