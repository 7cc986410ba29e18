"""One value said in another JSON type: exact, or not at all.

Only what a person would read without doubt. Nothing here truncates, rounds away, guesses
a unit or asks whether a value is truthy.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from seawall.pipeline.arguments.reading.floats import LostDigits, float_of
from seawall.pipeline.arguments.reading.reader import MAX_DIGITS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence


class _Nothing:
    """The type of `NOTHING`, so that None stays a value."""

    __slots__ = ()


NOTHING = _Nothing()
"""There is no such conversion."""

_WHOLE = re.compile(r"[+-]?[0-9]+")
# Possessive: what follows a digit is tried once, however many digits there are.
_DECIMAL = re.compile(r"[+-]?(?:[0-9]++\.?[0-9]*+|\.[0-9]++)(?:[eE][+-]?[0-9]++)?")
_BLANKS = re.compile(r"\s+")


def integer(text: str) -> int | _Nothing:
    """Read a sign and ASCII digits, blanks around them allowed."""
    token = text.strip()
    if len(token) > MAX_DIGITS or not _WHOLE.fullmatch(token):
        return NOTHING
    try:
        return int(token)
    except ValueError:  # a process may allow fewer digits than we do
        return NOTHING


def number(text: str) -> int | float | _Nothing:
    """Read a plain decimal or exponent; whole numbers stay exact, what is not is refused."""
    token = text.strip()
    if len(token) > MAX_DIGITS or not _DECIMAL.fullmatch(token):
        return NOTHING
    if _WHOLE.fullmatch(token):
        return integer(token)
    try:
        return float_of(token)
    except LostDigits:  # it overflows, vanishes, or would become whole
        return NOTHING


def boolean(text: str) -> bool | _Nothing:
    """Read `true` or `false` in any letter case, blanks around it allowed."""
    return {"true": True, "false": False}.get(text.strip().lower(), NOTHING)


def null(text: str) -> _Nothing | None:
    """Read the JSON text `null`."""
    return None if text == "null" else NOTHING


def string(value: Any) -> str | _Nothing:
    """Write the digits of a whole number; nothing else has one obvious text."""
    if isinstance(value, bool) or not isinstance(value, int):
        return NOTHING
    try:
        return str(int(value))
    except ValueError:  # a process may allow fewer digits than we do
        return NOTHING


def scalar(value: Any, wanted: str) -> Any:
    """Say a text or a number in the JSON type that is wanted."""
    if wanted == "string":
        return string(value)
    read = _READ.get(wanted)
    return read(value) if read is not None and isinstance(value, str) else NOTHING


_READ: dict[str, Callable[[str], Any]] = {
    "integer": integer,
    "number": number,
    "boolean": boolean,
    "null": null,
}


def listed(value: Any, choices: Sequence[Any]) -> Any:
    """Find the one listed value that is meant.

    Closest reading first: without blanks around it, then in any letter case, then without
    any blanks. Two matches at once are no match.
    """
    if not isinstance(value, str):
        digits = string(value)
        return NOTHING if digits is NOTHING else _only(c for c in choices if c == digits)
    for form in (str.strip, _any_case, _no_blanks):
        wanted = form(value)
        found = [c for c in choices if isinstance(c, str) and form(c) == wanted]
        if form is str.strip:
            found += [c for c in choices if not isinstance(c, str) and _says(value, c)]
        if found:
            return _only(found)
    return NOTHING


def _says(text: str, choice: Any) -> bool:
    """Whether a text is the JSON text of a listed number, boolean or null."""
    if choice is None:
        return text == "null"
    if isinstance(choice, bool):
        return boolean(text) is choice
    read = number(text)
    return read is not NOTHING and read == choice


def _only(found: Iterable[Any]) -> Any:
    matches = list(found)
    return matches[0] if len(matches) == 1 else NOTHING


def _any_case(text: str) -> str:
    return text.strip().lower()


def _no_blanks(text: str) -> str:
    return _BLANKS.sub("", text).lower()
