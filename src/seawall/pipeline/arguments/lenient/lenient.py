"""Coercion mode `lenient`: turn loosely typed arguments into what the schema most likely meant.

The outcomes are those of Pi's tool subsystem, value for value: three passes over the whole value
(optional nulls dropped, strong conversions, weak coercions by type), then the check, its issues
in Pi's words and order. Two things differ on purpose: integers stay exact where JavaScript would
round them, and a schema nobody can compile is refused when it is read, not at every call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jsonschema_rs

from seawall.contract.failure import Issue
from seawall.pipeline.arguments.lenient.check import Checker, TooMuchWork, Work
from seawall.pipeline.arguments.lenient.convert import Converter
from seawall.pipeline.arguments.lenient.document import document_of
from seawall.pipeline.arguments.lenient.faults import FaultFinder
from seawall.pipeline.arguments.lenient.rewriter import NullDropper
from seawall.pipeline.arguments.lenient.schema import read_schema
from seawall.pipeline.arguments.lenient.text import changes, validation_text
from seawall.pipeline.arguments.lenient.types import TypeCoercer
from seawall.pipeline.arguments.lenient.values import holds_infinity
from seawall.pipeline.arguments.patterns.bounds import PATTERNS

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Lenient", "validation_text"]

_STEPS = 60_000
"""What coercing the arguments of one call may cost, in looks at a value by a subschema."""
_STEPS_TO_EXPLAIN = 30_000
_ISSUES_AT_MOST = 100
_PASSES = (NullDropper, Converter, TypeCoercer)
_UNCHECKABLE = Issue("", "too deeply nested or too ambiguous to be checked", "schema")


class Lenient:
    """The lenient mode for one schema. Compiled once; safe to share between calls and threads.

    Raises ConfigurationError, with every fault, for what is no schema.
    """

    def __init__(self, schema: Mapping[str, Any]) -> None:
        reading = read_schema(schema)
        self._root = reading.root
        self._keeps_valid = reading.keeps_valid
        self._validator = _compiled(document_of(self._root))

    def coerce(self, value: Any) -> tuple[Any, tuple[str, ...]]:
        """Give the coerced value, and where it differs; copied only along the changed paths.

        A value that is nested too deeply, or that an ambiguous schema makes too costly to convert,
        comes back as it is.
        """
        if self._judge(value) and self._keeps_valid:
            return value, ()
        work = Work(_STEPS)
        checker = Checker(work)
        coerced = value
        try:
            for rewriter in _PASSES:
                coerced = rewriter(checker, work).walk(self._root, coerced)
        except (RecursionError, TooMuchWork):
            return value, ()
        changed = () if coerced is value else changes(value, coerced)
        return (coerced, changed) if changed else (value, ())

    def faults(self, value: Any) -> tuple[Issue, ...]:
        """Give what is wrong with a value, which should have been coerced; nothing if valid."""
        valid = self._judge(value)
        if valid:
            return ()
        work = Work(_STEPS_TO_EXPLAIN)
        issues: list[Issue] = []
        try:
            FaultFinder(Checker(work), work).find(self._root, value, "", issues)
        except (RecursionError, TooMuchWork):
            return tuple(issues[:_ISSUES_AT_MOST]) or (_UNCHECKABLE,)
        if not issues and valid is False:
            return (Issue("", "invalid", "schema"),)
        return tuple(issues[:_ISSUES_AT_MOST])

    def _judge(self, value: Any) -> bool | None:
        """Give jsonschema-rs's verdict if it has one.

        It reads no text with lone surrogates and no deep nesting, which could end the process, and
        takes infinities for null.
        """
        try:
            text = jsonschema_rs.canonical.json.to_string(value)
            if self._validator is None or ("null" in text and holds_infinity(value)):
                return None
            return self._validator.is_valid(value)
        except ValueError:
            return None


def _compiled(document: dict[str, Any] | None) -> jsonschema_rs.Draft202012Validator | None:
    if document is None:
        return None
    try:
        return jsonschema_rs.Draft202012Validator(
            document, validate_formats=True, retriever=_refuse, pattern_options=PATTERNS
        )
    except (jsonschema_rs.ValidationError, ValueError):
        return None


def _refuse(uri: str) -> Any:
    raise ValueError(f"{uri} is not fetched: a schema must hold all that it refers to")
