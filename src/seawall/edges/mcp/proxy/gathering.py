"""Let what is written in one go leave in one piece.

The web server writes an answer's head and its body one by one; each would be a packet of its own,
and would wake the client twice.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol


class Gathering:
    """A transport that sends at the end of the loop's turn."""

    def __init__(self, transport: Any) -> None:
        self._transport = transport
        self._loop = asyncio.get_running_loop()
        self._waiting: list[bytes] = []

    def __getattr__(self, name: str) -> Any:
        """All else is the transport's."""
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Send it soon."""
        if not self._waiting:
            self._loop.call_soon(self._flush)
        self._waiting.append(bytes(data))

    def close(self) -> None:
        """Close when all is sent."""
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        if not self._waiting:
            return
        waiting, self._waiting = self._waiting, []
        if not self._transport.is_closing():
            self._transport.write(waiting[0] if len(waiting) == 1 else b"".join(waiting))


class GatheringProtocol(AutoHTTPProtocol):  # type: ignore[misc,valid-type]  # chosen when it is loaded
    """The web server's own protocol over such a transport."""

    def connection_made(self, transport: Any) -> None:
        """A client came."""
        super().connection_made(Gathering(transport))
