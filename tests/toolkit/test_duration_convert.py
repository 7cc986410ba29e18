from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seawall.contract.failure import ToolFailed
from seawall.toolkit.duration_convert import MAX_SECONDS, duration_convert, iso, read


@pytest.mark.parametrize(
    ("duration", "seconds"),
    [
        (90, 90),
        (0.1, Fraction(1, 10)),
        ("90", 90),
        ("-1.5e3", -1500),
        ("1h30m", 5400),
        ("1h 30m", 5400),
        ("2 days, 3 hours and 4 minutes", 183_840),
        ("1.5h", 5400),
        ("1,5 h", 5400),
        ("90 min", 5400),
        ("250ms", Fraction(1, 4)),
        ("3 \N{GREEK SMALL LETTER MU}s", Fraction(3, 10**6)),
        ("5 Minutes", 300),
        ("1H", 3600),
        ("-2w", -1_209_600),
        ("1:30", 5400),
        ("1:30:15.5", Fraction(54155, 10) - 0),
        ("PT1H30M", 5400),
        ("pt0.5s", Fraction(1, 2)),
        ("P1W", 604_800),
        ("P1DT12H", 129_600),
        ("-P1D", -86_400),
        ("PT36H", 129_600),
    ],
)
def test_durations_are_read_in_many_ways(duration: float | str, seconds: int | Fraction) -> None:
    assert read(duration, "duration") == seconds


def test_a_duration_is_told_in_all_ways() -> None:
    assert duration_convert("P1DT1H30M0.5S") == {
        "seconds": "91800.5",
        "iso": "P1DT1H30M0.5S",
        "text": "1d1h30m0.5s",
        "clock": "25:30:00.5",
        "milliseconds": "91800500",
        "minutes": "1530.00833333333",
        "hours": "25.5001388888889",
        "days": "1.0625057870370" + "4",
    }


@pytest.mark.parametrize(
    ("duration", "written"),
    [
        (0, ("PT0S", "0s", "0:00:00")),
        (-90, ("-PT1M30S", "-1m30s", "-0:01:30")),
        (86_400, ("P1D", "1d", "24:00:00")),
    ],
)
def test_corners_are_written_well(duration: int, written: tuple[str, str, str]) -> None:
    told = duration_convert(duration)

    assert (told["iso"], told["text"], told["clock"]) == written


@pytest.mark.parametrize(
    ("duration", "said"),
    [
        ("", "1 to 100 characters"),
        ("x" * 200, "1 to 100 characters"),
        ("P", "no duration"),
        ("PT", "no duration"),
        ("P1DT", "no duration"),
        ("P1Y", "years or months"),
        ("P1M", "years or months"),
        ("1M", "no duration"),
        ("5 parsecs", "no duration"),
        ("1h30", "no duration"),
        ("1:75", "no duration"),
        ("soon", "no duration"),
        ("-", "no duration"),
        ("1e999", "longer than"),
        ("1e2000", "exponent"),
        (MAX_SECONDS + 1, "longer than"),
        (float("inf"), "finite"),
    ],
)
def test_what_is_no_duration_is_refused(duration: float | str, said: str) -> None:
    with pytest.raises(ToolFailed, match=said) as refused:
        duration_convert(duration)

    assert refused.value.failure.fields == ("duration",)


@given(st.integers(-(10**12), 10**12).map(lambda thousandths: Fraction(thousandths, 1000)))
def test_what_is_written_reads_back_as_the_same_duration(seconds: Fraction) -> None:
    told = duration_convert(str(float(seconds)) if seconds.denominator > 1 else int(seconds))

    for form in ("seconds", "iso", "text", "clock"):
        assert read(told[form], "duration") == seconds
    assert iso(seconds) == told["iso"]
