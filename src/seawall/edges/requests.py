"""What servers of ours share over HTTP: a request and its answer, whose names and tokens count.

A page of another site reaches a loopback port through the browser of whoever visits it, so the name
in `Host` is checked before anything is answered (DNS rebinding). What each server makes of a wrong
name, and which origins and tokens it takes, is its own.
"""

from __future__ import annotations

import asyncio
import re
from itertools import chain
from typing import TYPE_CHECKING, Any

from seawall.edges.addresses import without_port

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, MutableMapping

    Message = MutableMapping[str, Any]
    Receive = Callable[[], Awaitable[Message]]
    Send = Callable[[Message], Awaitable[None]]
    Pairs = Iterable[tuple[bytes, bytes]]

WHOLE = "seawall.whole"
"""Extension of a server that takes an answer in one message, head and body together."""

MAX_SEEN = 64
"""Hosts as they were sent that are remembered; a name may come with any port."""

_SCHEME = b"bearer "


class Gone(Exception):  # noqa: N818  # not an error: the client closed the connection
    """The client went before it was answered."""


class TooLarge(Exception):  # noqa: N818  # it is for the server to say what it thinks of it
    """A body is larger than it may be."""


class Incoming:
    """One HTTP request, and the way back."""

    headers: dict[bytes, bytes]
    """By name; of one that came more than once, the first."""

    __slots__ = ("headers", "method", "path", "receive", "scope", "send", "sent")

    def __init__(self, scope: Message, receive: Receive, send: Send) -> None:
        self.scope = scope
        self.receive = receive
        self.send = send
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        """Without the query."""
        self.sent: list[tuple[bytes, bytes]] = scope["headers"]
        """All headers, in their order."""
        self.headers = dict(reversed(self.sent))

    @property
    def header_bytes(self) -> int:
        """Size of all headers, those that came more than once too."""
        return len(b"".join(chain.from_iterable(self.sent)))

    def repeated(self, names: frozenset[bytes]) -> str:
        """Name one of `names` that came more than once; empty if there is none."""
        if len(self.sent) == len(self.headers):
            return ""
        came = [name for name, _ in self.sent if name in names]
        return next((name.decode() for name in came if came.count(name) > 1), "")

    def header(self, name: bytes) -> str:
        """Give a header as text; empty if it is absent."""
        return self.headers.get(name, b"").decode("latin-1")

    def all(self, name: bytes) -> list[bytes]:
        """Give all headers of a name."""
        return [value for sent, value in self.sent if sent == name]

    async def read(self, limit: int) -> bytes:
        """Read the whole body; raises `TooLarge` before reading more than `limit`, or `Gone`."""
        announced = self.headers.get(b"content-length")
        if announced is not None and announced.isdigit() and int(announced[:12]) > limit:
            raise TooLarge
        message = await self.receive()
        body: bytes = message.get("body", b"")
        if message["type"] == "http.request" and not message.get("more_body", False):
            if len(body) > limit:
                raise TooLarge
            return body
        return await self._rest(message, limit)

    async def _rest(self, message: Message, limit: int) -> bytes:
        parts: list[bytes] = []
        size, more = 0, True
        while more:
            if message["type"] != "http.request":
                raise Gone
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > limit:
                raise TooLarge
            more = message.get("more_body", False)
            if more:
                message = await self.receive()
        return b"".join(parts)

    async def until_gone(self) -> None:
        """Return when the client has closed the connection."""
        while (await self.receive())["type"] != "http.disconnect":
            pass

    async def whole(self, status: int, body: bytes, headers: Pairs = ()) -> None:
        """Send a whole answer; a client that is gone does not matter."""
        if WHOLE in self.scope.get("extensions", ()):
            headers = tuple(headers)
            await self.send({"type": WHOLE, "status": status, "headers": headers, "body": body})
            return
        size = (b"content-length", b"%d" % len(body))
        start = {"type": "http.response.start", "status": status, "headers": [*headers, size]}
        await self.send(start)
        await self.send(
            {"type": "http.response.body", "body": b"" if self.method == "HEAD" else body}
        )


async def ended_first(work: asyncio.Future[Any], request: Incoming) -> bool:
    """Wait for a task while the client is there; whether the task has ended. Cancels nothing."""
    gone = asyncio.ensure_future(request.until_gone())
    try:
        await asyncio.wait((work, gone), return_when=asyncio.FIRST_COMPLETED)
    finally:
        gone.cancel()
    return work.done()


class Hosts:
    """The names under which a server answers, with any port; nearly every request has the same."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names = frozenset(name.lower() for name in names)
        self._seen: set[bytes] = set()

    def __bool__(self) -> bool:
        return bool(self._names)

    def __contains__(self, host: bytes) -> bool:
        return host in self._seen or self._is_known(host)

    def _is_known(self, sent: bytes) -> bool:
        host = sent.decode("latin-1").lower()
        if host not in self._names and without_port(host) not in self._names:
            return False
        if len(self._seen) < MAX_SEEN:
            self._seen.add(sent)
        return True


def with_named(headers: list[tuple[bytes, bytes]], target: bytes) -> None:
    """Let the host that an address names, as `GET http://host/path`, count like a `Host`.

    It goes before the header, by the rules of HTTP; so if the two differ, there are two hosts then,
    and whoever looks at them refuses that.
    """
    _, absolute, rest = target.partition(b"://")
    if not absolute or target.startswith(b"/"):
        return
    named = re.split(rb"[/?#]", rest, maxsplit=1)[0].rpartition(b"@")[2]
    sent = [value.lower() for name, value in headers if name == b"host"]
    if sent != [named.lower()]:
        headers.append((b"host", named))


def bearer_in(authorization: bytes) -> bytes | None:
    """Give the token of an `Authorization` header; None if it holds another kind of thing."""
    return authorization[7:].strip() if authorization[:7].lower() == _SCHEME else None
