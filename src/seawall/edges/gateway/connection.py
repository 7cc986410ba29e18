"""One connection of the server, with bounds on what a client sends before there is a request.

The parser under uvicorn takes headers and trailers without end, and waits for them for ever: both
would let anybody fill the memory, or hold connections open, without a token.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from seawall.contract.failure import FailureCode
from seawall.edges.gateway.answers import refusal
from seawall.edges.gateway.asked import NO_SNIFF, bad_request
from seawall.edges.gateway.exchange import CLOSE, EXTENSIONS, Exchange, address_of, written
from seawall.edges.gathering import Gathering, Turn
from seawall.edges.requests import with_named

if TYPE_CHECKING:
    from asyncio import Transport

    from seawall.edges.gateway.answers import Answer

SLACK_BYTES = 262_144
"""What one read may bring besides: the end of a body before the headers that are counted."""


class Connection(HttpToolsProtocol):
    """Closes a connection whose headers have no end, or whose request does not come."""

    max_header_bytes = 16_384
    turn: Turn
    """Of the server: its answers of one turn leave together."""

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """Begin to wait for the first request."""
        super().connection_made(Gathering(transport, self.turn))  # type: ignore[arg-type]  # as good as one
        self._besides = 0
        self._since: float | None = self.loop.time()
        self._idle_since: float | None = None

    def data_received(self, data: bytes) -> None:
        """Read, and count what is not of a body."""
        self._besides += len(data)
        self._idle_since = None
        super().data_received(data)
        if self._besides > self.max_header_bytes + SLACK_BYTES:
            self._end(_too_large(self.max_header_bytes))

    def on_message_begin(self) -> None:
        """A request begins."""
        self._besides = 0
        if self._since is None:
            self._since = self.loop.time()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """A request can be answered, or waits until the one before it was."""
        parser, scope = self.parser, self.scope
        if not self.url.startswith(b"/"):
            with_named(self.headers, self.url)
        version = parser.get_http_version()
        scope["http_version"] = version
        scope["method"] = parser.get_method().decode("ascii")
        scope["path"], scope["raw_path"], scope["query_string"] = address_of(self.url)
        scope["extensions"] = EXTENSIONS
        before = self.cycle
        cycle = self.cycle = Exchange(
            scope,
            self.transport,
            self.flow,
            self.logger,
            self.access_logger,
            self.access_log,
            self.server_state.default_headers,
            asyncio.Event(),
            self.expect_100_continue,
            version != "1.0" and parser.should_keep_alive(),
            self.on_response_complete,
        )
        if before is None or before.response_complete:
            self._begin(cycle)
        else:
            self.flow.pause_reading()
            self.pipeline.appendleft((cycle, self.app))

    def _begin(self, cycle: Any) -> None:
        task = self.loop.create_task(cycle.run_asgi(self.app))
        task.add_done_callback(self.tasks.discard)
        self.tasks.add(task)

    def on_response_complete(self) -> None:
        """Go on to the request that waits, or begin to wait for one.

        When that is too long is seen by the server's next look, not by a timer for each request.
        """
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self.pipeline:
            cycle, _ = self.pipeline.pop()
            self._begin(cycle)
        else:
            self._idle_since = self.loop.time()

    def on_body(self, body: bytes) -> None:
        """Some of a body has come; how much of it is read is for who reads it."""
        self._besides -= len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """The request is there."""
        self._since = None
        super().on_message_complete()

    def end_if_overdue(self, read_s: float) -> None:
        """Close if a request began that long ago and is not there yet, or if none follows."""
        if self._idle_since is not None:
            if self.loop.time() - self._idle_since > self.timeout_keep_alive:
                self.transport.close()
            return
        if self._since is None or self.loop.time() - self._since <= read_s or self._works:
            return
        self._end(_overdue(read_s))

    @property
    def _works(self) -> bool:
        """Whether a request that is there is not answered yet: its client may wait."""
        cycle: Any = self.cycle
        return cycle is not None and not cycle.response_complete and not cycle.more_body

    def send_400_response(self, msg: str) -> None:
        """Answer what is no HTTP."""
        self._end(bad_request(f"this is not HTTP as it is spoken here: {msg}"))

    def _end(self, answer: Answer) -> None:
        """Answer outside of any request, in the shape of all others, and close."""
        if not self.transport.is_closing():
            headers = ((b"content-type", answer.media), NO_SNIFF, CLOSE)
            fixed = tuple(self.server_state.default_headers)
            self.transport.write(written(answer.status, fixed, headers, answer.body))
            self.transport.close()


def _too_large(limit: int) -> Answer:
    return refusal(
        FailureCode.INVALID_ARGUMENT, "headers_too_large", f"headers may hold {limit} bytes"
    )


def _overdue(read_s: float) -> Answer:
    return refusal(
        FailureCode.TIMEOUT, "request_timeout", f"the request was not there within {read_s:g} s"
    )
