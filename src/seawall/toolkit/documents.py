"""JSON values as the tools meet them: read strictly, named by shape, measured within a bound."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

Json = Any

MAX_SIZE = 1_000_000
"""About as many characters of JSON as a result may take."""


def read_json(text: str) -> Json:
    """Parse strict JSON; raises `ValueError` for everything else, too deep nesting included."""
    try:
        return json.loads(text, parse_constant=_no_constant)
    except RecursionError:
        raise ValueError("nested too deep") from None


def _no_constant(name: str) -> Json:
    raise ValueError(f"{name} is no JSON")


def shape(value: Json) -> str:
    """Name the JSON type of a value."""
    if value is None:
        return "null"
    kinds = {bool: "boolean", str: "string", int: "number", float: "number", list: "array"}
    return kinds.get(type(value), "object")


def parsed(document: Json) -> Json:
    """Read a document that came as text; text that holds no JSON container stays text."""
    # Only text that looks like a container: plain words stay the strings they are.
    if not isinstance(document, str) or document.lstrip()[:1] not in ("{", "["):
        return document
    try:
        return read_json(document)
    except ValueError:
        return document


def fits(document: Json) -> bool:
    """Whether a document is within `MAX_SIZE`; never walks much further than that."""
    left = MAX_SIZE
    open_parts: list[Iterator[Json]] = [iter((document,))]
    while open_parts:
        value = next(open_parts[-1], _END)
        if value is _END:
            open_parts.pop()
            continue
        left -= 2 + (len(value) if isinstance(value, str) else 0)
        if left < 0:
            return False
        if isinstance(value, dict):
            left -= sum(map(len, value))
            open_parts.append(iter(value.values()))
        elif isinstance(value, list):
            open_parts.append(iter(value))
    return True


_END = object()
