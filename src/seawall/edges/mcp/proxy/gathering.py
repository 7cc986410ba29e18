"""The web server's own protocol, over a transport that gathers what is written."""

from __future__ import annotations

from typing import Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol

from seawall.edges.gathering import Gathering, Turn


class GatheringProtocol(AutoHTTPProtocol):  # type: ignore[misc,valid-type]  # chosen when it is loaded
    """Sends an answer's head and body in one piece."""

    def connection_made(self, transport: Any) -> None:
        """A client came."""
        super().connection_made(Gathering(transport, Turn()))
