"""What is counted of one tool: plain integers and lists, so that a call pays almost nothing.

A counter object of `prometheus_client` costs more than the rest of the recording together;
these are turned into its samples only when somebody scrapes.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

from seawall.contract.failure import REASONS, FailureCode
from seawall.contract.span import Outcome
from seawall.recording.gauges import encodable

if TYPE_CHECKING:
    from seawall.contract.span import Span
    from seawall.pipeline.recorder import Finished

BOUNDS_S = (
    *(0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5),
    *(1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0),
)
"""Upper bounds of the duration buckets: those of the MCP conventions, and two for fast tools."""

OUTCOMES = tuple(Outcome)
"""In the order in which they are counted; success is first."""

MAX_PAIRS = 64
"""Pairs of labels kept for one tool and one metric; what comes later counts as `other`."""

OTHER = "other"

OTHER_TOOL = "_OTHER"
"""The label of all names that nobody registered."""

RETIRED_TOOL = "_RETIRED"
"""The label of unregistered tools for which there is no room of their own."""

Pairs = dict[tuple[str, str], int]

_PLACE = {outcome: place for place, outcome in enumerate(OUTCOMES)}
_SUCCESS = Outcome.SUCCESS
_BUCKETS = len(BOUNDS_S) + 1
_LONGEST_LABEL = 64


class Durations:
    """A histogram: how many observations fell into each bucket, and their sum."""

    __slots__ = ("buckets", "total_s")

    def __init__(self) -> None:
        self.buckets: list[int] | None = None
        """One more than there are bounds; None while nothing was observed."""
        self.total_s = 0.0

    def observe(self, seconds: float) -> None:
        """Count one duration."""
        buckets = self.buckets
        if buckets is None:
            buckets = self.buckets = [0] * _BUCKETS
        buckets[bisect_left(BOUNDS_S, seconds)] += 1
        if seconds > 0:  # also keeps what is not a number out of the sum
            self.total_s += seconds

    def absorb(self, other: Durations) -> None:
        """Add what another one holds."""
        if other.buckets is not None:
            own = self.buckets or [0] * _BUCKETS
            self.buckets = [a + b for a, b in zip(own, other.buckets, strict=True)]
            self.total_s += other.total_s


class ToolCounts:
    """Everything that is counted of one tool; it only ever grows."""

    __slots__ = (
        "attempt_durations",
        "attempts",
        "call_durations",
        "calls",
        "events",
        "failures",
        "refusals",
        "retries",
    )

    def __init__(self) -> None:
        self.calls = [0, 0, 0, 0]
        """By outcome, in the order of `OUTCOMES`."""
        self.attempts = [0, 0, 0, 0]
        self.retries = 0
        self.call_durations = Durations()
        self.attempt_durations = Durations()
        self.refusals: Pairs = {}
        """By layer and reason."""
        self.failures: Pairs = {}
        """By code and reason."""
        self.events: Pairs = {}
        """By layer and event."""

    def on_attempt(self, span: Span) -> None:
        """Count an attempt; the span of a call refused before its first is none."""
        number = span.attempt
        if number == 0:
            return
        self.attempts[_PLACE[span.outcome]] += 1
        if number > 1:
            self.retries += 1
        self.attempt_durations.observe(span.duration_ms / 1000)

    def on_call(self, finished: Finished) -> None:
        """Count a call that ended."""
        outcome = finished.outcome
        self.calls[_PLACE[outcome]] += 1
        self.call_durations.observe(finished.elapsed_s)
        if outcome is not _SUCCESS:
            self._say_why(finished)

    def on_event(self, layer: str, event: str) -> None:
        """Count what a layer did."""
        pair = (layer, event)
        if pair in self.events:
            self.events[pair] += 1
        else:
            _add(self.events, (_label(layer), _label(event)), 1)

    def absorb(self, other: ToolCounts) -> None:
        """Add what was counted of another tool, for which there is no room of its own."""
        self.calls = [a + b for a, b in zip(self.calls, other.calls, strict=True)]
        self.attempts = [a + b for a, b in zip(self.attempts, other.attempts, strict=True)]
        self.retries += other.retries
        self.call_durations.absorb(other.call_durations)
        self.attempt_durations.absorb(other.attempt_durations)
        for own, others in (
            (self.refusals, other.refusals),
            (self.failures, other.failures),
            (self.events, other.events),
        ):
            for pair, count in others.items():
                _add(own, pair, count)

    def _say_why(self, finished: Finished) -> None:
        reason = finished.reason if finished.reason in REASONS else OTHER
        if finished.outcome is Outcome.DENIED:
            _add(self.refusals, (_label(finished.layer), reason), 1)
        elif finished.outcome is Outcome.FAILED:
            _add(self.failures, (_code(finished), reason), 1)


def _code(finished: Finished) -> str:
    result = finished.result
    if result is not None and result.failure is not None:
        return result.failure.code.value
    return REASONS.get(finished.reason, FailureCode.UNKNOWN).value


def _label(text: str) -> str:
    return encodable(text[:_LONGEST_LABEL]) or OTHER


def _add(pairs: Pairs, pair: tuple[str, str], count: int) -> None:
    if pair not in pairs and len(pairs) >= MAX_PAIRS:
        pair = (OTHER, OTHER)
    pairs[pair] = pairs.get(pair, 0) + count
