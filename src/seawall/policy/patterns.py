"""Tool names with `*`, `?` and `[…]`, compiled once and ordered by how much they pin down."""

from __future__ import annotations

import re
from fnmatch import translate
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_WILD = re.compile(r"\[!?\]?[^\]]*\]|[*?]")


def is_pattern(name: str) -> bool:
    """Whether a name stands for several tools."""
    return any(char in name for char in "*?[")


class Pattern:
    """A name with wildcards; case counts, and the whole name must fit."""

    __slots__ = ("_fits", "_needle", "rank", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        literals = _WILD.split(text)
        single = sum(wild != "*" for wild in _WILD.findall(text))
        self.rank = (sum(map(len, literals)), single)
        """A longer pattern ranks higher: first by its plain characters, then by single ones."""
        # Most patterns fail on their longest plain part, which is far cheaper to look for.
        self._needle = max(literals, key=len)
        self._fits = re.compile(translate(text)).match

    def fits(self, name: str) -> bool:
        """Whether this tool's name is one of those meant."""
        return self._needle in name and self._fits(name) is not None


def any_fits(patterns: Iterable[Pattern], name: str) -> bool:
    """Whether one of the patterns means this name."""
    return any(pattern.fits(name) for pattern in patterns)
