"""What a policy file says beside the rules for tools: who is asked, and how much is traced."""

from __future__ import annotations

import msgspec

from seawall.contract.annotations import Risk
from seawall.contract.errors import ConfigurationError, Fault
from seawall.layers.risk_policies import AllowlistPolicy
from seawall.recording.trace import MAX_CAPACITY


class RiskSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Which calls need a person's word: by risk, or by lists with `*`, `?` and `[…]`."""

    ask_from: Risk = Risk.HIGH
    """Calls of tools with this risk or a higher one are asked for; lists take its place."""
    allow: tuple[str, ...] | None = None
    """Tools that may run without a question. None: there are no lists, the risk decides."""
    ask: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    """Said for the reader of a file: what no list names is refused as well."""

    def __post_init__(self) -> None:
        if self.allow is None:
            if listed := "ask" if self.ask else "deny" if self.deny else "":
                raise ConfigurationError([Fault(_ALLOW_TOO, key=listed)])
        else:
            AllowlistPolicy(self.allow, self.ask, self.deny)

    @property
    def default_deny(self) -> bool:
        """Whether what no list names is refused; otherwise its risk decides."""
        return self.allow is not None


_ALLOW_TOO = (
    "needs `allow` beside it: with lists, every tool that none of them names is refused"
    " (allow = [] if nothing may run without a question)"
)


class TraceSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How many spans are kept in memory."""

    capacity: int | None = None
    """None leaves it to the trace; 0 keeps none."""

    def __post_init__(self) -> None:
        if self.capacity is not None and not 0 <= self.capacity <= MAX_CAPACITY:
            said = f"must be from 0 to {MAX_CAPACITY:,} (got {self.capacity})"
            raise ConfigurationError([Fault(said, key="capacity")])
