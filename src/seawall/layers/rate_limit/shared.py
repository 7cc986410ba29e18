"""A rate that several processes share: buckets in a store, and what is granted when it is gone.

The store answers in one round trip, or gives none within its bound. Then a policy that fails open
grants what is this process's part of the rate, from a bucket of its own that begins with its part
of what the store last said was left; one that fails closed refuses.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Protocol

from seawall.contract.errors import ConfigurationError, Fault
from seawall.contract.failure import FailureCode
from seawall.layers.rate_limit.bucket import BoundBucket, MemoryBuckets, Rate, TokenBucket
from seawall.layers.rate_limit.rated import Rated
from seawall.pipeline.digest import told_apart

if TYPE_CHECKING:
    from collections.abc import Callable

    from seawall.contract.result import ToolResult
    from seawall.contract.taken import Taken
    from seawall.pipeline.invocation import Handler, Invocation
    from seawall.pipeline.layer import LayerContext

RETRY_UNAVAILABLE_S = 1.0
"""What a call is told to wait that is refused because the store is gone."""


class BucketStore(Protocol):
    """A store of token buckets. It answers in bounded time, or gives None."""

    replicas: int
    """How many processes share a rate."""

    async def take(self, key: str, capacity: int, period_s: int, cost: int) -> Taken | None:
        """Take `cost` tokens or none."""

    async def give_back(self, key: str, capacity: int, period_s: int, cost: int) -> None:
        """Return tokens of a call that was not made."""

    def give_back_later(self, key: str, capacity: int, period_s: int, cost: int) -> None:
        """Return tokens in the background."""


class SharedBucket:
    """The budget of one key: in the store, and this process's part of it."""

    __slots__ = ("_cost", "_key", "_known_at", "_known_left", "_now", "_own", "_rate", "_store")

    def __init__(
        self,
        store: BucketStore,
        own: MemoryBuckets,
        now: Callable[[], float],
        key: str,
        capacity: int,
        period_s: int,
        cost: int,
        crowded: Callable[[], object] | None = None,
    ) -> None:
        self._store = store
        self._rate = (capacity, period_s)
        self._key = key
        self._cost = cost
        self._now = now
        # At least one call: a part below the cost would never grant anything.
        part = max(capacity / store.replicas, float(cost))
        fills_in_s = part * period_s * store.replicas / capacity
        self._own = BoundBucket(own.table, now, Rate(part, fills_in_s), key)
        self._own.crowded = crowded
        self._known_left: float | None = None
        self._known_at = 0.0

    async def take(self) -> Taken | None:
        """Take the cost of a call in the store, for all processes; None if it is gone."""
        taken = await self._store.take(self._key, *self._rate, self._cost)
        if taken is not None:
            self._known_left = taken.left
            self._known_at = self._now()
        return taken

    def take_own(self) -> Taken:
        """Take the cost of a call from this process's part."""
        known = self.level()
        if known is not None:
            self._own.lower_to(known / self._store.replicas)
            self._known_left = None
        return self._own.take(self._cost)

    def give_back_own(self) -> None:
        """Return what `take_own` gave."""
        self._own.give_back(self._cost)

    async def give_back(self) -> None:
        """Return what `take` gave."""
        await self._store.give_back(self._key, *self._rate, self._cost)

    def give_back_later(self) -> None:
        """Return what `take` gave, without waiting for it."""
        self._store.give_back_later(self._key, *self._rate, self._cost)

    def level(self) -> float | None:
        """Return the tokens there are if nobody else has taken any since; None if not known."""
        if self._known_left is None:
            return None
        capacity, period_s = self._rate
        filled = (self._now() - self._known_at) * capacity / period_s
        return min(self._known_left + filled, float(capacity))

    def shown_level(self) -> float:
        """Return the tokens there are; of this process's part while that is what counts."""
        known = self.level()
        return self._own.level() if known is None else known


class SharedRateLimit(Rated[SharedBucket]):
    """Refuses calls beyond a rate that all processes share."""

    name = "rate_limit"

    def __init__(self, context: LayerContext, rate: str, store: BucketStore) -> None:
        super().__init__(context, rate)
        policy = context.policy
        if policy.rate_strategy != "token-bucket":
            said = "is counted in one process only; a rate that processes share is a token-bucket"
            raise ConfigurationError([Fault(said, key="rate_strategy")])
        self._store = store
        self._now = context.clock.now
        self._is_closed_without = policy.on_store_down == "fail-closed"
        self._own: MemoryBuckets = context.states.shared("limiter:shared").slot(
            "limiter", MemoryBuckets
        )
        self._fixed = self._bind(self._key("", ""))
        context.slots.drop("tokens_left")
        if not self._by_session:
            context.slots.slot("tokens_left", lambda: self._fixed.shown_level)
            context.slots.drop("tokens_most")
            context.slots.slot("tokens_most", lambda: self._item.amount)

    async def __call__(self, call: Invocation, proceed: Handler) -> ToolResult:
        """Take the cost of one call, or refuse it."""
        bucket = self._of_session(call) if self._by_session else self._fixed
        taken = await bucket.take()
        is_shared = taken is not None
        if taken is None:
            taken = self._without_store(call, bucket)
        if taken is None or not taken.granted:
            if self._shadow:
                return await self._noted(call, proceed, is_known=taken is not None)
            return self._unavailable(call) if taken is None else self._refused(call, taken)
        if not is_shared:
            try:
                return await proceed(call)
            finally:
                if not call.started:
                    bucket.give_back_own()
        try:
            result = await proceed(call)
        except BaseException:
            if not call.started:
                bucket.give_back_later()
            raise
        if not call.started:
            await bucket.give_back()
        return result

    def _without_store(self, call: Invocation, bucket: SharedBucket) -> Taken | None:
        if self._is_closed_without:
            self._count(self.name, "store_closed")
            call.note("rate_limit:store_closed")
            return None
        self._count(self.name, "store_local")
        call.note("rate_limit:store_local")
        return bucket.take_own()

    async def _noted(self, call: Invocation, proceed: Handler, *, is_known: bool) -> ToolResult:
        self._count(self.name, "shadow_refused")
        reason = "rate_limited" if is_known else "limiter_unavailable"
        call.note(f"rate_limit:would_refuse:{reason}")
        return await proceed(call)

    def _unavailable(self, call: Invocation) -> ToolResult:
        return call.refuse(
            FailureCode.RATE_LIMITED,
            f"how often {self._tool} was called is counted in a store that does not answer now,"
            " and without it no call is let through",
            reason="limiter_unavailable",
            layer=self.name,
            retry_after_s=RETRY_UNAVAILABLE_S,
        )

    def _bind(self, key: tuple[str, ...]) -> SharedBucket:
        item = self._item
        return SharedBucket(
            self._store,
            self._own,
            self._now,
            TokenBucket.key_for(item, *(self._hidden(key) if self._by_session else key)),
            item.amount,
            item.get_expiry(),
            self._cost,
            self._crowded,
        )

    def _hidden(self, key: tuple[str, ...]) -> tuple[str, ...]:
        """Make a key that is short, and does not show who calls: the store is read by others."""
        digest = blake2b(told_apart(*key).encode("utf-8", "surrogatepass"), digest_size=16)
        return (self._tool if "tool" in self._parts else "of caller", digest.hexdigest())
