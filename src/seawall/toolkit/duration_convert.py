"""`duration_convert`: lengths of time in the ways they are written, by exact fractions."""

import re
from fractions import Fraction
from typing import Annotated, Any

from pydantic import Field

from seawall.contract.failure import ToolFailed
from seawall.toolkit.numbers import decimal_text, fraction_of
from seawall.toolkit.refusal import invalid, shown

MAX_LENGTH = 100
MAX_SECONDS = 10**15

UNITS = {
    "w": Fraction(604_800),
    "d": Fraction(86_400),
    "h": Fraction(3600),
    "m": Fraction(60),
    "s": Fraction(1),
    "ms": Fraction(1, 1000),
    "us": Fraction(1, 10**6),
    "ns": Fraction(1, 10**9),
}
_WORDS = {
    "w": ("week", "weeks", "wk"),
    "d": ("day", "days"),
    "h": ("hour", "hours", "hr", "hrs"),
    "m": ("minute", "minutes", "min", "mins"),
    "s": ("second", "seconds", "sec", "secs"),
    "ms": ("millisecond", "milliseconds"),
    "us": ("microsecond", "microseconds", "\N{MICRO SIGN}s", "\N{GREEK SMALL LETTER MU}s"),
    "ns": ("nanosecond", "nanoseconds"),
}
_NAMES = {name: unit for unit in UNITS for name in (unit, *_WORDS[unit])}

_NUMBER = r"([0-9]{1,20}(?:[.,][0-9]{1,20})?)"
_PART = re.compile(rf"\s*{_NUMBER}\s*([A-Za-z\u00b5\u03bc]{{1,12}})\s*,?(?:\s*and\b)?")
_CLOCK = re.compile(r"([0-9]{1,9}):([0-5][0-9])(?::([0-5][0-9](?:\.[0-9]{1,20})?))?\Z")
_ISO = re.compile(
    rf"P(?:{_NUMBER}W)?(?:{_NUMBER}D)?(?:T(?:{_NUMBER}H)?(?:{_NUMBER}M)?(?:{_NUMBER}S)?)?\Z",
    re.IGNORECASE,
)
_ISO_UNITS = ("w", "d", "h", "m", "s")


def duration_convert(
    duration: Annotated[
        float | str,
        Field(description="Seconds, or text: PT1H30M (ISO 8601), 1h30m, 90 min, 1:30:00."),
    ],
) -> dict[str, Any]:
    """Convert a duration between seconds, ISO 8601, 1h30m and clock notation, exactly.

    A day is 24 hours. Years and months are refused: how long they are depends on the calendar.
    """
    seconds = read(duration, "duration")
    return {
        "seconds": decimal_text(seconds)[0],
        "iso": iso(seconds),
        "text": _text(seconds),
        "clock": _clock(seconds),
        **{name: decimal_text(seconds / UNITS[unit], digits=15)[0] for name, unit in _TOTALS},
    }


_TOTALS = (("milliseconds", "ms"), ("minutes", "m"), ("hours", "h"), ("days", "d"))


def read(duration: float | str, field: str) -> Fraction:
    """Read a duration as exact seconds; raises the refusal of `field`."""
    seconds = _seconds(duration, field)
    if abs(seconds) > MAX_SECONDS:
        raise invalid(field, f"{field} is longer than {MAX_SECONDS} seconds")
    return seconds


def _seconds(duration: float | str, field: str) -> Fraction:
    if not isinstance(duration, str):
        return fraction_of(duration, field)
    text = duration.strip()
    if not text or len(text) > MAX_LENGTH:
        raise invalid(field, f"{field} must have 1 to {MAX_LENGTH} characters")
    sign = -1 if text[0] == "-" else 1
    bare = text[1:].lstrip() if text[0] in "+-" else text
    if not bare:
        raise _unreadable(text, field)
    if re.fullmatch(r"[0-9.]+(?:[eE][+-]?[0-9]+)?", bare):
        return sign * fraction_of(bare, field)
    found = _clock_seconds(bare)
    if found is None:
        found = _iso_seconds(bare, field) if bare[0] in "Pp" else _word_seconds(bare, field)
    return sign * found


def _clock_seconds(text: str) -> Fraction | None:
    found = _CLOCK.match(text)
    if found is None:
        return None
    hours, minutes, seconds = found.groups()
    return 3600 * int(hours) + 60 * int(minutes) + Fraction(seconds or 0)


def _iso_seconds(text: str, field: str) -> Fraction:
    found = _ISO.match(text)
    if found is None or not any(found.groups()) or text[-1] in "Tt":
        if re.search(r"[0-9]Y|^P[^T]*[0-9]M", text, re.IGNORECASE):
            raise invalid(field, f"{field} has years or months, whose length depends on the date")
        raise _unreadable(text, field)
    amounts = zip(found.groups(), _ISO_UNITS, strict=True)
    return sum((_amount(amount) * UNITS[unit] for amount, unit in amounts if amount), Fraction(0))


def _word_seconds(text: str, field: str) -> Fraction:
    total, place = Fraction(0), 0
    while place < len(text):
        part = _PART.match(text, place)
        unit = _unit(part.group(2)) if part else None
        if part is None or unit is None:
            raise _unreadable(text, field)
        total += _amount(part.group(1)) * UNITS[unit]
        place = part.end()
    return total


def _unit(name: str) -> str | None:
    # A lone `M` might be months as well as minutes.
    return None if name == "M" else _NAMES.get(name) or _NAMES.get(name.lower())


def _amount(text: str) -> Fraction:
    return Fraction(text.replace(",", "."))


def _unreadable(text: str, field: str) -> ToolFailed:
    return invalid(
        field,
        f"{field} {shown(text)} is no duration; write seconds, PT1H30M, 1h30m or 1:30:00",
    )


def iso(seconds: Fraction) -> str:
    """Write seconds as an ISO 8601 duration with days, hours, minutes and seconds."""
    parts = _parts(seconds)
    days = f"{parts[0][0]}D" if parts and parts[0][1] == "d" else ""
    time = "".join(f"{amount}{unit.upper()}" for amount, unit in parts if unit != "d")
    sign = "-" if seconds < 0 else ""
    return f"{sign}P{days}" + (f"T{time}" if time or not days else "") + ("" if parts else "0S")


def _text(seconds: Fraction) -> str:
    sign = "-" if seconds < 0 else ""
    return sign + ("".join(f"{amount}{unit}" for amount, unit in _parts(seconds)) or "0s")


def _clock(seconds: Fraction) -> str:
    minutes, rest = divmod(abs(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    whole, _, part = decimal_text(rest)[0].partition(".")
    sign = "-" if seconds < 0 else ""
    return f"{sign}{hours}:{minutes:02d}:{whole:0>2}" + (f".{part}" if part else "")


def _parts(seconds: Fraction) -> list[tuple[str, str]]:
    """Split into days, hours, minutes and seconds, those that are zero left out."""
    rest = abs(seconds)
    found: list[tuple[str, str]] = []
    for unit in ("d", "h", "m"):
        amount, rest = divmod(rest, UNITS[unit])
        if amount:
            found.append((str(amount), unit))
    if rest:
        found.append((decimal_text(rest)[0], "s"))
    return found
