"""Read when an error asks to be tried again: our own failures, HTTP headers, common attributes."""

from __future__ import annotations

import math
from contextlib import suppress
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

from seawall.pipeline.foreign import Foreign, leaves

if TYPE_CHECKING:
    from collections.abc import Callable

_ATTRIBUTES = ("retry_after_s", "retry_after")


def retry_after_of(error: BaseException, wall: Callable[[], float]) -> float | None:
    """Seconds that an exception asks to wait, or None: `retry_after`, or its response's header."""
    for leaf in leaves(error):
        for name in _ATTRIBUTES:
            found = seconds(_quietly(leaf, name), wall)
            if found is not None:
                return found
        found = seconds(_header(leaf), wall)
        if found is not None:
            return found
    return None


def _quietly(thing: Any, name: str) -> Any:
    # Properties of foreign exceptions may raise: an HTTP error's `response` does when unset.
    with suppress(*Foreign):
        return getattr(thing, name, None)
    return None


def _header(error: BaseException) -> Any:
    get = _quietly(_quietly(_quietly(error, "response"), "headers"), "get")
    with suppress(*Foreign):
        return get("retry-after") or get("Retry-After")
    return None


def seconds(value: Any, wall: Callable[[], float]) -> float | None:
    """Seconds of a Retry-After value: a number, digits, or an HTTP date; never negative."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, (int, float)):
        return max(float(value), 0.0) if math.isfinite(value) else None
    if not isinstance(value, str) or len(value) > 64:
        return None
    text = value.strip()
    if text.isascii() and text.replace(".", "", 1).isdigit():
        return float(text)
    try:
        return max(parsedate_to_datetime(text).timestamp() - wall(), 0.0)
    except (TypeError, ValueError, OverflowError):
        return None
