"""What the three passes share: walking members and items, copying only along changed paths."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from seawall.pipeline.arguments.lenient.check import members_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seawall.pipeline.arguments.lenient.check import Checker, Work
    from seawall.pipeline.arguments.lenient.node import Node


class Rewriter(ABC):
    """One pass over the value of one call. What does not change comes back as the same object."""

    def __init__(self, checker: Checker, work: Work) -> None:
        self._checker = checker
        self._work = work

    @abstractmethod
    def walk(self, node: Node, value: Any) -> Any:
        """Give the value as this pass turns it for a subschema."""

    def _object(self, node: Node, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        copy: dict[str, Any] | None = None
        for key, item in value.items():
            changed = item
            for inner in members_of(node, key):
                changed = self.walk(inner, changed)
            if changed is not item:
                copy = dict(value) if copy is None else copy
                copy[key] = changed
        return value if copy is None else copy

    def _array(self, node: Node, value: Sequence[Any]) -> Sequence[Any]:
        copy: list[Any] | None = None
        for position, item in enumerate(value):
            inner = node.prefix[position] if position < len(node.prefix) else node.more
            changed = item if inner is None else self.walk(inner, item)
            if changed is not item:
                copy = list(value) if copy is None else copy
                copy[position] = changed
        return value if copy is None else copy


class NullDropper(Rewriter):
    """Pass 1: drop nulls that stand for "not given".

    A null goes when its property is optional, is no reference, and rejects null. References,
    unions and conditions are not walked.
    """

    def walk(self, node: Node, value: Any) -> Any:
        """Walk members by their keywords, whatever the type says."""
        self._work.spend()
        if isinstance(value, dict):
            return self._object(node, value) if node.has_members else value
        return self._array(node, value) if isinstance(value, list | tuple) else value

    def _object(self, node: Node, value: dict[str, Any]) -> Any:
        gone = {key for key, item in value.items() if item is None and self._goes(node, key)}
        if gone:
            value = {key: item for key, item in value.items() if key not in gone}
        return super()._object(node, value)

    def _goes(self, node: Node, key: str) -> bool:
        inner = node.properties.get(key)
        if inner is None or key in node.required or inner.reference_text is not None:
            return False
        return not self._checker.accepts(inner, None)
