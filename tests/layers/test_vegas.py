"""The limit finds what a simulated back end can take, and follows when that changes."""

from __future__ import annotations

import heapq
import itertools
import math
from collections import deque
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seawall.layers.vegas import PROBE_EVERY_S, Vegas

if TYPE_CHECKING:
    from collections.abc import Iterator


class Backend:
    """So many workers, first come, first served; there is always somebody who wants to call."""

    def __init__(self, vegas: Vegas, workers: int, work_s: float) -> None:
        self.vegas = vegas
        self.workers = workers
        self.work_s = work_s
        self.straggle: Iterator[float] = itertools.repeat(1.0)
        self.demand = math.inf
        self.timeout_s = math.inf
        self.at = 0.0
        self.in_flight = self.busy = 0
        self.queue: deque[float] = deque()
        self.ends: list[tuple[float, float]] = []
        self.seen: list[float] = []

    def run(self, seconds: float) -> float:
        """Go on for so long; the mean limit of the last third."""
        until, self.seen = self.at + seconds, []
        self._fill()
        while self.ends and self.ends[0][0] <= until:
            self.at, arrived = heapq.heappop(self.ends)
            self.busy -= 1
            self._told(self.at - arrived)
            self.in_flight -= 1
            self._work()
            self._fill()
            if self.at > until - seconds / 3:
                self.seen.append(self.vegas.limit)
        self.at = until
        return sum(self.seen) / len(self.seen)

    def _told(self, latency_s: float) -> None:
        if latency_s > self.timeout_s:
            self.vegas.drop(self.at, latency_s, self.in_flight)
        else:
            self.vegas.sample(self.at, latency_s, self.in_flight)

    def _fill(self) -> None:
        while self.in_flight < min(int(self.vegas.limit), self.demand):
            self.in_flight += 1
            self.queue.append(self.at)
            self._work()

    def _work(self) -> None:
        while self.queue and self.busy < self.workers:
            self.busy += 1
            takes_s = self.work_s * next(self.straggle)
            heapq.heappush(self.ends, (self.at + takes_s, self.queue.popleft()))


def room_for(workers: int) -> tuple[float, float]:
    """Where the limit should be: the workers are busy, and few wait."""
    return workers * 0.8, workers * 1.25 + 8 * max(math.log10(workers + 8), 1.0) + 3


@settings(max_examples=25, deadline=None)
@given(
    workers=st.integers(2, 100),
    work_s=st.sampled_from([0.02, 0.1, 0.5]),
    share=st.floats(0.1, 2.0),
)
def test_it_converges_where_the_back_end_is_busy_and_follows_as_its_capacity_halves_and_returns(
    workers: int, work_s: float, share: float
) -> None:
    initial = max(round(workers * share), 1)
    backend = Backend(Vegas(initial, 1, 500), workers, work_s)
    rounds = 200 * work_s

    for capacity in (workers, max(workers // 2, 1), workers):
        backend.workers = capacity
        backend.run(rounds)  # on its way
        low, high = room_for(capacity)

        assert low <= backend.run(rounds) <= high


@settings(deadline=None)  # a busy machine may stop for longer than an example takes
@given(st.integers(1, 9), st.integers(10, 30), st.data())
def test_it_stays_within_its_bounds_whatever_it_is_told(
    least: int, most: int, data: st.DataObject
) -> None:
    vegas, at = Vegas(10, least, most), 0.0
    latencies = st.floats(0, 50, allow_nan=False)
    for _ in range(data.draw(st.integers(0, 60))):
        at += data.draw(latencies)
        if data.draw(st.booleans()):
            vegas.sample(at, data.draw(latencies), data.draw(st.integers(1, 99)))
        else:
            vegas.drop(at, data.draw(latencies), data.draw(st.integers(1, 99)))

        assert least <= vegas.limit <= most


def test_a_back_end_that_became_slower_for_good_is_not_taken_for_a_queue() -> None:
    backend = Backend(Vegas(20, 1, 200), 40, 0.1)
    backend.run(20)

    backend.work_s = 0.3
    backend.run(4 * PROBE_EVERY_S)

    low, high = room_for(40)
    assert low <= backend.run(PROBE_EVERY_S) <= high
    assert backend.vegas.base_s == pytest.approx(0.3)


def test_a_beginning_far_too_high_is_mended_by_the_first_probes_of_the_base() -> None:
    backend = Backend(Vegas(200, 1, 500), 10, 0.1)

    backend.run(3 * PROBE_EVERY_S)

    low, high = room_for(10)
    assert low <= backend.run(PROBE_EVERY_S) <= high


def test_stragglers_do_not_lower_it() -> None:
    backend = Backend(Vegas(20, 1, 200), 40, 0.1)
    backend.straggle = itertools.cycle([1.0, 1.1, 1.0, 1.2, 1.0, 1.0, 1.1, 1.0, 1.0, 8.0])

    backend.run(60)

    assert backend.run(60) >= 0.8 * 40


def test_without_demand_it_does_not_grow() -> None:
    backend = Backend(Vegas(20, 1, 200), 100, 0.1)
    backend.demand = 5

    assert backend.run(30) == 20


def test_timeouts_lower_it_by_a_tenth_in_a_round() -> None:
    vegas = Vegas(100, 1, 200)
    for _ in range(100):
        vegas.sample(1.0, 0.1, 1)

    for at in (2.0, 2.01, 2.02, 2.2):
        vegas.drop(at, 0.1, 100)

    assert vegas.limit == pytest.approx(100 * 0.9 * 0.9)


def test_it_goes_down_to_the_least_while_everything_times_out() -> None:
    backend = Backend(Vegas(50, 2, 200), 10, 1.0)
    backend.timeout_s = 0.5

    backend.run(200)

    assert backend.vegas.limit == 2


@pytest.mark.parametrize(("bounds", "limit"), [((1, 10), 10), ((30, 40), 30), ((1, 99), 20)])
def test_other_bounds_hold_at_once(bounds: tuple[int, int], limit: float) -> None:
    vegas = Vegas(20, 1, 200)

    vegas.bound(*bounds)

    assert vegas.limit == limit


def test_a_latency_of_nothing_is_no_queue() -> None:
    vegas = Vegas(1, 1, 10)

    changed = [vegas.sample(at, 0.0, 5) for at in (1.0, 2.0)]

    assert any(changed)
    assert vegas.limit > 1
