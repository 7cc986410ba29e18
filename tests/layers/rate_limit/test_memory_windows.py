"""Windows as a storage of `limits`, asked by its own strategies."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest
from limits.strategies import (
    FixedWindowRateLimiter,
    MovingWindowRateLimiter,
    SlidingWindowCounterRateLimiter,
)

from seawall.layers.rate_limit.memory_windows import MemoryWindows
from seawall.layers.rate_limit.strategies import parse_rate

STRATEGIES = [FixedWindowRateLimiter, MovingWindowRateLimiter, SlidingWindowCounterRateLimiter]


class Hands:
    """A clock moved by hand."""

    def __init__(self, at: float = 0.0) -> None:
        self.at = at

    def __call__(self) -> float:
        return self.at


@pytest.fixture(params=STRATEGIES, ids=lambda kind: kind.__name__)
def kind(request: pytest.FixtureRequest) -> Any:
    return request.param


def test_the_strategies_of_limits_work_on_it(kind: Any) -> None:
    hands = Hands(100.0)
    strategy = kind(MemoryWindows(hands))
    item = parse_rate("3 per 10 second")

    granted = [strategy.hit(item, "t") for _ in range(4)]
    assert granted == [True, True, True, False]
    assert strategy.get_window_stats(item, "t").remaining == 0
    hands.at = 120.0

    assert strategy.get_window_stats(item, "t").remaining == 3
    assert strategy.hit(item, "t", cost=3)


def test_the_wall_clock_does_not_matter(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    hands = Hands()
    strategy = kind(MemoryWindows(hands))
    item = parse_rate("2/second")
    strategy.hit(item, "t", cost=2)

    monkeypatch.setattr(time, "time", lambda: -3600.0)
    hands.at = 2.0

    assert strategy.hit(item, "t", cost=2)


def test_a_clock_that_steps_back_frees_nothing(kind: Any) -> None:
    hands = Hands(100.0)
    strategy = kind(MemoryWindows(hands))
    item = parse_rate("2 per 10 second")
    strategy.hit(item, "t", cost=2)

    for hands.at in (40.0, 89.0, 100.0):
        assert not strategy.test(item, "t")


def test_no_thread_is_started(kind: Any) -> None:
    hands = Hands()
    strategy = kind(MemoryWindows(hands))
    before = threading.active_count()

    for step in range(50):
        hands.at = step * 0.005
        strategy.hit(parse_rate("10/second"), f"key {step}")

    assert threading.active_count() == before


def test_a_cost_above_the_limit_is_not_counted_where_limits_asks_first() -> None:
    windows = MemoryWindows(Hands())

    assert not windows.acquire_entry("a", 10, 60, 11)
    assert not windows.acquire_sliding_window_entry("a", 10, 60, 11)
    assert windows.tracked == 0


def test_each_strategy_has_windows_of_its_own_for_one_key() -> None:
    windows = MemoryWindows(Hands())

    windows.incr("a", 60, 2)
    windows.acquire_entry("a", 10, 60, 3)
    windows.acquire_sliding_window_entry("a", 10, 60, 4)

    assert windows.get("a") == 2
    assert windows.get_moving_window("a", 10, 60) == (0.0, 3)
    assert windows.get_sliding_window("a", 60) == (0, 60.0, 4, 120.0)
    assert windows.tracked == 3


def test_a_key_nobody_asked_for_has_nothing_counted() -> None:
    windows = MemoryWindows(Hands(7.0))

    assert (windows.get("a"), windows.get_expiry("a")) == (0, 7.0)
    assert windows.get_moving_window("a", 10, 60) == (7.0, 0)
    assert windows.get_sliding_window("a", 60) == (0, 0.0, 0, 60.0)
    assert windows.wait_s("moving-window", "a", 0) == 0.0


def test_a_window_that_is_over_reads_as_none_although_it_was_not_forgotten() -> None:
    hands = Hands()
    windows = MemoryWindows(hands)
    windows.incr("a", 10)
    windows.acquire_entry("a", 10, 10)

    hands.at = 12.0

    assert (windows.get("a"), windows.get_expiry("a")) == (0, 12.0)
    assert windows.get_moving_window("a", 10, 10) == (12.0, 0)


def test_a_strategy_clears_its_key(kind: Any) -> None:
    strategy = kind(MemoryWindows(Hands()))
    item = parse_rate("1/minute")
    strategy.hit(item, "t")

    strategy.clear(item, "t")

    assert strategy.hit(item, "t")


def test_all_keys_are_cleared_and_counted() -> None:
    windows = MemoryWindows(Hands())
    windows.incr("a", 60)
    windows.acquire_entry("b", 10, 60)

    assert windows.reset() == 2

    assert windows.tracked == 0
    assert windows.check()
    assert windows.base_exceptions == ()


def test_many_other_callers_never_reset_a_limited_one(kind: Any) -> None:
    windows = MemoryWindows(Hands(), max_keys=64)
    strategy = kind(windows)
    item = parse_rate("1/minute")
    strategy.hit(item, "limited")

    for number in range(1024):
        strategy.hit(item, f"other {number}")

    assert not strategy.test(item, "limited")
    assert windows.tracked == 64


def test_keys_without_a_place_share_one_window_per_rate(kind: Any) -> None:
    strategy = kind(MemoryWindows(Hands(), max_keys=1))
    two = parse_rate("2/minute")
    strategy.hit(two, "first")

    granted = [strategy.test(two, name) and strategy.hit(two, name) for name in "abc"]

    assert granted == [True, True, False]
    assert strategy.hit(parse_rate("5/minute"), "d")


def test_a_key_that_leaves_the_overflow_is_not_reset_by_that(kind: Any) -> None:
    hands = Hands()
    strategy = kind(MemoryWindows(hands, max_keys=1))
    short, long = parse_rate("1/second"), parse_rate("2/minute")
    strategy.hit(short, "first")
    strategy.hit(long, "a", cost=2)

    hands.at = 2.0

    assert not strategy.test(long, "a")
    assert not strategy.hit(long, "a")


def test_all_windows_that_are_over_are_forgotten_once_somebody_counts(kind: Any) -> None:
    hands = Hands()
    windows = MemoryWindows(hands)
    strategy = kind(windows)
    item = parse_rate("2 per 2 second")
    for number in range(3000):
        strategy.hit(item, str(number))
    assert windows.tracked == 3000

    hands.at = 100.0
    strategy.hit(item, "z")

    assert windows.tracked == 1
