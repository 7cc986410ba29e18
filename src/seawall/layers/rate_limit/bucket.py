"""A token bucket as a strategy of `limits`: bursts up to the amount, then a steady flow.

The notation is that of `limits`: `120/minute` holds 120 tokens and gains two a
second. Fractions are kept, a refusal takes nothing, and time is the monotonic
clock that is handed in. The rate is no part of a bucket's key: a changed rate
goes on from the tokens that are there.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import msgspec
from limits.storage import Storage
from limits.strategies import RateLimiter
from limits.util import WindowStats

from seawall.contract.taken import Taken
from seawall.layers.rate_limit.table import Table, shortest_wait

if TYPE_CHECKING:
    from collections.abc import Callable

    from limits import RateLimitItem


class Rate(msgspec.Struct, frozen=True):
    """So many tokens in so many seconds."""

    capacity: float
    period_s: float


class Bucket:
    """The tokens of one key as they were when last written."""

    __slots__ = ("rate", "stamp", "tokens", "tracked")

    def __init__(self, rate: Rate, at: float, tokens: float | None = None) -> None:
        self.rate = rate
        self.stamp = at
        self.tokens = rate.capacity if tokens is None else tokens
        self.tracked = False

    def level(self, at: float) -> float:
        """Return the tokens there are at a time not before the stamp."""
        rate = self.rate
        # Multiplied first: 6 s of 10 per minute are 1, not nearly 1.
        tokens = self.tokens + (at - self.stamp) * rate.capacity / rate.period_s
        return min(tokens, rate.capacity)

    def level_under(self, rate: Rate, at: float) -> float:
        """Return the tokens there would be if the rate changed now: no gift, and no surplus.

        A full bucket stays full, because full is what a forgotten one would be.
        """
        level = self.level(at)
        return rate.capacity if level >= self.rate.capacity else min(level, rate.capacity)

    def write(self, tokens: float, at: float) -> None:
        """Set the tokens there are now."""
        self.tokens = min(tokens, self.rate.capacity)
        self.stamp = at

    def due(self, tokens: float) -> float:
        """Return when there will be so many tokens."""
        return self.stamp + (tokens - self.tokens) * self.rate.period_s / self.rate.capacity

    def idle(self, at: float) -> bool:
        """Say whether it is full."""
        return self.level(at) >= self.rate.capacity

    def idle_at(self) -> float:
        """Return when it is full."""
        return self.due(self.rate.capacity)

    def branch(self, at: float) -> Bucket:
        """Make one with as many tokens as there are here."""
        return Bucket(self.rate, at, self.level(at))


class MemoryBuckets(Storage):
    """Buckets of this process, at most `max_keys`; a drained one is never forgotten.

    When no place is left and no bucket is full, new keys share one bucket per rate.
    Keys are those of `TokenBucket.key_for`.
    """

    def __init__(self, max_keys: int = 10_000) -> None:
        super().__init__()
        self.table: Table[Bucket] = Table(max_keys)

    @property
    def tracked(self) -> int:
        """How many keys have a bucket that was not full when somebody last asked for tokens."""
        return self.table.tracked()

    @property
    def base_exceptions(self) -> tuple[type[Exception], ...]:
        """Return no type: memory does not fail."""
        return ()

    def incr(self, key: str, expiry: int, amount: int = 1) -> int:
        """Refuse: a bucket needs its rate, which this call of `limits` does not carry."""
        raise NotImplementedError("buckets are no counters; ask TokenBucket, or use MemoryWindows")

    def get(self, key: str) -> int:
        """Return the tokens taken and not yet refilled, rounded up."""
        bucket = self.table.find(key, None)
        if bucket is None:
            return 0
        return math.ceil(bucket.rate.capacity - bucket.level(self.table.latest))

    def get_expiry(self, key: str) -> float:
        """Return when the key's bucket is full, by the clock of those who ask."""
        bucket = self.table.find(key, None)
        return self.table.latest if bucket is None else max(bucket.idle_at(), self.table.latest)

    def check(self) -> bool:
        """Say that it works."""
        return True

    def reset(self) -> int:
        """Fill all buckets and say how many there were."""
        return self.table.clear()

    def clear(self, key: str) -> None:
        """Fill one bucket."""
        self.table.discard(key)


class BoundBucket:
    """One rate for one key: what a caller that asks often holds on to."""

    __slots__ = ("_bucket", "_group", "_key", "_now", "_rate", "_table", "crowded")

    def __init__(
        self,
        table: Table[Bucket],
        now: Callable[[], float],
        rate: Rate,
        key: str,
        namespace: str = "",
    ) -> None:
        self._table = table
        self._now = now
        self._key = key
        self._rate = rate
        self._group = (namespace, rate)
        self._bucket = Bucket(self._rate, 0.0)
        self.crowded: Callable[[], object] | None = None
        """Told of each asking while this key shares a bucket, as no place is left for its own."""

    def take(self, cost: int = 1) -> Taken:
        """Take `cost` tokens or none."""
        at = asked = self._now()
        table = self._table
        if at < table.latest:
            at = table.latest
        else:
            table.latest = at
        bucket = self._bucket
        if not bucket.tracked or bucket.rate is not self._rate:
            bucket = self._bucket = self._settled(self._open(at), at)
        rate = self._rate

        # `Bucket.level` and `write` in place: two calls less on the way of every call.
        tokens = bucket.tokens + (at - bucket.stamp) * rate.capacity / rate.period_s
        if tokens > rate.capacity:  # noqa: PLR1730  # `min` is six times the price
            tokens = rate.capacity
        left = tokens - cost
        if left < 0.0 or cost < 1:
            if not bucket.tracked:
                self._tell_crowded()
            return _refused(bucket, tokens, cost, asked)
        bucket.tokens = left
        bucket.stamp = at
        if not bucket.tracked:
            table.keep(self._key, self._group, bucket)
            if not bucket.tracked:
                self._tell_crowded()
        return Taken(_GRANTED, 0.0, left, at)

    def _tell_crowded(self) -> None:
        if self.crowded is not None and self._table.crowds(self._key, self._group):
            self.crowded()

    def give_back(self, cost: int = 1) -> None:
        """Return tokens of a call that was not made; what is above the capacity is lost."""
        checked(cost)
        at = self._table.reading(self._now())
        found = self._table.find(self._key, self._group)
        if found is None:
            return
        bucket = self._settled(found, at)
        bucket.write(bucket.level(at) + cost, at)
        self._table.hasten(self._key)

    def lower_to(self, tokens: float) -> None:
        """Have no more tokens than that."""
        at = self._table.reading(self._now())
        bucket = self._settled(self._open(at), at)
        if bucket.level(at) > tokens:
            bucket.write(max(tokens, 0.0), at)
            self._table.keep(self._key, self._group, bucket)

    @property
    def capacity(self) -> float:
        """The most tokens there can be."""
        return self._rate.capacity

    def level(self) -> float:
        """Return the tokens there are; changes nothing."""
        at = self._table.reading(self._now())
        bucket = self._table.find(self._key, self._group)
        return self._rate.capacity if bucket is None else bucket.level_under(self._rate, at)

    def stats(self) -> WindowStats:
        """Return when the bucket is full, by the clock handed in, and its whole tokens."""
        level = self.level()
        missing_s = (self._rate.capacity - level) * self._rate.period_s / self._rate.capacity
        return WindowStats(self._table.latest + missing_s, int(level))

    def _open(self, at: float) -> Bucket:
        return self._table.open(self._key, self._group, lambda: Bucket(self._rate, at))

    def _settled(self, bucket: Bucket, at: float) -> Bucket:
        """Bring a bucket to the rate of this caller, and this caller to its `Rate` object."""
        if bucket.rate == self._rate:
            self._rate = bucket.rate
            return bucket
        # Written even if the call is then refused: from now on it fills at the new rate.
        tokens = bucket.level_under(self._rate, at)
        bucket.rate = self._rate
        bucket.write(tokens, at)
        self._table.hasten(self._key)
        return bucket


class TokenBucket(RateLimiter):
    """The strategy `token-bucket`, over buckets in memory and a clock of monotonic seconds."""

    def __init__(self, storage: MemoryBuckets, now: Callable[[], float]) -> None:
        super().__init__(storage)
        self._table = storage.table
        self._now = now

    @property
    def tracked(self) -> int:
        """How many keys have a bucket that is not full now."""
        self._table.reading(self._now())
        return self._table.tracked()

    @staticmethod
    def key_for(item: RateLimitItem, *identifiers: str) -> str:
        """Return the key of a bucket; different identifiers never give the same one."""
        return "/".join((item.namespace, *map(escaped, identifiers)))

    def bind(self, item: RateLimitItem, *identifiers: str) -> BoundBucket:
        """Return a bucket to ask again and again: it finds its key once."""
        rate = Rate(float(item.amount), float(item.get_expiry()))
        key = self.key_for(item, *identifiers)
        return BoundBucket(self._table, self._now, rate, key, item.namespace)

    def take(self, item: RateLimitItem, *identifiers: str, cost: int = 1) -> Taken:
        """Take `cost` tokens or none, and say when to come back."""
        return self.bind(item, *identifiers).take(cost)

    def give_back(self, item: RateLimitItem, *identifiers: str, cost: int = 1) -> None:
        """Return tokens of a call that was not made; never above the capacity."""
        self.bind(item, *identifiers).give_back(cost)

    def hit(self, item: RateLimitItem, *identifiers: str, cost: int = 1) -> bool:
        """Take `cost` tokens and say whether they were there."""
        return self.take(item, *identifiers, cost=cost).granted

    def test(self, item: RateLimitItem, *identifiers: str, cost: int = 1) -> bool:
        """Say whether `cost` tokens are there; takes none."""
        checked(cost)
        return self.bind(item, *identifiers).level() >= cost

    def get_window_stats(self, item: RateLimitItem, *identifiers: str) -> WindowStats:
        """Return when the bucket is full, by the clock handed in, and its whole tokens."""
        return self.bind(item, *identifiers).stats()

    def clear(self, item: RateLimitItem, *identifiers: str) -> None:
        """Fill the bucket."""
        self._table.discard(self.key_for(item, *identifiers))


def escaped(identifier: str) -> str:
    """Make an identifier safe to be joined by slashes."""
    return identifier.replace("%", "%25").replace("/", "%2F")


_GRANTED = True  # names take longer to hand over


def _refused(bucket: Bucket, tokens: float, cost: int, asked: float) -> Taken:
    checked(cost)
    if cost > bucket.rate.capacity:
        return Taken(granted=False, retry_after_s=None, left=tokens, at=asked)
    wait_s = shortest_wait(asked, bucket.due(cost), lambda at: bucket.level(at) >= cost)
    return Taken(granted=False, retry_after_s=wait_s, left=tokens, at=asked)


def checked(cost: int) -> int:
    """Refuse a cost that would take nothing, or mint."""
    if cost < 1:
        raise ValueError(f"a cost must be at least 1 (got {cost})")
    return cost
