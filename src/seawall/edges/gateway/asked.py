"""A request as it came: its headers read once, its body within a bound."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import parse_qsl

import msgspec

from seawall.contract.failure import FailureCode
from seawall.edges.gateway.answers import JSON, refusal

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, MutableMapping

    from seawall.edges.gateway.answers import Answer
    from seawall.edges.gateway.tokens import Client

    Message = MutableMapping[str, Any]
    Receive = Callable[[], Awaitable[Message]]
    Send = Callable[[Message], Awaitable[None]]

T = TypeVar("T")

NO_STORE = (b"cache-control", b"no-store")
NO_SNIFF = (b"x-content-type-options", b"nosniff")
_OF_POST = (NO_SNIFF,)
FIXED = (NO_STORE, NO_SNIFF)
"""Headers of every answer; what POST gives is kept by nobody anyway."""

WHOLE = "seawall.whole"
"""Extension of a server that takes an answer in one message, head and body together."""

MAX_FIELDS = 100
"""Parameters behind the question mark."""
MAX_ID = 200
"""Characters of ids that clients choose: of a request, a session, an idempotency key."""


_ONCE = frozenset({b"host", b"origin", b"authorization", b"idempotency-key", b"content-type"})
"""Headers of which a second one would let two readers see two requests."""

_UPGRADE = (
    "the body was lost, as the request asked for another protocol; speak HTTP/1.1 without the"
    " header Upgrade (in Java: HttpClient.Version.HTTP_1_1)"
)


class Gone(Exception):  # noqa: N818  # not an error: the client closed the connection
    """The client went before it was answered."""


class Refused(Exception):  # noqa: N818  # it carries an answer
    """The request is answered without a call."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer.status)
        self.answer = answer


class Asked:
    """One HTTP request."""

    __slots__ = ("_scope", "client", "headers", "method", "path", "receive", "send")

    def __init__(self, scope: Message, receive: Receive, send: Send) -> None:
        self._scope = scope
        self.receive = receive
        self.send = send
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        """Without the query."""
        self.headers: dict[bytes, bytes] = dict(scope["headers"])
        self.client: Client

    @property
    def header_bytes(self) -> int:
        """Size of all headers, those that came more than once too."""
        return len(b"".join(chain.from_iterable(self._scope["headers"])))

    def repeated(self) -> str:
        """Name a header that came twice and may come once; empty if there is none."""
        sent = self._scope["headers"]
        if len(sent) == len(self.headers):
            return ""
        names = [name for name, _ in sent if name in _ONCE]
        return next((name.decode() for name in names if names.count(name) > 1), "")

    def header(self, name: bytes) -> str:
        """Give a header as text; empty if it is absent."""
        return self.headers.get(name, b"").decode("latin-1")

    async def body(self, limit: int) -> bytes:
        """Read the whole body; refuses what is longer than `limit` bytes before reading it."""
        announced = self.headers.get(b"content-length")
        if announced is not None and announced.isdigit() and int(announced[:12]) > limit:
            raise Refused(_too_large(limit))
        message = await self.receive()
        if message["type"] == "http.disconnect":
            raise Gone
        body: bytes = message.get("body", b"")
        if not message.get("more_body", False) and len(body) <= limit:
            return body
        parts, size = [body], len(body)
        while message.get("more_body", False) and size <= limit:
            message = await self.receive()
            if message["type"] == "http.disconnect":
                raise Gone
            parts.append(message.get("body", b""))
            size += len(parts[-1])
        if size > limit:
            raise Refused(_too_large(limit))
        return b"".join(parts)

    def part(self, name: str) -> str:
        """Give what stands in the path where the route has a name in braces."""
        found: str = self._scope["path_params"][name]
        return found

    def query(self) -> dict[str, str]:
        """The parameters behind the question mark; the last of each name."""
        text = self._scope["query_string"].decode("latin-1")
        try:
            return dict(parse_qsl(text, max_num_fields=MAX_FIELDS))
        except ValueError as error:
            said = f"an address may have {MAX_FIELDS} parameters"
            raise Refused(bad_request(said)) from error

    async def answer(self, answer: Answer) -> None:
        """Send the answer; a client that is gone does not matter."""
        fixed = _OF_POST if self.method == "POST" else FIXED
        headers = ((b"content-type", answer.media), *fixed, *answer.headers)
        status, body = answer.status, answer.body
        if WHOLE in self._scope.get("extensions", ()):
            await self.send({"type": WHOLE, "status": status, "headers": headers, "body": body})
            return
        size = (b"content-length", b"%d" % len(body))
        await self.send(
            {"type": "http.response.start", "status": status, "headers": [size, *headers]}
        )
        await self.send(
            {"type": "http.response.body", "body": b"" if self.method == "HEAD" else body}
        )

    async def gone(self) -> None:
        """Return when the client has closed the connection."""
        while (await self.receive())["type"] != "http.disconnect":
            pass

    async def json(self, limit: int, read: Callable[[bytes], T]) -> T:
        """Read a body of JSON of a known shape; refuses other types, shapes and sizes."""
        media = self.headers.get(b"content-type", b"")
        if media != JSON:
            media = media.partition(b";")[0].strip().lower()
            if media != JSON:
                raise Refused(_not_json(media))
        body = await self.body(limit)
        try:
            return read(body)
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            if b"upgrade" in self.headers:
                raise Refused(bad_request(_UPGRADE)) from error
            raise Refused(bad_request(f"the body cannot be read: {error}")) from error


def bad_request(message: str) -> Answer:
    """Answer to a request that is none."""
    return refusal(
        FailureCode.INVALID_ARGUMENT,
        "bad_request",
        message,
        guidance="See /openapi.json for what can be sent.",
    )


def identifier(value: str | None, name: str) -> str:
    """Check an id that a client chose: short, printable, on one line; empty if there is none."""
    if not value:
        return ""
    if len(value) > MAX_ID or not value.isascii() or not value.isprintable():
        raise Refused(bad_request(f"{name} must be at most {MAX_ID} printable ASCII characters"))
    return value


def _too_large(limit: int) -> Answer:
    return refusal(
        FailureCode.INVALID_ARGUMENT,
        "body_too_large",
        f"a body may hold {limit} bytes",
        guidance="Send less, or have the operator raise --max-body.",
        headers=((b"connection", b"close"),),
    )


def _not_json(media: bytes) -> Answer:
    said = media.decode("latin-1")[:100] or "none"
    return refusal(
        FailureCode.UNSUPPORTED,
        "media_type_unsupported",
        f"the content type must be application/json (got {said})",
        guidance="Send JSON, with Content-Type: application/json.",
    )
