"""Which values are secrets, by what the schema says of them.

Secret is what any part of the schema that may speak of a value marks with `writeOnly` or
`format: password`, and all that is inside of it. What stands where the schema knows nothing,
or a text where it wants a structure that has secrets inside, may hold one: it counts as secret
in case of doubt, as does a misspelt name of a secret.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

from seawall.pipeline.arguments.likeness import is_alike
from seawall.pipeline.arguments.schema.dialects import subschemas, words
from seawall.pipeline.arguments.schema.documents import mapping

if TYPE_CHECKING:
    from collections.abc import Iterable

    from seawall.pipeline.arguments.schema.documents import Documents, Place

_PLACES_AT_MOST = 500
_KEPT_AT_MOST = 500
"""Of one schema: in what is knotted on purpose there are more than anybody could keep."""
_ELSEWHERE = words(
    """properties patternProperties additionalProperties unevaluatedProperties items prefixItems
    additionalItems unevaluatedItems contains propertyNames $defs definitions contentSchema"""
)

Key = tuple[str, tuple[str, ...]]
Matches = Callable[[str, str], bool]
"""Whether a name, the second, matches a pattern of the schema."""


class Secrecy:
    """What the schema says of one value: the nodes that may speak of it.

    May be kept and asked about any number of values: nothing of them stays, and what is kept is
    bounded by the schema. The schema must not change.
    """

    def __init__(
        self,
        documents: Documents,
        matches: Matches,
        roots: Iterable[Place],
        *,
        some: bool | None = None,
        kept: dict[tuple[Key, ...], Secrecy] | None = None,
    ) -> None:
        self._documents = documents
        self._matches = matches
        self.has_secrets = documents.mention(_is_marked) if some is None else some
        """Whether the schema speaks of secrets at all; if not, nothing is hidden anywhere."""
        self.places = together(documents, roots)
        self.is_secret = any(_is_marked(place.node) for place in self.places)
        self._kept = {} if kept is None else kept
        self._members: dict[str, Secrecy] = {}
        self._items: dict[int, Secrecy] = {}

    def of(self, step: str | int, matches: Matches | None = None) -> Secrecy:
        """Give what the schema says of a member or an item."""
        if self.is_secret:
            return self
        if not isinstance(step, str):
            return self._of_item(min(step, self._positions))
        known = self._members.get(step)
        return self._of_member(step, matches or self._matches) if known is None else known

    def _of_item(self, index: int) -> Secrecy:
        known = self._items.get(index)
        if known is None:
            known, is_kept = self._below(self._item(index))
            if is_kept:
                self._items[index] = known
        return known

    def _of_member(self, member: str, matches: Matches) -> Secrecy:
        found = declared(self._documents, self.places, member, matches)
        below, is_kept = self._below(found or self._children(*_OF_OTHERS))
        # Other names come from values, and there is no end of those.
        if is_kept and member in self._named:
            self._members[member] = below
        return below

    def _below(self, roots: list[Place]) -> tuple[Secrecy, bool]:
        """Give what is said of a value by nodes: one object, whatever the way there, if kept."""
        key = tuple((place.document, place.steps) for place in roots)
        known = self._kept.get(key)
        if known is not None:
            return known, True
        is_kept = len(self._kept) < _KEPT_AT_MOST
        known = Secrecy(
            self._documents, self._matches, roots, some=self.has_secrets, kept=self._kept
        )
        if is_kept:
            self._kept[key] = known
        return known, is_kept

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
        return list(self._named)

    @cached_property
    def _named(self) -> dict[str, None]:
        return declared_names(self.places)

    def hides_member(self, member: str) -> bool:
        """Whether an undeclared member may be a misspelt secret."""
        return is_alike(member, self._secret_names)

    @cached_property
    def has_inside(self) -> bool:
        """Whether a structure as the schema wants it holds secrets."""
        if not self.has_secrets:
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
        if not self.has_secrets:
            return []
        return [name for name in self._named if self.of(name).is_secret]

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


_OF_OTHERS = ("additionalProperties", "unevaluatedProperties")


def declared_names(places: Iterable[Place]) -> dict[str, None]:
    """Give the members that are declared by name, in order."""
    return {name: None for place in places for name in mapping(place.node, "properties")}


def declared(
    documents: Documents, places: Iterable[Place], member: str, matches: Matches
) -> list[Place]:
    """Give what is said of a member, by its name or by patterns."""
    found = []
    for place in places:
        if member in mapping(place.node, "properties"):
            found.append(documents.child(place, "properties", member))
        found += [
            documents.child(place, "patternProperties", pattern)
            for pattern in mapping(place.node, "patternProperties")
            if matches(pattern, member)
        ]
    return found


def _is_marked(node: dict[str, Any]) -> bool:
    return node.get("writeOnly") is True or node.get("format") == "password"


def together(documents: Documents, roots: Iterable[Place]) -> list[Place]:
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
