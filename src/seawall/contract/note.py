"""A note, as stores keep it."""

from __future__ import annotations

import msgspec


class Note(msgspec.Struct, frozen=True):
    """One note; numbered per owner from 1, in the order of adding."""

    number: int
    text: str
    tags: tuple[str, ...]
    created: float
    """Seconds since the epoch."""


class StoreFullError(Exception):
    """No room is left; nothing was dropped to make some."""
