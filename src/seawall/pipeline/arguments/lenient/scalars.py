"""How single values turn into other kinds: the strong rules of pass 2, the weak ones of pass 3.

Every function gives the value itself, the same object, when its rule does not apply.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

from seawall.pipeline.arguments.lenient.values import is_finite, is_number, is_same, number_text

if TYPE_CHECKING:
    from collections.abc import Callable

_BLANKS = (
    "\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000\ufeff"
)
# Possessive: what follows a digit is tried once, however many digits there are.
_DECIMAL = re.compile(r"[+-]?(?:[0-9]++\.?[0-9]*+|\.[0-9]++)(?:[eE][+-]?[0-9]++)?")
_WHOLE = re.compile(r"([+-]?)0*+([0-9]*+)")
_RADIX = re.compile(r"0[xX][0-9a-fA-F]+|0[oO][0-7]+|0[bB][01]+")
_BIGINT = re.compile(r"-?(?:0|[1-9][0-9]{0,15})n")
_MAX_SAFE = 2**53 - 1
_NOTHING = frozenset({"null", "undefined"})


def number_of_text(text: str) -> float | None:
    """Read text by JavaScript's numeric grammar; blank text is 0, what is no finite number None."""
    body = text.strip(_BLANKS)
    if not body:
        return 0
    if _RADIX.fullmatch(body):
        whole = int(body, 0)
        return whole if is_finite(whole) else None
    if not _DECIMAL.fullmatch(body):
        return None
    number = float(body)
    if not math.isfinite(number):
        return None
    exact = _WHOLE.fullmatch(body)
    if exact:
        return int(f"{exact[1]}0{exact[2]}")
    return int(number) if number.is_integer() and abs(number) <= _MAX_SAFE else number


def to_text(value: Any) -> Any:
    """Write a number, a boolean or null as text."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if is_number(value) and is_finite(value):
        return number_text(value)
    return value


def to_number(value: Any) -> Any:
    """Read numeric text, `true` and `false` in any case, `12n`, booleans and null."""
    if value is None:
        return 0
    if isinstance(value, bool):
        return int(value)
    return _number_of(value) if isinstance(value, str) else value


def _number_of(text: str) -> Any:
    number = number_of_text(text)
    if number is not None:
        return number
    if text.lower() in ("true", "false"):
        return int(text.lower() == "true")
    if _BIGINT.fullmatch(text) and abs(int(text[:-1])) <= _MAX_SAFE:
        return int(text[:-1])
    return text


def to_integer(value: Any) -> Any:
    """Read as `to_number` does, then cut off the fraction."""
    number = to_number(value)
    if not isinstance(number, float) or not math.isfinite(number):
        return number
    return value if number is value and number.is_integer() else int(number)


def to_boolean(value: Any) -> Any:
    """Read `true` and `false` in any case, 1 and 0 as number or text, and null."""
    if value is None or _is(value, 0) or value == "0":
        return False
    if _is(value, 1) or value == "1":
        return True
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    return value


def to_null(value: Any) -> Any:
    """Read `null` and `undefined` in any case, empty text, zero and false."""
    if value is False or _is(value, 0):
        return None
    if isinstance(value, str) and (value in ("", "0") or value.lower() in _NOTHING):
        return None
    return value


def weak_text(value: Any) -> Any:
    """Write numbers and booleans as text, and null as empty text."""
    if value is None:
        return ""
    if isinstance(value, float):
        return number_text(value)
    return to_text(value)


def weak_number(value: Any) -> Any:
    """Read numeric text that is not blank, booleans and null."""
    if isinstance(value, str):
        number = number_of_text(value) if value.strip(_BLANKS) else None
        return value if number is None else number
    return 0 if value is None else int(value) if isinstance(value, bool) else value


def weak_integer(value: Any) -> Any:
    """Read as `weak_number` does, but text with a fraction stays text."""
    number = weak_number(value)
    if not isinstance(value, str) or not isinstance(number, float):
        return number
    return int(number) if number.is_integer() else value


def weak_boolean(value: Any) -> Any:
    """Read exactly `true` and `false`, 1, 0 and null."""
    if value is None or value == "false" or _is(value, 0):
        return False
    return True if value == "true" or _is(value, 1) else value


def weak_null(value: Any) -> Any:
    """Read empty text, zero and false."""
    return None if value is False or value == "" or _is(value, 0) else value


def to_literal(literal: Any, value: Any) -> Any:
    """Give a literal when the value turns into exactly it by the rule of the literal's kind."""
    if is_same(literal, value):
        return value
    if isinstance(literal, bool):
        reached = to_boolean(value)
    elif isinstance(literal, str):
        reached = to_text(value)
    elif is_number(literal):
        reached = to_number(value)
    else:
        return value
    return literal if is_same(literal, reached) else value


def _is(value: Any, number: int) -> bool:
    return is_number(value) and bool(value == number)


STRONG: dict[str, Callable[[Any], Any]] = {
    "string": to_text,
    "number": to_number,
    "integer": to_integer,
    "boolean": to_boolean,
    "null": to_null,
}
"""The rule of each scalar type in pass 2."""

WEAK: dict[str, Callable[[Any], Any]] = {
    "string": weak_text,
    "number": weak_number,
    "integer": weak_integer,
    "boolean": weak_boolean,
    "null": weak_null,
}
"""The rule of each scalar type in pass 3."""
