import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from seawall.contract.failure import Failure, FailureCode
from seawall.edges.cli.app import app
from seawall.edges.cli.exits import exit_of

Module = Callable[[str, str], str]

TOOLS = """
import asyncio
from seawall import (
    Annotations, Failure, FailureCode, ImageContent, TextContent, ToolFailed, ToolResult, tool
)

@tool
async def greet(name: str, times: int = 1) -> str:
    return " ".join([f"Hello {name}"] * times)

@tool(annotations=Annotations.for_destroying())
async def wipe(path: str) -> str:
    return f"wiped {path}"

@tool
async def fail(code: str) -> str:
    raise ToolFailed(Failure(code=FailureCode(code), message="so it is"))

@tool
async def crash() -> str:
    raise ValueError("token=abcdefgh broke")

@tool(annotations=Annotations.for_changing())
async def hang() -> str:
    await asyncio.Event().wait()

@tool
async def picture() -> object:
    return (TextContent(text="look"), ImageContent(data="QUJD", mime_type="image/png"))

tools = [greet, wipe, fail, crash, hang, picture]
"""


@pytest.fixture(name="run")
def run_fixture(module: Module) -> Callable[..., Result]:
    where = module("calling", TOOLS) + ":tools"

    def run(*arguments: str, stdin: str | None = None) -> Result:
        return CliRunner().invoke(app, ["call", *arguments, "--registry", where], input=stdin)

    return run


Run = Callable[..., Result]


def test_the_answer_of_a_tool_is_written(run: Run) -> None:
    ran = run("greet", '{"name": "Ada"}')

    assert (ran.exit_code, ran.stdout, ran.stderr) == (0, "Hello Ada\n", "")


def test_a_bundled_tool_needs_no_registry() -> None:
    ran = CliRunner().invoke(app, ["call", "calculate", '{"expression": "0.1 + 0.2"}'])

    assert json.loads(ran.stdout) == {"result": "0.3", "exact": True}


def test_arguments_are_read_as_a_model_sends_them(run: Run) -> None:
    ran = run("greet", """```json\n{"name": "Ada", "times": "2",}\n```""")

    assert ran.stdout == "Hello Ada Hello Ada\n"


def test_arguments_come_from_standard_input_too(run: Run) -> None:
    assert run("greet", "-", stdin='{"name": "Ada"}').stdout == "Hello Ada\n"


def test_no_arguments_are_an_empty_object(run: Run) -> None:
    assert run("picture").exit_code == 0


def test_what_is_no_text_is_named(run: Run) -> None:
    assert run("picture").stdout == "look\n[image; its data is shown by --json]\n"


@pytest.mark.parametrize("code", [code.value for code in FailureCode])
def test_the_exit_code_says_how_a_call_failed(run: Run, code: str) -> None:
    ran = run("fail", json.dumps({"code": code}))

    assert ran.exit_code == exit_of(Failure(code=FailureCode(code), message="m"))
    assert ran.stdout == ""
    assert "so it is" in ran.stderr


def test_a_crash_is_said_without_frames_and_secrets(run: Run) -> None:
    ran = run("crash")

    assert ran.exit_code == 1
    assert "ValueError: token=… broke" in ran.stderr
    assert "Traceback" not in ran.stderr
    assert "abcdefgh" not in ran.stderr


def test_invalid_arguments_are_all_named(run: Run) -> None:
    ran = run("greet", '{"times": "many"}')

    assert ran.exit_code == 3
    assert "name: missing" in ran.stderr
    assert "times: expected integer" in ran.stderr


def test_an_unknown_tool_gets_near_names(run: Run) -> None:
    ran = run("gret")

    assert ran.exit_code == 5
    assert "Near names: greet" in ran.stderr


def test_a_risky_tool_is_refused_where_nobody_can_be_asked(run: Run) -> None:
    ran = run("wipe", '{"path": "/a"}')

    assert ran.exit_code == 4
    assert "--yes" in ran.stderr


def test_a_risky_tool_runs_with_a_word_given_beforehand(run: Run) -> None:
    assert run("wipe", '{"path": "/a"}', "--yes").stdout == "wiped /a\n"


@pytest.mark.parametrize("option", ["--timeout", "--deadline"])
def test_a_call_can_be_given_less_time(run: Run, option: str) -> None:
    ran = run("hang", option, "0.01")

    assert ran.exit_code == 6
    # On a busy machine a deadline may be over before there is an attempt to give up.
    assert re.search(r"hang (gave no answer|was not answered) within", ran.stderr)


@pytest.mark.parametrize("value", ["10ms", "0.01s", "0.01"])
def test_a_time_may_have_a_unit(run: Run, value: str) -> None:
    assert run("hang", "--timeout", value).exit_code == 6


@pytest.mark.parametrize("value", ["0", "-1", "nan", "inf", "soon", "2 weeks", "0s"])
def test_a_time_that_is_none_is_a_usage_error(run: Run, value: str) -> None:
    assert run("hang", "--timeout", value).exit_code == 2


def test_json_says_everything_about_an_answer(run: Run) -> None:
    ran = run("picture", "--json")

    said = json.loads(ran.stdout)
    assert said.pop("duration_ms") >= 0
    assert said.pop("call_id")
    assert said == {
        "tool": "picture",
        "is_error": False,
        "exit_code": 0,
        "text": "look",
        "content": [
            {"type": "text", "text": "look"},
            {"type": "image", "data": "QUJD", "mimeType": "image/png"},
        ],
        "structured_content": None,
        "failure": None,
        "attempts": 1,
    }


def test_json_says_why_a_call_failed(run: Run) -> None:
    ran = run("greet", "{}", "--json")

    said = json.loads(ran.stdout)
    assert ran.exit_code == said["exit_code"] == 3
    assert said["is_error"] is True
    assert said["failure"]["reason"] == "argument_missing"
    assert said["failure"]["issues"][0]["path"] == "/name"
    assert ran.stderr == ""


def test_a_policy_decides_who_is_asked(run: Run) -> None:
    Path("mine.toml").write_text('[risk]\nask_from = "low"\n')

    assert run("greet", '{"name": "Ada"}', "--policy", "mine.toml").exit_code == 4


def test_a_misspelt_policy_is_noted(run: Run) -> None:
    Path("mine.toml").write_text("[tools.gret]\ntimeout_s = 3\n")

    ran = run("greet", '{"name": "Ada"}', "--policy", "mine.toml")

    assert ran.exit_code == 0
    assert "did you mean greet?" in ran.stderr


def test_a_faulty_policy_is_a_usage_error_with_its_line(run: Run) -> None:
    Path("mine.toml").write_text("[tools.greet]\ntimeout_s = -3\nretries = 1\n")

    ran = run("greet", "{}", "--policy", "mine.toml")

    assert ran.exit_code == 2
    assert "mine.toml:2" in ran.stderr
    assert "mine.toml:3" in ran.stderr
    assert ran.stdout == ""


def test_a_policy_that_cannot_work_for_a_tool_is_a_usage_error(run: Run) -> None:
    Path("mine.toml").write_text('[tools.greet]\nrate = "2/minute"\ncost = 3\n')

    assert run("greet", "{}", "--policy", "mine.toml").exit_code == 2


def test_more_input_than_any_call_may_have_is_not_read(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("seawall.edges.cli.call.MAX_INPUT", 10)

    ran = run("greet", "-", stdin="x" * 11)

    assert ran.exit_code == 2
    assert "more than 10 characters" in ran.stderr


def _on_a_terminal(arguments: list[str], typed: str) -> tuple[int, str]:
    """Run a command with a terminal at all three ends, on which somebody types."""
    pty = pytest.importorskip("pty", reason="needs terminals of the system")
    ours, theirs = pty.openpty()
    os.write(ours, typed.encode())
    command = [sys.executable, "-m", "seawall", "call", *arguments]
    ran = subprocess.run(
        command, stdin=theirs, stdout=theirs, stderr=theirs, timeout=30, check=False
    )
    os.close(theirs)
    said = b""
    try:
        while piece := os.read(ours, 4096):
            said += piece
    except OSError:  # how Linux tells the end of a terminal's output
        pass
    os.close(ours)
    return ran.returncode, said.decode()


@pytest.mark.parametrize(
    ("typed", "code", "said"),
    [("y\n", 0, "wiped /a"), ("s\n", 0, "wiped /a"), ("n\n", 4, "approval denied")],
)
def test_a_person_at_a_terminal_is_asked(module: Module, typed: str, code: int, said: str) -> None:
    where = module("asking", TOOLS) + ":tools"

    ended, shown = _on_a_terminal(["wipe", '{"path": "/a"}', "--registry", where], typed)

    assert "wipe needs your word (high risk)" in shown
    assert said in shown
    assert ended == code


def test_an_error_at_a_terminal_breaks_between_words(
    module: Module, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    where = module("asking", TOOLS) + ":tools"

    ended, shown = _on_a_terminal(["wiep", "{}", "--registry", where], "")

    assert ended == 5
    assert max(map(len, shown.splitlines())) <= 80
    said = 'no tool has the name "wiep"; there are 6 tools. Nothing was run. Near names: wipe.'
    assert said in " ".join(shown.split())
