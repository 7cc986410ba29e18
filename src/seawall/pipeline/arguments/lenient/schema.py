"""Read a JSON Schema once into nodes that the passes and the check walk.

Everything is read as draft 2020-12, with what older drafts wrote differently, and defensively:
a keyword whose value has the wrong shape says nothing. What is no schema at all, or a pattern
nobody can read, makes the whole tool unusable and is told at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from seawall.contract.errors import ConfigurationError, Fault
from seawall.pipeline.arguments.lenient import rules
from seawall.pipeline.arguments.lenient.loops import looping
from seawall.pipeline.arguments.lenient.node import Node
from seawall.pipeline.arguments.lenient.references import References
from seawall.pipeline.arguments.lenient.source import Source, conversion, read_scalars, read_type
from seawall.pipeline.arguments.lenient.words import words_of
from seawall.pipeline.arguments.patterns.patterns import PatternError, compile_pattern


class Reading(msgspec.Struct, frozen=True):
    """A schema as it was read."""

    root: Node
    keeps_valid: bool
    """No pass changes a valid value. One kind of schema is otherwise: `items` without a type
    accepts a value that is no array, and yet pass 2 wraps it."""


def read_schema(schema: Mapping[str, Any]) -> Reading:
    """Read a whole schema; raises ConfigurationError with every fault found."""
    reader = _Reader(schema)
    root = reader.node(schema, "", "")
    try:
        nodes = reader.finish()
    except RecursionError:
        raise ConfigurationError("a literal in the schema is nested too deeply") from None
    wraps = any(node.conversion == "array" and not node.is_typed for node in nodes)
    return Reading(root, keeps_valid=not wraps)


_SILENT = frozenset(
    {
        "$schema",
        "$id",
        "$anchor",
        "$dynamicAnchor",
        "$comment",
        "$defs",
        "definitions",
        "title",
        "description",
        "default",
        "examples",
        "deprecated",
        "readOnly",
        "writeOnly",
        "type",
    }
)


class _Reader:
    """Fills nodes from a queue, so that no depth of nesting and no cycle is too much."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._references = References(schema)
        self._known: dict[int, Node] = {}
        self._kept: list[Any] = []
        self._waiting: list[tuple[Node, Mapping[str, Any], str, str]] = []
        self._faults: list[Fault] = []

    def node(self, raw: Any, around: str, place: str) -> Node:
        """Give the node of a subschema; its content is read later."""
        if isinstance(raw, bool):
            return Node(verdict=raw)
        if not isinstance(raw, Mapping):
            self._faults.append(Fault("expected a schema: an object, true or false", key=place))
            return Node(verdict=False)
        known = self._known.get(id(raw))
        if known is not None:
            known.shared = True
            return known
        fresh = self._known[id(raw)] = Node(place=place)
        self._kept.append(raw)
        self._waiting.append((fresh, raw, around, place))
        return fresh

    def finish(self) -> list[Node]:
        """Read all that waits, and give every node there is."""
        while self._waiting:
            node, raw, around, place = self._waiting.pop()
            base = self._references.base(raw, around) if around else self._references.base(raw)
            self._fill(node, raw, base, place)
        nodes = list(self._known.values())
        loop = looping(nodes)
        if loop is not None:
            message = "leads back to itself without going into a member or an item"
            self._faults.append(Fault(message, key=loop.place))
        if self._faults:
            raise ConfigurationError(self._faults)
        for node in nodes:
            node.alias = _end_of(node)
        return nodes

    def _fill(self, node: Node, raw: Mapping[str, Any], base: str, place: str) -> None:
        read_type(node, raw)
        said = [keyword for keyword in raw if keyword not in _SILENT]
        node.plain = not said
        node.is_reference = said == ["$ref"] and not node.is_typed
        if not node.plain:
            source = Source(self.node, raw, base, place)
            read_scalars(node, raw)
            source.read_object(node)
            source.read_array(node)
            source.read_logic(node)
            source.read_references(node, self._references)
            self._read_patterns(node, raw, source.patterned(), place)
        node.conversion = conversion(node, raw)

    def _read_patterns(
        self, node: Node, raw: Mapping[str, Any], patterned: dict[str, Node], place: str
    ) -> None:
        given = raw.get("pattern")
        try:
            pattern = compile_pattern(given) if isinstance(given, str) else None
            node.strings = rules.string_rules(raw, pattern)
            node.patterns = tuple((compile_pattern(key), inner) for key, inner in patterned.items())
        except PatternError as error:
            self._faults.append(Fault(str(error), key=place))
            return
        node.words = words_of(raw, pattern)


def _end_of(node: Node) -> Node | None:
    """Follow references that are nothing else; None if this is none."""
    end = node
    while end.is_reference and end.reference is not None:
        end = end.reference
    return None if end is node else end
