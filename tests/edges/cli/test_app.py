from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import typer
from typer.testing import CliRunner

from seawall import __version__
from seawall.edges.cli.app import app
from seawall.edges.cli.exits import MEANINGS

if TYPE_CHECKING:
    from collections.abc import Iterator

HEAVY = ("pydantic", "prometheus_client", "rich", "jsonschema_rs", "limits", "pybreaker")


def _seawall(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "seawall", *arguments],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


@pytest.mark.parametrize("arguments", [["version"], ["--version"]])
def test_the_version_is_said(arguments: list[str]) -> None:
    ran = CliRunner().invoke(app, arguments)

    assert (ran.exit_code, ran.stdout) == (0, f"seawall {__version__}\n")


def test_the_commands_are_named_in_the_help() -> None:
    ran = CliRunner().invoke(app, ["--help"])

    for command in ("demo", "tools", "call", "version"):
        assert f"\n  {command} " in ran.stdout


def _groups(command: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    within = getattr(command, "commands", None)
    if within is not None:
        yield words
        for name, one in within.items():
            yield from _groups(one, (*words, name))


GROUPS = tuple(_groups(typer.main.get_command(app)))


@pytest.mark.parametrize("words", GROUPS, ids=" ".join)
def test_a_list_of_commands_says_in_full_what_each_does_on_80_columns(
    words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERMINAL_WIDTH", "80")

    said = CliRunner().invoke(app, [*words, "--help"], terminal_width=80).stdout

    listed = said.partition("Commands:\n")[2].splitlines()
    assert listed
    assert all(line.endswith(".") and not line.endswith("...") for line in listed)
    assert all(len(line) <= 80 for line in listed)


def _commands(command: Any) -> Iterator[Any]:
    for one in getattr(command, "commands", {}).values():
        yield from (one, *_commands(one))


COMMANDS = tuple(_commands(typer.main.get_command(app)))


@pytest.mark.parametrize("command", COMMANDS, ids=lambda one: one.name)
def test_every_option_says_what_it_is_for_and_what_it_takes(command: Any) -> None:
    params = [one for one in command.params if one.name != "help"]

    assert [one.name for one in params if not one.help] == []
    takes = [one for one in params if not getattr(one, "is_flag", False)]
    assert [one.name for one in takes if not one.metavar] == []


def test_without_a_command_the_help_is_shown() -> None:
    assert "Usage: " in CliRunner().invoke(app, []).output


def test_the_help_says_what_each_exit_code_means() -> None:
    ran = CliRunner().invoke(app, ["call", "--help"])

    for code, meaning in MEANINGS.items():
        assert f"{code:d}  {meaning}\n" in ran.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ["frobnicate"],
        ["call"],
        ["tools", "--nope"],
        ["demo", "--seed", "x"],
        ["call", "a", "b", "c"],
    ],
)
def test_a_wrong_command_line_is_a_usage_error(arguments: list[str]) -> None:
    ran = CliRunner().invoke(app, arguments)

    assert ran.exit_code == 2
    assert ran.stdout == ""


def test_every_fault_of_the_configuration_is_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("p.toml").write_text("a = 1\nb = 2\n")

    ran = CliRunner().invoke(app, ["tools", "--policy", "p.toml"])

    assert ran.exit_code == 2
    assert [line.split(":")[:2] for line in ran.stderr.splitlines()] == [["error", " p.toml"]] * 2


@pytest.mark.parametrize("argument", ["--help", "--version"])
def test_help_is_shown_before_anything_heavy_is_loaded(argument: str) -> None:
    code = (
        "import sys, json, atexit\n"
        "atexit.register(lambda: print(json.dumps(sorted(sys.modules)), file=sys.stderr))\n"
        f"sys.argv = ['seawall', {argument!r}]\n"
        "from seawall.edges.cli import main\n"
        "main()\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert set(HEAVY).isdisjoint(json.loads(ran.stderr))


def test_it_runs_as_a_module() -> None:
    ran = _seawall("call", "calculate", '{"expression": "6 * 7"}')

    assert (ran.returncode, json.loads(ran.stdout)["result"], ran.stderr) == (0, "42", "")


def test_an_exit_code_reaches_the_shell() -> None:
    ran = _seawall("call", "calculate", "{}")

    assert ran.returncode == 3
    assert ran.stdout == ""
    assert "Traceback" not in ran.stderr


def test_frames_are_logged_for_those_who_ask(tmp_path: Path) -> None:
    (tmp_path / "crashing.py").write_text("async def crash() -> str:\n    raise ValueError('x')\n")
    arguments = ["call", "crash", "--registry", "crashing:crash"]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}

    def stderr(*options: str) -> str:
        command = [sys.executable, "-m", "seawall", *options, *arguments]
        ran = subprocess.run(
            command, capture_output=True, text=True, env=environment, timeout=30, check=False
        )
        return ran.stderr

    assert "crashing.py:2 in crash" in stderr("--verbose")
    assert "crashing.py" not in stderr()


def test_a_letter_that_the_output_cannot_say_does_not_stop_it() -> None:
    arguments = '{"text": "\\u6f22 \\ud83d\\ude00", "operation": "trim"}'
    ran = subprocess.run(
        [sys.executable, "-m", "seawall", "call", "text_transform", arguments],
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"},
        timeout=30,
        check=False,
    )

    assert ran.returncode == 0
    assert b"\\u6f22" in ran.stdout


def test_a_reader_that_goes_away_leaves_no_traceback() -> None:
    ran = subprocess.run(
        f"{sys.executable} -m seawall tools --json | head -c 1",
        shell=True,
        capture_output=True,
        timeout=30,
        check=False,
    )

    assert b"Traceback" not in ran.stderr
