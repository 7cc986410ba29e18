"""The keywords about one value alone, in the words of jsonschema-rs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from seawall.pipeline.arguments.lenient import rules
from seawall.pipeline.arguments.lenient.values import is_finite, is_number, plain

if TYPE_CHECKING:
    from collections.abc import Mapping

    from seawall.pipeline.arguments.patterns.patterns import Pattern

_LEAST = ("minLength", "minItems", "minProperties")
_MOST = ("maxLength", "maxItems", "maxProperties")
_BOUNDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")


class Unsayable(ValueError):  # noqa: N818  # named by what happened; it ends where the document is made
    """A keyword that jsonschema-rs has no words for."""


def words_of(schema: Mapping[str, Any], pattern: Pattern | None) -> dict[str, Any] | None:
    """Give the keywords about one value alone."""
    try:
        return _words(schema, pattern)
    except Unsayable:
        return None


def _words(schema: Mapping[str, Any], pattern: Pattern | None) -> dict[str, Any]:
    given = {keyword: schema[keyword] for keyword in schema if is_number(schema[keyword])}
    words: dict[str, Any] = {key: least(given[key]) for key in _LEAST if key in given}
    words |= {key: most(given[key]) for key in _MOST if key in given}
    words |= {key: _bound(key, given[key]) for key in _BOUNDS if key in given}
    if schema.get("uniqueItems") is True:
        words["uniqueItems"] = True
    if isinstance(schema.get("enum"), list | tuple):
        words["enum"] = plain(schema["enum"])
    if "const" in schema:
        words["const"] = plain(schema["const"])
    if pattern is not None:
        words["pattern"] = pattern.source
    name = schema.get("format")
    if isinstance(name, str) and name in rules.FORMATS:
        words["allOf"] = [rules.format_schema(name)]
    return words


def least(bound: float) -> int:
    """Round a lower bound of a count."""
    if not is_finite(bound):
        raise Unsayable
    return max(math.ceil(bound), 0)


def most(bound: float) -> int:
    """Round an upper bound of a count."""
    if not is_finite(bound) or bound < 0:
        raise Unsayable
    return math.floor(bound)


def _bound(keyword: str, bound: float) -> float:
    if not is_finite(bound) or (keyword == "multipleOf" and bound <= 0):
        raise Unsayable
    return bound
