import json
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.edges.mcp.conftest import NASTY
from typer.testing import CliRunner, Result

from seawall.edges.cli.app import app


class Folder:
    """A folder with a configuration of fixture servers."""

    def __init__(self, path: Path) -> None:
        self.config = path / "mcp.json"
        self.pins = path / "mcp.pins.json"

    def servers(self, **plans: Any) -> None:
        """Write servers that do what their plans say."""
        entries = {
            name: {"command": sys.executable, "args": ["-S", str(NASTY), json.dumps(plan)]}
            if isinstance(plan, dict)
            else {"command": plan}
            for name, plan in plans.items()
        }
        self.config.write_text(json.dumps({"mcpServers": entries}))

    def run(self, *arguments: str, stdin: str | None = None) -> Result:
        """Run a command with the configuration."""
        return CliRunner().invoke(app, [*arguments, "--mcp-config", str(self.config)], input=stdin)


def one(name: str = "t", **fields: Any) -> dict[str, Any]:
    return {"name": name, "description": "d", "inputSchema": {"type": "object"}, **fields}


@pytest.fixture(name="folder")
def folder_fixture(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def test_tools_of_servers_are_listed_and_described(folder: Folder) -> None:
    hints = {"readOnlyHint": True}
    bad = one("bad", inputSchema=[1])
    folder.servers(a={"declared": [one(annotations=hints), bad]})

    listed = folder.run("tools", "--trust", "a")
    described = folder.run("tools", "--describe", "a__bad", "--json")

    assert listed.exit_code == 0
    assert "a__t" in listed.stdout
    assert "read-only" in listed.stdout
    assert "a__bad is set aside" in listed.stderr
    assert json.loads(described.stdout)["input_schema"] == [1]


def test_a_call_reaches_its_server_and_ends_with_the_code_of_its_failure(folder: Folder) -> None:
    folder.servers(a={"tools": {"t": "reply", "die": "kill_self_on_call", "no": "is_error:no"}})

    assert folder.run("call", "a__t", '{"n": 1}').stdout == '{"n": 1}\n'
    assert folder.run("call", "a__die").exit_code == 1
    assert folder.run("call", "a__no").exit_code == 1
    assert folder.run("call", "a__nothing").exit_code == 5


def test_one_server_that_is_down_is_told_of_and_keeps_no_other(folder: Folder) -> None:
    folder.servers(gone="no-such-program", a={"tools": {"t": "reply"}})

    ran = folder.run("call", "a__t", "{}")

    assert (ran.exit_code, ran.stdout) == (0, "{}\n")
    assert "note: MCP server 'gone': is not connected: the program 'no-such-program'" in ran.stderr


def test_tools_of_ones_own_come_beside_those_of_servers(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "own_mcp.py").write_text(
        "from seawall import tool\n\n@tool\nasync def own() -> str:\n    return 'mine'\n"
    )
    monkeypatch.chdir(tmp_path)
    folder.servers(a={"tools": {"t": "reply"}})

    ran = folder.run("tools", "--registry", "own_mcp", "--json")

    assert [tool["name"] for tool in json.loads(ran.stdout)] == ["own", "a__t"]


def test_arguments_are_checked_and_steps_are_run(folder: Folder, tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    folder.servers(a={"declared": [one(inputSchema=schema)], "tools": {"t": "reply"}})
    steps = tmp_path / "steps.json"
    steps.write_text(json.dumps([{"tool": "a__t", "arguments": {"n": n}} for n in (1, 2)]))

    checked = folder.run("check-arguments", "a__t", '{"n": "7"}')
    ran = folder.run("batch", str(steps), "--yes")

    assert (checked.exit_code, ran.exit_code) == (0, 0)
    assert "text to integer" in checked.stdout
    assert '{"n": 2}' in ran.stdout


def test_the_demo_calls_only_what_can_do_no_harm(folder: Folder, tmp_path: Path) -> None:
    log = tmp_path / "log"
    reading = one("read", annotations={"readOnlyHint": True})
    writing = one("write", inputSchema={"type": "object", "required": ["a"]})
    folder.servers(
        a={"declared": [writing, reading], "log": str(log)},
        b={"declared": [writing], "log": str(log)},
        c={"declared": [reading], "log": str(log)},
    )

    ran = folder.run("demo", "--json", "--fast", "--trust", "a")

    events = [json.loads(line) for line in ran.stdout.splitlines()]
    calls = [event for event in events if event["event"] == "server_call"]
    assert [(call["tool"], call["ran"]) for call in calls] == [
        ("a__read", True),
        ("b__write", False),
        ("c__read", False),
    ]
    heard = [json.loads(line) for line in log.read_text().splitlines()]
    called = [one["params"]["name"] for one in heard if one.get("method") == "tools/call"]
    assert called == ["read"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["tools", "--trust", "a"], "error: --trust: says something of MCP servers"),
        (["call", "t", "--pins", "x"], "error: --pins: says something of MCP servers"),
        (["demo", "--trust", "a"], "error: --trust: says something of MCP servers"),
        (["mcp", "servers"], "error: --mcp-config: is missing; give the file"),
        (["mcp", "pins", "show"], "error: --pins: says where accepted definitions are kept"),
    ],
)
def test_options_without_servers_are_refused(arguments: list[str], said: str) -> None:
    ran = CliRunner().invoke(app, arguments)

    assert ran.exit_code == 2
    assert said in ran.stderr


def test_trust_in_no_server_is_refused(folder: Folder) -> None:
    folder.servers(a={})

    ran = folder.run("tools", "--trust", "b")

    assert ran.exit_code == 2
    assert "b: no such server to trust; there are: a" in ran.stderr


def test_a_faulty_configuration_is_told_by_file_and_field(folder: Folder) -> None:
    folder.config.write_text('{"mcpServers": {"a": {"command": 3.5, "args": 1}}}')

    ran = folder.run("tools")

    assert ran.exit_code == 2
    assert f"{folder.config}: mcpServers.a.args: must be a list" in ran.stderr


def test_a_configuration_without_servers_is_told(tmp_path: Path) -> None:
    path = tmp_path / "none.json"
    path.write_text('{"mcpServers": {}}')

    ran = CliRunner().invoke(app, ["mcp", "servers", "--mcp-config", str(path)])

    assert (ran.exit_code, ran.stdout) == (0, "")
    assert ran.stderr == f"{path} names no server.\n"


def test_servers_are_shown_with_their_state(folder: Folder) -> None:
    folder.servers(a={"tools": {"t": "reply"}}, gone="no-such-program")

    table = folder.run("mcp", "servers")
    data = json.loads(folder.run("mcp", "servers", "--json").stdout)

    assert table.exit_code == 1
    assert "2025-11-25" in table.stdout
    assert [(one["name"], one["state"]) for one in data] == [("a", "up"), ("gone", "waiting")]


def test_a_change_is_held_back_shown_and_accepted(folder: Folder) -> None:
    folder.servers(a={"declared": [one()], "tools": {"t": "reply"}})
    assert folder.run("call", "a__t").exit_code == 0
    assert folder.run("mcp", "pins", "show").exit_code == 0
    folder.servers(a={"declared": [one(description="Obey.")], "tools": {"t": "reply"}})

    held = folder.run("call", "a__t")
    shown = folder.run("mcp", "pins", "show")
    data = json.loads(folder.run("mcp", "pins", "show", "--json").stdout)
    digest = data["changes"][0]["digest"]
    wrong = folder.run("mcp", "pins", "accept", "a", "t", "0" * 12)
    accepted = folder.run("mcp", "pins", "accept", "a", "t", digest)

    assert held.exit_code == 9
    assert "description changed" in held.stderr
    assert shown.exit_code == 1
    assert '+  "description": "Obey.",' in shown.stdout
    assert digest in shown.stdout
    assert wrong.exit_code == 2
    assert accepted.exit_code == 0
    assert folder.run("call", "a__t").exit_code == 0


def test_pins_may_stand_elsewhere(folder: Folder, tmp_path: Path) -> None:
    folder.servers(a={"tools": {"t": "reply"}})
    elsewhere = tmp_path / "held.json"

    assert folder.run("call", "a__t", "--pins", str(elsewhere)).exit_code == 0

    assert elsewhere.exists()
    assert not folder.pins.exists()
    shown = CliRunner().invoke(app, ["mcp", "pins", "show", "--pins", str(elsewhere)])
    assert shown.stdout == "1 definition of 1 server are accepted; none has changed.\n"


def test_a_call_to_a_server_that_did_not_start_is_an_error_of_the_configuration(
    folder: Folder,
) -> None:
    folder.servers(a="no-such-program-here", b={"tools": {"t": "reply"}})

    its = folder.run("call", "a__t", "{}", "--yes")
    another = folder.run("call", "b__t", "{}", "--yes")
    unknown = folder.run("call", "b__tt", "{}", "--yes")

    assert its.exit_code == 2
    said = "MCP server 'a': is not connected, so a__t cannot be called: the program"
    assert f"error: {said} 'no-such-program-here' was not found" in its.stderr
    assert another.exit_code == 0
    assert unknown.exit_code == 5
