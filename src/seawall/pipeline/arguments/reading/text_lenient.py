"""Read argument text as the mode `lenient` does: two repairs, and the last of equal keys wins.

Escapes that JSON does not know keep their backslash and raw control characters in texts are
taken; nothing else is mended. Depth, size and digits are bounded as everywhere.
"""

from __future__ import annotations

import json
import re
from typing import Any, NoReturn

from seawall.pipeline.arguments.reading.reader import (
    MAX_DEPTH,
    MAX_DIGITS,
    MAX_VALUES,
    TOO_MANY,
    ArgumentTextFault,
    Reader,
)
from seawall.pipeline.arguments.reading.text import (
    MAX_BRACKETS,
    brackets_of,
    check_count,
    check_size,
    goes_deeper,
)

_STRING = re.compile(r'"(?>[^"\\]|\\.)*+"?', re.DOTALL)
_SOUND = re.compile(r'(?>[^\\]++|\\(?:u[0-9a-fA-F]{4}|["\\/bfnrt]))*+')
"""Text up to a backslash that begins no escape of JSON's."""
_ESCAPES_AT_MOST = 50_000

# What JavaScript trims; Python's own set differs in U+001C to U+001F, U+0085 and U+FEFF.
_BLANK = " \t\n\v\f\r\u00a0\u1680\u2028\u2029\u202f\u205f\u3000\ufeff" + "".join(
    map(chr, range(0x2000, 0x200B))
)


def parse_lenient(text: str) -> Any:
    """Give the object that an argument text is, or raise `ArgumentTextFault`.

    Overflowing numbers become infinite and lone surrogates are kept: the check refuses them.
    """
    check_size(text)
    if not text.strip(_BLANK):
        return {}
    brackets = brackets_of(text)
    if goes_deeper(brackets[:MAX_BRACKETS]):
        raise _too_deep()
    if len(brackets) > MAX_BRACKETS:
        raise ArgumentTextFault("too_large", TOO_MANY)
    value = _decoded(text)
    check_count(text, value)
    if not isinstance(value, dict):
        raise ArgumentTextFault("arguments_not_object", "Tool arguments must be a JSON object")
    return value


def _decoded(text: str) -> Any:
    try:
        try:
            return _strict.decode(text)
        except json.JSONDecodeError:
            _check_commas(text)
            return _relaxed.decode(_escaped(text))
    except json.JSONDecodeError as error:
        raise _fault(text, error) from None
    except RecursionError:  # what called us is deep already
        raise _too_deep() from None


def _check_commas(text: str) -> None:
    """Refuse text with so many commas outside of its strings that it is not worth mending."""
    if text.count(",") > MAX_VALUES and _STRING.sub("", text).count(",") > MAX_VALUES:
        raise ArgumentTextFault("too_large", TOO_MANY)


def _escaped(text: str) -> str:
    """Double the backslashes that begin no escape, of which there may not be endlessly many."""
    parts: list[str] = []
    at = 0
    while len(parts) < _ESCAPES_AT_MOST:
        found = _SOUND.match(text, at)
        end = found.end() if found else at
        parts.append(text[at:end])
        if end == len(text):
            return "\\\\".join(parts)
        at = end + 1
    return "\\\\".join(parts) + text[at - 1 :]


def _fault(text: str, error: json.JSONDecodeError) -> ArgumentTextFault:
    """Say what is wrong in the words of the strict reader, where it sees the same fault."""
    try:
        Reader(text, repair=False).document()
    except ArgumentTextFault as fault:
        if fault.reason in {"arguments_not_json", "arguments_truncated"}:
            return fault
    return ArgumentTextFault("arguments_not_json", f"the arguments are not JSON: {error.msg}")


def _too_deep() -> ArgumentTextFault:
    return ArgumentTextFault("too_deep", f"the arguments are nested deeper than {MAX_DEPTH} levels")


def _no_constant(name: str) -> NoReturn:
    raise json.JSONDecodeError(f"{name} is no JSON value", "", 0)


def _integer(digits: str) -> int:
    try:
        if len(digits) <= MAX_DIGITS:
            return int(digits)
    except ValueError:  # a process may allow fewer digits than we do
        pass
    raise ArgumentTextFault("too_large", f"a number has more than {MAX_DIGITS} digits")


_strict = json.JSONDecoder(parse_constant=_no_constant, parse_int=_integer)
_relaxed = json.JSONDecoder(parse_constant=_no_constant, parse_int=_integer, strict=False)
