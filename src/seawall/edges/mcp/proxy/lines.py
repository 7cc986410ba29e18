"""Messages a line each over pipes, without a copy more than needed and with back pressure."""

from __future__ import annotations

import asyncio
import os
import stat
import threading
from typing import TYPE_CHECKING, Any, Protocol, cast

from seawall.edges.mcp.proxy.messages import MAX_MESSAGE_BYTES, on_one_line

if TYPE_CHECKING:
    from collections.abc import Callable

HIGH_WATER_BYTES = 4 * 1024 * 1024
"""What may wait for a slow reader before the other side is read no more."""


class Splitter:
    """Cuts a stream into lines; a line beyond the bound is dropped, and said so."""

    def __init__(self, on_line: Callable[[bytes], None], on_too_long: Callable[[], None]) -> None:
        self._on_line = on_line
        self._on_too_long = on_too_long
        self._rest = bytearray()
        self._dropping = False

    def feed(self, data: bytes) -> None:
        """Take what came."""
        start = 0
        while (end := data.find(b"\n", start)) >= 0:
            self._end_line(data[start:end])
            start = end + 1
        if start < len(data):
            self._keep(data[start:] if start else data)

    def _end_line(self, part: bytes) -> None:
        if self._dropping:
            self._dropping = False
            return
        if self._rest:
            self._rest += part
            part = bytes(self._rest)
            self._rest.clear()
        part = part.strip()
        if part:
            self._on_line(part)

    def _keep(self, part: bytes) -> None:
        if self._dropping:
            return
        self._rest += part
        if len(self._rest) > MAX_MESSAGE_BYTES:
            self._rest.clear()
            self._dropping = True
            self._on_too_long()

    def end(self) -> None:
        """The stream is over; what stands without a line's end counts too."""
        if self._rest and not self._dropping:
            self._end_line(b"")


class Pausing(Protocol):
    """Something that can be told to wait."""

    def pause_reading(self) -> None:
        """Read no more."""
        ...

    def resume_reading(self) -> None:
        """Read on."""
        ...


class Reading(asyncio.Protocol):
    """Reads lines of one of our own standard streams."""

    def __init__(self, splitter: Splitter, on_end: Callable[[], None]) -> None:
        self._splitter = splitter
        self._on_end = on_end

    def data_received(self, data: bytes) -> None:
        """Take what came."""
        self._splitter.feed(data)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  # an end is an end
        """The stream is over."""
        self._splitter.end()
        self._on_end()


class Writing(asyncio.Protocol):
    """Writes lines; while its reader is slow, `source` is not read."""

    def __init__(self) -> None:
        self.source: Pausing | None = None
        self.transport: asyncio.WriteTransport | None = None
        self.full = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Bound what may wait."""
        self.transport = cast("asyncio.WriteTransport", transport)
        self.transport.set_write_buffer_limits(high=HIGH_WATER_BYTES)

    def pause_writing(self) -> None:
        """Too much waits."""
        self.full = True
        if self.source is not None:
            self.source.pause_reading()

    def resume_writing(self) -> None:
        """There is room again."""
        self.full = False
        if self.source is not None:
            self.source.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  # an end is an end
        """Nobody reads any more."""
        self.transport = None
        self.resume_writing()

    def write(self, line: bytes) -> None:
        """Write one line, if there is somebody to read it."""
        if self.transport is not None and not self.transport.is_closing():
            self.transport.write(on_one_line(line) + b"\n")


class FileWriting:
    """Writes lines to what is no pipe: a file, or a device that cannot be waited for."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self.source: Pausing | None = None

    def write(self, line: bytes) -> None:
        """Write one line."""
        data = memoryview(on_one_line(line) + b"\n")
        while data:
            data = data[os.write(self._descriptor, data) :]


class FileReading:
    """Reads lines of what is no pipe, in a thread."""

    def __init__(self, descriptor: int, splitter: Splitter, on_end: Callable[[], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._splitter = splitter
        self._on_end = on_end
        threading.Thread(target=self._read, args=(descriptor,), daemon=True).start()

    def pause_reading(self) -> None:
        """A file ends by itself."""

    def resume_reading(self) -> None:
        """A file ends by itself."""

    def _read(self, descriptor: int) -> None:
        while data := os.read(descriptor, 65_536):
            self._loop.call_soon_threadsafe(self._splitter.feed, data)
        self._loop.call_soon_threadsafe(self._ended)

    def _ended(self) -> None:
        self._splitter.end()
        self._on_end()


def _is_waitable(descriptor: int) -> bool:
    mode = os.fstat(descriptor).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


async def reading(descriptor: int, splitter: Splitter, on_end: Callable[[], None]) -> Any:
    """Read lines of a standard stream; gives what can be told to pause."""
    if not _is_waitable(descriptor):
        return FileReading(descriptor, splitter, on_end)
    loop = asyncio.get_running_loop()
    transport, _ = await loop.connect_read_pipe(
        lambda: Reading(splitter, on_end), os.fdopen(descriptor, "rb", buffering=0)
    )
    return transport


async def writing(descriptor: int) -> Writing | FileWriting:
    """Write lines to a standard stream."""
    if not _is_waitable(descriptor):
        return FileWriting(descriptor)
    loop = asyncio.get_running_loop()
    _, protocol = await loop.connect_write_pipe(Writing, os.fdopen(descriptor, "wb", buffering=0))
    return protocol
