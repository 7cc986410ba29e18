"""The ratios of the main branch, kept beside the code, and whether new ones are worse.

They are kept per version of CPython, each with the versions of the packages it depends on: where
one of these is another, nothing is said of a regression, since it need not be ours.
"""

from __future__ import annotations

import platform
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from tests.bench.measure import Row

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

STORED = Path(__file__).with_name("stored.json")
RUNS = 3
WORSE = 1.25
"""How much greater than the stored one a ratio may be."""
MARGIN = 0.9
"""An aim that is met with this margin by the stored ratio is a bound."""

Key = tuple[str, str]


class Results(msgspec.Struct, frozen=True):
    """All rows of one run, by subject, and the Python that made them."""

    python: str
    subjects: dict[str, list[Row]]

    def by_key(self) -> dict[Key, Row]:
        return {row.key: row for rows in self.subjects.values() for row in rows}


def here() -> str:
    """This CPython: `3.11.7`."""
    return platform.python_version()


def series() -> str:
    """The series of this CPython: `3.11`."""
    return ".".join(platform.python_version_tuple()[:2])


def stored(path: Path = STORED) -> dict[str, Results]:
    """What is stored, by series of CPython."""
    return msgspec.json.decode(path.read_bytes(), type=dict[str, Results]) if path.exists() else {}


def store(results: Results, path: Path = STORED) -> None:
    """Replace what is stored for this series of CPython."""
    known = dict(sorted({**stored(path), series(): results}.items()))
    path.write_bytes(msgspec.json.format(msgspec.json.encode(known), indent=1) + b"\n")


def bound(before: Row, now: Row) -> float | None:
    """Up to where a ratio may go; None if there is nothing to hold it to.

    What a busy machine moves is stored as it fell that day, so its aim counts if that is further.
    """
    if now.unit == "s":
        return None  # a time says more of the machine than of us
    if now.wall:
        return WORSE * max(before.ratio, now.aim or 0)
    bounds = []
    if before.versions == now.versions:
        bounds.append(before.ratio * WORSE)
    if now.aim is not None and before.ratio <= now.aim * MARGIN:
        bounds.append(now.aim)
    return min(bounds, default=None)


def worse(rows: Iterable[Row], before: Results) -> dict[Key, float]:
    """Rows above their bound, and the bound. What was never stored has none."""
    known = before.by_key()
    found: dict[Key, float] = {}
    for row in rows:
        limit = bound(known[row.key], row) if row.key in known else None
        if limit is not None and row.ratio > limit:
            found[row.key] = limit
    return found


def persistently_worse(
    rows: Iterable[Row], before: Results, again: Callable[[Collection[Key]], Iterable[Row]]
) -> list[str]:
    """Say what is above its bound in three runs out of three; only what looks worse runs again."""
    ratios: dict[Key, list[float]] = {}
    limits: dict[Key, float] = {}
    for number in range(RUNS):
        measured = list(again(limits) if number else rows)
        limits = worse(measured, before)
        if not limits:
            return []
        for row in measured:
            ratios.setdefault(row.key, []).append(row.ratio)
    return [
        f"{name}, against {against}: "
        f"{', '.join(f'{ratio:.3g}' for ratio in ratios[name, against])}; at most {limit:.3g}"
        for (name, against), limit in limits.items()
    ]
