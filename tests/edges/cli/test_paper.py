import io
import re

import pytest

from seawall.edges.cli.paper import Paper, printable


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(name="screen")
def screen_fixture(monkeypatch: pytest.MonkeyPatch) -> Screen:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.delenv("NO_COLOR", raising=False)
    return Screen()


def test_a_file_gets_plain_lines() -> None:
    stream = io.StringIO()

    Paper(stream).line(("red", "red"), " and plain", lead="  ")

    assert stream.getvalue() == "  red and plain\n"


def test_a_terminal_gets_colours(screen: Screen) -> None:
    Paper(screen).line(("red", "red"))

    assert "\x1b[31m" in screen.getvalue()


def test_no_color_takes_the_colours_away(screen: Screen, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")

    Paper(screen).line(("red", "red"))

    assert screen.getvalue() == "red\n"


def test_a_long_line_goes_on_below_where_it_began(screen: Screen) -> None:
    Paper(screen).line("word " * 20, lead="    who  ")

    lines = screen.getvalue().splitlines()
    assert len(lines) == 2
    assert lines[1].startswith("         word")
    assert all(len(line) <= 60 for line in lines)


def test_a_table_in_a_file_is_columns() -> None:
    stream = io.StringIO()

    Paper(stream).table(("name", "n"), [("long name", "1"), ("b", "22")])

    assert stream.getvalue() == "name       n\nlong name  1\nb          22\n"


def test_a_table_without_rows_is_its_head() -> None:
    stream = io.StringIO()

    Paper(stream).table(("name", "n"), [])

    assert stream.getvalue() == "name  n\n"


def test_a_table_on_a_terminal_fits_into_it(screen: Screen) -> None:
    Paper(screen).table(("name", "said"), [("a", "word " * 30)])

    shown = re.sub("\x1b\\[[0-9;]*m", "", screen.getvalue())
    assert all(len(line) <= 60 for line in shown.splitlines())


COLUMNS = ("name", "annotations", "timeout", "rate", "answered", "category")
ROWS = [
    ("http_check", "read-only, open-world", "no limit", "120/minute", "179→162", "network"),
    ("cancel_order", "destructive", "30 s", "10/minute", "2", "utility"),
]


def shown(screen: Screen) -> str:
    return re.sub("\x1b\\[[0-9;]*m", "", screen.getvalue())


@pytest.mark.parametrize("width", [40, 50, 60, 80, 120])
def test_a_table_loses_no_word_and_breaks_none_however_narrow_the_terminal(
    screen: Screen, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))

    Paper(screen).table(COLUMNS, ROWS)

    said = shown(screen)
    assert all(len(line) <= width for line in said.splitlines())
    words = set(said.split())
    assert {word for row in ROWS for cell in row for word in cell.split()} <= words


def test_names_get_lines_of_their_own_where_columns_have_too_little_room(screen: Screen) -> None:
    Paper(screen).table(COLUMNS, ROWS)

    assert shown(screen).splitlines()[:2] == [
        "name",
        "  annotations       timeout   rate        answered  category",
    ]


def test_every_cell_gets_a_line_of_its_own_where_there_is_less_room_still(
    screen: Screen, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")

    Paper(screen).table(COLUMNS, ROWS)

    assert shown(screen).splitlines()[:4] == [
        "http_check",
        "  annotations  read-only, open-world",
        "  timeout      no limit",
        "  rate         120/minute",
    ]


def test_a_word_longer_than_a_line_is_folded_and_not_cut(screen: Screen) -> None:
    Paper(screen).table(("name", "digest"), [("a", "f" * 100)])

    assert shown(screen).count("f") == 100


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain äß 漢", "plain äß 漢"),
        ("two\nlines\tand a tab", "two\nlines\tand a tab"),
        ("\x1b[2Jgone", "\\u001b[2Jgone"),
        ("a\rb", "a\\u000db"),
        ("left\u202eright", "left\\u202eright"),
        ("\x9b31m", "\\u009b31m"),
        ("pay\u3164", "pay\\u3164"),
        ("a\U000e0001b", "a\\udb40\\udc01b"),
    ],
)
def test_what_could_control_a_terminal_is_made_visible(text: str, expected: str) -> None:
    assert printable(text) == expected


def test_text_from_outside_cannot_control_a_terminal(screen: Screen) -> None:
    paper = Paper(screen)

    paper.text("a\x1b[2Jb")
    paper.line("a\x1b[2Jb", lead="\x1b[2J")
    paper.table(("x",), [("a\x1b[2Jb",)])

    assert "\x1b[2J" not in screen.getvalue()


@pytest.mark.parametrize("lead", ["note: ", "error: "])
def test_what_is_said_in_words_breaks_between_them(screen: Screen, lead: str) -> None:
    Paper(screen).line("word " * 20 + "un-brea/kable", lead=lead)

    said = shown(screen)
    assert {word for line in said.splitlines() for word in line.split()} <= {
        *("word", "un-brea/kable"),
        lead.strip(),
    }


def test_text_in_a_file_is_as_it_is() -> None:
    stream = io.StringIO()

    Paper(stream).text("a\x1b[2Jb")

    assert stream.getvalue() == "a\x1b[2Jb\n"


def test_square_brackets_are_no_markup(screen: Screen) -> None:
    Paper(screen).line("[bold]x[/bold]")

    assert screen.getvalue() == "[bold]x[/bold]\n"
