"""What stands before every HTTP request: who may come, from where, and with how much."""

from __future__ import annotations

import asyncio
import hmac
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit

from seawall.edges.addresses import is_loopback, without_port
from seawall.edges.mcp.proxy import messages

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from seawall.edges.mcp.proxy.http_client import Headers

MAX_BODY_BYTES = 16 * 1024 * 1024

_LOCAL = ("localhost", "127.0.0.1", "[::1]")


class Request:
    """One HTTP request, and the way back."""

    def __init__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        self.query: bytes = scope.get("query_string", b"")
        self.headers: Headers = scope["headers"]
        self.body = b""
        self._receive = receive
        self._send = send
        self.begun = False
        self.gone = False
        """The client does not listen any more."""

    def header(self, name: bytes) -> str:
        """One header; empty if it is not there."""
        return next((v.decode("latin-1") for n, v in self.headers if n == name), "")

    def all(self, name: bytes) -> list[str]:
        """All headers of this name."""
        return [v.decode("latin-1") for n, v in self.headers if n == name]

    async def read(self) -> bool:
        """Read the body; false if it is too large, or the client went."""
        if int(self.header(b"content-length") or 0) > MAX_BODY_BYTES:
            return False
        found: list[bytes] = []
        size, more = 0, True
        while more:
            event = await self._receive()
            if event["type"] != "http.request":
                self.gone = True
                return False
            piece = event.get("body", b"")
            size += len(piece)
            if size > MAX_BODY_BYTES:
                return False
            found.append(piece)
            more = event.get("more_body", False)
        self.body = found[0] if len(found) == 1 else b"".join(found)
        return True

    async def until_gone(self) -> None:
        """Wait until the client does not listen any more."""
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self.gone = True

    async def begin(self, status: int, headers: Headers) -> None:
        """Begin the answer."""
        self.begun = True
        await self._send({"type": "http.response.start", "status": status, "headers": headers})

    async def piece(self, data: bytes, *, more: bool = True) -> None:
        """Send a piece of the answer."""
        await self._send({"type": "http.response.body", "body": data, "more_body": more})

    async def whole(self, status: int, body: bytes, headers: Headers | None = None) -> None:
        """Send the whole answer."""
        length = (b"content-length", str(len(body)).encode())
        await self.begin(status, [*(headers or []), length])
        await self.piece(body, more=False)

    async def json(self, status: int, body: bytes, headers: Headers | None = None) -> None:
        """Send the whole answer, as JSON."""
        kept = [(n, v) for n, v in headers or () if n != b"content-type"]
        await self.whole(status, body, [(b"content-type", b"application/json"), *kept])

    async def refuse(self, status: int, said: str) -> None:
        """Answer that it may not be."""
        await self.json(status, messages.error(None, messages.INVALID_REQUEST, said))


class Handler(Protocol):
    """What answers requests that may come in."""

    async def handle(self, request: Request) -> None:
        """Answer one request."""
        ...

    def serves(self, request: Request) -> bool:
        """Whether there is anything at its path."""
        ...


class Door(Protocol):
    """Says who may come in."""

    def refusal(self, request: Request) -> tuple[int, str] | None:
        """Say why a request may not come in."""
        ...


class Doorkeeper:
    """Checks host, origin and token.

    On a loopback address only local names are hosts, so that no web page can reach it by a name
    that it made point here. On any other address a token is needed.
    """

    def __init__(
        self,
        host: str,
        *,
        token: str | None = None,
        hosts: Iterable[str] = (),
        origins: Iterable[str] = (),
    ) -> None:
        self._token = None if token is None else token.encode()
        self._hosts = {*(name.lower() for name in hosts)}
        self._any_host = not is_loopback(host) and not self._hosts
        if is_loopback(host):
            self._hosts |= {*_LOCAL}
        self._origins = {origin.lower().rstrip("/") for origin in origins}

    @property
    def takes_token(self) -> bool:
        """Whether the credentials of requests are for the proxy, not for the server."""
        return self._token is not None

    def refusal(self, request: Request) -> tuple[int, str] | None:
        """Say why a request may not come in, as a status and a line."""
        hosts = request.all(b"host")
        if len(hosts) != 1 or not (self._any_host or self._is_known(hosts[0])):
            return 421, "this host name is not served here"
        origins = request.all(b"origin")
        if any(not self._may_come_from(origin) for origin in origins):
            return 403, "this origin may not use it"
        if self._token is not None and not self._has_token(request):
            return 401, "a bearer token is needed"
        return None

    def _is_known(self, host: str) -> bool:
        host = host.lower()
        return host in self._hosts or without_port(host) in self._hosts

    def _may_come_from(self, origin: str) -> bool:
        origin = origin.lower()
        if origin in self._origins:
            return True
        found = urlsplit(origin)
        return (
            found.scheme in ("http", "https")
            and self._is_known(found.netloc)
            and not self._any_host
        )

    def _has_token(self, request: Request) -> bool:
        found = request.all(b"authorization")
        scheme, _, given = (found[0] if len(found) == 1 else "").partition(" ")
        token = self._token or b""
        return scheme.lower() == "bearer" and hmac.compare_digest(
            given.strip().encode("latin-1", "replace"), token
        )


class Shell:
    """The ASGI application: checks a request, reads it, and hands it on."""

    def __init__(self, door: Door, handler: Handler) -> None:
        self._door = door
        self._handler = handler

    async def __call__(
        self,
        scope: dict[str, Any],
        receive: Callable[[], Awaitable[Any]],
        send: Callable[[Any], Awaitable[None]],
    ) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        request = Request(scope, receive, send)
        refusal = self._door.refusal(request)
        if refusal is not None:
            await request.refuse(*refusal)
        elif not self._handler.serves(request):
            await request.refuse(404, "there is nothing at this path")
        elif await request.read():
            await self._handler.handle(request)
        elif not request.gone:
            await request.refuse(413, f"a request may have {MAX_BODY_BYTES:,} bytes")


async def while_listening(request: Request, work: Any, *, goes_on: bool = False) -> None:
    """Do work until it ends or the client goes; `goes_on` lets it end although nobody listens."""
    task = asyncio.ensure_future(work)
    watch = asyncio.ensure_future(request.until_gone())
    try:
        await asyncio.wait({task, watch}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done() and not goes_on:
            task.cancel()
        await asyncio.wait({task})
    finally:
        watch.cancel()
        if not task.done():
            task.cancel()
    if not task.cancelled():
        task.result()
