"""HTTP/1.1 to a server nearby: as few steps as it takes, for plain addresses.

What a proxy adds to a call is its own client; the general one costs more than all else together.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

import httptools

from seawall.edges.mcp.proxy.exchange import ServerGone

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from seawall.pipeline.clock import Clock

    Headers = list[tuple[bytes, bytes]]

IDLE_S = 3.0
"""How long a connection is kept; servers close theirs after five seconds and more."""

END_WITHIN_S = 1.0
"""How long the end of an answer is waited for that was read as far as it was wanted."""

MAX_IDLE = 100

QUEUED_BYTES = 1024 * 1024
"""What may wait for us before the server is read no more."""

BROKEN = "the server broke off its answer"


class Connection(asyncio.Protocol):
    """One connection; one request at a time."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._parser: Any = None
        self._woken: asyncio.Future[None] | None = None
        self._pieces: deque[bytes] = deque()
        self._queued = 0
        self._headers_done = False
        self._done = False
        self._lost = False
        self._keep = False
        self.status = 0
        self.headers: Headers = []
        self.idle_since = 0.0
        self.on_end: Callable[[Connection], None] | None = None
        """Told once when the body ends that nobody reads any more."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """It stands."""
        self._transport = cast("asyncio.Transport", transport)

    def connection_lost(self, exc: Exception | None) -> None:  # an end is an end
        """It broke, or was closed; that may be what ends the body."""
        self._lost = True
        if self._parser is not None and self._headers_done and not self._done:
            # A body without a length ends with its connection.
            self._done = exc is None and not self._framed()
        self._wake()

    def data_received(self, data: bytes) -> None:
        """Take what came."""
        if self._parser is None:
            self.close()
            return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            self.close()
        self._wake()

    def on_header(self, name: bytes, value: bytes) -> None:
        """One header."""
        self.headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        """The head is there; one that only says that more is to come is forgotten."""
        self.status = self._parser.get_status_code()
        if self.status < 200:
            self.headers.clear()
            return
        self._headers_done = True

    def on_body(self, piece: bytes) -> None:
        """A piece of the body."""
        self._pieces.append(piece)
        self._queued += len(piece)
        if self._queued > QUEUED_BYTES and self._transport is not None:
            self._transport.pause_reading()

    def on_message_complete(self) -> None:
        """The body is there."""
        self._done = self._headers_done
        # Asked here: afterwards the parser speaks of the answer that is to follow.
        self._keep = bool(self._parser.should_keep_alive())
        if self._done and self.on_end is not None:
            on_end, self.on_end = self.on_end, None
            # Not inside the parser, which still has to say whether the connection is kept.
            asyncio.get_running_loop().call_soon(on_end, self)

    @property
    def is_usable(self) -> bool:
        """Whether another request may follow."""
        closing = self._transport is None or self._transport.is_closing()
        return self._done and self._keep and not self._lost and not closing

    @property
    def is_lost(self) -> bool:
        """Whether it is closed."""
        return self._lost or self._transport is None or self._transport.is_closing()

    def _framed(self) -> bool:
        return any(name in (b"content-length", b"transfer-encoding") for name, _ in self.headers)

    def send(self, data: bytes) -> None:
        """Send a request."""
        self._parser = httptools.HttpResponseParser(self)
        self._pieces.clear()
        self._queued = 0
        self._headers_done = self._done = self._keep = False
        self.status, self.headers = 0, []
        if self._transport is not None:
            self._transport.write(data)

    async def head(self) -> None:
        """Wait for the head of the answer; raises `ServerGone`."""
        while not self._headers_done:
            if self._lost:
                raise ServerGone("the server closed the connection", may_have_run=True)
            await self._more()

    async def pieces(self) -> AsyncIterator[bytes]:
        """Give the body as it comes; raises `ServerGone` if it breaks off."""
        while True:
            while self._pieces:
                piece = self._pieces.popleft()
                self._queued -= len(piece)
                if self._transport is not None and self._queued <= QUEUED_BYTES:
                    self._transport.resume_reading()
                yield piece
            if self._done:
                return
            if self._lost:
                raise ServerGone(BROKEN, may_have_run=True)
            await self._more()

    async def _more(self) -> None:
        self._woken = asyncio.get_running_loop().create_future()
        try:
            await self._woken
        finally:
            self._woken = None

    def _wake(self) -> None:
        if self._woken is not None and not self._woken.done():
            self._woken.set_result(None)

    def close_unended(self) -> None:
        """Close it, if the end of its answer has not come."""
        if self.on_end is not None:
            self.close()

    def close(self) -> None:
        """Close it, whatever is under way."""
        if self._transport is not None:
            self._transport.abort()


class WireClient:
    """Connections to one plain address."""

    def __init__(self, url: str, clock: Clock, connect_within_s: float) -> None:
        parts = urlsplit(url)
        self._host = parts.hostname or ""
        self._port = parts.port or 80
        self._named = parts.netloc.rpartition("@")[2].encode()
        self._clock = clock
        self._within_s = connect_within_s
        self._idle: list[Connection] = []

    @contextlib.asynccontextmanager
    async def open(
        self, method: str, target: str, headers: Headers, body: bytes
    ) -> AsyncIterator[Connection]:
        """Send a request; the block has a connection whose head is there."""
        connection = self._kept() or await self._connected()
        try:
            connection.send(self._request(method, target, headers, body))
            await connection.head()
            yield connection
        except BaseException:
            connection.close()  # this is how a server without sessions hears of a cancellation
            raise
        if connection.is_usable:
            self._keep(connection)
        elif not connection.is_lost:
            # All that was wanted is here; the end of it comes in a moment, or never.
            connection.on_end = self._keep
            self._clock.call_later(END_WITHIN_S, connection.close_unended)

    def _keep(self, connection: Connection) -> None:
        if connection.is_usable and len(self._idle) < MAX_IDLE:
            connection.idle_since = self._clock.now()
            self._idle.append(connection)
        else:
            connection.close()

    def _kept(self) -> Connection | None:
        now = self._clock.now()
        while self._idle:
            connection = self._idle.pop()
            if not connection.is_lost and now - connection.idle_since < IDLE_S:
                return connection
            connection.close()
        return None

    async def _connected(self) -> Connection:
        loop = asyncio.get_running_loop()
        try:
            with self._clock.limit(self._within_s):
                _, connection = await loop.create_connection(Connection, self._host, self._port)
                return connection
        except OSError:
            raise ServerGone("the server cannot be reached", may_have_run=False) from None
        raise ServerGone("the server cannot be reached in time", may_have_run=False)

    def _request(self, method: str, target: str, headers: Headers, body: bytes) -> bytes:
        lines = [f"{method} {target} HTTP/1.1".encode("latin-1"), b"host: " + self._named]
        lines += [name + b": " + value for name, value in headers]
        if body or method == "POST":
            lines.append(b"content-length: %d" % len(body))
        if any(b"\r" in line or b"\n" in line for line in lines):
            raise ServerGone("a header of the request has a line's end", may_have_run=False)
        return b"\r\n".join(lines) + b"\r\n\r\n" + body

    def close(self) -> None:
        """Close what is kept."""
        for connection in self._idle:
            connection.close()
        self._idle.clear()
