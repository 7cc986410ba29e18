from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seawall.contract.failure import ToolFailed
from seawall.toolkit.unit_convert import convert, names, unit, unit_convert

DIMENSIONS = (
    "length",
    "mass",
    "temperature",
    "area",
    "volume",
    "speed",
    "time",
    "data",
    "energy",
    "power",
    "force",
    "pressure",
    "frequency",
    "angle",
)


@pytest.mark.parametrize(
    ("value", "source", "target", "result", "exact"),
    [
        (1, "mi", "km", "1.609344", True),
        (0.1, "m", "cm", "10", True),
        ("100", "degC", "degF", "212", True),
        (-40, "F", "C", "-40", True),
        (0, "K", "celsius", "-273.15", True),
        (1, "lb", "oz", "16", True),
        (1, "kg", "lb", "2.2046226218487758072", False),
        (1, "acre", "ft2", "43560", True),
        (1, "gal", "floz", "128", True),
        (1, "m3", "L", "1000", True),
        (90, "km/h", "m/s", "25", True),
        (1, "kn", "km/h", "1.852", True),
        (1.5, "h", "min", "90", True),
        (1, "MiB", "KiB", "1024", True),
        (1, "GB", "Gbit", "8", True),
        (1, "kWh", "MJ", "3.6", True),
        (1, "atm", "hPa", "1013.25", True),
        (760, "torr", "atm", "1", True),
        (1, "psi", "Pa", "6894.7572931683613367", False),
        (180, "deg", "rad", "3.1415926535897932385", False),
        (1, "turn", "deg", "360", True),
        (60, "rpm", "Hz", "1", True),
        (1, "Kilometers", "METERS", "1000", True),
        (1, "\N{GREEK SMALL LETTER MU}m", "nm", "1000", True),
    ],
)
def test_known_conversions(
    value: float | str, source: str, target: str, result: str, exact: bool
) -> None:
    told = unit_convert(value, source, target)

    assert (told["value"], told["exact"]) == (result, exact)


def test_a_result_is_not_called_exact_if_a_unit_is_not() -> None:
    assert unit_convert(1, "rad", "rad")["exact"] is False


@pytest.mark.parametrize(
    ("value", "source", "target", "field"),
    [
        (1, "mi", "kg", "to_unit"),
        (1, "furlongs", "m", "from_unit"),
        (1, "m", "qqq", "to_unit"),
        (1, "mw", "W", "from_unit"),
        (-300, "degC", "K", "value"),
        ("one", "m", "km", "value"),
        (float("nan"), "m", "km", "value"),
    ],
)
def test_a_refusal_names_the_argument(
    value: float | str, source: str, target: str, field: str
) -> None:
    with pytest.raises(ToolFailed) as refused:
        unit_convert(value, source, target)

    assert refused.value.failure.fields == (field,)


def test_a_unit_of_another_dimension_is_refused_with_those_that_fit() -> None:
    with pytest.raises(ToolFailed, match="units of length: m, km, cm"):
        unit_convert(1, "mi", "kg")


@given(st.data(), st.sampled_from(DIMENSIONS), st.fractions(max_denominator=10**6))
def test_there_and_back_is_where_one_began(
    data: st.DataObject, dimension: str, amount: Fraction
) -> None:
    source, target = (
        unit(data.draw(st.sampled_from(names(dimension))), "from_unit") for _ in range(2)
    )

    assert convert(convert(amount, source, target), target, source) == amount
