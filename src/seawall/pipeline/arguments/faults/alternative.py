"""One of the alternatives of a schema: what it is called, and what holds wherever it does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from seawall.pipeline.arguments.faults import wording
from seawall.pipeline.arguments.schema.documents import MARK, mapping

if TYPE_CHECKING:
    from seawall.pipeline.arguments.schema.documents import Documents, Place

_STEPS_AT_MOST = 50


class Alternative:
    """One alternative, and what it says for certain."""

    def __init__(self, documents: Documents, place: Place) -> None:
        self.name = label(place)
        nodes = _certain(documents, place)
        self._stated = [names for node in nodes if (names := wording.types(node.node))]
        self._names = {name for node in nodes for name in mapping(node.node, "properties")}
        self.types = [name for names in self._stated for name in names]
        self.choices = next((found for n in nodes if (found := _choices(n.node))), None)
        if self.types == ["null"]:
            self.choices = [None]
        self.tags = _tags(documents, nodes)
        self.is_hopeless = place.node is False or any(MARK in node.node for node in nodes)

    def suits(self, value: Any) -> bool:
        """Whether the type of a value is one that this alternative takes."""
        return all(any(wording.has_kind(value, name) for name in names) for names in self._stated)

    def declared(self, value: dict[str, Any]) -> int:
        """Count the members of an object that this alternative declares."""
        return len(self._names & value.keys())

    def contradicts(self, value: dict[str, Any]) -> bool:
        """Whether a tag of the object is another one's."""
        return any(
            name in value and not any(is_same(value[name], tag) for tag in tags)
            for name, tags in self.tags.items()
        )


def label(place: Place) -> str:
    """Name an alternative: by its title, the definition it refers to, or its number."""
    node = place.node if isinstance(place.node, dict) else {}
    title, reference = node.get("title"), node.get("$ref")
    if isinstance(title, str) and title:
        return wording.name(title)
    if isinstance(reference, str) and reference.rpartition("/")[2]:
        return wording.name(reference.rpartition("/")[2])
    return f"alternative {int(place.steps[-1]) + 1}"


def _certain(documents: Documents, place: Place) -> list[Place]:
    """Give the nodes that hold wherever the place does."""
    found: list[Place] = []
    waiting = [place]
    while waiting and len(found) < _STEPS_AT_MOST:
        now = waiting.pop(0)
        if not isinstance(now.node, dict) or any(now.node is known.node for known in found):
            continue
        found.append(now)
        waiting += documents.targets(now)
        waiting += [
            documents.child(now, "allOf", str(i)) for i in range(len(now.node.get("allOf", ())))
        ]
    return found


def _choices(node: dict[str, Any]) -> list[Any] | None:
    """Give the values a node lists, if they are all scalars."""
    listed = node.get("enum", [node["const"]] if "const" in node else None)
    if not isinstance(listed, list) or any(isinstance(v, (dict, list)) for v in listed):
        return None
    return listed


def _tags(documents: Documents, nodes: list[Place]) -> dict[str, list[Any]]:
    """Give the members that can only have certain values."""
    tags: dict[str, list[Any]] = {}
    for node in nodes:
        for name in mapping(node.node, "properties"):
            for part in _certain(documents, documents.child(node, "properties", name)):
                choices = _choices(part.node)
                if choices:
                    tags.setdefault(name, choices)
    return tags


def is_same(one: Any, other: Any) -> bool:
    """Whether two scalars are equal in JSON, where true is not 1."""
    return one == other and isinstance(one, bool) == isinstance(other, bool)
