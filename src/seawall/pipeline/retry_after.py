"""Read when an error asks to be tried again: our own failures, HTTP headers, common attributes."""

from __future__ import annotations

import builtins
import math
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

from seawall.pipeline.foreign import attempted, leaves

if TYPE_CHECKING:
    from collections.abc import Callable

_SILENT = frozenset(
    id(kind)
    for kind in vars(builtins).values()
    if isinstance(kind, type)
    and issubclass(kind, BaseException)
    and not issubclass(kind, BaseExceptionGroup)
)
"""Types that say nothing about it, unless somebody puts it there.

By their ids, as these types are never gone: another class may not want to be hashed.
"""


def retry_after_of(error: BaseException, wall: Callable[[], float]) -> float | None:
    """Seconds that an exception asks to wait, or None: `retry_after`, or its response's header."""
    if _is_silent(error):  # as most are
        return None
    for leaf in leaves(error):
        if _is_silent(leaf):
            continue
        for ask in _WAYS:
            # Properties of exceptions may raise: an HTTP error's `response` does when unset.
            found = attempted(lambda: seconds(ask(leaf), wall), None)  # noqa: B023  # called at once
            if found is not None:
                return found
    return None


def _is_silent(error: BaseException) -> bool:
    return id(type(error)) in _SILENT and not error.__dict__


def _own(error: Any) -> Any:
    return getattr(error, "retry_after_s", None)


def _common(error: Any) -> Any:
    return getattr(error, "retry_after", None)


def _header(error: Any) -> Any:
    headers = getattr(getattr(error, "response", None), "headers", None)
    return None if headers is None else headers.get("retry-after") or headers.get("Retry-After")


_WAYS = (_own, _common, _header)


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
