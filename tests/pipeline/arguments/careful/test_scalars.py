from __future__ import annotations

import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seawall.pipeline.arguments.careful.scalars import NOTHING, listed, scalar

DIGITS = "9" * 4096
NO_NUMBERS = [
    *("", " ", "x", "NaN", "Infinity", "1_000", "1,000", "1 000", "0x10", "٣", "\uff11"),
    *("5%", "5 km", "- 5", "--5", "1/2", "½", "²", "true", "null", "+"),
]


@pytest.mark.parametrize(
    ("value", "wanted", "said"),
    [
        ("50", "integer", 50),
        (" -7\n", "integer", -7),
        ("+7", "integer", 7),
        ("007", "integer", 7),
        ("-0", "integer", 0),
        ("1234567890123456789012", "integer", 1234567890123456789012),
        (DIGITS, "integer", int(DIGITS)),
        ("50", "number", 50),
        ("12345678901234567890", "number", 12345678901234567890),
        ("0.1", "number", 0.1),
        ("-1.5e-3", "number", -0.0015),
        (" .5 ", "number", 0.5),
        ("5.", "number", 5.0),
        ("0e-999", "number", 0.0),
        ("TRUE", "boolean", True),
        (" false ", "boolean", False),
        ("null", "null", None),
        (4821, "string", "4821"),
        (-5, "string", "-5"),
        (10**4000, "string", "1" + "0" * 4000),
    ],
)
def test_what_has_one_reading_is_said_in_the_wanted_type(
    value: Any, wanted: str, said: Any
) -> None:
    found = scalar(value, wanted)

    assert found == said
    assert type(found) is type(said)


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        *((text, wanted) for text in NO_NUMBERS for wanted in ("integer", "number")),
        ("3.0", "integer"),
        ("1e3", "integer"),
        ("3.5", "integer"),
        (DIGITS + "9", "integer"),
        (DIGITS + "9", "number"),
        ("1e400", "number"),
        ("-1e400", "number"),
        ("1e-400", "number"),
        (".", "number"),
        ("1e", "number"),
        ("1.2.3", "number"),
        *((text, "boolean") for text in ("", "yes", "no", "on", "1", "0", "t", "maybe", "null")),
        (0, "boolean"),
        (1, "boolean"),
        (1.0, "boolean"),
        (None, "boolean"),
        ([], "boolean"),
        *((text, "null") for text in ("", "NULL", "None", " null ", "undefined")),
        (True, "string"),
        (1.5, "string"),
        (3.0, "string"),
        (None, "string"),
        ({}, "string"),
        (["x"], "string"),
        (True, "integer"),
        (True, "number"),
        (3.5, "integer"),
        (None, "integer"),
        ("{}", "object"),
        ("x", "unheard of"),
    ],
)
def test_what_would_be_a_guess_is_not_said(value: Any, wanted: str) -> None:
    assert scalar(value, wanted) is NOTHING


def test_a_process_that_allows_fewer_digits_converts_fewer() -> None:
    allowed = sys.get_int_max_str_digits()
    big = 10**1000
    sys.set_int_max_str_digits(640)
    try:
        assert scalar("9" * 1000, "integer") is NOTHING
        assert scalar("9" * 1000, "number") is NOTHING
        assert scalar(big, "string") is NOTHING
    finally:
        sys.set_int_max_str_digits(allowed)


@pytest.mark.parametrize(
    ("value", "choices", "meant"),
    [
        ("MARKDOWN", ["markdown", "json"], "markdown"),
        (" json ", ["markdown", "json"], "json"),
        ("B", ["a", "A", "b"], "b"),
        (" a", ["a", "A"], "a"),
        ("in  progress", ["In Progress", "Done"], "In Progress"),
        ("InProgress", ["In Progress", "Done"], "In Progress"),
        ("2", [1, 2], 2),
        ("2.5", [1, 2.5], 2.5),
        ("True", [True, "x"], True),
        ("null", ["a", None], None),
        (2, ["1", "2"], "2"),
    ],
)
def test_a_unique_match_gives_the_listed_value(value: Any, choices: list[Any], meant: Any) -> None:
    found = listed(value, choices)

    assert found == meant
    assert type(found) is type(meant)


@pytest.mark.parametrize(
    ("value", "choices"),
    [
        ("B", ["a", "b", "b "]),
        ("x", ["a", "b"]),
        ("mark", ["markdown"]),
        ("", ["a", None]),
        ("1", [1, "1 "]),
        ("1", [True, False]),
        (True, ["true", "True"]),
        (1, [True]),
        (1.0, ["1.0", "1"]),
        (None, ["null", "None"]),
        (["a"], ["a"]),
    ],
)
def test_no_match_or_two_are_no_match(value: Any, choices: list[Any]) -> None:
    assert listed(value, choices) is NOTHING


@given(st.integers())
def test_integers_go_to_text_and_back_exactly(number: int) -> None:
    assert scalar(scalar(number, "string"), "integer") == number


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_come_back_exactly_from_their_text(number: float) -> None:
    assert scalar(repr(number), "number") == number


@given(st.text(max_size=12))
def test_any_text_is_converted_exactly_or_not_at_all(text: str) -> None:
    found = scalar(text, "integer")

    assert found is NOTHING or (text.strip().isascii() and found == int(text.strip()))
