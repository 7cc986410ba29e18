"""How what is said in parts becomes one line, and how things are counted in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_ENDS = (".", "!", "?")


def joined(parts: Iterable[str]) -> str:
    """Join parts by `; `, and by a blank after one that ends as a sentence does."""
    said = ""
    for part in parts:
        said += f"{' ' if said.endswith(_ENDS) else '; '}{part}" if said else part
    return said


def counted(count: int, thing: str) -> str:
    """Write a number of things: `1 call`, `2 calls`."""
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"
