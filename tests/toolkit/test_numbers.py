from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seawall.contract.failure import ToolFailed
from seawall.toolkit.numbers import decimal_text, fraction_of


@pytest.mark.parametrize(
    ("number", "value"),
    [
        (0.1, Fraction(1, 10)),
        ("-12.50", Fraction(-25, 2)),
        (" +.5 ", Fraction(1, 2)),
        ("1e-3", Fraction(1, 1000)),
        (10**30, Fraction(10**30)),
        (1e300, Fraction(10**300)),
    ],
)
def test_a_number_is_read_as_it_is_written(number: float | str, value: Fraction) -> None:
    assert fraction_of(number, "x") == value


@pytest.mark.parametrize(
    "number",
    [float("inf"), float("nan"), "", "1,5", "1/2", "0x1", "1e9999", "1e1001", "9" * 1001, 10**1001],
)
def test_what_is_no_bounded_decimal_number_is_refused(number: float | str) -> None:
    with pytest.raises(ToolFailed) as refused:
        fraction_of(number, "x")

    assert refused.value.failure.fields == ("x",)


@pytest.mark.parametrize(
    ("value", "text", "exact"),
    [
        (Fraction(5), "5", True),
        (Fraction(-1, 8), "-0.125", True),
        (Fraction(1001, 1000), "1.001", True),
        (Fraction(1, 3), "0.3333333333", False),
        (Fraction(2, 3) / 10**20, "6.666666667e-21", False),
        (Fraction(10**45, 3), "3.333333333e+44", False),
        (Fraction(1, 2**70), "8.470329473e-22", False),
    ],
)
def test_a_fraction_is_written_as_decimal_text(value: Fraction, text: str, exact: bool) -> None:
    assert decimal_text(value, digits=10) == (text, exact)


@given(st.decimals(allow_nan=False, allow_infinity=False, places=6))
def test_exact_text_reads_back_as_the_same_number(number: object) -> None:
    value = Fraction(str(number))
    text, exact = decimal_text(value)

    assert exact
    assert fraction_of(text, "x") == value
