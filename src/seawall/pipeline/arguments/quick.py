"""Know arguments at a glance that are plainly in order, as nearly all are.

Only by schemas of a few named scalars, which are said once more with the bounds of arguments in
them. What meets that is valid, of a size to work with, and needs no mending.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jsonschema_rs

from seawall.pipeline.arguments.patterns.bounds import PATTERNS
from seawall.pipeline.arguments.schema.dialects import DRAFT_2020

if TYPE_CHECKING:
    from collections.abc import Callable

    from seawall.pipeline.arguments.compiled import CompiledSchema

_PROPERTIES_AT_MOST = 32
_BOUNDS: dict[Any, dict[str, Any]] = {
    "string": {"maxLength": 4096},
    "integer": {"minimum": -(1 << 63), "maximum": 1 << 63},
    "number": {"minimum": -(1 << 63), "maximum": 1 << 63},
    "boolean": {},
}
_REMARKS = frozenset(
    ("title", "description", "default", "examples", "deprecated", "$comment", "$schema")
)
_AROUND = _REMARKS | {"type", "properties", "required", "additionalProperties"}
_INSIDE = _REMARKS | {"type", "enum", "minLength", "maxLength", "minimum", "maximum", "format"}


def plain_check(compiled: CompiledSchema) -> Callable[[dict[str, Any]], bool] | None:
    """Give a check for what is plainly in order; None if the schema is not of the kind.

    For an object of ASCII texts, integers and booleans: more it does not look at. Raises ValueError
    for names that are none.
    """
    schema = compiled.schema
    if compiled.draft != DRAFT_2020.name or not _is_plain(schema):
        return None
    try:
        return jsonschema_rs.Draft202012Validator(
            {
                **schema,
                "properties": {name: _bounded(part) for name, part in schema["properties"].items()},
                "additionalProperties": False,
            },
            validate_formats=compiled.assert_formats,
            pattern_options=PATTERNS,
        ).is_valid
    except (jsonschema_rs.ValidationError, ValueError):
        return None


def _is_plain(schema: Any) -> bool:
    if not isinstance(schema, dict) or not _AROUND.issuperset(schema):
        return False
    properties = schema.get("properties")
    if schema.get("type") != "object" or not isinstance(properties, dict):
        return False
    return len(properties) <= _PROPERTIES_AT_MOST and all(map(_is_scalar, properties.values()))


def _is_scalar(part: Any) -> bool:
    if not isinstance(part, dict) or not _INSIDE.issuperset(part):
        return False
    kind = part.get("type")
    return isinstance(kind, str) and kind in _BOUNDS


def _bounded(part: dict[str, Any]) -> dict[str, Any]:
    bounds = _BOUNDS[part["type"]]
    return {**bounds, **part} if bounds.keys().isdisjoint(part) else {"allOf": [part, bounds]}
