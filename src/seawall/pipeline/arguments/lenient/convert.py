"""Pass 2: convert towards the schema, the strong rules.

At each subschema only the first of these counts: `$ref`, `const`, `enum`, `anyOf`, `oneOf`,
`allOf`, `type` if it is one name, members, items. A list of types gets nothing here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from seawall.pipeline.arguments.lenient.rewriter import Rewriter
from seawall.pipeline.arguments.lenient.scalars import STRONG, to_literal
from seawall.pipeline.arguments.lenient.values import is_same

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from seawall.pipeline.arguments.lenient.check import Checker, Work
    from seawall.pipeline.arguments.lenient.node import Node


_FAR = 1_000_000


class Converter(Rewriter):
    """Pass 2 over the value of one call.

    A pair of subschema and value that is being converted already comes back as it is: a schema
    may lead back to itself by a reference or by wrapping a value into a list. `_reach` is the depth
    of the outermost open pair that something was left as it is for.
    """

    def __init__(self, checker: Checker, work: Work) -> None:
        super().__init__(checker, work)
        self._entered: dict[tuple[int, type | None, Hashable], int] = {}
        self._reach = _FAR
        # The value is kept beside its result: as long as it lives, no other value has its id.
        self._known: dict[tuple[int, type | None, Hashable], tuple[Any, Any]] = {}

    def walk(self, node: Node, value: Any) -> Any:
        """Convert by the rule of this subschema."""
        self._work.spend()
        rule = self._RULES.get(node.conversion)
        return value if rule is None else rule(self, node, value)

    def _reference(self, node: Node, value: Any) -> Any:
        # Applies the target's rule itself: each frame saved here allows for deeper values.
        target = node.reference
        rule = None if target is None else self._RULES.get(target.conversion)
        if target is None or rule is None:
            return value
        key = _pair(target, value)
        known = self._known.get(key)
        if known is not None:
            return known[1]
        if key in self._entered:
            return self._cut(key, value)
        self._work.spend()
        outer, self._reach = self._reach, _FAR
        self._entered[key] = len(self._entered)
        result = rule(self, target, value)
        if self._leave(key, outer) and key[1] is None:
            self._known[key] = (value, result)
        return result

    def _wrapped(self, node: Node, value: Any) -> list[Any]:
        key = _pair(node, value)
        if key in self._entered:
            return [self._cut(key, value)]
        outer, self._reach = self._reach, _FAR
        self._entered[key] = len(self._entered)
        item = self.walk(node, value)
        self._leave(key, outer)
        return [item]

    def _cut(self, key: tuple[int, type | None, Hashable], value: Any) -> Any:
        self._reach = min(self._reach, self._entered[key])
        return value

    def _leave(self, key: tuple[int, type | None, Hashable], outer: int) -> bool:
        """End a pair; say whether its result would be the same wherever else it is met.

        It would, if nothing inside was cut because of a pair that is still open.
        """
        depth = self._entered.pop(key)
        settled = self._reach >= depth
        self._reach = outer if settled else min(outer, self._reach)
        return settled

    def _constant(self, node: Node, value: Any) -> Any:
        return to_literal(node.literals[0], value)

    def _enum(self, node: Node, value: Any) -> Any:
        if any(is_same(member, value) for member in node.literals):
            return value
        for member in node.literals:
            candidate = to_literal(member, value)
            if candidate is not value and self._checker.accepts(node, candidate):
                return candidate
        return value

    def _union(self, node: Node, value: Any) -> Any:
        """Keep what a branch accepts; else take the first conversion the whole node accepts."""
        branches = node.one_of or () if node.any_of is None else node.any_of
        for branch in branches:
            if self._checker.accepts(branch, value):
                return self._siblings(node, value)
        for branch in branches:
            candidate = self._siblings(node, self.walk(branch, value))
            if self._checker.accepts(node, candidate):
                return candidate
        return self._siblings(node, value)

    def _intersection(self, node: Node, value: Any) -> Any:
        for inner in node.all_of or ():
            value = self.walk(inner, value)
        return self._siblings(node, value)

    def _siblings(self, node: Node, value: Any) -> Any:
        return self._object(node, value) if node.has_members else value

    def _scalar(self, node: Node, value: Any) -> Any:
        return STRONG[node.conversion](value)

    def _items(self, node: Node, value: Any) -> Any:
        """Convert the items of a list; wrap anything else, unless the schema is a tuple's."""
        if isinstance(value, list | tuple):
            return self._array(node, value)
        if node.is_tuple:
            return value
        if node.more is None or node.more.verdict is not None:
            return [value]
        return self._wrapped(node.more, value)

    _RULES: ClassVar[dict[str, Callable[[Converter, Node, Any], Any]]] = {
        "reference": _reference,
        "const": _constant,
        "enum": _enum,
        "union": _union,
        "intersection": _intersection,
        "object": Rewriter._object,  # noqa: SLF001  # the base of this very class
        "array": _items,
        **dict.fromkeys(STRONG, _scalar),
    }


def _pair(node: Node, value: Any) -> tuple[int, type | None, Hashable]:
    """Name a subschema and a value: a scalar by what it is, anything else by its identity."""
    if value is None or isinstance(value, str | int | float):
        return id(node), type(value), value
    return id(node), None, id(value)
