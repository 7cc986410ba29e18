"""The demo's service: a small shop over HTTP, on this machine alone, and really unreliable.

Its weather is flaky, its reports are slow, its warehouse is down whenever somebody stops it. It
counts what reaches it, so that the demo can show that a refused call never did.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Self

from seawall.contract.errors import ConfigurationError

if TYPE_CHECKING:
    from seawall.pipeline.chance import Chance
    from seawall.pipeline.clock import Clock

HOST = "127.0.0.1"
SLOW_S = 4.0
"""How long a report takes: longer than anybody will wait."""
MOST_REFUSED = 2
"""Requests in a row that the weather may fail before it answers one."""

_MAX_BODY = 64 * 1024
_PHRASES = {200: "OK", 404: "Not Found", 503: "Service Unavailable"}

Answer = tuple[int, Any]


class ShopService:
    """Serves from `async with` until its end; `port` is the one the system gave."""

    def __init__(self, clock: Clock, chance: Chance) -> None:
        self._clock = clock
        self._chance = chance
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()
        self._refusals_left = chance.integer(1, MOST_REFUSED)
        self._shipped: dict[str, Any] = {}
        self.port = 0
        self.warehouse_is_up = True
        self.records = 1_200
        self.seen: Counter[str] = Counter()
        """Requests by the first part of their path."""
        self.hung_up = 0
        """Requests whose client went away before there was an answer."""

    async def __aenter__(self) -> Self:
        try:
            self._server = await asyncio.start_server(self._serve, HOST, 0, limit=_MAX_BODY)
        except OSError as error:
            raise ConfigurationError(
                f"the demo's service cannot listen on {HOST}: {error.strerror or error}"
            ) from error
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *raised: object) -> None:
        if self._server is not None:
            self._server.close()
            for writer in tuple(self._open):
                writer.close()
            await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        try:
            # A client that goes away, or that speaks no HTTP, is no concern of this service.
            with suppress(OSError, ValueError, asyncio.IncompleteReadError):
                await self._exchange(reader, writer)
        finally:
            self._open.discard(writer)
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.LimitOverrunError:
            return
        method, path, headers = _head(head)
        body = await reader.readexactly(min(int(headers.get("content-length", "0")), _MAX_BODY))
        what, _, rest = path.strip("/").partition("/")
        self.seen[what] += 1
        if what == "inventory" and not self.warehouse_is_up:
            writer.transport.abort()
            return
        if what == "reports" and not await self._patient(reader):
            self.hung_up += 1
            return
        status, answer = self._answer(method, what, rest, headers, body)
        writer.write(_response(status, answer))
        await writer.drain()

    def _answer(
        self, method: str, what: str, rest: str, headers: dict[str, str], body: bytes
    ) -> Answer:
        if what == "weather":
            return self._weather(rest)
        if what == "orders" and method == "POST":
            return 200, self._order(headers.get("idempotency-key", ""), json.loads(body))
        if what == "records" and method == "DELETE":
            removed, self.records = self.records, 0
            return 200, {"removed": removed}
        answers: dict[str, Any] = {
            "health": {"status": "up"},
            "inventory": {"item": rest, "in_stock": self._chance.integer(5, 500)},
            "reports": {"month": rest, "revenue": self._chance.integer(10_000, 99_000)},
            "labels": {"order": rest, "printed": True},
        }
        return (200, answers[what]) if what in answers else (404, {"problem": "no such thing"})

    def _weather(self, city: str) -> Answer:
        if self._refusals_left:
            self._refusals_left -= 1
            return 503, {"problem": "overloaded, try again"}
        self._refusals_left = self._chance.integer(1, MOST_REFUSED)
        return 200, {"city": city, "temperature_c": self._chance.integer(-10, 30)}

    def _order(self, key: str, order: Any) -> Any:
        """Ship once for each key, however often the request comes."""
        return self._shipped.setdefault(key, {**order, "parcel": f"P-{len(self._shipped) + 1:04d}"})

    async def _patient(self, reader: asyncio.StreamReader) -> bool:
        """Work for a long time, unless the client goes away meanwhile."""
        with self._clock.limit(SLOW_S) as limit:
            await reader.read(1)
        return limit.expired


def _head(head: bytes) -> tuple[str, str, dict[str, str]]:
    first, *lines = head.decode("latin-1").split("\r\n")
    method, path, _ = first.split(" ", 2)
    pairs = (line.partition(":") for line in lines if line)
    return method, path, {name.strip().lower(): value.strip() for name, _, value in pairs}


def _response(status: int, answer: Any) -> bytes:
    body = json.dumps(answer).encode()
    return (
        f"HTTP/1.1 {status} {_PHRASES[status]}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    ).encode() + body
