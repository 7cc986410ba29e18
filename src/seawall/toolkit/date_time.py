"""`date_time`: dates and times in ISO 8601, in time zones, without guessing what is not said."""

import re
from calendar import isleap, monthrange
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo

from pydantic import Field

from seawall.toolkit import duration_convert as durations
from seawall.toolkit.numbers import decimal_text
from seawall.toolkit.refusal import invalid, shown
from seawall.toolkit.zones import Zone, zone_of

_Moment = Annotated[
    str, Field(max_length=64, description="ISO 8601: 2026-03-29, 2026-03-29T01:30:00+01:00.")
]
_CALENDAR = re.compile(r"([+-]?)P(?:([0-9]{1,5})Y)?(?:([0-9]{1,6})M)?(?=[0-9T]|\Z)", re.IGNORECASE)
# Not from the system, whose language may be any.
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)


def weekday(local: datetime) -> str:
    """Name the day of the week in English."""
    return WEEKDAYS[local.weekday()]


def _week(local: datetime) -> str:
    return "{}-W{:02d}-{}".format(*local.isocalendar())


def _rfc2822(local: datetime) -> str:
    day = f"{weekday(local)[:3]}, {local.day:02d} {_MONTHS[local.month - 1][:3]} {local.year:04d}"
    return f"{day} {local:%H:%M:%S %z}"


_STYLES: dict[str, Callable[[datetime], str]] = {
    "iso": datetime.isoformat,
    "date": lambda local: local.date().isoformat(),
    "time": lambda local: local.time().isoformat(),
    "week": _week,
    "ordinal": lambda local: f"{local.year:04d}-{local.timetuple().tm_yday:03d}",
    "rfc2822": _rfc2822,
    "long": lambda local: f"{weekday(local)}, {local.day} {_MONTHS[local.month - 1]} {local.year}",
}


def date_time(
    operation: Annotated[
        Literal["parse", "add", "difference", "format"],
        Field(description="difference is from moment to other."),
    ],
    moment: _Moment,
    *,
    zone: Annotated[Zone, Field(description="Of the result, and of moments without one.")] = "UTC",
    other: _Moment = "",
    duration: Annotated[
        str,
        Field(max_length=64, description="To add, such as P1M, -P7D, PT36H, 2h30m or -90 min."),
    ] = "",
    style: Literal["iso", "date", "time", "week", "ordinal", "rfc2822", "long"] = "iso",
) -> dict[str, Any]:
    """Read, shift, compare and write dates and times, with daylight saving handled by the zone.

    Years, months, weeks and days of an ISO duration move the calendar date and keep the local time
    (31 January plus P1M is the last of February); everything else moves the instant.
    """
    where = zone_of(zone)
    start = read(moment, where, "moment")
    try:
        if operation == "difference":
            return _difference(start, read(other, where, "other"))
        if operation == "add":
            start = shifted(start, duration)
        elif operation == "format":
            return {"text": _STYLES[style](start)}
        return _told(start, zone)
    except OverflowError:
        raise invalid(
            "duration" if duration else "moment", "the result is outside the years 1 to 9999"
        ) from None


def read(text: str, zone: ZoneInfo, field: str) -> datetime:
    """Read a moment into a zone; raises the refusal of `field`. No zone in it means `zone`."""
    bare = text.strip()
    if not bare:
        raise invalid(field, f"{field} is missing", reason="argument_missing")
    try:
        found = datetime.fromisoformat(bare)
        return found.astimezone(zone) if found.tzinfo else found.replace(tzinfo=zone)
    except (ValueError, OverflowError):
        raise invalid(
            field,
            f"{field} must be a date or time in ISO 8601, such as 2026-03-29T14:30:00Z, not"
            f" {shown(text)}",
        ) from None


def shifted(start: datetime, duration: str) -> datetime:
    """Add a duration: its calendar part to the local date, the rest to the instant."""
    months, days, seconds = _split(duration)
    moved = _months_later(start, months) + timedelta(days=days)
    # Arithmetic on an aware datetime is on its local time, so instants go by way of UTC. That
    # also moves a time that its day does not have past the gap.
    instant = moved.astimezone(UTC) + timedelta(microseconds=round(seconds * 10**6))
    return instant.astimezone(start.tzinfo)


def _split(duration: str) -> tuple[int, int, Fraction]:
    text = duration.strip()
    if not text:
        raise invalid("duration", "add needs a duration", reason="argument_missing")
    found = _CALENDAR.match(text)
    if found is None:
        return 0, 0, durations.read(text, "duration")
    sign = -1 if found.group(1) == "-" else 1
    months = 12 * int(found.group(2) or 0) + int(found.group(3) or 0)
    rest = text[found.end() :]
    whole, days = _days(rest)
    seconds = durations.read(f"P{whole}", "duration") if whole else Fraction(0)
    if not (whole or days or found.group(2) or found.group(3)):
        raise invalid("duration", f"duration {shown(text)} says no length")
    return sign * months, sign * days, sign * seconds


_DAYS_OF = re.compile(r"(?:([0-9]{1,6})W)?(?:([0-9]{1,7})D)?(?=T|\Z)", re.IGNORECASE)


def _days(rest: str) -> tuple[str, int]:
    """Split off whole weeks and days; what is left is time, or parts of a day."""
    found = _DAYS_OF.match(rest)
    if found is None:
        return rest, 0
    return rest[found.end() :], 7 * int(found.group(1) or 0) + int(found.group(2) or 0)


def _months_later(start: datetime, months: int) -> datetime:
    year, month = divmod(start.year * 12 + start.month - 1 + months, 12)
    if not 1 <= year <= 9999:
        raise OverflowError
    day = min(start.day, monthrange(year, month + 1)[1])
    return start.replace(year=year, month=month + 1, day=day)


def _difference(start: datetime, end: datetime) -> dict[str, Any]:
    apart = end.astimezone(UTC) - start.astimezone(UTC)
    micros = Fraction(apart // timedelta(microseconds=1), 10**6)
    return {
        "seconds": decimal_text(micros)[0],
        "iso": durations.iso(micros),
        "calendar_days": (end.date() - start.date()).days,
    }


def _told(local: datetime, zone: str) -> dict[str, Any]:
    instant = local.astimezone(UTC)
    return {
        "iso": local.isoformat(),
        "utc": instant.isoformat().replace("+00:00", "Z"),
        "epoch_s": decimal_text(_epoch(instant))[0],
        "zone": zone,
        "abbreviation": local.tzname(),
        "weekday": weekday(local),
        "week": _week(local),
        "day_of_year": local.timetuple().tm_yday,
        "leap_year": isleap(local.year),
        "exists": instant.astimezone(local.tzinfo).replace(tzinfo=None)
        == local.replace(tzinfo=None),
    }


def _epoch(instant: datetime) -> Fraction:
    since = instant - datetime(1970, 1, 1, tzinfo=UTC)
    return Fraction(since // timedelta(microseconds=1), 10**6)
