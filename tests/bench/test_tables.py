"""Tables say ratios as people do, and a page has those of its marks."""

from __future__ import annotations

import pytest
from tests.bench.measure import Row
from tests.bench.ratios import Results
from tests.bench.tables import PAGE, markdown, plain, shown, time, written

ROW = Row("chain", "one block", 2.854, 2.5, 3.25, 9.046, 3.1, 3.0, does="T")
SIZE = Row("a tool", "of 10,000", 9.7, 9.7, 9.7, aim=12, unit="KiB")


@pytest.mark.parametrize(
    ("ratio", "text"),
    [(2.854, "2.85"), (0.5, "0.50"), (0.499, "1/2.0"), (0.0714, "1/14"), (0.0, "0")],
)
def test_a_small_ratio_is_shown_as_a_part(ratio: float, text: str) -> None:
    assert shown(ratio) == text


@pytest.mark.parametrize(
    ("us", "text"),
    [
        (9.046, "9.05 µs"),
        (143.6, "144 µs"),
        (25_443.2, "25.4 ms"),
        (3_323_065.4, "3.32 s"),
    ],
)
def test_a_time_has_the_unit_that_suits_it(us: float, text: str) -> None:
    assert time(us) == text


def test_a_table_has_a_line_for_each_row() -> None:
    lines = markdown([ROW, SIZE]).splitlines()

    assert lines[2:] == [
        "| chain | one block (T) | 9.05 µs | 3.10 µs | 2.85 | 2.50 to 3.25 | 3.00 |",
        "| a tool | of 10,000 | | | 9.7 KiB | | 12 |",
    ]


def test_a_terminal_gets_the_same_cells_in_columns() -> None:
    head, first, _ = plain([ROW, SIZE]).splitlines()

    assert head.index("ratio") == first.index("2.85")


def test_a_page_gets_the_tables_of_its_marks_and_keeps_the_rest() -> None:
    stored = {"3.11": Results("3.11.7", {"chain": [ROW], "peers": [SIZE]})}
    page = (
        "# Page\n\n<!-- measured: chain, 3.11 -->\n\nCPython 3.11.1:\n\n| old |\n| --- |\n| 1 |\n\n"
        "After.\n\n<!-- measured: peers, 3.11 -->\n\n## Next\n"
    )

    once = written(page, stored)

    assert once == (
        f"# Page\n\n<!-- measured: chain, 3.11 -->\n\nCPython 3.11.7:\n\n{markdown([ROW])}\n\n"
        f"After.\n\n<!-- measured: peers, 3.11 -->\n\nCPython 3.11.7:\n\n{markdown([SIZE])}\n\n"
        "## Next\n"
    )
    assert written(once, stored) == once


def test_a_mark_without_results_is_told() -> None:
    with pytest.raises(KeyError, match=r"3\.14"):
        written("<!-- measured: chain, 3.14 -->\n", {})


def test_the_page_is_the_one_of_the_docs() -> None:
    assert PAGE.name == "performance.md"
    assert PAGE.exists()
