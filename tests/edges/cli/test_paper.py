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


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain äß 漢", "plain äß 漢"),
        ("two\nlines\tand a tab", "two\nlines\tand a tab"),
        ("\x1b[2Jgone", "\\u001b[2Jgone"),
        ("a\rb", "a\\u000db"),
        ("left\u202eright", "left\\u202eright"),
        ("\x9b31m", "\\u009b31m"),
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


def test_text_in_a_file_is_as_it_is() -> None:
    stream = io.StringIO()

    Paper(stream).text("a\x1b[2Jb")

    assert stream.getvalue() == "a\x1b[2Jb\n"


def test_square_brackets_are_no_markup(screen: Screen) -> None:
    Paper(screen).line("[bold]x[/bold]")

    assert screen.getvalue() == "[bold]x[/bold]\n"
