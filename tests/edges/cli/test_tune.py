"""`seawall policy tune`: a policy file to review."""

from __future__ import annotations

import json
import random
import tomllib
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner, Result

from seawall.edges.cli.app import app
from seawall.policy.model import Policies

if TYPE_CHECKING:
    from pathlib import Path

ODD = 'a"b] # x'
"""A name that would break its line, if it were written as it is."""


@pytest.fixture(name="folder", autouse=True)
def folder_fixture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    chance = random.Random(1)
    lines: list[dict[str, object]] = [
        {"trace": 1, "started": 0.0},
        {"about": "find", "hints": {"read_only": True}},
        {"about": ODD},
    ]
    lines += [
        {
            "call_id": f"c{number}",
            "tool": "find" if number < 1400 else ODD,
            "attempt": 1,
            "started": 0.0,
            "duration_ms": chance.uniform(500, 2000),
            "outcome": "success",
            "offset_s": number * 2.0,
        }
        for number in range(1410)
    ]
    (tmp_path / "day.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return tmp_path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["policy", "tune", "--trace", "day.jsonl", *arguments])


def test_what_is_written_is_a_policy_that_changes_what_it_says(folder: Path) -> None:
    result = run("--output", "proposed.toml")

    assert result.exit_code == 0
    text = (folder / "proposed.toml").read_text()
    assert tomllib.loads(text)["tools"]["find"]["timeout_s"] == 12
    assert "timeout_s = 12  # was 30\n#   of 1400 attempts half take up to" in text
    assert Policies.load(folder / "proposed.toml")
    checked = CliRunner().invoke(app, ["policy", "check", "proposed.toml"])
    assert checked.exit_code == 0


def test_a_tool_of_which_little_is_known_is_named_and_its_name_stays_in_its_comment() -> None:
    result = run()

    assert '#   a"b] # x: 10 calls with 10 attempts are too few' in result.stdout
    assert set(tomllib.loads(result.stdout)["tools"]) == {"find"}


def test_what_is_assumed_for_lack_of_a_policy_is_told() -> None:
    result = run()

    said = "no --policy was given, so the calls are taken as recorded under default"
    assert result.stderr == f"note: {said}\n"
    assert f"# Note: {said}\n" in result.stdout
    assert run("--policy", "default").stderr == ""


def test_a_policy_that_the_calls_were_not_recorded_under_is_told(folder: Path) -> None:
    (folder / "tight.toml").write_text('[tools.find]\nrate = "4/hour"\n')

    result = run("--policy", "tight.toml")

    said = "1393 of 1410 calls ended otherwise than they would under tight.toml"
    assert result.stderr == f"note: {said}: was it recorded under that?\n"


def test_calls_that_do_not_fit_the_policy_that_is_assumed_are_told(folder: Path) -> None:
    text = (folder / "day.jsonl").read_text().replace("offset_s", "no_offset")
    (folder / "day.jsonl").write_text(text)

    result = run()

    assert "recorded under default; " in result.stderr
    assert "of 1410 calls ended otherwise than under that: give the one it was" in result.stderr


def test_why_no_rate_is_proposed_is_told_in_the_file(folder: Path) -> None:
    (folder / "own.toml").write_text('extends = "default"\n[tools.find]\nrate_key = "caller"\n')

    result = run("--policy", "own.toml")

    assert (
        "# Not proposed, although there are calls enough:\n"
        "#   find: no rate, because rate_key counts it for each caller, and a rate is\n"
        "#     proposed only where all calls of a tool share it\n"
    ) in result.stdout
    assert tomllib.loads(result.stdout)


def test_no_comment_is_wider_than_a_terminal(folder: Path) -> None:
    text = (folder / "day.jsonl").read_text()
    odd = json.dumps("# ] = and so on;" * 4)
    (folder / "day.jsonl").write_text(text.replace(json.dumps(ODD), odd))
    (folder / "own.toml").write_text('extends = "default"\n[tools.find]\nrate_key = "caller"\n')

    said = run("--policy", "own.toml").stdout

    assert max(map(len, said.splitlines())) <= 80
    assert set(tomllib.loads(said)) <= {"extends", "tools"}


def test_a_tool_that_nothing_is_to_be_changed_for_is_named(folder: Path) -> None:
    run("--policy", "default", "--output", "proposed.toml")

    result = run("--policy", "proposed.toml")

    assert "# Nothing to change for:\n#   find\n" in result.stdout


def test_a_file_of_ones_own_is_extended(folder: Path) -> None:
    (folder / "own.toml").write_text('[tools.find]\ntimeout_s = "3s"\n')

    result = run("--policy", "own.toml", "--output", "proposed.toml", "--json")

    assert 'extends = "own.toml"' in (folder / "proposed.toml").read_text()
    keys = [one["key"] for one in json.loads(result.stdout)["proposals"]]
    assert "timeout_s" not in keys


def test_a_file_that_cannot_be_written_is_told() -> None:
    result = run("--output", "no/proposed.toml")

    assert result.exit_code == 2
    assert "no/proposed.toml: cannot be written" in result.stderr
