"""Find what is wrong with a value that its schema refuses.

The validator could list faults itself, but it lists those of every branch of every union, which
doubles with each level of a recursive one. So this goes down only where the validator says that
a part is refused, and of a union only into the branch that was meant. Work is bounded; where it
ends early, the fault is told for the place reached.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import jsonschema_rs

from seawall.contract.failure import Issue
from seawall.contract.pointer import escaped, unescaped
from seawall.pipeline.arguments.faults import wording
from seawall.pipeline.arguments.faults.branches import Branch, Union, label
from seawall.pipeline.arguments.faults.containers import Items, Members
from seawall.pipeline.arguments.faults.looking import Looking
from seawall.pipeline.arguments.schema.checks import Checks
from seawall.pipeline.arguments.schema.dialects import subschemas, words
from seawall.pipeline.arguments.schema.documents import MARK, mapping
from seawall.pipeline.arguments.schema.redaction import Secrecy
from seawall.pipeline.arguments.schema.validators import CompileErrors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from seawall.pipeline.arguments.schema.dialects import Dialect
    from seawall.pipeline.arguments.schema.documents import Documents, Place
    from seawall.pipeline.arguments.schema.validators import Validators

ISSUES_AT_MOST = 100
_PLACES_AT_MOST = 1_000
_CHECKS_AT_MOST = 15_000
_LEVELS_AT_MOST = 100
_LONGEST_MESSAGE = 500
_UNFIT = "does not fit the schema"

_ASSERTIONS = words(
    """type enum const minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minLength
    maxLength pattern format minItems maxItems uniqueItems minProperties maxProperties
    contentEncoding contentMediaType"""
)
_UNDECIDED = (
    jsonschema_rs.ValidationErrorKind.BacktrackLimitExceeded,
    jsonschema_rs.ValidationErrorKind.RegexEngineFailure,
)


class Finder(Looking):
    """Finds the faults of one value, once."""

    def __init__(self, documents: Documents, dialect: Dialect, validators: Validators) -> None:
        self.documents = documents
        self.dialect = dialect
        self._validators = validators
        self._tests = Checks(self._made, self._addresses)
        self._patterns: dict[str, Callable[[Any], bool]] = {}
        self._assertions: dict[str, jsonschema_rs.Validator] = {}
        self._branches: dict[str, Branch] = {}
        self._visits = _PLACES_AT_MOST
        self._checks = _CHECKS_AT_MOST
        self._open: set[tuple[str, str]] = set()
        self._value: Any = None
        self._known: dict[str, tuple[Secrecy, Any]] = {}
        self._issues: dict[tuple[str, str], Issue] = {}
        self._told = 0

    def find(self, value: Any) -> tuple[Issue, ...]:
        """Give the faults, in the order in which the schema declares the arguments."""
        self._value = value
        if self.documents.is_ambiguous:
            return (Issue("", _UNFIT, "$dynamicRef"),)
        try:
            self.visit(self.documents.root, value, "")
        except RecursionError:  # the caller itself is deep inside of something
            self.tell("", _UNFIT, "")
        order = {name: at for at, name in enumerate(self._secrecy.names)}
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

    def visit(self, place: Place, value: Any, path: str) -> None:
        """Tell what is wrong with a value that is refused at a place."""
        key = (place.address, path)
        self._visits -= 1
        if key in self._open or self._is_full:
            return
        before = self._told
        if self._visits > 0 and len(self._open) < _LEVELS_AT_MOST:
            self._open.add(key)
            self._look(place, value, path)
            self._open.discard(key)
        if self._told == before:
            self.tell(path, _UNFIT, "")

    def trial(self, place: Place, value: Any, path: str) -> list[Issue]:
        """Give what `visit` would tell, without telling it."""
        kept, self._issues = self._issues, {}
        self.visit(place, value, path)
        found, self._issues = list(self._issues.values()), kept
        return found

    def part(self, place: Place, steps: tuple[str, ...], value: Any, path: str) -> None:
        """Tell what is wrong with a value at a place below, if it is refused there."""
        self.part_at(self.documents.child(place, *steps), value, path)

    def part_at(self, place: Place, value: Any, path: str) -> None:
        """Tell what is wrong with a value at a place, if it is refused there."""
        place = self.documents.final(place)
        if self.refuses(place, value):
            self.visit(place, value, path)

    def refuses(self, place: Place, value: Any) -> bool:
        """Whether a value is not valid at a place."""
        if isinstance(place.node, bool) or not place.node:
            return place.node is False
        self._checks -= 1
        return self._checks >= 0 and not self._tests.at(place.address)(value)

    def refuses_one(self, place: Place, items: Sequence[Any]) -> bool:
        """Whether one of the items is not valid at a place."""
        test = self._tests.at(place.address)
        return any(not test(item) for item in items)

    def matches(self, pattern: str, name: str) -> bool:
        """Whether a name matches a pattern."""
        self._checks -= 1
        test = self._patterns.get(pattern)
        if test is None:
            test = self._patterns[pattern] = self._validators.alone({"pattern": pattern}).is_valid
        return test(name)

    def is_secret(self, path: str) -> bool:
        """Whether the value at a path must not be shown."""
        secrecy, value = self._secrecy_at(path)
        return secrecy.hides(value)

    def _secrecy_at(self, path: str) -> tuple[Secrecy, Any]:
        known = self._known.get(path)
        if known is not None:
            return known
        if not path:
            found = self._secrecy, self._value
        else:
            way, _, token = path.rpartition("/")
            secrecy, value = self._secrecy_at(way)
            step = unescaped(token)
            key = int(step) if isinstance(value, (list, tuple)) else step
            inside = value[key] if not isinstance(value, dict) or key in value else None
            found = secrecy.of(key), inside
        self._known[path] = found
        return found

    @property
    def is_done(self) -> bool:
        """Whether there is no use in looking further: enough is told, or enough work done."""
        return self._is_full or self._checks < 0

    @property
    def _is_full(self) -> bool:
        return len(self._issues) >= ISSUES_AT_MOST

    @cached_property
    def _secrecy(self) -> Secrecy:
        return Secrecy(self.documents, self.matches, [self.documents.root])

    def _branch(self, place: Place, index: int) -> Branch:
        made = self._branches.get(place.address)
        if made is None:
            made = self._branches[place.address] = Branch(self.documents, place, index)
        return made

    def _made(self, schema: dict[str, Any]) -> Callable[[Any], bool] | None:
        try:
            return self._validators.around(schema).is_valid
        except CompileErrors:
            return None

    def _addresses(self) -> Iterator[str]:
        root = self.documents.root
        waiting: list[tuple[Any, str]] = [(root.node, f"{root.document}#")]
        while waiting:
            node, address = waiting.pop()
            yield address
            if isinstance(node, dict):
                for steps, part in subschemas(node):
                    way = "/".join(escaped(step) for step in steps)
                    waiting.append((part, f"{address}/{quote(way, safe='/~')}"))

    def _look(self, place: Place, value: Any, path: str) -> None:
        node = place.node
        if isinstance(node, bool):
            self.tell(path, "no value is allowed here; leave it out", "not")
        elif MARK in node:
            said = f"no value can be taken: the schema refers to {wording.quoted(node[MARK])}"
            self.tell(path, f"{said}, which is not there; leave it out", "$ref")
        elif "$ref" in node and self.dialect.ref_stands_alone:
            self._references(place, value, path)
        elif self._asserted(place, value, path):
            self._inside(place, value, path)

    def _inside(self, place: Place, value: Any, path: str) -> None:
        before = self._told
        container: Members | Items | None = None
        if isinstance(value, dict):
            container = Members(self, place, value, path)
        elif isinstance(value, (list, tuple)):
            container = Items(self, place, value, path)
        if container is not None:
            container.look()
        self._combined(place, value, path)
        self._conditions(place, value, path)
        if container is not None and self._told == before:
            container.look_at_unevaluated()

    def _asserted(self, place: Place, value: Any, path: str) -> bool:
        """Tell which assertions a value does not meet; say whether it is of the right type."""
        node = place.node
        broken = self._broken(place, value)
        if "type" in broken:
            self._wrong_type(node, value, path, is_listed="enum" in broken)
            return False
        for keyword, is_undecided in broken.items():
            if is_undecided:
                self.tell(path, "could not be matched in time; send a shorter text", keyword)
            else:
                said = wording.broken(keyword, node, value, secret=self.is_secret(path))
                self.tell(path, said, keyword)
        return True

    def _wrong_type(self, node: dict[str, Any], value: Any, path: str, *, is_listed: bool) -> None:
        """Tell of a wrong type only: the other assertions mean values of the right one."""
        if is_listed:
            said = wording.broken("enum", node, value, secret=self.is_secret(path))
        else:
            wanted = wording.alternatives(wording.types(node))
            said = f"expected {wanted}, got {wording.kind(value)}"
        self.tell(path, said, "type")

    def _broken(self, place: Place, value: Any) -> dict[str, bool]:
        """Give the assertions that fail, and whether for want of time."""
        node = place.node
        try:
            asserting = self._assertions.get(place.address)
            if asserting is None:
                asserted = {keyword: node[keyword] for keyword in node if keyword in _ASSERTIONS}
                asserting = self._validators.alone(asserted)
                self._assertions[place.address] = asserting
            return {
                error.kind.name: isinstance(error.kind, _UNDECIDED)
                for error in asserting.iter_errors(value)
            }
        except CompileErrors:
            return {}

    def _combined(self, place: Place, value: Any, path: str) -> None:
        """Look at what speaks of the same value in any case."""
        node = place.node
        self._references(place, value, path)
        for index in range(len(node.get("allOf", ()))):
            self.part(place, ("allOf", str(index)), value, path)
        for keyword in ("anyOf", "oneOf"):
            if keyword in node:
                self._alternatives(place, keyword, value, path)
        if "not" in node and not self.refuses(self.documents.child(place, "not"), value):
            self.tell(path, wording.negation(node["not"]), "not")

    def _conditions(self, place: Place, value: Any, path: str) -> None:
        """Look at what speaks of the same value if it is so and so."""
        node = place.node
        if "if" in node:
            branch = "else" if self.refuses(self.documents.child(place, "if"), value) else "then"
            if branch in node:
                self.part(place, (branch,), value, path)
        if not isinstance(value, dict):
            return
        for keyword in ("dependentSchemas", "dependencies"):
            for name, part in mapping(node, keyword).items():
                if name in value and not isinstance(part, list):
                    self.part(place, (keyword, name), value, path)

    def _references(self, place: Place, value: Any, path: str) -> None:
        for target in self.documents.targets(place):
            self.part_at(target, value, path)

    def _alternatives(self, place: Place, keyword: str, value: Any, path: str) -> None:
        branches = [
            self.documents.child(place, keyword, str(index))
            for index in range(len(place.node[keyword]))
        ]
        fitting = [branch for branch in branches if not self.refuses(branch, value)]
        if not fitting:
            meant = [self._branch(branch, index) for index, branch in enumerate(branches)]
            Union(self, place, keyword, meant).tell(value, path)
        elif keyword == "oneOf" and len(fitting) > 1:
            labels = ", ".join(label(branch, branches.index(branch)) for branch in fitting[:5])
            said = f"fits more than one of the alternatives ({labels}) but must fit exactly one"
            self.tell(path, said, "oneOf")


def _first(path: str) -> str:
    return unescaped(path.split("/", 2)[1]) if path else ""
