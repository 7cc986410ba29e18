"""Text that every database takes."""

from __future__ import annotations

LONGEST = 300


def plain(text: str) -> str:
    """Replace what has no bytes, and the one character that PostgreSQL does not keep; cut."""
    cut = text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
    return cut.encode("utf-8", "replace").decode().replace("\0", "\N{REPLACEMENT CHARACTER}")
