"""What a tool would have answered: as recorded where that is known, else as at about that time.

Nothing here is drawn by order: the number that decides is made of the seed, the call and the
attempt, so that a replay is the same whatever else happens in it.
"""

from __future__ import annotations

from bisect import bisect_left
from hashlib import blake2b
from typing import TYPE_CHECKING

import msgspec

from seawall.contract.failure import REASONS, Failure, FailureCode
from seawall.contract.span import Outcome

if TYPE_CHECKING:
    from collections.abc import Iterable

    from seawall.contract.span import Span
    from seawall.recording.trace_file import Recorded

NEIGHBOURS = 32
"""Attempts of about the same time among which one is drawn where nothing was recorded."""

HANG_S = 3_600.0
"""After which an attempt that was only ever cut off fails, where no timeout ends it."""

_CUT = frozenset({"attempt_timeout", "deadline_exceeded"})
_SICK = frozenset({"attempt_timeout", "transport", "tool_timeout", "tool_failed"})
_CANCELLED = frozenset({"cancelled", "aborted"})

_LEAST_WAIT_MS = 5.0
"""Less between an attempt and the end of its call is work, not waiting."""

_JUST_WITHIN = 1 - 1e-9

CRASH = "transport"
"""How failures of the infrastructure are made again, whatever their reason was."""


class Step(msgspec.Struct, frozen=True, gc=False):
    """One attempt: how long, and what came of it."""

    seconds: float
    reason: str = ""
    sick: bool = False
    retryable: bool = True
    retry_after_s: float | None = None
    linger_s: float = 0.0
    """How long it takes to end once it is cancelled, or the loop to do so."""

    def failure(self) -> Failure | None:
        """Give the failure with which it ends; None for an answer."""
        if not self.reason:
            return None
        code = REASONS.get(self.reason, FailureCode.EXECUTION_FAILED)
        if self.sick or code is FailureCode.TIMEOUT:
            code = FailureCode.EXECUTION_FAILED
        return Failure(
            code=code,
            reason=CRASH if self.sick else self.reason,
            message="as recorded",
            retryable=self.retryable,
            retry_after_s=self.retry_after_s,
        )


def fraction(seed: int, call_id: str, attempt: int, what: str = "") -> float:
    """Draw a number from 0 to 1 that depends on nothing but these."""
    text = f"{seed}\0{call_id}\0{attempt}\0{what}".encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(text, digest_size=7).digest()) / (1 << 56)


def is_sick(span: Span) -> bool:
    """Whether a failed attempt speaks of the tool's health."""
    return span.health == "infrastructure" or (not span.health and span.reason in _SICK)


def is_cut(span: Span) -> bool:
    """Whether an attempt was ended before it ended by itself."""
    return span.reason in _CUT


def was_cancelled(span: Span) -> bool:
    """Whether its caller gave it up."""
    return span.reason in _CANCELLED


class Samples:
    """The attempts of one tool that were recorded, in the order of their time."""

    def __init__(self, calls: Iterable[Recorded]) -> None:
        found = sorted(
            (call.arrival_s + span.queue_ms / 1000, number, span)
            for number, (call, span) in enumerate(
                (call, span) for call in calls for span in call.spans if span.attempt
            )
            if span.reason not in _CANCELLED
        )
        self._times = [time for time, _, _ in found]
        self._spans = [span for _, _, span in found]
        self._ended = sorted(
            span.duration_ms / 1000 for span in self._spans if span.reason not in _CUT
        )

    def near(self, at: float, share: float) -> Span | None:
        """Draw one of about this time."""
        if not self._spans:
            return None
        begin = max(bisect_left(self._times, at) - NEIGHBOURS // 2, 0)
        among = self._spans[begin : begin + NEIGHBOURS] or self._spans[-NEIGHBOURS:]
        return among[min(int(share * len(among)), len(among) - 1)]

    def beyond(self, seconds: float, share: float) -> float:
        """Draw how long an attempt takes that was cut off after so many seconds."""
        begin = bisect_left(self._ended, seconds)
        longer = self._ended[begin:]
        cut = sum(1 for span in self._spans if span.reason in _CUT) if longer else 0
        # Of those that ran so long, as many as were cut off are taken to hang.
        place = int(share * (len(longer) + cut))
        return longer[place] if place < len(longer) else HANG_S


class Plan:
    """What is done again of one call."""

    __slots__ = ("call", "limit_s", "made", "samples", "seed", "tried")

    def __init__(
        self, call: Recorded, samples: Samples, seed: int, limit_s: float | None = None
    ) -> None:
        self.call = call
        self.samples = samples
        self.seed = seed
        self.limit_s = limit_s
        """The timeout that was recorded under: what ended by itself was within it."""
        self.made: Step | None = None
        """The last step that was played."""
        self.tried = 0
        """Attempts that were begun."""

    def step(self, attempt: int, at: float) -> Step:
        """Give what the tool does in an attempt, recorded or drawn."""
        spans = self.call.spans
        span = next((one for one in spans if one.attempt == attempt), None)
        if span is None:
            share = fraction(self.seed, self.call.call_id, attempt, "which")
            span = self.samples.near(at, share)
        if span is None:
            return Step(0.0)
        return self._of(span, attempt)

    def _of(self, span: Span, attempt: int) -> Step:
        seconds = span.duration_ms / 1000
        if span.reason not in _CUT and self.limit_s is not None and seconds >= self.limit_s:
            # A loop that was late measured too much; the attempt was in time all the same.
            seconds = self.limit_s * _JUST_WITHIN
        if span.outcome is Outcome.SUCCESS:
            return Step(seconds)
        if span.reason in _CANCELLED:
            return Step(HANG_S, "transport", sick=True)
        if span.reason in _CUT:
            share = fraction(self.seed, self.call.call_id, attempt, "beyond")
            found = self.samples.beyond(seconds, share)
            late_s = 0.0 if self.limit_s is None else max(seconds - self.limit_s, 0.0)
            late_s = late_s if span.reason == "attempt_timeout" else 0.0
            reason = "" if found < HANG_S else "transport"
            return Step(found, reason, sick=bool(reason), linger_s=late_s)
        return Step(seconds, span.reason, is_sick(span), span.retryable, span.retry_after_s)

    def wait_s(self, retry: int, low: float, high: float) -> float:
        """Give the wait before retry number `retry`, from 1: as it was, else drawn."""
        gap_s = self._gap_s(retry)
        # A loop wakes a little late; what is far above is from another policy.
        if gap_s is not None and low <= gap_s <= high * 1.05 + 0.05:
            return min(gap_s, high)
        return low + (high - low) * fraction(self.seed, self.call.call_id, retry, "wait")

    def _gap_s(self, retry: int) -> float | None:
        """Find how long it was waited after an attempt: for the next, or for its refusal."""
        before = next((span for span in self.call.spans if span.attempt == retry), None)
        if before is None:
            return None
        ended_ms = before.queue_ms + before.duration_ms
        if before is not self.call.spans[-1]:
            after = self.call.spans[self.call.spans.index(before) + 1]
            return (after.queue_ms - ended_ms) / 1000
        end = self.call.end
        # A circuit that opened meanwhile refuses an attempt without a span.
        waited_ms = 0.0 if end is None else end.elapsed_ms - ended_ms
        return waited_ms / 1000 if waited_ms > _LEAST_WAIT_MS else None

    @property
    def cancelled_after_s(self) -> float | None:
        """Seconds from its arrival until the caller cancelled it; None if it did not."""
        if self.call.reason not in _CANCELLED or not self.call.spans:
            return None
        last = self.call.spans[-1]
        return (last.queue_ms + last.duration_ms) / 1000
