"""What `seawall proxy` was told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from seawall.contract.errors import Fault
from seawall.edges.mcp.proxy.guard import Guard
from seawall.edges.mcp.proxy.holding import Holding, server_name
from seawall.policy.model import Policies
from seawall.policy.ready_made import ready_made
from seawall.stores.state import State

POLICY = "mcp-proxy"


class ProxyOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The command line."""

    command: Sequence[str] = ()
    url: str | None = None
    http: str | None = None
    policies: Policies | None = None
    trust_hints: bool = False
    client_asks: bool = False
    pins: Path | None = None
    """Where accepted definitions are kept; without it no tool is held back."""
    state: State | None = None
    """Where approvals, effects and the audit log are kept; without it nothing is."""
    token: str | None = None
    environment: Mapping[str, str] | None = None
    """Of a server that is started; None: all of ours."""
    allowed_hosts: tuple[str, ...] = ()
    allowed_origins: tuple[str, ...] = ()

    def faults(self) -> list[Fault]:
        """Say what does not go together."""
        found = []
        if self.url is None and not self.command:
            found.append(Fault("name a server: `-- COMMAND …`, or --url URL", "proxy"))
        if self.url is not None and self.command:
            found.append(Fault("give a command or --url, not both", "proxy"))
        if self.url is not None and not self.url.startswith(("http://", "https://")):
            found.append(Fault(f"must begin with http:// or https://, not {self.url!r}", "--url"))
        return found

    def guard(self) -> Guard:
        """Make the guard that they describe."""
        policies = self.policies or Policies.load(ready_made(POLICY))
        holding = None
        if self.pins is not None:
            holding = Holding(self.pins, server_name(self.command, self.url))
        return Guard(
            policies,
            trusted=self.trust_hints,
            client_asks=self.client_asks,
            holding=holding,
            state=self.state,
        )
