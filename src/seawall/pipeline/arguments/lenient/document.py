"""Say a schema once more, in clean draft 2020-12, for jsonschema-rs.

It answers whether a value is valid far faster than the nodes do, but refuses what older drafts
wrote, dangling references and keywords of the wrong shape. What cannot be said without loss is
None: then only the nodes answer.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from seawall.pipeline.arguments.lenient.rules import TYPES
from seawall.pipeline.arguments.lenient.words import Unsayable, least, most

if TYPE_CHECKING:
    from seawall.pipeline.arguments.lenient.node import Node

_NOTHING: dict[str, Any] = {"not": {}}
_MAX_INLINE = 40


def document_of(root: Node) -> dict[str, Any] | None:
    """Give the whole schema; references lead to `$defs`, as does what is nested deeply."""
    writer = _Writer()
    try:
        return writer.document(root)
    except Unsayable:
        return None


class _Writer:
    def __init__(self) -> None:
        self._names: dict[int, str] = {}
        self._waiting: list[tuple[str, Node]] = []

    def document(self, root: Node) -> dict[str, Any]:
        found = {"$ref": self._name(root)}
        definitions: dict[str, Any] = {}
        while self._waiting:
            name, node = self._waiting.pop()
            body = node.verdict
            definitions[name] = self._body(node, 0) if body is None else body
        return {**found, "$defs": definitions}

    def _name(self, node: Node) -> str:
        name = self._names.get(id(node))
        if name is None:
            name = self._names[id(node)] = str(len(self._names))
            self._waiting.append((name, node))
        return f"#/$defs/{name}"

    def _write(self, node: Node, depth: int) -> dict[str, Any] | bool:
        if node.verdict is not None:
            return node.verdict
        if node.shared or depth >= _MAX_INLINE:
            return {"$ref": self._name(node)}
        return self._body(node, depth)

    def _body(self, node: Node, depth: int) -> dict[str, Any]:
        if node.words is None:
            raise Unsayable
        out = dict(node.words)
        if node.kinds is not None:
            known = [name for name in dict.fromkeys(node.type_names) if name in TYPES]
            if not known:
                return _NOTHING
            out["type"] = known
        if node.any_of == () or node.one_of == () or node.dangles:
            return _NOTHING
        self._object(node, out, depth + 1)
        self._array(node, out, depth + 1)
        self._logic(node, out, depth + 1)
        return out

    def _set(self, out: dict[str, Any], keyword: str, node: Node | None, depth: int) -> None:
        if node is not None:
            out[keyword] = self._write(node, depth)

    def _object(self, node: Node, out: dict[str, Any], depth: int) -> None:
        if node.required:
            out["required"] = list(dict.fromkeys(node.required))
        if node.properties:
            out["properties"] = {
                key: self._write(inner, depth) for key, inner in node.properties.items()
            }
        if node.patterns:
            out["patternProperties"] = self._patterns(node, depth)
        self._set(out, "additionalProperties", node.additional, depth)
        self._set(out, "propertyNames", node.names, depth)
        for key, needs in node.dependents:
            self._dependent(out, key, needs, depth)

    def _patterns(self, node: Node, depth: int) -> dict[str, Any]:
        written = {p.source: self._write(inner, depth) for p, inner in node.patterns}
        if len(written) < len(node.patterns):
            raise Unsayable
        return written

    def _dependent(
        self, out: dict[str, Any], key: str, needs: tuple[str, ...] | Node, depth: int
    ) -> None:
        if isinstance(needs, tuple):
            required = out.setdefault("dependentRequired", {}).setdefault(key, [])
            required += [name for name in dict.fromkeys(needs) if name not in required]
        elif key in out.setdefault("dependentSchemas", {}):
            raise Unsayable
        else:
            out["dependentSchemas"][key] = self._write(needs, depth)

    def _array(self, node: Node, out: dict[str, Any], depth: int) -> None:
        if node.prefix:
            out["prefixItems"] = [self._write(inner, depth) for inner in node.prefix]
        self._set(out, "items", node.rest, depth)
        if node.contains is not None:
            out["contains"] = self._write(node.contains, depth)
            out["minContains"] = least(node.contains_at_least)
            if node.contains_at_most != math.inf:
                out["maxContains"] = most(node.contains_at_most)

    def _logic(self, node: Node, out: dict[str, Any], depth: int) -> None:
        branches = (("allOf", node.all_of), ("anyOf", node.any_of), ("oneOf", node.one_of))
        for keyword, nodes in branches:
            if nodes:
                written = [self._write(inner, depth) for inner in nodes]
                out[keyword] = [*out.get(keyword, ()), *written]
        self._set(out, "not", node.negated, depth)
        self._set(out, "if", node.condition, depth)
        self._set(out, "then", node.then, depth)
        self._set(out, "else", node.otherwise, depth)
        self._set(out, "unevaluatedProperties", node.unevaluated_properties, depth)
        self._set(out, "unevaluatedItems", node.unevaluated_items, depth)
        if node.reference is not None:
            out["$ref"] = self._name(node.reference)
        if node.dynamic is not None:
            out["allOf"] = [*out.get("allOf", ()), {"$ref": self._name(node.dynamic)}]
