"""One client and its own session with the server; messages pass both ways as they are.

Only `tools/call` is touched. What else the link keeps is what it needs for that: which requests are
on their way, and how the session began, so that it can begin again after the server did.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from seawall.edges.mcp.proxy import messages
from seawall.edges.mcp.proxy.exchange import Exchange, ServerGone
from seawall.edges.mcp.proxy.messages import Message, key_of
from seawall.orchestration.progress import Pace
from seawall.pipeline.foreign import log

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from seawall.edges.mcp.proxy.client import Client
    from seawall.edges.mcp.proxy.guard import Guard
    from seawall.edges.mcp.proxy.messages import Envelope

BEGIN_WITHIN_S = 30.0
"""How long a server that was started again may take to begin a session anew."""

MAX_WAITING = 10_000
"""Messages that wait for a server that is being started again."""


class Server(Protocol):
    """The other end: a process, or an address."""

    def send(self, message: Message) -> None:
        """Send one message."""
        ...

    async def stop(self) -> None:
        """End the session, and the process if it is ours."""
        ...


class Link:
    """Relays between one client and one server.

    `to_client(raw, message, exchange)` sends to the client; `message` is what stands outside, if it
    was looked at, and `exchange` the call that it belongs to, if that is known.
    """

    def __init__(
        self,
        guard: Guard,
        client: Client,
        to_client: Callable[[bytes, Message | None, Exchange | None], None],
        connect: Callable[[Link], Awaitable[Server]],
    ) -> None:
        self.client = client
        self._guard = guard
        self._to_client = to_client
        self._connect = connect
        self._server: Server | None = None
        self._starting: asyncio.Task[None] | None = None
        self._waiting: list[Message] = []
        self._initialize: Message | None = None
        self._initialized: Message | None = None
        self._level: Message | None = None
        self._subscriptions: dict[str, dict[str, Any]] = {}
        self._passing: dict[Any, Message] = {}
        self._own: dict[Any, tuple[asyncio.Future[Message], Exchange | None]] = {}
        self._calls: dict[Any, Exchange] = {}
        self._held: dict[Any, tuple[Exchange, ...]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._closed = False
        self._of_others = Pace()
        """How much progress is told that is of no call under way."""
        self._answers = False
        self._why_gone = ""

    def never_answered(self, ended: str = "") -> str:
        """Say why the server never answered anything; `ended` if nothing else is known.

        Empty if it did answer, or if nothing kept it from that.
        """
        return "" if self._answers else self._why_gone or ended

    # From the client

    def from_client(self, raw: bytes) -> None:
        """Take one message of the client's."""
        parts = messages.batch(raw)
        if parts is not None:
            for part in parts:
                self.from_client(part)
            return
        message = messages.read(raw)
        if message is None:
            self._say(messages.error(None, messages.PARSE_ERROR, "the message is no JSON-RPC"))
            return
        self.message_from_client(message)

    def message_from_client(self, message: Message) -> None:
        """Take one message of the client's that was looked at."""
        envelope = message.envelope
        fault = messages.fault_of(message)
        if fault is not None:
            self._say(messages.refused(message, fault))
            return
        if envelope.is_request:
            self._request(message)
        elif envelope.is_notification:
            self._notification(message)
        elif not self.client.answered(message):
            self._person_answered(envelope.id)
            self._send(message)

    def _request(self, message: Message) -> None:
        envelope = message.envelope
        method = envelope.method
        if method == "tools/call":
            self._call(message)
            return
        if method == "initialize":
            self._initialize = message
            self.client.initialized(envelope.parameters())
        elif method == "logging/setLevel":
            self._level = message
        elif method == "resources/unsubscribe":
            self._subscriptions.pop(str(envelope.parameters().get("uri")), None)
        self._passing[key_of(envelope.id)] = message
        self._send(message)

    def _call(self, message: Message) -> None:
        key = key_of(message.envelope.id)
        if key in self._calls:
            said = "a request with this id is under way already; use another id"
            self._say(messages.error(message.envelope.id, messages.INVALID_REQUEST, said))
            return
        exchange = Exchange(message, self.client, self)
        self._calls[key] = exchange
        self._tasks.add(asyncio.get_running_loop().create_task(self._called(key, exchange)))

    async def _called(self, key: Any, exchange: Exchange) -> None:
        try:
            answer = await self._guard.call(exchange)
            if answer is not None:
                self._to_client(answer, None, exchange)
        finally:
            del self._calls[key]
            self._tasks.discard(asyncio.current_task())

    def _notification(self, message: Message) -> None:
        method = message.envelope.method
        if method == "notifications/cancelled":
            params = message.envelope.parameters()
            exchange = self._calls.get(key_of(params.get("requestId")))
            if exchange is not None:
                exchange.cancel(params.get("reason"))
                return
        elif method == "notifications/initialized":
            self._initialized = message
        self._send(message)

    # To the server

    def _send(self, message: Message) -> None:
        if self._server is not None:
            self._server.send(message)
            return
        if len(self._waiting) >= MAX_WAITING:
            self._refuse([message], "too many messages wait for the server")
            return
        self._waiting.append(message)
        self.start()

    def start(self) -> None:
        """Start the server, unless it runs or is being started."""
        if self._starting is None and self._server is None and not self._closed:
            self._starting = asyncio.get_running_loop().create_task(self._begin())

    async def _begin(self) -> None:
        server: Server | None = None
        try:
            server = await self._connect(self)
            if self._initialize is not None and self._initialize not in self._waiting:
                await self._begin_anew(server)
        except ServerGone as gone:
            self._starting, self._why_gone = None, gone.why
            if server is not None:
                await server.stop()
            waiting, self._waiting = self._waiting, []
            self._refuse(waiting, gone.why)
            return
        self._starting = None
        self._server = server
        waiting, self._waiting = self._waiting, []
        for message in waiting:
            server.send(message)

    async def _begin_anew(self, server: Server) -> None:
        """Open the session again as the client opened it; no call is ever made again here."""
        first = self._initialize
        if first is None:
            return
        params = None if first.envelope.params is msgspec.UNSET else first.envelope.params
        self._guard.catalogue.changed(self.client)
        with self._guard.clock.limit(BEGIN_WITHIN_S):
            await self._ask(server, "initialize", params)
            if self._initialized is not None:
                server.send(self._initialized)
            if self._level is not None:
                level: Any = self._level.envelope.params
                await self._ask(server, "logging/setLevel", level)
            for subscription in tuple(self._subscriptions.values()):
                await self._ask(server, "resources/subscribe", subscription)
            return
        raise ServerGone("the server was started again and did not answer", may_have_run=False)

    def said_before(self) -> list[Message]:
        """What a new session has to be told of the old one: as requests that nobody waits for."""
        said: list[tuple[str, Any]] = []
        if self._level is not None:
            said.append(("logging/setLevel", self._level.envelope.params))
        said += [("resources/subscribe", params) for params in self._subscriptions.values()]
        return [messages.request(self.client.new_id(), *each) for each in said]

    async def _ask(self, server: Server, method: str, params: Any) -> Message:
        request_id = self.client.new_id()
        answered = self._expect(request_id, None)
        server.send(messages.request(request_id, method, params))
        try:
            return await answered
        finally:
            self._own.pop(request_id, None)

    def _expect(self, request_id: Any, exchange: Exchange | None) -> asyncio.Future[Message]:
        answered: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._own[key_of(request_id)] = (answered, exchange)
        return answered

    def _refuse(self, refused: list[Message], why: str) -> None:
        """Answer requests that will have no other answer."""
        for message in refused:
            if not message.envelope.is_request:
                continue
            request_id = message.envelope.id
            own = self._own.get(key_of(request_id))
            if own is not None:
                _fail(own[0], ServerGone(why, may_have_run=False))
            elif self._passing.pop(key_of(request_id), None) is not None:
                data = {"reason": "transport"}
                self._say(messages.error(request_id, messages.INTERNAL_ERROR, why, data))

    async def request(
        self, request_id: Any, method: str, params: Any, exchange: Exchange | None
    ) -> Message:
        """Send a request and wait for its answer; raises `ServerGone`."""
        answered = self._expect(request_id, exchange)
        self._send(messages.request(request_id, method, params))
        try:
            return await answered
        except asyncio.CancelledError:
            self._give_up(request_id, exchange)
            raise
        finally:
            self._own.pop(key_of(request_id), None)

    def _give_up(self, request_id: Any, exchange: Exchange | None) -> None:
        reason = None if exchange is None else exchange.give_up_reason()
        params = {"requestId": request_id, **({} if reason is None else {"reason": reason})}
        if self._server is not None:
            self._server.send(messages.notification("notifications/cancelled", params))
            return
        self._waiting = [m for m in self._waiting if m.envelope.id != request_id]

    # From the server

    def from_server(self, raw: bytes) -> None:
        """Take one message of the server's; what is none is logged and dropped."""
        message = messages.heard(raw)
        if message is None:
            self._stray(raw)
            return
        envelope = message.envelope
        if envelope.is_request:
            self._hold(envelope.id)
            self._to_client(message.raw, message, None)
        elif envelope.is_notification:
            self._notified(message)
        else:
            self._answered(message)

    def _stray(self, raw: bytes) -> None:
        parts = messages.batch(raw)
        for part in parts or ():
            self.from_server(part)
        if parts is None:
            log.warning("the server wrote what is no message: %r", raw[:200])

    def _answered(self, message: Message) -> None:
        self._answers = True
        key = key_of(message.envelope.id)
        own = self._own.get(key)
        if own is not None:
            if not own[0].done():
                own[0].set_result(message)
            return
        asked = self._passing.pop(key, None)
        if asked is None and message.envelope.id is not None:
            log.debug("the server answered a request that nobody waits for")
            return
        shown = None if asked is None else self._learnt(asked.envelope, message)
        if shown is not None:
            self._say(shown)
            return
        self._to_client(message.raw, message, None)

    def _learnt(self, asked: Envelope, message: Message) -> bytes | None:
        """Keep what an answer says; gives what the client is to be told instead, if anything."""
        if asked.method == "tools/list":
            self._guard.catalogue.seen(self.client, message)
            return self._guard.catalogue.shown(message)
        if asked.method == "resources/subscribe" and message.envelope.error is msgspec.UNSET:
            params = asked.parameters()
            if len(self._subscriptions) < MAX_WAITING:
                self._subscriptions[str(params.get("uri"))] = params
        return None

    def _notified(self, message: Message) -> None:
        method = message.envelope.method
        exchange: Exchange | None = None
        if method == messages.PROGRESS:
            params = message.envelope.parameters()
            token = params.get("progressToken")
            exchange = self._of_token(token)
            if exchange is None and self.client.made_token(token):
                return  # the call it was about has ended, and the client never heard of it
            if exchange is None and not self._of_others.lets(self._guard.clock.now()):
                return
            if exchange is not None and not exchange.heard(
                params.get("progress"), self._guard.clock.now()
            ):
                return
            message = messages.shortened(message)
        elif method == "notifications/tools/list_changed":
            self._guard.catalogue.changed(self.client)
        self._to_client(message.raw, message, exchange)

    def _of_token(self, token: Any) -> Exchange | None:
        if token is None:
            return None
        for exchange in self._calls.values():
            if token in (exchange.token, exchange.own_token):
                return exchange
        return None

    def _hold(self, request_id: Any) -> None:
        """Let no call be given up for its silence while the server waits for the client."""
        held = tuple(self._calls.values())
        if held:
            self._held[key_of(request_id)] = held
            for exchange in held:
                exchange.hold(self._guard.clock)

    def _person_answered(self, request_id: Any) -> None:
        for exchange in self._held.pop(key_of(request_id), ()):
            exchange.release()

    def server_gone(self, why: str) -> None:
        """The server is no more; nothing it was asked has an answer, the next request starts it."""
        log.warning("%s", why)
        if not self._closed:
            self._why_gone = why
        server, self._server = self._server, None
        if server is not None:
            self._finish(server.stop())
        if self._starting is None and server is None:
            return
        for answered, exchange in tuple(self._own.values()):
            _fail(answered, ServerGone(why, may_have_run=exchange is not None))
        waiting = {id(message) for message in self._waiting}
        lost = [message for message in self._passing.values() if id(message) not in waiting]
        self._refuse(lost, f"{why} before it answered")
        self._guard.catalogue.changed(self.client)

    def parameter_headers(self, name: str, params: dict[str, Any]) -> list[tuple[bytes, bytes]]:
        """Write the arguments that a tool wants in headers too."""
        return self._guard.parameter_headers(name, params)

    def request_gone(self, request_id: Any, gone: ServerGone) -> None:
        """One request will have no answer."""
        self._why_gone = gone.why
        own = self._own.get(key_of(request_id))
        if own is not None:
            _fail(own[0], gone)
            return
        asked = self._passing.get(key_of(request_id))
        if asked is not None:
            self._refuse([asked], gone.why)

    # To the client

    def to_client(self, raw: bytes, exchange: Exchange) -> None:
        """Send the client something that belongs to a call."""
        self._to_client(raw, None, exchange)

    def _say(self, raw: bytes) -> None:
        self._to_client(raw, messages.read(raw), None)

    def _finish(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """End the session with the server, and all calls in it."""
        self._closed = True
        for exchange in tuple(self._calls.values()):
            exchange.cancel("the client is gone")
        if self._starting is not None:
            self._starting.cancel()
            await asyncio.wait({self._starting})
        server, self._server = self._server, None
        if server is not None:
            await server.stop()
        if self._tasks:
            await asyncio.wait(tuple(self._tasks))


def _fail(answered: asyncio.Future[Message], gone: ServerGone) -> None:
    if not answered.done():
        answered.set_exception(gone)
