"""What rate limits have in common: whose budget a call uses, and how one is refused."""

from __future__ import annotations

import math
from collections import OrderedDict
from typing import TYPE_CHECKING, Generic, TypeVar

from seawall.contract.errors import ConfigurationError, Fault
from seawall.contract.failure import FailureCode
from seawall.contract.ownership import owner_key
from seawall.layers.rate_limit.strategies import parse_rate
from seawall.pipeline.digest import Digester

if TYPE_CHECKING:
    from seawall.contract.result import ToolResult
    from seawall.contract.taken import Taken
    from seawall.pipeline.invocation import Invocation
    from seawall.pipeline.layer import LayerContext

H = TypeVar("H")

MAX_BOUND = 1_024
"""Keys whose handle is kept ready; others are looked up again."""


class Rated(Generic[H]):
    """The rate of one tool, and for each key a handle on its budget."""

    name = "rate_limit"

    def __init__(self, context: LayerContext, rate: str) -> None:
        policy = context.policy
        self._tool = context.tool.name
        self._rate = rate
        self._item = parse_rate(rate)
        self._cost = policy.cost
        if self._cost > self._item.amount:
            said = f"is {self._cost}, more than {rate} can ever grant; lower it, or raise the rate"
            raise ConfigurationError([Fault(said, key="cost")])
        self._shadow = policy.rate_mode == "shadow"
        self._count = context.count
        self._parts = policy.rate_key
        self._by_session = "caller" in self._parts or "session" in self._parts
        self._digester = context.part(Digester)
        self._bound: OrderedDict[tuple[str, ...], H] = OrderedDict()

    def _bind(self, key: tuple[str, ...]) -> H:
        """Make the handle on the budget of a key."""
        raise NotImplementedError

    def _crowded(self) -> None:
        """A key shares a budget with others, as there is no place left for its own."""
        self._count(self.name, "keys_full")

    def _of_session(self, call: Invocation) -> H:
        key = self._key(call.session.caller, call.session.id)
        if self._digester is not None:
            call.key = self._digester.text("\0".join(key))
        bound = self._bound.get(key)
        if bound is None:
            bound = self._bound[key] = self._bind(key)
            if len(self._bound) > MAX_BOUND:
                self._bound.popitem(last=False)
        return bound

    def _key(self, caller: str, session: str) -> tuple[str, ...]:
        own = owner_key(caller, session)
        values = {"tool": self._tool, "caller": caller, "session": own, "global": ""}
        key = tuple(f"{part}={values[part]}" for part in self._parts)
        # Tools that share a key share a budget only if they have the same rate: one bucket cannot
        # keep two.
        return key if "tool" in self._parts else (*key, self._rate)

    def _refused(self, call: Invocation, taken: Taken) -> ToolResult:
        wait_s = taken.retry_after_s
        if wait_s is not None:
            call.mark("short", wait_s)
        when = "" if wait_s is None else f"; there is room again in {max(math.ceil(wait_s), 1)} s"
        return call.refuse(
            FailureCode.RATE_LIMITED,
            f"{self._tool} may be called {self._rate} and was called that often{when}",
            layer=self.name,
            retry_after_s=wait_s,
        )
