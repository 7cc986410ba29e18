"""The arithmetic of the three windows."""

from __future__ import annotations

import math

import pytest

from seawall.layers.rate_limit.windows import FixedWindow, MovingWindow, SlidingWindow, Window


def moving(*calls: tuple[float, int], period_s: float = 10.0) -> MovingWindow:
    window = MovingWindow(period_s)
    for at, amount in calls:
        window.add(at, amount)
    return window


def sliding(index: int, current: int, previous: int) -> SlidingWindow:
    return SlidingWindow(10.0, index=index, current=current, previous=previous)


def test_a_fixed_window_begins_with_its_first_call_and_is_over_a_period_later() -> None:
    window = FixedWindow()

    counts = [window.add(at, 10.0, 1) for at in (3.0, 12.9, 13.0)]

    assert counts == [1, 2, 1]
    assert window.expires_at == 23.0


def test_an_emptied_fixed_window_begins_anew() -> None:
    window = FixedWindow(count=2, expires_at=10.0)

    window.give_back(5.0, 3)

    assert window.idle(5.0)
    assert window.idle_at() == -math.inf
    window.add(6.0, 10.0, 1)
    assert window.expires_at == 16.0


def test_a_moving_window_counts_each_call_for_one_period() -> None:
    window = moving((0.0, 2), (4.0, 3))

    assert [window.fits(at, 3) for at in (9.9, 10.0)] == [False, True]
    window.prune(10.0)
    assert window.count == 3
    window.prune(14.0)
    assert window.count == 0


def test_a_moving_window_is_due_when_enough_of_the_oldest_calls_are_over() -> None:
    window = moving((0.0, 1), (1.0, 1), (2.0, 1))

    assert [window.due(5.0, room) for room in (0, 1, 2)] == [12.0, 11.0, 10.0]
    assert MovingWindow(10.0).due(5.0, 0) == 5.0


def test_giving_back_takes_the_newest_calls_out_of_a_moving_window() -> None:
    window = moving((0.0, 2), (1.0, 3), (2.0, 1))

    window.give_back(5.0, 3)

    assert (list(window.calls), window.count) == ([(0.0, 2), (1.0, 1)], 3)
    window.give_back(5.0, 99)
    assert window.idle(5.0)


def test_a_branch_of_a_moving_window_is_one_entry_as_old_as_the_newest() -> None:
    branch = moving((0.0, 2), (1.0, 3)).branch(5.0)

    assert list(branch.calls) == [(1.0, 5)]
    assert not MovingWindow(10.0).branch(5.0).calls


@pytest.mark.parametrize(
    ("at", "expected"),
    [(25.0, (3, 8)), (30.0, (0, 3)), (39.0, (0, 3)), (40.0, (0, 0)), (99.0, (0, 0))],
)
def test_a_sliding_window_rolls_on_by_time(at: float, expected: tuple[int, int]) -> None:
    window = sliding(2, current=3, previous=8)

    window.roll(at)

    assert (window.current, window.previous) == expected


@pytest.mark.parametrize(("at", "fits"), [(20.0, False), (24.9, False), (26.3, True)])
def test_a_sliding_window_counts_the_last_one_by_its_share(at: float, *, fits: bool) -> None:
    window = sliding(2, current=3, previous=8)

    assert window.fits(at, 5) == fits


@pytest.mark.parametrize(
    ("current", "previous", "room", "due"),
    [
        (3, 8, 6, 25.0),
        (7, 0, 6, 30.0),
        (14, 0, 6, 35.0),
    ],
)
def test_a_sliding_window_is_due_in_this_window_or_else_in_the_next(
    current: int, previous: int, room: int, due: float
) -> None:
    window = sliding(2, current=current, previous=previous)

    assert window.due(20.0, room) == due


def test_giving_back_takes_calls_out_of_this_window_first() -> None:
    window = sliding(2, current=3, previous=8)

    window.give_back(25.0, 5)

    assert (window.current, window.previous) == (0, 6)


@pytest.mark.parametrize(
    ("window", "idle_at"),
    [
        (FixedWindow(count=1, expires_at=7.0), 7.0),
        (moving((0.0, 1), (4.0, 1)), 14.0),
        (sliding(2, current=1, previous=0), 40.0),
        (sliding(2, current=0, previous=1), 30.0),
    ],
    ids=["fixed", "moving", "sliding, this window", "sliding, the one before"],
)
def test_a_window_is_idle_from_then_on_and_no_sooner(window: Window, idle_at: float) -> None:
    assert window.idle_at() == idle_at
    assert window.idle(idle_at)
    assert not window.idle(math.nextafter(idle_at, 0.0))


def test_an_empty_window_is_idle() -> None:
    empty: list[Window] = [FixedWindow(), MovingWindow(10.0), sliding(2, current=0, previous=0)]

    assert all(window.idle(25.0) and window.idle_at() <= 25.0 for window in empty)


@pytest.mark.parametrize(
    "window",
    [
        FixedWindow(count=3, expires_at=30.0),
        moving((15.0, 2), (22.0, 1)),
        sliding(2, current=1, previous=4),
    ],
    ids=["fixed", "moving", "sliding"],
)
def test_a_branch_allows_no_more_than_what_it_came_from(window: Window) -> None:
    branch = window.branch(25.0)

    for at in (25.0, 26.0, 29.9, 30.0, 31.9, 32.0, 40.0):
        for room in range(5):
            assert window.fits(at, room) or not branch.fits(at, room)
