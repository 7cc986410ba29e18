"""What other drafts, OpenAPI and old generators write otherwise, and what they mean by it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from seawall.pipeline.arguments.schema.dialects import (
    ANNOTATIONS,
    DRAFT_4,
    DRAFT_2020,
    REFERENCES,
    words,
)

if TYPE_CHECKING:
    from seawall.pipeline.arguments.schema.dialects import Dialect

TRANSLATED: dict[str, type | tuple[type, ...]] = {
    "exclusiveMinimum": bool,
    "exclusiveMaximum": bool,
    "required": bool,
    "items": (list, tuple),
    "additionalItems": object,
}
"""Keywords that may need a translation, if their value is of such a type."""

WELL_FORMED: dict[str, Callable[[Any], bool]] = {
    "examples": lambda value: isinstance(value, list),
    "readOnly": lambda value: isinstance(value, bool),
    "writeOnly": lambda value: isinstance(value, bool),
    "deprecated": lambda value: isinstance(value, bool),
    "title": lambda value: value is not None,
    "description": lambda value: value is not None,
    "$comment": lambda value: value is not None,
}
"""Annotations that are dropped, not refused, when a generator wrote them in another way."""

REMARKS = ANNOTATIONS - {"examples", "readOnly", "writeOnly", "deprecated", "nullable"}
"""Annotations that may well be texts."""

_COMPOSED = frozenset({*REFERENCES, "allOf", "anyOf", "oneOf", "not", "if", "const"})
_STAYS_OUTSIDE = words(
    """$schema $id $anchor $dynamicAnchor $defs definitions title description default examples
    readOnly writeOnly deprecated"""
)


def translate(said: dict[str, Any], dialect: Dialect) -> None:
    """Say one node, which is a copy, in the words of a draft."""
    if isinstance(said.get("required"), bool):
        del said["required"]  # a value that is there meets it; see require_members
    if dialect is not DRAFT_4:
        _exclude(said, "minimum", "exclusiveMinimum")
        _exclude(said, "maximum", "exclusiveMaximum")
    if dialect is DRAFT_2020:
        _list_items(said)
    for keyword, is_fine in WELL_FORMED.items():
        if keyword in said and not is_fine(said[keyword]):
            del said[keyword]
    if said.pop("nullable", None) is True:
        _allow_null(said)


def require_members(said: dict[str, Any], node: Mapping[str, Any]) -> None:
    """Draft 3: a property says itself that it is required."""
    members = node.get("properties")
    if not isinstance(members, Mapping) or not isinstance(said.get("required", []), list):
        return
    names = [
        str(name)
        for name, member in members.items()
        if isinstance(member, Mapping) and member.get("required") is True
    ]
    known = said.get("required", [])
    if names:
        said["required"] = known + [name for name in names if name not in known]


def _exclude(said: dict[str, Any], bound: str, exclusive: str) -> None:
    """Draft 4: a boolean says whether the bound itself is allowed."""
    if said.get(exclusive) is False:
        del said[exclusive]
    elif said.get(exclusive) is True and bound in said:
        said[exclusive] = said.pop(bound)


def _list_items(said: dict[str, Any]) -> None:
    """Until 2019: a list of items, and what comes after it."""
    items, more = said.get("items"), said.pop("additionalItems", None)
    if not isinstance(items, list) or "prefixItems" in said:
        return
    del said["items"]
    if items:
        said["prefixItems"] = items
    if more is not None:
        said["items"] = more


def _allow_null(said: dict[str, Any]) -> None:
    """OpenAPI 3.0: null is allowed beside what the rest says."""
    composed = said.keys() & _COMPOSED
    if composed - {"anyOf"} or not isinstance(said.get("anyOf", []), list):
        rest = {key: said.pop(key) for key in list(said) if key not in _STAYS_OUTSIDE}
        said["anyOf"] = [rest, {"type": "null"}]
        return
    if composed:
        said["anyOf"].append({"type": "null"})
    kind, choices = said.get("type"), said.get("enum")
    if isinstance(kind, str):
        said["type"] = [kind, "null"] if kind != "null" else kind
    elif isinstance(kind, list) and "null" not in kind:
        kind.append("null")
    if isinstance(choices, list) and None not in choices:
        choices.append(None)
