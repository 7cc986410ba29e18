"""Whether a value meets a subschema: the answers that the passes and the fault list ask for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from seawall.pipeline.arguments.lenient.node import relevant
from seawall.pipeline.arguments.lenient.rules import passes
from seawall.pipeline.arguments.lenient.values import kind_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from seawall.pipeline.arguments.lenient.node import Node


class TooMuchWork(Exception):  # noqa: N818  # named by what happened; it ends in the lenient mode
    """A schema so ambiguous that looking into one value would take too long."""


class Work:
    """A budget of steps for one call; all that walk the same value share it."""

    def __init__(self, steps: int) -> None:
        self._left = steps

    def spend(self) -> None:
        """Take one step; raises TooMuchWork when none is left."""
        self._left -= 1
        if self._left < 0:
            raise TooMuchWork


class Checker:
    """Checks values of one call. Answers for shared subschemas are remembered."""

    def __init__(self, work: Work) -> None:
        self._work = work
        # The value is kept beside its answer: as long as it lives, no other value has its id.
        self._known: dict[tuple[int, int], tuple[Any, bool]] = {}

    def accepts(self, node: Node, value: Any) -> bool:
        """Whether the value is valid.

        Each level of nesting costs few frames here, so that deep values stay below Python's limit.
        """
        self._work.spend()
        node = node.alias or node
        if node.verdict is not None:
            return node.verdict
        key = (id(node), id(value))
        known = self._known.get(key) if node.shared else None
        if known is not None:
            return known[1]
        answer = True
        for step in self._steps_for(node, value):
            if not step(self, node, value):
                answer = False
                break
        if node.shared:
            self._known[key] = (value, answer)
        return answer

    def _values(self, node: Node, value: Any) -> bool:
        return passes(node.values, value)

    def _strings(self, node: Node, value: str) -> bool:
        return passes(node.strings, value)

    def _numbers(self, node: Node, value: float) -> bool:
        return passes(node.numbers, value)

    def _sizes(self, node: Node, value: Mapping[str, Any]) -> bool:
        return passes(node.sizes, value)

    def _lengths(self, node: Node, value: Sequence[Any]) -> bool:
        return passes(node.lengths, value)

    def _required(self, node: Node, value: Mapping[str, Any]) -> bool:
        return all(name in value for name in node.required)

    def _members(self, node: Node, value: Mapping[str, Any]) -> bool:
        for key, item in value.items():
            for inner in members_of(node, key):
                if not self.accepts(inner, item):
                    return False
        return True

    def _names(self, node: Node, value: Mapping[str, Any]) -> bool:
        return node.names is None or self.accepts_all(node.names, value)

    def _dependents(self, node: Node, value: Mapping[str, Any]) -> bool:
        for key, needs in node.dependents:
            if key not in value:
                continue
            if isinstance(needs, tuple):
                if any(name not in value for name in needs):
                    return False
            elif not self.accepts(needs, value):
                return False
        return True

    def _items(self, node: Node, value: Sequence[Any]) -> bool:
        for position, item in enumerate(value):
            inner = node.prefix[position] if position < len(node.prefix) else node.rest
            if inner is not None and not self.accepts(inner, item):
                return False
        return True

    def contains_enough(self, node: Node, value: Sequence[Any]) -> bool:
        """Whether `contains` is met as often as it must, and no more often than it may."""
        found = len(self._containing(node, value))
        return node.contains_at_least <= found <= node.contains_at_most

    def _containing(self, node: Node, value: Sequence[Any]) -> list[int]:
        if node.contains is None:
            return []
        wanted = node.contains
        return [at for at, item in enumerate(value) if self.accepts(wanted, item)]

    def _all_of(self, node: Node, value: Any) -> bool:
        for inner in node.all_of or ():  # noqa: SIM110  # a generator would be one frame more
            if not self.accepts(inner, value):
                return False
        return True

    def any_of(self, node: Node, value: Any) -> bool:
        """Whether some branch of `anyOf` accepts the value."""
        for branch in node.any_of or ():  # noqa: SIM110  # a generator would be one frame more
            if self.accepts(branch, value):
                return True
        return False

    def one_of(self, node: Node, value: Any) -> int:
        """Count the branches of `oneOf` that accept the value, two at most."""
        found = 0
        for branch in node.one_of or ():
            found += self.accepts(branch, value)
            if found > 1:
                break
        return found

    def _exactly_one(self, node: Node, value: Any) -> bool:
        return self.one_of(node, value) == 1

    def _negated(self, node: Node, value: Any) -> bool:
        return node.negated is None or not self.accepts(node.negated, value)

    def _condition(self, node: Node, value: Any) -> bool:
        chosen = self.chosen(node, value)
        return chosen is None or self.accepts(chosen, value)

    def chosen(self, node: Node, value: Any) -> Node | None:
        """Give what `if` leads to."""
        if node.condition is None:
            return None
        return node.then if self.accepts(node.condition, value) else node.otherwise

    def _references(self, node: Node, value: Any) -> bool:
        if node.dangles:
            return False
        if node.reference is not None and not self.accepts(node.reference, value):
            return False
        return node.dynamic is None or self.accepts(node.dynamic, value)

    def _other_members(self, node: Node, value: Mapping[str, Any]) -> bool:
        inner = node.unevaluated_properties
        left = self.unevaluated(node, value)
        return inner is None or self.accepts_all(inner, [value[key] for key in left])

    def _other_items(self, node: Node, value: Sequence[Any]) -> bool:
        inner = node.unevaluated_items
        left = self.unevaluated(node, value)
        return inner is None or self.accepts_all(inner, [value[at] for at in left])

    def accepts_all(self, node: Node, values: Iterable[Any]) -> bool:
        """Whether every one of the values is valid."""
        for value in values:  # noqa: SIM110  # a generator would be one frame more
            if not self.accepts(node, value):
                return False
        return True

    def unevaluated(self, node: Node, value: Any) -> list[Any]:
        """List the keys or positions that no other keyword of a valid node has looked at."""
        seen = self._seen_here(node, value)
        places = value if isinstance(value, dict) else range(len(value))
        return [place for place in places if place not in seen]

    def _seen(self, node: Node, value: Any) -> set[Any]:
        """Collect what a node looked at, given that it accepts the value."""
        self._work.spend()
        own = node.unevaluated_properties if isinstance(value, dict) else node.unevaluated_items
        if own is not None:
            return set(value) if isinstance(value, dict) else set(range(len(value)))
        return self._seen_here(node, value)

    def _seen_here(self, node: Node, value: Any) -> set[Any]:
        if isinstance(value, dict):
            seen: set[Any] = {key for key in value if members_of(node, key)}
        else:
            reach = len(value) if node.rest is not None else len(node.prefix)
            seen = set(range(min(reach, len(value)))) | set(self._containing(node, value))
        for inner in self._in_place(node, value):
            seen |= self._seen(inner, value)
        return seen

    def _in_place(self, node: Node, value: Any) -> list[Node]:
        """List the subschemas that look at this same value and accept it."""
        found = list(node.all_of or ())
        for branches in (node.any_of or (), node.one_of or ()):
            found += [branch for branch in branches if self.accepts(branch, value)]
        if node.condition is not None and self.accepts(node.condition, value):
            found.append(node.condition)
        others = (self.chosen(node, value), node.reference, node.dynamic)
        found += [inner for inner in others if inner is not None]
        for key, needs in node.dependents:
            if not isinstance(needs, tuple) and key in value:
                found.append(needs)
        return [inner for inner in found if inner.verdict is None]

    def _steps_for(
        self, node: Node, value: Any
    ) -> tuple[Callable[[Checker, Node, Any], bool], ...]:
        kind = kind_of(value)
        steps = node.steps.get(kind)
        if steps is None:
            wrong = node.kinds is not None and kind not in node.kinds
            steps = (Checker._refuse,) if wrong else relevant(node, kind, self._STEPS)
            node.steps[kind] = steps
        return steps

    def _refuse(self, _node: Node, _value: Any) -> bool:
        return False

    _STEPS: ClassVar[tuple[tuple[str, str, Callable[[Checker, Any, Any], bool]], ...]] = (
        ("any", "values", _values),
        ("string", "strings", _strings),
        ("number", "numbers", _numbers),
        ("object", "sizes", _sizes),
        ("object", "required", _required),
        ("object", "properties patterns additional", _members),
        ("object", "names", _names),
        ("object", "dependents", _dependents),
        ("array", "lengths", _lengths),
        ("array", "prefix rest", _items),
        ("array", "contains", contains_enough),
        ("any", "all_of", _all_of),
        ("any", "any_of", any_of),
        ("any", "one_of", _exactly_one),
        ("any", "negated", _negated),
        ("any", "condition", _condition),
        ("any", "dangles reference dynamic", _references),
        ("object", "unevaluated_properties", _other_members),
        ("array", "unevaluated_items", _other_items),
    )


def members_of(node: Node, key: str) -> list[Node]:
    """List the subschemas for a key: its property, all patterns it matches, else `additional`."""
    found = [node.properties[key]] if key in node.properties else []
    for pattern, inner in node.patterns:
        if pattern.matches(key):
            found.append(inner)
    if not found and node.additional is not None:
        found.append(node.additional)
    return found
