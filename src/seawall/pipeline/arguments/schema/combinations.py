"""Bound the work that one value can cause.

A validator tries each branch anew wherever it is referred to, so a page of schema in which each
definition names the next one twice takes hours. Recursion is no danger: the validator remembers
what it has tried there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from seawall.pipeline.arguments.schema.dialects import subschemas

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seawall.pipeline.arguments.schema.documents import Documents, Place

MAX_COMBINATIONS = 100_000
"""How often a value at one place may have to be looked at."""
MAX_CHAIN = 1_000
"""How many steps a schema may lead on, references included."""
HARMLESS_REFERENCES = 24
"""So few cannot multiply to a number that matters."""

_NEVER_TRIED = frozenset({"$defs", "definitions", "contentSchema"})
_ONE_OF_THEM = frozenset({"properties", "prefixItems"})

Key = tuple[str, tuple[str, ...]]


def excess(documents: Documents) -> str | None:
    """Say why the schema is too much work; None if it is not."""
    counted: dict[Key, int] = {}
    stack = [_Frame(documents, documents.root)]
    opened = {stack[0].key}
    while stack:
        frame = stack[-1]
        entry = next(frame.parts, None)
        if entry is None:
            stack.pop()
            opened.discard(frame.key)
            counted[frame.key] = frame.total
            if frame.total > MAX_COMBINATIONS:
                return f"combines its branches in more than {MAX_COMBINATIONS:,} ways"
            if stack:
                stack[-1].add(frame.total, alone=frame.alone)
            continue
        alone, part = entry
        key = (part.document, part.steps)
        if key in counted or key in opened:
            frame.add(counted.get(key, 1), alone=alone)
        elif len(stack) >= MAX_CHAIN:
            return f"leads on for more than {MAX_CHAIN:,} steps"
        else:
            opened.add(key)
            stack.append(_Frame(documents, part, alone=alone))
    return None


class _Frame:
    """A node whose parts are being counted."""

    def __init__(self, documents: Documents, place: Place, *, alone: bool = False) -> None:
        self.key: Key = (place.document, place.steps)
        self.alone = alone
        self.parts = _parts(documents, place)
        self._sum = 1
        self._most = 0

    def add(self, count: int, *, alone: bool) -> None:
        """Count a part; of those that stand alone only one meets a value."""
        if alone:
            self._most = max(self._most, count)
        else:
            self._sum += count

    @property
    def total(self) -> int:
        return self._sum + self._most


def _parts(documents: Documents, place: Place) -> Iterator[tuple[bool, Place]]:
    node: Any = place.node
    if not isinstance(node, dict):
        return
    for steps, _ in subschemas(node):
        if steps[0] not in _NEVER_TRIED:
            yield steps[0] in _ONE_OF_THEM, documents.child(place, *steps)
    for target in documents.targets(place):
        yield False, target
