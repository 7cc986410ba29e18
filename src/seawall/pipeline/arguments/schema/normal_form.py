"""Say a schema in the words of one draft.

What other drafts, OpenAPI and old generators wrote is translated where a translation loses
nothing, so that the validator enforces it: `nullable`, boolean `exclusiveMinimum` and
`required`, lists of items. The result is a copy in plain dicts and lists, bounded in size.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple
from urllib.parse import unquote

from seawall.contract.pointer import escaped, steps_of
from seawall.pipeline.arguments.schema.dialects import (
    DRAFT_2020,
    ENFORCED,
    LISTS,
    MAPS,
    REFERENCES,
    SINGLES,
    Dialect,
    dialect_named,
    is_tolerated,
    subschemas,
)
from seawall.pipeline.arguments.schema.translations import (
    REMARKS,
    TRANSLATED,
    WELL_FORMED,
    require_members,
    translate,
)

MAX_LEVELS = 200
"""How deep a schema may nest; jsonschema-rs reads 255."""
MAX_VALUES = 50_000
"""How many JSON values it may hold."""
MAX_PATTERNS = 500
"""How many patterns it may hold; each may take some milliseconds to compile."""
MAX_CHARACTERS = 1_000_000
"""How long its texts may be, taken together."""

Way = tuple["Way", str] | None
"""Where we are: the way to what encloses it, and the last step."""

_LONGEST_NUMBER = 13_600
"""Bits: about 4,096 digits."""
_LONGEST_POINTER = 300
_HALF = re.compile("[\ud800-\udfff]")


class NotUsable(Exception):  # noqa: N818  # says what the schema is, and never leaves this package
    """The schema is too large, or is no JSON; there is no use in looking further."""

    def __init__(self, message: str, way: Way) -> None:
        super().__init__(message)
        self.message = message
        self.way = way


class NormalForm(NamedTuple):
    """A schema said in one draft."""

    schema: Any
    enforceable: bool
    """False if it holds a keyword that this draft does not enforce and that is no annotation."""
    references: int
    """How many references it holds."""
    patterns: int
    """How many patterns it holds."""


def normal_form(schema: Any, dialect: Dialect) -> NormalForm:
    """Say `schema` in `dialect`; raises NotUsable for what is too large or no JSON.

    What stands where a schema belongs and is none is kept, for the validator to refuse.
    """
    writer = _Writer(dialect)
    said = writer.schema(schema, None, 0)
    if isinstance(said, dict):
        writer.finish(said)
        if dialect_named(said.get("$schema")) is not None:
            said["$schema"] = dialect.uri
    return NormalForm(said, writer.enforceable, len(writer.references), writer.patterns)


def copied(value: Any) -> Any:
    """Copy any JSON as it is; raises NotUsable as `normal_form` does."""
    return _Writer(DRAFT_2020).plain(value, None, 0)


def pointer(way: Way) -> str:
    """Write a way as a JSON Pointer; that of what encloses it if it takes too long to say."""
    steps = []
    while way is not None:
        way, step = way
        steps.append(f"/{escaped(step)}")
    said = ""
    for step in reversed(steps):
        if len(said) + len(step) > _LONGEST_POINTER:
            break
        said += step
    return said


class _Writer:
    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._known = dialect.enforced
        self._values = MAX_VALUES
        self._characters = MAX_CHARACTERS
        self._members_require = False
        self.enforceable = True
        self.references: list[str] = []
        self.patterns = 0

    def schema(self, node: Any, way: Way, level: int) -> Any:
        """Copy what stands where a schema belongs."""
        if not isinstance(node, Mapping):
            return self.plain(node, way, level)
        if level and "$schema" in node and "$id" in node:
            return self._embedded(node, way, level)
        return self._node(node, way, level)

    def schemas(self, value: Any, way: Way, level: int) -> Any:
        """Copy a mapping of names to schemas."""
        if not isinstance(value, Mapping):
            return self.plain(value, way, level)
        self._enter(way, level)
        return {
            self._key(name, way): self.schema(item, (way, name), level + 1)
            for name, item in value.items()
        }

    def listed(self, value: Any, way: Way, level: int) -> Any:
        """Copy a list of schemas, or the one schema that stands in its place."""
        if not isinstance(value, (list, tuple)):
            return self.schema(value, way, level)
        self._enter(way, level)
        return [self.schema(item, (way, str(i)), level + 1) for i, item in enumerate(value)]

    def plain(self, value: Any, way: Way, level: int) -> Any:
        """Copy any JSON."""
        self._enter(way, level)
        if isinstance(value, str):
            return self._text(value, way)
        if isinstance(value, Mapping):
            return {
                self._key(key, way): self.plain(item, (way, key), level + 1)
                for key, item in value.items()
            }
        if isinstance(value, (list, tuple)):
            return [
                self.plain(item, (way, str(index)), level + 1) for index, item in enumerate(value)
            ]
        return _scalar(value, way)

    def finish(self, root: dict[str, Any]) -> None:
        """Also say what stands where no schema belongs, when a reference leads to it."""
        waiting = [steps for ref in self.references if (steps := steps_elsewhere(ref))]
        seen = _nodes_below(root) if waiting else set()
        while waiting:
            steps = waiting.pop()
            owner, step = owner_of(root, steps)
            found = owner[step] if owner is not None else None
            if not isinstance(found, dict) or id(found) in seen:
                continue
            count = len(self.references)
            owner[step] = said = self._node(found, None, len(steps))
            seen |= _nodes_below(said)
            waiting += [s for ref in self.references[count:] if (s := steps_elsewhere(ref))]

    def _embedded(self, node: Mapping[str, Any], way: Way, level: int) -> dict[str, Any]:
        """Copy a whole schema of its own, which may be of another draft."""
        outer = self._dialect
        self._dialect = dialect_named(node["$schema"]) or outer
        self._known = self._dialect.enforced
        said = self._node(node, way, level)
        self._dialect, self._known = outer, outer.enforced
        return said

    def _node(self, node: Mapping[str, Any], way: Way, level: int) -> dict[str, Any]:
        self._enter(way, level)
        said: dict[str, Any] = {}
        odd = False
        for keyword, value in node.items():
            said[self._key(keyword, way)] = self._value(keyword, value, (way, keyword), level + 1)
            odd |= self._is_odd(keyword, value)
        if self._members_require:
            require_members(said, node)
        if odd:
            translate(said, self._dialect)
        return said

    def _value(self, keyword: str, value: Any, way: Way, level: int) -> Any:
        shape = _SHAPES.get(keyword)
        if shape is not None:
            said = shape(self, value, way, level)
            if keyword == "patternProperties" and isinstance(said, dict):
                self._count_patterns(len(said))
            return said
        if type(value) is not str:
            return self.plain(value, way, level)
        if keyword in REFERENCES:
            self.references.append(value)
        elif keyword == "pattern":
            self._count_patterns(1)
        return self._text(value, way)

    def _is_odd(self, keyword: str, value: Any) -> bool:
        """Whether a keyword needs a translation; notes what this draft does not enforce."""
        if keyword in self._known:
            odd = keyword in TRANSLATED and isinstance(value, TRANSLATED[keyword])
            self._members_require |= odd and keyword == "required"
            return odd
        if type(value) is str and keyword in REMARKS:
            return False
        if keyword == "nullable":
            self.enforceable &= value is None or isinstance(value, bool)
            return True
        if keyword in ENFORCED or not is_tolerated(keyword):
            self.enforceable = False
        return keyword in WELL_FORMED and not WELL_FORMED[keyword](value)

    def _enter(self, way: Way, level: int) -> None:
        self._values -= 1
        if level > MAX_LEVELS:
            raise NotUsable(f"is nested deeper than {MAX_LEVELS} levels; flatten it", way)
        if self._values < 0:
            raise NotUsable(f"holds more than {MAX_VALUES} values; describe less", None)

    def _count_patterns(self, more: int) -> None:
        self.patterns += more
        if self.patterns > MAX_PATTERNS:
            raise NotUsable(f"holds more than {MAX_PATTERNS} patterns; use fewer", None)

    def _text(self, text: str, way: Way) -> str:
        self._characters -= len(text)
        if self._characters < 0:
            raise NotUsable(f"holds more than {MAX_CHARACTERS} characters; describe less", None)
        if not text.isascii() and _HALF.search(text):
            raise NotUsable(
                "holds half of a character (a lone surrogate); write the whole one", way
            )
        return text if type(text) is str else str.__str__(text)

    def _key(self, key: Any, way: Way) -> str:
        if not isinstance(key, str):
            raise NotUsable(f"has a key of type {type(key).__name__}; keys must be texts", way)
        return self._text(key, way)


def _scalar(value: Any, way: Way) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int) and value.bit_length() <= _LONGEST_NUMBER:
        return int(value)
    if isinstance(value, float) and math.isfinite(value):
        return float(value)
    if isinstance(value, (int, float)):
        raise NotUsable(
            "is a number that JSON cannot say, or one that is too long; use a smaller one", way
        )
    raise NotUsable(
        f"is a value of type {type(value).__name__}, which is no JSON; use JSON values", way
    )


_SHAPES: dict[str, Callable[[_Writer, Any, Way, int], Any]] = {
    **dict.fromkeys((*MAPS, "dependencies"), _Writer.schemas),
    **dict.fromkeys((*LISTS, "items"), _Writer.listed),
    **dict.fromkeys(SINGLES, _Writer.schema),
}


def steps_elsewhere(reference: str) -> list[str] | None:
    """Give the way a local reference leads to where no schema belongs."""
    if not reference.startswith("#/"):
        return None
    steps = steps_of(unquote(reference[1:]))
    return steps if steps[0] not in _SHAPES else None


def _nodes_below(root: dict[str, Any]) -> set[int]:
    seen: set[int] = set()
    waiting: list[Any] = [root]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            seen.add(id(node))
            waiting += [child for _, child in subschemas(node)]
    return seen


def owner_of(root: Any, steps: list[str]) -> tuple[Any, Any]:
    """Find what holds the last step: the container and the key there, or nothing."""
    owner: Any = None
    key: str | int | None = None
    found = root
    for step in steps:
        owner, key = found, step
        if isinstance(owner, list) and step.isdecimal() and int(step) < len(owner):
            key = int(step)
        elif not isinstance(owner, dict) or step not in owner:
            return None, None
        found = owner[key]
    return owner, key
