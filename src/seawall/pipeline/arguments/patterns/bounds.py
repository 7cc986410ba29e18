"""Bound the text that the patterns of a schema are matched against.

A search takes no exponential time, but some patterns take long for each character, and those that
look ahead or back may start anew at each. How much text is allowed depends on what the pattern
compiles to; the plain ones of nearly all schemas take whole files.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import jsonschema_rs

from seawall.contract.pointer import escaped
from seawall.pipeline.arguments.reading.reader import MAX_BYTES, MAX_VALUES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from seawall.pipeline.arguments.reading.bounds import Fault

MAX_BACKTRACKS = 20_000
"""A search that goes back more often ends as no match, after about 0.4 ms."""
PATTERNS = jsonschema_rs.FancyRegexOptions(
    backtrack_limit=MAX_BACKTRACKS,
    size_limit=10_000_000,  # bytes; takes about 30 ms to compile
)
"""How patterns are run."""

FREE = 100
"""Characters that any pattern takes."""
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_WORDS = ("pattern", "patternProperties")
_NOT_MET = ("properties", "$defs", "definitions")
_UNUSABLE = (jsonschema_rs.ValidationError, ValueError)


class Room(NamedTuple):
    """What a pattern takes."""

    longest: int
    """Characters of one text."""
    total: int
    """Characters of all texts together."""
    texts: int


_LINEAR = (
    (600, MAX_BYTES),
    (3_000, 150_000),
    (10_000, 50_000),
    (100_000, 5_000),
    (1_000_000, 600),
    (1 << 30, FREE),
)
"""By the bytes of the compiled pattern: a step takes about 0.05 ns for each of them."""
_ANCHORED = (
    (2_000, Room(20_000, 200_000, 1_000)),
    (100_000, Room(2_000, 40_000, 500)),
    (1 << 30, Room(200, 4_000, 50)),
)
_ANYWHERE = (
    (2_000, Room(4_000, 40_000, 500)),
    (20_000, Room(1_000, 20_000, 500)),
    (100_000, Room(300, 6_000, 200)),
    (1 << 30, Room(FREE, 2_000, 20)),
)
"""Patterns that look around: a search may go through the text from each of its characters."""


def pattern_bounds(schema: Any) -> PatternBounds | None:
    """Give the bounds that a schema's patterns need; None if it has no patterns."""
    everywhere, _ = _found(schema)
    return PatternBounds(schema, everywhere) if everywhere else None


class PatternBounds:
    """Bounds for the arguments of one tool, or its result: by name, as a schema speaks of them."""

    def __init__(self, schema: dict[str, Any], everywhere: set[str]) -> None:
        rest, leads_on = _found({key: part for key, part in schema.items() if key not in _NOT_MET})
        self._rest = frozenset(everywhere if leads_on else rest)
        self._by_name: dict[str, frozenset[str]] = {}
        properties = schema.get("properties")
        for name, part in properties.items() if isinstance(properties, dict) else ():
            own, leads_on = _found(part)
            self._by_name[name] = self._rest.union(everywhere if leads_on else own)
        self._room: Callable[[frozenset[str]], Room] = cache(_room)

    def fault(self, value: Any) -> Fault | None:
        """Say where there is more text than can be matched in time."""
        if not isinstance(value, dict):
            return self._too_much(value, self._rest, "") if self._rest else None
        for name, item in value.items():
            patterns = self._by_name.get(name, self._rest)
            if patterns and not _is_little(item):
                found = self._too_much(item, patterns, f"/{escaped(name)}")
                if found is not None:
                    return found
        return self._too_much(list(value), self._rest, "") if self._rest else None

    def _too_much(self, value: Any, patterns: frozenset[str], path: str) -> Fault | None:
        room = self._room(patterns)
        if room.longest == MAX_BYTES or _fits(value, room):
            return None
        most = f"{room.longest:,} characters in one text, {room.total:,} in all"
        said = f"more text than its pattern can be matched against in time ({most}); send less"
        return ("too_large", path, said)


def _is_little(item: Any) -> bool:
    if isinstance(item, str):
        return len(item) <= FREE
    return not isinstance(item, (dict, list, tuple))


def _fits(value: Any, room: Room) -> bool:
    longest, left, texts = room
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            left -= len(item)
            texts -= 1
            if len(item) > longest or left < 0 or texts < 0:
                return False
        elif isinstance(item, dict):
            waiting += item
            waiting += item.values()
        elif isinstance(item, (list, tuple)):
            waiting += item
    return True


def _found(schema: Any) -> tuple[set[str], bool]:
    """Give the patterns in a part of a schema, and whether it leads out of itself."""
    patterns: set[str] = set()
    leads_on = False
    waiting = [schema]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            leads_on = leads_on or not node.keys().isdisjoint(_REFERENCES)
            if not node.keys().isdisjoint(_WORDS):
                patterns.update(_own(node))
            waiting += node.values()
        elif isinstance(node, list):
            waiting += node
    return patterns, leads_on


def _own(node: Mapping[str, Any]) -> Iterable[str]:
    pattern, named = node.get("pattern"), node.get("patternProperties")
    if isinstance(pattern, str):
        yield pattern
    if isinstance(named, dict):
        yield from named


def _room(patterns: frozenset[str]) -> Room:
    rooms = [_room_of(pattern) for pattern in patterns]
    return Room(*map(min, zip(*rooms, strict=True)))


def _room_of(pattern: str) -> Room:
    for size, most in _LINEAR:
        if _compiles(pattern, jsonschema_rs.RegexOptions(size_limit=size)):
            return Room(most, most, MAX_VALUES)
    tiers = _ANCHORED if _is_anchored(pattern) else _ANYWHERE
    for size, room in tiers[:-1]:
        if _compiles(pattern, jsonschema_rs.FancyRegexOptions(size_limit=size)):
            return room
    return tiers[-1][1]


def _compiles(
    pattern: str, options: jsonschema_rs.RegexOptions | jsonschema_rs.FancyRegexOptions
) -> bool:
    try:
        jsonschema_rs.Draft202012Validator({"pattern": pattern}, pattern_options=options)
    except _UNUSABLE:
        return False
    return True


def _is_anchored(pattern: str) -> bool:
    """Whether a pattern surely matches from the beginning only."""
    return pattern.startswith("^") and "|" not in pattern
