"""What is said of a circuit that several processes share."""

from __future__ import annotations

from typing import Literal

import msgspec


class CircuitSeen(msgspec.Struct, frozen=True, gc=False):
    """A circuit as the store has it."""

    changed: str
    """Another value after each opening and each closing."""
    is_open: bool
    left_s: float
    """Seconds until it may be probed."""
    cooldown_s: float
    """How long it stays open this time."""
    kind: str
    """The kind of the last failure."""
    is_held: bool = False
    """Whether it was opened by hand, and so stays open until it is closed by hand."""


class CircuitNews(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """What one process has to say of a circuit."""

    name: str
    what: Literal["tripped", "failed", "succeeded", "released", "closed", "held"]
    """It opened; its probe failed, succeeded, or led to nothing; it was closed, or opened, by
    hand."""
    process: str
    left_s: float = 0.0
    """Seconds until it may be probed."""
    cooldown_s: float = 0.0
    kind: str = ""
    """The kind of the last failure."""
