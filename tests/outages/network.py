"""A network between a client and a server, that can be cut off."""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_RESET = struct.pack("ii", 1, 0)
"""Lingering for no time: the other side is told that the connection is broken."""


class Network:
    """Passes bytes on, in a thread of its own."""

    def __init__(self, port: int) -> None:
        self._to = port
        self._is_up = True
        self._resets = False
        self._ways: set[_Way] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="network", daemon=True)
        self._thread.start()
        self.port: int = self._do(self._listen())

    def reset(self) -> None:
        """Break all connections, and every new one."""
        self._do(self._change(is_up=False, resets=True))

    def swallow(self) -> None:
        """Pass nothing on, and say nothing: what is open now gets no answer ever again."""
        self._do(self._change(is_up=False, resets=False))

    def mend(self) -> None:
        """Pass new connections on; the server learns then which of the old ones are dead."""
        self._do(self._change(is_up=True, resets=False))

    def close(self) -> None:
        """End it."""
        self._do(self._change(is_up=False, resets=True))
        self._do(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def _do(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(10)

    async def _listen(self) -> int:
        self._server = await asyncio.start_server(self._accepted, "127.0.0.1", 0)
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def _stop(self) -> None:
        self._server.close()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _change(self, *, is_up: bool, resets: bool) -> None:
        self._is_up, self._resets = is_up, resets
        for way in tuple(self._ways):
            way.is_dead = way.is_dead or not is_up
            if resets:
                way.reset()
            elif is_up and way.is_dead and way.beyond is not None:
                way.beyond.transport.abort()

    async def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        way = _Way(writer)
        if self._resets:
            way.reset()
            return
        way.is_dead = not self._is_up
        self._ways.add(way)
        try:
            with suppress(OSError, asyncio.CancelledError):
                await self._joined(way, reader)
        finally:
            self._ways.discard(way)
            way.close()

    async def _joined(self, way: _Way, reader: asyncio.StreamReader) -> None:
        answers, way.beyond = await asyncio.open_connection("127.0.0.1", self._to)
        there = asyncio.ensure_future(_passed(reader, way.beyond, lambda: way.is_dead))
        back = asyncio.ensure_future(_passed(answers, way.near, lambda: way.is_dead))
        try:
            await asyncio.wait((there, back), return_when=asyncio.FIRST_COMPLETED)
        finally:
            there.cancel()
            back.cancel()


class _Way:
    """One connection through."""

    def __init__(self, near: asyncio.StreamWriter) -> None:
        self.near = near
        self.beyond: asyncio.StreamWriter | None = None
        self.is_dead = False

    def reset(self) -> None:
        for writer in (self.near, self.beyond):
            if writer is not None:
                found = writer.get_extra_info("socket")
                if found is not None and found.fileno() >= 0:
                    found.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
                writer.transport.abort()

    def close(self) -> None:
        for writer in (self.near, self.beyond):
            if writer is not None:
                writer.transport.abort()


async def _passed(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, is_dead: Callable[[], bool]
) -> None:
    with suppress(OSError):
        while data := await reader.read(65_536):
            if not is_dead():
                writer.write(data)
                await writer.drain()
        if is_dead():  # an end is passed on too, unless nothing is
            await asyncio.Event().wait()


@contextmanager
def network_to(port: int) -> Iterator[Network]:
    """Put a network before a server until the end of the block."""
    network = Network(port)
    try:
        yield network
    finally:
        network.close()
