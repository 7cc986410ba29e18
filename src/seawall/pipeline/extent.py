"""How much a tool gave, before anything is made of it.

One value that is held many times takes little memory and, as text, more than there is. Iterators
give what they give only when they are asked, and may work as they go.
"""

from __future__ import annotations

import itertools
from collections.abc import Generator, Iterator, Sequence
from enum import Enum
from typing import Any

import msgspec

from seawall.pipeline.plain import base_of

MAX_ITEMS = 10_000
"""Items taken from a generator that a tool returned; then it is closed."""
MAX_TAKEN = 100_000
"""Items taken from all generators of one value."""
MAX_VALUES = 1_000_000
"""Values in a result, each counted as often as it is held; of more, the beginning is given."""
MAX_CHARACTERS = 200_000_000
"""Characters of all its texts, counted in the same way."""
MAX_DEPTH = 500
"""Levels of a result; what is deeper stands as a word. How deep an encoder goes depends on the
version of Python, and what reads a result later may go less deep."""
MAX_LEVELS = 100
"""Levels down to which iterators are looked for."""

SCALARS = frozenset((str, bytes, bytearray, int, float, bool, type(None)))
"""Types of which a value is no more than itself."""
_LONG = frozenset((str, bytes, bytearray))


class Extent(Enum):
    """What must be done before a value is made a result."""

    FINE = "fine"
    """Nothing."""
    OPEN = "open"
    """It holds iterators: what they give is not known yet."""
    EXCESSIVE = "excessive"
    """It would be too much."""


def extent_of(value: Any) -> Extent:
    """Look through a value, in bounded time whatever it holds."""
    kind = type(value)
    if kind in SCALARS:
        return Extent.FINE  # of one text there is no more than there is
    left, room = MAX_VALUES, MAX_CHARACTERS
    found = Extent.FINE
    waiting = [value]
    level, level_ends = 0, 0
    for place, held in enumerate(waiting):  # which grows meanwhile, level by level
        if place == level_ends:
            level, level_ends = level + 1, len(waiting)
        items = _items(held)
        if items is None:
            found = Extent.OPEN
            continue
        left -= len(items)
        for item in items if left >= 0 else ():
            kind = type(item)
            if kind in _LONG:
                room -= len(item)
            elif kind not in SCALARS:
                waiting.append(item)
        if left < 0 or room < 0 or level > MAX_DEPTH:
            return Extent.EXCESSIVE
    return found


def _items(held: Any) -> Any:
    """Give what a container holds: None if only asking tells, nothing for what is no container."""
    kind = type(held)
    if kind is list or kind is tuple:
        return held
    if kind is dict:
        return held.values()
    if isinstance(held, msgspec.Struct) and not hasattr(kind, "__next__"):
        return msgspec.structs.astuple(held)
    return None if isinstance(held, Iterator) else _items_of_other(held)


def _items_of_other(held: Any) -> Any:
    # What a class puts over these methods is foreign code, and is not what is encoded.
    kind = type(held)
    if issubclass(kind, dict):
        return dict.values(held)
    if issubclass(kind, list):
        return list.copy(held)
    if issubclass(kind, (tuple, set, frozenset)):
        return held
    if issubclass(kind, (str, bytes, bytearray)):
        return (base_of(held),)
    fields = getattr(kind, "__dataclass_fields__", None)
    if isinstance(fields, dict):
        known = getattr(held, "__dict__", None) or {}
        return [known[name] for name in fields if name in known]
    return ()


class Unrolling:
    """Puts lists in the place of iterators, bounded in number.

    Driven by whoever knows when to let others work, and when to stop: each step takes one item.
    """

    def __init__(self) -> None:
        self._left = MAX_TAKEN
        self._visits = MAX_TAKEN

    def steps(self, value: Any, levels: int = MAX_LEVELS) -> Generator[None, None, Any]:
        """Take what the iterators in a value give, an item at a step; gives the value with it."""
        self._visits -= 1
        if levels == 0 or self._visits < 0:
            return value
        if isinstance(value, Iterator):
            return (yield from self._taken(value, levels))
        if type(value) is dict:
            found = {}
            for key, item in value.items():
                found[key] = yield from self._of(item, levels)
            return found
        if type(value) in (list, tuple):
            return type(value)((yield from self._all_of(value, levels)))
        return value

    def _all_of(self, items: Sequence[Any], levels: int) -> Generator[None, None, list[Any]]:
        found = []
        for item in items:
            known = yield from self._of(item, levels)
            found.append(known)
        return found

    def _of(self, item: Any, levels: int) -> Generator[None, None, Any]:
        if type(item) in SCALARS:
            return item
        return (yield from self.steps(item, levels - 1))

    def _taken(self, items: Iterator[Any], levels: int) -> Generator[None, None, list[Any]]:
        taken: list[Any] = []
        try:
            for item in itertools.islice(items, min(MAX_ITEMS, self._left)):
                self._left -= 1
                yield
                taken.append((yield from self._of(item, levels)))
                if self._left <= 0:
                    break
        finally:
            close = getattr(items, "close", None)
            if callable(close):
                close()
        return taken
