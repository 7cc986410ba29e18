"""Read when an error asks to be tried again: our own failures, HTTP headers, common attributes."""

from __future__ import annotations

import builtins
import math
from email.utils import parsedate_to_datetime
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from seawall.pipeline.foreign import attempted, leaves

if TYPE_CHECKING:
    from collections.abc import Callable

_ATTRIBUTES = (attrgetter("retry_after_s"), attrgetter("retry_after"))


_SILENT = frozenset(
    kind
    for kind in vars(builtins).values()
    if isinstance(kind, type) and issubclass(kind, BaseException)
)
"""Types that say nothing about it, unless somebody puts it there."""


def retry_after_of(error: BaseException, wall: Callable[[], float]) -> float | None:
    """Seconds that an exception asks to wait, or None: `retry_after`, or its response's header."""
    for leaf in leaves(error):
        if type(leaf) in _SILENT and not leaf.__dict__:
            continue
        for ask in (*_ATTRIBUTES, _header):
            # Properties of exceptions may raise: an HTTP error's `response` does when unset.
            found = attempted(lambda: seconds(ask(leaf), wall), None)  # noqa: B023  # called at once
            if found is not None:
                return found
    return None


def _header(error: Any) -> Any:
    headers = error.response.headers
    return headers.get("retry-after") or headers.get("Retry-After")


def seconds(value: Any, wall: Callable[[], float]) -> float | None:
    """Seconds of a Retry-After value: a number, digits, or an HTTP date; never negative."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, (int, float)):
        return _finite(value)
    if not isinstance(value, str) or len(value) > 64:
        return None
    text = value.strip()
    if text.isascii() and text.replace(".", "", 1).isdigit():
        return float(text)
    try:
        return max(parsedate_to_datetime(text).timestamp() - wall(), 0.0)
    except (TypeError, ValueError, OverflowError):
        return None


def _finite(value: float) -> float | None:
    try:
        return max(float(value), 0.0) if math.isfinite(value) else None
    except OverflowError:  # an integer beyond all floats
        return None
