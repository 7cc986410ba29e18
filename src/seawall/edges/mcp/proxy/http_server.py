"""A server over HTTP behind a client on standard streams."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

import msgspec

from seawall.edges.mcp.proxy import messages
from seawall.edges.mcp.proxy.exchange import ServerGone
from seawall.edges.mcp.proxy.http_client import NAMED, HttpClient
from seawall.edges.mcp.proxy.messages import VERSION_KEY, Message, key_of
from seawall.edges.mcp.proxy.sse import Events, TooLong
from seawall.pipeline.foreign import log

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from seawall.edges.mcp.proxy.http_client import Headers, Response
    from seawall.edges.mcp.proxy.link import Link, Server
    from seawall.pipeline.clock import Clock

ACCEPT = (b"accept", b"application/json, text/event-stream")
JSON = (b"content-type", b"application/json")

SSE = "text/event-stream"

RESUME_TRIES = 5
RESUME_AFTER_S = 1.0
GOODBYE_WITHIN_S = 2.0


class Expired(Exception):  # noqa: N818  # named by what happened
    """The server does not know the session any more."""


class HttpServer:
    """Sends each message by a request of its own and hands on what comes back."""

    def __init__(self, url: str, link: Link, clock: Clock) -> None:
        self._client = HttpClient(url, clock)
        self._link = link
        self._clock = clock
        self._session: bytes | None = None
        self._version: bytes | None = None
        self._initialize: Message | None = None
        self._initialized: Message | None = None
        self._renewing: asyncio.Task[None] | None = None
        self._listening: asyncio.Task[None] | None = None
        self._tasks: dict[asyncio.Task[None], Any] = {}
        self._queue: asyncio.Task[None] | None = None

    def send(self, message: Message) -> None:
        """Send one message; requests go side by side, what else there is in its order."""
        envelope = message.envelope
        if envelope.method == "initialize":
            self._initialize = message
        elif envelope.method == "notifications/initialized":
            self._initialized = message
        elif envelope.method == "notifications/cancelled" and self._aborted(message):
            return
        before = None if envelope.is_request and self._session is not None else self._queue
        task = asyncio.get_running_loop().create_task(self._sent(message, before))
        if before is not None or not envelope.is_request or envelope.method == "initialize":
            self._queue = task
        self._tasks[task] = key_of(envelope.id) if envelope.is_request else None
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.pop(task, None)
        if self._queue is task:
            self._queue = None

    def _aborted(self, message: Message) -> bool:
        """Without a session, a request is cancelled by closing its connection."""
        if self._session is not None or self._initialize is not None:
            return False
        key = key_of(message.envelope.parameters().get("requestId"))
        for task, request_key in tuple(self._tasks.items()):
            if request_key is not None and request_key == key:
                task.cancel()
        return True

    async def _sent(self, message: Message, before: asyncio.Task[None] | None) -> None:
        if before is not None:
            await asyncio.wait({before})
        envelope = message.envelope
        try:
            await self._posted(message)
        except Expired:
            await self._again(message)
        except ServerGone as gone:
            if envelope.is_request:
                self._link.request_gone(envelope.id, gone)
            else:
                log.warning("%s", gone.why)

    async def _again(self, message: Message) -> None:
        """Open a new session and send once more what the old one did not take."""
        try:
            if self._renewing is None or self._renewing.done():
                self._renewing = asyncio.get_running_loop().create_task(self._renewed())
            await asyncio.shield(self._renewing)
            await self._posted(message)
        except (Expired, ServerGone) as error:
            why = (
                error.why
                if isinstance(error, ServerGone)
                else "the session is lost; begin a new one"
            )
            if message.envelope.is_request:
                self._link.request_gone(message.envelope.id, ServerGone(why, may_have_run=False))

    async def _renewed(self) -> None:
        first = self._initialize
        if first is None:
            raise ServerGone("the session is lost; begin a new one", may_have_run=False)
        self._session = None
        self._stop_listening()
        headers = [ACCEPT, JSON]
        async with self._client.open("POST", headers, first.raw) as response:
            if response.status != 200:
                raise ServerGone("the server opens no new session", may_have_run=False)
            self._session = response.header(b"mcp-session-id").encode() or None
            await response.body()
        if self._initialized is not None:
            await self._posted(self._initialized)
        for message in self._link.said_before():
            with contextlib.suppress(ServerGone):  # a session without it serves the rest
                await self._posted(message)

    async def _posted(self, message: Message) -> None:
        envelope = message.envelope
        first = envelope.method == "initialize"
        had_session = self._session
        async with self._client.open("POST", self._headers(message), message.raw) as response:
            if response.status == 404 and had_session is not None and not first:
                raise Expired
            if first and response.status == 200:
                self._session = response.header(b"mcp-session-id").encode() or None
            await self._taken(response, message)
        if envelope.method == "notifications/initialized":
            self._stop_listening()
            self._listening = asyncio.get_running_loop().create_task(self._listen())

    def _headers(self, message: Message) -> Headers:
        envelope = message.envelope
        headers = [ACCEPT, JSON]
        params = envelope.parameters() if envelope.is_request else {}
        meta = params.get("_meta")
        version = meta.get(VERSION_KEY) if isinstance(meta, dict) else None
        if isinstance(version, str) and isinstance(envelope.method, str):
            headers += [
                (b"mcp-protocol-version", version.encode("latin-1", "replace")),
                (b"mcp-method", envelope.method.encode("latin-1", "replace")),
            ]
            headers += self._repeated(envelope.method, params)
        elif self._version is not None and envelope.method != "initialize":
            headers.append((b"mcp-protocol-version", self._version))
        if self._session is not None and envelope.method != "initialize":
            headers.append((b"mcp-session-id", self._session))
        return headers

    def _repeated(self, method: str, params: dict[str, Any]) -> Headers:
        """What the headers say again of the body, as revision 2026-07-28 wants."""
        named = params.get(NAMED.get(method, ""))
        if not isinstance(named, str):
            return []
        from mcp.shared.inbound import encode_header_value  # noqa: PLC0415  # the revision's own form

        found = [(b"mcp-name", encode_header_value(named).encode())]
        if method == "tools/call":
            found += self._link.parameter_headers(named, params)
        return found

    async def _taken(self, response: Response, message: Message) -> None:
        """Hand on what an answer brings; raises `ServerGone` if it answers no request."""
        envelope = message.envelope
        if response.kind == SSE and response.status == 200:
            await self._events(response, message)
            return
        body = await response.body()
        if not envelope.is_request:
            if response.status >= 400:
                log.warning("the server refused a message with status %d", response.status)
            return
        found = messages.heard(body)
        if found is None or key_of(found.envelope.id) != key_of(envelope.id):
            said = f"the server answered with status {response.status}"
            raise ServerGone(said, may_have_run=messages.may_have_run(response.status, found))
        self._came(found, message)

    def _came(self, found: Message, asked: Message) -> None:
        if asked.envelope.method == "initialize":
            self._negotiated(found)
        self._link.from_server(found.raw)

    def _negotiated(self, found: Message) -> None:
        version = found.envelope.results().get("protocolVersion")
        if isinstance(version, str):
            self._version = version.encode("latin-1", "replace")

    async def _events(self, response: Response, asked: Message) -> None:
        last, retry_s = await self._streamed(response, asked)
        tries = 0
        while last is not None:
            # The server closed the stream and keeps the rest: it is to be fetched.
            if not last or tries >= RESUME_TRIES:
                raise ServerGone("the server ended its stream without an answer", may_have_run=True)
            tries += 1
            await self._clock.sleep(retry_s)
            headers = [*self._own_headers(), (b"last-event-id", last)]
            async with self._client.open("GET", headers) as resumed:
                if resumed.kind != SSE:
                    raise ServerGone("the server's stream cannot be resumed", may_have_run=True)
                following, retry_s = await self._streamed(resumed, asked, retry_s)
            if following:
                tries = 0
            last = following if following is None else following or last

    async def _streamed(
        self, response: Response, asked: Message | None, retry_s: float = RESUME_AFTER_S
    ) -> tuple[bytes | None, float]:
        """Hand on events; gives the id of the last one, or None once `asked` was answered."""
        events, last = Events(), b""
        try:
            async for piece in response.pieces():
                for event in events.feed(piece):
                    last = event.id or last
                    if event.retry.isdigit():
                        retry_s = min(int(event.retry) / 1000, 60.0)
                    if event.data and self._event(event.data, asked):
                        return None, retry_s
        except TooLong:
            raise ServerGone("the server's answer is beyond the bound", may_have_run=True) from None
        except ServerGone:
            if not last:
                raise
        return last, retry_s

    def _event(self, data: bytes, asked: Message | None) -> bool:
        found = messages.heard(data)
        if found is None:
            log.warning("the server sent an event that is no message: %r", data[:200])
            return False
        envelope = found.envelope
        if asked is None or envelope.method is not msgspec.UNSET:
            self._link.from_server(found.raw)
            return False
        self._came(found, asked)
        return bool(key_of(envelope.id) == key_of(asked.envelope.id))

    def _own_headers(self) -> Headers:
        headers: Headers = [(b"accept", b"text/event-stream")]
        if self._session is not None:
            headers.append((b"mcp-session-id", self._session))
        if self._version is not None:
            headers.append((b"mcp-protocol-version", self._version))
        return headers

    async def _listen(self) -> None:
        """Hold open the stream on which the server speaks by itself, if it has one."""
        last, retry_s = b"", RESUME_AFTER_S
        while self._session is not None:
            resumed = [(b"last-event-id", last)] if last else []
            try:
                async with self._client.open("GET", [*self._own_headers(), *resumed]) as response:
                    if response.status != 200 or response.kind != SSE:
                        return
                    found, retry_s = await self._streamed(response, None, retry_s)
                    last = found or last
            except ServerGone:
                pass
            await self._clock.sleep(retry_s)

    def _stop_listening(self) -> None:
        if self._listening is not None:
            self._listening.cancel()
            self._listening = None

    async def stop(self) -> None:
        """End the session, and all that is under way."""
        self._stop_listening()
        for task in tuple(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(tuple(self._tasks))
        if self._session is not None:
            with self._clock.limit(GOODBYE_WITHIN_S):
                await self._say_goodbye()
        await self._client.aclose()

    async def _say_goodbye(self) -> None:
        try:
            async with self._client.open("DELETE", self._own_headers()) as response:
                await response.body()
        except ServerGone:
            pass  # then it has ended it by itself


def connecting(url: str, clock: Clock) -> Callable[[Link], Awaitable[Server]]:
    """Give what connects a link to an address."""

    async def connect(link: Link) -> Server:
        return HttpServer(url, link, clock)

    return connect
