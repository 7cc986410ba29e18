"""What `seawall proxy` was told."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from pathlib import Path

import msgspec

from seawall.contract.errors import Fault
from seawall.edges.mcp.origin import origin_of_address, origin_of_command
from seawall.edges.mcp.proxy.guard import Guard
from seawall.edges.mcp.proxy.holding import Holding, server_name
from seawall.policy.model import Policies
from seawall.policy.ready_made import ready_made
from seawall.stores.shared import PREFIX
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
    server_name: str | None = None
    """What the server is, however it is reached; None: its command and folder, or its address."""
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
        if self.server_name is not None and not self.server_name.strip():
            found.append(Fault("is empty; leave it out, or name the server", "--server-name"))
        return found

    def origin(self) -> str:
        """Name the server for people, and for their approvals, which hold for it alone."""
        if self.server_name is not None:
            return self.server_name
        key = None if self.state is None else self.state.digest_key
        if self.url is not None:
            return origin_of_address(self.url, key)
        return origin_of_command(self.command, str(Path.cwd()), key)

    def _sharing(self, policies: Policies) -> Policies:
        """Have limits shared with proxies of the same server alone, unless a prefix is given.

        Two servers may well have a tool of one name each.
        """
        shared = policies.shared
        if (shared.url is None and shared.url_env is None) or shared.prefix is not None:
            return policies
        # By no key: proxies of one server may have states of their own, and share all the same.
        server = msgspec.structs.replace(self, state=None).origin()
        name = blake2b(server.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
        own = copy.copy(policies)
        own.shared = msgspec.structs.replace(shared, prefix=f"{PREFIX}:{name}")
        return own

    def guard(self) -> Guard:
        """Make the guard that they describe."""
        policies = self._sharing(self.policies or Policies.load(ready_made(POLICY)))
        holding = None
        if self.pins is not None:
            holding = Holding(self.pins, server_name(self.command, self.url))
        return Guard(
            policies,
            trusted=self.trust_hints,
            client_asks=self.client_asks,
            holding=holding,
            origin=self.origin(),
            state=self.state,
        )
