"""The reference of commands: what each command's `--help` says, on a page of the site."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import typer
from typer.testing import CliRunner

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sphinx.application import Sphinx

PAGE = "reference/commands"


def setup(app: Sphinx) -> dict[str, Any]:
    """Add the texts as the page is read."""
    app.connect("source-read", add_help)
    return {"parallel_read_safe": True}


def add_help(_app: Sphinx, page: str, source: list[str]) -> None:
    """Put the help of every command below the page."""
    if page == PAGE:
        source[0] += "".join(
            f"\n## {' '.join(('seawall', *words))}\n\n```text\n{help_of(words)}\n```\n"
            for words in commands()
        )


def commands() -> Iterator[tuple[str, ...]]:
    """Every command as it is typed, first the program itself."""
    from seawall.edges.cli.app import app as program  # noqa: PLC0415 - typer is for this page only

    yield from leaves(typer.main.get_command(program), ())


def leaves(command: Any, words: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Give a command, and those within it."""
    yield words
    for name, within in getattr(command, "commands", {}).items():
        yield from leaves(within, (*words, name))


def help_of(words: tuple[str, ...]) -> str:
    """Run a command with `--help`."""
    from seawall.edges.cli.app import app as program  # noqa: PLC0415 - as above

    wide = {"COLUMNS": "96", "TERMINAL_WIDTH": "96", "NO_COLOR": "1"}
    done = CliRunner().invoke(program, [*words, "--help"], env={**os.environ, **wide})
    if done.exit_code:
        raise RuntimeError(f"seawall {' '.join(words)} --help ended with {done.exit_code}")
    return done.output.strip()
