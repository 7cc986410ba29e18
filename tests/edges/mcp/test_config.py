import json
from pathlib import Path
from typing import Any

import pytest

from seawall import ConfigurationError
from seawall.edges.mcp.config import ServerConfig, load_servers, servers_of
from seawall.edges.mcp.variables import Input

ENVIRON = {"TOKEN": "s3cret", "HOME_OF": "/srv"}


def read(data: Any, **options: Any) -> tuple[ServerConfig, ...]:
    return servers_of(data, file="mcp.json", folder="/project", environ=ENVIRON, **options)


def one(entry: Any, **options: Any) -> ServerConfig:
    (found,) = read({"mcpServers": {"s": entry}}, **options)
    return found


def faults(data: Any) -> list[str]:
    with pytest.raises(ConfigurationError) as error:
        read(data)
    return [str(fault) for fault in error.value.faults]


def test_claude_desktop_writes_a_program_with_arguments_and_variables() -> None:
    found = one({"command": "uvx", "args": ["mcp-server-time", "--tz", "UTC"], "env": {"A": "1"}})

    assert found.command == ("uvx", "mcp-server-time", "--tz", "UTC")
    assert found.env == {"A": "1"}
    assert found.transport == "stdio"


def test_cursor_writes_an_address_with_headers() -> None:
    found = one({"url": "https://x.test/mcp", "headers": {"Authorization": "Bearer ${env:TOKEN}"}})

    assert found.transport == "http"
    assert found.headers == {"Authorization": "Bearer s3cret"}


def test_vs_code_writes_servers_with_types_inputs_and_comments(tmp_path: Path) -> None:
    folder = tmp_path / "project" / ".vscode"
    folder.mkdir(parents=True)
    (folder / ".env").write_text('# a comment\nexport A="one two"\nB=2\n\nodd line\n')
    path = folder / "mcp.json"
    path.write_text("""{
      // What is asked for.
      "inputs": [{"type": "promptString", "id": "api-key", "description": "Key", "password": true}],
      "servers": {
        "docs": {"type": "http", "url": "https://x.test/mcp", "headers": {"K": "${input:api-key}"}},
        "local": {
          "type": "stdio", "command": "node", "args": ["${workspaceFolder}/server.js"],
          "envFile": "${workspaceFolder}/.vscode/.env", "env": {"B": "3"}, "cwd": "sub",
        },
      },
    }""")
    asked: list[Input] = []

    def ask(wanted: Input) -> str:
        asked.append(wanted)
        return "typed"

    docs, local = load_servers(path, environ={}, ask=ask)

    assert docs.headers == {"K": "typed"}
    assert local.command == ("node", f"{tmp_path / 'project'}/server.js")
    assert local.env == {"A": "one two", "B": "3"}
    assert local.cwd == str(tmp_path / "project" / "sub")
    assert [(wanted.id, wanted.password) for wanted in asked] == [("api-key", True)]


def test_an_input_is_read_from_the_environment_where_nobody_is_asked() -> None:
    data = {
        "inputs": [{"id": "api-key", "description": "Key of the shop"}],
        "servers": {"s": {"command": "x", "env": {"K": "${input:api-key}"}}},
    }

    (found,) = servers_of(data, environ={"SEAWALL_INPUT_API_KEY": "k"})

    assert found.env == {"K": "k"}
    with pytest.raises(ConfigurationError, match=r"Key of the shop.*SEAWALL_INPUT_API_KEY"):
        servers_of(data, environ={})


def test_settings_of_vs_code_hold_the_servers_one_level_deeper() -> None:
    (found,) = read({"editor.tabSize": 2, "mcp": {"servers": {"s": {"command": "x"}}}})

    assert found.name == "s"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("${TOKEN}", "s3cret"),
        ("${env:TOKEN}-${HOME_OF}", "s3cret-/srv"),
        ("${NOT_THERE:-fallback}", "fallback"),
        ("${env:NOT_THERE:-}", ""),
        ("${workspaceFolderBasename}", "project"),
        ("$TOKEN stays", "$TOKEN stays"),
        ("${}", None),
        ("${NOT_THERE}", None),
        ("${command:extension.pick}", None),
        ("${input:nobody}", None),
    ],
)
def test_variables_are_filled_in_or_told_as_missing(text: str, value: str | None) -> None:
    data = {"mcpServers": {"s": {"command": "x", "args": [text]}}}

    if value is None:
        (said,) = faults(data)
        assert said.startswith("mcp.json: mcpServers.s.args[0]: ")
    else:
        assert read(data)[0].command == ("x", value)


def test_what_is_filled_in_is_not_looked_at_again() -> None:
    found = servers_of(
        {"mcpServers": {"s": {"command": "x", "args": ["${A}"]}}}, environ={"A": "${B}", "B": "no"}
    )

    assert found[0].command == ("x", "${B}")


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ([], "mcp.json: must be an object with mcpServers or servers"),
        ({}, "mcp.json: has neither mcpServers nor servers"),
        ({"servers": {}, "mcpServers": {}}, "mcp.json: has both of them"),
        ({"mcpServers": []}, "mcp.json: mcpServers: must be an object of servers, not a list"),
        (
            {"servers": {"s": "x"}},
            "servers.s: must be an object with a command or a url, not a text",
        ),
        ({"servers": {"s": {}}}, "servers.s: needs a command to start, or a url"),
        ({"servers": {"s": {"command": " "}}}, "servers.s.command: must not be blank"),
        ({"servers": {"s": {"command": ["x"]}}}, "servers.s.command: must be a text, not a list"),
        ({"servers": {"s": {"command": "x", "args": "y"}}}, "servers.s.args: must be a list"),
        ({"servers": {"s": {"command": "x", "args": [{}]}}}, "servers.s.args[0]: must be a text"),
        ({"servers": {"s": {"command": "x", "env": []}}}, "servers.s.env: must be an object"),
        ({"servers": {"s": {"command": "x", "env": {"A": {}}}}}, "servers.s.env.A: must be a text"),
        ({"servers": {"s": {"type": "stdio"}}}, "servers.s: has no command"),
        ({"servers": {"s": {"type": "http"}}}, "servers.s: has no url"),
        ({"servers": {"s": {"type": "sse", "url": "http://x"}}}, "servers.s.type: the old SSE"),
        ({"servers": {"s": {"type": "ws", "url": "ws://x"}}}, "servers.s.type: must be stdio or"),
        ({"servers": {"s": {"url": "x.test/mcp"}}}, "servers.s.url: must be an address"),
        ({"servers": {"s": {"url": "http://[::1"}}}, "servers.s.url: must be an address"),
        (
            {"servers": {"s": {"command": "x", "envFile": "no"}}},
            "servers.s.envFile: /project/no cannot",
        ),
        (
            {"servers": {"s": {"url": "http://x", "headers": {"A": "a\nB: b"}}}},
            "servers.s.headers.A: has a character that cannot stand there",
        ),
        ({"inputs": [1], "servers": {}}, "inputs[0]: must be an object with an id"),
    ],
)
def test_a_fault_names_file_and_field(data: Any, said: str) -> None:
    (found,) = faults(data)

    assert found.startswith("mcp.json: ")
    assert said in found


def test_all_faults_are_told_together() -> None:
    data = {"mcpServers": {"a": {}, "b": {"command": 1.5, "args": [None], "env": 3}}}

    assert len(faults(data)) == 3


def test_fields_that_other_programs_keep_there_are_left_alone() -> None:
    found = one({"command": "x", "alwaysAllow": ["a"], "timeout": 60, "disabled": True})

    assert found.disabled


def test_a_server_shows_none_of_its_secrets() -> None:
    started = one({"command": "x", "args": ["--key=s3cret"], "env": {"K": "s3cret"}})
    spoken_to = one({"url": "https://me:s3cret@x.test/mcp?k=s3cret", "headers": {"K": "s3cret"}})

    assert "s3cret" not in repr(started) + repr(spoken_to)
    assert "x.test" in repr(spoken_to)


def test_servers_of_several_files_are_together_and_never_of_one_name(tmp_path: Path) -> None:
    for name, server in (("a", "time"), ("b", "git"), ("c", "time")):
        (tmp_path / name).write_text(json.dumps({"mcpServers": {server: {"command": "x"}}}))

    found = load_servers([tmp_path / "a", tmp_path / "b"])

    assert [server.name for server in found] == ["time", "git"]
    with pytest.raises(ConfigurationError, match="named like another server: 'time'"):
        load_servers([tmp_path / "a", tmp_path / "c"])


def test_faults_of_several_files_are_told_together(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("{}")

    with pytest.raises(ConfigurationError) as error:
        load_servers([tmp_path / "a", tmp_path / "none"])

    assert {Path(fault.file).name for fault in error.value.faults} == {"a", "none"}
