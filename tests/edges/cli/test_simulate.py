"""`seawall policy simulate`: the table, JSON, bounds and their exit code."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner, Result

from seawall.edges.cli.app import app

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(name="folder", autouse=True)
def folder_fixture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    lines = [
        {"trace": 1, "started": 0.0},
        {"about": "find", "hints": {"read_only": True}},
        *(
            {
                "call_id": f"c{number}",
                "tool": "find",
                "attempt": 1,
                "started": 0.0,
                "duration_ms": 100.0,
                "outcome": "success",
                "offset_s": number / 2,
            }
            for number in range(100)
        ),
    ]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (tmp_path / "day.jsonl").write_text(text + '{"call_id": "cut o')
    (tmp_path / "tight.toml").write_text('[tools.find]\nrate = "40/minute"\n')
    return tmp_path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["policy", "simulate", "--trace", "day.jsonl", *arguments])


def test_a_table_says_what_would_change() -> None:
    result = run("--policy", "tight.toml")

    assert result.exit_code == 0
    first, head, row, total, blank, _, refused = result.stdout.splitlines()
    assert first.startswith("100 calls played, 0 refused by gates")
    assert row.split()[:4] == ["find", "100", "100→73", "0→27"]
    assert total.split()[0] == "all"
    assert "refused" in head
    assert (blank, refused.split()) == ("", ["find", "rate_limit", "0→27"])


def test_each_layer_that_refuses_is_told_for_each_tool_and_for_all(folder: Path) -> None:
    with (folder / "day.jsonl").open() as file:
        lines = [json.loads(line) for line in file if line.endswith("\n")]
    others = [{**line, "tool": "keep", "duration_ms": 700.0} for line in lines if "tool" in line]
    text = "".join(json.dumps(line) + "\n" for line in [*lines, *others])
    (folder / "day.jsonl").write_text(text)
    (folder / "tight.toml").write_text(
        '[tools.find]\nrate = "40/minute"\n[tools.keep]\nrate = false\nmax_concurrency = 1\n'
    )

    result = run("--policy", "tight.toml")

    rows = [line.split() for line in result.stdout.partition("\n\n")[2].splitlines()]
    assert rows[1:] == [
        ["find", "rate_limit", "0→27"],
        ["keep", "bulkhead", "0→25"],
        ["all", "bulkhead", "0→25"],
        ["all", "rate_limit", "0→27"],
    ]


def test_nothing_is_said_of_layers_where_nothing_is_refused(folder: Path) -> None:
    (folder / "loose.toml").write_text("[tools.find]\nrate = false\n")

    assert "by the layer" not in run("--policy", "loose.toml").stdout


def test_a_family_of_all_tools_is_not_said_twice(folder: Path) -> None:
    (folder / "family.toml").write_text('[families.everything]\nmatch = "*"\ncost = 1\n')

    result = run("--policy", "family.toml")

    assert "family everything" not in result.stdout
    found = json.loads(run("--policy", "family.toml", "--json").stdout)
    assert list(found["families"]) == ["everything"]


def test_a_bound_that_is_exceeded_ends_with_1() -> None:
    result = run("--policy", "tight.toml", "--max-refused", "1%")

    assert result.exit_code == 1
    assert result.stderr == "exceeded: refused: 27.00% of the calls, at most 1.00% are allowed\n"
    assert run("--policy", "tight.toml", "--max-refused", "27%").exit_code == 0


def test_json_is_the_same_each_time() -> None:
    found = [run("--policy", "tight.toml", "--json", "--seed", "3").stdout for _ in range(2)]

    assert found[0] == found[1]
    assert json.loads(found[0])["tools"]["find"]["lost"] == 27


def test_a_baseline_is_simulated_and_held_against_what_happened() -> None:
    result = run("--policy", "tight.toml", "--baseline", "default")

    assert "would end otherwise than under the baseline" in result.stdout
    assert "differs from what happened in 0 calls" in result.stdout


def test_what_is_no_bound_is_told() -> None:
    result = run("--policy", "tight.toml", "--max-lost", "few")

    assert result.exit_code == 2
    assert "--max-lost: is 'few'; it takes a number of calls, or a share" in result.stderr


def test_tools_that_the_trace_does_not_describe_are_noted(folder: Path) -> None:
    text = (folder / "day.jsonl").read_text().splitlines()
    (folder / "day.jsonl").write_text("\n".join([text[0], *text[2:-1]]) + "\n")

    result = run("--policy", "tight.toml")

    assert "the trace does not say what find is like" in result.stderr


def test_a_trace_without_calls_is_told(folder: Path) -> None:
    (folder / "day.jsonl").write_text("")

    result = run("--policy", "tight.toml")

    assert result.stderr == "note: no call is recorded in day.jsonl\n"
    assert "0 would end otherwise than what happened." in result.stdout


def test_several_files_are_played_as_one(folder: Path) -> None:
    (folder / "day.2.jsonl").write_text((folder / "day.jsonl").read_text())

    result = run("--trace", "day.2.jsonl", "--policy", "tight.toml")

    assert result.exit_code == 0
    assert result.stdout.startswith("200 calls played, 0 refused by gates")
