"""Copy arguments, so that nobody who works in place changes what belongs to another."""

from __future__ import annotations

from typing import Any

SCALARS = frozenset((str, int, bool, float, type(None)))
"""Types of which a value holds no other, and is no other: an enum's member is not of them."""

_CONTAINERS = (dict, list, tuple)


def copied(value: dict[str, Any]) -> dict[str, Any]:
    """Copy an object and the containers in it, which must be of bounded size and depth."""
    copy = value.copy()
    for key, item in value.items():
        if type(item) not in SCALARS and isinstance(item, _CONTAINERS):
            copy[key] = _copied(item)
    return copy


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return copied(value)
    if isinstance(value, list):
        return [item if type(item) in SCALARS else _copied(item) for item in value]
    return tuple(map(_copied, value)) if isinstance(value, tuple) else value
