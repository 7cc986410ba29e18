"""Our regular expressions match the same on every CPython that is supported.

Before 3.11.5, a possessive repeat of a group that takes some characters and then fails goes on
from there, as if they had been matched (python/cpython#106052). An atomic group goes back.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from typing import TYPE_CHECKING, Any

import pytest

import seawall

if TYPE_CHECKING:
    from collections.abc import Iterator

parser: Any = re._parser  # type: ignore[attr-defined]  # it has no types
SINGLE = {"LITERAL", "NOT_LITERAL", "ANY", "IN", "CATEGORY"}


def parts(parsed: Any) -> Iterator[tuple[str, Any]]:
    """All parts of an expression, and of its groups, however deep, with what they are given."""
    for kind, given in parsed:
        yield str(kind), given
        for one in given if isinstance(given, (tuple, list)) else (given,):
            for inner in one if isinstance(one, list) else (one,):
                if isinstance(inner, parser.SubPattern):
                    yield from parts(inner)


def risky(pattern: str, flags: int = 0) -> bool:
    """Whether an expression repeats so what is neither one character nor an atomic group."""
    for kind, given in parts(parser.parse(pattern, flags)):
        if kind == "POSSESSIVE_REPEAT":
            (body, *more) = given[2]
            if more or str(body[0]) not in SINGLE | {"ATOMIC_GROUP"}:
                return True
    return False


def ours() -> dict[str, re.Pattern[Any]]:
    found: dict[str, re.Pattern[Any]] = {}
    for module in pkgutil.walk_packages(seawall.__path__, "seawall."):
        if module.name.endswith("__main__"):
            continue
        for name, value in vars(importlib.import_module(module.name)).items():
            values = value.items() if isinstance(value, dict) else [("", value)]
            found |= {
                f"{module.name}.{name}[{key}]": one
                for key, one in values
                if isinstance(one, re.Pattern)
            }
    return found


def test_no_possessive_repeat_is_of_a_group_that_can_fail_on_the_way() -> None:
    patterns = ours()
    assert len(patterns) > 50
    kinds = [k for one in patterns.values() for k, _ in parts(parser.parse(one.pattern, one.flags))]
    assert kinds.count("POSSESSIVE_REPEAT") > 20

    assert [name for name, one in patterns.items() if risky(one.pattern, one.flags)] == []


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        (r"(?:ab?c)?+", True),
        (r"(?:a|(?:[^b]|b(?!c))*+)d", True),
        (r"a{2,}+", False),
        (r"(?>ab?c)*+", False),
        (r"[ab]*+\d++", False),
        (r"(?:ab?c)*", False),
    ],
)
def test_such_a_repeat_is_found_wherever_it_stands(pattern: str, expected: bool) -> None:
    assert risky(pattern) is expected
