"""One connection of the server, with bounds on what a client sends before there is a request.

The parser under uvicorn takes headers and trailers without end, and waits for them for ever: both
would let anybody fill the memory, or hold connections open, without a token.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

if TYPE_CHECKING:
    from asyncio import Transport

SLACK_BYTES = 262_144
"""What one read may bring besides: the end of a body before the headers that are counted."""


class Connection(HttpToolsProtocol):
    """Closes a connection whose headers have no end, or whose request does not come."""

    max_header_bytes = 16_384

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._besides = 0
        self._since: float | None = self.loop.time()

    def data_received(self, data: bytes) -> None:
        """Read, and count what is not of a body."""
        self._besides += len(data)
        super().data_received(data)
        if self._besides > self.max_header_bytes + SLACK_BYTES:
            self._end(b"431 Request Header Fields Too Large")

    def on_message_begin(self) -> None:
        """A request begins."""
        self._besides = 0
        if self._since is None:
            self._since = self.loop.time()
        super().on_message_begin()

    def on_body(self, body: bytes) -> None:
        """Some of a body has come; how much of it is read is for who reads it."""
        self._besides -= len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """The request is there."""
        self._since = None
        super().on_message_complete()

    def end_if_overdue(self, read_s: float) -> None:
        """Close if a request began that long ago and is not there yet."""
        if self._since is None or self.loop.time() - self._since <= read_s or self._works:
            return
        self._end(b"408 Request Timeout")

    @property
    def _works(self) -> bool:
        """Whether a request that is there is not answered yet: its client may wait."""
        cycle: Any = self.cycle
        return cycle is not None and not cycle.response_complete and not cycle.more_body

    def _end(self, status: bytes) -> None:
        if not self.transport.is_closing():
            self.transport.write(
                b"HTTP/1.1 %s\r\nconnection: close\r\ncontent-length: 0\r\n\r\n" % status
            )
            self.transport.close()
