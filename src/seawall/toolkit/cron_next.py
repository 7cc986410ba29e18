"""`cron_next`: when a cron expression comes due.

Daylight saving: a fixed time of day that the clock skips comes due as if the clock had gone on
(02:30 becomes 03:30), one that is shown twice comes due the first time. Where the hours are `*` or
`*/n` the schedule goes by the clock as it runs: skipped hours are skipped, repeated ones repeated.
"""

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, date, datetime, time, timedelta
from typing import Annotated, Any, NamedTuple
from zoneinfo import ZoneInfo

from pydantic import Field

from seawall.contract.failure import ToolFailed
from seawall.toolkit.date_time import read
from seawall.toolkit.refusal import invalid, shown
from seawall.toolkit.zones import Zone, zone_of

MAX_LENGTH = 200
_SEARCH = timedelta(days=366 * 9)
"""29 February may be eight years away, and no day of the calendar is further."""
_YEARS = range(2, 9980)

_MACROS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}


def _numbered(names: str, first: int) -> dict[str, int]:
    return {name: number for number, name in enumerate(names.split(), first)}


class _Field(NamedTuple):
    name: str
    low: int
    high: int
    names: Mapping[str, int]


_FIELDS = (
    _Field("minute", 0, 59, {}),
    _Field("hour", 0, 23, {}),
    _Field("day of month", 1, 31, {}),
    _Field("month", 1, 12, _numbered("jan feb mar apr may jun jul aug sep oct nov dec", 1)),
    # Both 0 and 7 are Sunday.
    _Field("day of week", 0, 7, _numbered("sun mon tue wed thu fri sat", 0)),
)


class Schedule(NamedTuple):
    """A cron expression as it was read."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    either_day: bool
    """Both kinds of day are restricted: then one that is met is enough."""
    by_the_clock: bool
    """The hours are a wildcard."""

    def on(self, day: date) -> bool:
        """Whether anything comes due that day."""
        if day.month not in self.months:
            return False
        by_number = day.day in self.days
        by_weekday = day.isoweekday() % 7 in self.weekdays
        return by_number or by_weekday if self.either_day else by_number and by_weekday

    def instants(self, day: date, zone: ZoneInfo) -> list[datetime]:
        """All instants of a day in UTC, in order."""
        found: set[datetime] = set()
        for hour in self.hours:
            for minute in self.minutes:
                found.update(self._due(datetime.combine(day, time(hour, minute), zone)))
        return sorted(found)

    def _due(self, local: datetime) -> Iterator[datetime]:
        first = local.astimezone(UTC)
        if not self.by_the_clock:
            yield first
            return
        for instant in (first, local.replace(fold=1).astimezone(UTC)):
            back = instant.astimezone(local.tzinfo)
            # A time that the clock skips reads otherwise when it comes back.
            if (back.hour, back.minute) == (local.hour, local.minute):
                yield instant


class CronNext:
    """Counts from `wall` unless a moment is given."""

    def __init__(self, wall: Callable[[], float]) -> None:
        self._wall = wall

    def cron_next(
        self,
        expression: Annotated[
            str,
            Field(
                min_length=1,
                max_length=MAX_LENGTH,
                description="minute hour day month weekday, such as */15 9-17 * * mon-fri; @daily.",
            ),
        ],
        zone: Zone = "UTC",
        after: Annotated[str, Field(max_length=64, description="ISO 8601; blank is now.")] = "",
        count: Annotated[int, Field(ge=1, le=100)] = 5,
    ) -> dict[str, Any]:
        """Tell the next times at which a cron expression comes due in a time zone."""
        schedule = parse(expression)
        where = zone_of(zone)
        start = read(after, where, "after") if after.strip() else self._now(where)
        if start.year not in _YEARS:
            raise invalid("after", f"after must be from {_YEARS[0]} to {_YEARS[-1]}")
        found = upcoming(schedule, start, where, count)
        return {
            "times": [instant.astimezone(where).isoformat() for instant in found],
            "zone": zone,
            "after": start.isoformat(),
        }

    def _now(self, zone: ZoneInfo) -> datetime:
        return datetime.fromtimestamp(self._wall(), zone)


def upcoming(schedule: Schedule, start: datetime, zone: ZoneInfo, count: int) -> list[datetime]:
    """Find the next instants after `start`; refuses a schedule with none in nine years."""
    after = start.astimezone(UTC)
    # The day before as well: what its skipped hours were moved to may still lie ahead.
    day = start.astimezone(zone).date() - timedelta(days=1)
    found: list[datetime] = []
    last = day + _SEARCH
    while len(found) < count and day <= last:
        if schedule.on(day):
            found += [due for due in schedule.instants(day, zone) if due > after]
            last = day + _SEARCH
        day += timedelta(days=1)
    if not found:
        raise invalid("expression", "expression never comes due: no such day in its months")
    return found[:count]


def parse(expression: str) -> Schedule:
    """Read five fields or a macro; raises the refusal that names the field at fault."""
    if len(expression) > MAX_LENGTH:
        raise _refusal(f"expression is longer than {MAX_LENGTH} characters")
    text = expression.strip().lower()
    parts = _MACROS.get(text, text).split()
    if len(parts) != len(_FIELDS):
        macros = ", ".join(_MACROS)
        raise _refusal(
            f"expression needs five fields (minute hour day month weekday), not {len(parts)};"
            f" or one of {macros}"
        )
    values = [_values(part, field) for part, field in zip(parts, _FIELDS, strict=True)]
    minutes, hours, days, months, weekdays = values
    return Schedule(
        minutes,
        hours,
        days,
        months,
        frozenset(weekday % 7 for weekday in weekdays),
        either_day=parts[2][0] != "*" and parts[4][0] != "*",
        by_the_clock=parts[1][0] == "*",
    )


def _values(text: str, field: _Field) -> frozenset[int]:
    found: set[int] = set()
    for part in text.split(","):
        span, slash, step = part.partition("/")
        if slash and not _is_number(step, 1, field.high):
            raise _unreadable(part, field, f"the step must be 1 to {field.high}")
        found.update(_span(span, field, part, stepped=bool(slash))[:: int(step or 1)])
    return frozenset(found)


def _span(text: str, field: _Field, part: str, *, stepped: bool) -> range:
    if text == "*":
        # Sunday must not count twice where steps are taken.
        return range(field.low, min(field.high, 6) + 1 if field.high == 7 else field.high + 1)
    first, dash, last = text.partition("-")
    low = _number(first, field, part)
    if not dash:
        return range(low, field.high + 1) if stepped else range(low, low + 1)
    high = _number(last, field, part)
    if high == 0 < low and field.high == 7:
        high = 7
    if high < low:
        raise _unreadable(part, field, "a range must rise")
    return range(low, high + 1)


def _number(text: str, field: _Field, part: str) -> int:
    if text in field.names:
        return field.names[text]
    if not _is_number(text, field.low, field.high):
        known = f", or {', '.join(field.names)}" if field.names else ""
        raise _unreadable(part, field, f"values are {field.low} to {field.high}{known}")
    return int(text)


def _is_number(text: str, low: int, high: int) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= 3 and low <= int(text) <= high


def _unreadable(part: str, field: _Field, why: str) -> ToolFailed:
    return _refusal(f"{shown(part)} is no {field.name}: {why}")


def _refusal(message: str) -> ToolFailed:
    return invalid("expression", message)
