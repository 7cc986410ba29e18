"""Clients that speak the bare protocol, so that what is lost on the way is seen."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.servers import free_port
from tests.waiting import until, until_listening, waited

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

SERVERS = Path(__file__).parent / "servers"
SEAWALL = [sys.executable, "-m", "seawall", "proxy"]
WITHIN_S = 20.0

LEGACY = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"roots": {"listChanged": False}, "x-own": {"a": 1}},
    "clientInfo": {"name": "bare", "version": "1"},
}
MODERN = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "bare", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


class Bare:
    """One process that speaks the protocol on its standard streams."""

    def __init__(self, process: asyncio.subprocess.Process, record: Path) -> None:
        self.process = process
        self.record = record
        self.lines: list[bytes] = []
        self._count = 0

    async def send(self, message: Any) -> None:
        """Send a message, or bytes as they are."""
        assert self.process.stdin is not None
        raw = message if isinstance(message, bytes) else json.dumps(message).encode()
        self.process.stdin.write(raw + b"\n")
        await self.process.stdin.drain()

    async def next(self) -> Any:
        """The next message it says."""
        assert self.process.stdout is not None
        line = await asyncio.wait_for(self.process.stdout.readline(), WITHIN_S)
        assert line, "it closed its output"
        self.lines.append(line)
        return json.loads(line)

    async def until(self, wanted: Callable[[Any], bool]) -> Any:
        """The next message that is wanted; others are kept in `lines`."""
        while True:
            message = await self.next()
            if wanted(message):
                return message

    async def ask(self, method: str, params: Any = None, *, request_id: Any = None) -> Any:
        """Send a request and give what answers it."""
        self._count += 1
        request_id = self._count if request_id is None else request_id
        await self.send({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params})
        return await self.answer(request_id)

    async def answer(self, request_id: Any) -> Any:
        """What answers a request."""
        return await self.until(lambda m: m.get("id") == request_id and "method" not in m)

    async def call(self, tool: str, arguments: Any = None, **more: Any) -> Any:
        """Call a tool."""
        params = {"name": tool, "arguments": arguments or {}, **more}
        return await self.ask("tools/call", params)

    async def open(self, **capabilities: Any) -> Any:
        """Open a session."""
        said = {**LEGACY, "capabilities": {**LEGACY["capabilities"], **capabilities}}  # type: ignore[dict-item]  # it is a mapping
        answer = await self.ask("initialize", said)
        await self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return answer

    def heard(self, method: str | None = None) -> list[Any]:
        """What the server heard, all or of one method."""
        found = [json.loads(line) for line in self.heard_raw()]
        return [m for m in found if method is None or m.get("method") == method]

    def heard_raw(self) -> list[str]:
        """What the server heard, as it came."""
        return self.record.read_text().splitlines() if self.record.exists() else []

    async def until_heard(self, method: str, count: int = 1) -> list[Any]:
        """Wait until the server heard it so often."""
        await until(lambda: len(self.heard(method)) >= count, within_s=WITHIN_S)
        return self.heard(method)

    async def end(self) -> int:
        """Close its input and wait for its end."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        return await asyncio.wait_for(self.process.wait(), WITHIN_S)


@pytest.fixture
async def start(tmp_path: Path) -> AsyncIterator[Callable[..., Awaitable[Bare]]]:
    """Start a scripted server behind the proxy; `policy` is TOML, `options` are the proxy's."""
    begun: list[Bare] = []

    async def run(
        tools: dict[str, str] | None = None,
        *,
        policy: str | None = None,
        options: tuple[str, ...] = (),
        direct: bool = False,
        record: Path | None = None,
        **script: Any,
    ) -> Bare:
        record = record or tmp_path / f"heard-{len(begun)}"
        said = json.dumps({"tools": tools or {"t": "reply"}, **script})
        command = [sys.executable, str(SERVERS / "scripted.py"), str(record), said]
        if policy is not None:
            file = tmp_path / f"policy-{len(begun)}.toml"
            file.write_text(policy)
            options = (*options, "--policy", str(file))
        if not direct:
            command = [*SEAWALL, *options, "--", *command]
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL if not os.environ.get("SHOW") else None,
            limit=64 * 1024 * 1024,
        )
        begun.append(Bare(process, record))
        return begun[-1]

    yield run
    for bare in begun:
        if bare.process.returncode is None:
            bare.process.kill()
        await bare.process.wait()


class Served:
    """Processes that listen: a server, and proxies before it."""

    def __init__(self) -> None:
        self.processes: dict[int, subprocess.Popen[bytes]] = {}

    def run(self, *command: str, port: int, **environment: str) -> int:
        """Start one; gives its port."""
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=None if os.environ.get("SHOW") else subprocess.DEVNULL,
            env={**os.environ, **environment},
        )
        self.processes[port] = process
        until_listening(port, process)
        return port

    def everything(self, port: int | None = None) -> int:
        """A server with all that the protocol has."""
        port = port or free_port()
        script = str(SERVERS / "everything.py")
        return self.run(sys.executable, script, "http", str(port), port=port)

    def proxy(self, *options: str, **environment: str) -> int:
        """A proxy with these options, on a port of its own."""
        port = free_port()
        command = [*SEAWALL, "--http", f"127.0.0.1:{port}", *options]
        return self.run(*command, port=port, **environment)

    def before(self, server: int, *options: str) -> int:
        """A proxy before a server over HTTP."""
        return self.proxy("--url", f"http://127.0.0.1:{server}/mcp", *options)

    def on_stdio(self, *options: str) -> int:
        """A proxy that offers a server on stdio."""
        script = str(SERVERS / "everything.py")
        return self.proxy(*options, "--", sys.executable, script, "stdio")

    def forked(self, address: Path) -> int:
        """A proxy that offers the same server on stdio, of which each process is there at once."""
        script = str(SERVERS / "everything.py")
        self.processes[-1] = subprocess.Popen([sys.executable, script, "host", str(address)])
        waited(address.exists)
        launcher = (sys.executable, "-S", "-E", str(SERVERS / "forked.py"), str(address))
        return self.proxy("--", *launcher)

    def kill(self, port: int) -> None:
        """End one by force."""
        process = self.processes.pop(port)
        process.kill()
        process.wait()

    def close(self) -> None:
        """End all."""
        for process in self.processes.values():
            process.terminate()
        for process in self.processes.values():
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@pytest.fixture
def served() -> Iterator[Served]:
    """Start what listens; all is ended after the test."""
    found = Served()
    yield found
    found.close()


@pytest.fixture(scope="session")
def ports(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, int]]:
    """A server (`direct`) and proxies that tests share: `http` and `stdio`, by what is behind."""
    found = Served()
    direct = found.everything()
    stdio = found.forked(tmp_path_factory.mktemp("host") / "address")
    yield {"direct": direct, "http": found.before(direct), "stdio": stdio}
    found.close()


class Refusing:
    """A server over HTTP that runs a call and answers it with a status that says otherwise."""

    def __init__(self) -> None:
        self.status = 500
        self.body = b"no"
        """An id in it that is "the same" is that of the call."""
        self.ran = 0
        self.port = 0
        self.more = ""
        """Headers of every answer."""
        self.heads: list[str] = []
        self.hints: dict[str, bool] = {}

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request."""
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        self.heads.append(head.decode())
        size = int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0] or 0)
        status, body = self.answer(await reader.readexactly(size))
        kind = "application/json" if body.startswith(b"{") else "text/plain"
        writer.write(
            f"HTTP/1.1 {status} X\r\nContent-Type: {kind}\r\nConnection: close\r\n"
            f"{self.more}Content-Length: {len(body)}\r\n\r\n".encode()
            + body
        )
        await writer.drain()
        writer.close()

    def answer(self, body: bytes) -> tuple[int, bytes]:
        """Give the status and the body of an answer."""
        asked = json.loads(body) if body else {}
        results = {
            "initialize": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                           "serverInfo": {"name": "refusing", "version": "1"}},
            "tools/list": {"tools": [{"name": "pay", "inputSchema": {"type": "object"},
                                      "annotations": self.hints}]},
        }  # fmt: skip
        method = asked.get("method", "")
        if method == "tools/call":
            self.ran += 1
            return self.status, self.body.replace(b'"the same"', json.dumps(asked["id"]).encode())
        if method not in results:
            return 202, b""
        said = {"jsonrpc": "2.0", "id": asked["id"], "result": results[method]}
        return 200, json.dumps(said).encode()


@asynccontextmanager
async def listening(serve: Callable[..., Awaitable[None]]) -> AsyncIterator[int]:
    """Have connections served; gives the port."""
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    yield server.sockets[0].getsockname()[1]
    server.close()


@pytest.fixture
async def refusing() -> AsyncIterator[Refusing]:
    """A server that runs calls and says that it does not."""
    found = Refusing()
    async with listening(found.serve) as found.port:
        yield found


STATUSES = [
    *((status, b"no", False) for status in (401, 403, 404, 405, 406, 413, 415, 421, 429)),
    *((status, b"no", True) for status in (302, 400, 402, 408, 409, 410, 418, 422, 425, 499)),
    *((status, b"no", True) for status in (200, 500, 502, 503, 504)),
    (400, b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"m"}}', False),
    (400, b'{"jsonrpc":"2.0","id":"other","error":{"code":-32700,"message":"m"}}', True),
]
"""A status and a body without an answer, and whether the call may have run all the same."""

UNBROKEN = """
extends = "mcp-proxy"

[tools.pay]
breaker = false
"""
"""A policy for a tool that is called however often it fails."""
