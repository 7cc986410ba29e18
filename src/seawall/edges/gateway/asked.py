"""A request as it came: its headers read once, its body within a bound."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar
from urllib.parse import parse_qsl

import msgspec

from seawall.contract.failure import FailureCode
from seawall.edges.gateway.answers import JSON, refusal
from seawall.edges.requests import Incoming, TooLarge

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from seawall.edges.gateway.answers import Answer
    from seawall.edges.gateway.tokens import Client

T = TypeVar("T")

NO_STORE = (b"cache-control", b"no-store")
NO_SNIFF = (b"x-content-type-options", b"nosniff")
_OF_POST = (NO_SNIFF,)
FIXED = (NO_STORE, NO_SNIFF)
"""Headers of every answer; what POST gives is kept by nobody anyway."""

MAX_FIELDS = 100
"""Parameters behind the question mark."""
MAX_ID = 200
"""Characters of ids that clients choose: of a request, a session, an idempotency key."""


ONCE = frozenset({b"host", b"origin", b"authorization", b"idempotency-key", b"content-type"})
"""Headers of which a second one would let two readers see two requests."""

_UPGRADE = (
    "the body was lost, as the request asked for another protocol; speak HTTP/1.1 without the"
    " header Upgrade (in Java: HttpClient.Version.HTTP_1_1)"
)


class Refused(Exception):  # noqa: N818  # it carries an answer
    """The request is answered without a call."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer.status)
        self.answer = answer


class Asked(Incoming):
    """One request of a client that may come in."""

    client: Client

    __slots__ = ("client",)

    async def body(self, limit: int) -> bytes:
        """Read the whole body; refuses what is longer than `limit` bytes before reading it."""
        try:
            return await self.read(limit)
        except TooLarge as error:
            raise Refused(_too_large(limit)) from error

    def part(self, name: str) -> str:
        """Give what stands in the path where the route has a name in braces."""
        found: str = self.scope["path_params"][name]
        return found

    def query(self) -> dict[str, str]:
        """The parameters behind the question mark; the last of each name."""
        text = self.scope["query_string"].decode("latin-1")
        try:
            return dict(parse_qsl(text, keep_blank_values=True, max_num_fields=MAX_FIELDS))
        except ValueError as error:
            said = f"an address may have {MAX_FIELDS} parameters"
            raise Refused(bad_request(said)) from error

    def answer(self, answer: Answer) -> Awaitable[None]:
        """Send the answer; a client that is gone does not matter."""
        fixed = _OF_POST if self.method == "POST" else FIXED
        headers = ((b"content-type", answer.media), *fixed, *answer.headers)
        return self.whole(answer.status, answer.body, headers)

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
