"""`seawall serve --workers` as real processes, for tests."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from contextlib import ExitStack, closing, contextmanager
from typing import TYPE_CHECKING, Any, Protocol

import httpx
from tests.waiting import Lines

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

WITHIN_S = 90.0
ADMIN = "admin-token-0123456789"
CALLER = "caller-token-0123456789"

TOOLS = textwrap.dedent(
    """
    import asyncio, os, pathlib, time
    from seawall import Annotations, tool

    def mark(name):
        with open("marks", "a") as file:
            file.write(f"{name} {os.getpid()}\\n")

    @tool(annotations=Annotations.for_reading())
    async def who() -> str:
        "Say which process this is."
        return str(os.getpid())

    @tool(annotations=Annotations.for_reading())
    async def read(seconds: float = 0.0) -> str:
        "Read, and leave a mark."
        mark("read")
        await asyncio.sleep(seconds)
        return f"read by {os.getpid()}"

    @tool(annotations=Annotations.for_changing())
    async def pay(amount: int) -> str:
        "Pay, and leave a mark."
        mark("pay")
        await asyncio.sleep(0.05)
        return f"paid {amount} by {os.getpid()}"

    @tool(annotations=Annotations.for_destroying())
    async def drop(name: str) -> str:
        "Drop, and leave a mark."
        mark("drop")
        return f"{name} dropped"

    @tool(annotations=Annotations.for_reading(), exclusive="all")
    async def alone() -> str:
        "Run alone."
        return "done"

    @tool(annotations=Annotations.for_reading())
    async def block(seconds: float) -> str:
        "Let nothing else run meanwhile."
        time.sleep(seconds)
        return "done"

    registry = [who, read, pay, drop, alone, block]
    """
)
POLICY = """
[risk.tools]
pay = "low"

[default]
rate = "100000/minute"
breaker = {}
"""


class Based(Protocol):
    """What has an address."""

    @property
    def base(self) -> str: ...


class Fleet:
    """The gateway's processes, and what they said on standard error."""

    def __init__(self, process: subprocess.Popen[str], folder: Path) -> None:
        self.process = process
        self.folder = folder
        assert process.stderr is not None
        self._said = Lines(process.stderr)
        self.lines = self._said.lines

    def until(self, said: str, times: int = 1) -> str:
        """Wait for a line that has this in it, so many times; gives the last."""
        return self._said.until(said, times, within_s=WITHIN_S)

    @property
    def base(self) -> str:
        return self.until(" tools at ").split()[-1]

    def marks(self) -> list[str]:
        """What tools have done, a word each."""
        path = self.folder / "marks"
        return [line.split()[0] for line in path.read_text().splitlines()] if path.exists() else []

    def code(self) -> int:
        found = self.process.wait(WITHIN_S)
        self._said.reader.join(WITHIN_S)
        return found

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.code()


@contextmanager
def fleet(folder: Path, state: str, *options: str, **environment: str) -> Iterator[Fleet]:
    """Two workers, unless the options say otherwise; gives them once the process has begun."""
    (folder / "shop.py").write_text(TOOLS)
    if not (folder / "policy.toml").exists():
        (folder / "policy.toml").write_text(POLICY)
    command = [sys.executable, "-m", "seawall", "serve", "--port", "0"]
    command += ["--registry", "shop:registry", "--policy", "policy.toml", "--state", state]
    command += options if "--workers" in options else ("--workers", "2", *options)
    environment = {
        **os.environ,
        "XDG_STATE_HOME": str(folder / "state"),
        "SEAWALL_ADMIN_TOKEN": ADMIN,
        "SEAWALL_TOKEN": CALLER,
        **environment,
    }
    with subprocess.Popen(
        command, cwd=folder, stderr=subprocess.PIPE, env=environment, text=True
    ) as process:
        found = Fleet(process, folder)
        try:
            yield found
        finally:
            process.terminate()
            try:
                found.code()
            finally:
                process.kill()


class Worker(httpx.Client):
    """A client on a connection to one worker."""

    def __init__(self, base: str, token: str) -> None:
        super().__init__(
            base_url=base, headers={"Authorization": f"Bearer {token}"}, timeout=WITHIN_S
        )
        self.process = int(self.called("who").json()["text"])

    def called(self, tool: str, arguments: Any = None, **more: Any) -> httpx.Response:
        headers = more.pop("headers", None)
        body = {"tool": tool, "arguments": arguments or {}, **more}
        return self.post("/tools/call", json=body, headers=headers)


@contextmanager
def one_of_each(found: Based, token: str = ADMIN, workers: int = 2) -> Iterator[list[Worker]]:
    """Clients of as many different workers."""
    with ExitStack() as stack:
        known: dict[int, Worker] = {}
        for _ in range(200):
            client = stack.enter_context(closing(Worker(found.base, token)))
            known.setdefault(client.process, client)
            if len(known) == workers:
                break
        assert len(known) == workers, "connections came to one worker alone"
        yield list(known.values())
