"""Numbers with a point or an exponent, of which a float cannot keep every digit.

JSON's readers round to the nearest float, and so does this one: `3.14159265358979323846` is as good
a number as any. But digits that are counted are not lost in silence. A whole number is kept as an
integer (`9007199254740993.0`); what would only become whole by rounding is refused. Where the
schema takes a text as well as a number, as that of a `Decimal` does, the digits are kept as text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Context, Decimal
from math import inf, isfinite
from typing import Any

SURE = 16
"""Characters of a number with a point or an exponent: so few digits a float always keeps."""

_SIGNIFICANT = re.compile(r"[^eE]*[1-9]")


class LostDigits(ValueError):  # noqa: N818  # named by what happened
    """A number cannot be kept as it was written."""


def float_of(token: str) -> int | float:
    """Read a number as JSON's readers do; raises `LostDigits` for what is not the number meant."""
    value = float(token)
    if len(token) <= SURE and 0.0 != value != inf and value != -inf:
        return value
    return _closely(token, value)


def exact_of(token: str) -> int | float | str:
    """Read a number, or give its text if not every digit can be kept."""
    value = float(token)
    if not isfinite(value):
        raise LostDigits(token)
    if len(token) <= SURE and value:
        return value
    if not value:
        return token if _SIGNIFICANT.match(token) else value
    said = Decimal(token)
    if said == Decimal(repr(value)):
        return value
    return int(said) if _is_whole(said) else token


def _closely(token: str, value: float) -> int | float:
    if not isfinite(value) or (not value and _SIGNIFICANT.match(token)):
        raise LostDigits(token)
    if not value.is_integer() or not value:
        return value
    said = Decimal(token)
    if said == value or _is_print_of(said, value):
        return value
    if _is_whole(said):
        return int(said)
    raise LostDigits(token)


def _is_print_of(said: Decimal, value: float) -> bool:
    """Whether it is what somebody writes who has this float, with so many digits."""
    digits = len(said.as_tuple().digits)
    return Context(prec=digits).plus(Decimal(value)) == said


def _is_whole(said: Decimal) -> bool:
    return said == said.to_integral_value()


def takes_numbers_as_text(schema: Any) -> bool:
    """Whether somewhere in a schema a number may be said as a text, as for a `Decimal`."""
    waiting = [schema]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Mapping):
            if _takes_both(node):
                return True
            waiting += node.values()
        elif isinstance(node, (list, tuple)):
            waiting += node
    return False


def _takes_both(node: Mapping[str, Any]) -> bool:
    if "anyOf" not in node and "oneOf" not in node:
        kind = node.get("type")
        return isinstance(kind, (list, tuple)) and "number" in kind and "string" in kind
    branches = node.get("anyOf", node.get("oneOf"))
    if not isinstance(branches, (list, tuple)):
        return False
    kinds = [branch.get("type") for branch in branches if isinstance(branch, Mapping)]
    return "number" in kinds and "string" in kinds
