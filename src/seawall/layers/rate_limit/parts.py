"""One process's part of a rate that several keep without a store between them.

All parts together are never more than the rate in the long run. At least one call is granted at
once, for a part below that would never grant any; it then fills so much more slowly.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import msgspec

from seawall.layers.rate_limit.bucket import BoundBucket, MemoryBuckets, Rate, TokenBucket
from seawall.layers.rate_limit.strategies import limiter_for

if TYPE_CHECKING:
    from collections.abc import Callable

    from limits import RateLimitItem

    from seawall.layers.rate_limit.strategies import BoundLimiter


class RateParts(msgspec.Struct, frozen=True):
    """How many processes share each rate."""

    replicas: int


def part_of_rate(capacity: float, period_s: float, replicas: int, cost: int) -> Rate:
    """Give what one of so many processes may grant."""
    part = max(capacity / replicas, float(cost))
    return Rate(part, part * period_s * replicas / capacity)


def part_of_window(item: RateLimitItem, replicas: int, cost: int) -> RateLimitItem:
    """Give the rate of one of so many processes as whole calls in a window."""
    amount = item.amount // replicas
    if amount >= cost:
        return type(item)(amount, item.multiples, item.namespace)
    longer = math.ceil(item.multiples * cost * replicas / item.amount)
    return type(item)(cost, longer, item.namespace)


class PartBuckets:
    """Token buckets that hold one process's part of each rate."""

    def __init__(self, now: Callable[[], float], replicas: int) -> None:
        self._table = MemoryBuckets().table
        self._now = now
        self._replicas = replicas

    def bind(self, item: RateLimitItem, cost: int, *identifiers: str) -> BoundLimiter:
        """Return what to ask again and again for one key."""
        rate = part_of_rate(item.amount, item.get_expiry(), self._replicas, cost)
        key = TokenBucket.key_for(item, *identifiers)
        return BoundBucket(self._table, self._now, rate, key, item.namespace)


class PartWindows:
    """Windows that count one process's part of each rate."""

    def __init__(self, strategy: str, now: Callable[[], float], replicas: int) -> None:
        self._limiter = limiter_for(strategy, None, now)
        self._replicas = replicas

    def bind(self, item: RateLimitItem, cost: int, *identifiers: str) -> BoundLimiter:
        """Return what to ask again and again for one key."""
        return self._limiter.bind(part_of_window(item, self._replicas, cost), *identifiers)


def parts_for(strategy: str, now: Callable[[], float], replicas: int) -> PartBuckets | PartWindows:
    """Make the limiter that a policy names, for one of several processes."""
    if strategy == "token-bucket":
        return PartBuckets(now, replicas)
    return PartWindows(strategy, now, replicas)
