"""Requests to a server over HTTP, answered in pieces as they come."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit
from urllib.request import getproxies

from seawall.edges.mcp.proxy.exchange import ServerGone
from seawall.edges.mcp.proxy.messages import MAX_MESSAGE_BYTES

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from seawall.edges.mcp.proxy.wire import WireClient
    from seawall.pipeline.clock import Clock

Headers = list[tuple[bytes, bytes]]

SSE = "text/event-stream"
JSON = "application/json"

CONNECT_WITHIN_S = 10.0

HOP_BY_HOP = frozenset(
    b"connection keep-alive proxy-authenticate proxy-authorization proxy-connection te trailer"
    b" transfer-encoding upgrade host content-length".split()
)

NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
"""What the header `Mcp-Name` repeats of the parameters, by the method."""


class Response:
    """An answer whose body is still coming."""

    def __init__(
        self, status: int, headers: Headers, pieces: Callable[[], AsyncIterator[bytes]]
    ) -> None:
        self.status = status
        self.headers = [(name, value) for name, value in headers if name not in HOP_BY_HOP]
        self.pieces = pieces
        """The body as it comes, not decompressed; raises `ServerGone` if it breaks off."""

    def header(self, name: bytes) -> str:
        """One header; empty if it is not there."""
        return next((v.decode("latin-1") for n, v in self.headers if n == name), "")

    @property
    def kind(self) -> str:
        """The media type, without its parameters."""
        return self.header(b"content-type").partition(";")[0].strip().lower()

    @property
    def form(self) -> str:
        """How clients may read it: as the stream of events, as JSON, or not (empty).

        Some look for these words anywhere in the header, so that is what counts.
        """
        said = b",".join(v for n, v in self.headers if n == b"content-type").lower()
        return next((form for form in (SSE, JSON) if form.encode() in said), "")

    async def body(self) -> bytes:
        """The whole body; raises `ServerGone` if it breaks off or is beyond the bound."""
        found: list[bytes] = []
        size = 0
        async for piece in self.pieces():
            found.append(piece)
            size += len(piece)
            if size > MAX_MESSAGE_BYTES:
                raise ServerGone("the server's answer is beyond the bound", may_have_run=True)
        return found[0] if len(found) == 1 else b"".join(found)


class HttpClient:
    """Connections to one server, kept open between requests.

    A plain address nearby is spoken to directly; TLS, and proxies that the environment names, are
    left to the general client. Redirects are not followed.
    """

    def __init__(self, url: str, clock: Clock) -> None:
        self.url = url
        self._wire = _wire(url, clock)
        self._client = None if self._wire is not None else _general_client()

    @contextlib.asynccontextmanager
    async def open(
        self, method: str, headers: Headers, body: bytes = b"", *, url: str | None = None
    ) -> AsyncIterator[Response]:
        """Send a request; the block has its answer. Raises `ServerGone` if there is none."""
        url = url or self.url
        if self._wire is not None:
            parts = urlsplit(url)
            target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
            async with self._wire.open(method, target, headers, body) as connection:
                yield Response(connection.status, connection.headers, connection.pieces)
            return
        inner = await self._sent(method, url, headers, body)
        try:
            found = [(name.lower(), value) for name, value in inner.headers.raw]
            yield Response(inner.status_code, found, lambda: _pieces(inner))
        finally:
            await inner.aclose()

    async def _sent(self, method: str, url: str, headers: Headers, body: bytes) -> Any:
        import httpx2  # noqa: PLC0415  # loaded when the client was made

        client: Any = self._client
        request = client.build_request(method, url, headers=headers, content=body or None)
        try:
            return await client.send(request, stream=True)
        except (httpx2.ConnectError, httpx2.ConnectTimeout):
            raise ServerGone("the server cannot be reached", may_have_run=False) from None
        except httpx2.HTTPError as error:
            said = f"the server gave no answer: {type(error).__name__}"
            raise ServerGone(said, may_have_run=True) from None

    async def aclose(self) -> None:
        """Close all connections."""
        if self._wire is not None:
            self._wire.close()
        if self._client is not None:
            await self._client.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *raised: object) -> None:
        await self.aclose()


def _wire(url: str, clock: Clock) -> WireClient | None:
    if not url.startswith("http://") or getproxies().get("http"):
        return None
    try:
        from seawall.edges.mcp.proxy.wire import WireClient  # noqa: PLC0415  # needs an extra
    except ModuleNotFoundError:
        return None  # the general client can do the same, at its price
    return WireClient(url, clock, CONNECT_WITHIN_S)


def _general_client() -> Any:
    import httpx2  # noqa: PLC0415  # an extra

    return httpx2.AsyncClient(
        timeout=httpx2.Timeout(None, connect=CONNECT_WITHIN_S),
        limits=httpx2.Limits(max_connections=None, max_keepalive_connections=100),
        follow_redirects=False,
    )


async def _pieces(inner: Any) -> AsyncIterator[bytes]:
    import httpx2  # noqa: PLC0415  # loaded when the client was made

    try:
        async for piece in inner.aiter_raw():
            yield piece
    except httpx2.HTTPError as error:
        said = f"the server broke off its answer: {type(error).__name__}"
        raise ServerGone(said, may_have_run=True) from None
