"""What a limiter answers."""

from __future__ import annotations

import msgspec


class Taken(msgspec.Struct, frozen=True, gc=False):
    """What came of asking for tokens."""

    granted: bool
    retry_after_s: float | None
    """A call exactly so much later is granted, if nobody else asks; None if it never can be."""
    left: float
    """Tokens that remain, with their fraction."""
    at: float = 0.0
    """When that was, in monotonic seconds of this process; 0 if another's clock decided."""
