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
    non_blank: int
    mac: str
    """Keyed BLAKE2b, 128 bits, hex. Equal arguments of one tool have equal fingerprints."""

    def __str__(self) -> str:
        return f"{self.length}/{self.non_blank}:{self.mac}" if self.length else "empty"


class Span(msgspec.Struct, frozen=True, gc=False):
    """One attempt; or, with attempt 0, a call that a layer refused or answered before its first."""

    call_id: str
    tool: str
    attempt: int
    started: float
    """Seconds since the epoch, for showing only."""
    duration_ms: float
    outcome: Outcome
    reason: str = ""
    """A slug of the failure; empty for success."""
    digest: Digest | None = None
    mended: tuple[str, ...] = ()
    """What was mended in the arguments: pointers and rules, no values."""
    offset_s: float = 0.0
    """Arrival of the call after the recorder's start."""
    queue_ms: float = 0.0
    """From the call's arrival to the start of this attempt."""
    key: str = ""
    """Fingerprint of the limiter's key, if one was used."""
    verdicts: tuple[str, ...] = ()
    """What layers decided on the way, as `layer:verdict`; shadow refusals are seen here."""
    health: str = ""
    """What a failed attempt says of the tool: `infrastructure` or `answer`; else empty."""
    retryable: bool = True
    """Whether the failure may pass by itself."""
    retry_after_s: float | None = None
    """When the tool said to come back."""
