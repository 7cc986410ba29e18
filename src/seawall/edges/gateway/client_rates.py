"""How often each client may call: counted in the shared store if there is one, else here.

Several workers without a store have their part of a client's rate each. When the store is gone,
each goes on with its part; calls of tools that need more than that are for their policies.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING

from seawall.layers.rate_limit.bucket import MemoryBuckets, TokenBucket
from seawall.layers.rate_limit.parts import PartBuckets
from seawall.layers.rate_limit.shared import BucketStore, SharedBucket
from seawall.layers.rate_limit.strategies import BoundLimiter, parse_rate

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from seawall.contract.taken import Taken


class ClientRates:
    """The rates of clients by name; a client whose rate is None calls as often as it likes."""

    def __init__(
        self,
        rates: Mapping[str, str | None],
        now: Callable[[], float],
        store: BucketStore | None,
        workers: int,
    ) -> None:
        self._said = {name: rate for name, rate in rates.items() if rate is not None}
        own = PartBuckets(now, workers)
        self._here: dict[str, BoundLimiter] = {}
        self._shared: dict[str, SharedBucket] = {}
        if store is None:
            self._here = {
                name: own.bind(parse_rate(rate), 1, name) for name, rate in self._said.items()
            }
        else:
            buckets = MemoryBuckets()
            self._shared = {
                name: _shared(store, buckets, now, name, rate) for name, rate in self._said.items()
            }

    def __contains__(self, name: str) -> bool:
        return name in self._said

    async def take(self, name: str) -> Taken | None:
        """Take one call from a client's rate; None if it has none."""
        here = self._here.get(name)
        if here is not None:
            return here.take()
        shared = self._shared.get(name)
        if shared is None:
            return None
        taken = await shared.take()
        return shared.take_own() if taken is None else taken

    def said(self, name: str) -> str:
        """Give a client's rate as it was written."""
        return self._said[name]


def _shared(
    store: BucketStore, own: MemoryBuckets, now: Callable[[], float], name: str, rate: str
) -> SharedBucket:
    item = parse_rate(rate)
    # Who calls does not stand in the store, which is read by others.
    client = blake2b(name.encode("utf-8", "replace"), digest_size=16).hexdigest()
    key = TokenBucket.key_for(item, "of client", client)
    return SharedBucket(store, own, now, key, item.amount, item.get_expiry(), 1)
