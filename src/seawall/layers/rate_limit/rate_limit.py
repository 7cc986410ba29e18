"""Bound how often a tool is called.

A call takes its cost from a bucket or is refused at once, with the exact time to wait; nothing is
queued. One call, one take, however often it is tried again; what was taken is given back if
nothing ran. Outside of `retry` and `breaker`, inside of the gates: a refused call costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from seawall.layers.rate_limit.rated import Rated
from seawall.layers.rate_limit.shared import BucketStore, SharedRateLimit
from seawall.layers.rate_limit.strategies import BoundLimiter, Limiter, limiter_for
from seawall.pipeline.layer import Fitted

if TYPE_CHECKING:
    from seawall.contract.result import ToolResult
    from seawall.pipeline.invocation import Handler, Invocation
    from seawall.pipeline.layer import LayerContext


class RateLimit(Rated[BoundLimiter], Fitted):
    """Refuses calls beyond the policy's rate, counted in this process."""

    name = "rate_limit"

    def __init__(self, context: LayerContext, rate: str) -> None:
        super().__init__(context, rate)
        strategy = context.policy.rate_strategy
        self._now = context.clock.now
        self._limiter: Limiter = context.states.shared(f"limiter:{strategy}").slot(
            "limiter", lambda: limiter_for(strategy, None, context.clock.now)
        )
        self._fixed = self._bind(self._key("", ""))
        context.slots.drop("tokens_left")
        level = getattr(self._fixed, "level", None)  # windows have no level to show
        if not self._by_session and level is not None:
            context.slots.slot("tokens_left", lambda: level)
            context.slots.drop("tokens_most")
            context.slots.slot("tokens_most", lambda: self._item.amount)

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
        return self._limiter.bind(self._item, *key)
