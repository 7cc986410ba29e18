"""`seawall proxy`: what is said on standard error."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.servers import free_port

SCRIPTED = Path(__file__).parents[1] / "mcp" / "proxy" / "servers" / "scripted.py"


def test_a_name_of_the_servers_moves_no_cursor_of_a_terminal(tmp_path: Path) -> None:
    script = json.dumps({"tools": {"a\x1b[2Jb": "reply"}})
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}}
    asks = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
    ]

    ran = subprocess.Popen(
        [
            *(sys.executable, "-m", "seawall", "proxy", "--"),
            *(sys.executable, str(SCRIPTED), str(tmp_path / "heard"), script),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ},
    )
    assert ran.stdin is not None
    assert ran.stdout is not None
    for one in asks:
        ran.stdin.write(json.dumps(one).encode() + b"\n")
        ran.stdin.flush()
        ran.stdout.readline()
    said = ran.communicate(timeout=30)[1].decode()

    assert "cannot be offered: a\\u001b[2Jb" in said
    assert "\x1b" not in said


def test_a_program_that_is_not_there_is_told_to_whoever_started_it_and_to_the_client() -> None:
    ask = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}

    code, said, answered = asked(ask, "--", "no-such-program-here", waits=True)

    answer = json.loads(answered)
    assert answer["id"] == 1
    assert "error" in answer
    assert "'no-such-program-here' was not found; is it installed, and on the PATH?" in said
    assert code == 2


HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}}
ASK = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO}
DIES = "import sys; sys.exit(3)"
DIES_WHEN_ASKED = "import sys; sys.stdin.readline(); sys.exit(3)"


def ended(*command: str, waits: bool) -> tuple[int, str]:
    """Run the proxy for a client that begins; how it ended, and what it said."""
    code, said, _ = asked(ASK, *command, waits=waits)
    return code, said


def asked(ask: dict[str, Any], *command: str, waits: bool) -> tuple[int, str, bytes]:
    """Run the proxy; its client waits for an answer before it ends, or does not."""
    ran = subprocess.Popen(
        [sys.executable, "-m", "seawall", "proxy", *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert ran.stdin is not None
    assert ran.stdout is not None
    ran.stdin.write(json.dumps(ask).encode() + b"\n")
    ran.stdin.flush()
    answered = ran.stdout.readline() if waits else b""
    said = ran.communicate(timeout=30)[1].decode()
    return ran.returncode, said, answered


@pytest.mark.parametrize("server", [DIES, DIES_WHEN_ASKED])
def test_a_server_that_dies_at_its_start_is_an_error_of_the_command(server: str) -> None:
    code, said = ended("--", sys.executable, "-c", server, waits=True)

    assert code == 2
    assert said.splitlines()[-1].startswith("error: the server never answered anything: the server")


def test_an_address_where_nobody_is_is_an_error_of_the_command() -> None:
    code, said = ended("--url", f"http://127.0.0.1:{free_port()}/mcp", waits=True)

    assert code == 2
    assert "error: the server never answered anything: " in said


def test_a_server_that_answered_and_died_later_is_no_error_of_the_command(tmp_path: Path) -> None:
    answer = '{"jsonrpc":"2.0","id":1,"result":{}}'
    server = f"import sys; sys.stdin.readline(); print({answer!r}, flush=True); sys.exit(3)"

    code, said = ended("--", sys.executable, "-c", server, waits=True)

    assert code == 0
    assert "never answered" not in said


def test_a_client_that_ends_is_no_error_of_the_command(tmp_path: Path) -> None:
    script = json.dumps({"tools": {"a": "reply"}})
    command = (sys.executable, str(SCRIPTED), str(tmp_path / "heard"), script)

    assert ended("--", *command, waits=True)[0] == 0
    assert ended("--", *command, waits=False)[0] == 0
