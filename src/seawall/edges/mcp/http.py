"""The HTTP client under the SDK's streamable HTTP: bounded answers, and errors that say why.

The SDK ends a whole connection when one request cannot be sent, and forgets the status of an error
answer. Here each becomes a JSON-RPC error of that one request. Answers are not taken compressed:
what a compressed one grows to would not be bounded.
"""

from __future__ import annotations

import contextlib
import json
from base64 import b64encode
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import httpx2
from pydantic_core import from_json

from seawall.edges.mcp.codes import HTTP_STATUS, SESSION_GONE, TOO_LARGE, UNREACHABLE
from seawall.edges.mcp.messages import mended
from seawall.pipeline.foreign import masked
from seawall.pipeline.retry_after import retry_after_of

if TYPE_CHECKING:
    from seawall.edges.mcp.config import ServerConfig
    from seawall.pipeline.clock import Clock

CONNECT_S = 10.0
WRITE_S = 30.0
ERROR_BYTES = 64 * 1024

_LOCAL = ("localhost", "127.0.0.1", "::1")
_NOT_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)


def http_client(config: ServerConfig, clock: Clock, max_bytes: int) -> httpx2.AsyncClient:
    """Make a client for one server. How long an answer may take is for the pipeline to say."""
    url = httpx2.URL(config.url or "")
    return httpx2.AsyncClient(
        headers={**_credentials(url), **config.headers, "Accept-Encoding": "identity"},
        timeout=httpx2.Timeout(CONNECT_S, read=None, write=WRITE_S, pool=None),
        transport=_Careful(_plain(config.url or ""), clock, max_bytes, url.query),
    )


def bare(url: str) -> str:
    """An address for the SDK, without what may be secret in it.

    The SDK and its HTTP client log addresses; here a key in the query, or a password, is put in
    where the request leaves.
    """
    return str(httpx2.URL(url).copy_with(userinfo=b"", query=None, fragment=None))


def _credentials(url: httpx2.URL) -> dict[str, str]:
    if not url.userinfo:
        return {}
    pair = f"{url.username}:{url.password}".encode()
    return {"Authorization": f"Basic {b64encode(pair).decode()}"}


def _plain(url: str) -> httpx2.AsyncHTTPTransport:
    """Make the transport under it, through the proxy that the environment names for an address."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    proxy = getproxies().get(parts.scheme, "")
    if not proxy.startswith(("http://", "https://")) or host in _LOCAL or proxy_bypass(host):
        return httpx2.AsyncHTTPTransport()
    return httpx2.AsyncHTTPTransport(proxy=httpx2.Proxy(proxy))


class _Careful(httpx2.AsyncBaseTransport):
    def __init__(
        self, inner: httpx2.AsyncBaseTransport, clock: Clock, max_bytes: int, query: bytes = b""
    ) -> None:
        self._inner = inner
        self._clock = clock
        self._max_bytes = max_bytes
        self._query = query

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send it; what goes wrong is said as a JSON-RPC error."""
        try:
            response = await self._inner.handle_async_request(self._whole_address(request))
            return await self._looked_at(request, response)
        except httpx2.TransportError as error:
            sent = not isinstance(error, _NOT_SENT)
            said = masked(str(error).strip())[:200] or "no reason was given"
            what = "the connection failed" if sent else "the server cannot be reached"
            return _error(request, UNREACHABLE, f"{what}: {said}", {"sent": sent})

    def _whole_address(self, request: httpx2.Request) -> httpx2.Request:
        if not self._query or request.url.query:  # a server that sends elsewhere says all of it
            return request
        return httpx2.Request(
            request.method,
            request.url.copy_with(query=self._query),
            headers=request.headers,
            stream=request.stream,
            extensions=request.extensions,
        )

    async def _looked_at(
        self, request: httpx2.Request, response: httpx2.Response
    ) -> httpx2.Response:
        coding = response.headers.get("content-encoding", "identity").strip().lower()
        if coding not in ("", "identity"):
            await response.aclose()
            return _error(request, TOO_LARGE, f"the answer is compressed ({coding})", None)
        if response.status_code >= 400:
            return await self._refused(request, response)
        if _is_json(response):
            return await self._whole(request, response)
        return response

    async def _whole(self, request: httpx2.Request, response: httpx2.Response) -> httpx2.Response:
        body = await _read(response, self._max_bytes)
        if body is None:
            said = f"a message of the server had more than {self._max_bytes} bytes"
            return _error(request, TOO_LARGE, said, None)
        return httpx2.Response(
            response.status_code, headers=response.headers, content=_sound(body), request=request
        )

    async def _refused(self, request: httpx2.Request, response: httpx2.Response) -> httpx2.Response:
        body = await _read(response, ERROR_BYTES)
        if response.status_code == 404 and "mcp-session-id" in request.headers:
            return _error(request, SESSION_GONE, "the server has forgotten the session", None)
        if _is_json(response) and body is not None and _is_rpc_error(body):
            return httpx2.Response(
                response.status_code, headers=response.headers, content=body, request=request
            )
        about: dict[str, Any] = {"status": response.status_code}
        wait_s = retry_after_of(_Answer(response), self._clock.wall)
        if wait_s is not None:
            about["retry_after_s"] = wait_s
        said = f"the server answered with HTTP status {response.status_code}"
        return _error(request, HTTP_STATUS, said, about)

    async def aclose(self) -> None:
        """Close all connections."""
        await self._inner.aclose()


class _Answer(Exception):  # noqa: N818  # only looked at, never raised
    """An answer, in the form in which a hint when to come back is looked for."""

    def __init__(self, response: httpx2.Response) -> None:
        super().__init__()
        self.response = response


def _is_json(response: httpx2.Response) -> bool:
    kind: str = response.headers.get("content-type", "")
    return kind.lower().startswith("application/json")


def _sound(body: bytes) -> bytes:
    """A body as the SDK can read it, if it is JSON."""
    try:
        body.decode()
        if b"\\u" in body:
            from_json(body)
    except ValueError:
        with contextlib.suppress(ValueError, RecursionError):
            return mended(body)
    return body


def _is_rpc_error(body: bytes) -> bool:
    try:
        said = json.loads(body)
    except (ValueError, RecursionError):
        return False
    error = said.get("error") if isinstance(said, dict) else None
    return isinstance(error, dict) and isinstance(error.get("code"), int)


async def _read(response: httpx2.Response, most: int) -> bytes | None:
    """Read all of a body, or None if it is too large."""
    parts: list[bytes] = []
    size = 0
    try:
        async for part in response.aiter_raw():
            size += len(part)
            if size > most:
                return None
            parts.append(part)
    finally:
        await response.aclose()
    return b"".join(parts)


def _error(request: httpx2.Request, code: int, message: str, data: Any) -> httpx2.Response:
    error = {"code": code, "message": message, **({} if data is None else {"data": data})}
    # Under this status the SDK puts the id of its own request in.
    return httpx2.Response(
        502, json={"jsonrpc": "2.0", "id": None, "error": error}, request=request
    )
