"""`seawall batch`: the steps of a file, their output and the exit codes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from seawall.edges.cli.app import app

Module = Callable[[str, str], str]
Run = Callable[..., Result]

TOOLS = """
from seawall import Annotations, Registry, tool

registry = Registry()

@registry.tool(annotations=Annotations.for_reading())
async def read(path: str) -> str:
    "Read."
    return f"text of {path}"

@registry.tool
async def count(text: str, most: int = 3) -> int:
    "Count."
    return min(len(text), most)

@registry.tool(annotations=Annotations.for_destroying())
async def wipe(path: str) -> str:
    "Wipe."
    return "wiped"

@registry.tool
async def fail() -> str:
    "Fail."
    raise ValueError("boom")
"""


@pytest.fixture(name="run")
def run_fixture(module: Module) -> Run:
    where = module("batching", TOOLS)

    def run(steps: Any, *options: str, **more: Any) -> Result:
        text = steps if isinstance(steps, str) else json.dumps(steps)
        Path("steps.json").write_text(text)
        arguments = ["batch", "steps.json", "--registry", f"{where}:registry", *options]
        return CliRunner().invoke(app, arguments, **more)

    return run


READ = {"tool": "read", "arguments": {"path": "a.txt"}}


def test_steps_run_in_order_and_the_report_is_written(run: Run) -> None:
    ran = run([READ, {"tool": "count", "arguments": {"text": "{0}"}}])

    assert ran.exit_code == 0
    assert ran.stdout == (
        "2 of 2 steps succeeded.\n\n[0] read: done\ntext of a.txt\n\n[1] count: done\n3\n"
    )


def test_a_placeholder_may_stand_bare_and_the_budget_in_the_file(run: Run) -> None:
    text = (
        '{"budget_s": 5, "steps": [{"tool": "count", "arguments": {"text": "abcdef", "most": 2}},'
        ' {"tool": "count", "arguments": {"text": "abcdef", "most": {0}}}]}'
    )

    assert run(text).stdout.endswith("[1] count: done\n2\n")


def test_the_exit_code_is_that_of_the_step_that_failed(run: Run) -> None:
    ran = run([READ, {"tool": "fail"}, READ])

    assert ran.exit_code == 1
    assert "[2] read: not executed\nNot executed: an earlier action" in ran.stdout


@pytest.mark.parametrize(
    ("steps", "code", "said"),
    [
        ([], 3, "call that tool directly"),
        ([{"tool": "read"}], 3, "path"),
        ([{"tool": "reed"}], 5, 'no tool has the name "reed"'),
        ([READ, {"tool": "wipe", "arguments": {"path": "a"}}], 4, "allow it with --yes"),
        ("nonsense", 3, "not JSON"),
        ([READ, {"tool": "read", "arguments": {"path": "{3}"}}], 3, "write {{3}}"),
    ],
)
def test_what_keeps_all_from_running_is_told_on_standard_error(
    run: Run, steps: Any, code: int, said: str
) -> None:
    ran = run(steps)

    assert ran.exit_code == code
    assert ran.stdout == ""
    assert said in ran.stderr


def test_yes_allows_all_steps(run: Run) -> None:
    ran = run([{"tool": "wipe", "arguments": {"path": name}} for name in "ab"], "--yes")

    assert ran.exit_code == 0
    assert ran.stdout.count("wiped") == 2


@pytest.mark.parametrize("budget", ["0.5", "601", "nan"])
def test_a_budget_out_of_range_is_refused(run: Run, budget: str) -> None:
    ran = run([READ], "--budget", budget)

    assert ran.exit_code == 3
    assert "budget_s must be 1 to 600 seconds" in ran.stderr


def test_what_a_policy_probably_did_not_mean_is_noted(run: Run) -> None:
    Path("mine.toml").write_text("[tools.rea]\ntimeout_s = 3\n")

    ran = run([READ], "--policy", "mine.toml")

    assert ran.exit_code == 0
    assert "note: " in ran.stderr


def test_a_file_that_is_too_large_is_refused(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seawall.edges.cli.batch.MAX_INPUT", 10)

    assert "holds more than 10 characters" in run([READ]).stderr


def test_a_policy_is_taken(run: Run) -> None:
    assert run([READ], "--policy", "strict").exit_code == 0
    assert run([READ], "--policy", "none.toml").exit_code == 2


def test_json_says_everything(run: Run) -> None:
    ran = run([READ, {"tool": "fail"}, READ], "--json")

    told = json.loads(ran.stdout)
    assert (told["complete"], told["at_step"], told["timed_out"]) == (False, 1, False)
    assert (told["exit_code"], ran.exit_code) == (1, 1)
    assert [step["status"] for step in told["steps"]] == ["executed", "failed", "not_executed"]
    assert told["steps"][0]["text"] == "text of a.txt"
    assert told["refusal"] is None


def test_json_says_why_nothing_was_run(run: Run) -> None:
    told = json.loads(run([{"tool": "reed"}], "--json").stdout)

    assert told["refusal"]["hints"] == ["read"]
    assert told["steps"] == []


def test_steps_may_come_from_standard_input() -> None:
    steps = [{"tool": "calculate", "arguments": {"expression": "6 * 7"}}]

    ran = CliRunner().invoke(app, ["batch", "-"], input=json.dumps(steps))

    assert ran.exit_code == 0
    assert "42" in ran.stdout


def test_a_file_that_cannot_be_read_is_a_usage_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("bad.json").write_bytes(b"\xff")

    missing = CliRunner().invoke(app, ["batch", "none.json"])
    no_text = CliRunner().invoke(app, ["batch", "bad.json"])

    assert (missing.exit_code, no_text.exit_code) == (2, 2)
    assert "none.json: cannot be read" in missing.stderr
    assert "bad.json: is no UTF-8 text" in no_text.stderr
