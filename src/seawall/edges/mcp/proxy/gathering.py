"""The web server's own protocol, over a transport that gathers what is written."""

from __future__ import annotations

from typing import Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol

from seawall.edges.gathering import Gathering, Turn
from seawall.edges.requests import with_named


class GatheringProtocol(AutoHTTPProtocol):  # type: ignore[misc,valid-type]  # chosen when it is loaded
    """Sends an answer's head and body in one piece."""

    def connection_made(self, transport: Any) -> None:
        """A client came."""
        super().connection_made(Gathering(transport, Turn()))

    def on_headers_complete(self) -> None:
        """A request begins; by the parser that reads whole addresses."""
        with_named(self.headers, self.url)
        super().on_headers_complete()
