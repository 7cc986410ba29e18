"""Find what the references of one schema name: `$id`, `$anchor`, JSON Pointers; nothing remote."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote, urljoin

from seawall.contract.pointer import steps_of

_ROOT = "https://schema.invalid/root"
_SCHEMAS = (
    "additionalProperties",
    "propertyNames",
    "contains",
    "not",
    "if",
    "then",
    "else",
    "unevaluatedProperties",
    "unevaluatedItems",
    "additionalItems",
    "contentSchema",
    "items",
)
_MAPS = (
    "properties",
    "patternProperties",
    "$defs",
    "definitions",
    "dependentSchemas",
    "dependencies",
)
_LISTS = ("allOf", "anyOf", "oneOf", "prefixItems", "items")


class Unresolved(LookupError):  # noqa: N818  # named by what happened; it ends at the reader
    """A reference that names nothing in this schema."""


class References:
    """The names inside one schema. Its identifiers are indexed when the first is asked for."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._schema = schema
        self._indexed = False
        self._bases: dict[int, str] = {}
        self._resources: dict[str, Any] = {_ROOT: schema}
        self._anchors: dict[str, Any] = {}
        self._dynamic: set[str] = set()

    def base(self, node: Mapping[str, Any], around: str = _ROOT) -> str:
        """Give the address that references in this subschema are relative to."""
        if "$id" in node:
            self._index()
        known = self._bases.get(id(node))
        return self._address(node, around) if known is None else known

    def resolve(self, reference: str, base: str) -> tuple[Any, str]:
        """Give the subschema a reference names, and its own base."""
        self._index()
        document, _, fragment = _joined(base, reference).partition("#")
        if document not in self._resources:
            raise Unresolved(reference)
        found = self._resources[document]
        if not fragment:
            return found, document
        if fragment.startswith("/"):
            return self._walk(found, document, unquote(fragment))
        anchor = f"{document}#{unquote(fragment)}"
        if anchor not in self._anchors:
            raise Unresolved(reference)
        return self._anchors[anchor], document

    def resolve_dynamic(self, reference: str, base: str) -> tuple[Any, str]:
        """Resolve `$dynamicRef`: evaluation starts at the root, whose anchor comes first."""
        found = self.resolve(reference, base)
        name = _joined(base, reference).partition("#")[2]
        outermost = f"{self.base(self._schema)}#{name}"
        is_dynamic = isinstance(found[0], Mapping) and found[0].get("$dynamicAnchor") == name
        if is_dynamic and outermost in self._dynamic:
            return self._anchors[outermost], self.base(self._schema)
        return found

    def _index(self) -> None:
        if self._indexed:
            return
        self._indexed = True
        waiting: list[tuple[Any, str]] = [(self._schema, _ROOT)]
        while waiting:
            node, around = waiting.pop()
            if isinstance(node, Mapping) and id(node) not in self._bases:
                base = self._address(node, around)
                self._bases[id(node)] = base
                self._name(node, base)
                waiting += [(inner, base) for inner in _subschemas(node)]

    def _address(self, node: Mapping[str, Any], around: str) -> str:
        own = node.get("$id")
        return _joined(around, own).partition("#")[0] if isinstance(own, str) else around

    def _name(self, node: Mapping[str, Any], base: str) -> None:
        if isinstance(node.get("$id"), str):
            self._resources[base] = node
        for keyword in ("$anchor", "$dynamicAnchor"):
            name = node.get(keyword)
            if isinstance(name, str):
                self._anchors[f"{base}#{name}"] = node
                if keyword == "$dynamicAnchor":
                    self._dynamic.add(f"{base}#{name}")

    def _walk(self, found: Any, base: str, pointer: str) -> tuple[Any, str]:
        for step in steps_of(pointer):
            found = _member(found, step)
            base = self._bases.get(id(found), base)
        return found, base


def _subschemas(node: Mapping[str, Any]) -> list[Any]:
    found = [node[keyword] for keyword in _SCHEMAS if keyword in node]
    for keyword in _MAPS:
        if isinstance(node.get(keyword), Mapping):
            found += node[keyword].values()
    for keyword in _LISTS:
        if isinstance(node.get(keyword), list | tuple):
            found += node[keyword]
    return found


def _member(found: Any, key: str) -> Any:
    if isinstance(found, Mapping) and key in found:
        return found[key]
    if isinstance(found, list | tuple) and key.isdecimal() and int(key) < len(found):
        return found[int(key)]
    raise Unresolved(key)


def _joined(base: str, reference: str) -> str:
    """Resolve a reference; a base such as a URN takes fragments only."""
    if reference.startswith("#"):
        return base.partition("#")[0] + reference
    try:
        return urljoin(base, reference)
    except ValueError:
        return reference
