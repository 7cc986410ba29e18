"""Whether arguments that arrive as a mapping are JSON, and of a size to work with.

What passes can be checked, canonicalised and stored without surprise. Cycles have no test
of their own: they are deeper than any bound.
"""

from __future__ import annotations

import re
from math import isfinite
from typing import TYPE_CHECKING, Any

from seawall.contract.pointer import escaped
from seawall.pipeline.arguments.reading.reader import (
    MAX_BYTES,
    MAX_DEPTH,
    MAX_DIGITS,
    MAX_VALUES,
    Reason,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Fault = tuple[Reason, str, str]
"""Reason, JSON Pointer and message."""

_FEW = 32
_SHORT = 4096
_FEWER = 12
_SHORTER = 96
_SMALL = 1 << 64
_LEAST = -_SMALL
_BIGGEST = 10**MAX_DIGITS
_BIG = 32
"""What a number beyond 64 bits costs besides its digits, in digits."""
_BIG_DIGITS = 2 * (MAX_DIGITS + _BIG)
"""Digits of such numbers together: each is said anew, in quadratic time, by all who look at it."""
_LONGEST_POINTER = 512
_HALF = re.compile("[\ud800-\udfff]")


def out_of_bounds(
    value: Any,
    depth: int = MAX_DEPTH,
    *,
    most_bytes: int = MAX_BYTES,
    most_values: int = MAX_VALUES,
) -> Fault | None:
    """Say what no tool could take, or None. Looks at `dict`, `list` and `tuple` as containers.

    Sizes are those of the shortest JSON text, so a mapping may be as large as a text may be.
    """
    if type(value) is dict and len(value) <= _FEW and _is_small(value):
        return None
    return _Walk(depth, most_bytes, most_values).fault(value)


def _is_small(value: dict[Any, Any], short: int = _SHORT, levels: int = 2) -> bool:
    """Whether a value is far inside all bounds, as nearly every call's is."""
    for key, item in value.items():
        if type(key) is not str or not key.isascii() or len(key) > short:
            return False
        kind = type(item)
        # As `_are_small` does, in the same walk.
        if kind is str:
            if len(item) > short or not item.isascii():
                return False
        elif kind is int:
            if not _LEAST < item < _SMALL:
                return False
        elif kind is not bool and item is not None and not _is_plain(item, kind, levels):
            return False
    return True


def _are_small(items: Iterable[Any], short: int, levels: int) -> bool:
    for item in items:
        kind = type(item)
        if kind is str:
            if len(item) > short or not item.isascii():
                return False
        elif kind is int:
            if not _LEAST < item < _SMALL:
                return False
        elif kind is not bool and item is not None and not _is_plain(item, kind, levels):
            return False
    return True


def _is_plain(item: Any, kind: type, levels: int) -> bool:
    if kind is float:
        return isfinite(item)
    # Few and short, so that even the largest such value is below `MAX_BYTES`.
    if not levels or kind not in (dict, list) or len(item) > _FEWER:
        return False
    inside = _is_small if kind is dict else _are_small
    return inside(item, _SHORTER, levels - 1)


class _Walk:
    """Goes through a value depth first without recursion; knows the way to where it is."""

    def __init__(self, depth: int, most_bytes: int, most_values: int) -> None:
        self._depth = depth
        self._most_bytes = most_bytes
        self._most_values = most_values
        self._size = 0
        self._values_left = most_values
        self._digits_left = _BIG_DIGITS
        self._keys: list[Any] = []
        self._open: list[Iterator[tuple[Any, Any]]] = []

    def fault(self, value: Any) -> Fault | None:
        found = self._enter(value)
        while found is None and self._open:
            member = next(self._open[-1], None)
            if member is None:
                self._open.pop()
                self._keys.pop()
            else:
                self._keys[-1] = member[0]
                found = self._key(member[0]) or self._enter(member[1])
        return found

    def _enter(self, item: Any) -> Fault | None:
        self._size += 2
        if self._size > self._most_bytes:
            return self._too_large()
        if isinstance(item, (dict, list, tuple)):
            return self._container(item)
        return self._scalar(item)

    def _scalar(self, item: Any) -> Fault | None:
        if item is None or type(item) is bool:
            return None
        if type(item) is str:
            return self._text(item)
        if isinstance(item, int):
            return self._integer(item)
        if isinstance(item, float):
            return self._float(item)
        return self._invalid(f"a value of type {type(item).__name__} is not JSON")

    def _container(self, item: dict[Any, Any] | list[Any] | tuple[Any, ...]) -> Fault | None:
        if len(self._open) >= self._depth:
            return (
                "too_deep",
                self._pointer(1),
                f"nested deeper than {self._depth} levels; send a flatter structure",
            )
        self._values_left -= len(item)
        if self._values_left < 0:
            said = f"more than {self._most_values:,} values; send less, or in several calls,"
            return ("too_large", self._pointer(1), f"{said} or large data as one text")
        self._open.append(iter(item.items() if isinstance(item, dict) else enumerate(item)))
        self._keys.append(None)
        return None

    def _key(self, key: Any) -> Fault | None:
        if isinstance(self._open[-1], enumerate):
            return None
        if type(key) is str and (key.isascii() or not _HALF.search(key)):
            return self._text(key)
        self._keys.pop()  # a pointer could not say it
        if isinstance(key, str):
            return self._invalid("a key holds half of a character (a lone surrogate)")
        return self._invalid(f"a key of type {type(key).__name__} is not JSON; keys are texts")

    def _text(self, text: str) -> Fault | None:
        if text.isascii():
            self._size += len(text)
        else:
            try:
                self._size += len(text.encode())
            except UnicodeEncodeError:
                return self._invalid(
                    "half of a character (a lone surrogate) cannot be sent; send the whole one"
                )
        return self._too_large() if self._size > self._most_bytes else None

    def _integer(self, number: int) -> Fault | None:
        number = int.__pos__(number)  # of a subclass, the integer that it is
        if -_SMALL < number < _SMALL:
            self._size += number.bit_length() // 4
            return None
        if not -_BIGGEST < number < _BIGGEST:
            said = f"a number has more than {MAX_DIGITS} digits; send it as a text"
            return ("too_large", self._pointer(), said)
        self._size += number.bit_length() // 4
        self._digits_left -= _BIG + number.bit_length() * 3 // 10
        if self._digits_left < 0:
            said = f"numbers of many digits, more than {_BIG_DIGITS:,} together; send texts"
            return ("too_large", self._pointer(1), said)
        return None

    def _float(self, number: float) -> Fault | None:
        if isfinite(number):
            return None
        return self._invalid("NaN and infinite numbers are not JSON; send a finite number")

    def _too_large(self) -> Fault:
        return (
            "too_large",
            self._pointer(1),
            f"larger than {self._most_bytes} bytes as JSON; send less, or in several calls",
        )

    def _invalid(self, message: str) -> Fault:
        return ("argument_invalid", self._pointer(), message)

    def _pointer(self, parts: int | None = None) -> str:
        """Point to where the walk is, or to what encloses it if that takes too long to say."""
        pointer = ""
        for key in self._keys[:parts]:
            longer = f"{pointer}/{escaped(key)}"
            if len(longer) > _LONGEST_POINTER:
                break
            pointer = longer
        return pointer
