"""Turn the argument text of a call into a value.

Strict JSON first, by a fast reader. Only when that fails does the tolerant one look at
the text, which takes nothing that could be meant in two ways.
"""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec

from seawall.pipeline.arguments.reading.floats import exact_of, float_of
from seawall.pipeline.arguments.reading.reader import (
    MAX_BYTES,
    MAX_DEPTH,
    MAX_DIGITS,
    MAX_VALUES,
    TOO_MANY,
    ArgumentTextFault,
    Reader,
    shown,
)

__all__ = [
    "MAX_BRACKETS",
    "MAX_BYTES",
    "MAX_DEPTH",
    "MAX_DIGITS",
    "MAX_VALUES",
    "ArgumentTextFault",
    "brackets_of",
    "check_count",
    "check_size",
    "goes_deeper",
    "parse_arguments",
    "plain_object",
    "read",
]

FENCE = "code fence"
MARK = "byte-order mark"
AGAIN = "JSON inside a text"

MAX_BRACKETS = 2 * MAX_VALUES + 2
"""More than any text has that may be taken, opening and closing ones together."""

_AGAIN_AT_MOST = 3
_SHORT = MAX_DIGITS
"""Characters of a text in which there can be neither too many values nor too many digits."""
_BLANK = " \t\r\n"

_strict = msgspec.json.Decoder(float_hook=float_of).decode
_exact = msgspec.json.Decoder(float_hook=exact_of).decode
_written = msgspec.json.Encoder().encode
_NOT_STRICT = (msgspec.DecodeError, UnicodeEncodeError, RecursionError, OverflowError)

# Begun at the first digit of a run only: else long runs take quadratic time.
_LONG_NUMBER = re.compile(rf"(?<![0-9])[0-9]{{{MAX_DIGITS + 1}}}")
_NO_BRACKETS = re.compile(r'"(?>[^"\\]|\\.)*+"?|[^"\[\]{}]+', re.DOTALL)
_FENCE = re.compile(r"(`{3,}+|~{3,}+)[ \t]*+[\w.+-]*+[ \t]*+(?:\r?\n|(?=[\[{\"']))")


def parse_arguments(text: str, *, repair: bool, exact: bool = False) -> tuple[Any, tuple[str, ...]]:
    """Give the value of an argument text and the names of the repairs it took.

    Blank text and the JSON texts `null` and `""` are an empty object. The value may be
    any JSON value; whether it is an object is for the caller to ask. If it is to be `exact`,
    numbers that no float can keep stand as texts.
    """
    plain = exact_object(text) if exact else plain_object(text)
    if plain is not None:
        return plain, ()
    value, repaired = read(text, repair=repair, exact=exact)
    if value is None or (isinstance(value, str) and not value.strip()):
        return {}, repaired
    return value, repaired


def plain_object(text: Any) -> dict[str, Any] | None:
    """Give the object that a short text says in strict JSON, if that is certain at a glance."""
    if type(text) is not str or len(text) > _SHORT:
        return None
    if text.count("[") + text.count("{") > MAX_DEPTH:
        return None
    try:
        value = _strict(text)
        return value if type(value) is dict and not _may_lose_keys(text, value) else None
    except _NOT_STRICT:
        return None


def exact_object(text: Any) -> dict[str, Any] | None:
    """Give the same, with the text of each number of which a float cannot keep every digit."""
    plain = plain_object(text)
    if plain is None or ("." not in text and "e" not in text and "E" not in text):
        return plain
    found: dict[str, Any] = _exact(text)
    return found


def read(
    text: str, *, repair: bool, depth: int = MAX_DEPTH, exact: bool = False
) -> tuple[Any, tuple[str, ...]]:
    """Give the value of a text as it stands: blank is None, `""` stays a text."""
    if len(text) * 4 > MAX_BYTES:
        check_size(text)
    value, repaired = _read_once(text, repair=repair, depth=depth, exact=exact)
    if not repair or not isinstance(value, str):
        return value, tuple(repaired)
    for _ in range(_AGAIN_AT_MOST):
        if not isinstance(value, str) or not value.strip():
            break
        inner = _read_inside(value, depth, exact=exact)
        if inner is None:
            break
        value = inner[0]
        repaired |= {AGAIN: None} | inner[1]
    return value, tuple(repaired)


def _may_lose_keys(text: str, value: dict[str, Any]) -> bool:
    """Whether a key may have been repeated, of which `value` has the last one.

    Each member has one colon of its own. As many as keys that are left, or as in the text of what
    is left: none was lost.
    """
    colons = text.count(":")
    if colons == len(value):
        return False
    is_escaped = "\\u003a" in text or "\\u003A" in text
    return is_escaped or colons != _written(value).count(b":")


def check_size(text: str) -> None:
    """Refuse text longer than `MAX_BYTES`."""
    if len(text) <= MAX_BYTES and (
        text.isascii() or len(text.encode("utf-8", "surrogatepass")) <= MAX_BYTES
    ):
        return
    raise ArgumentTextFault(
        "too_large",
        f"the arguments are longer than {MAX_BYTES} bytes; send less, or in several calls",
    )


def check_count(text: str, value: Any) -> None:
    """Refuse a text whose value holds more than `MAX_VALUES` values."""
    if len(text) < 2 * MAX_VALUES:  # each takes a character, and one to divide it from the next
        return
    left = MAX_VALUES
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if not isinstance(item, (dict, list)):
            continue
        left -= len(item)
        if left < 0:
            raise ArgumentTextFault("too_large", TOO_MANY)
        waiting += item.values() if isinstance(item, dict) else item


def _read_inside(text: str, depth: int, *, exact: bool) -> tuple[Any, dict[str, None]] | None:
    """Decode a text that the arguments turned out to be; None if it is only a text."""
    try:
        return _read_once(text, repair=True, depth=depth, exact=exact)
    except ArgumentTextFault:
        if text.lstrip().startswith(("{", "[")):
            raise
        return None


def _read_once(text: str, *, repair: bool, depth: int, exact: bool) -> tuple[Any, dict[str, None]]:
    if not text.strip():
        return None, {}
    if not _risky(text, depth):
        try:
            value = (_exact if exact else _strict)(text)
            check_count(text, value)
            _check_keys(text, value)
        except _NOT_STRICT:
            pass
        else:
            return value, {}
    return _read_slowly(text, repair=repair, depth=depth, exact=exact)


def _risky(text: str, depth: int) -> bool:
    """Whether the fast reader might exhaust the stack, or take too long to build it all."""
    brackets = brackets_of(text, depth)
    if goes_deeper(brackets[:MAX_BRACKETS], depth):
        return True
    if len(brackets) > MAX_BRACKETS:
        if "'" in text:  # some of them may be in texts
            return True
        raise ArgumentTextFault("too_large", TOO_MANY)
    return bool(len(text) > MAX_DIGITS and _LONG_NUMBER.search(text))


def brackets_of(text: str, depth: int = MAX_DEPTH) -> str:
    """Give the brackets of JSON text that are not in strings; none if they are few."""
    if text.count("{") + text.count("[") <= depth:
        return ""
    return _NO_BRACKETS.sub("", text)


def goes_deeper(brackets: str, depth: int = MAX_DEPTH) -> bool:
    """Whether more brackets are open at once than `depth`."""
    level = 0
    for bracket in brackets:
        level += 1 if bracket in "{[" else -1
        if level > depth:
            return True
    return False


def _check_keys(text: str, value: Any) -> None:
    """Refuse repeated keys, of which the fast reader keeps the last in silence."""
    if isinstance(value, dict) and text.count(":") == len(value):
        return
    if isinstance(value, (dict, list)):
        _pairs_reader(text)


def _distinct(pairs: list[tuple[str, Any]]) -> None:
    if len(pairs) < 2:
        return
    seen = set()
    for key, _ in pairs:
        if key in seen:
            raise ArgumentTextFault(
                "argument_invalid",
                f"the key {shown(key)} appears twice in one object; send each key once",
            )
        seen.add(key)


def _number_unread(_: str) -> None:
    """Only keys matter on this reading."""


_pairs_reader = json.JSONDecoder(
    object_pairs_hook=_distinct, parse_int=_number_unread, parse_float=_number_unread
).decode


def _read_slowly(
    text: str, *, repair: bool, depth: int, exact: bool
) -> tuple[Any, dict[str, None]]:
    wrapping: dict[str, None] = {}
    if repair:
        text, wrapping = _unwrapped(text)
    reader = Reader(text, repair=repair, depth=depth, floats=exact_of if exact else float_of)
    value = reader.document()
    return value, wrapping | reader.repaired


def _unwrapped(text: str) -> tuple[str, dict[str, None]]:
    """Take off a byte-order mark and one code fence around the whole."""
    wrapping: dict[str, None] = {}
    inner = text.strip(_BLANK)
    if inner.startswith("\ufeff"):
        text = inner = inner[1:].strip(_BLANK)
        wrapping[MARK] = None
    fence = _FENCE.match(inner)
    if fence is None:
        return text, wrapping
    end = fence.group(1)
    if not inner.endswith(end) or len(inner) < fence.end() + len(end):
        raise ArgumentTextFault(
            "arguments_truncated",
            "the argument text is incomplete: its code fence is not closed;"
            " send the object alone, all of it",
        )
    wrapping[FENCE] = None
    return inner[fence.end() : -len(end)], wrapping
