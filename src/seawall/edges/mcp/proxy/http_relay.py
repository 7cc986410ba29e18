"""A server over HTTP, offered over HTTP: requests and streams pass as they are, calls are guarded.

Sessions, event ids and resumption are the server's own, but an id of a session tells the proxy
which client it was given to. A call whose stream the server closes goes on; its answer is taken
from whichever stream brings it, and leaves on the same.
"""

from __future__ import annotations

import contextlib
from collections import OrderedDict
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec

from seawall.edges.mcp.proxy import messages
from seawall.edges.mcp.proxy.call_stream import CallStream
from seawall.edges.mcp.proxy.client import Client
from seawall.edges.mcp.proxy.exchange import ServerGone
from seawall.edges.mcp.proxy.http_client import HOP_BY_HOP, JSON, NAMED, SSE
from seawall.edges.mcp.proxy.http_session import HttpSession
from seawall.edges.mcp.proxy.http_shell import while_listening
from seawall.edges.mcp.proxy.messages import Message, key_of
from seawall.edges.mcp.proxy.session_ids import (
    OWNER_BYTES,
    SESSION,
    for_client,
    for_server,
    owner_in,
)
from seawall.edges.mcp.proxy.sse import (
    NOTHING,
    Event,
    Events,
    TooLong,
    passed,
    unread,
    written,
)
from seawall.pipeline.foreign import log

if TYPE_CHECKING:
    import asyncio
    from collections.abc import AsyncIterator

    from seawall.edges.mcp.proxy.exchange import Exchange
    from seawall.edges.mcp.proxy.guard import Guard
    from seawall.edges.mcp.proxy.http_client import Headers, HttpClient, Response
    from seawall.edges.mcp.proxy.http_shell import Request

MAX_SESSIONS = 10_000
PARAM = b"mcp-param-"

ENDPOINT = "/mcp"
WELL_KNOWN = ("oauth-protected-resource", "oauth-authorization-server", "openid-configuration")
METHODS = ("GET", "HEAD", "POST", "DELETE", "OPTIONS")
READING = ("GET", "HEAD", "OPTIONS")
HEADER_MISMATCH = -32020

LIST = "tools/list"
NEVER_IN_A_BATCH = ("tools/call", LIST, "initialize")
"""What is looked at, and so has to come alone."""


class Relay:
    """Answers HTTP requests with what the server says."""

    def __init__(self, guard: Guard, server: HttpClient, *, strip_credentials: bool) -> None:
        self.guard = guard
        self.server = server
        self._strip = strip_credentials
        self._sessions: OrderedDict[Any, HttpSession] = OrderedDict()
        self._tasks: set[asyncio.Task[None]] = set()
        self._served = served_paths(server.url)

    def serves(self, request: Request) -> bool:
        """Serve the server's own path, `/mcp`, and what it says of how to be authorised."""
        return written_path(request) in self._served

    async def handle(self, request: Request) -> None:
        """Answer one request; what goes on goes to an address that was given or made here."""
        url = self._served[written_path(request)]
        is_open = url == self.server.url
        methods = METHODS if is_open else READING
        try:
            if request.method not in methods:
                allowed = ", ".join(methods).encode()
                await request.whole(405, b"", [(b"allow", allowed)])
            elif not is_open:
                await self._pass(request, b"", url=url)
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
        await self._pass(request, b"")

    async def _post(self, request: Request) -> None:
        if not is_plain_json(request):
            await request.refuse(
                415, "send a message as application/json, in UTF-8, not compressed"
            )
            return
        message = messages.read(request.body)
        if message is None:
            await self._not_read(request)
            return
        envelope = message.envelope
        refusal = _refusal(request, message)
        if refusal is not None:
            await request.json(400, refusal)
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
        await self._pass(request, message.raw, session=session)

    async def _not_read(self, request: Request) -> None:
        parts = messages.batch(request.body)
        read = [messages.read(part) for part in parts or ()]
        found = [message for message in read if message is not None]
        if parts is None or len(found) < len(parts):
            said = messages.error(None, messages.PARSE_ERROR, "the message is no JSON-RPC")
            await request.json(400, said)
            return
        for message in found:
            fault = f"{message.envelope.method} must not be part of a batch here"
            alone = message.envelope.method in NEVER_IN_A_BATCH
            why = fault if alone else messages.fault_of(message)
            if why is not None:
                await request.json(400, messages.refused(message, why))
                return
        body = b"[" + b",".join(message.raw for message in found) + b"]"
        await self._pass(request, body, session=self.session_of(request))

    async def _request(self, request: Request, session: HttpSession, message: Message) -> None:
        method = message.envelope.method
        if method == "tools/call":
            await self._call(request, session, message)
        elif method == "initialize":
            await while_listening(request, self._initialize(request, message))
        else:
            await self._pass(request, message.raw, message, session=session)

    # Calls

    async def _call(self, request: Request, session: HttpSession, message: Message) -> None:
        key = key_of(message.envelope.id)
        client = session.client
        call = CallStream(self, request, session, message, self.forwarded(request))
        if not client.stateless:
            if key in session.calls:
                said = "a request with this id is under way already; use another id"
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
        session: HttpSession | None = None,
        url: str | None = None,
    ) -> None:
        await while_listening(request, self._passed(request, body, message, session, url))

    async def _passed(
        self,
        request: Request,
        body: bytes,
        message: Message | None,
        session: HttpSession | None,
        url: str | None,
    ) -> None:
        try:
            async with self.open(request, body, url=url) as response:
                await self._answered(request, response, session, message)
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
                session = HttpSession(client)
                if session_id and response.status < 400:
                    self._keep(session_id, session)
                await self._answered(request, response, session)
        except ServerGone as gone:
            if not request.begun:
                await _unreachable(request, message, gone)

    async def _stream(self, request: Request, session: HttpSession) -> None:
        """Pass on a stream that the client opened, and take out what answers a call."""
        async with self.open(request, b"") as response:
            await self._answered(request, response, session)

    async def _answered(
        self,
        request: Request,
        response: Response,
        session: HttpSession | None,
        asked: Message | None = None,
    ) -> None:
        """Pass on an answer; each message in it is looked at, whatever was asked."""
        is_list = asked is not None and asked.envelope.method == LIST
        is_whole = response.form == JSON or (is_list and response.form != SSE)
        if session is not None and is_whole and response.status < 300:
            said = await self._said(session, await response.body(), asked)
            await request.begin(response.status, response.headers)
            await request.piece(said, more=False)
            return
        await request.begin(response.status, response.headers)
        if session is None or response.form != SSE:
            async for piece in response.pieces():
                await request.piece(piece)
        else:
            await self._streamed(request, response, session, asked)
        await request.piece(b"", more=False)

    async def _streamed(
        self, request: Request, response: Response, session: HttpSession, asked: Message | None
    ) -> None:
        events = Events()
        try:
            async for piece in response.pieces():
                for event in events.feed(piece):
                    await request.piece(await self._on_stream(session, event, asked))
        except TooLong:
            raise ServerGone("the server's answer is beyond the bound") from None

    async def _said(self, session: HttpSession, body: bytes, asked: Message | None) -> bytes:
        """Give what a client is to hear of an answer that is no stream; raises `ServerGone`."""
        parts = messages.batch(body)
        found = [messages.heard(part) for part in ([body] if parts is None else parts)]
        read = [message for message in found if message is not None]
        if len(read) < len(found) and body.strip():
            raise ServerGone("the server's answer is no message")
        said = [await self.heard(session, message, asked) for message in read]
        kept = b",".join(one for one in said if one is not None)
        return kept if parts is None else b"[" + kept + b"]"

    async def _on_stream(
        self, session: HttpSession, event: Event, asked: Message | None = None
    ) -> bytes:
        message = messages.heard(event.data) if event.data else None
        if message is None:
            return unread(event)
        if message.envelope.method is not msgspec.UNSET:
            if not self.observed(session, message):
                return NOTHING
            return passed(event, messages.shortened(message))
        said = await self.heard(session, message, asked)
        if said is None:
            return NOTHING
        return passed(event, message) if said is message.raw else written(said, event.id)

    async def heard(
        self, session: HttpSession, message: Message, asked: Message | None = None
    ) -> bytes | None:
        """Give what the client is to hear of an answer; None: nothing, it has its own way."""
        key = key_of(message.envelope.id)
        call = session.awaited.pop(key, None)
        if call is not None:
            return await call.answered_elsewhere(message)
        kept = session.kept.pop(key, None)
        if kept is not None:
            return kept
        if session.is_of_a_call(key):
            log.warning("the server answered a call in the place of something else")
            return None
        if asked is not None and key == key_of(asked.envelope.id):
            if asked.envelope.method == LIST:
                self.guard.catalogue.seen(session.client, message)
        else:
            self.guard.catalogue.learn(message)
        shown = self.guard.catalogue.shown(message)
        return message.raw if shown is None else shown

    def observed(
        self, session: HttpSession, message: Message, call: CallStream | None = None
    ) -> bool:
        """Look at what the server says by itself; whether the client is to hear it."""
        envelope = message.envelope
        if envelope.is_request:
            session.hold(message, self.guard)
        elif envelope.method == "notifications/tools/list_changed":
            self.guard.catalogue.changed(session.client)
        elif envelope.method == messages.PROGRESS:
            params = envelope.parameters()
            token = params.get("progressToken")
            calls = [call] if call is not None else list(session.calls.values())
            for one in calls:
                if token is not None and token in (one.exchange.token, one.exchange.own_token):
                    return one.exchange.heard(params.get("progress"), self.guard.clock.now())
            # Of a call that has ended, or of another request.
            return not session.client.made_token(token) and session.of_others.lets(
                self.guard.clock.now()
            )
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
            shared = owner_in(session_id.encode("latin-1")) is None
            client = Client(self.guard.chance, stateless=not session_id, shared=shared)
            session = HttpSession(client)
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
        # An answer has to come in plain text: what is packed cannot be looked at.
        left_out = {*HOP_BY_HOP, b"accept-encoding", *([b"authorization"] if self._strip else [])}
        return for_server([(name, value) for name, value in request.sent if name not in left_out])

    def returned(self, request: Request, headers: Headers) -> Headers:
        """The headers of an answer as the client is to get them."""
        if not any(name == SESSION for name, _ in headers):
            return headers
        owner = owner_in(request.headers.get(SESSION, b""))
        return for_client(headers, owner or self.guard.chance.token(OWNER_BYTES))

    @contextlib.asynccontextmanager
    async def open(
        self, request: Request, body: bytes, *, url: str | None = None
    ) -> AsyncIterator[Response]:
        """Send the server a request of the client's; raises `ServerGone`."""
        target = url or self.server.url
        if request.query and url is None:
            target += ("&" if "?" in target else "?") + request.query.decode("latin-1")
        async with self.server.open(
            request.method, self.forwarded(request), body, url=target
        ) as response:
            response.headers = self.returned(request, response.headers)
            if response.header(b"content-encoding").lower() not in ("", "identity"):
                raise ServerGone("the server's answer is compressed, which nobody asked for")
            yield response


def written_path(request: Request) -> bytes:
    """Give the path of a request as it was sent: what is decoded could be another path."""
    path: bytes = request.scope.get("raw_path") or request.path.encode()
    return path.partition(b"?")[0]


def served_paths(url: str) -> dict[bytes, str]:
    """Give all paths that are served, each with the address that it stands for at the server.

    Beside the server's own and `/mcp` these are what it says of how to be authorised, of itself
    and of its origin (RFC 9728, RFC 8414). No other path is passed on, and none is put together
    from what a client sent.
    """
    parts = urlsplit(url)
    own = parts.path or "/"
    found = {path.encode(): url for path in (own, ENDPOINT)}
    for kind in WELL_KNOWN:
        at = f"/.well-known/{kind}"
        places = {"": "", ENDPOINT: own.rstrip("/"), own.rstrip("/"): own.rstrip("/")}
        for path, there in places.items():
            target = f"{parts.scheme}://{parts.netloc}{at}{there}"
            found.setdefault((at + path).encode(), target)
    return found


def is_plain_json(request: Request) -> bool:
    """Whether a body says of itself that it is what the proxy takes it for, to every server."""
    kinds, packings = request.all(b"content-type"), request.all(b"content-encoding")
    if len(kinds) != 1 or any(packing.lower() != b"identity" for packing in packings):
        return False
    kind, _, rest = kinds[0].lower().partition(b";")
    plain = rest.strip().replace(b'"', b"").replace(b" ", b"")
    return kind.strip() == JSON.encode() and plain in (b"", b"charset=utf-8", b"charset=utf8")


def _refusal(request: Request, message: Message) -> bytes | None:
    fault = messages.fault_of(message)
    if fault is not None:
        return messages.refused(message, fault)
    fault = mismatch(request, message)
    return None if fault is None else messages.refused(message, fault, HEADER_MISMATCH)


def mismatch(request: Request, message: Message) -> str | None:
    """Say which header names another method or tool than the message, to servers that ask it."""
    methods, names = request.all(b"mcp-method"), request.all(b"mcp-name")
    method = message.envelope.method
    if methods and (
        not isinstance(method, str) or methods != [method.encode("latin-1", "replace")]
    ):
        return "Mcp-Method is not the method of the message"
    if not names:
        return None
    from mcp.shared.inbound import decode_header_value  # noqa: PLC0415  # the revision's own form

    field = NAMED.get(method if isinstance(method, str) else "", "")
    named = message.envelope.parameters().get(field)
    if len(names) == 1 and decode_header_value(names[0].decode("latin-1")) == named:
        return None
    return "Mcp-Name is not what the message names"


def _gone(message: Message | None, gone: ServerGone) -> bytes:
    request_id = None if message is None else message.envelope.id
    data = {"reason": "transport"}
    return messages.error(request_id, messages.INTERNAL_ERROR, gone.why, data)


async def _unreachable(request: Request, message: Message | None, gone: ServerGone) -> None:
    """Say that the server is not there; never an empty success."""
    await request.json(502, _gone(message, gone))
