"""What a tool would have answered: as recorded where that is known, else as at about that time.

Nothing here is drawn by order: the number that decides is made of the seed, the call and the
attempt, so that a replay is the same whatever else happens in it.

A busy loop wakes later than it was asked to. How much later was recorded, and is part of what is
played again: where a replay is where the recording was, everything happens at the very instants
that were recorded.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from hashlib import blake2b
from typing import TYPE_CHECKING

import msgspec

from seawall.contract.failure import REASONS, Failure, FailureCode
from seawall.contract.span import Outcome

if TYPE_CHECKING:
    from collections.abc import Iterable

    from seawall.contract.span import Instants, Span
    from seawall.recording.trace_file import Recorded

NEIGHBOURS = 32
"""Attempts of about the same time among which one is drawn where nothing was recorded."""

HANG_S = 3_600.0
"""After which an attempt that was only ever cut off fails, where no timeout ends it."""

NEAR_S = 1e-3
"""A replay that is so near to what was recorded goes on from what was recorded."""

_CUT = frozenset({"attempt_timeout", "deadline_exceeded"})
_SICK = frozenset({"attempt_timeout", "transport", "tool_timeout", "tool_failed"})
CANCELLED = frozenset({"cancelled", "aborted"})

_JUST_WITHIN = 1 - 1e-9

CRASH = "transport"
"""How failures of the infrastructure are made again, whatever their reason was."""


class Limits(msgspec.Struct, frozen=True, gc=False):
    """The limits of time that a tool was recorded under, where they are known."""

    timeout_s: float | None = None
    deadline_s: float | None = None


class Step(msgspec.Struct, frozen=True, gc=False):
    """One attempt: how long, and what came of it."""

    seconds: float
    reason: str = ""
    sick: bool = False
    retryable: bool = True
    retry_after_s: float | None = None
    late_s: float = 0.0
    """How long after its own end, or its being cut off, the loop came to it."""
    cut: bool = False
    """Whether that is about its being cut off."""

    def failure(self) -> Failure:
        """Give the failure with which it ends, if it has a reason to."""
        code = REASONS.get(self.reason, FailureCode.EXECUTION_FAILED)
        if self.sick or code is FailureCode.TIMEOUT:
            code = FailureCode.EXECUTION_FAILED
        return Failure(
            code=code,
            reason=CRASH if self.sick else self.reason,
            message=self.reason,
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
    return span.reason in CANCELLED


class Samples:
    """The attempts of one tool that were recorded, in the order of their time."""

    def __init__(self, calls: Iterable[Recorded]) -> None:
        found = sorted(
            (call.arrival_s + span.queue_ms / 1000, number, span)
            for number, (call, span) in enumerate(
                (call, span) for call in calls for span in call.spans if span.attempt
            )
            if span.reason not in CANCELLED
        )
        self._times = [time for time, _, _ in found]
        self._spans = [span for _, _, span in found]
        self._ended = sorted(
            span.duration_ms / 1000 for span in self._spans if span.reason not in _CUT
        )
        self._cut = len(self._spans) - len(self._ended)

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
        longer = len(self._ended) - begin
        # Of those that ran so long, as many as were cut off are taken to hang.
        place = int(share * (longer + self._cut)) if longer else 0
        return self._ended[begin + place] if place < longer else HANG_S


class Plan:
    """What is done again of one call."""

    __slots__ = ("call", "limits", "samples", "seed", "step", "tried")

    def __init__(
        self, call: Recorded, samples: Samples, seed: int, limits: Limits | None = None
    ) -> None:
        self.call = call
        self.samples = samples
        self.seed = seed
        self.limits = limits or Limits()
        """What was recorded under: what ended by itself was within it."""
        self.step: Step | None = None
        """The last step that was played."""
        self.tried = 0
        """Attempts that were begun."""

    def play(self, attempt: int, at: float) -> Step:
        """Begin an attempt: give what the tool does in it, recorded or drawn."""
        self.tried = max(attempt, self.tried)
        span = self._span(attempt)
        known = span is not None
        if span is None:
            share = fraction(self.seed, self.call.call_id, attempt, "which")
            span = self.samples.near(at, share)
        self.step = Step(0.0) if span is None else self._of(span, attempt, known=known)
        return self.step

    def _span(self, attempt: int) -> Span | None:
        spans = self.call.spans
        if attempt <= len(spans) and spans[attempt - 1].attempt == attempt:
            return spans[attempt - 1]
        return next((span for span in spans if span.attempt == attempt), None)

    def _of(self, span: Span, attempt: int, *, known: bool) -> Step:
        seconds = span.duration_ms / 1000
        if span.reason in _CUT and (span.instants is None or span.instants.silent_ms is None):
            return self._cut(span, attempt, seconds)
        if span.reason in CANCELLED:
            found = self._beyond(attempt, seconds)
            return Step(found, CRASH, sick=True) if found >= HANG_S else Step(found)
        limit_s = self._limit_s(span) if known else self.limits.timeout_s
        late_s = 0.0
        if limit_s is not None and seconds >= limit_s:
            # A loop that was late measured too much; the attempt was in time all the same.
            seconds, late_s = limit_s * _JUST_WITHIN, seconds - limit_s
        if span.outcome is Outcome.SUCCESS:
            return Step(seconds, late_s=late_s)
        sick = is_sick(span)
        return Step(seconds, span.reason, sick, span.retryable, span.retry_after_s, late_s)

    def _cut(self, span: Span, attempt: int, seconds: float) -> Step:
        instants = span.instants
        limit_s = self.limits.timeout_s
        if instants is not None and instants.limit_ms is not None:
            limit_s = instants.limit_ms / 1000
            seconds = max(seconds, limit_s)
        elif span.reason != "attempt_timeout":
            limit_s = None
        late_s = 0.0 if limit_s is None else max(seconds - limit_s, 0.0)
        found = self._beyond(attempt, seconds)
        reason = "" if found < HANG_S else CRASH
        return Step(found, reason, sick=bool(reason), late_s=late_s, cut=True)

    def _beyond(self, attempt: int, seconds: float) -> float:
        share = fraction(self.seed, self.call.call_id, attempt, "beyond")
        return self.samples.beyond(seconds, share)

    def _limit_s(self, span: Span) -> float | None:
        """Give the limit that an attempt of this call was within."""
        limit_s, deadline_s = self.limits.timeout_s, self.limits.deadline_s
        own = self.call.spans[0].instants
        if own is not None and own.timeout_ms is not None:
            limit_s = own.timeout_ms / 1000
        if own is not None and own.deadline_ms is not None:
            deadline_s = own.deadline_ms / 1000
        if deadline_s is None:
            return limit_s
        left_s = deadline_s - span.queue_ms / 1000
        return left_s if limit_s is None else min(limit_s, left_s)

    @property
    def own_timeout_s(self) -> float | None:
        """The limit that the caller gave for each attempt."""
        own = self.call.spans[0].instants
        return None if own is None or own.timeout_ms is None else own.timeout_ms / 1000

    def deadline_s(self, policy_s: float | None) -> float | None:
        """Seconds from its entering until its deadline: its own, or that of a policy."""
        own = self.call.spans[0].instants
        if own is not None and own.deadline_ms is not None:
            policy_s = own.deadline_ms / 1000
        if policy_s is None:
            return None
        return max(policy_s - entered_ms(self.call) / 1000, _AT_ONCE_S)

    def begins_at(self, attempt: int, now: float) -> float:
        """Tell when an attempt is begun that could be begun now."""
        span = self._span(attempt)
        if attempt == 1 and span is not None and self._is_slight(span):
            return now
        if span is None:
            asked_ms, lag_ms = self._asked_without_attempt(attempt)
            if asked_ms is None:
                return now
        else:
            asked_ms = _asked_ms(span)
            lag_ms = asked_ms - self._ready_ms(attempt, span.instants)
        return self._on_track(now + max(lag_ms, 0.0) / 1000, asked_ms)

    def _is_slight(self, span: Span) -> bool:
        """Whether nothing decided on a first attempt after it entered but moments ago."""
        instants = span.instants
        if instants is not None:
            if instants.asked_ms is not None or instants.lined_ms is not None:
                return False
            if instants.limit_ms is not None and instants.limit_ms > span.duration_ms:
                return False
        return span.rated_ms is None or span.queue_ms - span.rated_ms < _SLIGHT_MS

    def over_at(self, attempt: int, now: float, seconds: float) -> float:
        """Tell when an attempt that begins now is over."""
        when, span = now + seconds, self._span(attempt)
        if span is None or span.reason in _CUT or (self.step is not None and self.step.late_s):
            return when
        recorded = self.call.arrival_s + (span.queue_ms + span.duration_ms) / 1000
        if abs(when - recorded) > _SLIGHT_MS / 1000:
            return when
        limit_s = self._limit_s(span)
        return recorded if limit_s is None else min(recorded, now + limit_s * _JUST_WITHIN)

    def _ready_ms(self, attempt: int, instants: Instants | None) -> float:
        """When an attempt could have begun in a loop that is never busy."""
        if attempt == 1:
            admitted_ms = None if instants is None else instants.admitted_ms
            return entered_ms(self.call) if admitted_ms is None else admitted_ms
        if instants is None or instants.wait_ms is None:
            return math.inf  # it was begun beside another, which says by itself when
        before = [span for span in self.call.spans if span.attempt < attempt]
        ended_ms = max((span.queue_ms + span.duration_ms for span in before), default=0.0)
        return ended_ms + instants.wait_ms

    def _asked_without_attempt(self, attempt: int) -> tuple[float | None, float]:
        """When the breaker was asked for an attempt that it then refused, and how late that was."""
        call = self.call
        if attempt == 1:
            instants = call.spans[0].instants
            asked_ms = None if instants is None else instants.asked_ms
        else:
            instants = None if call.end is None else call.end.instants
            refused = instants is not None and instants.wait_ms is not None
            if not refused or call.end is None or instants is None:
                return None, 0.0
            asked_ms = call.end.elapsed_ms if instants.asked_ms is None else instants.asked_ms
        if asked_ms is None or attempt != call.attempts + 1:
            return None, 0.0
        return asked_ms, asked_ms - self._ready_ms(attempt, instants)

    def ends_at(self, attempt: int, now: float, *, cut: bool) -> float:
        """Tell when the end of an attempt is taken notice of that has ended, or was cut off."""
        step, span = self.step, self._span(attempt)
        late_s = 0.0 if step is None or step.cut is not cut else step.late_s
        if span is None:
            return now + late_s
        instants = span.instants
        settled_ms = None if instants is None else instants.settled_ms
        ended_ms = span.queue_ms + span.duration_ms if settled_ms is None else settled_ms
        return self._on_track(now + late_s, ended_ms)

    def is_plain(self, attempt: int) -> bool:
        """Whether an attempt begins when it is asked for, and ends when it is over."""
        span = self._span(attempt)
        if span is None:
            return True
        if span.reason in _CUT:
            return False
        limit_s = self.limits.timeout_s
        if limit_s is not None and span.duration_ms >= limit_s * 1000:
            return False
        return span.instants is None or span.instants.settled_ms is None

    def _on_track(self, when: float, recorded_ms: float) -> float:
        recorded = self.call.arrival_s + recorded_ms / 1000
        return recorded if abs(when - recorded) < NEAR_S else when

    def wait_s(self, low: float, high: float) -> float:
        """Give the wait before the next attempt: as it was, else drawn."""
        after = self._span(self.tried + 1)
        end = self.call.end
        instants = after.instants if after else None if end is None else end.instants
        if instants is not None and instants.wait_ms is not None:
            wait_s = instants.wait_ms / 1000
            if low <= wait_s <= high * (1 + 1e-9):
                return min(wait_s, high)
        return low + (high - low) * fraction(self.seed, self.call.call_id, self.tried, "wait")

    @property
    def cancelled_at(self) -> float | None:
        """When its caller cancelled it; None if that did not happen."""
        call = self.call
        if call.reason not in CANCELLED:
            return None
        last = call.spans[-1]
        elapsed_ms = last.queue_ms + last.duration_ms if call.end is None else call.end.elapsed_ms
        return call.arrival_s + elapsed_ms / 1000


_AT_ONCE_S = 1e-9

_SLIGHT_MS = 0.1
"""An attempt may be played so much too early, and its end be right, where no breaker looks."""


def _asked_ms(span: Span) -> float:
    """When a begun attempt was decided upon."""
    instants = span.instants
    if instants is None:
        return span.queue_ms
    if instants.limit_ms is not None:
        # A process that was halted meanwhile begins after the limit was set.
        return span.queue_ms + min(span.duration_ms - instants.limit_ms, 0.0)
    return span.queue_ms if instants.asked_ms is None else instants.asked_ms


def entered_ms(call: Recorded) -> float:
    """Tell when a call came to the layers that are played, after its gates."""
    span = call.spans[0]
    last_ms = span.queue_ms if span.attempt else span.duration_ms
    instants, rated_ms = span.instants, span.rated_ms
    lined_ms = None if instants is None else instants.lined_ms
    if lined_ms is not None:
        # A call may wait for the same answer of the cache before its rate is asked.
        return lined_ms if rated_ms is None or lined_ms < rated_ms else rated_ms
    if rated_ms is not None:
        return rated_ms
    return last_ms if instants is None or instants.asked_ms is None else instants.asked_ms
