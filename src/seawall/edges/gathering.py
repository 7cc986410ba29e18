"""Let what is written in one turn of the event loop leave together, at its end.

A web server writes an answer's head and its body one by one: each would be a packet of its own and
wake the client twice. And of many connections that are answered in one turn, each would wake a
client that has nothing else to do yet; one after the other they find it awake.
"""

from __future__ import annotations

import asyncio
from typing import Any

AT_ONCE_BYTES = 65_536
"""Beyond it there is nothing to be won by waiting, and memory to be lost."""


class Turn:
    """Who has written in this turn of the loop."""

    def __init__(self) -> None:
        self._written: list[Gathering] = []

    def wrote(self, transport: Gathering) -> None:
        """Send what it holds at the end of the turn."""
        if not self._written:
            asyncio.get_running_loop().call_soon(self._end)
        self._written.append(transport)

    def _end(self) -> None:
        written, self._written = self._written, []
        for transport in written:
            transport.flush()


class Gathering:
    """A transport that sends at the end of the turn; connections may share one `Turn`."""

    def __init__(self, transport: Any, turn: Turn) -> None:
        self._transport = transport
        self._turn = turn
        self._waiting: list[bytes] = []
        self._size = 0
        self.is_closing = transport.is_closing

    def __getattr__(self, name: str) -> Any:
        """All else is the transport's."""
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Send it soon."""
        if not self._waiting:
            self._turn.wrote(self)
        self._waiting.append(bytes(data))
        self._size += len(data)
        if self._size > AT_ONCE_BYTES:
            self.flush()

    def flush(self) -> None:
        """Send it now."""
        if not self._waiting:
            return
        waiting, self._waiting = self._waiting, []
        self._size = 0
        if not self.is_closing():
            self._transport.write(waiting[0] if len(waiting) == 1 else b"".join(waiting))

    def close(self) -> None:
        """Close when all is sent."""
        self.flush()
        self._transport.close()
