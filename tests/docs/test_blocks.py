"""Every code block of README and docs is run as it stands, in the order of its page.

The Python blocks of a page share a namespace and an event loop, all blocks share a folder. How a
page tells the harness more than it tells a reader:

    a first line that is a comment with a file's name    the block is saved under it as well
    <!-- saved as NAME --> before a block                the same, where it can have no comment
    <!-- output --> before a text block                  what the block above printed, `…` anything
    <!-- not run: why --> before a block                 it is only looked at
    # exits with 5                                       ends a command that does not end well
"""

from __future__ import annotations

import ast
import asyncio
import contextlib
import importlib
import inspect
import io
import json
import os
import re
import subprocess
import sys
import types
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from seawall import Policies

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
LANGUAGES = {"python", "bash", "toml", "json", "text"}
QUICK_START = "Quick start"

FENCE = re.compile(r"^(?P<ticks>```+)(?P<language>.*)$")
COMMENT = re.compile(r"^<!-- (?P<said>.+?) -->$")
FILE_NAME = re.compile(r"^# (?P<name>[\w-]+\.(?:py|toml|json))\n")
SAVED_AS = re.compile(r"saved as (?P<name>[\w.-]+)")
EXIT_CODE = re.compile(r"  # exits with (?P<code>\d+)$", re.MULTILINE)


class Block(NamedTuple):
    language: str
    text: str
    line: int
    """Of its first line in the page, from 1."""
    mark: str
    """What the comment right above it says."""
    section: str
    """The second-level heading above it."""

    @property
    def is_run(self) -> bool:
        return self.language != "text" and not self.mark.startswith("not run")


def blocks_of(page: str) -> list[Block]:
    found: list[Block] = []
    mark = section = ""
    lines = iter(enumerate(page.split("\n"), 1))
    for number, line in lines:
        fence = FENCE.match(line)
        if fence is not None:
            body = _body(fence["ticks"], lines, number)
            found.append(Block(fence["language"], body, number + 1, mark, section))
        if line.startswith("## "):
            section = line.removeprefix("## ")
        comment = COMMENT.match(line)
        if line.strip():
            mark = "" if comment is None else comment["said"]
    return found


def _body(ticks: str, lines: Iterator[tuple[int, str]], number: int) -> str:
    body: list[str] = []
    for _, line in lines:
        if line == ticks:
            return "".join(f"{one}\n" for one in body)
        body.append(line)
    raise AssertionError(f"the block that begins in line {number} never ends")


def page_id(page: Path) -> str:
    return str(page.relative_to(ROOT))


class Run:
    """One page being run."""

    def __init__(self, page: Path, folder: Path, runner: asyncio.Runner) -> None:
        self._page = page
        self._folder = folder
        self._runner = runner
        self._module = types.ModuleType(re.sub(r"\W", "_", page_id(page)))
        self._run: dict[str, Callable[[Block], str]] = {
            "python": self._python,
            "bash": self._bash,
            "toml": self._toml,
            "json": self._json,
        }

    def all(self) -> None:
        sys.modules[self._module.__name__] = self._module  # where dataclasses look for names
        try:
            self._blocks()
        finally:
            del sys.modules[self._module.__name__]

    def _blocks(self) -> None:
        printed: str | None = None
        for block in blocks_of(self._page.read_text(encoding="utf-8")):
            where = f"{page_id(self._page)}:{block.line}"
            if block.mark == "output":
                assert printed is not None, f"{where}: the block above was not run"
                assert matches(block.text, printed), f"{where}: printed was\n{printed}"
            printed = None
            if block.is_run and not is_quick_start(self._page, block):
                self._save(block)
                try:
                    printed = self._run[block.language](block)
                except Exception as error:
                    error.add_note(f"in the block at {where}")
                    raise

    def _save(self, block: Block) -> None:
        named = FILE_NAME.match(block.text) or SAVED_AS.fullmatch(block.mark)
        if named is not None:
            (self._folder / named["name"]).write_text(block.text, encoding="utf-8")

    def _python(self, block: Block) -> str:
        # Empty lines before it, so that a traceback names the line of the page.
        code = compile(
            "\n" * (block.line - 1) + block.text,
            str(self._page),
            "exec",
            flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT,
            dont_inherit=True,
        )
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            waiting = eval(code, vars(self._module))
            if code.co_flags & inspect.CO_COROUTINE:
                self._runner.run(waiting)
        return printed.getvalue()

    def _bash(self, block: Block) -> str:
        return "".join(self._command(line) for line in commands_of(block.text))

    def _command(self, command: str) -> str:
        expected = EXIT_CODE.search(command)
        done = subprocess.run(
            ["bash", "-uo", "pipefail", "-c", command],
            cwd=self._folder,
            env={**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
            check=False,
        )
        code = int(expected["code"]) if expected else 0
        assert done.returncode == code, f"{command}\nended with {done.returncode}:\n{done.stdout}"
        return done.stdout

    def _toml(self, block: Block) -> str:
        path = self._folder / "block_of_the_page.toml"
        path.write_text(block.text, encoding="utf-8")
        Policies.load(path)
        return ""

    def _json(self, block: Block) -> str:
        json.loads(block.text)
        return ""


def is_quick_start(page: Path, block: Block) -> bool:
    """Whether a block installs: that is done by whoever follows the page, in a new folder."""
    return page.name == "README.md" and block.section == QUICK_START


def commands_of(text: str) -> list[str]:
    lines = text.replace("\\\n", "").split("\n")
    return [line for line in lines if line.strip() and not line.startswith("#")]


def matches(expected: str, printed: str) -> bool:
    pattern = ".*?".join(map(re.escape, expected.strip().split("…")))
    plain = "\n".join(line.rstrip() for line in printed.strip().split("\n"))
    return re.fullmatch(pattern, plain, re.DOTALL) is not None


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_the_blocks_of_a_page_do_what_it_says(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    before = set(sys.modules)
    importlib.invalidate_caches()

    try:
        with asyncio.Runner() as runner:
            Run(page, tmp_path, runner).all()
    finally:
        for name in set(sys.modules) - before:
            if _is_below(sys.modules[name], tmp_path):
                del sys.modules[name]


def _is_below(module: types.ModuleType, folder: Path) -> bool:
    return folder in Path(getattr(module, "__file__", None) or "/").parents


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_blocks_are_of_known_languages_and_exempt_only_for_a_reason(page: Path) -> None:
    faults = [
        f"line {block.line}: {block.language or 'no language'}, {block.mark!r}"
        for block in blocks_of(page.read_text(encoding="utf-8"))
        if block.language not in LANGUAGES
        or re.fullmatch(r"not run(?!: \S.{9,})(.*)", block.mark)
        or (block.mark == "output" and block.language != "text")
    ]

    assert faults == []


def test_quick_start_has_two_command_blocks_of_one_chain_each() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")

    found = [block for block in blocks_of(readme) if block.section == QUICK_START]

    assert [block.language for block in found] == ["bash", "bash"]
    demo, tests = (commands_of(block.text) for block in found)
    assert demo == ["python3 -m venv .venv && .venv/bin/pip install . && .venv/bin/seawall demo"]
    assert tests == [
        ".venv/bin/pip install -e '.[test]' && .venv/bin/python -m pytest -q -n 3 --dist worksteal"
    ]


@pytest.mark.parametrize(
    ("expected", "printed", "same"),
    [
        ("a\nb", "a\nb\n", True),
        ("a …", "a anything\nand more\n", True),
        ("a…c", "abc", True),
        ("a", "a\nb", False),
        ("a.c", "abc", False),
    ],
)
def test_an_output_is_compared_as_a_whole(expected: str, printed: str, same: bool) -> None:
    assert matches(expected, printed) is same


def test_blocks_are_found_with_their_line_their_comment_and_their_section() -> None:
    page = "# T\n\n## S\n\n<!-- not run: needs a network -->\n```bash\nls\n```\n\n```text\n```\n"

    assert blocks_of(page) == [
        Block("bash", "ls\n", 7, "not run: needs a network", "S"),
        Block("text", "", 11, "", "S"),
    ]
