import pytest
from hypothesis import given
from hypothesis import strategies as st

from seawall.contract.failure import ToolFailed
from seawall.toolkit.base_convert import base_convert, write


@pytest.mark.parametrize(
    ("number", "source", "target", "result"),
    [
        ("255", 10, 16, "ff"),
        ("0xFF", 16, 10, "255"),
        ("-1010", 2, 10, "-10"),
        ("+0b11", 2, 10, "3"),
        ("0b1", 16, 10, "177"),
        ("zz", 36, 10, "1295"),
        ("1_000_000", 10, 36, "lfls"),
        ("000", 10, 2, "0"),
        ("-0", 10, 2, "0"),
        (" 7 ", 8, 8, "7"),
    ],
)
def test_known_conversions(number: str, source: int, target: int, result: str) -> None:
    assert base_convert(number, source, target)["number"] == result


@pytest.mark.parametrize(
    ("number", "base", "said"),
    [
        ("12", 2, "no digit of base 2"),
        ("1.5", 10, "must be whole"),
        ("", 10, "1 to 1000 digits"),
        ("-", 10, "1 to 1000 digits"),
        ("0x", 16, "1 to 1000 digits"),
        ("1" * 1001, 10, "1 to 1000 digits"),
        ("0xff", 10, "'x' is no digit"),
        ("\N{ARABIC-INDIC DIGIT ONE}", 10, "no digit of base 10"),
        ("--1", 10, "no digit of base 10"),
    ],
)
def test_what_is_no_whole_number_of_the_base_is_refused(number: str, base: int, said: str) -> None:
    with pytest.raises(ToolFailed, match=said) as refused:
        base_convert(number, base, 10)

    assert refused.value.failure.fields == ("number",)


@given(st.integers(-(10**60), 10**60), st.integers(2, 36), st.integers(2, 36))
def test_there_and_back_is_the_same_number(value: int, first: int, second: int) -> None:
    there = base_convert(write(value, first), first, second)["number"]

    assert base_convert(there, second, 10)["number"] == str(value)
    assert int(there, second) == value
