"""Let arguments through at once that are plainly in order, as nearly all are.

Only for schemas of a few named scalars. Such a schema is said once more with the bounds of
arguments in it; what meets that is valid, of a size to work with, and needs no mending. All else
says nothing: the longer way finds out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import jsonschema_rs

from seawall.pipeline.arguments.dialects import DRAFT_2020
from seawall.pipeline.arguments.pattern_bounds import PATTERNS

if TYPE_CHECKING:
    from seawall.pipeline.arguments.schema import CompiledSchema

_PROPERTIES_AT_MOST = 32
_LONGEST = 4096
_SMALL = 1 << 63
_FINITE = 1.7e308
_REMARKS = frozenset(
    ("title", "description", "default", "examples", "deprecated", "$comment", "$schema")
)
_AROUND = frozenset(("type", "properties", "required", "additionalProperties")) | _REMARKS
_INSIDE = (
    frozenset(("type", "enum", "minLength", "maxLength", "minimum", "maximum", "format")) | _REMARKS
)
_BOUNDS: dict[str, dict[str, Any]] = {
    # The pattern makes the validator read the text, and refuse half of a character.
    "string": {"type": "string", "maxLength": _LONGEST, "pattern": "^"},
    "integer": {"type": "integer", "minimum": -_SMALL, "maximum": _SMALL},
    "number": {"type": "number", "minimum": -_FINITE, "maximum": _FINITE},
    "boolean": {"type": "boolean"},
}


Quick = Callable[[dict[str, Any]], "dict[str, Any] | None"]
"""Copies arguments that are plainly in order; None for all others."""


def quick_check(compiled: CompiledSchema) -> Quick | None:
    """Give the quick check for a schema; None if the schema is not of the kind."""
    schema = compiled.schema
    if compiled.draft != DRAFT_2020.name or not _is_plain(schema):
        return None
    bounded = {
        **schema,
        "properties": {name: _bounded(part) for name, part in schema["properties"].items()},
        "additionalProperties": False,
    }
    try:
        is_plainly_valid = jsonschema_rs.Draft202012Validator(
            bounded, validate_formats=compiled.assert_formats, pattern_options=PATTERNS
        ).is_valid
    except (jsonschema_rs.ValidationError, ValueError):
        return None
    wants_integers = any(part["type"] == "integer" for part in schema["properties"].values())
    # A whole float is no integer yet; for the validator it is one.
    classes = (int, str, bool) if wants_integers else (int, str, bool, float)

    def check(given: dict[str, Any]) -> dict[str, Any] | None:
        for item in given.values():
            if item.__class__ not in classes:
                return None
        try:
            return given.copy() if is_plainly_valid(given) else None
        except ValueError:  # what is no JSON
            return None

    return check


def _is_plain(schema: Any) -> bool:
    if not isinstance(schema, dict) or not _AROUND.issuperset(schema):
        return False
    properties = schema.get("properties")
    if schema.get("type") != "object" or not isinstance(properties, dict):
        return False
    return len(properties) <= _PROPERTIES_AT_MOST and all(map(_is_scalar, properties.values()))


def _is_scalar(part: Any) -> bool:
    return (
        isinstance(part, dict)
        and _INSIDE.issuperset(part)
        and isinstance(kind := part.get("type"), str)
        and kind in _BOUNDS
    )


def _bounded(part: dict[str, Any]) -> dict[str, Any]:
    bounds = _BOUNDS[part["type"]]
    if any(word in part for word in bounds if word != "type"):
        return {"allOf": [part, bounds]}
    return {**part, **bounds}
