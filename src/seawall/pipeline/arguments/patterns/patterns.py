"""Compile the patterns of a schema, for jsonschema-rs to run.

It runs them in linear time or with a bound on backtracking, whatever the pattern and the text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import jsonschema_rs

from seawall.pipeline.arguments.patterns.bounds import PATTERNS
from seawall.pipeline.arguments.patterns.grammar import PatternError, translated

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["Pattern", "PatternError", "compile_pattern", "matching"]


class Pattern(NamedTuple):
    """A pattern as jsonschema-rs takes it, and the test whether text contains a match."""

    source: str
    matches: Callable[[str], bool]


def compile_pattern(source: str) -> Pattern:
    """Compile a pattern of a schema; raises PatternError.

    The grammar of the `u` flag is tried first, then the one without it; what JavaScript cannot
    read at all is left to jsonschema-rs.
    """
    for candidate in _candidates(source):
        try:
            validator = jsonschema_rs.Draft202012Validator(
                {"pattern": candidate}, pattern_options=PATTERNS
            )
        except (jsonschema_rs.ValidationError, ValueError):
            continue
        return Pattern(candidate, matching(validator))
    raise PatternError(f"the pattern {source!r} is no regular expression")


def matching(validator: jsonschema_rs.Draft202012Validator) -> Callable[[str], bool]:
    """Turn a validator of text into a test that also takes text with lone surrogates."""
    check = validator.is_valid

    def matches(text: str) -> bool:
        try:
            return check(text)
        except UnicodeEncodeError:
            return check(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))

    return matches


def _candidates(source: str) -> Iterator[str]:
    for unicode in (True, False):
        try:
            yield translated(source, unicode=unicode)
        except PatternError:
            continue
    yield source
