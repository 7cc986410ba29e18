"""Bound how often a tool is called.

A call takes its cost from a bucket or is refused at once, with the exact time to wait; nothing is
queued. One call, one take, however often it is tried again; what was taken is given back if
nothing ran. Outside of `retry` and `breaker`, inside of the gates: a refused call costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from seawall.layers.rate_limit.parts import RateParts, parts_for
from seawall.layers.rate_limit.rated import Rated
from seawall.layers.rate_limit.shared import BucketStore, SharedRateLimit
from seawall.layers.rate_limit.strategies import BoundLimiter, Limiter, limiter_for
from seawall.pipeline.layer import Fitted

if TYPE_CHECKING:
    from collections.abc import Callable

    from seawall.contract.result import ToolResult
    from seawall.pipeline.invocation import Handler, Invocation
    from seawall.pipeline.layer import LayerContext


class RateLimit(Rated[BoundLimiter], Fitted):
    """Refuses calls beyond the policy's rate, counted in this process.

    Where several processes share the rate and no store, this one grants its part.
    """

    name = "rate_limit"

    def __init__(self, context: LayerContext, rate: str) -> None:
        super().__init__(context, rate)
        self._now = context.clock.now
        self._bound_to = self._binding(context, rate)
        self._fixed = self._bind(self._key("", ""))
        context.slots.drop("tokens_left")
        level = getattr(self._fixed, "level", None)  # windows have no level to show
        if not self._by_session and level is not None:
            context.slots.slot("tokens_left", lambda: level)
            context.slots.drop("tokens_most")
            most = getattr(self._fixed, "capacity", self._item.amount)
            context.slots.slot("tokens_most", lambda: most)

    def _binding(
        self, context: LayerContext, rate: str
    ) -> Callable[[tuple[str, ...]], BoundLimiter]:
        """Find who keeps the budgets, and how to get a handle on one."""
        item, cost = self._item, self._cost
        strategy, now = context.policy.rate_strategy, context.clock.now
        slots = context.states.shared(f"limiter:{strategy}")
        shared = context.part(RateParts)
        if shared is None or shared.replicas == 1:
            limiter: Limiter = slots.slot("limiter", lambda: limiter_for(strategy, None, now))
            return lambda key: limiter.bind(item, *key)
        parts = slots.slot("limiter", lambda: parts_for(strategy, now, shared.replicas))
        self._rate = f"{rate} by {shared.replicas} processes together"
        return lambda key: parts.bind(item, cost, *key)

    @classmethod
    def for_tool(cls, context: LayerContext) -> RateLimit | SharedRateLimit | None:
        """Nothing to do without a rate; with a store it is counted there, for all processes."""
        rate = context.policy.rate
        if rate is None or context.policy.rate_mode == "off":
            return None
        store = context.part(BucketStore)  # type: ignore[type-abstract]  # a protocol is a key too
        return cls(context, rate) if store is None else SharedRateLimit(context, rate, store)

    def fitted(self, proceed: Handler) -> Handler:
        """Take the cost of one call, or refuse it."""
        by_session, fixed = self._by_session, self._fixed
        cost, now = self._cost, self._now

        async def limited(call: Invocation) -> ToolResult:
            bucket = self._of_session(call) if by_session else fixed
            taken = bucket.take(cost)
            call.rated = taken.at or now()
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
                    bucket.give_back(cost)

        return limited

    def _bind(self, key: tuple[str, ...]) -> BoundLimiter:
        bound = self._bound_to(key)
        bound.crowded = self._crowded
        return bound
