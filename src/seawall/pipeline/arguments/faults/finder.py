"""Find what is wrong with a value that its schema refuses.

The validator could list faults itself, but it lists those of every branch of every union, which
doubles with each level of a recursive one. So this goes down only where the validator says that
a part is refused, and of a union only into the branch that was meant. Work is bounded; where it
ends early, the fault is told for the place reached.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from seawall.contract.failure import Issue
from seawall.contract.pointer import unescaped
from seawall.pipeline.arguments.faults import wording
from seawall.pipeline.arguments.faults.alternative import label
from seawall.pipeline.arguments.faults.branches import Union
from seawall.pipeline.arguments.faults.containers import Items, Members
from seawall.pipeline.arguments.faults.looking import Looking
from seawall.pipeline.arguments.schema.documents import MARK, mapping

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seawall.pipeline.arguments.faults.survey import Spot, Survey
    from seawall.pipeline.arguments.schema.documents import Place
    from seawall.pipeline.arguments.schema.redaction import Secrecy

ISSUES_AT_MOST = 100
_PLACES_AT_MOST = 1_000
_CHECKS_AT_MOST = 15_000
_LEVELS_AT_MOST = 100
_COMPARISONS_AT_MOST = 20
_LONGEST_MESSAGE = 500
_UNFIT = "does not fit the schema"


class Finder(Looking):
    """Finds the faults of one value, once."""

    __slots__ = (
        "_checks",
        "_comparisons",
        "_issues",
        "_known",
        "_open",
        "_told",
        "_value",
        "_visits",
        "survey",
    )

    def __init__(self, survey: Survey) -> None:
        self.survey = survey
        self._visits = _PLACES_AT_MOST
        self._checks = _CHECKS_AT_MOST
        self._comparisons = _COMPARISONS_AT_MOST
        self._open: set[tuple[Spot, str]] = set()
        self._value: Any = None
        self._known: dict[str, tuple[Secrecy, Any]] = {}
        self._issues: dict[tuple[str, str], Issue] = {}
        self._told = 0

    def find(self, value: Any) -> tuple[Issue, ...]:
        """Give the faults, in the order in which the schema declares the arguments."""
        self._value = value
        if self.survey.is_ambiguous:
            return (Issue("", _UNFIT, "$dynamicRef"),)
        try:
            self.visit(self.survey.root, value, "")
        except RecursionError:  # the caller itself is deep inside of something
            self.tell("", _UNFIT, "")
        if len(self._issues) == 1:
            return tuple(self._issues.values())
        order = self.survey.order
        return tuple(
            sorted(
                self._issues.values(),
                key=lambda issue: order.get(_first(issue.path), len(order)),
            )
        )

    def tell(self, path: str, message: str, keyword: str) -> None:
        """Note a fault; one that is known is not noted twice."""
        self._told += 1
        # What several parts of a schema require is missing once.
        known = (path, "" if keyword == "required" else message)
        if not self._is_full:
            self._issues.setdefault(known, Issue(path, message[:_LONGEST_MESSAGE], keyword))

    def visit(self, spot: Spot, value: Any, path: str) -> None:
        """Tell what is wrong with a value that is refused at a place."""
        key = (spot, path)
        self._visits -= 1
        if key in self._open or self._is_full:
            return
        before = self._told
        if self._visits > 0 and len(self._open) < _LEVELS_AT_MOST:
            self._open.add(key)
            self._look(spot, value, path)
            self._open.discard(key)
        if self._told == before:
            self.tell(path, _UNFIT, "")

    def trial(self, spot: Spot, value: Any, path: str) -> list[Issue]:
        """Give what `visit` would tell, without telling it."""
        kept, self._issues = self._issues, {}
        self.visit(spot, value, path)
        found, self._issues = list(self._issues.values()), kept
        return found

    def part_at(self, spot: Spot, value: Any, path: str) -> None:
        """Tell what is wrong with a value at a place, if it is refused there."""
        spot = spot.final
        if self.refuses(spot, value):
            self.visit(spot, value, path)

    def refuses(self, spot: Spot, value: Any) -> bool:
        """Whether a value is not valid at a place."""
        if spot.is_trivial:
            return spot.node is False
        self._checks -= 1
        return self._checks >= 0 and not spot.accepts(value)

    def refuses_one(self, spot: Spot, items: Sequence[Any]) -> bool:
        """Whether one of the items is not valid at a place."""
        return any(not spot.accepts(item) for item in items)

    def matches(self, pattern: str, name: str) -> bool:
        """Whether a name matches a pattern."""
        self._checks -= 1
        return self.survey.matches(pattern, name)

    def may_compare(self) -> bool:
        """Take one of the comparisons of names that a value may cost; say whether any was left."""
        self._comparisons -= 1
        return self._comparisons >= 0

    def places_at(self, path: str) -> Sequence[Place]:
        """Give all nodes of the schema that may speak of the value at a path."""
        return self._secrecy_at(path)[0].places

    def is_secret(self, path: str) -> bool:
        """Whether the value at a path must not be shown."""
        if not self.survey.secrecy.has_secrets:
            return False
        secrecy, value = self._secrecy_at(path)
        return secrecy.hides(value)

    def _secrecy_at(self, path: str) -> tuple[Secrecy, Any]:
        known = self._known.get(path)
        if known is not None:
            return known
        if not path:
            found = self.survey.secrecy, self._value
        else:
            way, _, token = path.rpartition("/")
            secrecy, value = self._secrecy_at(way)
            step = unescaped(token)
            key = int(step) if isinstance(value, (list, tuple)) else step
            inside = value[key] if not isinstance(value, dict) or key in value else None
            found = secrecy.of(key, self.matches), inside
        self._known[path] = found
        return found

    @property
    def is_done(self) -> bool:
        """Whether there is no use in looking further: enough is told, or enough work done."""
        return self._is_full or self._checks < 0

    @property
    def _is_full(self) -> bool:
        return len(self._issues) >= ISSUES_AT_MOST

    def _look(self, spot: Spot, value: Any, path: str) -> None:
        node = spot.node
        if isinstance(node, bool):
            self.tell(path, "no value is allowed here; leave it out", "not")
        elif MARK in node:
            said = f"no value can be taken: the schema refers to {wording.quoted(node[MARK])}"
            self.tell(path, f"{said}, which is not there; leave it out", "$ref")
        elif "$ref" in node and self.survey.dialect.ref_stands_alone:
            self._references(spot, value, path)
        elif self._asserted(spot, value, path):
            self._inside(spot, value, path)

    def _inside(self, spot: Spot, value: Any, path: str) -> None:
        before = self._told
        container: Members | Items | None = None
        if isinstance(value, dict):
            container = Members(self, spot, value, path)
        elif isinstance(value, (list, tuple)):
            container = Items(self, spot, value, path)
        if container is not None:
            container.look()
        if spot.is_combined:
            self._combined(spot, value, path)
            self._conditions(spot, value, path)
        if container is not None and self._told == before:
            container.look_at_unevaluated()

    def _asserted(self, spot: Spot, value: Any, path: str) -> bool:
        """Tell which assertions a value does not meet; say whether it is of the right type."""
        broken = spot.broken(value)
        if "type" in broken:
            self._wrong_type(spot, value, path, is_listed="enum" in broken)
            return False
        for keyword, is_undecided in broken.items():
            if is_undecided:
                self.tell(path, "could not be matched in time; send a shorter text", keyword)
            else:
                said = wording.broken(keyword, spot.node, value, secret=self.is_secret(path))
                self.tell(path, said, keyword)
        return True

    def _wrong_type(self, spot: Spot, value: Any, path: str, *, is_listed: bool) -> None:
        """Tell of a wrong type only: the other assertions mean values of the right one."""
        if is_listed:
            said = wording.broken("enum", spot.node, value, secret=self.is_secret(path))
        else:
            said = f"expected {spot.types}, got {wording.kind(value)}"
        self.tell(path, said, "type")

    def _combined(self, spot: Spot, value: Any, path: str) -> None:
        """Look at what speaks of the same value in any case."""
        node = spot.node
        self._references(spot, value, path)
        for index in range(len(node.get("allOf", ()))):
            self.part_at(spot.part("allOf", str(index)), value, path)
        for keyword in ("anyOf", "oneOf"):
            if keyword in node:
                self._alternatives(spot, keyword, value, path)
        if "not" in node and not self.refuses(spot.part("not"), value):
            self.tell(path, wording.negation(node["not"]), "not")

    def _conditions(self, spot: Spot, value: Any, path: str) -> None:
        """Look at what speaks of the same value if it is so and so."""
        node = spot.node
        if "if" in node:
            branch = "else" if self.refuses(spot.part("if"), value) else "then"
            if branch in node:
                self.part_at(spot.part(branch), value, path)
        if not isinstance(value, dict):
            return
        for keyword in ("dependentSchemas", "dependencies"):
            for name, part in mapping(node, keyword).items():
                if name in value and not isinstance(part, list):
                    self.part_at(spot.part(keyword, name), value, path)

    def _references(self, spot: Spot, value: Any, path: str) -> None:
        for target in spot.targets:
            self.part_at(target, value, path)

    def _alternatives(self, spot: Spot, keyword: str, value: Any, path: str) -> None:
        branches = [spot.part(keyword, str(index)) for index in range(len(spot.node[keyword]))]
        fitting = [branch for branch in branches if not self.refuses(branch, value)]
        if not fitting:
            Union(self, spot.node, keyword, branches).tell(value, path)
        elif keyword == "oneOf" and len(fitting) > 1:
            labels = ", ".join(label(branch.place) for branch in fitting[:5])
            said = f"fits more than one of the alternatives ({labels}) but must fit exactly one"
            self.tell(path, said, "oneOf")


def _first(path: str) -> str:
    return unescaped(path.split("/", 2)[1]) if path else ""
