"""Tools whose definition is not the one that was accepted: they are held back until it is.

What a server says of a tool is read by the model as instructions. So a changed tool is neither
called nor shown, whoever asks.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from seawall.contract.errors import ConfigurationError
from seawall.edges.mcp.pins import Pins
from seawall.pipeline.foreign import log

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path


class Holding:
    """Compares what one server declares with what was accepted of it."""

    def __init__(self, path: Path, server: str) -> None:
        """Open the file; raises `ConfigurationError` if it is no good."""
        self._pins = Pins(path)
        self._server = server

    def reasons(self, declared: Sequence[Mapping[str, Any]]) -> dict[str, str]:
        """Give the tools that are held back, each with the reason; what is new is accepted."""
        try:
            changes = self._pins.check(self._server, list(declared))
        except ConfigurationError as error:
            # What cannot be compared is not believed.
            log.warning("no tool can be offered: %s", error)
            return {str(one.get("name")): str(error) for one in declared}
        return {name: str(change) for name, change in changes.items()}


def server_name(command: Sequence[str], url: str | None) -> str:
    """Name a server by how it is reached: what it calls itself is its own to choose."""
    return url or shlex.join(command)
