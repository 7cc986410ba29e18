"""One request on a connection of the server, whose answer leaves in one piece.

uvicorn's own writes the head and the body of an answer apart, which is a system call and a packet
more, and looks at every header of every answer. An application that has its answer whole may say
so, by one message instead of two, where the scope's extensions name `WHOLE`.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import httptools
from uvicorn.protocols.http.httptools_impl import (
    HEADER_RE,
    HEADER_VALUE_RE,
    STATUS_LINE,
    RequestResponseCycle,
)

from seawall.contract.failure import FailureCode
from seawall.edges.gateway.answers import refusal
from seawall.edges.gateway.asked import NO_SNIFF
from seawall.edges.requests import WHOLE

if TYPE_CHECKING:
    from seawall.edges.gateway.answers import Headers

EXTENSIONS: dict[str, dict[object, object]] = {WHOLE: {}}

CLOSE = (b"connection", b"close")

SHORT = 256
"""Bytes of an address that is remembered."""


class Exchange(RequestResponseCycle):
    """A request and its answer; understands `WHOLE` besides what every server does."""

    async def send(self, message: Any) -> None:
        """Send an answer, or a part of one."""
        if message["type"] != WHOLE:
            await super().send(message)
            return
        if self.flow.write_paused and not self.disconnected:
            await self.flow.drain()
        if self.disconnected:
            return
        if self.response_started:
            raise RuntimeError("an answer was begun already")
        headers: Headers = message["headers"]
        if CLOSE in headers:
            self.keep_alive = False
        elif not self.keep_alive:
            headers = (*headers, CLOSE)
        fixed = tuple(self.default_headers)  # with the date, each second another
        head = self.scope["method"] == "HEAD"
        self.transport.write(written(message["status"], fixed, headers, message["body"], head=head))
        self.response_started = self.response_complete = True
        self.waiting_for_100_continue = False
        self.message_event.set()
        if not self.keep_alive:
            self.transport.close()
        self.on_response()

    async def send_500_response(self) -> None:
        """Answer in place of an application that broke down."""
        answer = refusal(
            FailureCode.UNKNOWN,
            "gateway_failed",
            "the gateway failed over this request; its log says how",
            may_have_run=None,
        )
        headers = ((b"content-type", answer.media), NO_SNIFF, CLOSE)
        await self.send({"type": WHOLE, "status": 500, "headers": headers, "body": answer.body})


def written(
    status: int, fixed: Headers, headers: Headers, body: bytes, *, head: bool = False
) -> bytes:
    """Write a whole answer, to a HEAD without its body; `fixed` are headers of the server."""
    return b"%b%b%bcontent-length: %d\r\n\r\n%b" % (
        STATUS_LINE[status],
        _lines(fixed),
        _lines(headers),
        len(body),
        b"" if head else body,
    )


@lru_cache(maxsize=512)
def _lines(headers: Headers) -> bytes:
    for name, value in headers:
        if HEADER_RE.search(name) or HEADER_VALUE_RE.search(value):
            raise RuntimeError(f"{name!r} cannot be a header of value {value!r}")
    return b"".join(b"%b: %b\r\n" % header for header in headers)


def address_of(url: bytes) -> tuple[str, bytes, bytes]:
    """Read the path of an address, the same as it was sent, and the query behind it."""
    return _remembered(url) if len(url) <= SHORT else _read(url)


def _read(url: bytes) -> tuple[str, bytes, bytes]:
    parsed = httptools.parse_url(url)
    raw = parsed.path or b"/"  # `http://host` has none
    return unquote(raw.decode("ascii")), raw, parsed.query or b""


_remembered = lru_cache(maxsize=512)(_read)
