"""A server gets our environment without what is ours alone."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from typing import TYPE_CHECKING

import httpx
import pytest
from tests.edges.mcp.proxy.conftest import LEGACY, SEAWALL
from tests.waiting import until

from seawall.edges.mcp.proxy.environment import for_servers

if TYPE_CHECKING:
    from pathlib import Path

    from tests.edges.mcp.proxy.conftest import Served

STATE = "postgresql://ada:s%40fe-pass-word@db.example/seawall"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SEAWALL_STATE", "sqlite:///s.db"),
        ("SEAWALL_STATE_KEY", "00"),
        ("seawall_token", "x"),
        ("SEAWALL", "1"),
        ("STATE_URL", STATE),
        ("DB_PASSWORD", "s%40fe-pass-word"),
        ("DSN", "postgres://ada:s%40fe-pass-word@other.example/x?a=1"),
        ("KEY_OF_THE_STATE", "0123456789abcdef"),
        ("PGPASSWORD", "else"),
        ("PGPASSFILE", "/home/ada/.pgpass"),
        ("LIMITS_URL", "redis://else"),
    ],
)
def test_what_is_ours_or_repeats_a_secret_of_ours_is_left_out(name: str, value: str) -> None:
    ours = {"SEAWALL_STATE_KEY": "0123456789abcdef"}

    found = for_servers({**ours, name: value, "HOME": "/home/ada"}, [STATE, None], ["LIMITS_URL"])

    assert found == {"HOME": "/home/ada"}


def test_all_else_is_what_it_was() -> None:
    theirs = {
        "PATH": "/usr/bin:/bin",
        "PGPASSWORD": "theirs",
        "API_TOKEN": "theirs-and-long-enough",
        "MY_SEAWALL_NOTE": "x",
        "FLAG": "1",
        "EMPTY": "",
    }

    found = for_servers({**theirs, "SEAWALL_QUIET": "1"}, ["sqlite:///s.db", "", None])

    assert found == theirs


WRITES = """
import json, os, sys
with open(sys.argv[1] + ".part", "w") as file:
    json.dump(dict(os.environ), file)
os.rename(sys.argv[1] + ".part", sys.argv[1])
for line in sys.stdin:
    pass
"""


def secrets(folder: Path) -> dict[str, str]:
    return {
        **os.environ,
        "SEAWALL_STATE": f"sqlite:///{folder}/s.db",
        "SEAWALL_STATE_KEY": "5c" * 32,
        "SEAWALL_ADMIN_TOKEN": "admin-token-of-the-gateway",
        "SEAWALL_TOKEN": "token-of-the-gateway",
        "SEAWALL_PROXY_TOKEN": "token-of-the-proxy",
        "BACKUP_OF_THE_KEY": "5c" * 32,
        "THEIRS": "kept",
    }


async def seen_in(file: Path) -> dict[str, str]:
    await until(file.exists, within_s=20)
    found: dict[str, str] = json.loads(await asyncio.to_thread(file.read_text))
    return found


def is_clean(seen: dict[str, str]) -> bool:
    ours = [name for name in seen if name.startswith("SEAWALL") or name == "BACKUP_OF_THE_KEY"]
    return not ours and seen["THEIRS"] == "kept" and seen["PATH"] == os.environ["PATH"]


async def test_a_server_on_stdio_gets_no_secret_of_ours(tmp_path: Path) -> None:
    file = tmp_path / "seen"
    process = await asyncio.create_subprocess_exec(
        *SEAWALL, "--", sys.executable, "-c", WRITES, str(file),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.DEVNULL,
        env=secrets(tmp_path),
    )  # fmt: skip

    seen = await seen_in(file)
    assert process.stdin is not None
    process.stdin.close()
    await asyncio.wait_for(process.wait(), 20)

    assert is_clean(seen)


async def test_nor_does_one_that_is_offered_over_http(tmp_path: Path, served: Served) -> None:
    file = tmp_path / "seen"
    port = served.proxy("--", sys.executable, "-c", WRITES, str(file), **secrets(tmp_path))
    said = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": LEGACY}
    headers = {"authorization": "Bearer token-of-the-proxy"}

    async with httpx.AsyncClient(trust_env=False) as client:
        posting = client.build_request(
            "POST", f"http://127.0.0.1:{port}/mcp", json=said, headers=headers
        )
        asked = asyncio.create_task(client.send(posting))
        seen = await seen_in(file)
        asked.cancel()

    assert is_clean(seen)
