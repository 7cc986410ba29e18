"""What the recorded attempts of one tool show: its tail, its arrivals, its runs of failures.

Pure arithmetic over sorted numbers. Where the data is too thin to say anything, it says nothing.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING

import msgspec

from seawall.contract.span import Outcome
from seawall.orchestration.replay.plan import is_cut, is_sick, was_cancelled

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from seawall.contract.span import Span
    from seawall.recording.trace_file import Recorded

MIN_ATTEMPTS = 200
"""Attempts from which a tail can be told."""

SURE_ATTEMPTS = 1_000
"""Attempts from which its 99.9th percentile can."""

MIN_CALLS = 100
"""Calls from which a rate or a width can be told."""

MIN_FAILURES = 10
"""Failures from which runs can be told."""

MIN_OUTAGES = 4
"""Outages from which their length can."""

GAP = 5.0
"""How many times longer than all others an attempt must take to count as hanging."""

LEAST_HANG_S = 10.0
"""What is over sooner is slow, and no hang; to cut it off and ask again takes as long."""

MOST_HANGING = 0.05


class Tail(msgspec.Struct, frozen=True):
    """How long attempts take that the tool answers."""

    attempts: int
    typical_s: float
    p99_s: float
    tail_s: float
    """The 99.9th percentile; of fewer than a thousand attempts, the longest."""
    hung: int
    """Attempts that were cut off, or took many times longer than all others."""
    longest_s: float = 0.0
    """The longest of the attempts that ended by themselves, failed ones too."""
    growth: float = 1.0
    """How many times longer the rarest tenth of the longest takes: 1.6 is usual, 5 is heavy."""


class Arrivals(msgspec.Struct, frozen=True):
    """How calls come."""

    calls: int
    busiest_per_minute: int
    """Calls within the busiest minute."""
    mean_per_minute: float
    """Over the time in which there were calls, in steps of a minute."""

    def bursts(self, per_second: float, times: Sequence[float]) -> Most:
        """Count the tokens that a bucket filling so fast must hold to grant every call."""
        levels = []
        level, last = 0.0, times[0] if times else 0.0
        for at in times:
            level = max(level - (at - last) * per_second, 0.0) + 1
            levels.append((at, math.ceil(level - 1e-9)))
            last = at
        return most_of(levels)


class Most(msgspec.Struct, frozen=True):
    """The most of something that was seen, and in a usual part of the time."""

    most: int
    usual: int

    def spare(self, headroom: float) -> int:
        """Leave room above it: small numbers vary more than large ones, and some vary much."""
        above = ((headroom - 1) * self.most, 3 * math.sqrt(self.most), 4 * (self.most - self.usual))
        return math.ceil(self.most + max(above))


PARTS = 12


def most_of(levels: Sequence[tuple[float, int]]) -> Most:
    """Tell the most of levels at their times, which are in order, and that of the middle part."""
    if not levels:
        return Most(0, 0)
    first, length = levels[0][0], (levels[-1][0] - levels[0][0]) / PARTS or 1.0
    parts = [0] * (PARTS + 1)
    for at, level in levels:
        part = int((at - first) / length)
        parts[part] = max(parts[part], level)
    seen = sorted(part for part in parts if part)
    return Most(seen[-1], seen[len(seen) // 2])


class Runs(msgspec.Struct, frozen=True):
    """How failures of the infrastructure follow one another."""

    failures: int
    stray: int
    """The longest run of failures that are no outage."""
    outages: int
    outage_s: float
    """How long an outage lasts, the median."""
    failing_s: float = 0.0
    """How long a failing attempt takes, the median."""
    per_second: float = 0.0
    """Attempts in a second."""


def percentile(ordered: Sequence[float], share: float) -> float:
    """Give the smallest value that so many are not above."""
    return ordered[min(max(math.ceil(share * len(ordered)) - 1, 0), len(ordered) - 1)]


def attempts_of(calls: Iterable[Recorded]) -> list[tuple[float, Span]]:
    """Give all attempts with the time of their start, in order."""
    found = [
        (call.arrival_s + span.queue_ms / 1000, span)
        for call in calls
        for span in call.spans
        if span.attempt and not was_cancelled(span)
    ]
    return sorted(found, key=lambda pair: pair[0])


def tail_of(attempts: Sequence[tuple[float, Span]]) -> Tail | None:
    """Tell the tail; None if there are too few."""
    ended = sorted(
        span.duration_ms / 1000
        for _, span in attempts
        if not (span.outcome is Outcome.FAILED and is_sick(span))
    )
    cut = sum(is_cut(span) for _, span in attempts)
    if len(ended) < MIN_ATTEMPTS:
        return None
    kept = _without_hanging(ended)
    return Tail(
        len(attempts),
        percentile(kept, 0.5),
        percentile(kept, 0.99),
        percentile(kept, 0.999),
        cut + len(ended) - len(kept),
        max(span.duration_ms / 1000 for _, span in attempts if not is_cut(span)),
        _growth(kept),
    )


def _growth(ordered: Sequence[float]) -> float:
    """Tell how a tail goes on from one tenth to the next; where it is heavy, without an end."""
    tenths = [percentile(ordered, share) for share in (0.9, 0.99, 0.999)]
    steps = [after / before for before, after in pairwise(tenths) if before > 0]
    return max(steps, default=1.0)


def _without_hanging(ended: Sequence[float]) -> Sequence[float]:
    """Leave out the few at the end that are far from all others."""
    first = math.ceil(len(ended) * (1 - MOST_HANGING))
    for place in range(max(first, 1), len(ended)):
        if ended[place] > GAP * ended[place - 1] and ended[place] > LEAST_HANG_S:
            return ended[:place]
    return ended


def arrivals_of(times: Sequence[float]) -> Arrivals | None:
    """Tell how calls come; None if there are too few."""
    if len(times) < MIN_CALLS:
        return None
    busiest, begin = 0, 0
    for end, at in enumerate(times):
        while times[begin] <= at - 60:
            begin += 1
        busiest = max(busiest, end - begin + 1)
    minutes = len({int(at // 60) for at in times})
    return Arrivals(len(times), busiest, len(times) / minutes)


def runs_of(attempts: Sequence[tuple[float, Span]]) -> Runs | None:
    """Tell the runs of failures; None if there are too few failures."""
    runs: list[tuple[int, float]] = []
    count, began, last = 0, 0.0, 0.0
    for at, span in attempts:
        if span.outcome is Outcome.FAILED and is_sick(span):
            began = at if count == 0 else began
            count += 1
            last = at
        elif count and span.outcome is Outcome.SUCCESS:
            runs.append((count, last - began))
            count = 0
    if count:
        runs.append((count, last - began))
    failures = sum(length for length, _ in runs)
    if failures < MIN_FAILURES:
        return None
    stray = _longest_stray(sorted(length for length, _ in runs))
    outages = sorted(seconds for length, seconds in runs if length > stray)
    failing = sorted(span.duration_ms / 1000 for _, span in attempts if span.reason)
    return Runs(
        failures,
        stray,
        len(outages),
        percentile(outages, 0.5) if outages else 0.0,
        percentile(failing, 0.5),
        len(attempts) / max(attempts[-1][0] - attempts[0][0], 1.0),
    )


_OUTAGE = 8
"""A run that is as long is an outage, whatever the others are like."""


def _longest_stray(lengths: Sequence[int]) -> int:
    """Find where stray failures end and outages begin: at the first gap of more than double."""
    longest = 0
    for length in lengths:
        if length >= _OUTAGE or (longest and length > 2 * longest + 1):
            break
        longest = length
    return longest


def width_of(calls: Iterable[Recorded]) -> Most:
    """Count the attempts under way at once, at the most."""
    events = []
    for call in calls:
        for span in call.spans:
            if span.attempt:
                begin = call.arrival_s + span.queue_ms / 1000
                events += [(begin, 1), (begin + span.duration_ms / 1000, -1)]
    levels, now = [], 0
    for at, step in sorted(events):
        now += step
        levels.append((at, now))
    return most_of(levels)
