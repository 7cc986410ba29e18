import asyncio
import contextlib
import json
import sys
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, Protocol

import pytest

from seawall.edges.mcp.config import ServerConfig
from seawall.edges.mcp.options import McpOptions
from seawall.edges.mcp.servers import Servers, connect

NASTY = Path(__file__).parent / "fixtures" / "nasty.py"


def nasty(name: str = "n", **plan: Any) -> ServerConfig:
    """A server of the fixture that does what `plan` says."""
    return ServerConfig(name=name, command=(sys.executable, "-S", str(NASTY), json.dumps(plan)))


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


async def until(true: Callable[[], Any], seconds: float = 5.0) -> None:
    """Wait until something holds; fail if it never does."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it never came to hold"
        await asyncio.sleep(0.01)


def heard(log: Path, method: str) -> list[dict[str, Any]]:
    """The messages of a method that the fixture was sent."""
    messages = [json.loads(line) for line in log.read_text().splitlines()]
    return [message for message in messages if message.get("method") == method]
