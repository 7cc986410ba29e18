"""Say what is wrong with a value: one issue per keyword not met, in a fixed order.

A wrong type hides every other keyword of that place. Of a union that nothing matches, one branch
is blamed: the one its tag selects, else the one that declares most of the object's keys, then the
one whose first issue has the longest path.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from seawall.contract.failure import Issue
from seawall.pipeline.arguments.lenient.node import relevant
from seawall.pipeline.arguments.lenient.rules import listed
from seawall.pipeline.arguments.lenient.values import (
    child,
    frozen,
    kind_of,
    number_text,
    script_keys,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from seawall.pipeline.arguments.lenient.check import Checker, Work
    from seawall.pipeline.arguments.lenient.node import Node
    from seawall.pipeline.arguments.lenient.rules import Rule


_OBJECT = "required properties patterns additional names sizes dependents"


class FaultFinder:
    """Looks for the faults of one value."""

    def __init__(self, checker: Checker, work: Work) -> None:
        self._checker = checker
        self._work = work
        # The value is kept beside its issues: as long as it lives, no other value has its id.
        self._known: dict[tuple[int, int, str], tuple[Any, list[Issue]]] = {}

    def find(self, node: Node, value: Any, path: str, issues: list[Issue]) -> None:
        """Add the issues of a value to the list; those of a shared subschema are found once."""
        self._work.spend()
        node = node.alias or node
        if node.verdict is not None:
            if not node.verdict:
                issues.append(Issue(path, "no value is allowed here", "false"))
            return
        key = (id(node), id(value), path)
        known = self._known.get(key) if node.shared else None
        found: list[Issue] = [] if known is None else known[1]
        if known is None:
            for explain in self._explanations_for(node, value):
                explain(self, node, value, path, found)
            if node.shared:
                self._known[key] = (value, found)
        issues += found

    def _type(self, node: Node, value: Any, path: str, issues: list[Issue]) -> None:
        issues.append(Issue(path, f"{node.type_message}, got {kind_of(value)}", "type"))

    def _values(self, node: Node, value: Any, path: str, issues: list[Issue]) -> None:
        _report(node.values, value, path, issues)

    def _strings(self, node: Node, value: Any, path: str, issues: list[Issue]) -> None:
        _report(node.strings, value, path, issues)

    def _numbers(self, node: Node, value: Any, path: str, issues: list[Issue]) -> None:
        _report(node.numbers, value, path, issues)

    def _object(self, node: Node, value: Mapping[str, Any], path: str, issues: list[Issue]) -> None:
        absent = [key for key in node.required if key not in value]
        issues += [Issue(child(path, key), "missing", "required") for key in absent]
        for key, inner in node.properties.items():
            if key in value:
                self.find(inner, value[key], child(path, key), issues)
        if node.patterns or node.additional is not None or node.names is not None:
            for key in script_keys(value):
                self._other_key(node, key, value[key], child(path, key), issues)
        _report(node.sizes, value, path, issues)
        for key, needs in node.dependents:
            if key in value:
                self._dependent(key, needs, value, path, issues)

    def _other_key(self, node: Node, key: str, item: Any, place: str, issues: list[Issue]) -> None:
        matching = [inner for pattern, inner in node.patterns if pattern.matches(key)]
        for inner in matching:
            self.find(inner, item, place, issues)
        if not matching and key not in node.properties and node.additional is not None:
            if node.additional.verdict is False:
                issues.append(Issue(place, "unknown field", "additionalProperties"))
            else:
                self.find(node.additional, item, place, issues)
        if node.names is not None and not self._checker.accepts(node.names, key):
            issues.append(Issue(place, "invalid property name", "propertyNames"))

    def _dependent(
        self,
        key: str,
        needs: tuple[str, ...] | Node,
        value: Mapping[str, Any],
        path: str,
        issues: list[Issue],
    ) -> None:
        if not isinstance(needs, tuple):
            self.find(needs, value, path, issues)
            return
        message = f"required when {key} is present"
        issues += [
            Issue(child(path, name), message, "dependentRequired")
            for name in needs
            if name not in value
        ]

    def _array(self, node: Node, value: Sequence[Any], path: str, issues: list[Issue]) -> None:
        for position, item in enumerate(value):
            inner = node.prefix[position] if position < len(node.prefix) else node.rest
            if inner is not None:
                self.find(inner, item, f"{path}/{position}", issues)
        _report(node.lengths, value, path, issues)
        if node.contains is not None and not self._checker.contains_enough(node, value):
            issues.append(Issue(path, _contains_message(node), "contains"))

    def _all_of(self, node: Node, value: Any, path: str, issues: list[Issue]) -> None:
        for inner in node.all_of or ():
            self.find(inner, value, path, issues)

    def _any_of(self, node: Node, value: Any, path: str, issues: list[Issue]) -> None:
        if not self._checker.any_of(node, value):
            self._blame(node.any_of or (), value, path, issues, "anyOf")

    def _one_of(self, node: Node, value: Any, path: str, issues: list[Issue]) -> None:
        matches = self._checker.one_of(node, value)
        if matches > 1:
            issues.append(Issue(path, "matches more than one alternative", "oneOf"))
        elif not matches:
            self._blame(node.one_of or (), value, path, issues, "oneOf")

    def _negated(self, node: Node, value: Any, path: str, issues: list[Issue]) -> None:
        if node.negated is not None and self._checker.accepts(node.negated, value):
            issues.append(Issue(path, "must not match the schema in not", "not"))

    def _condition(self, node: Node, value: Any, path: str, issues: list[Issue]) -> None:
        chosen = self._checker.chosen(node, value)
        if chosen is not None:
            self.find(chosen, value, path, issues)

    def _references(self, node: Node, value: Any, path: str, issues: list[Issue]) -> None:
        if node.dangles:
            message = f"unresolved reference {node.reference_text}"
            issues.append(Issue(path, message, "$ref"))
        for target in (node.reference, node.dynamic):
            if target is not None:
                self.find(target, value, path, issues)

    def _unevaluated(self, node: Node, value: Any, path: str, issues: list[Issue]) -> None:
        of_object = isinstance(value, dict)
        inner = node.unevaluated_properties if of_object else node.unevaluated_items
        if inner is None or issues:
            return
        left = self._checker.unevaluated(node, value)
        for place in script_keys(left) if of_object else left:
            where = child(path, place)
            if inner.verdict is not False:
                self.find(inner, value[place], where, issues)
            elif of_object:
                issues.append(Issue(where, "unknown field", "unevaluatedProperties"))
            else:
                issues.append(Issue(where, "unexpected item", "unevaluatedItems"))

    def _blame(
        self,
        branches: Sequence[Node],
        value: Any,
        path: str,
        issues: list[Issue],
        keyword: str,
    ) -> None:
        """Add the issues of the branch that was most likely meant."""
        tag = _tag(branches) if isinstance(value, dict) else None
        if tag is not None:
            key, constants = tag
            branches = _tagged(branches, constants, value, key)
            message = f"expected one of {listed(constants)}"
            fallback = Issue(child(path, key), message, keyword)
        else:
            fallback = Issue(path, "matches no alternative", keyword)
        best: list[Issue] = []
        score = (-1, -1)
        for branch in branches:
            found: list[Issue] = []
            self.find(branch, value, path, found)
            reached = (_declared(branch, value), len(found[0].path)) if found else score
            if reached > score:
                best, score = found, reached
        issues += best or [fallback]

    def _explanations_for(self, node: Node, value: Any) -> tuple[Any, ...]:
        kind = kind_of(value)
        found = node.explanations.get(kind)
        if found is None:
            wrong = node.kinds is not None and kind not in node.kinds
            found = (FaultFinder._type,) if wrong else relevant(node, kind, self._EXPLANATIONS)
            node.explanations[kind] = found
        return found

    _EXPLANATIONS: ClassVar[tuple[tuple[str, str, Any], ...]] = (
        ("any", "values", _values),
        ("string", "strings", _strings),
        ("number", "numbers", _numbers),
        ("object", _OBJECT, _object),
        ("array", "prefix rest lengths contains", _array),
        ("any", "all_of", _all_of),
        ("any", "any_of", _any_of),
        ("any", "one_of", _one_of),
        ("any", "negated", _negated),
        ("any", "condition", _condition),
        ("any", "dangles reference dynamic", _references),
        ("object", "unevaluated_properties", _unevaluated),
        ("array", "unevaluated_items", _unevaluated),
    )


def _tagged(
    branches: Sequence[Node], constants: Sequence[Any], value: Mapping[str, Any], key: str
) -> Sequence[Node]:
    """Give the branch that the tag of an object selects, if any."""
    if key not in value:
        return ()
    given = frozen(value[key])
    return [
        branch
        for branch, constant in zip(branches, constants, strict=True)
        if frozen(constant) == given
    ]


def _report(rules: Sequence[Rule], value: Any, path: str, issues: list[Issue]) -> None:
    issues += [Issue(path, rule.message, rule.keyword) for rule in rules if not rule.test(value)]


def _contains_message(node: Node) -> str:
    least, most = node.contains_at_least, node.contains_at_most
    if most == float("inf"):
        return f"expected at least {number_text(least)} matching {_items(least)}"
    if least == 0:
        return f"expected at most {number_text(most)} matching {_items(most)}"
    return f"expected between {number_text(least)} and {number_text(most)} matching items"


def _items(count: float) -> str:
    return "item" if count == 1 else "items"


def _members(branch: Node) -> dict[str, Node]:
    """Give the properties that a branch, or what it refers to, declares."""
    if branch.reference_text is None:
        return branch.properties
    return {} if branch.reference is None else branch.reference.properties


def _declared(branch: Node, value: Any) -> int:
    """Count the keys of an object that a branch declares."""
    if not isinstance(value, dict):
        return 0
    properties = _members(branch)
    return sum(key in properties for key in value)


def _tag(branches: Sequence[Node]) -> tuple[str, list[Any]] | None:
    """Find the first key for which every branch has a different scalar constant."""
    members = [_members(branch) for branch in branches]
    for key in members[0] if members else ():
        found = [inner[key].constant for inner in members if key in inner]
        constants = [constant[0] for constant in found if constant]
        if len(constants) == len(members) and _are_distinct_scalars(constants):
            return key, constants
    return None


def _are_distinct_scalars(constants: Sequence[Any]) -> bool:
    if any(kind_of(constant) in {"object", "array", "unknown"} for constant in constants):
        return False
    return len({frozen(constant) for constant in constants}) == len(constants)
