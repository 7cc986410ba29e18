"""The keywords that look at one value alone: each a name, a test, and what to say."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

import jsonschema_rs

from seawall.pipeline.arguments.lenient.values import (
    frozen,
    is_finite,
    is_number,
    json_text,
    kind_of,
    number_text,
    plain,
)
from seawall.pipeline.arguments.patterns.patterns import Pattern, matching

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

TYPES = {
    "string": ("string",),
    "number": ("number", "integer"),
    "integer": ("integer",),
    "boolean": ("boolean",),
    "null": ("null",),
    "array": ("array",),
    "object": ("object",),
}
"""The type names there are, and the kinds of value each takes."""

FORMATS = frozenset(
    {
        "date",
        "date-time",
        "duration",
        "email",
        "hostname",
        "idn-email",
        "idn-hostname",
        "ipv4",
        "ipv6",
        "iri",
        "iri-reference",
        "json-pointer",
        "json-pointer-uri-fragment",
        "regex",
        "relative-json-pointer",
        "time",
        "uri",
        "uri-reference",
        "uri-template",
        "url",
        "uuid",
    }
)
"""The formats that are checked; any other says nothing."""

_LISTED = 20
_OWN_FORMATS = {
    "json-pointer-uri-fragment": r"^#(/([A-Za-z0-9_\-.!$&'()*+,;:=@]|%[0-9A-Fa-f]{2}|~0|~1)*)*$",
    # As browsers take it: any scheme will do, the well-known ones need a host.
    "url": r"^(?:(?:https?|wss?|ftp):/*[^\s/?#]+(?:[/?#]|$)"
    r"|(?!(?:https?|wss?|ftp):)[A-Za-z][A-Za-z0-9+.\-]*:)",
}


class Rule(NamedTuple):
    """One keyword of one subschema."""

    keyword: str
    test: Callable[[Any], bool]
    message: str


def passes(rules: Sequence[Rule], value: Any) -> bool:
    """Whether a value meets all of these keywords."""
    for rule in rules:  # noqa: SIM110  # a generator costs more than the rules it runs
        if not rule.test(value):
            return False
    return True


def value_rules(schema: Mapping[str, Any]) -> tuple[Rule, ...]:
    """Read `enum` and `const`."""
    found = []
    members = plain(schema.get("enum"))
    if isinstance(members, list):
        found.append(Rule("enum", _member_test(members), f"expected one of {listed(members)}"))
    if "const" in schema:
        constant = plain(schema["const"])
        found.append(Rule("const", _member_test([constant]), f"expected {json_text(constant)}"))
    return tuple(found)


def listed(members: Sequence[Any]) -> str:
    """Write a list as JSON, the first 20 members of a longer one."""
    if len(members) <= _LISTED:
        return json_text(members)
    return f"{json_text(members[:_LISTED])[:-1]}, ... and {len(members) - _LISTED} more]"


def _member_test(members: Sequence[Any]) -> Callable[[Any], bool]:
    known = frozenset(frozen(member) for member in members)
    kinds = frozenset(kind_of(member) for member in members)

    def test(value: Any) -> bool:
        return kind_of(value) in kinds and frozen(value) in known

    return test


def string_rules(schema: Mapping[str, Any], pattern: Pattern | None) -> tuple[Rule, ...]:
    """Read the keywords of text, its compiled `pattern` and its `format` last."""
    found = _count_rules(schema, "minLength", "maxLength", "characters")
    if pattern is not None:
        message = f"expected to match {schema['pattern']}"
        found.append(Rule("pattern", pattern.matches, message))
    name = schema.get("format")
    if isinstance(name, str) and name in FORMATS:
        found.append(Rule("format", _format_test(name), f"expected format {name}"))
    return tuple(found)


def format_schema(name: str) -> dict[str, Any]:
    """Say a format in the words of jsonschema-rs, which lacks two of them."""
    pattern = _OWN_FORMATS.get(name)
    return {"format": name} if pattern is None else {"pattern": pattern}


def _format_test(name: str) -> Callable[[str], bool]:
    validator = jsonschema_rs.Draft202012Validator(format_schema(name), validate_formats=True)
    return matching(validator)


def size_rules(schema: Mapping[str, Any]) -> tuple[Rule, ...]:
    """Read how many members an object may have."""
    return tuple(_count_rules(schema, "minProperties", "maxProperties", "properties"))


def length_rules(schema: Mapping[str, Any]) -> tuple[Rule, ...]:
    """Read how many items an array may have, and whether they must differ."""
    found = _count_rules(schema, "minItems", "maxItems", "items")
    if schema.get("uniqueItems") is True:
        found.append(Rule("uniqueItems", _is_unique, "expected unique items"))
    return tuple(found)


def _count_rules(schema: Mapping[str, Any], least: str, most: str, unit: str) -> list[Rule]:
    found = []
    if is_number(schema.get(least)):
        found.append(_at_least(least, schema[least], unit))
    if is_number(schema.get(most)):
        found.append(_at_most(most, schema[most], unit))
    return found


def _at_least(keyword: str, bound: float, unit: str) -> Rule:
    message = f"expected at least {number_text(bound)} {unit}"
    return Rule(keyword, lambda value: len(value) >= bound, message)


def _at_most(keyword: str, bound: float, unit: str) -> Rule:
    message = f"expected at most {number_text(bound)} {unit}"
    return Rule(keyword, lambda value: len(value) <= bound, message)


def _is_unique(items: Sequence[Any]) -> bool:
    return len({frozen(item) for item in items}) == len(items)


def _is_multiple(value: float, divisor: float) -> bool:
    """Divide exactly, as decimals: 0.0075 is a multiple of 0.0001."""
    if divisor == 0 or not is_finite(value) or not is_finite(divisor):
        return False
    return (_exact(value) / _exact(divisor)).denominator == 1


def _exact(number: float) -> Fraction:
    return Fraction(number) if isinstance(number, int) else Fraction(repr(number))


_BOUNDS: tuple[tuple[str, str, Callable[[float, float], bool]], ...] = (
    ("minimum", "expected >= ", lambda value, bound: value >= bound),
    ("maximum", "expected <= ", lambda value, bound: value <= bound),
    ("exclusiveMinimum", "expected > ", lambda value, bound: value > bound),
    ("exclusiveMaximum", "expected < ", lambda value, bound: value < bound),
    ("multipleOf", "expected a multiple of ", _is_multiple),
)


def number_rules(schema: Mapping[str, Any]) -> tuple[Rule, ...]:
    """Read the bounds of numbers."""
    return tuple(
        _bounded(keyword, schema[keyword], say, test)
        for keyword, say, test in _BOUNDS
        if is_number(schema.get(keyword))
    )


def _bounded(keyword: str, bound: float, say: str, test: Callable[[float, float], bool]) -> Rule:
    return Rule(keyword, lambda value: test(value, bound), say + number_text(bound))
