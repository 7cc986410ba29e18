"""Pass 3: coerce single values by `type`, the weak rules.

It sees what pass 2 left, above all lists of types. It walks `allOf`, `anyOf` and `oneOf`, then
members and items where the type names them; it never follows a reference and never wraps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from seawall.pipeline.arguments.lenient.rewriter import Rewriter
from seawall.pipeline.arguments.lenient.scalars import WEAK
from seawall.pipeline.arguments.lenient.values import kind_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seawall.pipeline.arguments.lenient.node import Node


class TypeCoercer(Rewriter):
    """Pass 3 over the value of one call."""

    def walk(self, node: Node, value: Any) -> Any:
        """Coerce by intersections, unions and the type, then inside."""
        self._work.spend()
        for inner in node.all_of or ():
            value = self.walk(inner, value)
        for branches in (node.any_of, node.one_of):
            if branches is not None:
                value = self._union(branches, value)
        if not node.type_names:
            return value
        value = _typed(node, value)
        if "object" in node.type_names and isinstance(value, dict):
            return self._object(node, value)
        if "array" in node.type_names and isinstance(value, list | tuple):
            return self._array(node, value)
        return value

    def _union(self, branches: Sequence[Node], value: Any) -> Any:
        for branch in branches:
            if self._checker.accepts(branch, value):
                return value
        for branch in branches:
            candidate = self.walk(branch, value)
            if self._checker.accepts(branch, candidate):
                return candidate
        return value


def _typed(node: Node, value: Any) -> Any:
    """Keep a value of a listed type; else take the first listed type that changes it."""
    if len(node.type_names) > 1 and kind_of(value) in (node.kinds or ()):
        return value
    for name in node.type_names:
        weak = WEAK.get(name)
        candidate = value if weak is None else weak(value)
        if candidate is not value:
            return candidate
    return value
