"""Find what a reference in a schema leads to.

A schema and the documents it may refer to are one closed world: nothing is fetched. Places are
physical (a document and a JSON Pointer), so that a place can be handed to the validator.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote, unquote, urldefrag, urljoin, urlsplit

from seawall.contract.pointer import escaped, steps_of
from seawall.pipeline.arguments.schema.dialects import subschemas

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from seawall.pipeline.arguments.schema.dialects import Dialect

HOME = "urn:seawall:schema"
"""The address of the schema itself, whatever it calls itself."""

MARK = "x-dangling-ref"
"""Stands in place of a reference that leads nowhere, beside what no value meets."""


_LONGEST_CHAIN = 1_000
_DYNAMIC = frozenset({"$dynamicRef", "$recursiveRef"})


class Place(NamedTuple):
    """One node of a schema."""

    node: Any
    document: str
    steps: tuple[str, ...]
    base: str
    """What references in it are relative to."""

    @property
    def address(self) -> str:
        """The place as a reference from anywhere."""
        pointer = "".join(f"/{escaped(step)}" for step in self.steps)
        return f"{self.document}#{quote(pointer, safe='/~')}"


class Documents:
    """A schema, and the documents known beside it."""

    def __init__(self, root: Any, dialect: Dialect, resources: Mapping[str, Any]) -> None:
        self._dialect = dialect
        self._documents = {**resources, HOME: root}
        self.root = self._at(HOME, (), HOME)

    @property
    def everywhere(self) -> Iterator[Place]:
        """All nodes of the schema, and of the documents that references lead to."""
        waiting = [self.root]
        seen: set[tuple[str, tuple[str, ...]]] = set()
        while waiting:
            place = waiting.pop()
            if not isinstance(place.node, dict) or (place.document, place.steps) in seen:
                continue
            seen.add((place.document, place.steps))
            yield place
            waiting += [self.child(place, *steps) for steps, _ in subschemas(place.node)]
            targets = self.targets(place)
            waiting += targets + [self._document(target.document) for target in targets]

    def mention(self, what: Callable[[dict[str, Any]], bool]) -> bool:
        """Whether any object in the documents is such, be it a schema or not."""
        waiting: list[Any] = list(self._documents.values())
        while waiting:
            node = waiting.pop()
            if isinstance(node, dict):
                if what(node):
                    return True
                waiting += node.values()
            elif isinstance(node, list):
                waiting += node
        return False

    def child(self, place: Place, *steps: str) -> Place:
        """Give the node at `steps` below a place, which must be there."""
        node, base = place.node, place.base
        for step in steps:
            node = node[int(step)] if isinstance(node, list) else node[step]
        return Place(node, place.document, place.steps + steps, self._base(node, base))

    def targets(self, place: Place) -> list[Place]:
        """Give what the references of a node lead to."""
        found = [
            self.follow(place, reference)
            for keyword in ("$ref", "$dynamicRef")
            if isinstance(reference := place.node.get(keyword), str)
        ]
        if "$recursiveRef" in place.node:
            found.append(self.follow(place, "#"))
        return [target for target in found if target is not None]

    def final(self, place: Place) -> Place:
        """Give the end of a chain of places that do nothing but refer to the next one."""
        for _ in range(_LONGEST_CHAIN):
            if not isinstance(place.node, dict) or place.node.keys() != {"$ref"}:
                break
            target = self.follow(place, place.node["$ref"])
            if target is None:
                break
            place = target
        return place

    def follow(self, place: Place, reference: str) -> Place | None:
        """Give what a reference leads to; None if there is no schema."""
        if place.base == self.root.base and (reference == "#" or reference.startswith("#/")):
            address, fragment = place.base, unquote(reference[1:])
            start: Place | None = self.root
        else:
            address, fragment = urldefrag(_joined(place.base, reference))
            fragment = unquote(fragment)
            start = self._addresses.get(address)
        if start is None:
            return None
        if fragment and not fragment.startswith("/"):
            return self._anchors.get((address, fragment))
        found = self._below(start, fragment)
        return found if found is not None and isinstance(found.node, (dict, bool)) else None

    @property
    def is_ambiguous(self) -> bool:
        """Whether a dynamic reference can mean several places, depending on the way to it."""
        counts: dict[str, int] = {}
        dynamic = False
        for place in self.everywhere:
            dynamic |= not _DYNAMIC.isdisjoint(place.node)
            for name in _dynamic_names(place.node):
                counts[name] = counts.get(name, 0) + 1
        return dynamic and any(count > 1 for count in counts.values())

    def _below(self, start: Place, pointer: str) -> Place | None:
        place = start
        for step in steps_of(pointer):
            if not _has(place.node, step):
                return None
            place = self.child(place, step)
        return place

    def _document(self, address: str) -> Place:
        return self._at(address, (), address)

    def _at(self, document: str, steps: tuple[str, ...], base: str) -> Place:
        node = self._documents[document]
        return Place(node, document, steps, self._base(node, base))

    def _base(self, node: Any, base: str) -> str:
        """Give what references in a node are relative to."""
        if not isinstance(node, dict):
            return base
        name = node.get(self._dialect.id_keyword)
        if not isinstance(name, str) or name.startswith("#"):
            return base
        if "$ref" in node and self._dialect.ref_stands_alone:
            return base
        return urldefrag(_joined(base, name))[0]

    @cached_property
    def _index(self) -> tuple[dict[str, Place], dict[tuple[str, str], Place]]:
        """Find all addresses and anchors."""
        addresses: dict[str, Place] = {}
        anchors: dict[tuple[str, str], Place] = {}
        waiting = [self._document(address) for address in self._documents]
        addresses.update({urldefrag(place.document)[0]: place for place in waiting})
        while waiting:
            place = waiting.pop()
            if not isinstance(place.node, dict):
                continue
            addresses.setdefault(place.base, place)
            for name in self._names(place.node):
                anchors.setdefault((place.base, name), place)
            waiting += [self.child(place, *steps) for steps, _ in subschemas(place.node)]
        return addresses, anchors

    @property
    def _addresses(self) -> dict[str, Place]:
        return self._index[0]

    @property
    def _anchors(self) -> dict[tuple[str, str], Place]:
        return self._index[1]

    def _names(self, node: Mapping[str, Any]) -> list[str]:
        """Give the anchors of a node, as drafts of all times write them."""
        name = node.get(self._dialect.id_keyword)
        old = [name[1:]] if isinstance(name, str) and name.startswith("#") else []
        new = (node.get("$anchor"), node.get("$dynamicAnchor"))
        return old + [anchor for anchor in new if isinstance(anchor, str)]


def mark_dangling(documents: Documents, known: tuple[str, ...]) -> bool:
    """Replace references that lead nowhere by what no value meets; say whether there were any.

    Changes the documents in place. Addresses that begin with one of `known` are the validator's.
    """
    found = [
        (place.node, keyword, reference)
        for place in documents.everywhere
        for keyword in ("$ref", "$dynamicRef")
        if isinstance(reference := place.node.get(keyword), str)
        and not reference.startswith(known)
        and documents.follow(place, reference) is None
    ]
    for node, keyword, reference in found:
        del node[keyword]
        node["not"] = {}
        node[MARK] = reference
    return bool(found)


def mapping(node: dict[str, Any], keyword: str) -> dict[str, Any]:
    """Give a keyword's value if it is an object, else an empty one."""
    stated = node.get(keyword)
    return stated if isinstance(stated, dict) else {}


def _dynamic_names(node: Mapping[str, Any]) -> list[str]:
    name = node.get("$dynamicAnchor")
    names = [name] if isinstance(name, str) else []
    return [*names, "#"] if node.get("$recursiveAnchor") is True else names


def _joined(base: str, reference: str) -> str:
    if not reference or reference.startswith("#"):
        return urldefrag(base)[0] + reference
    try:
        if urlsplit(reference).scheme or base.startswith("urn:"):
            return reference
        return urljoin(base, reference)
    except ValueError:
        return reference


def _has(node: Any, step: str) -> bool:
    if isinstance(node, list):
        return step.isdecimal() and len(step) < 10 and int(step) < len(node)
    return isinstance(node, dict) and step in node
