"""`seawall proxy`: what is said on standard error."""

import json
import os
import subprocess
import sys
from pathlib import Path

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
    ran = subprocess.Popen(
        [sys.executable, "-m", "seawall", "proxy", "--", "no-such-program-here"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert ran.stdin is not None
    assert ran.stdout is not None
    ran.stdin.write(json.dumps(ask).encode() + b"\n")
    ran.stdin.flush()
    answer = json.loads(ran.stdout.readline())
    said = ran.communicate(timeout=30)[1].decode()

    assert answer["id"] == 1
    assert "error" in answer
    assert "'no-such-program-here' was not found; is it installed, and on the PATH?" in said
    assert ran.returncode == 2
