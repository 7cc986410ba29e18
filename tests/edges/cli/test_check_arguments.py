"""`seawall check-arguments`: what would be mended and what refused, without running anything."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from seawall.edges.cli.app import app
from seawall.edges.cli.check_arguments import _place_and_rule

Module = Callable[[str, str], str]
Run = Callable[..., Result]

TOOLS = """
from pathlib import Path
from seawall import Registry, Tool, tool

registry = Registry()

@registry.tool
async def find(text: str, limit: int = 3, tags: list[str] = [], password: str = "") -> str:
    "Find."
    Path("it-ran").write_text("")
    return text

def shim(arguments):
    raise RuntimeError("broken shim")

registry.register(Tool("shimmed", "d.", {}, find, prepare_arguments=shim))
registry.register(Tool("broken", "d.", {"type": "objct"}, find), on_invalid="quarantine")
registry.register(Tool("secret", "d.", {
    "type": "object",
    "properties": {"key": {"type": "string", "format": "password"}, "n": {"type": "integer"}},
}, find))
"""


@pytest.fixture(name="run")
def run_fixture(module: Module) -> Run:
    where = module("checking", TOOLS)

    def run(*words: str, **more: Any) -> Result:
        options = ["--registry", f"{where}:registry"]
        return CliRunner().invoke(app, ["check-arguments", *words, *options], **more)

    return run


def data_of(run: Run, *words: str, **more: Any) -> Any:
    return json.loads(run(*words, "--json", **more).stdout)


def test_what_is_in_order_is_shown_as_the_tool_would_get_it(run: Run) -> None:
    result = run("find", '{"text": "a", "limit": 2}')

    assert result.exit_code == 0
    assert '"limit": 2' in result.stdout
    assert "mended" not in result.stdout


def test_what_is_mended_is_told_by_place_and_rule(run: Run) -> None:
    result = run("find", '```json\n{"text": 5, "limit": "2", "tags": "x",}\n```')

    assert result.exit_code == 0
    for line in (
        "mended   the whole: code fence",
        "mended   the whole: trailing comma",
        "mended   /text: integer to text",
        "mended   /limit: text to integer",
        "mended   /tags: wrapped in a list",
    ):
        assert line in result.stdout.splitlines()


def test_what_is_refused_is_told_and_ends_with_3(run: Run) -> None:
    result = run("find", '{"limit": "2", "tags": {}}')

    assert result.exit_code == 3
    assert "mended   /limit: text to integer" in result.stdout
    assert "refused  text: missing; expected string" in result.stdout
    assert "refused  tags: " in result.stdout
    assert "Nothing was run." in result.stderr


def test_nothing_is_run(run: Run) -> None:
    run("find", '{"text": "a"}')
    run("find", "{}")

    assert not Path("it-ran").exists()


def test_text_that_is_no_json_is_refused(run: Run) -> None:
    result = run("find", '{"text": "a')

    assert result.exit_code == 3
    assert "cut off" in result.stdout


def test_arguments_may_come_from_standard_input_or_not_at_all(run: Run) -> None:
    assert run("find", "-", input='{"text": "a"}').exit_code == 0
    assert run("find").exit_code == 3


def test_programs_get_json(run: Run) -> None:
    fits = data_of(run, "find", '{"text": "a", "limit": "2"}')
    refused = data_of(run, "find", '{"text": []}')

    assert fits == {
        "tool": "find",
        "valid": True,
        "exit_code": 0,
        "coercion": "careful",
        "mended": [{"path": "/limit", "rule": "text to integer"}],
        "ignored": [],
        "arguments": {"text": "a", "limit": 2},
        "failure": None,
    }
    assert (refused["valid"], refused["exit_code"], refused["arguments"]) == (False, 3, None)
    assert refused["failure"]["issues"][0]["path"] == "/text"


def test_the_policy_says_how_far_is_mended(run: Run) -> None:
    Path("off.toml").write_text('[default]\ncoercion = "off"\n')
    Path("lenient.toml").write_text('[default]\ncoercion = "lenient"\n')
    given = '{"text": "a", "limit": "2"}'

    assert run("find", given, "--policy", "off.toml").exit_code == 3
    assert data_of(run, "find", given, "--policy", "lenient.toml")["mended"] == [
        {"path": "/limit", "rule": "text to integer"}
    ]


def test_a_policy_that_refuses_nothing_is_told(run: Run) -> None:
    Path("shadow.toml").write_text('[default]\ncheck_mode = "shadow"\n')

    result = run("find", "{}", "--policy", "shadow.toml")

    assert result.exit_code == 3
    assert "nothing is refused" in result.stdout


def test_secrets_are_not_shown(run: Run) -> None:
    result = run("secret", '{"key": "s3cret", "n": "5"}')

    assert result.exit_code == 0
    assert "s3cret" not in result.stdout


@pytest.mark.parametrize(
    ("tool", "code", "said"),
    [("fnd", 5, "find"), ("broken", 9, "set aside"), ("shimmed", 4, "broken shim")],
)
def test_what_cannot_be_called_at_all_ends_as_a_call_would(
    run: Run, tool: str, code: int, said: str
) -> None:
    result = run(tool, "{}")

    assert result.exit_code == code
    assert said in result.stderr


@pytest.mark.parametrize(
    ("said", "path", "rule"),
    [
        ("/a text to integer", "/a", "text to integer"),
        ("/a b/0 wrapped in a list", "/a b/0", "wrapped in a list"),
        ("/a null dropped", "/a", "null dropped"),
        ("/a dropped", "/a", "dropped"),
        (" text to object", "", "text to object"),
        ("text to object", "", "text to object"),
        ("/a matched to a listed value", "/a", "matched to a listed value"),
        ("trailing comma", "", "trailing comma"),
        ("and more", "", "and more"),
    ],
)
def test_a_place_is_told_from_a_rule(said: str, path: str, rule: str) -> None:
    assert _place_and_rule(said) == (path, rule)


def test_what_the_tool_does_not_take_is_told_with_the_name_that_was_meant(run: Run) -> None:
    result = run("find", '{"text": "a", "limt": 2, "zzz": 1}')
    data = data_of(run, "find", '{"text": "a", "limt": 2, "zzz": 1}')

    assert result.exit_code == 0
    assert "limt: the tool does not take it; did you mean limit?" in result.stdout
    assert "zzz: the tool does not take it\n" in result.stdout
    assert data["ignored"] == [
        {"name": "limt", "meant": "limit"},
        {"name": "zzz", "meant": None},
    ]
    assert data["arguments"] == {"text": "a"}
