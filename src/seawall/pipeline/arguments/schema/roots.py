"""Whether a schema can be met by an object at all, as a tool's arguments always are one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from seawall.pipeline.arguments.schema.documents import Documents, Place

_PLACES_AT_MOST = 200


def accepts_objects(documents: Documents) -> bool:
    """Whether an object may be valid; `False` is certain, `True` is not."""
    root = documents.root.node
    if root.get("type") == "object" and not root.keys() & _NARROWING:
        return True
    return _Search(documents).accepts(documents.root)


_NARROWING = {"$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "not", "enum", "const"}


class _Search:
    def __init__(self, documents: Documents) -> None:
        self._documents = documents
        self._seen: set[tuple[str, tuple[str, ...]]] = set()

    def accepts(self, place: Place) -> bool:
        node = place.node
        if not isinstance(node, dict):
            return node is not False
        key = (place.document, place.steps)
        if key in self._seen or len(self._seen) > _PLACES_AT_MOST:
            return True
        self._seen.add(key)
        return (
            _allows(node)
            and all(self.accepts(target) for target in self._documents.targets(place))
            and all(self.accepts(part) for part in self._parts(place, "allOf"))
            and self._one_accepts(place, "anyOf")
            and self._one_accepts(place, "oneOf")
        )

    def _one_accepts(self, place: Place, keyword: str) -> bool:
        parts = self._parts(place, keyword)
        return not parts or any(self.accepts(part) for part in parts)

    def _parts(self, place: Place, keyword: str) -> list[Place]:
        count = len(place.node.get(keyword, ()))
        return [self._documents.child(place, keyword, str(index)) for index in range(count)]


def _allows(node: dict[str, Any]) -> bool:
    """Whether the node itself, without what it refers to and combines, allows objects."""
    kind = node.get("type", "object")
    listed = node.get("enum", [node.get("const", {})])
    return (
        "object" in ([kind] if isinstance(kind, str) else kind)
        and any(isinstance(value, dict) for value in listed)
        and node.get("not", False) not in ({}, True)
    )
