"""Settings of connections to MCP servers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec

from seawall.contract.errors import ConfigurationError, Fault

Changed = Literal["hold", "warn", "ignore"]


class McpOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How servers are connected, trusted and kept alive. Seconds end in `_s`."""

    trust: frozenset[str] = frozenset()
    """Servers whose hints count; from others a read-only hint is no reason to try again."""
    pins: Path | None = None
    """File of the accepted definitions; None keeps them in memory, for as long as this lives."""
    on_change: Changed = "hold"
    """What happens to a tool whose definition is not the accepted one: it is set aside until
    somebody accepts it, used with a note, or not looked at."""
    protocol: Literal["auto", "handshake"] = "auto"
    """`handshake` speaks only revisions before 2026-07-28."""
    connect_s: float = 60.0
    """For a server to start and to list its tools."""
    max_message_bytes: int = 10 * 1024 * 1024
    """Of one message, and of a server's whole list of tools."""
    base_delay_s: float = 0.5
    max_delay_s: float = 30.0
    """Of the waits between attempts to reconnect: full jitter below a doubling ceiling."""
    max_restarts: int = 5
    restart_window_s: float = 60.0
    """A server is started again at most `max_restarts` times within this time."""
    max_input_rounds: int = 4
    """How often one call may ask for input."""
    elicit: Any = None
    """Answers what servers ask users, as the SDK's `elicitation_callback`; without it they are told
    that nobody can be asked, and a call that needs it is refused."""
    meta: Callable[[Any], Mapping[str, Any]] | None = None
    """Gives, from a `ToolContext`, what to send along in a call's `_meta`: trace context and such.
    Where OpenTelemetry is set up, `traceparent` goes along by itself."""

    def __post_init__(self) -> None:
        names = (
            "connect_s",
            "max_message_bytes",
            "base_delay_s",
            "max_delay_s",
            "max_restarts",
            "restart_window_s",
        )
        faults = [
            Fault(f"must be above 0, not {getattr(self, name)!r}", name)
            for name in names
            if not getattr(self, name) > 0
        ]
        if self.on_change not in ("hold", "warn", "ignore"):
            faults.append(Fault("must be hold, warn or ignore", "on_change"))
        if self.protocol not in ("auto", "handshake"):
            faults.append(Fault("must be auto or handshake", "protocol"))
        if faults:
            raise ConfigurationError(faults)
