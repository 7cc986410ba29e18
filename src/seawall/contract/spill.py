"""What a result limit cut, as stores keep it."""

from __future__ import annotations

import msgspec

MAX_SPILL_BYTES = 4 * 1024 * 1024
"""Kept of one result at most; what is beyond is lost."""


class SpillPart(msgspec.Struct, frozen=True):
    """Some bytes of what is kept, from an offset that was asked for."""

    data: bytes
    size: int
    """Bytes that are kept in all."""
    page_bytes: int
    """The longest page that the limit of the cut call allows."""
