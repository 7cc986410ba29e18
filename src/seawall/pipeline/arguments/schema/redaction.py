"""Which values are secrets, by what the schema says of them.

Secret is what any part of the schema that may speak of a value marks with `writeOnly` or
`format: password`, and all that is inside of it. What stands where the schema knows nothing,
or a text where it wants a structure that has secrets inside, may hold one: it counts as secret
in case of doubt, as does a misspelt name of a secret.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from seawall.pipeline.arguments.likeness import is_alike
from seawall.pipeline.arguments.schema.dialects import subschemas, words
from seawall.pipeline.arguments.schema.documents import mapping

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from seawall.pipeline.arguments.schema.documents import Documents, Place

_PLACES_AT_MOST = 500
_ELSEWHERE = words(
    """properties patternProperties additionalProperties unevaluatedProperties items prefixItems
    additionalItems unevaluatedItems contains propertyNames $defs definitions contentSchema"""
)

Key = tuple[str, tuple[str, ...]]


class Secrecy:
    """What the schema says of one value: the nodes that may speak of it."""

    def __init__(
        self,
        documents: Documents,
        matches: Callable[[str, str], bool],
        roots: Iterable[Place],
        *,
        some: bool | None = None,
    ) -> None:
        self._documents = documents
        self._matches = matches
        self._some = documents.mention(_is_marked) if some is None else some
        """Whether there are secrets at all."""
        self.places = _together(documents, roots)
        self.is_secret = any(_is_marked(place.node) for place in self.places)

    def of(self, step: str | int) -> Secrecy:
        """Give what the schema says of a member or an item."""
        if self.is_secret:
            return self
        if not isinstance(step, str):
            return self._of_item(min(step, self._positions))
        return self._below(self._member(step))

    def _of_item(self, index: int) -> Secrecy:
        known = self._items.get(index)
        if known is None:
            known = self._items[index] = self._below(self._item(index))
        return known

    def _below(self, roots: Iterable[Place]) -> Secrecy:
        return Secrecy(self._documents, self._matches, roots, some=self._some)

    @cached_property
    def _items(self) -> dict[int, Secrecy]:
        return {}

    @cached_property
    def _positions(self) -> int:
        """How many items mean something by their position."""
        lists = (place.node.get(word) for place in self.places for word in ("prefixItems", "items"))
        return max((len(listed) for listed in lists if isinstance(listed, list)), default=0)

    def hides(self, value: Any) -> bool:
        """Whether a value must not be shown as a whole."""
        if self.is_secret or isinstance(value, (dict, list, tuple)):
            return self.is_secret
        return self.has_inside

    @property
    def names(self) -> list[str]:
        """The members that are declared by name, in order."""
        named = (name for place in self.places for name in mapping(place.node, "properties"))
        return list(dict.fromkeys(named))

    def declares(self, member: str) -> bool:
        """Whether a member is declared, by name or pattern."""
        return bool(self._declared(member))

    def hides_member(self, member: str) -> bool:
        """Whether an undeclared member may be a misspelt secret."""
        return is_alike(member, self._secret_names)

    @cached_property
    def has_inside(self) -> bool:
        """Whether a structure as the schema wants it holds secrets."""
        if not self._some:
            return False
        seen: set[Key] = set()
        waiting = list(self.places)
        while waiting and len(seen) < _PLACES_AT_MOST:
            place = waiting.pop()
            key = (place.document, place.steps)
            if key in seen or not isinstance(place.node, dict):
                continue
            seen.add(key)
            if _is_marked(place.node):
                return True
            waiting += [
                self._documents.child(place, *steps)
                for steps, _ in subschemas(place.node)
                if steps[0] not in {"$defs", "definitions"}
            ]
            waiting += self._documents.targets(place)
        return False

    @cached_property
    def _secret_names(self) -> list[str]:
        return [name for name in self.names if self.of(name).is_secret] if self._some else []

    def _member(self, member: str) -> list[Place]:
        return self._declared(member) or self._children(
            "additionalProperties", "unevaluatedProperties"
        )

    def _declared(self, member: str) -> list[Place]:
        found = []
        for place in self.places:
            if member in mapping(place.node, "properties"):
                found.append(self._documents.child(place, "properties", member))
            found += [
                self._documents.child(place, "patternProperties", pattern)
                for pattern in mapping(place.node, "patternProperties")
                if self._matches(pattern, member)
            ]
        return found

    def _item(self, index: int) -> list[Place]:
        found = []
        for place in self.places:
            for keyword in ("prefixItems", "items"):
                listed = place.node.get(keyword)
                if isinstance(listed, list) and index < len(listed):
                    found.append(self._documents.child(place, keyword, str(index)))
        return found + self._children("items", "additionalItems", "unevaluatedItems", "contains")

    def _children(self, *keywords: str) -> list[Place]:
        return [
            self._documents.child(place, keyword)
            for place in self.places
            for keyword in keywords
            if isinstance(place.node.get(keyword), dict)
        ]


def _is_marked(node: dict[str, Any]) -> bool:
    return node.get("writeOnly") is True or node.get("format") == "password"


def _together(documents: Documents, roots: Iterable[Place]) -> list[Place]:
    """Give all nodes that speak of the same value as `roots`, whatever the conditions."""
    found: dict[Key, Place] = {}
    waiting = list(roots)
    while waiting and len(found) < _PLACES_AT_MOST:
        place = waiting.pop(0)
        key = (place.document, place.steps)
        if key in found or not isinstance(place.node, dict):
            continue
        found[key] = place
        waiting += [
            documents.child(place, *steps)
            for steps, _ in subschemas(place.node)
            if steps[0] not in _ELSEWHERE
        ]
        waiting += documents.targets(place)
    return list(found.values())
