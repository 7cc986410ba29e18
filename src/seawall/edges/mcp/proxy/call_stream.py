"""One `tools/call` over HTTP: the requests it makes of the server, and the one answer it gives."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from seawall.contract.failure import Failure, FailureCode, ToolFailed
from seawall.edges.mcp.proxy import messages
from seawall.edges.mcp.proxy.exchange import Exchange, ServerGone
from seawall.edges.mcp.proxy.messages import Message, key_of
from seawall.edges.mcp.proxy.session_ids import SESSION
from seawall.edges.mcp.proxy.sse import Event, Events, TooLong, passed, unread, written

if TYPE_CHECKING:
    from seawall.edges.mcp.proxy.guard import Guard
    from seawall.edges.mcp.proxy.http_client import Headers, HttpClient, Response
    from seawall.edges.mcp.proxy.http_session import HttpSession
    from seawall.edges.mcp.proxy.http_shell import Request

SSE = "text/event-stream"
SSE_HEADERS: Headers = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
]
PAYMENT = 402
"""Has its own protocols, which the client may speak."""

# As revision 2026-07-28 has it; before, an error has the status of any other answer.
_STATUS = {
    -32700: 400,
    -32600: 400,
    -32602: 400,
    -32601: 404,
    -32020: 400,
    -32021: 400,
    -32022: 400,
}


class Way(Protocol):
    """What stands between all clients and the server."""

    guard: Guard
    server: HttpClient

    def observed(self, session: HttpSession, message: Message, call: Any = None) -> bool:
        """Look at what the server says by itself; whether the client is to hear it."""
        ...

    async def heard(self, session: HttpSession, message: Message) -> bytes | None:
        """Give what the client is to hear of an answer; None: nothing, it has its own way."""
        ...

    def with_parameters(self, headers: Headers, exchange: Exchange, params: Any) -> Headers:
        """Let the headers that repeat arguments say what the arguments say now."""
        ...

    def returned(self, request: Request, headers: Headers) -> Headers:
        """The headers of an answer as the client is to get them."""
        ...

    def keep_task(self, task: asyncio.Task[None]) -> None:
        """Hold a task until it ends."""
        ...


class Refused(msgspec.Struct, frozen=True):
    """What the server said instead of a message: that it wants credentials, that it is busy."""

    status: int
    headers: Any
    body: bytes


class CallStream:
    """Runs one call and writes its answer the way the server would have."""

    def __init__(
        self,
        relay: Way,
        request: Request,
        session: HttpSession,
        message: Message,
        headers: Headers,
    ) -> None:
        self._relay = relay
        self._request = request
        self._session = session
        self._headers = [(n, v) for n, v in headers if n != b"accept-encoding"]
        self.exchange = Exchange(message, session.client, self)
        if SSE not in request.header(b"accept") and "*/*" not in request.header(b"accept"):
            self.exchange.capabilities = {}  # there is no way to ask
        self._status = 0
        self._answer_headers: Headers = []
        self._closing: tuple[bytes, bytes] | None = None
        """The event that brought the answer: its bytes and its id."""
        self._refused: Refused | None = None
        self._closed = False
        self._elsewhere: asyncio.Future[Message] | None = None
        self._final: asyncio.Future[bytes] | None = None
        self._writing = asyncio.Lock()

    async def run(self) -> None:
        """Make the call and answer it."""
        answer = await self._relay.guard.call(self.exchange)
        if self._final is not None:
            if not self._final.done():
                self._final.set_result(answer or b"")
            return
        if answer is None:
            await self._end()
        elif self._request.gone or self._closed:
            self._session.keep(self.exchange.attempt_id, answer)
        else:
            await self._finish(answer)

    async def _finish(self, answer: bytes) -> None:
        async with self._writing:
            if self._refused is not None and self.exchange.answered is None:
                refused = self._refused
                await self._request.whole(refused.status, refused.body, refused.headers)
            elif self._request.begun:
                await self._request.piece(self._as_event(answer), more=False)
            else:
                kept = [(n, v) for n, v in self._answer_headers if n != b"content-type"]
                await self._request.json(self._status_of(answer), answer, kept)

    def _as_event(self, answer: bytes) -> bytes:
        answered = self.exchange.answered
        if self._closing is not None and answered is not None and answer is answered.raw:
            return self._closing[0]
        return written(answer, b"" if self._closing is None else self._closing[1])

    def _status_of(self, answer: bytes) -> int:
        answered = self.exchange.answered
        if answered is not None and answer is answered.raw and self._status:
            return self._status
        return status_of(answer) if self.exchange.stateless else 200

    async def _end(self) -> None:
        """The client cancelled: its stream ends without an answer."""
        if self._request.gone or self._closed:
            return
        async with self._writing:
            if not self._request.begun:
                await self._request.whole(202, b"")
            else:
                await self._request.piece(b"", more=False)

    # The way to the server

    async def request(
        self, request_id: Any, method: str, params: Any, exchange: Exchange | None
    ) -> Message:
        """Send a request and wait for its answer; raises `ServerGone`."""
        self._refused = None
        body = messages.request(request_id, method, params).raw
        headers = self._headers if exchange is not None else self._for_list()
        if exchange is not None:
            headers = self._relay.with_parameters(headers, exchange, params)
        try:
            async with self._relay.server.open("POST", headers, body) as response:
                response.headers = self._relay.returned(self._request, response.headers)
                message = await self._read(response, request_id, exchange)
            return message or await self._wait_elsewhere(request_id)
        except asyncio.CancelledError:
            self._tell_cancelled(request_id, exchange)
            raise

    def _for_list(self) -> Headers:
        kept = [
            (n, v)
            for n, v in self._headers
            if n not in (b"mcp-name", b"mcp-method") and not n.startswith(b"mcp-param-")
        ]
        named = any(n == b"mcp-method" for n, _ in self._headers)
        return [*kept, (b"mcp-method", b"tools/list")] if named else kept

    async def _read(
        self, response: Response, request_id: Any, exchange: Exchange | None
    ) -> Message | None:
        """Read the answer; None if its stream was closed and it will come on another."""
        if response.kind == SSE and response.status == 200:
            return await self._read_events(response, request_id, exchange)
        body = await response.body()
        message = messages.heard(body)
        if message is None or message.envelope.id != request_id:
            raise self._not_answered(response, body, message, exchange)
        if exchange is not None:
            self._status, self._answer_headers = response.status, response.headers
        return message

    async def _read_events(
        self, response: Response, request_id: Any, exchange: Exchange | None
    ) -> Message | None:
        if exchange is not None:
            await self._begin(response.headers)
        events, resumable = Events(), False
        try:
            async for piece in response.pieces():
                for event in events.feed(piece):
                    resumable = resumable or bool(event.id)
                    message = messages.heard(event.data) if event.data else None
                    if message is not None and _answers(message, request_id):
                        self._closing = (passed(event, message), event.id)
                        return message
                    await self._pass_on(event, message, exchange)
        except TooLong:
            raise ServerGone("the server's answer is beyond the bound", may_have_run=True) from None
        except ServerGone:
            if not resumable:
                raise
        if not resumable or exchange is None or self.exchange.stateless:
            raise ServerGone("the server ended its stream without an answer", may_have_run=True)
        return None

    async def _pass_on(
        self, event: Event, message: Message | None, exchange: Exchange | None
    ) -> None:
        said = unread(event) if message is None else await self._said(event, message)
        if said is None or exchange is None or self._request.gone or self._closed:
            return
        async with self._writing:
            await self._request.piece(said)

    async def _said(self, event: Event, message: Message) -> bytes | None:
        """Give what the client is to hear of an event that is not the answer waited for."""
        if message.envelope.method is not msgspec.UNSET:
            known = self._relay.observed(self._session, message, self)
            return passed(event, messages.shortened(message)) if known else None
        answer = await self._relay.heard(self._session, message)
        if answer is None or answer is message.raw:
            return answer and passed(event, message)
        return written(answer, event.id)

    async def _begin(self, headers: Headers) -> None:
        async with self._writing:
            if not self._request.begun and not self._request.gone:
                await self._request.begin(200, headers)

    async def _wait_elsewhere(self, request_id: Any) -> Message:
        """The server closed the stream: so is the client's, which comes back for the answer."""
        loop = asyncio.get_running_loop()
        self._elsewhere = loop.create_future()
        self._session.awaited[key_of(request_id)] = self
        if not self._closed and not self._request.gone:
            self._closed = True
            async with self._writing:
                await self._request.piece(b"", more=False)
        return await self._elsewhere

    async def answered_elsewhere(self, message: Message) -> bytes:
        """Take the answer from another stream; gives what the client gets there."""
        self._final = asyncio.get_running_loop().create_future()
        if self._elsewhere is not None and not self._elsewhere.done():
            self._elsewhere.set_result(message)
        return await self._final

    def _not_answered(
        self,
        response: Response,
        body: bytes,
        message: Message | None,
        exchange: Exchange | None,
    ) -> ServerGone | ToolFailed:
        status = response.status
        ran = messages.may_have_run(status, message)
        if status == PAYMENT or not ran:
            # It is for the client: it may have credentials, or wait.
            self._refused = Refused(status, response.headers, body)
        if exchange is None or status >= 500 or status < 400:
            return ServerGone(f"the server answered with status {status}", may_have_run=ran)
        limited = status == 429
        return ToolFailed(
            Failure(
                code=FailureCode.RATE_LIMITED if limited else FailureCode.EXECUTION_FAILED,
                message=f"the server answered with status {status}",
                layer="executor",
                retryable=limited,
                retry_after_s=_seconds(response.header(b"retry-after")) if limited else None,
                may_have_run=ran,
            )
        )

    def _tell_cancelled(self, request_id: Any, exchange: Exchange | None) -> None:
        """Cancel a request of a session; without one, closing the connection has said it."""
        if exchange is None or exchange.stateless:
            return
        reason = exchange.give_up_reason()
        params = {"requestId": request_id, **({} if reason is None else {"reason": reason})}
        said = messages.notification("notifications/cancelled", params).raw
        self._do_later(self._posted(said))

    async def _posted(self, said: bytes) -> None:
        try:
            async with self._relay.server.open("POST", self._headers, said) as response:
                await response.body()
        except ServerGone:
            pass  # then there is nothing to cancel

    # The way to the client

    def to_client(self, raw: bytes, exchange: Exchange) -> None:  # noqa: ARG002  # it is this one
        """Send the client something that belongs to the call, on its own stream."""
        self._do_later(self._sent(raw))

    async def _sent(self, raw: bytes) -> None:
        if self._request.gone or self._closed:
            return
        session_id = self._request.header(SESSION)
        own = [(SESSION, session_id.encode())] if session_id else []
        await self._begin([*SSE_HEADERS, *own])
        async with self._writing:
            await self._request.piece(written(raw))

    def _do_later(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._relay.keep_task(task)


def _answers(message: Message, request_id: Any) -> bool:
    envelope = message.envelope
    return envelope.method is msgspec.UNSET and key_of(envelope.id) == key_of(request_id)


def _seconds(text: str) -> float | None:
    return float(text) if text.isdecimal() and len(text) < 8 else None


def status_of(answer: bytes) -> int:
    """Give the HTTP status of an answer, as revision 2026-07-28 has it."""
    made = messages.read(answer)
    if made is None or made.envelope.error is msgspec.UNSET:
        return 200
    said = messages.decoded(made.envelope.error)
    return _STATUS.get(said.get("code", 0), 200) if isinstance(said, dict) else 200
