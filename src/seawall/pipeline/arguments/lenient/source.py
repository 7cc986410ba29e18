"""Read the keywords of one subschema into its node, each only where it has the right shape."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from seawall.pipeline.arguments.lenient import rules
from seawall.pipeline.arguments.lenient.node import Node
from seawall.pipeline.arguments.lenient.references import References, Unresolved
from seawall.pipeline.arguments.lenient.values import child, is_number, script_keys

_MEMBERS = ("properties", "patternProperties", "additionalProperties")


class Source:
    """One subschema as it is written, and where it stands."""

    def __init__(
        self,
        node_of: Callable[[Any, str, str], Node],
        raw: Mapping[str, Any],
        base: str,
        place: str,
    ) -> None:
        self._node_of = node_of
        self._raw = raw
        self._base = base
        self._place = place

    def _one(self, keyword: str) -> Node | None:
        if keyword not in self._raw:
            return None
        return self._node_of(self._raw[keyword], self._base, child(self._place, keyword))

    def _many(self, keyword: str) -> tuple[Node, ...] | None:
        given = self._raw.get(keyword)
        if not isinstance(given, list | tuple):
            return None
        place = child(self._place, keyword)
        return tuple(
            self._node_of(item, self._base, child(place, position))
            for position, item in enumerate(given)
        )

    def _map(self, keyword: str) -> dict[str, Node]:
        given = self._raw.get(keyword)
        if not isinstance(given, Mapping):
            return {}
        place = child(self._place, keyword)
        return {
            key: self._node_of(given[key], self._base, child(place, key))
            for key in script_keys(given)
        }

    def read_object(self, node: Node) -> None:
        """Read what an object must hold."""
        required = self._raw.get("required")
        if isinstance(required, list | tuple):
            node.required = tuple(name for name in required if isinstance(name, str))
        node.properties = self._map("properties")
        node.additional = self._one("additionalProperties")
        node.names = self._one("propertyNames")
        node.dependents = tuple(self._dependents())

    def patterned(self) -> dict[str, Node]:
        """Give the subschemas of `patternProperties` by their patterns."""
        return self._map("patternProperties")

    def _dependents(self) -> list[tuple[str, tuple[str, ...] | Node]]:
        found: list[tuple[str, tuple[str, ...] | Node]] = []
        for keyword in ("dependentRequired", "dependencies", "dependentSchemas"):
            given = self._raw.get(keyword)
            if not isinstance(given, Mapping):
                continue
            for key in script_keys(given):
                if keyword != "dependentSchemas" and isinstance(given[key], list | tuple):
                    found.append((key, tuple(given[key])))
                elif keyword != "dependentRequired":
                    place = child(child(self._place, keyword), key)
                    found.append((key, self._node_of(given[key], self._base, place)))
        return found

    def read_array(self, node: Node) -> None:
        """Read the items, a draft 7 list of them included."""
        listed = self._many("items")
        if listed is not None:
            node.prefix, node.is_tuple, node.rest = listed, True, self._one("additionalItems")
        else:
            prefix = self._many("prefixItems")
            node.prefix, node.is_tuple = prefix or (), prefix is not None
            node.rest = node.more = self._one("items")
        node.contains = self._one("contains")
        if is_number(self._raw.get("minContains")):
            node.contains_at_least = self._raw["minContains"]
        if is_number(self._raw.get("maxContains")):
            node.contains_at_most = self._raw["maxContains"]

    def read_logic(self, node: Node) -> None:
        """Read what applies to the same value."""
        node.all_of = self._many("allOf")
        node.any_of = self._many("anyOf")
        node.one_of = self._many("oneOf")
        node.negated = self._one("not")
        node.condition = self._one("if")
        if node.condition is not None:
            node.then = self._one("then")
            node.otherwise = self._one("else")
        node.unevaluated_properties = self._one("unevaluatedProperties")
        node.unevaluated_items = self._one("unevaluatedItems")

    def read_references(self, node: Node, references: References) -> None:
        """Find the targets of references."""
        reference, dynamic = self._raw.get("$ref"), self._raw.get("$dynamicRef")
        if isinstance(reference, str):
            node.reference_text = reference
            node.reference = self._target(references.resolve, reference)
            node.dangles = node.reference is None
        if isinstance(dynamic, str):
            node.dynamic = self._target(references.resolve_dynamic, dynamic) or Node(verdict=False)

    def _target(
        self, resolve: Callable[[str, str], tuple[Any, str]], reference: str
    ) -> Node | None:
        try:
            raw, base = resolve(reference, self._base)
        except Unresolved:
            return None
        target = self._node_of(raw, base, child(self._place, "$ref"))
        target.shared = True
        return target


def read_type(node: Node, raw: Mapping[str, Any]) -> None:
    """Read `type`; a name nobody knows is met by no value."""
    if "type" not in raw:
        return
    given = raw["type"]
    names = list(given) if isinstance(given, list | tuple) else [given]
    node.is_typed = True
    node.type_names = tuple(name for name in names if isinstance(name, str))
    node.kinds = frozenset(kind for name in node.type_names for kind in rules.TYPES.get(name, ()))
    node.type_message = f"expected {' or '.join(str(name) for name in names)}"


def read_scalars(node: Node, raw: Mapping[str, Any]) -> None:
    """Read the keywords that look at one value alone, but for those of text."""
    node.values = rules.value_rules(raw)
    node.numbers = rules.number_rules(raw)
    node.sizes = rules.size_rules(raw)
    node.lengths = rules.length_rules(raw)
    node.has_members = any(keyword in raw for keyword in _MEMBERS)
    if "const" in raw:
        node.constant = node.literals = (raw["const"],)
    elif isinstance(raw.get("enum"), list | tuple):
        node.literals = tuple(raw["enum"])


def conversion(node: Node, raw: Mapping[str, Any]) -> str:
    """Choose the rule of pass 2: the first keyword that applies, and only that one."""
    firsts = (
        ("reference", node.reference_text is not None),
        ("const", "const" in raw),
        ("enum", isinstance(raw.get("enum"), list | tuple)),
        ("union", node.any_of is not None or node.one_of is not None),
        ("intersection", node.all_of is not None),
    )
    found = next((rule for rule, applies in firsts if applies), "")
    return found or _conversion_by_type(node, raw)


def _conversion_by_type(node: Node, raw: Mapping[str, Any]) -> str:
    if node.is_typed:
        return raw["type"] if isinstance(raw["type"], str) and raw["type"] in rules.TYPES else ""
    if "properties" in raw or "patternProperties" in raw:
        return "object"
    return "array" if "items" in raw or "prefixItems" in raw else ""
