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


MAX_VALUES = 10_000
MAX_LEVELS = 64


def copied_within(value: dict[str, Any]) -> dict[str, Any] | None:
    """Copy an object and the containers in it; None if it holds too much, or itself.

    Objects of other kinds are not copied.
    """
    left = MAX_VALUES

    def copy(item: Any, levels: int) -> Any:
        nonlocal left
        left -= 1
        if left < 0 or levels == 0:
            raise _TooMuch
        kind = type(item)
        if kind is dict:
            return {key: copy(one, levels - 1) for key, one in item.items()}
        if kind is list or kind is tuple:
            return kind(copy(one, levels - 1) for one in item)
        return kind(item) if kind is set or kind is bytearray else item

    try:
        found: dict[str, Any] = copy(value, MAX_LEVELS)
    except _TooMuch:
        return None
    return found


class _TooMuch(Exception):  # noqa: N818  # how a copy is broken off; nobody else sees it
    pass
