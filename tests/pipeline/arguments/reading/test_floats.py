"""No digit that counts is lost when a number is read."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seawall import Pipeline, Tool, tool
from seawall.pipeline.arguments.reading.floats import (
    LostDigits,
    exact_of,
    float_of,
    takes_numbers_as_text,
)

LOST: Any = LostDigits


@pytest.mark.parametrize(
    ("token", "read", "exact"),
    [
        ("0.1", 0.1, 0.1),
        ("0.0", 0.0, 0.0),
        ("-0.0", -0.0, -0.0),
        ("0.00000000000000000", 0.0, 0.0),
        ("5.0", 5.0, 5.0),
        ("1e5", 1e5, 1e5),
        ("0.30000000000000004", 0.30000000000000004, 0.30000000000000004),
        # As another language writes the float 0.1.
        ("0.10000000000000001", 0.1, "0.10000000000000001"),
        ("3.14159265358979323846", 3.141592653589793, "3.14159265358979323846"),
        ("1234567890123.4567891", 1234567890123.4568, "1234567890123.4567891"),
        # Whole, and beyond what floats count.
        ("9007199254740992.0", 9007199254740992.0, 9007199254740992.0),
        ("9007199254740993.0", 9007199254740993, 9007199254740993),
        ("-9007199254740993.0", -9007199254740993, -9007199254740993),
        ("123456789012345678901.0", 123456789012345678901, 123456789012345678901),
        ("9007199254740993e0", 9007199254740993, 9007199254740993),
        ("1e22", 1e22, 1e22),
        ("1e23", 1e23, 1e23),
        ("1e300", 1e300, 1e300),
        ("1.2345678901234568e+25", 1.2345678901234568e25, 1.2345678901234568e25),
        # Whole by rounding alone.
        ("5.999999999999999999999", LOST, "5.999999999999999999999"),
        ("1.0000000000000001", LOST, "1.0000000000000001"),
        ("12345678901234567.89", LOST, "12345678901234567.89"),
        ("99999999999999999999.99", LOST, "99999999999999999999.99"),
        ("1e-400", LOST, "1e-400"),
        ("1e400", LOST, LOST),
        ("-1e99999999999999999999", LOST, LOST),
        ("1e-99999999999999999999", LOST, "1e-99999999999999999999"),
    ],
)
def test_digits_are_kept_or_missed_aloud(token: str, read: Any, exact: Any) -> None:
    for reader, wanted in ((float_of, read), (exact_of, exact)):
        if wanted is LOST:
            with pytest.raises(LostDigits):
                reader(token)
        else:
            found = reader(token)
            assert (type(found), repr(found)) == (type(wanted), repr(wanted))


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_what_json_writes_of_a_float_is_read_as_that_float(value: float) -> None:
    token = json.dumps(value)

    assert repr(float_of(token)) == repr(exact_of(token)) == repr(value)


@given(st.floats(allow_nan=False, allow_infinity=False), st.integers(16, 40))
def test_what_is_printed_of_a_float_with_more_digits_is_that_float(
    value: float, digits: int
) -> None:
    token = f"{value:.{digits}e}"

    assert float_of(token) == value


@given(
    st.decimals(allow_nan=False, allow_infinity=False, places=4, min_value=-(10**30)).filter(
        lambda value: abs(value) < 10**30
    )
)
def test_what_is_read_exactly_is_what_was_written(value: Decimal) -> None:
    token = f"{value:f}"
    found = exact_of(token)

    assert Decimal(found if isinstance(found, str) else repr(found)) == value


@pytest.mark.parametrize(
    ("schema", "found"),
    [
        ({"anyOf": [{"type": "number", "exclusiveMinimum": 0}, {"type": "string"}]}, True),
        ({"properties": {"a": {"items": {"type": ["string", "number", "null"]}}}}, True),
        ({"oneOf": [{"type": "string"}, {"type": "number"}]}, True),
        ({"anyOf": [{"type": "integer"}, {"type": "string"}]}, False),
        ({"type": "number"}, False),
        ({"anyOf": [True, {"type": "number"}]}, False),
        ({"anyOf": "number string"}, False),
        (True, False),
    ],
)
def test_it_is_seen_where_a_number_may_be_a_text(schema: Any, found: bool) -> None:
    assert takes_numbers_as_text(schema) is found


@tool
async def exactly(amount: Decimal, rate: float = 0.0) -> str:
    """Give a decimal."""
    return f"{amount} {rate!r}"


@tool
async def whole(amount: int) -> str:
    """Give an integer."""
    return f"{amount}"


@tool
async def roughly(amount: float) -> str:
    """Give a float."""
    return f"{amount!r}"


@pytest.mark.parametrize(
    ("called", "amount", "said"),
    [
        (exactly, "12345678901234567.89", "12345678901234567.89 0.0"),
        (exactly, "0.10000000000000001", "0.10000000000000001 0.0"),
        (exactly, "0.1", "0.1 0.0"),
        (exactly, "5.999999999999999999999", "5.999999999999999999999 0.0"),
        (whole, "9007199254740993.0", "9007199254740993"),
        (whole, "6.0", "6"),
        (whole, "5.999999999999999999999", "more digits than can be kept"),
        (whole, '"5.999999999999999999999"', "expected integer"),
        (roughly, "3.14159265358979323846", "3.141592653589793"),
        (roughly, '"3.14159265358979323846"', "3.141592653589793"),
        (roughly, "5.999999999999999999999", "more digits than can be kept"),
        (roughly, '"5.999999999999999999999"', "expected number"),
        (roughly, "1e400", "too large"),
    ],
)
@pytest.mark.parametrize(
    "around", ['{{"amount": {}}}', '{{"amount": {},}}', '```\n{{"amount":{}}}\n```']
)
async def test_a_tool_gets_the_number_that_was_said(
    called: Tool, amount: str, said: str, around: str
) -> None:
    pipeline = Pipeline([called])

    for _ in range(2):  # the first prepares what goes quickly after it
        result = await pipeline.call(called.name, around.format(amount))

        assert said in result.text


async def test_what_a_decimals_tool_takes_as_a_float_is_rounded_as_ever() -> None:
    result = await Pipeline([exactly]).call(
        "exactly", '{"amount": 1, "rate": 3.14159265358979323846}'
    )

    assert result.text == "1 3.141592653589793"
