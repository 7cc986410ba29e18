"""How tables fit terminals: which form, how wide, and never within a word."""

from __future__ import annotations

import pytest

from seawall.edges.cli.grid import Form, Layout, in_columns, layout

TABLE = [
    ("name", "annotations", "rate"),
    ("http_check", "read-only, open-world", "120/minute"),
]


@pytest.mark.parametrize(
    ("room", "expected"),
    [
        (100, Layout(Form.TABLE, (10, 21, 10), 2)),
        (45, Layout(Form.TABLE, (10, 21, 10), 2)),
        (44, Layout(Form.TABLE, (10, 20, 10), 2)),
        (35, Layout(Form.TABLE, (10, 11, 10), 2)),
        (34, Layout(Form.TABLE, (10, 12, 10), 1)),
        (33, Layout(Form.TABLE, (10, 11, 10), 1)),
        (32, Layout(Form.NAMED, (18, 10), 2)),
        (25, Layout(Form.NAMED, (11, 10), 2)),
        (24, Layout(Form.NAMED, (11, 10), 1)),
        (23, Layout(Form.RECORDS)),
    ],
)
def test_the_most_compact_form_without_a_broken_word_is_chosen(room: int, expected: Layout) -> None:
    assert layout(TABLE, room, len) == expected


def test_a_name_is_never_wrapped_in_its_column() -> None:
    found = layout([("name", "said"), ("two words", "some more words " * 9)], 30, len)

    assert found == Layout(Form.TABLE, (9, 19), 2)


def test_a_name_that_no_line_has_room_for_is_a_record() -> None:
    assert layout([("name", "n"), ("x" * 41, "1")], 40, len).form is Form.RECORDS


def test_a_table_of_one_column_has_room_for_its_words() -> None:
    assert layout([("tool",), ("search",)], 40, len) == Layout(Form.TABLE, (6,), 2)


def test_width_is_that_of_the_terminal_and_not_of_the_text() -> None:
    wide = layout([("name",), ("漢字",)], 40, lambda text: 2 * len(text))

    assert wide.widths == (8,)


def test_cells_of_several_lines_stay_in_their_columns() -> None:
    shape = Layout(Form.TABLE, (4, 6, 2), 2)

    lines = list(in_columns([["a"], ["one", "two"], ["x", "y", "z"]], shape, len))

    assert lines == ["a     one     x", "      two     y", "              z"]
