from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seawall.contract.failure import ToolFailed
from seawall.toolkit.cron_next import CronNext, parse, upcoming

NEW_YEAR = 1_767_225_600.0
CRON = CronNext(lambda: NEW_YEAR)


def _times(expression: str, after: str = "", zone: str = "UTC", count: int = 3) -> list[str]:
    times: list[str] = CRON.cron_next(expression, zone, after, count)["times"]
    return [time.removesuffix("+00:00").removesuffix(":00") for time in times]


@pytest.mark.parametrize(
    ("expression", "times"),
    [
        ("* * * * *", ["2026-01-01T00:01", "2026-01-01T00:02", "2026-01-01T00:03"]),
        ("*/20 * * * *", ["2026-01-01T00:20", "2026-01-01T00:40", "2026-01-01T01:00"]),
        ("0 9 * * mon-fri", ["2026-01-01T09:00", "2026-01-02T09:00", "2026-01-05T09:00"]),
        ("30 6,18 * * *", ["2026-01-01T06:30", "2026-01-01T18:30", "2026-01-02T06:30"]),
        ("0 0 29 2 *", ["2028-02-29T00:00", "2032-02-29T00:00", "2036-02-29T00:00"]),
        ("0 0 1 */6 *", ["2026-07-01T00:00", "2027-01-01T00:00", "2027-07-01T00:00"]),
        ("0 12 * JAN sun", ["2026-01-04T12:00", "2026-01-11T12:00", "2026-01-18T12:00"]),
        ("0 12 * * 7", ["2026-01-04T12:00", "2026-01-11T12:00", "2026-01-18T12:00"]),
        ("0 0 13 * fri", ["2026-01-02T00:00", "2026-01-09T00:00", "2026-01-13T00:00"]),
        ("0 0 */2 * fri", ["2026-01-09T00:00", "2026-01-23T00:00", "2026-02-13T00:00"]),
        ("0 0 * * fri-sun", ["2026-01-02T00:00", "2026-01-03T00:00", "2026-01-04T00:00"]),
        ("0 0 * * */3", ["2026-01-03T00:00", "2026-01-04T00:00", "2026-01-07T00:00"]),
        ("50/5 0 * * *", ["2026-01-01T00:50", "2026-01-01T00:55", "2026-01-02T00:50"]),
        ("10-20/5 0 * * *", ["2026-01-01T00:10", "2026-01-01T00:15", "2026-01-01T00:20"]),
        ("@weekly", ["2026-01-04T00:00", "2026-01-11T00:00", "2026-01-18T00:00"]),
        (" @YEARLY ", ["2027-01-01T00:00", "2028-01-01T00:00", "2029-01-01T00:00"]),
    ],
)
def test_a_schedule_comes_due(expression: str, times: list[str]) -> None:
    assert _times(expression) == times


def test_a_moment_that_is_due_is_not_given_again() -> None:
    assert _times("0 9 * * *", "2026-01-01T09:00Z", count=1) == ["2026-01-02T09:00"]
    assert _times("0 9 * * *", "2026-01-01T08:59:59.9Z", count=1) == ["2026-01-01T09:00"]


@pytest.mark.parametrize(
    ("expression", "after", "times"),
    [
        # Clocks go from 02:00 to 03:00 on 29 March and from 03:00 back to 02:00 on 25 October.
        ("30 2 * * *", "2026-03-29T00:00", ["2026-03-29T03:30:00+02", "2026-03-30T02:30:00+02"]),
        ("30 2 * * *", "2026-10-25T00:00", ["2026-10-25T02:30:00+02", "2026-10-26T02:30:00+01"]),
        ("30 * * * *", "2026-03-29T01:00", ["2026-03-29T01:30:00+01", "2026-03-29T03:30:00+02"]),
        ("30 */1 * * *", "2026-10-25T02:00", ["2026-10-25T02:30:00+02", "2026-10-25T02:30:00+01"]),
    ],
)
def test_daylight_saving_is_kept_to(expression: str, after: str, times: list[str]) -> None:
    assert _times(expression, after, "Europe/Berlin", count=2) == times


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("", "five fields"),
        ("* * * *", "not 4"),
        ("* * * * * *", "not 6"),
        ("@never", "five fields"),
        ("60 * * * *", "no minute: values are 0 to 59"),
        ("* 24 * * *", "no hour"),
        ("* * 0 * *", "no day of month"),
        ("* * * 13 *", "no month: values are 1 to 12, or jan"),
        ("* * * * 8", "no day of week"),
        ("* * L * *", "no day of month"),
        ("*/0 * * * *", "the step must be 1 to 59"),
        ("*/x * * * *", "the step"),
        ("*/ * * * *", "the step"),
        ("5-1 * * * *", "a range must rise"),
        ("1- * * * *", "no minute"),
        ("1,,2 * * * *", "no minute"),
        ("-1 * * * *", "no minute"),
        ("\N{ARABIC-INDIC DIGIT ONE} * * * *", "no minute"),
        ("0 0 30 2 *", "never comes due"),
        ("* " * 200, "longer than"),
    ],
)
def test_what_is_no_schedule_is_refused(expression: str, said: str) -> None:
    with pytest.raises(ToolFailed, match=said) as refused:
        _times(expression)

    assert refused.value.failure.fields == ("expression",)


@pytest.mark.parametrize("after", ["soon", "0001-01-01", "9999-01-01"])
def test_a_start_that_cannot_be_counted_from_is_refused(after: str) -> None:
    with pytest.raises(ToolFailed) as refused:
        _times("* * * * *", after)

    assert refused.value.failure.fields == ("after",)


@given(
    st.lists(st.sampled_from(["*", "*/7", "0", "1,5", "2-4"]), min_size=3, max_size=3),
    st.datetimes(datetime(2024, 1, 1), datetime(2027, 1, 1)),  # noqa: DTZ001  # the zone comes below
    st.sampled_from(["UTC", "America/New_York", "Australia/Lord_Howe"]),
)
@settings(deadline=None)
def test_the_times_are_those_whose_minute_matches(
    fields: list[str], start: datetime, zone: str
) -> None:
    minute, day, month = fields
    day, month = ("*" if part == "0" else part for part in (day, month))
    schedule = parse(f"{minute} * {day} {month} *")
    begin = start.replace(tzinfo=UTC, second=0, microsecond=0)

    found = upcoming(schedule, begin, ZoneInfo(zone), 5)

    assert found == sorted(set(found))
    # Minute by minute, as a clock on the wall would do it, up to the first one found.
    minutes = min((found[0] - begin) // timedelta(minutes=1), 3000)
    walked = (begin + timedelta(minutes=step) for step in range(1, minutes + 1))
    due = [
        instant
        for instant in walked
        if (local := instant.astimezone(ZoneInfo(zone))).minute in schedule.minutes
        and local.day in schedule.days
        and local.month in schedule.months
    ]
    assert due == [instant for instant in found[:1] if minutes < 3000]
