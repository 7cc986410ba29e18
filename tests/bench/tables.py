"""Results as tables: on a terminal, and between marks on a page."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.bench.measure import Row
    from tests.bench.ratios import Results

PAGE = Path(__file__).parents[2] / "docs" / "performance.md"


def shown(ratio: float) -> str:
    """A ratio as people say it: `2.85`, or `1/14` where it is small."""
    if ratio >= 0.5:
        return f"{ratio:.2f}"
    if not ratio:
        return "0"
    part = 1 / ratio
    return f"1/{part:.1f}" if part < 10 else f"1/{part:.0f}"


def time(us: float) -> str:
    """A time with the unit that suits it."""
    if us < 1_000:
        return f"{us:.2f} µs" if us < 100 else f"{us:.0f} µs"
    return f"{us / 1_000:.1f} ms" if us < 1_000_000 else f"{us / 1_000_000:.2f} s"


def cells(row: Row) -> list[str]:
    """What a row shows."""
    if row.unit:
        aim = "" if row.aim is None else f"{row.aim:g}"
        return [row.name, row.against, "", "", f"{row.ratio:.1f} {row.unit}", "", aim]
    aim = "" if row.aim is None else shown(row.aim)
    times = [time(row.ours_us), time(row.other_us)]
    spread = f"{shown(row.least)} to {shown(row.greatest)}"
    against = f"{row.against} ({row.does})" if row.does else row.against
    return [row.name, against, *times, shown(row.ratio), spread, aim]


HEAD = ["what", "against", "median", "of that", "ratio", "least to greatest", "aim"]


def markdown(rows: list[Row]) -> str:
    """Rows as a table of a page."""
    lines = [HEAD, ["---"] * len(HEAD), *map(cells, rows)]
    return "\n".join("".join(f"| {cell} " if cell else "| " for cell in ln) + "|" for ln in lines)


def plain(rows: list[Row]) -> str:
    """Rows as a table of a terminal."""
    lines = [HEAD, *map(cells, rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEAD))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def written(page: str, stored: Mapping[str, Results]) -> str:
    """Give a page with the table below each of its marks as it is stored.

    A mark names a subject and a series of CPython: `<!-- measured: chain, 3.11 -->`.
    """

    def renewed(found: re.Match[str]) -> str:
        results = stored[found["series"]]
        table = markdown(results.subjects[found["subject"]])
        return f"{found['mark']}\nCPython {results.python}:\n\n{table}\n\n"

    return _MARKED.sub(renewed, page)


_MARKED = re.compile(
    r"(?P<mark><!-- measured: (?P<subject>\w+), (?P<series>[\d.]+) -->\n)"
    r"\n*(?:CPython [\d.]+:\n+)?(?:\|.*\n)*\n*"
)
