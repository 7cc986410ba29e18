"""How a table fits a terminal: no word is broken as long as it is not longer than a line.

A table that is too wide is wrapped between words. Where that is not enough, the name of each row
gets a line of its own; and at last every cell does. Nothing is left out.
"""

from __future__ import annotations

from enum import Enum
from itertools import zip_longest
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    Measure = Callable[[str], int]
    """Says how many columns a text takes on the terminal."""

INDENT = 2
GAPS = (2, 1)
"""Blanks between two columns: the second where the first does not fit."""


class Form(Enum):
    """How the rows are written."""

    TABLE = "table"
    """A row a line, or as many as its longest cell needs."""
    NAMED = "named"
    """The first cell on a line of its own, the others in columns below it."""
    RECORDS = "records"
    """Each cell on a line of its own, after the name of its column."""


class Layout(msgspec.Struct, frozen=True):
    """A form, and how wide each of its columns is."""

    form: Form
    widths: tuple[int, ...] = ()
    gap: int = GAPS[0]


def layout(table: Sequence[Sequence[str]], room: int, measure: Measure) -> Layout:
    """Choose the most compact form that breaks no word; the head is the first row of `table`."""
    least = [_longest_word(column, measure) for column in zip(*table, strict=True)]
    wanted = [_longest_line(column, measure) for column in zip(*table, strict=True)]
    for gap in GAPS:
        # A name that is wrapped would be read as two.
        widths = _shared([wanted[0], *least[1:]], wanted, room, gap)
        if widths:
            return Layout(Form.TABLE, widths, gap)
    if wanted[0] <= room:
        for gap in GAPS:
            widths = _shared(least[1:], wanted[1:], room - INDENT, gap)
            if widths:
                return Layout(Form.NAMED, widths, gap)
    return Layout(Form.RECORDS)


def _shared(
    least: Sequence[int], wanted: Sequence[int], room: int, gap: int
) -> tuple[int, ...] | None:
    """Share the room out: what the columns want, the widest shortened first; None if too little."""
    left = room - gap * (len(least) - 1)
    if sum(least) > left:
        return None
    widths = [max(min(width, left), low) for width, low in zip(wanted, least, strict=True)]
    over = sum(widths) - left
    for _ in range(over):
        spare = (place for place, width in enumerate(widths) if width > least[place])
        widths[max(spare, key=widths.__getitem__)] -= 1
    return tuple(widths)


def _longest_word(column: Sequence[str], measure: Measure) -> int:
    return max((measure(word) for cell in column for word in cell.split()), default=0)


def _longest_line(column: Sequence[str], measure: Measure) -> int:
    return max((measure(line) for cell in column for line in cell.splitlines()), default=0)


def in_columns(cells: Sequence[Sequence[str]], shape: Layout, measure: Measure) -> Iterator[str]:
    """Give the lines of one row, whose cells are wrapped already."""
    for parts in zip_longest(*cells, fillvalue=""):
        padded = (
            part + " " * (width - measure(part))
            for part, width in zip(parts, shape.widths, strict=True)
        )
        yield (" " * shape.gap).join(padded).rstrip()
