"""What is counted of one tool: plain integers and lists, so that a call pays almost nothing.

A counter object of `prometheus_client` costs more than the rest of the recording together;
these are turned into its samples only when somebody scrapes.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, NamedTuple

from seawall.contract.failure import REASONS, FailureCode
from seawall.contract.span import Outcome
from seawall.recording.families import OTHER
from seawall.recording.gauges import encodable

if TYPE_CHECKING:
    from collections.abc import Callable

    from seawall.contract.span import Span
    from seawall.pipeline.recorder import Finished, OnAttempt, OnSuccess

BOUNDS_S = (
    *(0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5),
    *(1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0),
)
"""Upper bounds of the duration buckets: those of the MCP conventions, and two for fast tools."""

OUTCOMES = tuple(Outcome)
"""In the order in which they are counted; success is first."""

CIRCUIT_STATES = ("closed", "open", "half_open")

MAX_PAIRS = 32
"""Pairs of labels kept for one tool and one metric; what comes later counts as `other`."""

ALWAYS_KEPT = frozenset(
    [
        *(("breaker", state) for state in CIRCUIT_STATES),
        ("hooks", "failed"),
        ("output_check", "invalid"),
    ]
)
"""Events with a metric of their own, which nothing that came before can crowd out."""

PER_TOOL = 4 + 4 + 1 + 3 * (len(BOUNDS_S) + 3) + 3 * (MAX_PAIRS + 1) + len(ALWAYS_KEPT) + 5 + 7
"""Series of one tool at most: calls, attempts, retries, three histograms, refusals, failures and
events, the metrics made of events, and what is read of a pipeline."""

PER_PIPELINE = 2 + (4 + 1) + (MAX_PAIRS + 1) + 1 + 2 + 1 + 1
"""Series of no tool at most: suggestions, loop stops, fallbacks, audit, approvals, version,
threads."""

STORE_EVENT = "store_"
"""How an event begins that says what was done without a store: `store_fail_open`."""

Pairs = dict[tuple[str, str], int]

_FAILED = Outcome.FAILED
_PLACE = {outcome: place for place, outcome in enumerate(OUTCOMES)}
_BUCKETS = len(BOUNDS_S) + 1
_SHORTEST_S = BOUNDS_S[0]
_SHORTEST_MS = _SHORTEST_S * 1000
_LONGEST_LABEL = 64


class Durations:
    """A histogram: how many observations fell into each bucket, their sum, and the newest ones."""

    __slots__ = ("buckets", "newest", "total_s")

    def __init__(self) -> None:
        self.buckets = [0] * _BUCKETS
        """One more than there are bounds."""
        self.newest: list[tuple[str, float] | None] = [None] * _BUCKETS
        """Of each bucket the newest call's id and duration; not of the fastest calls."""
        self.total_s = 0.0

    def observe(self, seconds: float, call_id: str = "") -> None:
        """Count one duration."""
        if 0 < seconds <= _SHORTEST_S:
            self.buckets[0] += 1
            self.total_s += seconds
            return
        place = bisect_left(BOUNDS_S, seconds)
        self.buckets[place] += 1
        if place:
            self.newest[place] = (call_id, seconds)
        if seconds > 0:  # also keeps what is not a number out of the sum
            self.total_s += seconds

    def add_short(self, count: int, total_s: float) -> None:
        """Count some of at most `BOUNDS_S[0]`."""
        self.buckets[0] += count
        self.total_s += total_s

    def absorb(self, other: Durations) -> None:
        """Add what another one holds."""
        for place, count in enumerate(other.buckets):
            self.buckets[place] += count
            self.newest[place] = other.newest[place] or self.newest[place]
        self.total_s += other.total_s


DETECTORS = ("repeat", "cycle_2", "cycle_3", "judge")
"""Who finds loops."""


class PipelineCounts:
    """What is counted of no tool in particular; it only ever grows."""

    __slots__ = ("audit_failures", "fallbacks", "loop_stops", "suggested", "unknown")

    def __init__(self) -> None:
        self.unknown = 0
        """Calls of names that nobody registered."""
        self.suggested = {True: 0, False: 0}
        """Those of them that were told a near name, and those for which there was none."""
        self.audit_failures = 0
        self.loop_stops = dict.fromkeys(DETECTORS, 0)
        self.fallbacks: Pairs = {}
        """By store and mode."""

    def called_unknown(self) -> None:
        """Count a call of a name that nobody registered."""
        self.unknown += 1

    def answered_unknown(self, *, near: bool) -> None:
        """Count by whether a near name could be told."""
        self.suggested[near] += 1

    def stopped(self, detector: str) -> None:
        """Count a call that was refused because the model repeats itself."""
        known = detector if detector in DETECTORS else OTHER
        self.loop_stops[known] = self.loop_stops.get(known, 0) + 1

    def fell_back(self, store: str, mode: str) -> None:
        """Count that something was done without a store."""
        add(self.fallbacks, (label(store), label(mode)), 1)

    def lost_audit(self) -> None:
        """Count an entry of the audit log that could not be written."""
        self.audit_failures += 1


_HEDGED = "hedge:extra"
"""The verdict on an attempt that was begun beside another, which is no retry."""


class ToolCounts:
    """Everything that is counted of one tool; it only ever grows."""

    __slots__ = (
        "_quick",
        "attempt_durations",
        "attempts",
        "call_durations",
        "calls",
        "events",
        "failures",
        "on_attempt",
        "on_success",
        "queue_durations",
        "refusals",
        "retries",
        "shared",
    )

    def __init__(self, shared: PipelineCounts | None = None) -> None:
        self.shared = PipelineCounts() if shared is None else shared
        self.calls = [0, 0, 0, 0]
        """By outcome, in the order of `OUTCOMES`."""
        self.attempts = [0, 0, 0, 0]
        self.retries = 0
        self.call_durations = Durations()
        self.attempt_durations = Durations()
        self.queue_durations = Durations()
        self.refusals: Pairs = {}
        """By layer and reason."""
        self.failures: Pairs = {}
        """By code and reason."""
        self.events: Pairs = {}
        """By layer and event."""
        self.on_attempt, self.on_success, self._quick = _counting_quick(
            self._attempted, self._succeeded
        )

    def settled(self) -> ToolCounts:
        """All that was counted until now; what is quick is kept apart, as most of it is."""
        quick = self._quick()
        if not (quick.first or quick.again or quick.failed):
            return self
        whole = ToolCounts(self.shared)
        whole.absorb(self)
        return whole

    def _succeeded(self, span: Span) -> None:
        self._attempted(span)
        self.calls[0] += 1
        self.call_durations.observe((span.queue_ms + span.duration_ms) / 1000, span.call_id)

    def _attempted(self, span: Span) -> None:
        """Count an attempt; the span of a call refused before its first is none."""
        if span.attempt == 0:
            return
        self.attempts[_PLACE[span.outcome]] += 1
        self.attempt_durations.observe(span.duration_ms / 1000, span.call_id)
        if span.attempt > 1:
            self.retries += _HEDGED not in span.verdicts
        else:
            self.queue_durations.observe(span.queue_ms / 1000, span.call_id)

    def on_call(self, finished: Finished) -> None:
        """Count a call that ended."""
        self.call_durations.observe(finished.elapsed_s, finished.call_id)
        self.calls[_PLACE[finished.outcome]] += 1
        self._say_why(finished)

    def on_event(self, layer: str, event: str) -> None:
        """Count what a layer did."""
        pair = (layer, event)
        known = self.events.get(pair)
        if known is not None:
            self.events[pair] = known + 1
        else:
            add(self.events, (label(layer), label(event)), 1)
        if event.startswith(STORE_EVENT):
            self.shared.fell_back(layer, event.removeprefix(STORE_EVENT))

    def absorb(self, other: ToolCounts) -> None:
        """Add what was counted of another tool, for which there is no room of its own."""
        quick = other._quick()
        count = quick.first + quick.again
        self.calls[0] += count
        self.attempts[0] += count
        self.attempts[_PLACE[_FAILED]] += quick.failed
        self.retries += quick.again
        self.queue_durations.add_short(quick.first + quick.failed, quick.queue_s)
        self.attempt_durations.add_short(count + quick.failed, quick.attempts_s)
        self.call_durations.add_short(count, quick.calls_s)
        for place, count in enumerate(other.calls):
            self.calls[place] += count
        for place, count in enumerate(other.attempts):
            self.attempts[place] += count
        self.retries += other.retries
        self.call_durations.absorb(other.call_durations)
        self.attempt_durations.absorb(other.attempt_durations)
        self.queue_durations.absorb(other.queue_durations)
        for own, others in (
            (self.refusals, other.refusals),
            (self.failures, other.failures),
            (self.events, other.events),
        ):
            for pair, count in others.items():
                add(own, pair, count)

    def _say_why(self, finished: Finished) -> None:
        if finished.outcome is Outcome.DENIED:
            add(self.refusals, refusal_of(finished), 1)
        elif finished.outcome is Outcome.FAILED:
            add(self.failures, failure_of(finished), 1)


class _Quick(NamedTuple):
    """What took a moment, waiting and all: calls that went well, and first attempts that failed."""

    first: int
    """Calls that went well with their first attempt."""
    again: int
    """Those that did with a later one, which was no hedge."""
    failed: int
    """First attempts that failed."""
    queue_s: float
    """What the first attempts waited."""
    attempts_s: float
    calls_s: float
    """Of those that went well."""


def _counting_quick(
    attempted: Callable[[Span], None], succeeded: Callable[[Span], None]
) -> tuple[OnAttempt, OnSuccess, Callable[[], _Quick]]:
    """Give what counts attempts and successes, and what reads those that took a moment.

    Of all that is counted only this runs for nearly every call, so it is variables of a closure;
    what takes longer goes on to the functions that are given.
    """
    first, queue_ms, first_ms = 0, 0.0, 0.0
    again, before_ms, again_ms = 0, 0.0, 0.0
    failed, waited_ms, failed_ms = 0, 0.0, 0.0

    def on_attempt(span: Span) -> None:
        nonlocal failed, waited_ms, failed_ms
        queued, took = span.queue_ms, span.duration_ms
        brief = queued + took <= _SHORTEST_MS and queued > 0 and took > 0
        if brief and span.attempt == 1 and span.outcome is _FAILED:
            failed += 1
            waited_ms += queued
            failed_ms += took
        else:
            attempted(span)

    def on_success(span: Span, _: float) -> None:
        nonlocal first, queue_ms, first_ms, again, before_ms, again_ms
        queued, took, number = span.queue_ms, span.duration_ms, span.attempt
        if not (queued + took <= _SHORTEST_MS and queued > 0.0 and took > 0.0):
            succeeded(span)
        elif number == 1:
            first += 1
            queue_ms += queued
            first_ms += took
        elif number == 0 or _HEDGED in span.verdicts:
            succeeded(span)
        else:
            again += 1
            before_ms += queued
            again_ms += took

    def read() -> _Quick:
        return _Quick(
            first,
            again,
            failed,
            queue_s=(queue_ms + waited_ms) / 1000,
            attempts_s=(first_ms + again_ms + failed_ms) / 1000,
            calls_s=(queue_ms + first_ms + before_ms + again_ms) / 1000,
        )

    return on_attempt, on_success, read


def refusal_of(finished: Finished) -> tuple[str, str]:
    """Which layer refused a call, and why."""
    return label(finished.layer), _reason(finished)


def failure_of(finished: Finished) -> tuple[str, str]:
    """Code and reason of a call that failed."""
    result = finished.result
    if result is not None and result.failure is not None:
        return result.failure.code.value, _reason(finished)
    return REASONS.get(finished.reason, FailureCode.UNKNOWN).value, _reason(finished)


def _reason(finished: Finished) -> str:
    return finished.reason if finished.reason in REASONS else OTHER


def label(text: str) -> str:
    """Make a label of a name that code gave: short, and one that UTF-8 can say."""
    return encodable(text[:_LONGEST_LABEL]) or OTHER


def kept(pairs: Pairs, pair: tuple[str, str]) -> tuple[str, str]:
    """Give the pair under which to count: `other` if it is new and there are enough already."""
    if pair in pairs or len(pairs) < MAX_PAIRS or pair in ALWAYS_KEPT:
        return pair
    return OTHER, OTHER


def add(pairs: Pairs, pair: tuple[str, str], count: int) -> None:
    """Count a pair, within the bound."""
    pair = kept(pairs, pair)
    pairs[pair] = pairs.get(pair, 0) + count
