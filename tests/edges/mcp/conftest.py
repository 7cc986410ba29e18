import contextlib
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, Protocol

import pytest
from tests.servers import free_port
from tests.waiting import until_listening

from seawall.edges.mcp.config import ServerConfig
from seawall.edges.mcp.options import McpOptions
from seawall.edges.mcp.servers import Servers, connect

NASTY = Path(__file__).parent / "fixtures" / "nasty.py"
SERVED = Path(__file__).parent / "fixtures" / "served.py"


def nasty(name: str = "n", **plan: Any) -> ServerConfig:
    """A server of the fixture that does what `plan` says."""
    return ServerConfig(name=name, command=(sys.executable, "-S", str(NASTY), json.dumps(plan)))


class Served:
    """A server made with the SDK, in a process of its own; it can be stopped and started again."""

    def __init__(self, log: Path) -> None:
        self.log = log
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def config(self) -> ServerConfig:
        """How to connect to it."""
        return ServerConfig(
            name="s", url=f"http://127.0.0.1:{self.port}/mcp", headers={"X-Key": "k-123"}
        )

    def start(self, mode: str = "stream") -> None:
        """Start it; comes back when it listens."""
        self.log.touch()
        command = [sys.executable, str(SERVED), str(self.port), str(self.log), mode]
        self._process = subprocess.Popen(command)
        until_listening(self.port, self._process)

    def stop(self) -> None:
        """Kill it."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()


@pytest.fixture(name="served")
def served_fixture(tmp_path: Path) -> Iterator[Served]:
    """A server on HTTP that is not started yet."""
    server = Served(tmp_path / "served.log")
    yield server
    server.stop()


class Connect(Protocol):
    """Connects, and closes when the test has ended."""

    async def __call__(self, *source: Any, **options: Any) -> Servers: ...


@pytest.fixture(name="notes")
def notes_fixture() -> list[str]:
    """What a person was told."""
    return []


@pytest.fixture(name="connected")
async def connected_fixture(notes: list[str]) -> AsyncIterator[Connect]:
    """Gives a function that connects to servers with options."""
    async with contextlib.AsyncExitStack() as stack:

        async def open_all(*source: Any, **options: Any) -> Servers:
            clock = options.pop("clock", None)
            servers = await connect(
                list(source), options=McpOptions(**options), on_note=notes.append, clock=clock
            )
            return await stack.enter_async_context(servers)

        yield open_all


def heard(log: Path, method: str) -> list[dict[str, Any]]:
    """The messages of a method that the fixture was sent."""
    messages = [json.loads(line) for line in log.read_text().splitlines()]
    return [message for message in messages if message.get("method") == method]
