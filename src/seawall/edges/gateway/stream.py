"""Server-sent events, written by hand: a few lines of text, with a sign of life between them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import msgspec

from seawall.edges.gateway.asked import FIXED
from seawall.edges.requests import ended_first

if TYPE_CHECKING:
    from seawall.edges.gateway.asked import Asked
    from seawall.pipeline.clock import Clock

ALIVE_S = 15.0
"""How often a silent stream says that it is there, so that nothing between takes it for dead."""
PAUSE_S = 0.1
"""Between two things that a viewer is sent: what many look at is not paid for by each call."""
MAX_WAITING = 1_000
"""Events kept for a client that reads slowly; the oldest go first."""
MAX_WAITING_BYTES = 4 * 1024 * 1024
"""Their size together; the newest one is kept whatever its size."""

_HEADERS = [(b"content-type", b"text/event-stream; charset=utf-8"), *FIXED]


class Stream:
    """One client's stream of events. Nothing is sent before the first event or `begin`."""

    def __init__(self, asked: Asked, clock: Clock) -> None:
        self._asked = asked
        self._clock = clock
        self._waiting: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._size = 0
        self._ending = False
        self.begun = False

    def put(self, event: str, data: Any) -> None:
        """Add an event, from the loop's own thread."""
        self.put_written(event_of(event, data))

    def put_written(self, event: bytes) -> None:
        """Add an event as it is sent; what waits too long, or is too much, goes."""
        self._size += len(event)
        self._waiting.put_nowait(event)
        while self._waiting.qsize() > MAX_WAITING or (
            self._size > MAX_WAITING_BYTES and self._waiting.qsize() > 1
        ):
            self._taken(self._waiting.get_nowait())

    def end(self) -> None:
        """Let `drain` return once everything was sent."""
        self._waiting.put_nowait(None)

    async def begin(self, status: int = 200) -> None:
        """Send the headers."""
        self.begun = True
        await self._asked.send(
            {"type": "http.response.start", "status": status, "headers": _HEADERS}
        )

    async def drain(self, pause_s: float = 0.0) -> None:
        """Send events as they come until `end`; with a pause, what comes meanwhile at once."""
        while (event := await self._next()) is not None:
            if not self.begun:
                await self.begin()
            await self._send(event + self._more())
            if pause_s:
                await self._clock.sleep(pause_s)

    def _more(self) -> bytes:
        """What waits too, up to the end."""
        found = []
        while not self._ending and not self._waiting.empty():
            event = self._taken(self._waiting.get_nowait())
            if event is None:
                self._ending = True
            else:
                found.append(event)
        return b"".join(found)

    async def drain_until_gone(self) -> None:
        """Send events until `end`, or until the client has gone."""
        sending = asyncio.ensure_future(self.drain(PAUSE_S))
        try:
            if await ended_first(sending, self._asked):
                await self.close()
        finally:
            sending.cancel()

    async def close(self, event: bytes = b"") -> None:
        """Send the last event."""
        await self._asked.send({"type": "http.response.body", "body": event})

    async def _next(self) -> bytes | None:
        if self._ending:
            return None
        if not self._waiting.empty():
            return self._taken(self._waiting.get_nowait())
        with self._clock.limit(ALIVE_S):
            return self._taken(await self._waiting.get())
        return b": alive\n\n"

    def _taken(self, event: bytes | None) -> bytes | None:
        self._size -= len(event or b"")
        return event

    async def _send(self, event: bytes) -> None:
        await self._asked.send({"type": "http.response.body", "body": event, "more_body": True})


def event_of(event: str, data: Any) -> bytes:
    """Write one event; JSON has no line ends of its own."""
    return b"event: %s\ndata: %s\n\n" % (event.encode(), msgspec.json.encode(data, enc_hook=str))
