"""Compile a tool's schema into a check that is fast, total and closed to the outside.

Read as draft 2020-12 unless `$schema` names another one. A schema that its own draft refuses, or
that uses keywords of a later one, is read as 2020-12 or 2019-09 if that enforces all of it.
Nothing is fetched: a reference to what is not at hand leads nowhere, and then no value is valid
at its place, while the rest of the schema works.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from seawall.contract.errors import ConfigurationError, Fault
from seawall.contract.failure import Issue
from seawall.pipeline.arguments.faults.finder import Finder
from seawall.pipeline.arguments.faults.schema import schema_faults
from seawall.pipeline.arguments.faults.survey import Survey
from seawall.pipeline.arguments.latest import Latest
from seawall.pipeline.arguments.reading.bounds import out_of_bounds
from seawall.pipeline.arguments.schema.combinations import HARMLESS_REFERENCES, excess
from seawall.pipeline.arguments.schema.dialects import (
    DIALECTS,
    DRAFT_2019,
    DRAFT_2020,
    Dialect,
    dialect_named,
)
from seawall.pipeline.arguments.schema.documents import MARK, Documents, mapping, mark_dangling
from seawall.pipeline.arguments.schema.normal_form import NotUsable, copied, normal_form, pointer
from seawall.pipeline.arguments.schema.roots import accepts_objects
from seawall.pipeline.arguments.schema.validators import (
    CompileErrors,
    Validators,
    pattern_limits,
    readable,
)

if TYPE_CHECKING:
    from jsonschema_rs import FancyRegexOptions

    from seawall.pipeline.arguments.faults.explain import Redaction

_KEPT = 500
"""Schemas of which is kept what it takes to say why they refuse a value."""
_NO_RESOURCES: Mapping[str, Any] = {}
_SLUGS = {
    "required": "argument_missing",
    "dependentRequired": "argument_missing",
    "type": "argument_type",
    "additionalProperties": "argument_unknown",
    "unevaluatedProperties": "argument_unknown",
}


class Kept:
    """What was found out about a schema; it goes with that, or when many others need theirs."""

    __slots__ = ("__weakref__", "survey")

    def __init__(self) -> None:
        self.survey: Survey | None = None

    def forget(self) -> None:
        """Let go of it; it is made again when it is needed."""
        self.survey = None


class CompiledSchema(msgspec.Struct, frozen=True, eq=False):
    """A schema ready to check values.

    Values are JSON within the bounds of arguments (`out_of_bounds`); for those nothing here
    raises. `is_valid` is the bare validator: it may raise ValueError for what is no JSON, and
    must not be given what is nested thousands deep.
    """

    schema: Any
    """What is enforced: the schema said in `draft`. Must not be changed."""
    draft: str
    is_valid: Callable[[Any], bool]
    resources: Mapping[str, Any] = _NO_RESOURCES
    assert_formats: bool = True
    kept: Kept = msgspec.field(default_factory=Kept)

    def faults(self, value: Any) -> tuple[Issue, ...]:
        """Say all that is wrong with a value, in the order in which properties are declared."""
        outside = out_of_bounds(value)
        if outside is not None:
            return (Issue(outside[1], outside[2], "parse"),)
        return () if self.is_valid(value) else self.faults_of_refused(value)

    def faults_of_refused(self, value: Any) -> tuple[Issue, ...]:
        """Do the same for a value that is within the bounds and known not to be valid."""
        return Finder(_surveyed(self)).find(value)

    @property
    def redaction(self) -> Redaction:
        """What must not be shown of values."""
        return _surveyed(self).redaction

    @staticmethod
    def reason(issues: Sequence[Issue]) -> str:
        """Give the slug for faults: the one kind they all are of, else `argument_invalid`.

        Mixed faults have no remedy in common, so only the general word is true of them.
        """
        slugs = {_SLUGS.get(issue.keyword, "argument_invalid") for issue in issues}
        return slugs.pop() if len(slugs) == 1 else "argument_invalid"


def _surveyed(compiled: CompiledSchema) -> Survey:
    """Give what is known of the places of a schema: what was found for another value, if kept."""
    known = compiled.kept.survey
    if known is None:
        schema, dialect = compiled.schema, DIALECTS[compiled.draft]
        validators = Validators(
            schema, dialect, compiled.resources, assert_formats=compiled.assert_formats
        )
        documents = Documents(schema, dialect, compiled.resources)
        known = compiled.kept.survey = Survey(documents, dialect, validators)
        _SURVEYED.made(compiled.kept)
    return known


_SURVEYED = Latest(_KEPT)
"""Where a survey is: of 10,000 tools all may be refused."""


def compile_schema(
    schema: Mapping[str, Any],
    *,
    where: str = "input_schema",
    root_object: bool = True,
    unknown_keywords: Literal["refuse", "ignore"] = "refuse",
    draft: str | None = None,
    resources: Mapping[str, Any] | None = None,
    assert_formats: bool = True,
) -> CompiledSchema:
    """Compile `schema`; raises ConfigurationError with all its faults, each with its place.

    The key of a fault is `where`, then the JSON Pointer inside the schema. With `root_object` a
    schema that no object can meet is refused; without it, a boolean is a schema too. `draft`
    overrules `$schema`; `resources` are the documents that references may lead to, by address.
    """
    try:
        return _Compilation(
            schema,
            draft=draft,
            resources=resources or _NO_RESOURCES,
            refuse_unknown=unknown_keywords == "refuse",
            assert_formats=assert_formats,
            root_object=root_object,
        ).run(where)
    except NotUsable as fault:
        raise ConfigurationError([Fault(fault.message, key=where + pointer(fault.way))]) from None


class _Compilation:
    def __init__(
        self,
        schema: Any,
        *,
        draft: str | None,
        resources: Mapping[str, Any],
        refuse_unknown: bool,
        assert_formats: bool,
        root_object: bool,
    ) -> None:
        self._schema = schema
        self._draft = draft
        self._resources = {
            address.removesuffix("#"): copied(known) for address, known in resources.items()
        }
        self._refuse_unknown = refuse_unknown
        self._assert_formats = assert_formats
        self._root_object = root_object
        self._limits = pattern_limits(0)
        self._said = "no draft enforces all of its keywords"

    def run(self, where: str) -> CompiledSchema:
        if self._root_object and not isinstance(self._schema, Mapping):
            raise NotUsable("must be an object that describes the arguments", None)
        try:
            for dialect in self._candidates():
                compiled = self._compiled(dialect)
                if compiled is not None:
                    return compiled
        except _UnreadablePattern:
            pass  # unreadable in all drafts; the faults below say which it is
        faults = schema_faults(
            copied(self._schema),
            where=where,
            refuse_unknown=self._refuse_unknown,
            addresses=frozenset(self._resources),
            limits=self._limits,
        )
        raise ConfigurationError(
            faults or [Fault(f"is accepted by no draft of JSON Schema: {self._said}", key=where)]
        )

    def _candidates(self) -> Iterator[Dialect]:
        """Give the drafts to try, in order."""
        own: Any = self._schema.get("$schema") if isinstance(self._schema, Mapping) else None
        if self._draft is not None:
            if self._draft not in DIALECTS:
                raise NotUsable(f"{self._draft} must be one of {', '.join(DIALECTS)}", None)
            yield DIALECTS[self._draft]
        elif own is not None and dialect_named(own) is None:
            if isinstance(own, str) and own in self._resources:
                yield DRAFT_2020
        else:
            declared = dialect_named(own) or DRAFT_2020
            yield declared
            if self._refuse_unknown:
                yield from (d for d in (DRAFT_2020, DRAFT_2019) if d is not declared)

    def _compiled(self, dialect: Dialect) -> CompiledSchema | None:
        """Compile in one draft; None if that does not enforce or accept the schema."""
        form = normal_form(self._schema, dialect)
        if self._refuse_unknown and not form.enforceable:
            return None
        documents = Documents(form.schema, dialect, self._resources)
        if form.references >= HARMLESS_REFERENCES or self._resources:
            problem = excess(documents)
            if problem:
                raise NotUsable(problem, None)
        self._limits = pattern_limits(form.patterns)
        is_valid = self._validator(documents, dialect)
        if is_valid is None:
            return None
        if self._root_object and not accepts_objects(documents):
            raise NotUsable(_never_met(documents.root.node), None)
        return CompiledSchema(
            form.schema, dialect.name, is_valid, self._resources, self._assert_formats
        )

    def _validator(self, documents: Documents, dialect: Dialect) -> Callable[[Any], bool] | None:
        root = documents.root.node
        validators = Validators(
            root,
            dialect,
            self._resources,
            assert_formats=self._assert_formats,
            limits=self._limits,
        )
        try:
            return validators.whole().is_valid
        except CompileErrors as error:
            self._said = str(error).partition("\n")[0]
        dangling = mark_dangling(documents, dialect.own_addresses)
        if not (_translate_patterns(documents, self._limits) or dangling):
            return None
        try:
            return validators.whole().is_valid
        except CompileErrors as error:
            self._said = str(error).partition("\n")[0]
        return None


def _never_met(root: dict[str, Any]) -> str:
    if MARK in root:
        return f"refers to {root[MARK]}, which is not there; nothing is fetched"
    return "can be met by no object, but arguments always are one"


def _translate_patterns(documents: Documents, limits: FancyRegexOptions) -> bool:
    """Say patterns that only JavaScript reads in a grammar that the validator reads.

    Changes the documents in place; says whether there were any. Raises _UnreadablePattern.
    """
    changed = False
    for place in documents.everywhere:
        node = place.node
        if isinstance(node.get("pattern"), str):
            said = _translated(node["pattern"], limits)
            changed |= said != node["pattern"]
            node["pattern"] = said
        named = mapping(node, "patternProperties")
        if named:
            read = {_translated(name, limits): part for name, part in named.items()}
            changed |= read.keys() != named.keys()
            node["patternProperties"] = read
    return changed


class _UnreadablePattern(Exception):  # noqa: N818  # says what it found; never leaves this module
    pass


def _translated(pattern: str, limits: FancyRegexOptions) -> str:
    said = readable(pattern, limits)
    if said is None:
        raise _UnreadablePattern
    return said
