"""Time zones by their IANA names."""

from typing import Annotated
from zoneinfo import ZoneInfo, available_timezones

from pydantic import Field
from rapidfuzz import process

from seawall.toolkit.refusal import invalid, shown

Zone = Annotated[
    str,
    Field(
        min_length=1,
        max_length=64,
        description="An IANA time zone: UTC, Europe/Berlin, Asia/Tokyo.",
    ),
]


def zone_of(name: str, field: str = "zone") -> ZoneInfo:
    """Find a zone; raises the refusal of `field`, with names that are near."""
    try:
        return ZoneInfo(name)
    except (LookupError, ValueError, OSError):
        # Names that climb out of the database or that are folders of it end here as well.
        near = process.extract(name[:64], sorted(available_timezones()), limit=3, score_cutoff=60)
        advice = f"near: {', '.join(found[0] for found in near)}" if near else "write Area/City"
        raise invalid(field, f"unknown time zone {shown(name)}; {advice}") from None
