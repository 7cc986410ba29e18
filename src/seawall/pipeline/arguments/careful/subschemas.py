"""Find, resolve and check the subschemas of one tool's schema.

References are followed inside the schema only. Each subschema is compiled when a value is
first checked against it alone, in the place it has, so that its references mean the same.
"""

from __future__ import annotations

import copy
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn
from urllib.parse import quote, unquote, urljoin

import jsonschema_rs

from seawall.contract.pointer import escaped, steps_of
from seawall.pipeline.arguments.patterns.bounds import PATTERNS
from seawall.pipeline.arguments.schema.checks import Check, Checks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Schema = dict[str, Any] | bool

_HOME = "https://arguments.invalid/schema"
_METASCHEMAS = ("http://json-schema.org/", "https://json-schema.org/")
_NO_SCHEMA: dict[str, Any] = {"not": {}}

_MAPS = (
    "$defs",
    "definitions",
    "properties",
    "patternProperties",
    "dependentSchemas",
    "dependencies",
)
_LISTS = ("allOf", "anyOf", "oneOf", "prefixItems", "items")
_SINGLES = (
    "items",
    "additionalItems",
    "additionalProperties",
    "unevaluatedItems",
    "unevaluatedProperties",
    "contains",
    "propertyNames",
    "contentSchema",
    "not",
    "if",
    "then",
    "else",
)
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_REMARKS = {"type", "title", "description", "default", "examples", "deprecated", "$comment"}
_ASSERTING = _REMARKS | {
    *("enum", "const", "minLength", "maxLength", "pattern", "format", "uniqueItems", "multipleOf"),
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minItems", "maxItems"),
    *("minProperties", "maxProperties", "readOnly", "writeOnly"),
}
"""What says nothing of parts and refers to nothing."""
_UNUSABLE = (ValueError, jsonschema_rs.ReferencingError)
_OLD = ("draft-03", "draft-04", "draft-06", "draft-07")

_CHECKS: dict[str, Check] = {
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, (list, tuple)),
    "number": lambda value: isinstance(value, (int, float)) and not isinstance(value, bool),
    "integer": lambda value: (
        (isinstance(value, int) and not isinstance(value, bool))
        or (isinstance(value, float) and value.is_integer())
    ),
}


class Subschemas:
    """The subschemas of `root`, which must not change from here on.

    `is_valid` checks a value against the whole. Formats count unless `validate_formats` is off.
    """

    def __init__(
        self, root: dict[str, Any], is_valid: Check, *, validate_formats: bool = True
    ) -> None:
        self._root = root
        self._formats = validate_formats
        dialect = str(root.get("$schema", ""))
        self._id = "id" if "draft-04" in dialect or "draft-03" in dialect else "$id"
        self._reference_stands_alone = any(name in dialect for name in _OLD)
        self._nodes: dict[int, _Node] = {}
        self._named: dict[str, dict[str, Any]] = {}
        self._checks: dict[int, Check] = {id(root): is_valid}
        self._patterns: dict[str, Check] = {}
        self._walk(root, "", _HOME)

    def layers(self, roots: tuple[Schema, ...]) -> tuple[list[dict[str, Any]], bool]:
        """Spread schemas into all that holds with them by `$ref` and `allOf`.

        The second value is False if a reference leads nowhere, or something is said that no
        value can meet: then a value is not at fault.
        """
        layers: list[dict[str, Any]] = []
        meetable = True
        seen: set[int] = set()
        waiting = list(reversed(roots))
        while waiting:
            node = waiting.pop()
            if not isinstance(node, dict) or id(node) in seen:
                continue
            seen.add(id(node))
            targets = self._targets(node)
            meetable = meetable and None not in targets and node.get("not") not in ({}, True)
            waiting += [target for target in targets if target is not None]
            if targets and self._reference_stands_alone:
                continue
            layers.append(node)
            members = node.get("allOf")
            waiting += reversed(members) if isinstance(members, list) else ()
        return layers, meetable

    def accepts(self, node: Schema) -> Check:
        """Give the check of one subschema; one that cannot be compiled accepts everything."""
        if not isinstance(node, dict):
            return _anything if node else _no_value
        check = self._checks.get(id(node))
        if check is None:
            check = _type_check(node) or _Lazy(self._compile, node)
            self._checks[id(node)] = check
        return check

    def matches(self, pattern: str, name: str) -> bool:
        """Whether a name matches, by the same regular expressions as in the check."""
        check = self._patterns.get(pattern)
        if check is None:
            check = self._compiled({"pattern": pattern}) or _no_value
            self._patterns[pattern] = check
        return check(name)

    def _compile(self, node: dict[str, Any]) -> Check:
        place = self._nodes.get(id(node))
        if place is None:
            return _anything
        if self._is_of_one_draft and _ASSERTING.issuperset(node):
            return self._compiled(node) or _anything  # it needs nothing of the rest
        if self._registry is None:
            return _anything
        return self._by_address.at(_address(place))

    @cached_property
    def _is_of_one_draft(self) -> bool:
        """Whether all of it is read as what names no draft is read."""
        return not any("$schema" in place.schema for place in list(self._nodes.values()))

    @cached_property
    def _by_address(self) -> Checks:
        return Checks(
            lambda schema: self._compiled(schema, self._registry),
            lambda: [_address(place) for place in list(self._nodes.values())],
        )

    @cached_property
    def _registry(self) -> jsonschema_rs.Registry | None:
        """The schema under an address of ours; None if it does not hold together."""
        try:
            return jsonschema_rs.Registry([(_HOME, self._without_dangling())], retriever=_refuse)
        except _UNUSABLE:
            return None

    def _compiled(
        self, schema: dict[str, Any], registry: jsonschema_rs.Registry | None = None
    ) -> Check | None:
        try:
            return jsonschema_rs.validator_for(
                schema,
                registry=registry,
                retriever=_refuse,
                validate_formats=self._formats,
                pattern_options=PATTERNS,
            ).is_valid
        except _UNUSABLE:
            return None

    def _without_dangling(self) -> dict[str, Any]:
        """Give the schema with each reference that leads nowhere made to accept no value."""
        dangling = [place.pointer for place in list(self._nodes.values()) if self._dangles(place)]
        if not dangling:
            return self._root
        document = copy.deepcopy(self._root)
        for pointer in dangling:
            node: Any = _at(document, pointer)
            for keyword in _REFERENCES:
                node.pop(keyword, None)
            node["allOf"] = [*node.get("allOf", ()), _NO_SCHEMA]
        return document

    def _dangles(self, place: _Node) -> bool:
        stated = [place.schema[word] for word in _REFERENCES if word in place.schema]
        return any(
            self._target(place.schema, reference) is None
            and not str(reference).startswith(_METASCHEMAS)
            for reference in stated
        )

    def _targets(self, node: dict[str, Any]) -> list[Schema | None]:
        return [self._target(node, node[word]) for word in _REFERENCES if word in node]

    def _target(self, node: dict[str, Any], reference: object) -> Schema | None:
        """Follow a reference; None if it leads out of the schema or to nothing."""
        place = self._nodes.get(id(node))
        if place is None or not isinstance(reference, str):
            return None
        address, _, fragment = reference.partition("#")
        address = urljoin(place.base, address) if address else place.base
        fragment = unquote(fragment)
        if fragment and not fragment.startswith("/"):
            return self._named.get(f"{address}#{fragment}")
        resource = self._named.get(address)
        found = _at(resource, fragment)
        if isinstance(found, dict) and resource is not None and id(found) not in self._nodes:
            # Not where subschemas usually stand, such as under `components`.
            owner = self._nodes[id(resource)]
            self._walk(found, owner.pointer + fragment, owner.base)
        return found if isinstance(found, (dict, bool)) else None

    def _walk(self, root: dict[str, Any], pointer: str, base: str) -> None:
        """Note where each subschema stands and by what names it may be referred to."""
        waiting: list[tuple[object, str, str]] = [(root, pointer, base)]
        while waiting:
            node, pointer, base = waiting.pop()
            if not isinstance(node, dict) or id(node) in self._nodes:
                continue
            base = self._name(node, base)
            self._nodes[id(node)] = _Node(node, pointer, base)
            waiting += ((child, pointer + step, base) for child, step in _children(node))

    def _name(self, node: dict[str, Any], base: str) -> str:
        stated = node.get(self._id)
        if not self._nodes:
            self._named[base] = node
        if isinstance(stated, str):
            if stated.startswith("#"):
                self._named.setdefault(base + stated, node)
            else:
                base = urljoin(base, stated.rstrip("#"))
                self._named.setdefault(base, node)
        for keyword in ("$anchor", "$dynamicAnchor"):
            if isinstance(node.get(keyword), str):
                self._named.setdefault(f"{base}#{node[keyword]}", node)
        return base


class _Node(NamedTuple):
    """A subschema, where it stands, and what its references are relative to."""

    schema: dict[str, Any]
    pointer: str
    base: str


def _address(place: _Node) -> str:
    return f"{_HOME}#{quote(place.pointer, safe='/~')}"


class _Lazy:
    """A check that is compiled when it is first asked."""

    __slots__ = ("_check", "_compile", "_node")

    def __init__(self, compile_: Callable[[dict[str, Any]], Check], node: dict[str, Any]) -> None:
        self._compile = compile_
        self._node = node
        self._check: Check | None = None

    def __call__(self, value: Any) -> bool:
        if self._check is None:
            self._check = self._compile(self._node)
        return self._check(value)


def _type_check(node: dict[str, Any]) -> Check | None:
    """Give a check in Python for a subschema that says no more than a type."""
    if not _REMARKS.issuperset(node):
        return None
    stated = node.get("type", [])
    names = stated if isinstance(stated, list) else [stated]
    checks = [_CHECKS[name] for name in names if name in _CHECKS]
    if len(checks) != len(names):
        return None
    if len(checks) == 1:
        return checks[0]
    return (lambda value: any(check(value) for check in checks)) if checks else _anything


def _children(node: dict[str, Any]) -> Iterator[tuple[object, str]]:
    for keyword, stated in node.items():
        if isinstance(stated, list) and keyword in _LISTS:
            yield from ((child, f"/{keyword}/{n}") for n, child in enumerate(stated))
        elif isinstance(stated, dict) and keyword in _MAPS:
            yield from ((s, f"/{keyword}/{escaped(name)}") for name, s in stated.items())
        elif isinstance(stated, dict) and keyword in _SINGLES:
            yield stated, f"/{keyword}"


def _at(document: object, pointer: str) -> object:
    for step in steps_of(pointer):
        if isinstance(document, dict):
            document = document.get(step)
        elif isinstance(document, list) and step.isdecimal() and int(step) < len(document):
            document = document[int(step)]
        else:
            return None
    return document


def _anything(_: Any) -> bool:
    return True


def _no_value(_: Any) -> bool:
    return False


def _refuse(address: str) -> NoReturn:
    raise ValueError(f"{address} is not fetched: references lead inside the schema only")
