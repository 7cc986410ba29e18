"""What a policy file says beside the rules for tools: who is asked, how much is traced, loops."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from seawall.contract.annotations import Risk
from seawall.contract.errors import ConfigurationError, Fault
from seawall.layers.risk_policies import AllowlistPolicy, RiskPolicy
from seawall.layers.risk_rules import ArgumentRule, RuledPolicy
from seawall.policy.addresses import address_rule
from seawall.recording.trace import MAX_CAPACITY
from seawall.stores.redis_address import redis_address
from seawall.stores.shared import PREFIX, TIMEOUT_S, check_shared


class RiskSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Which calls need a person's word: by risk, or by lists with `*`, `?` and `[…]`."""

    ask_from: Risk = Risk.HIGH
    """Calls of tools with this risk or a higher one are asked for; lists take its place."""
    allow: tuple[str, ...] | None = None
    """Tools that may run without a question. None: there are no lists, the risk decides."""
    ask: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    """Said for the reader of a file: what no list names is refused as well."""
    ask_listed_from: Risk | None = None
    """With lists: from this risk on a person is asked about what may run without a question."""
    tools: Mapping[str, Risk] = {}
    """The risk of tools, by name or pattern, where it is not what they say themselves."""
    rules: tuple[ArgumentRule, ...] = ()
    """What the arguments of a call decide."""

    def __post_init__(self) -> None:
        if self.allow is None:
            if listed := "ask" if self.ask else "deny" if self.deny else "":
                raise ConfigurationError([Fault(_ALLOW_TOO, key=listed)])
        else:
            AllowlistPolicy(self.allow, self.ask, self.deny)

    def policy(self) -> RiskPolicy | AllowlistPolicy | RuledPolicy:
        """Make what decides about calls."""
        base: RiskPolicy | AllowlistPolicy = RiskPolicy(self.ask_from)
        if self.allow is not None:
            base = AllowlistPolicy(self.allow, self.ask, self.deny, ask_from=self.ask_listed_from)
        if not (self.tools or self.rules):
            return base
        return RuledPolicy(base, self.rules, risks=self.tools)

    @property
    def default_deny(self) -> bool:
        """Whether what no list names is refused; otherwise its risk decides."""
        return self.allow is not None


_ALLOW_TOO = (
    "needs `allow` beside it: with lists, every tool that none of them names is refused"
    " (allow = [] if nothing may run without a question)"
)


class AuditSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What goes into the audit log of a state."""

    calls: str = "all"
    """`all`, or `refused`, or `off` for none; effects, approvals and turns are always kept."""
    wait: bool = False
    """Whether each call waits until it is written; else only what was refused or asked about."""

    def __post_init__(self) -> None:
        if self.calls not in ("all", "refused", "off"):
            said = f"is {self.calls!r}; use one of all, refused, off"
            raise ConfigurationError([Fault(said, key="calls")])


class HttpCheckSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What the bundled tool `http_check` may ask beside public addresses."""

    allow: tuple[str, ...] = ()
    """`host:port` as it stands in the URL, or a network such as `10.1.0.0/16`."""

    def __post_init__(self) -> None:
        for rule in self.allow:
            try:
                address_rule(rule)
            except ValueError as error:
                raise ConfigurationError([Fault(str(error), key="allow")]) from None


class TraceSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How many spans are kept in memory."""

    capacity: int | None = None
    """None leaves it to the trace; 0 keeps none."""

    def __post_init__(self) -> None:
        if self.capacity is not None and not 0 <= self.capacity <= MAX_CAPACITY:
            said = f"must be from 0 to {MAX_CAPACITY:,} (got {self.capacity})"
            raise ConfigurationError([Fault(said, key="capacity")])


MAX_WINDOW = 1_000


class LoopSettings(msgspec.Struct, frozen=True, kw_only=True):
    """When a model is taken to go in circles."""

    threshold: int = 5
    """Calls with the same arguments and the same result; the next is refused."""
    window: int | None = None
    """The last calls of a session among which they are counted; None: as many, all in a row."""
    cycle_rounds: int | None = 3
    """Rounds of the same two or three calls with the same results; None looks for no cycles."""
    pause_s: float | None = 300.0
    """A session that calls nothing for so long begins anew; None: it never does."""
    exempt: tuple[str, ...] = ()
    """Names of tools that may repeat, with `*`, `?` and `[…]`."""
    exempt_tags: tuple[str, ...] = ("polling",)
    """Tools with one of these tags may repeat, too."""
    scope: Literal["all", "sessions"] = "sessions"
    """`sessions` leaves out calls that bring no session, unless they are made in a turn."""
    mode: Literal["on", "shadow"] = "on"
    """In shadow nobody is warned or refused: spans and metrics say what would have been."""

    def __post_init__(self) -> None:
        check_bounds(self, loop_bounds(self))


Bounds = tuple[tuple[str, str, bool], ...]
"""Keys, what each must be, and whether it is."""


def loop_bounds(loop: LoopSettings) -> Bounds:
    """Tell the bounds of the numbers that say what a loop is."""
    most = MAX_WINDOW if loop.window is None else loop.window
    return (
        ("threshold", "from 2 to the window", within(loop.threshold, 2, most)),
        ("window", f"from 2 to {MAX_WINDOW}, or None", within(most, 2, MAX_WINDOW)),
        ("cycle_rounds", "from 2 to 100, or None", within(loop.cycle_rounds or 2, 2, 100)),
        ("pause_s", "above 0, or None", loop.pause_s is None or within(loop.pause_s, 1e-9)),
        ("scope", "all or sessions", loop.scope in ("all", "sessions")),
        ("mode", "on or shadow", loop.mode in ("on", "shadow")),
    )


def within(value: Any, least: float, most: Any = math.inf) -> bool:
    """Whether a value is a number from `least` to `most`."""
    numbers = all(isinstance(one, (int, float)) and one is not True for one in (value, most))
    return numbers and least <= value <= most


def check_bounds(settings: object, bounds: Bounds, prefix: str = "") -> None:
    """Raise `ConfigurationError` with everything that is out of its bounds."""
    faults = [
        Fault(f"must be {said} (got {getattr(settings, key)!r})", key=f"{prefix}{key}")
        for key, said, fine in bounds
        if not fine
    ]
    if faults:
        raise ConfigurationError(faults)


class SharedSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Where rates and circuits are kept that several processes share."""

    url: str | None = None
    """A Redis or Valkey; an address with a password belongs into the environment."""
    url_env: str | None = None
    """The name of the environment variable that holds the URL."""
    replicas: int = 1
    """How many processes share the rates: what each may grant without the store is its part."""
    timeout_s: float = TIMEOUT_S
    """How long the store may take to answer; what takes longer is done without it."""
    prefix: str | None = None
    """What the names of its keys begin with. None is `seawall`, to which a proxy adds its server;
    what is given is taken as it is."""

    def __post_init__(self) -> None:
        check_shared(replicas=self.replicas, timeout_s=self.timeout_s, prefix=self.shown_prefix)
        if self.url is None:
            return
        if self.url_env is not None:
            raise ConfigurationError(
                [Fault("does not count beside url_env; leave one of them out", key="url")]
            )
        redis_address(self.url)
        if "@" in self.url or "password=" in self.url:
            said = "holds a password, and a policy is no place for one; name it by url_env"
            raise ConfigurationError([Fault(said, key="url")])

    @property
    def shown_prefix(self) -> str:
        """What the names of its keys begin with, given or not."""
        return PREFIX if self.prefix is None else self.prefix


class ConsoleSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What the gateway's page may do."""

    allow: tuple[str, ...] | None = None
    """Tools that the page may run, as names with `*`, `?` and `[…]`. None: all."""
