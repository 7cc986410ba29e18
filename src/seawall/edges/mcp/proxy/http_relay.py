"""A server over HTTP, offered over HTTP: requests and streams pass as they are, calls are guarded.

Sessions, event ids and resumption are the server's own. A call whose stream the server closes goes
on; its answer is taken from whichever stream brings it, and leaves on the same.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec

from seawall.edges.mcp.proxy import messages
from seawall.edges.mcp.proxy.call_stream import CallStream
from seawall.edges.mcp.proxy.client import Client
from seawall.edges.mcp.proxy.exchange import ServerGone
from seawall.edges.mcp.proxy.http_client import HOP_BY_HOP
from seawall.edges.mcp.proxy.http_session import HttpSession
from seawall.edges.mcp.proxy.http_shell import while_listening
from seawall.edges.mcp.proxy.messages import Message, key_of
from seawall.edges.mcp.proxy.sse import Event, Events, TooLong, written

if TYPE_CHECKING:
    import asyncio

    from seawall.edges.mcp.proxy.exchange import Exchange
    from seawall.edges.mcp.proxy.guard import Guard
    from seawall.edges.mcp.proxy.http_client import Headers, HttpClient
    from seawall.edges.mcp.proxy.http_shell import Request

MAX_SESSIONS = 10_000
SESSION = b"mcp-session-id"
SSE = "text/event-stream"
PARAM = b"mcp-param-"


class Relay:
    """Answers HTTP requests with what the server says."""

    def __init__(self, guard: Guard, server: HttpClient, *, strip_credentials: bool) -> None:
        self.guard = guard
        self.server = server
        self._strip = strip_credentials
        self._sessions: OrderedDict[Any, HttpSession] = OrderedDict()
        self._tasks: set[asyncio.Task[None]] = set()
        parts = urlsplit(server.url)
        self._path = parts.path or "/"
        self._origin = f"{parts.scheme}://{parts.netloc}"

    def serves(self, request: Request) -> bool:
        """Serve the server's own path, `/mcp`, and what it says of how to be authorised."""
        return request.path in (self._path, "/mcp") or request.path.startswith("/.well-known/")

    async def handle(self, request: Request) -> None:
        """Answer one request."""
        try:
            if request.path.startswith("/.well-known/"):
                await self._pass(request, request.body, url=self._origin + request.path)
            elif request.method == "POST":
                await self._post(request)
            else:
                await self._other(request)
        except ServerGone as gone:
            if not request.begun:
                await _unreachable(request, None, gone)

    async def _other(self, request: Request) -> None:
        session = self.session_of(request)
        if request.method == "GET":
            await while_listening(request, self._stream(request, session))
            return
        if request.method == "DELETE":
            self._sessions.pop(request.header(SESSION), None)
        await self._pass(request, request.body)

    async def _post(self, request: Request) -> None:
        message = messages.read(request.body)
        if message is None:
            await self._not_read(request)
            return
        envelope = message.envelope
        if envelope.method != "tools/call" and messages.is_ambiguous(message):
            await request.json(400, messages.ambiguous(envelope.id))
            return
        session = self.session_of(request)
        if envelope.is_request:
            await self._request(request, session, message)
            return
        if envelope.is_notification:
            if self._cancelled(session, message):
                await request.whole(202, b"")
                return
        elif session.client.answered(message):
            await request.whole(202, b"")
            return
        else:
            session.release(envelope.id)
        await self._pass(request, message.raw)

    async def _not_read(self, request: Request) -> None:
        parts = messages.batch(request.body)
        found = [messages.read(part) for part in parts or ()]
        if parts is None or None in found:
            said = messages.error(None, messages.PARSE_ERROR, "the message is no JSON-RPC")
            await request.json(400, said)
        elif any(
            part and (part.envelope.method == "tools/call" or messages.is_ambiguous(part))
            for part in found
        ):
            said = messages.error(
                None, messages.INVALID_REQUEST, "tools/call must not be part of a batch here"
            )
            await request.json(400, said)
        else:
            await self._pass(request, request.body)

    async def _request(self, request: Request, session: HttpSession, message: Message) -> None:
        method = message.envelope.method
        if method == "tools/call":
            await self._call(request, session, message)
        elif method == "initialize":
            await while_listening(request, self._initialize(request, message))
        elif method == "tools/list":
            await while_listening(request, self._list(request, session, message))
        else:
            await self._pass(request, message.raw, message)

    # Calls

    async def _call(self, request: Request, session: HttpSession, message: Message) -> None:
        key = key_of(message.envelope.id)
        client = session.client
        call = CallStream(self, request, session, message, self.forwarded(request))
        if not client.stateless:
            if key in session.calls:
                said = "a request with this id is under way already"
                await request.json(
                    400, messages.error(message.envelope.id, messages.INVALID_REQUEST, said)
                )
                return
            session.calls[key] = call
        try:
            goes_on = not call.exchange.stateless
            await while_listening(request, call.run(), goes_on=goes_on)
        finally:
            session.calls.pop(key, None)
            session.awaited.pop(key_of(call.exchange.attempt_id), None)

    def _cancelled(self, session: HttpSession, message: Message) -> bool:
        if message.envelope.method != "notifications/cancelled":
            return False
        params = message.envelope.parameters()
        call = session.calls.get(key_of(params.get("requestId")))
        if call is None:
            return False
        call.exchange.cancel(params.get("reason"))
        return True

    # All else

    async def _pass(
        self,
        request: Request,
        body: bytes,
        message: Message | None = None,
        *,
        url: str | None = None,
    ) -> None:
        await while_listening(request, self._passed(request, body, message, url))

    async def _passed(
        self, request: Request, body: bytes, message: Message | None, url: str | None
    ) -> None:
        try:
            async with self.open(request, body, url=url) as response:
                await request.begin(response.status, response.headers)
                async for piece in response.pieces():
                    await request.piece(piece)
                await request.piece(b"", more=False)
        except ServerGone as gone:
            if not request.begun:
                await _unreachable(request, message, gone)
            else:
                await self._broken(request, message, gone)

    async def _broken(self, request: Request, message: Message | None, gone: ServerGone) -> None:
        """A stream that began and broke: say so on it, where somebody waits for its end."""
        if message is not None:
            await request.piece(written(_gone(message, gone)))
        await request.piece(b"", more=False)

    async def _initialize(self, request: Request, message: Message) -> None:
        client = Client(self.guard.chance)
        client.initialized(message.envelope.parameters())
        try:
            async with self.open(request, message.raw) as response:
                session_id = response.header(SESSION)
                if session_id and response.status < 400:
                    self._keep(session_id, HttpSession(client))
                await request.begin(response.status, response.headers)
                async for piece in response.pieces():
                    await request.piece(piece)
                await request.piece(b"", more=False)
        except ServerGone as gone:
            if not request.begun:
                await _unreachable(request, message, gone)

    async def _list(self, request: Request, session: HttpSession, message: Message) -> None:
        """Pass a list on, and learn from it, however it comes."""
        # In plain text: what cannot be read could show what is to be held back.
        headers = [(n, v) for n, v in self.forwarded(request) if n != b"accept-encoding"]
        try:
            async with self.open(request, message.raw, headers=headers) as response:
                if response.status == 200 and response.kind == SSE:
                    await request.begin(response.status, response.headers)
                    events = Events()
                    async for piece in response.pieces():
                        for event in events.feed(piece):
                            shown = self._learnt(session, message, event.data)
                            said = event.raw if shown is None else written(shown, event.id)
                            await request.piece(said)
                else:
                    body = await response.body()
                    shown = self._learnt(session, message, body)
                    await request.begin(response.status, response.headers)
                    await request.piece(body if shown is None else shown)
                await request.piece(b"", more=False)
        except TooLong:
            await request.piece(b"", more=False)
        except ServerGone as gone:
            if not request.begun:
                await _unreachable(request, message, gone)

    def _learnt(self, session: HttpSession, asked: Message, text: bytes) -> bytes | None:
        """Learn from an answer to a list; gives what is to be shown instead, if it is another."""
        message = messages.read(text) if text else None
        if message is None or message.envelope.id != asked.envelope.id:
            return None
        self.guard.catalogue.seen(session.client, message)
        return self.guard.catalogue.shown(message)

    async def _stream(self, request: Request, session: HttpSession) -> None:
        """Pass on a stream that the client opened, and take out what answers a call."""
        async with self.open(request, b"") as response:
            await request.begin(response.status, response.headers)
            if response.kind != SSE:
                async for piece in response.pieces():
                    await request.piece(piece)
                await request.piece(b"", more=False)
                return
            events = Events()
            async for piece in response.pieces():
                for event in events.feed(piece):
                    await request.piece(await self._on_stream(session, event))
            await request.piece(b"", more=False)

    async def _on_stream(self, session: HttpSession, event: Event) -> bytes:
        message = messages.read(event.data) if event.data else None
        if message is None:
            return event.raw
        if message.envelope.method is not msgspec.UNSET:
            return event.raw if self.observed(session, message) else b": \r\n\r\n"
        key = key_of(message.envelope.id)
        call = session.awaited.pop(key, None)
        if call is not None:
            return written(await call.answered_elsewhere(message), event.id)
        kept = session.kept.pop(key, None)
        if kept is None:
            kept = self.guard.catalogue.shown(message)
        return event.raw if kept is None else written(kept, event.id)

    def observed(
        self, session: HttpSession, message: Message, call: CallStream | None = None
    ) -> bool:
        """Look at what the server says by itself; whether the client is to hear it."""
        envelope = message.envelope
        if envelope.is_request:
            session.hold(message, self.guard)
        elif envelope.method == "notifications/tools/list_changed":
            self.guard.catalogue.changed(session.client)
        elif envelope.method == "notifications/progress":
            params = envelope.parameters()
            token = params.get("progressToken")
            calls = [call] if call is not None else list(session.calls.values())
            for one in calls:
                if token is not None and token in (one.exchange.token, one.exchange.own_token):
                    return one.exchange.heard(params.get("progress"))
            return not session.client.made_token(token)
        return True

    def with_parameters(self, headers: Headers, exchange: Exchange, params: Any) -> Headers:
        """Let the headers that repeat arguments say what the arguments say now."""
        if not any(name.startswith(PARAM) for name, _ in headers):
            return headers
        kept = [(name, value) for name, value in headers if not name.startswith(PARAM)]
        return [*kept, *self.guard.parameter_headers(exchange.name, params)]

    def keep_task(self, task: asyncio.Task[None]) -> None:
        """Hold a task until it ends."""
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # What is known

    def session_of(self, request: Request) -> HttpSession:
        """Find what is known of the session that a request names, or make it anew."""
        session_id = request.header(SESSION)
        version = request.header(b"mcp-protocol-version")
        key: Any = session_id or (version > "2026", request.header(b"authorization"))
        session = self._sessions.get(key)
        if session is None:
            session = HttpSession(Client(self.guard.chance, stateless=not session_id))
            self._keep(key, session)
        else:
            self._sessions.move_to_end(key)
        return session

    def _keep(self, key: Any, session: HttpSession) -> None:
        self._sessions[key] = session
        while len(self._sessions) > MAX_SESSIONS:
            self._sessions.popitem(last=False)

    def forwarded(self, request: Request) -> Headers:
        """The request's headers as the server is to get them."""
        left_out = {*HOP_BY_HOP, *([b"authorization"] if self._strip else [])}
        return [(name, value) for name, value in request.sent if name not in left_out]

    def open(
        self,
        request: Request,
        body: bytes,
        *,
        url: str | None = None,
        headers: Headers | None = None,
    ) -> Any:
        """Send the server a request of the client's."""
        target = url or self.server.url
        if request.query:
            target += ("&" if "?" in target else "?") + request.query.decode("latin-1")
        sent = self.forwarded(request) if headers is None else headers
        return self.server.open(request.method, sent, body, url=target)


def _gone(message: Message | None, gone: ServerGone) -> bytes:
    request_id = None if message is None else message.envelope.id
    data = {"reason": "transport"}
    return messages.error(request_id, messages.INTERNAL_ERROR, gone.why, data)


async def _unreachable(request: Request, message: Message | None, gone: ServerGone) -> None:
    """Say that the server is not there; never an empty success."""
    await request.json(502, _gone(message, gone))
