"""How recorded things are shown: reasons as slugs, text on one line, moments in UTC."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version

from seawall.contract.failure import REASONS

_SLUG = re.compile(r"[a-z0-9_]{1,64}")


def slug(reason: str) -> str:
    """Give the reason if it is a slug, else nothing: a tool may put any text there, or a secret."""
    return reason if reason in REASONS or _SLUG.fullmatch(reason) else ""


def one_line(text: str) -> str:
    """Make text from outside, such as the id a client chose, short and unable to begin a line."""
    text = text if len(text) <= 64 else f"{text[:63]}…"
    return text if text.isprintable() else ascii(text)


def moment(wall: float) -> str:
    """Write seconds since the epoch as ISO 8601, in UTC, to the millisecond.

    What is in no calendar, as a file may say, is written as `date` takes it: `@1e+15`.
    """
    try:
        return datetime.fromtimestamp(wall, UTC).isoformat(timespec="milliseconds")
    except (OverflowError, ValueError, OSError):
        return f"@{wall:g}"


def current_version() -> str:
    """The version that runs."""
    try:
        return version("seawall")
    except PackageNotFoundError:
        return "unknown"
