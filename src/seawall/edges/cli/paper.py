"""Where commands write: colours and drawn tables on a terminal, plain lines everywhere else."""

from __future__ import annotations

import shutil
import sys
from typing import TYPE_CHECKING, Any, TextIO

from seawall.edges.cli.grid import INDENT, Form, in_columns, layout
from seawall.pipeline.visible import visible_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from seawall.edges.cli.grid import Layout

NARROWEST = 40

Styled = tuple[str, str]
"""A text and its style, in the words of rich: `bold red`; blank for none."""


class Paper:
    """Writes lines and tables to a stream; `NO_COLOR` takes the colours away, not the tables."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = sys.stdout if stream is None else stream
        self.is_terminal = self._stream.isatty()
        self._drawn: Console | None = None

    @property
    def width(self) -> int:
        """Columns of the terminal."""
        return max(shutil.get_terminal_size((100, 40)).columns, NARROWEST)

    def line(self, *parts: Styled | str, lead: Styled | str = "") -> None:
        """Write one line. On a terminal it is wrapped so that what follows `lead` stays in line."""
        begin, rest = _styled(lead), [_styled(part) for part in parts]
        if not self.is_terminal:
            self._put("".join(text for text, _ in (begin, *rest)).rstrip())
            return
        from rich.table import Table  # noqa: PLC0415  # on a terminal only
        from rich.text import Text  # noqa: PLC0415  # as above

        body = Text.assemble(*((printable(text), style) for text, style in rest))
        if not begin[0]:
            self._console.print(body)
            return
        grid = Table.grid()
        grid.add_column(no_wrap=True)
        grid.add_column(overflow="fold")
        grid.add_row(Text(printable(begin[0]), begin[1]), body)
        self._console.print(grid)

    def text(self, text: str) -> None:
        """Write text from outside as it is; on a terminal without what could control that."""
        self._put(printable(text) if self.is_terminal else text)

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Write a table, drawn on a terminal, else as columns that `awk` can read.

        However narrow the terminal is, every cell is there, and no word of it is broken that fits.
        """
        if self.is_terminal:
            self._draw(columns, rows)
            return
        widths = [max(map(len, column)) for column in zip(columns, *rows, strict=True)]
        for row in (columns, *rows):
            cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
            self._put("  ".join(cells).rstrip())

    def _draw(self, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        from rich.cells import cell_len  # noqa: PLC0415  # on a terminal only

        head = [printable(name) for name in columns]
        body = [[printable(cell) for cell in row] for row in rows]
        shape = layout([head, *body], self.width, cell_len)
        if shape.form is Form.RECORDS:
            self._records(head, body)
            return
        self._row(head, shape, "bold")
        indent = INDENT if shape.form is Form.NAMED else 0
        self._console.print(
            "─" * (indent + sum(shape.widths) + shape.gap * (len(shape.widths) - 1))
        )
        for row in body:
            self._row(row, shape)

    def _row(self, row: Sequence[str], shape: Layout, style: str = "") -> None:
        from rich.cells import cell_len  # noqa: PLC0415  # on a terminal only
        from rich.text import Text  # noqa: PLC0415  # as above

        cells, indent = row, ""
        if shape.form is Form.NAMED:
            cells, indent = row[1:], " " * INDENT
            if row[0]:
                self._console.print(Text(row[0], "bold"))
        wrapped = [
            [line.plain.rstrip() for line in Text(cell).wrap(self._console, max(width, 1))]
            for cell, width in zip(cells, shape.widths, strict=True)
        ]
        for line in in_columns(wrapped, shape, cell_len):
            self._console.print(Text(f"{indent}{line}", style))

    def _records(self, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Write each cell on a line of its own; what is blank says nothing, and is left out."""
        lead = max(map(len, head[1:]), default=0)
        for row in rows:
            self.line((row[0], "bold"))
            for name, cell in zip(head[1:], row[1:], strict=True):
                if cell:
                    self.line(cell, lead=f"{' ' * INDENT}{name:<{lead}}  ")

    @property
    def _console(self) -> Any:
        if self._drawn is None:
            from rich.console import Console  # noqa: PLC0415  # on a terminal only

            self._drawn = Console(file=self._stream, highlight=False, width=self.width)
        return self._drawn

    def _put(self, text: str) -> None:
        self._stream.write(f"{text}\n")
        self._stream.flush()


def _styled(part: Styled | str) -> Styled:
    return (part, "") if isinstance(part, str) else part


def printable(text: str) -> str:
    """Make what could move the cursor, colour, reorder or hide in a line visible instead."""
    return text if text.isascii() and text.isprintable() else visible_json(text)
