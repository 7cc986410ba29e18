"""What stands before every HTTP request: who may come, from where, and with how much."""

from __future__ import annotations

import asyncio
import hmac
from typing import TYPE_CHECKING, Any, Protocol

from seawall.edges.addresses import LOOPBACK_NAMES, is_loopback
from seawall.edges.mcp.proxy import messages
from seawall.edges.requests import Gone, Hosts, Incoming, TooLarge, bearer_in, ended_first

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from seawall.edges.mcp.proxy.http_client import Headers
    from seawall.edges.requests import Message, Pairs, Receive, Send

MAX_BODY_BYTES = 16 * 1024 * 1024


class Request(Incoming):
    """One HTTP request, and the way back."""

    def __init__(self, scope: Message, receive: Receive, send: Send) -> None:
        super().__init__(scope, receive, send)
        self.query: bytes = scope.get("query_string", b"")
        self.body = b""
        self.begun = False
        self.gone = False
        """The client does not listen any more."""

    async def until_gone(self) -> None:
        """Wait until the client does not listen any more."""
        await super().until_gone()
        self.gone = True

    async def begin(self, status: int, headers: Headers) -> None:
        """Begin the answer."""
        self.begun = True
        await self.send({"type": "http.response.start", "status": status, "headers": headers})

    async def piece(self, data: bytes, *, more: bool = True) -> None:
        """Send a piece of the answer."""
        await self.send({"type": "http.response.body", "body": data, "more_body": more})

    async def whole(self, status: int, body: bytes, headers: Pairs = ()) -> None:
        """Send the whole answer."""
        self.begun = True
        await super().whole(status, body, headers)

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
        own = LOOPBACK_NAMES if is_loopback(host) else frozenset[str]()
        self._hosts = Hosts({*hosts, *own})
        self._any_host = not self._hosts
        self._origins = {origin.lower().rstrip("/") for origin in origins}

    @property
    def takes_token(self) -> bool:
        """Whether the credentials of requests are for the proxy, not for the server."""
        return self._token is not None

    def refusal(self, request: Request) -> tuple[int, str] | None:
        """Say why a request may not come in, as a status and a line."""
        hosts = request.all(b"host")
        if len(hosts) != 1 or not (self._any_host or hosts[0] in self._hosts):
            return (
                421,
                "this host name is not served here; ask by another, or start with --allow-host",
            )
        if not all(self._may_come_from(origin) for origin in request.all(b"origin")):
            return 403, "this origin may not use it; start with --allow-origin to let it"
        if self._token is not None and not self._has_token(request, self._token):
            return 401, "a bearer token is needed: send `Authorization: Bearer TOKEN`"
        return None

    def _may_come_from(self, sent: bytes) -> bool:
        origin = sent.lower()
        if origin.decode("latin-1") in self._origins:
            return True
        scheme, _, host = origin.partition(b"://")
        return scheme in (b"http", b"https") and host in self._hosts and not self._any_host

    def _has_token(self, request: Request, token: bytes) -> bool:
        found = request.all(b"authorization")
        given = bearer_in(found[0]) if len(found) == 1 else None
        return given is not None and hmac.compare_digest(given, token)


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
            await request.refuse(404, "there is nothing at this path; use /mcp")
        else:
            await self._serve(request)

    async def _serve(self, request: Request) -> None:
        try:
            request.body = await request.read(MAX_BODY_BYTES)
        except TooLarge:
            await request.refuse(413, f"a request may have {MAX_BODY_BYTES:,} bytes")
        except Gone:
            pass
        else:
            await self._handler.handle(request)


async def while_listening(request: Request, work: Any, *, goes_on: bool = False) -> None:
    """Do work until it ends or the client goes; `goes_on` lets it end although nobody listens."""
    task = asyncio.ensure_future(work)
    try:
        if not await ended_first(task, request) and not goes_on:
            task.cancel()
        await asyncio.wait({task})
    finally:
        if not task.done():
            task.cancel()
    if not task.cancelled():
        task.result()
