"""What is remembered of an attempt: sizes, times and verdicts, never values."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class Outcome(StrEnum):
    """How an attempt ended."""

    SUCCESS = "success"
    FAILED = "failed"
    DENIED = "denied"
    """Refused before anything ran."""
    SKIPPED = "skipped"
    """Not tried, because an earlier step of the same batch failed; or not finished, because the
    tool handed control back to its framework."""


class Digest(msgspec.Struct, frozen=True, gc=False):
    """Sizes of the canonical argument text, and a keyed fingerprint of it."""

    length: int
    """Characters of the canonical JSON text."""
    non_blank: int
    """Those of them that are no blanks."""
    mac: str
    """Keyed BLAKE2b, 128 bits, hex. Equal arguments of one tool have equal fingerprints."""

    def __str__(self) -> str:
        return f"{self.length}/{self.non_blank}:{self.mac}" if self.length else "empty"


class Instants(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """When layers decided, for a replay to decide at the same times; None where nobody did.

    Milliseconds after the call's arrival; those from `wait_ms` on are lengths.
    """

    lined_ms: float | None = None
    """The call stood in line for a place."""
    admitted_ms: float | None = None
    """The place was handed to it; it goes on as soon as the loop comes to it."""
    asked_ms: float | None = None
    """The breaker was asked while its circuit was not closed."""
    settled_ms: float | None = None
    """The breaker changed its mind over this attempt."""
    wait_ms: float | None = None
    """What was to be waited before this attempt; a busy loop wakes later."""
    limit_ms: float | None = None
    """The limit that ended this attempt; a busy loop ends it later."""
    short_ms: float | None = None
    """Rate limit or breaker refused; so much later it would have been let through."""
    silent_ms: float | None = None
    """It had said nothing for so long, and was ended for that."""
    timeout_ms: float | None = None
    """The caller's own limit for each attempt."""
    deadline_ms: float | None = None
    """The call's deadline, where it is not that of the policy."""


class Span(msgspec.Struct, frozen=True, gc=False):
    """One attempt; or, with attempt 0, a call that a layer refused or answered before its first."""

    call_id: str
    """Joins all attempts of a call."""
    tool: str
    """The tool's name."""
    attempt: int
    """From 1; 0 where nothing was attempted."""
    started: float
    """Seconds since the epoch, for showing only."""
    duration_ms: float
    """Of this attempt; of the refusal, where nothing was attempted."""
    outcome: Outcome
    """How it ended."""
    reason: str = ""
    """A slug of the failure; empty for success."""
    digest: Digest | None = None
    """Of the arguments; None where they could not be read."""
    mended: tuple[str, ...] = ()
    """What was mended in the arguments: pointers and rules, no values."""
    offset_s: float = 0.0
    """Arrival of the call after the recorder's start."""
    queue_ms: float = 0.0
    """From the call's arrival to the start of this attempt."""
    rated_ms: float | None = None
    """From there to when the rate limit was asked; said with the first span of a call."""
    key: str = ""
    """Fingerprint of the limiter's key, if one was used."""
    verdicts: tuple[str, ...] = ()
    """What layers decided on the way, as `layer:verdict`; shadow refusals are seen here."""
    instants: Instants | None = None
    """When layers decided, where that is not when the attempt began and ended."""
    health: str = ""
    """What a failed attempt says of the tool: `infrastructure` or `answer`; else empty."""
    retryable: bool = True
    """Whether the same call may be made again, and may succeed then."""
    retry_after_s: float | None = None
    """When the tool said to come back."""
