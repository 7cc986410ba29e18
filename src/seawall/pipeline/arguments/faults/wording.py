"""What a fault is called: what was expected, and what came instead.

Written for a model: short, and with the words of JSON Schema, which it knows. What came is told
by its kind; a value is only quoted if it is short and no secret.
"""

from __future__ import annotations

import json
import re
from itertools import islice
from typing import TYPE_CHECKING, Any

from seawall.pipeline.arguments.likeness import nearest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

_LONGEST_QUOTE = 80
_LONGEST_NAME = 60
_NAMES_AT_MOST = 20
_LONGEST_LIST = 240
_HALF = re.compile("[\ud800-\udfff]")
_EXAMPLES = {
    "date-time": "2024-01-31T09:30:00Z",
    "date": "2024-01-31",
    "time": "09:30:00Z",
    "duration": "PT1H30M",
    "email": "name@example.org",
    "uri": "https://example.org/page",
    "uuid": "123e4567-e89b-12d3-a456-426614174000",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "hostname": "example.org",
    "regex": "^[a-z]+$",
    "json-pointer": "/a/0",
}


_written = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def kind(value: Any) -> str:
    """Name the JSON type of a value; a whole number is an integer."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, str):
        return "string"
    if isinstance(value, dict):
        return "object"
    if isinstance(value, (list, tuple)):
        return "array"
    return "integer" if isinstance(value, int) or value == value // 1 else "number"


def has_kind(value: Any, name: str) -> bool:
    """Whether a value is of a type that a schema names."""
    own = kind(value)
    return own == name or (own == "integer" and name == "number")


def got(value: Any, *, secret: bool = False) -> str:
    """Say what came: the value if it may be shown, else its kind."""
    if secret:
        return f"{kind(value)} (not shown)"
    if isinstance(value, str):
        return quoted(value) if len(value) <= _LONGEST_QUOTE else _length(value)
    if isinstance(value, dict):
        return "object"
    if isinstance(value, (list, tuple)):
        return f"array of {counted(len(value), 'item')}"
    text = json.dumps(value)
    return text if len(text) <= _LONGEST_QUOTE else kind(value)


def _length(text: str) -> str:
    return f"string of {len(text):,} characters"


def quoted(value: Any) -> str:
    """Write any JSON on one line, cut to a length that a reader takes."""
    text = plain(_written(value))
    return text if len(text) <= _LONGEST_QUOTE + 2 else f"{text[:_LONGEST_QUOTE]}…"


def plain(text: str) -> str:
    """Make text printable as UTF-8: halves of characters are spelt out."""
    if text.isascii() or not _HALF.search(text):
        return text
    return text.encode("utf-8", "backslashreplace").decode()


def name(text: str) -> str:
    """Quote the name of an argument."""
    return quoted(text if len(text) <= _LONGEST_NAME else f"{text[: _LONGEST_NAME - 1]}…")


def listed(values: Sequence[Any]) -> str:
    """List values, the first of them if they are many or long."""
    shown: list[str] = []
    room = _LONGEST_LIST
    for value in values[:_NAMES_AT_MOST]:
        said = quoted(value)
        room -= len(said)
        if room < 0 and shown:
            break
        shown.append(said)
    more = len(values) - len(shown)
    return f"{', '.join(shown)} and {more} more" if more else ", ".join(shown)


def counted(count: Any, what: str) -> str:
    """Say how many there are."""
    return f"{count} {what}" if count == 1 else f"{count} {_PLURALS.get(what, f'{what}s')}"


_PLURALS = {"property": "properties"}


def types(node: dict[str, Any]) -> list[str]:
    """Give the types a schema names; none if it names none."""
    stated = node.get("type", [])
    return [stated] if isinstance(stated, str) else stated


def alternatives(names: Iterable[str]) -> str:
    """Join types as one says them."""
    return " or ".join(dict.fromkeys(names))


def expected(node: Any) -> str:
    """Say in a few words what a schema wants; empty if it does not say."""
    if not isinstance(node, dict):
        return ""
    if isinstance(node.get("enum"), list) and node["enum"]:
        return f"expected {one_of(node['enum'])}"
    if "const" in node:
        return f"expected {quoted(node['const'])}"
    return f"expected {alternatives(types(node))}" if types(node) else ""


def one_of(values: list[Any]) -> str:
    """Say the choice there is."""
    if len(values) == 1:
        return quoted(values[0])
    return f"one of [{listed(values)}]"


def negation(schema: Any) -> str:
    """Say what a schema in `not` rules out, as far as it can be said briefly."""
    if isinstance(schema, dict) and len(schema) == 1:
        names = schema.get("required")
        if names:
            together = " and ".join(name(member) for member in names)
            return f"must not have {together}{' together' if len(names) > 1 else ''}"
        if expected(schema):
            return f"must not be {expected(schema).removeprefix('expected ')}"
    return "has a form that is ruled out (not)"


def not_allowed(value: Any, choices: list[Any], came: str) -> str:
    """Say that a value is none of those listed, and which one may have been meant."""
    said = f"expected {one_of(choices)}, got {came}"
    if not isinstance(value, str):
        return said
    near = nearest(value, [choice for choice in choices if isinstance(choice, str)])
    return f"{said}; did you mean {quoted(near)}?" if near else said


def unknown(member: str, known: list[str], patterns: Iterable[str] = ()) -> str:
    """Say that a name is not declared, which ones are, and which one may have been meant."""
    near = nearest(member, known)
    hint = f"; did you mean {name(near)}?" if near else ""
    allowed = [listed(known)] if known else []
    allowed += [f"what matches {quoted(pattern)}" for pattern in islice(patterns, 3)]
    return f"unknown argument {name(member)}{hint} (allowed: {', '.join(allowed) or 'none'})"


def broken(keyword: str, node: dict[str, Any], value: Any, *, secret: bool) -> str:
    """Say which assertion of a node a value does not meet."""
    say = _SENTENCES.get(keyword)
    if say is None:
        return f"does not meet {keyword} {quoted(node.get(keyword))}"
    return say(node, None if secret else value, got(value, secret=secret))


def _bound(keyword: str, sign: str) -> Callable[[dict[str, Any], Any, str], str]:
    exclusive = f"exclusive{keyword.capitalize()}"

    def say(node: dict[str, Any], _value: Any, came: str) -> str:
        strict = node.get(exclusive) is True  # draft 4
        return f"expected {sign}{'' if strict else '='} {node[keyword]}, got {came}"

    return say


def _excluded(keyword: str, sign: str) -> Callable[[dict[str, Any], Any, str], str]:
    exclusive = f"exclusive{keyword.capitalize()}"

    def say(node: dict[str, Any], _value: Any, came: str) -> str:
        bound = node[keyword] if node[exclusive] is True else node[exclusive]
        return f"expected {sign} {bound}, got {came}"

    return say


def _size(keyword: str, relation: str, what: str) -> Callable[[dict[str, Any], Any, str], str]:
    def say(node: dict[str, Any], value: Any, _came: str) -> str:
        size = "" if value is None else f", got {len(value)}"
        return f"expected {relation} {counted(node[keyword], what)}{size}"

    return say


def _format(node: dict[str, Any], _value: Any, came: str) -> str:
    example = _EXAMPLES.get(node["format"])
    like = f" (such as {example})" if example else ""
    return f"expected format {node['format']}{like}, got {came}"


def _pattern(node: dict[str, Any], _value: Any, came: str) -> str:
    pattern = node["pattern"]
    said = pattern if len(pattern) <= 200 else f"{pattern[:199]}…"
    return f"expected to match {said}, got {came}"


_SENTENCES: dict[str, Callable[[dict[str, Any], Any, str], str]] = {
    "enum": lambda node, value, came: not_allowed(value, node["enum"], came),
    "const": lambda node, _, came: f"expected {quoted(node['const'])}, got {came}",
    "minimum": _bound("minimum", ">"),
    "maximum": _bound("maximum", "<"),
    "exclusiveMinimum": _excluded("minimum", ">"),
    "exclusiveMaximum": _excluded("maximum", "<"),
    "multipleOf": lambda node, _, came: f"expected a multiple of {node['multipleOf']}, got {came}",
    "minLength": _size("minLength", "at least", "character"),
    "maxLength": _size("maxLength", "at most", "character"),
    "minItems": _size("minItems", "at least", "item"),
    "maxItems": _size("maxItems", "at most", "item"),
    "minProperties": _size("minProperties", "at least", "property"),
    "maxProperties": _size("maxProperties", "at most", "property"),
    "uniqueItems": lambda _node, _value, _came: "expected unique items",
    "pattern": _pattern,
    "format": _format,
    "contentEncoding": lambda node, _, __: f"expected text encoded as {node['contentEncoding']}",
    "contentMediaType": lambda node, _, __: f"expected text of type {node['contentMediaType']}",
}
