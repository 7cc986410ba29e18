"""JSON values as JavaScript sees them: kinds, equality, number text, JSON text.

The lenient mode promises the outcomes of a JavaScript library, so the places where Python
differs are settled here once: booleans are no numbers, 1.0 prints as 1, keys that look like
indexes come first. Integers stay exact where JavaScript would round them.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from seawall.contract.pointer import escaped

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

_KINDS = {
    str: "string",
    bool: "boolean",
    int: "integer",
    type(None): "null",
    dict: "object",
    list: "array",
    tuple: "array",
}
NOT_FINITE = ("NaN", "Infinity", "-Infinity")
"""The kinds of floats that are no numbers of JSON."""

_SURROGATE = re.compile("[\ud800-\udfff]")
_MAX_INDEX = 2**32 - 1
_MAX_DEPTH = 200


def kind_of(value: object) -> str:
    """Name what a value is: a whole number is `integer`, whatever its Python type."""
    found = _KINDS.get(type(value))
    return found if found is not None else _rare_kind(value)


def _rare_kind(value: object) -> str:
    if isinstance(value, float):
        if math.isfinite(value):
            return "integer" if value.is_integer() else "number"
        return number_text(value)
    for base, kind in _KINDS.items():
        if isinstance(value, base):
            return kind
    return "unknown"


def is_number(value: object) -> bool:
    """Whether this is a number of JSON; booleans are not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_finite(value: float) -> bool:
    """Whether JavaScript could hold this number; a larger integer is infinite there."""
    return value.bit_length() <= 1024 if isinstance(value, int) else math.isfinite(value)


def holds_infinity(value: Any) -> bool:
    """Whether a float somewhere inside is no finite number."""
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            waiting += item.values()
        elif isinstance(item, list | tuple):
            waiting += item
        elif isinstance(item, float) and not math.isfinite(item):
            return True
    return False


def is_same(left: object, right: object) -> bool:
    """Whether two values are one scalar: 1 is 1.0 but not true."""
    return isinstance(left, bool) == isinstance(right, bool) and left == right


def frozen(value: Any) -> Hashable:
    """Give a key that two values share exactly when they are equal as JSON."""
    if isinstance(value, dict):
        return ("object", frozenset((key, frozen(item)) for key, item in value.items()))
    if isinstance(value, list | tuple):
        return ("array", tuple([frozen(item) for item in value]))
    if value is None or isinstance(value, str | int | float):
        return (isinstance(value, bool), value)
    return ("unknown", id(value))


def plain(value: Any) -> Any:
    """Copy JSON into dicts and lists, whatever mappings and sequences it came in."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


def script_keys(members: Iterable[Any]) -> list[Any]:
    """Order keys as JavaScript lists them: indexes ascending, then the others as they came."""
    keys = list(members)
    indexes = [key for key in keys if _is_index(key)]
    if not indexes:
        return keys
    return sorted(indexes, key=int) + [key for key in keys if not _is_index(key)]


def _is_index(key: Any) -> bool:
    if not isinstance(key, str) or not (key.isascii() and key.isdigit()) or len(key) > 10:
        return False
    return str(int(key)) == key and int(key) < _MAX_INDEX


def child(path: str, key: Any) -> str:
    """Extend a JSON Pointer by one member."""
    return f"{path}/{escaped(key)}"


def number_text(value: float) -> str:
    """Print a number as JavaScript does, integers exactly."""
    if not is_finite(value):
        return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"  # noqa: PLR0124  # only NaN differs from itself
    if isinstance(value, int):
        return str(int(value))
    if value == 0:
        return "0"
    sign = "-" if value < 0 else ""
    mantissa, _, power = repr(abs(value)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    point = len(digits) - len(fraction) + int(power or 0)
    return sign + _placed(digits.rstrip("0"), point)


def _placed(digits: str, point: int) -> str:
    """Set the decimal point after `point` digits, or write an exponent when it is far away."""
    if 0 < point <= 21:
        whole, fraction = digits[:point].ljust(point, "0"), digits[point:]
        return f"{whole}.{fraction}" if fraction else whole
    if -6 < point <= 0:
        return f"0.{'0' * -point}{digits}"
    power = point - 1
    head = f"{digits[0]}.{digits[1:]}" if len(digits) > 1 else digits
    return f"{head}e{'+' if power > 0 else '-'}{abs(power)}"


def json_text(value: Any, indent: int = 0) -> str:
    """Write JSON as `JSON.stringify` does; what lies deeper than 200 levels is `"..."`."""
    parts: list[str] = []
    _write(value, " " * indent, "", parts)
    return "".join(parts)


def _write(value: Any, step: str, pad: str, parts: list[str], depth: int = 0) -> None:
    kind = kind_of(value)
    if kind in {"object", "array"}:
        if depth > _MAX_DEPTH:
            parts.append('"..."')
        elif not value:
            parts.append("{}" if kind == "object" else "[]")
        elif kind == "object":
            _write_object(value, step, pad, parts, depth)
        else:
            _write_array(value, step, pad, parts, depth)
    else:
        parts.append(_scalar_text(value, kind))


def _write_object(
    value: Mapping[Any, Any], step: str, pad: str, parts: list[str], depth: int
) -> None:
    inner = pad + step
    lead, colon = (f"\n{inner}", ": ") if step else ("", ":")
    parts.append("{")
    for position, key in enumerate(script_keys(value)):
        parts.append(f"{',' if position else ''}{lead}{_quoted(str(key))}{colon}")
        _write(value[key], step, inner, parts, depth + 1)
    parts.append(f"\n{pad}}}" if step else "}")


def _write_array(value: Iterable[Any], step: str, pad: str, parts: list[str], depth: int) -> None:
    inner = pad + step
    lead = f"\n{inner}" if step else ""
    parts.append("[")
    for position, item in enumerate(value):
        parts.append(f"{',' if position else ''}{lead}")
        _write(item, step, inner, parts, depth + 1)
    parts.append(f"\n{pad}]" if step else "]")


def _scalar_text(value: Any, kind: str) -> str:
    if kind == "string":
        return _quoted(value)
    if kind == "boolean":
        return "true" if value else "false"
    if is_number(value) and is_finite(value):
        return number_text(value)
    return "null"


def _quoted(text: str) -> str:
    quoted = json.dumps(text, ensure_ascii=False)
    return _SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", quoted)
