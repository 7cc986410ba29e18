"""Bound how often a tool is called.

A call takes its cost from a bucket or is refused at once, with the exact time to wait; nothing is
queued. One call, one take, however often it is tried again; what was taken is given back if
nothing ran. Outside of `retry` and `breaker`, inside of the gates: a refused call costs nothing.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from typing import TYPE_CHECKING

from seawall.contract.errors import ConfigurationError, Fault
from seawall.contract.failure import FailureCode
from seawall.layers.rate_limit.strategies import BoundLimiter, Limiter, limiter_for, parse_rate
from seawall.pipeline.digest import Digester

if TYPE_CHECKING:
    from seawall.contract.result import ToolResult
    from seawall.layers.rate_limit.bucket import Taken
    from seawall.pipeline.invocation import Handler, Invocation
    from seawall.pipeline.layer import LayerContext

MAX_BOUND = 1_024
"""Keys whose handle is kept ready; others are looked up again."""


class RateLimit:
    """Refuses calls beyond the policy's rate."""

    name = "rate_limit"

    def __init__(self, context: LayerContext, rate: str) -> None:
        policy = context.policy
        self._tool = context.tool.name
        self._rate = rate
        self._item = parse_rate(rate)
        self._cost = policy.cost
        if self._cost > self._item.amount:
            raise ConfigurationError(
                [Fault(f"is {self._cost}, more than {rate} can ever grant", key="cost")]
            )
        self._shadow = policy.rate_mode == "shadow"
        self._count = context.count
        self._limiter: Limiter = context.states.shared(f"limiter:{policy.rate_strategy}").slot(
            "limiter", lambda: limiter_for(policy.rate_strategy, None, context.clock.now)
        )
        self._parts = policy.rate_key
        self._by_session = "caller" in self._parts or "session" in self._parts
        self._digester = context.part(Digester)
        self._bound: OrderedDict[tuple[str, ...], BoundLimiter] = OrderedDict()
        self._fixed = self._limiter.bind(self._item, *self._key("", ""))
        context.slots.drop("tokens_left")
        level = getattr(self._fixed, "level", None)  # windows have no level to show
        if not self._by_session and level is not None:
            context.slots.slot("tokens_left", lambda: level)
            context.slots.drop("tokens_most")
            context.slots.slot("tokens_most", lambda: self._item.amount)

    @classmethod
    def for_tool(cls, context: LayerContext) -> RateLimit | None:
        """Nothing to do without a rate."""
        rate = context.policy.rate
        return None if rate is None or context.policy.rate_mode == "off" else cls(context, rate)

    async def __call__(self, call: Invocation, proceed: Handler) -> ToolResult:
        """Take the cost of one call, or refuse it."""
        bucket = self._of_session(call) if self._by_session else self._fixed
        taken = bucket.take(self._cost)
        if not taken.granted:
            if not self._shadow:
                return self._refused(call, taken)
            self._count(self.name, "shadow_refused")
            call.note("rate_limit:would_refuse:rate_limited")
            return await proceed(call)
        try:
            return await proceed(call)
        finally:
            if not call.started:
                bucket.give_back(self._cost)

    def _of_session(self, call: Invocation) -> BoundLimiter:
        key = self._key(call.session.caller, call.session.id)
        if self._digester is not None:
            call.key = self._digester.text("\0".join(key))
        bound = self._bound.get(key)
        if bound is None:
            bound = self._bound[key] = self._limiter.bind(self._item, *key)
            if len(self._bound) > MAX_BOUND:
                self._bound.popitem(last=False)
        return bound

    def _key(self, caller: str, session: str) -> tuple[str, ...]:
        values = {"tool": self._tool, "caller": caller, "session": session, "global": ""}
        key = tuple(f"{part}={values[part]}" for part in self._parts)
        # Tools that share a key share a budget only if they have the same rate: one bucket cannot
        # keep two.
        return key if "tool" in self._parts else (*key, self._rate)

    def _refused(self, call: Invocation, taken: Taken) -> ToolResult:
        wait_s = taken.retry_after_s
        when = "" if wait_s is None else f"; there is room again in {max(math.ceil(wait_s), 1)} s"
        return call.refuse(
            FailureCode.RATE_LIMITED,
            f"{self._tool} may be called {self._rate} and was called that often{when}",
            layer=self.name,
            retry_after_s=wait_s,
        )
