"""How a gateway is run."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from seawall.contract.errors import ConfigurationError, Fault
from seawall.edges.addresses import LOOPBACK_NAMES, is_loopback
from seawall.edges.gateway.tokens import Tokens
from seawall.layers.rate_limit.strategies import parse_rate


class GatewaySettings(msgspec.Struct, frozen=True, kw_only=True):
    """What the gateway allows, and how much of it. All faults are told in one error."""

    host: str = "127.0.0.1"
    port: int = 8080
    tokens: Tokens = Tokens()
    """Without one that may call, whoever reaches the port may call; only loopback allows that."""
    allow_hosts: tuple[str, ...] = ()
    """Names besides loopback's under which the gateway may be asked for, without a port."""
    max_body_bytes: int = 1_048_576
    max_header_bytes: int = 16_384
    read_s: float = 30.0
    """How long a client may take to send one request, from its first byte or the connection's."""
    max_in_flight: int = 2_000
    """Requests at once; what comes beyond is refused as overloaded."""
    client_rate: str | None = None
    """Calls of each client, in the notation of policies, unless its token says another."""
    session_limit: int = 10_000
    """Sessions remembered; the one not used for longest is forgotten."""
    drain_s: float = 20.0
    """How long calls may go on after the gateway was told to stop."""
    keep_answers_s: float = 86_400.0
    """How long the answer to an `Idempotency-Key` is given again."""
    console: bool = True
    console_allow: tuple[str, ...] | None = None
    """Names, with `*` and `?`, of the tools that the console's page may run; None for all."""
    worker: int = 1
    """Which of the workers this is, from 1."""
    workers: int = 1
    """Processes that serve this address together. Each gives a client its part of the client's
    rate, unless the pipeline shares a store with the others."""

    def __post_init__(self) -> None:
        faults = [
            Fault(f"must be above 0 (got {getattr(self, key)!r})", key)
            for key in (
                "max_body_bytes",
                "max_header_bytes",
                "read_s",
                "max_in_flight",
                "session_limit",
                "drain_s",
                "keep_answers_s",
            )
            if not getattr(self, key) > 0
        ]
        if not 1 <= self.worker <= self.workers:
            said = f"must be from 1 to the number of workers (got {self.worker} of {self.workers})"
            faults.append(Fault(said, "worker"))
        faults.extend(Fault(said, "tokens") for said in self.tokens.doubled())
        if not 0 <= self.port <= 65_535:
            faults.append(Fault(f"must be from 0 to 65535 (got {self.port})", "port"))
        if not (self.is_loopback or self.asks_callers):
            said = (
                f"{self.host} can be reached from elsewhere, so callers need a token: give one with"
                " --token-file or SEAWALL_TOKEN, or bind to 127.0.0.1"
            )
            faults.append(Fault(said, "host"))
        if self.client_rate is not None:
            faults.extend(_rate_faults(self.client_rate))
        if faults:
            raise ConfigurationError(faults)

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach it."""
        return is_loopback(self.host)

    @property
    def asks_callers(self) -> bool:
        """Whether a call needs a token."""
        return any("call" in client.scopes for client in self.tokens.clients)

    @property
    def hosts(self) -> frozenset[str]:
        """Names that a `Host` may have, without a port, in small letters."""
        own = () if self.host in {"0.0.0.0", "::"} else (_bracketed(self.host),)  # noqa: S104  # compared, not bound
        return frozenset(name.lower() for name in (*LOOPBACK_NAMES, *own, *self.allow_hosts))


def token_path(port: int) -> Path:
    """Where the token of a run is kept: in the user's state folder, one for each port.

    Two gateways of one user would else take each other's; one on a free port goes by its process.
    """
    base = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(base) / "seawall" / f"console-token-{port or f'process-{os.getpid()}'}"


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host and not host.startswith("[") else host


def _rate_faults(rate: str) -> list[Fault]:
    try:
        parse_rate(rate)
    except ConfigurationError as error:
        return [Fault(fault.message, "client_rate") for fault in error.faults]
    return []
