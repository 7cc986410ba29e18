"""What `seawall proxy` was told."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from seawall.contract.errors import Fault
from seawall.edges.mcp.proxy.guard import Guard
from seawall.policy.model import Policies
from seawall.policy.ready_made import ready_made

POLICY = "mcp-proxy"


class ProxyOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The command line."""

    command: Sequence[str] = ()
    url: str | None = None
    http: str | None = None
    policies: Policies | None = None
    trust_hints: bool = False
    client_asks: bool = False
    token: str | None = None
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
        return Guard(policies, trusted=self.trust_hints, client_asks=self.client_asks)
