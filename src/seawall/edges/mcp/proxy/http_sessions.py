"""A server on standard streams, offered over HTTP: each session has a process of its own.

Requests of revision 2026-07-28 have no session; they share one process, each under an id and a
progress token that nobody else has, so that no client hears what belongs to another.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Any

import msgspec

from seawall.edges.mcp.proxy import messages
from seawall.edges.mcp.proxy.call_stream import SSE_HEADERS, status_of
from seawall.edges.mcp.proxy.client import Client, is_stateless
from seawall.edges.mcp.proxy.http_shell import while_listening
from seawall.edges.mcp.proxy.link import Link
from seawall.edges.mcp.proxy.messages import Message, key_of
from seawall.edges.mcp.proxy.sse import written
from seawall.edges.mcp.proxy.stdio import starting

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from seawall.edges.mcp.proxy.exchange import Exchange
    from seawall.edges.mcp.proxy.guard import Guard
    from seawall.edges.mcp.proxy.http_client import Headers
    from seawall.edges.mcp.proxy.http_shell import Request
    from seawall.edges.mcp.proxy.link import Server

    Connect = Callable[[], Callable[[Link], Awaitable[Server]]]
    """Gives what starts the server of one link."""

MAX_SESSIONS = 64
"""Processes at once."""

IDLE_S = 30 * 60.0
"""After so long without a request a session is ended."""

MAX_BACKLOG = 256
"""Messages kept for a client that has no stream open, or does not take what is on it."""

PING_S = 15.0

SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"


class Outlet:
    """What one open request is sent, until its answer."""

    def __init__(self) -> None:
        self._queue: deque[tuple[bytes, bool]] = deque()
        self._there = asyncio.Event()

    def put(self, raw: bytes, *, last: bool = False) -> None:
        """Send something; the answer is last. Of what waits too long the oldest is lost."""
        if len(self._queue) >= MAX_BACKLOG:
            self._queue.popleft()
        self._queue.append((raw, last))
        self._there.set()

    async def take(self) -> tuple[bytes, bool]:
        """Wait for the next."""
        while not self._queue:
            self._there.clear()
            await self._there.wait()
        return self._queue.popleft()


class Session:
    """One client's session: its process, and the requests that are open."""

    def __init__(self, guard: Guard, connect: Connect, session_id: str) -> None:
        self.id = session_id
        self.client = Client(guard.chance)
        self.link = Link(guard, self.client, self._to_client, connect())
        self.outlets: dict[Any, Outlet] = {}
        self.stream: Outlet | None = None
        """The one on which the server speaks by itself."""
        self._backlog: deque[bytes] = deque(maxlen=MAX_BACKLOG)
        self.used_at = guard.clock.now()

    def _to_client(self, raw: bytes, message: Message | None, exchange: Exchange | None) -> None:
        found = message or messages.read(raw)
        if found is not None and found.envelope.method is msgspec.UNSET:
            outlet = self.outlets.pop(key_of(found.envelope.id), None)
            if outlet is not None:
                outlet.put(raw, last=True)
            return
        outlet = None if exchange is None else self.outlets.get(key_of(exchange.id))
        if outlet is None and self.outlets and not _is_general(found):
            outlet = next(reversed(self.outlets.values()))
        outlet = outlet or self.stream
        if outlet is not None:
            outlet.put(raw)
        else:
            self._backlog.append(raw)

    def cancelled(self, message: Message) -> None:
        """End the stream of a request that the client gave up: it has no answer."""
        if message.envelope.method == "notifications/cancelled":
            request_id = message.envelope.parameters().get("requestId")
            outlet = self.outlets.pop(key_of(request_id), None)
            if outlet is not None:
                outlet.put(b"", last=True)

    def listen(self) -> Outlet:
        """Open the stream on which the server speaks by itself; it begins with what waits."""
        self.stream = Outlet()
        while self._backlog:
            self.stream.put(self._backlog.popleft())
        return self.stream


def _is_general(message: Message | None) -> bool:
    """Whether a message belongs to no request by its nature: lists that changed, resources."""
    method = "" if message is None else message.envelope.method
    return isinstance(method, str) and method.startswith(
        ("notifications/tools/", "notifications/resources/", "notifications/prompts/")
    )


class Shared:
    """The process for requests that belong to no session."""

    def __init__(self, guard: Guard, connect: Connect) -> None:
        self.client = Client(guard.chance, stateless=True)
        self.link = Link(guard, self.client, self._to_client, connect())
        self._outlets: dict[str, tuple[Any, Any, Outlet]] = {}

    def send(self, message: Message) -> tuple[str, Outlet]:
        """Send a request under an id of its own; gives that, and where its answer comes."""
        request_id = self.client.new_id()
        params = message.envelope.parameters()
        meta = dict(params.get("_meta") or {})
        token = meta.get("progressToken")
        if token is not None:
            params["_meta"] = {**meta, "progressToken": request_id}
        outlet = Outlet()
        self._outlets[request_id] = (message.envelope.id, token, outlet)
        method = str(message.envelope.method)
        self.link.message_from_client(messages.request(request_id, method, params))
        return request_id, outlet

    def forget(self, request_id: str) -> None:
        """The client went: the server is told, if it has not answered."""
        if self._outlets.pop(request_id, None) is None:
            return
        said = {"requestId": request_id, "reason": "the client closed its connection"}
        self.link.message_from_client(messages.notification("notifications/cancelled", said))

    def _to_client(self, raw: bytes, message: Message | None, _: Exchange | None) -> None:
        found = message or messages.read(raw)
        if found is None:
            return
        envelope = found.envelope
        if envelope.method is msgspec.UNSET:
            asked = self._outlets.pop(envelope.id, None) if isinstance(envelope.id, str) else None
            if asked is not None:
                asked[2].put(_under(asked[0], found), last=True)
            return
        self._notified(found)

    def _notified(self, message: Message) -> None:
        params = message.envelope.parameters()
        meta = params.get("_meta")
        subscription = meta.get(SUBSCRIPTION) if isinstance(meta, dict) else None
        token = params.get("progressToken")
        asked = self._outlets.get(str(token if token is not None else subscription))
        method = str(message.envelope.method)
        if asked is None:
            # Whose it is cannot be known; with one request open there is no doubt.
            if token is None and subscription is None and len(self._outlets) == 1:
                next(iter(self._outlets.values()))[2].put(message.raw)
            return
        if token is not None:
            params["progressToken"] = asked[1]
        elif isinstance(meta, dict):
            params["_meta"] = {**meta, SUBSCRIPTION: asked[0]}
        asked[2].put(messages.notification(method, params).raw)


def _under(request_id: Any, message: Message) -> bytes:
    envelope = message.envelope
    if envelope.error is not msgspec.UNSET:
        return messages.error_of(request_id, envelope.error)
    return messages.answer(request_id, envelope.result)


class Sessions:
    """Answers HTTP requests by processes."""

    def __init__(
        self,
        guard: Guard,
        command: Sequence[str],
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._guard = guard
        self._connect: Connect = lambda: starting(command, guard.clock, environment)
        self._sessions: dict[str, Session] = {}
        self._shared: Shared | None = None

    def serves(self, request: Request) -> bool:
        """Serve `/mcp`."""
        return request.path == "/mcp"

    async def handle(self, request: Request) -> None:
        """Answer one request."""
        if request.method == "POST":
            await self._post(request)
            return
        if request.method not in ("GET", "DELETE"):
            await request.whole(405, b"", [(b"allow", b"GET, POST, DELETE")])
            return
        session = self._sessions.get(request.header(b"mcp-session-id"))
        if session is None:
            await request.refuse(404, "there is no such session; begin one with initialize")
        elif request.method == "DELETE":
            del self._sessions[session.id]
            await session.link.close()
            await request.whole(200, b"")
        else:
            await self._listen(request, session)

    async def _post(self, request: Request) -> None:
        message = messages.read(request.body)
        if message is None:
            code, said = messages.PARSE_ERROR, "the message is no JSON-RPC request"
            await request.json(400, messages.error(None, code, said))
            return
        fault = messages.fault_of(message)
        if fault is not None:
            await request.json(400, messages.refused(message, fault))
            return
        params = message.envelope.parameters() if message.envelope.is_request else {}
        meta = params.get("_meta")
        if isinstance(meta, dict) and is_stateless(meta):
            await self._without_session(request, message)
            return
        session = await self._session(request, message)
        if session is None:
            return
        session.used_at = self._guard.clock.now()
        if not message.envelope.is_request:
            session.link.message_from_client(message)
            session.cancelled(message)
            await request.whole(202, b"")
            return
        key = key_of(message.envelope.id)
        if key in session.outlets:
            await request.refuse(400, "a request with this id is under way already; use another id")
            return
        outlet = session.outlets[key] = Outlet()
        session.link.message_from_client(message)
        head = [(b"mcp-session-id", session.id.encode())]
        await while_listening(request, _answer(request, outlet, self._guard, head), goes_on=True)

    async def _session(self, request: Request, message: Message) -> Session | None:
        """Find the session of a request, or open one; None if it was refused."""
        session_id = request.header(b"mcp-session-id")
        if session_id:
            session = self._sessions.get(session_id)
            if session is None:
                await request.refuse(404, "there is no such session; begin one with initialize")
            return session
        if message.envelope.method != "initialize":
            await request.refuse(
                400, "the header Mcp-Session-Id is needed; begin a session with initialize"
            )
            return None
        await self._end_idle()
        if len(self._sessions) >= MAX_SESSIONS:
            await request.refuse(
                503, f"there are {MAX_SESSIONS} sessions already; end one, or try again later"
            )
            return None
        session = Session(self._guard, self._connect, self._guard.chance.token(16))
        self._sessions[session.id] = session
        return session

    async def _end_idle(self) -> None:
        now = self._guard.clock.now()
        for session in tuple(self._sessions.values()):
            busy = session.outlets or session.stream is not None
            if not busy and now - session.used_at > IDLE_S:
                del self._sessions[session.id]
                await session.link.close()

    async def _listen(self, request: Request, session: Session) -> None:
        if session.stream is not None:
            await request.refuse(409, "this session has a stream already; close that first")
            return
        outlet = session.listen()
        try:
            await while_listening(request, _answer(request, outlet, self._guard, [], begun=True))
        finally:
            session.stream = None

    async def _without_session(self, request: Request, message: Message) -> None:
        rejected = _rejection(request, message)
        if rejected is not None:
            await request.json(*rejected)
            return
        if not message.envelope.is_request:
            await request.whole(202, b"")
            return
        if self._shared is None:
            self._shared = Shared(self._guard, self._connect)
        request_id, outlet = self._shared.send(message)
        try:
            await while_listening(
                request, _answer(request, outlet, self._guard, [], stateless=True)
            )
        finally:
            self._shared.forget(request_id)

    async def close(self) -> None:
        """End all processes."""
        links = [session.link for session in self._sessions.values()]
        if self._shared is not None:
            links.append(self._shared.link)
        await asyncio.gather(*(link.close() for link in links))


async def _answer(
    request: Request,
    outlet: Outlet,
    guard: Guard,
    head: Headers,
    *,
    begun: bool = False,
    stateless: bool = False,
) -> None:
    """Send what an outlet has: an answer alone as JSON, all else as a stream."""
    if not begun:
        raw, last = await outlet.take()
        if last:
            if not request.gone and raw:
                await request.json(status_of(raw) if stateless else 200, raw, head)
            elif not request.gone:
                await request.whole(202, b"", head)
            return
        await request.begin(200, [*SSE_HEADERS, *head])
        await request.piece(written(raw))
    else:
        await request.begin(200, [*SSE_HEADERS, *head])
    last = False
    while not last:
        raw = b""
        with guard.clock.limit(PING_S):
            raw, last = await outlet.take()
        if request.gone:
            continue
        ping = b"" if last else b": ping\r\n\r\n"
        await request.piece(written(raw) if raw else ping, more=not last)


def _rejection(request: Request, message: Message) -> tuple[int, bytes] | None:
    """What is wrong with a request without a session, as revision 2026-07-28 has it."""
    from mcp.shared.inbound import (  # noqa: PLC0415  # an extra
        ERROR_CODE_HTTP_STATUS,
        InboundLadderRejection,
        classify_inbound_request,
        find_duplicated_routing_header,
    )

    pairs = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in request.sent]
    twice = find_duplicated_routing_header(pairs)
    found = classify_inbound_request(messages.decoded(message.raw), headers=dict(pairs))
    request_id = message.envelope.id if message.envelope.is_request else None
    if twice is not None:
        return 400, messages.error(request_id, -32020, f"{twice} header appears more than once")
    if isinstance(found, InboundLadderRejection):
        status = ERROR_CODE_HTTP_STATUS.get(found.code, 400)
        return status, messages.error(request_id, found.code, found.message, found.data)
    return None
