"""`csv_query`: choose, filter and order the rows of a CSV text; there is nothing to evaluate."""

import csv
import io
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from seawall.toolkit.refusal import invalid, shown

MAX_TEXT = 1_000_000
MAX_COLUMNS = 500
MAX_CELLS = 200_000
"""Cells of the answer, so that a wide table is not given back whole."""

_Row = Sequence[str]
_Name = Annotated[str, Field(max_length=1000)]
_Names = Annotated[tuple[_Name, ...], Field(max_length=MAX_COLUMNS)]


class Condition(BaseModel):
    """What a row must meet: numbers compare as numbers if both sides are some, else as text."""

    model_config = ConfigDict(extra="forbid")

    column: _Name
    op: Literal[
        "eq",
        "ne",
        "lt",
        "le",
        "gt",
        "ge",
        "contains",
        "starts_with",
        "ends_with",
        "empty",
        "filled",
    ] = "eq"
    value: _Name | int | float | bool = ""


def csv_query(
    text: Annotated[str, Field(max_length=MAX_TEXT, description="CSV with a header line.")],
    *,
    select: Annotated[_Names, Field(description="Columns to give, in this order; none: all.")] = (),
    where: Annotated[
        tuple[Condition, ...], Field(max_length=10, description="All of them must be met.")
    ] = (),
    order_by: Annotated[_Name, Field(description="A column; blank keeps the order.")] = "",
    descending: Annotated[bool, Field(description="Largest first.")] = False,
    limit: Annotated[int, Field(ge=1, le=1000)] = 100,
    delimiter: Literal[",", ";", "\t", "|"] = ",",
) -> dict[str, Any]:
    """Query a CSV text: choose columns, filter rows by conditions, order them, take the first ones.

    Cells stay text. Empty cells come last in any order.
    """
    header, rows = _table(text, delimiter)
    places = {name: place for place, name in enumerate(header)}
    tests = [_test(condition, places, position) for position, condition in enumerate(where)]
    found = [row for row in rows if all(test(row) for test in tests)]
    if order_by:
        found = _ordered(found, _place(places, order_by, "order_by"), descending=descending)
    columns = list(select) or header
    chosen = [_place(places, name, f"select/{at}") for at, name in enumerate(columns)]
    if len(chosen) * min(limit, len(found)) > MAX_CELLS:
        raise invalid("limit", f"the answer has more than {MAX_CELLS} cells; select fewer columns")
    return {
        "columns": columns,
        "rows": [[row[place] for place in chosen] for row in found[:limit]],
        "found": len(found),
        "total": len(rows),
    }


def _table(text: str, delimiter: str) -> tuple[list[str], list[_Row]]:
    if len(text) > MAX_TEXT:
        raise invalid("text", f"text is longer than {MAX_TEXT} characters")
    # Line ends stay as they are: the csv module tells those in quotes from those between rows.
    lines = io.StringIO(text.removeprefix("\ufeff"), newline="")
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    try:
        filled = (row for row in reader if row)
        header = [name.strip() for name in next(filled, [])]
        _check(header)
        return header, list(_whole(filled, len(header), reader))
    except csv.Error as error:
        raise invalid("text", f"text is no CSV at line {reader.line_num}: {error}") from None


def _check(header: Sequence[str]) -> None:
    if not header:
        raise invalid("text", "text has no header line")
    if len(header) > MAX_COLUMNS:
        raise invalid("text", f"text has more than {MAX_COLUMNS} columns")
    twice = next((name for at, name in enumerate(header) if name in header[:at]), None)
    if twice is not None:
        raise invalid("text", f"text has two columns named {shown(twice)}")


def _whole(rows: Iterator[list[str]], width: int, reader: Any) -> Iterator[_Row]:
    """Fill up short rows; a longer one shows that delimiter or quotes are not what was meant."""
    for row in rows:
        if len(row) > width:
            raise invalid(
                "text",
                f"line {reader.line_num} has {len(row)} cells, the header {width};"
                " check the delimiter and the quotes",
            )
        yield row if len(row) == width else [*row, *[""] * (width - len(row))]


def _place(places: Mapping[str, int], name: str, field: str) -> int:
    if name not in places:
        known = ", ".join(shown(column) for column in list(places)[:20])
        raise invalid(field, f"there is no column {shown(name)}; columns: {known}")
    return places[name]


_Test = Callable[[_Row], bool]
_Value = tuple[int, int | Decimal, str]
"""Orders numbers before text; empty cells are kept apart."""

_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?\Z")


def _value(text: str) -> _Value:
    bare = text.strip()
    if len(bare) < 19 and bare.isascii() and bare.isdecimal():
        # Most numbers of most tables, at a third of the cost.
        return 0, int(bare), ""
    if len(bare) <= 100 and _NUMBER.match(bare):
        return 0, Decimal(bare), ""
    return 1, 0, text


_COMPARISONS: dict[str, Callable[[_Value, _Value], bool]] = {
    "eq": lambda cell, value: cell == value,
    "ne": lambda cell, value: cell != value,
    "lt": lambda cell, value: cell < value,
    "le": lambda cell, value: cell <= value,
    "gt": lambda cell, value: cell > value,
    "ge": lambda cell, value: cell >= value,
}
_TEXT_TESTS: dict[str, Callable[[str, str], bool]] = {
    "contains": lambda cell, value: value in cell,
    "starts_with": str.startswith,
    "ends_with": str.endswith,
}


def _test(condition: Condition, places: Mapping[str, int], position: int) -> _Test:
    place = _place(places, condition.column, f"where/{position}/column")
    text = str(condition.value).lower() if isinstance(condition.value, bool) else None
    value = str(condition.value) if text is None else text
    if condition.op in ("empty", "filled"):
        wanted = condition.op == "filled"
        return lambda row: bool(row[place].strip()) is wanted
    if condition.op in _TEXT_TESTS:
        matches = _TEXT_TESTS[condition.op]
        return lambda row: matches(row[place], value)
    compare, right = _COMPARISONS[condition.op], _value(value)
    return lambda row: (
        _comparable(left := _value(row[place]), right, condition.op) and compare(left, right)
    )


def _comparable(left: _Value, right: _Value, op: str) -> bool:
    # A number is neither below nor above a word.
    return op in ("eq", "ne") or left[0] == right[0]


def _ordered(rows: list[_Row], place: int, *, descending: bool) -> list[_Row]:
    filled = [row for row in rows if row[place].strip()]
    empty = [row for row in rows if not row[place].strip()]
    return sorted(filled, key=lambda row: _value(row[place]), reverse=descending) + empty
