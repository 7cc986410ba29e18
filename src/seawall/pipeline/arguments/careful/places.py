"""What a schema says of each place in the arguments.

A place is where several subschemas meet: a property's own, what `$ref` and `allOf` add, a
matching pattern. Places are made when a call first needs them and kept, so a tool whose
calls are valid never pays for any.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from seawall.pipeline.arguments.careful.subschemas import Schema, Subschemas
    from seawall.pipeline.arguments.schema.checks import Check

Consumed: TypeAlias = "frozenset[tuple[int, str]]"

_TYPES = {"null", "boolean", "integer", "number", "string", "array", "object"}
_PLACES_AT_MOST = 4096


class Places:
    """Makes places and keeps them: the same subschemas are the same place."""

    def __init__(self, subschemas: Subschemas) -> None:
        self.subschemas = subschemas
        self._made: dict[tuple[tuple[int, ...], Consumed], Place] = {}

    def place(self, roots: tuple[Schema, ...], consumed: Consumed = frozenset()) -> Place:
        """Give the place that all of `roots` speak of; choices in `consumed` are made."""
        key = (tuple(map(id, roots)), consumed)
        place = self._made.get(key)
        if place is None:
            place = Place(self, roots, consumed)
            if len(self._made) < _PLACES_AT_MOST:
                self._made[key] = place
        return place


class Union:
    """Alternatives at one place, of which a value takes one."""

    __slots__ = ("branches", "key")

    def __init__(self, key: tuple[int, str], branches: list[Schema]) -> None:
        self.key = key
        self.branches = branches


class Place:
    """Everything the schema says of one place, taken together."""

    def __init__(self, places: Places, roots: tuple[Schema, ...], consumed: Consumed) -> None:
        self._places = places
        self._subschemas = places.subschemas
        self.roots = roots
        self._consumed = consumed
        self.layers, self.is_meetable = self._subschemas.layers(roots)
        self._named: dict[str, Place | None] = {}
        self.accepts = _all([self._subschemas.accepts(root) for root in roots])
        """Whether a value is valid here as it is."""

    @cached_property
    def wants(self) -> tuple[str, ...]:
        """The types allowed here, in the order the schema lists them; empty if all are."""
        wants: tuple[str, ...] | None = None
        for layer in self.layers:
            stated = layer.get("type")
            if isinstance(stated, str):
                stated = [stated]
            if isinstance(stated, list):
                wants = _both(wants, tuple(t for t in stated if t in _TYPES))
        return wants or ()

    @cached_property
    def choices(self) -> list[Any] | None:
        """The values of `enum` and `const` that are valid here; None if there is no list."""
        found: list[Any] | None = None
        for layer in self.layers:
            listed = layer.get("enum")
            if isinstance(listed, list):
                found = (found or []) + listed
            if "const" in layer:
                found = [*(found or []), layer["const"]]
        if found is None:
            return None
        scalars = [choice for choice in found if not isinstance(choice, (dict, list))]
        distinct = {(type(choice), choice): choice for choice in scalars}
        return [choice for choice in distinct.values() if self.accepts(choice)]

    @cached_property
    def unions(self) -> list[Union]:
        """Alternatives still open here."""
        found = []
        for layer in self.layers:
            for keyword in ("anyOf", "oneOf"):
                branches, key = layer.get(keyword), (id(layer), keyword)
                if isinstance(branches, list) and branches and key not in self._consumed:
                    found.append(Union(key, branches))
        return found

    @cached_property
    def required(self) -> frozenset[str]:
        """Members that may not be left out, as far as is said here."""
        lists = [layer.get("required") for layer in self.layers]
        return frozenset(
            name for names in lists if isinstance(names, list) for name in map(str, names)
        )

    @cached_property
    def is_simple(self) -> bool:
        """Whether nothing here depends on the value: no alternatives, no conditions."""
        return not self.unions and not any(
            keyword in layer and (id(layer), keyword) not in self._consumed
            for layer in self.layers
            for keyword in _CONDITIONS
        )

    @cached_property
    def is_plain(self) -> bool:
        """Whether a container here is valid when its members are, apart from counts."""
        return (
            self.is_simple
            and self.choices is None
            and not any(word in layer for layer in self.layers for word in _UNEVALUATED)
        )

    @cached_property
    def effort(self) -> int:
        """How often a value may be gone through to choose here."""
        return (2 + sum(len(union.branches) for union in self.unions[:1])) * len(self.roots)

    @cached_property
    def patterns(self) -> int:
        """How many patterns a member's name is matched against."""
        return sum(len(_mapping(layer, "patternProperties")) for layer in self.layers)

    def allows(self, kind: str) -> bool:
        """Whether a value of this type could be valid here."""
        return not self.wants or kind in self.wants

    @cached_property
    def is_tuple(self) -> bool:
        """Whether items mean different things by position."""
        return any(_prefix(layer) for layer in self.layers)

    def is_optional(self, name: str) -> bool:
        """Whether `name` is a declared member that may be left out."""
        return name not in self.required and any(
            isinstance(_mapping(layer, "properties").get(name), dict) for layer in self.layers
        )

    def choose(self, union: Union, branch: Schema) -> Place:
        """Give this place with one alternative taken."""
        roots = self.roots if _among(branch, self.roots) else (*self.roots, branch)
        return self._places.place(roots, self._consumed | {union.key})

    def choose_only(self, union: Union, branch: Schema) -> Place:
        """Give this place with one alternative taken and no other union looked at."""
        others = {other.key for other in self.unions}
        return self._places.place((*self.roots, branch), self._consumed | others | {union.key})

    def branch_accepts(self, branch: Schema, value: Any) -> bool:
        """Whether an alternative accepts the value, for itself."""
        return self._subschemas.accepts(branch)(value)

    def under_conditions(self, value: Any) -> Place:
        """Give this place with what `if` and the like add for this value."""
        found: list[Schema] = []
        keys: set[tuple[int, str]] = set()
        for layer in self.layers:
            for keyword in _CONDITIONS:
                key = (id(layer), keyword)
                if keyword in layer and key not in self._consumed:
                    found += self._added(layer, keyword, value)
                    keys.add(key)
        if not found:
            return self
        new = [schema for schema in found if not _among(schema, self.roots)]
        return self._places.place((*self.roots, *new), self._consumed | keys)

    def without_conditions(self) -> Place:
        """Give this place as if no condition were stated."""
        keys = {(id(layer), keyword) for layer in self.layers for keyword in _CONDITIONS}
        return self._places.place(self.roots, self._consumed | keys)

    def _added(self, layer: dict[str, Any], keyword: str, value: Any) -> list[Schema]:
        if keyword == "if":
            holds = self._subschemas.accepts(layer["if"])(value)
            branch = layer.get("then" if holds else "else")
            return [branch] if isinstance(branch, dict) else []
        if not isinstance(value, dict):
            return []
        schemas = _mapping(layer, keyword)
        return [s for name, s in schemas.items() if isinstance(s, dict) and name in value]

    def member(self, name: str) -> Place | None:
        """Give the place of a member; None if nothing is said of it."""
        if name in self._named:
            return self._named[name]
        place = self._joined(self._member_schemas(name))
        if any(name in _mapping(layer, "properties") for layer in self.layers):
            self._named[name] = place
        return place

    def _member_schemas(self, name: str) -> list[Schema]:
        found: list[Schema] = []
        for layer in self.layers:
            own = self._own_member(layer, name)
            found += own or _rest(layer, "additionalProperties")
        if not found and self.is_simple:
            for layer in self.layers:
                found += _rest(layer, "unevaluatedProperties")
        return found

    def _own_member(self, layer: dict[str, Any], name: str) -> list[Schema]:
        found = []
        properties = _mapping(layer, "properties")
        if name in properties:
            found.append(properties[name])
        for pattern, schema in _mapping(layer, "patternProperties").items():
            if self._subschemas.matches(pattern, name):
                found.append(schema)
        return found

    def item(self, index: int) -> Place | None:
        """Give the place of an array's item; None if nothing is said of it."""
        return self._items[min(index, len(self._items) - 1)]

    @cached_property
    def _items(self) -> list[Place | None]:
        """The places of the first items, and last that of all others."""
        longest = max((len(_prefix(layer)) for layer in self.layers), default=0)
        return [self._joined(list(self._item_schemas(i))) for i in range(longest + 1)]

    def _item_schemas(self, index: int) -> Iterator[Schema]:
        for layer in self.layers:
            prefix = _prefix(layer)
            if index < len(prefix):
                yield prefix[index]
            elif isinstance(layer.get("items"), list):
                yield from _rest(layer, "additionalItems")
            else:
                yield from _rest(layer, "items")

    def _joined(self, schemas: list[Schema]) -> Place | None:
        distinct = list({id(schema): schema for schema in schemas}.values())
        return self._places.place(tuple(distinct)) if distinct else None


_CONDITIONS = ("if", "dependentSchemas", "dependencies")
_UNEVALUATED = ("unevaluatedProperties", "unevaluatedItems")


def _all(checks: list[Check]) -> Check:
    if len(checks) == 1:
        return checks[0]
    return lambda value: all(check(value) for check in checks)


def _mapping(layer: Mapping[str, Any], keyword: str) -> Mapping[str, Any]:
    stated = layer.get(keyword)
    return stated if isinstance(stated, dict) else {}


def _prefix(layer: Mapping[str, Any]) -> list[Schema]:
    for keyword in ("prefixItems", "items"):
        stated = layer.get(keyword)
        if isinstance(stated, list):
            return stated
    return []


def _rest(layer: Mapping[str, Any], keyword: str) -> list[Schema]:
    stated = layer.get(keyword)
    return [stated] if isinstance(stated, dict) else []


def _among(schema: Schema, roots: tuple[Schema, ...]) -> bool:
    return any(schema is root for root in roots)


_MEET = (("number", True, False), ("integer", False, True))


def _both(first: tuple[str, ...] | None, second: tuple[str, ...]) -> tuple[str, ...]:
    """Intersect two lists of types; a number that must be whole is an integer."""
    if first is None:
        return second
    both = []
    for name in first:
        if name in second:
            both.append(name)
        elif (name, "integer" in second, "number" in second) in _MEET:
            both.append("integer")
    return tuple(both)
