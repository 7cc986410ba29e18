from __future__ import annotations

import math
from typing import Any

import pytest

from seawall.pipeline.arguments.lenient import scalars
from seawall.pipeline.arguments.lenient.scalars import number_of_text, to_literal


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("", 0),
        ("  ", 0),
        ("5.", 5),
        (".5", 0.5),
        ("+12", 12),
        ("-0", 0),
        ("00012", 12),
        ("1e3", 1000),
        ("0X1f", 31),
        ("0b11", 3),
        ("0o17", 15),
        ("\ufeff\u00a05\u2029", 5),
        ("1e400", None),
        ("0x" + "f" * 300, None),
        ("9" * 400, None),
        ("0" * 5000 + "7", 7),
        ("1_000", None),
        ("-0x10", None),
        ("\u0661", None),
        ("\u001c5", None),
        ("\u00855", None),
        ("Infinity", None),
        ("e1", None),
        (".", None),
    ],
    ids=lambda value: repr(value)[:20],
)
def test_text_is_read_by_javascripts_numeric_grammar(text: str, number: float | None) -> None:
    assert number_of_text(text) == number


@pytest.mark.parametrize(
    ("text", "kind"),
    [("12", int), ("12.0", int), ("1e3", int), ("1.5", float), ("1e300", float), ("9" * 30, int)],
)
def test_whole_numbers_in_text_become_integers(text: str, kind: type) -> None:
    assert type(number_of_text(text)) is kind


def test_integers_in_text_keep_all_their_digits() -> None:
    assert number_of_text("9007199254740993") == 9007199254740993


@pytest.mark.parametrize(
    ("rule", "value", "result"),
    [
        ("string", 1.0, "1"),
        ("string", None, "null"),
        ("string", True, "true"),
        ("number", " true ", " true "),
        ("number", "TRUE", 1),
        ("number", "9007199254740993n", "9007199254740993n"),
        ("number", "12n", 12),
        ("number", "012n", "012n"),
        ("integer", "1e21", 10**21),
        ("integer", -3.9, -3),
        ("integer", "-0.5", 0),
        ("boolean", 1.0, True),
        ("boolean", "0", False),
        ("boolean", "False", False),
        ("boolean", 2, 2),
        ("null", "Undefined", None),
        ("null", " ", " "),
        ("null", 0.0, None),
        ("null", "none", "none"),
    ],
)
def test_the_strong_rules_turn_one_kind_into_another(rule: str, value: Any, result: Any) -> None:
    found = scalars.STRONG[rule](value)

    assert found == result
    assert type(found) is type(result)


@pytest.mark.parametrize(
    ("rule", "value", "result"),
    [
        ("string", None, ""),
        ("string", math.inf, "Infinity"),
        ("number", "3.5", 3.5),
        ("number", " ", " "),
        ("number", "true", "true"),
        ("number", None, 0),
        ("integer", "3.5", "3.5"),
        ("integer", "1e21", 10**21),
        ("integer", 3.5, 3.5),
        ("integer", True, 1),
        ("boolean", "TRUE", "TRUE"),
        ("boolean", "true", True),
        ("boolean", "1", "1"),
        ("boolean", 0, False),
        ("null", "null", "null"),
        ("null", "", None),
        ("null", False, None),
    ],
)
def test_the_weak_rules_take_less(rule: str, value: Any, result: Any) -> None:
    found = scalars.WEAK[rule](value)

    assert found == result
    assert type(found) is type(result)


@pytest.mark.parametrize("rule", [*scalars.STRONG.values(), *scalars.WEAK.values()])
@pytest.mark.parametrize("value", [[], {}, math.nan, -(10**400), b"x", "zzz"])
def test_what_no_rule_takes_comes_back_as_the_same_object(rule: Any, value: Any) -> None:
    if rule in {scalars.weak_text, scalars.to_text} and isinstance(value, float | str):
        value = "text"

    assert rule(value) is value


def test_an_integer_that_is_no_integer_of_text_is_kept_as_it_is() -> None:
    value = 3.0

    assert scalars.to_integer(value) is value


@pytest.mark.parametrize(
    ("literal", "value", "result"),
    [
        (1, True, 1),
        (1, "1.0", 1),
        (3, "3.5", "3.5"),
        (True, "TRUE", True),
        ("5", 5, "5"),
        ("a", "A", "A"),
        (None, "null", "null"),
        (None, "", ""),
        ({"a": 1}, {"a": 1}, {"a": 1}),
        (0, None, 0),
    ],
)
def test_a_literal_is_reached_only_exactly(literal: Any, value: Any, result: Any) -> None:
    found = to_literal(literal, value)

    assert found == result
    assert type(found) is type(result)
