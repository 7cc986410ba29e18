"""What is known of the places of one schema: found when it is first needed, kept for all values.

Nothing in it comes from a value: it is bounded by the schema. Several threads may use it at once;
what two of them make at the same time is made alike.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import jsonschema_rs

from seawall.contract.pointer import escaped
from seawall.pipeline.arguments.faults import wording
from seawall.pipeline.arguments.faults.alternative import Alternative
from seawall.pipeline.arguments.faults.explain import Redaction
from seawall.pipeline.arguments.schema.checks import Check, Checks, anything
from seawall.pipeline.arguments.schema.dialects import dialect_named, subschemas, words
from seawall.pipeline.arguments.schema.redaction import Secrecy, together
from seawall.pipeline.arguments.schema.validators import CompileErrors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from seawall.pipeline.arguments.schema.dialects import Dialect
    from seawall.pipeline.arguments.schema.documents import Documents, Place
    from seawall.pipeline.arguments.schema.validators import Validators

_ASSERTIONS = words(
    """type enum const minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minLength
    maxLength pattern format minItems maxItems uniqueItems minProperties maxProperties
    contentEncoding contentMediaType"""
)
_REMARKS = words(
    "title description default examples deprecated readOnly writeOnly $comment enumNames"
)
_OF_LEAVES = _ASSERTIONS | _REMARKS
_COMBINING = words(
    "$ref $dynamicRef $recursiveRef allOf anyOf oneOf not if dependentSchemas dependencies"
)
_OF_OTHERS = words(
    "patternProperties additionalProperties propertyNames dependentRequired dependencies"
)
_UNDECIDED = (
    jsonschema_rs.ValidationErrorKind.BacktrackLimitExceeded,
    jsonschema_rs.ValidationErrorKind.RegexEngineFailure,
)
_NOTHING: Mapping[str, bool] = {}
_TYPE: Mapping[str, bool] = {"type": False}


class Survey:
    """The places of one schema, which must not change any more."""

    def __init__(self, documents: Documents, dialect: Dialect, validators: Validators) -> None:
        self.documents = documents
        self.dialect = dialect
        self.validators = validators
        self.tests = Checks(self._made, self._addresses)
        self._spots: dict[tuple[str, tuple[str, ...]], Spot] = {}
        self._patterns: dict[str, Callable[[Any], bool]] = {}

    def spot(self, place: Place) -> Spot:
        """Give what is known of a place: one object, whatever the way there."""
        key = (place.document, place.steps)
        return self._spots.get(key) or self._spots.setdefault(key, Spot(self, place))

    @cached_property
    def root(self) -> Spot:
        """The schema itself."""
        return self.spot(self.documents.root)

    @cached_property
    def is_ambiguous(self) -> bool:
        """Whether a dynamic reference can mean several places."""
        return self.documents.is_ambiguous

    @cached_property
    def is_uniform(self) -> bool:
        """Whether all of it is read in one draft, by the words that this draft has."""
        root = self.documents.root.node
        own = root.get("$schema") if isinstance(root, dict) else None
        known = own is None or dialect_named(own) is not None
        return known and not self.documents.mention(lambda n: n is not root and "$schema" in n)

    @cached_property
    def secrecy(self) -> Secrecy:
        """What of a value must not be shown."""
        return Secrecy(self.documents, self.matches, [self.documents.root])

    @cached_property
    def order(self) -> Mapping[str, int]:
        """The arguments as they are declared, with their number."""
        return {name: at for at, name in enumerate(self.secrecy.names)}

    @cached_property
    def redaction(self) -> Redaction:
        """How values are shown."""
        root = self.documents.root.node
        return Redaction(root if isinstance(root, dict) else {}, plain=True)

    def matches(self, pattern: str, name: str) -> bool:
        """Whether a name matches a pattern."""
        test = self._patterns.get(pattern)
        if test is None:
            test = self._patterns[pattern] = self.validators.alone({"pattern": pattern}).is_valid
        return test(name)

    def _made(self, schema: dict[str, Any]) -> Callable[[Any], bool] | None:
        try:
            return self.validators.around(schema).is_valid
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


class Spot:
    """One place, with what was made for looking at values there."""

    def __init__(self, survey: Survey, place: Place) -> None:
        self._survey = survey
        self.place = place
        self.node = place.node
        self.is_trivial = isinstance(place.node, bool) or not place.node
        """Whether all values are valid here, or none."""
        self._parts: dict[tuple[str, ...], Spot] = {}

    def part(self, *steps: str) -> Spot:
        """Give the place at `steps` below this one, which must be there."""
        found = self._parts.get(steps)
        if found is None:
            survey = self._survey
            found = self._parts[steps] = survey.spot(survey.documents.child(self.place, *steps))
        return found

    @cached_property
    def alternative(self) -> Alternative:
        """What is certain of it, if it is one of several."""
        return Alternative(self._survey.documents, self.place)

    @cached_property
    def is_combined(self) -> bool:
        """Whether other nodes speak of the same value."""
        return not _COMBINING.isdisjoint(self.node)

    @cached_property
    def limits_others(self) -> bool:
        """Whether it speaks of members beside those that it declares and requires."""
        return not _OF_OTHERS.isdisjoint(self.node)

    @cached_property
    def final(self) -> Spot:
        """The end of a chain of places that do nothing but refer to the next one."""
        survey = self._survey
        return survey.spot(survey.documents.final(self.place))

    @cached_property
    def targets(self) -> list[Spot]:
        """What the references of the node lead to."""
        survey = self._survey
        return [survey.spot(target) for target in survey.documents.targets(self.place)]

    @cached_property
    def together(self) -> list[Place]:
        """All places that may speak of the same value."""
        return together(self._survey.documents, [self.place])

    @cached_property
    def required(self) -> dict[str, None]:
        """The members that an object must have, in order."""
        return dict.fromkeys(self.node.get("required", ()))

    @cached_property
    def types(self) -> str:
        """The types that are taken, in words."""
        return wording.alternatives(wording.types(self.node))

    @cached_property
    def expected(self) -> str:
        """What is wanted here, in a few words."""
        return wording.expected(self.node)

    def broken(self, value: Any) -> Mapping[str, bool]:
        """Give the assertions that a value does not meet, and whether for want of time."""
        asserting = self._asserting
        try:
            if asserting is None or asserting.is_valid(value):
                return _NOTHING
            if self._asserts_type_alone:
                return _TYPE
            return {
                error.kind.name: isinstance(error.kind, _UNDECIDED)
                for error in asserting.iter_errors(value)
            }
        except CompileErrors:
            return _NOTHING

    @cached_property
    def accepts(self) -> Check:
        """Whether a value is valid here."""
        if not (_OF_LEAVES.issuperset(self.node) and self._survey.is_uniform):
            return self._is_valid_in_place
        if _ASSERTIONS.isdisjoint(self.node):
            return anything
        # What is nothing but assertions needs nothing of the rest of the schema.
        return self._is_valid_in_place if self._asserting is None else self._asserting.is_valid

    @cached_property
    def _address(self) -> str:
        return self.place.address

    @cached_property
    def _asserting(self) -> jsonschema_rs.Validator | None:
        asserted = {keyword: self.node[keyword] for keyword in self.node if keyword in _ASSERTIONS}
        try:
            return self._survey.validators.alone(asserted) if asserted else None
        except CompileErrors:
            return None

    @cached_property
    def _asserts_type_alone(self) -> bool:
        return _ASSERTIONS.intersection(self.node) == {"type"}

    def _is_valid_in_place(self, value: Any) -> bool:
        return self._survey.tests.at(self._address)(value)
