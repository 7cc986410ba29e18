from datetime import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seawall.contract.failure import ToolFailed
from seawall.toolkit.date_time import date_time


def _told(operation: str, moment: str, **arguments: Any) -> dict[str, Any]:
    return date_time(operation, moment, **arguments)  # type: ignore[arg-type]  # a table of names


def test_a_moment_is_told_from_all_sides() -> None:
    assert _told("parse", "2024-02-29T23:30:00+01:00", zone="Europe/London") == {
        "iso": "2024-02-29T22:30:00+00:00",
        "utc": "2024-02-29T22:30:00Z",
        "epoch_s": "1709245800",
        "zone": "Europe/London",
        "abbreviation": "GMT",
        "weekday": "Thursday",
        "week": "2024-W09-4",
        "day_of_year": 60,
        "leap_year": True,
        "exists": True,
    }


@pytest.mark.parametrize(
    ("moment", "zone", "iso"),
    [
        ("2026-06-01", "Europe/Berlin", "2026-06-01T00:00:00+02:00"),
        ("2026-06-01T12:00", "America/New_York", "2026-06-01T12:00:00-04:00"),
        ("20260601T120000Z", "UTC", "2026-06-01T12:00:00+00:00"),
        ("2026-W01-1", "UTC", "2025-12-29T00:00:00+00:00"),
        (" 2026-06-01T12:00:00.5Z ", "Asia/Kolkata", "2026-06-01T17:30:00.500000+05:30"),
    ],
)
def test_a_moment_without_a_zone_is_of_the_one_named(moment: str, zone: str, iso: str) -> None:
    assert _told("parse", moment, zone=zone)["iso"] == iso


def test_a_local_time_that_the_clock_skips_is_said_not_to_exist() -> None:
    assert _told("parse", "2026-03-29T02:30", zone="Europe/Berlin")["exists"] is False
    assert _told("parse", "2026-10-25T02:30", zone="Europe/Berlin")["exists"] is True


@pytest.mark.parametrize(
    ("moment", "duration", "iso"),
    [
        ("2026-01-31", "P1M", "2026-02-28T00:00:00+01:00"),
        ("2024-02-29", "P1Y", "2025-02-28T00:00:00+01:00"),
        ("2026-03-31", "-P1M", "2026-02-28T00:00:00+01:00"),
        ("2026-01-15", "P1Y2M3W4D", "2027-04-09T00:00:00+02:00"),
        ("2026-03-28T12:00", "P1D", "2026-03-29T12:00:00+02:00"),
        ("2026-03-28T12:00", "PT24H", "2026-03-29T13:00:00+02:00"),
        ("2026-03-28T12:00", "24h", "2026-03-29T13:00:00+02:00"),
        ("2026-03-28T02:30", "P1D", "2026-03-29T03:30:00+02:00"),
        ("2026-01-01", "P1M2DT3H", "2026-02-03T03:00:00+01:00"),
        ("2026-01-01", "P0.5D", "2026-01-01T12:00:00+01:00"),
        ("2026-01-01", "-90 min", "2025-12-31T22:30:00+01:00"),
        ("2026-01-01", "PT0S", "2026-01-01T00:00:00+01:00"),
    ],
)
def test_the_calendar_moves_by_dates_and_the_clock_by_instants(
    moment: str, duration: str, iso: str
) -> None:
    assert _told("add", moment, duration=duration, zone="Europe/Berlin")["iso"] == iso


def test_a_difference_counts_instants_and_calendar_days() -> None:
    told = _told("difference", "2026-03-28T12:00", other="2026-03-29T12:00", zone="Europe/Berlin")

    assert told == {"seconds": "82800", "iso": "PT23H", "calendar_days": 1}


@pytest.mark.parametrize(
    ("style", "text"),
    [
        ("iso", "2026-01-02T03:04:05+09:00"),
        ("date", "2026-01-02"),
        ("time", "03:04:05"),
        ("week", "2026-W01-5"),
        ("ordinal", "2026-002"),
        ("rfc2822", "Fri, 02 Jan 2026 03:04:05 +0900"),
        ("long", "Friday, 2 January 2026"),
    ],
)
def test_a_moment_is_written_in_a_style(style: str, text: str) -> None:
    told = _told("format", "2026-01-02T03:04:05", zone="Asia/Tokyo", style=style)

    assert told == {"text": text}


@pytest.mark.parametrize(
    ("operation", "moment", "arguments", "field"),
    [
        ("parse", "tomorrow", {}, "moment"),
        ("parse", "2026-02-30", {}, "moment"),
        ("parse", "", {}, "moment"),
        ("parse", "0001-01-01T00:00:00+14:00", {}, "moment"),
        ("parse", "9999-12-31T23:00:00-10:00", {}, "moment"),
        ("parse", "2026-01-01", {"zone": "Nowhere"}, "zone"),
        ("difference", "2026-01-01", {}, "other"),
        ("difference", "2026-01-01", {"other": "x"}, "other"),
        ("add", "2026-01-01", {}, "duration"),
        ("add", "2026-01-01", {"duration": "P"}, "duration"),
        ("add", "2026-01-01", {"duration": "P1X"}, "duration"),
        ("add", "2026-01-01", {"duration": "P9000Y"}, "duration"),
        ("add", "2026-01-01", {"duration": "P9999999D"}, "duration"),
        ("add", "2026-01-01", {"duration": "PT999999999999S"}, "duration"),
        ("add", "2026-01-01", {"duration": "-P3000Y"}, "duration"),
    ],
)
def test_a_refusal_names_the_argument(
    operation: str, moment: str, arguments: dict[str, Any], field: str
) -> None:
    with pytest.raises(ToolFailed) as refused:
        _told(operation, moment, **arguments)

    assert refused.value.failure.fields == (field,)


_moments = st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1)).map(  # noqa: DTZ001  # zones are added by what is tested
    lambda moment: moment.replace(microsecond=0).isoformat()
)


@given(_moments, _moments, st.sampled_from(["UTC", "Europe/Berlin", "Australia/Lord_Howe"]))
def test_adding_a_difference_leads_to_the_other_moment(first: str, second: str, zone: str) -> None:
    apart = _told("difference", first, other=second, zone=zone)
    reached = _told("add", first, duration=f"{apart['seconds']}s", zone=zone)

    assert reached["utc"] == _told("parse", second, zone=zone)["utc"]
