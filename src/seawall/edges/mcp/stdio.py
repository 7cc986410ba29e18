"""A server that is a child process: messages are lines on its standard input and output.

Lines that are no messages are kept as what the server said beside the protocol. What is too long
is thrown away while it comes in, and the call that it answers gets an error.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

import anyio
from mcp.client.stdio import get_default_environment
from mcp.shared.message import SessionMessage
from mcp_types import ErrorData, JSONRPCError

from seawall.edges.mcp.codes import TOO_LARGE
from seawall.edges.mcp.lines import Lines, Tail, TooLong
from seawall.edges.mcp.messages import message_of
from seawall.edges.mcp.watchdog import HARD, SOFT, Watchdog, group_options, kill_group

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

    from seawall.edges.mcp.config import ServerConfig
    from seawall.pipeline.clock import Clock

    Incoming = SessionMessage | Exception

CHUNK = 64 * 1024
GRACE_S = 2.0
"""For a server to end after its standard input was closed, and again after SIGTERM."""
DRAIN_S = 0.2
"""For what a server wrote before it ended."""


class NotStarted(Exception):  # noqa: N818  # it is told as what has happened
    """The program of a server cannot be started."""


class Child:
    """One running server process."""

    def __init__(self, config: ServerConfig, clock: Clock, max_bytes: int, tail: Tail) -> None:
        self._config = config
        self._clock = clock
        self._max_bytes = max_bytes
        self._tail = tail
        self.fault: str | None = None
        """Why the connection was given up, if it was not the server's end."""

    @contextlib.asynccontextmanager
    async def streams(
        self,
    ) -> AsyncIterator[tuple[MemoryObjectReceiveStream[Incoming], MemoryObjectSendStream[Any]]]:
        """Start it, give the streams of messages, and end it with all its children."""
        process, exited = await _started(self._config)
        watchdog = Watchdog(process.pid)
        incoming, read = anyio.create_memory_object_stream[Any](64)
        write, outgoing = anyio.create_memory_object_stream[Any](0)
        tasks = [
            asyncio.create_task(self._read(process, incoming, exited)),
            asyncio.create_task(self._write(process, outgoing)),
            asyncio.create_task(self._listen(process)),
        ]
        try:
            yield read, write
            await self._stop(process, exited)
        finally:
            for task in tasks:
                task.cancel()
            kill_group(process.pid, HARD)
            if not exited.done():
                await asyncio.wait({exited}, timeout=1)
            watchdog.dismiss()
            _closed(process)
            for stream in (incoming, read, write, outgoing):
                stream.close()
            await asyncio.wait(tasks)

    async def _read(
        self,
        process: asyncio.subprocess.Process,
        incoming: MemoryObjectSendStream[Incoming],
        exited: asyncio.Future[None],
    ) -> None:
        stdout = process.stdout
        if stdout is None:
            return
        lines = Lines(self._max_bytes)
        with incoming, contextlib.suppress(anyio.BrokenResourceError, ConnectionError):
            while data := await self._next(stdout, exited):
                for line in lines.feed(data):
                    if not await self._deliver(line, incoming):
                        return
                await self._clock.sleep(0)

    async def _next(self, stdout: asyncio.StreamReader, exited: asyncio.Future[None]) -> bytes:
        """Read on; when the server has ended, only what it has written before.

        A process that it started may hold the pipe open for ever.
        """
        reading = asyncio.ensure_future(stdout.read(CHUNK))
        try:
            if not exited.done():
                either: set[asyncio.Future[Any]] = {reading, exited}
                await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            if not reading.done():
                with self._clock.limit(DRAIN_S):
                    await asyncio.wait({reading})
            return reading.result() if reading.done() else b""
        finally:
            reading.cancel()

    async def _deliver(
        self, line: bytes | TooLong, incoming: MemoryObjectSendStream[Incoming]
    ) -> bool:
        """Pass a line on; false if the connection cannot go on."""
        if isinstance(line, TooLong):
            said = f"a message of the server had more than {self._max_bytes} bytes"
            if line.answers is None:
                self.fault = said
                return False
            error = ErrorData(code=TOO_LARGE, message=said)
            message: Any = JSONRPCError(jsonrpc="2.0", id=line.answers, error=error)
        elif not line.strip():
            return True
        elif (message := message_of(line)) is None:
            self._tail.add(line[:1000] + b"\n")
            return True
        await incoming.send(SessionMessage(message))
        return True

    async def _write(
        self, process: asyncio.subprocess.Process, outgoing: MemoryObjectReceiveStream[Any]
    ) -> None:
        stdin = process.stdin
        if stdin is None:
            return
        with outgoing, contextlib.suppress(ConnectionError):
            async for message in outgoing:
                text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                stdin.write(text.encode() + b"\n")
                await stdin.drain()

    async def _listen(self, process: asyncio.subprocess.Process) -> None:
        stderr = process.stderr
        while stderr is not None and (data := await stderr.read(CHUNK)):
            self._tail.add(data)
            await self._clock.sleep(0)

    async def _stop(
        self, process: asyncio.subprocess.Process, exited: asyncio.Future[None]
    ) -> None:
        """Close its input, then ask, and wait each time; who then lives is killed."""
        if process.stdin is not None:
            process.stdin.close()
        for how in (None, SOFT):
            if exited.done():
                return
            if how is not None:
                kill_group(process.pid, how)
            with self._clock.limit(GRACE_S):
                await asyncio.wait({exited})


class _Protocol(asyncio.subprocess.SubprocessStreamProtocol):
    """Tells of the end of the process itself, however long its pipes stay open."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(limit=2 * CHUNK, loop=loop)
        self.exited: asyncio.Future[None] = loop.create_future()

    def process_exited(self) -> None:
        """It has ended."""
        if not self.exited.done():
            self.exited.set_result(None)
        super().process_exited()


async def _started(
    config: ServerConfig,
) -> tuple[asyncio.subprocess.Process, asyncio.Future[None]]:
    loop = asyncio.get_running_loop()
    pipe = asyncio.subprocess.PIPE
    try:
        transport, protocol = await loop.subprocess_exec(
            lambda: _Protocol(loop),
            *config.command,
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            env={**get_default_environment(), **config.env},
            cwd=config.cwd,
            **group_options(),
        )
    except OSError as error:
        raise NotStarted(_why_not(config, error)) from None
    return asyncio.subprocess.Process(transport, protocol, loop), protocol.exited


def _why_not(config: ServerConfig, error: OSError) -> str:
    program = config.command[0]
    if isinstance(error, FileNotFoundError):
        if config.cwd is not None and error.filename == config.cwd:
            return f"its folder {config.cwd} is not there"
        return f"the program {program!r} was not found; is it installed, and on the PATH?"
    return f"the program {program!r} cannot be started: {error.strerror or type(error).__name__}"


def _closed(process: asyncio.subprocess.Process) -> None:
    """Close the pipes; a process that outlived all this may hold their other ends."""
    transport = getattr(process, "_transport", None)
    if transport is not None:
        with contextlib.suppress(PermissionError, ProcessLookupError):
            transport.close()
