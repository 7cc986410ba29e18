"""Limits and circuits that several processes share, in a Redis or Valkey."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seawall.contract.errors import ConfigurationError, Fault
from seawall.pipeline.clock import Clock, SystemClock
from seawall.stores.redis_address import redis_address
from seawall.stores.redis_buckets import RedisBuckets
from seawall.stores.redis_circuits import RedisCircuits
from seawall.stores.redis_link import RedisLink, need_redis

if TYPE_CHECKING:
    from typing import Self

TIMEOUT_S = 0.05
PREFIX = "seawall"


class Shared:
    """A store that pipelines of many processes share.

        pipeline = Pipeline(tools, shared=Shared("redis://limits:6379/0", replicas=4))

    Nothing is connected before `start`, which `async with` calls, or the first call. What is asked
    of the store is answered within `timeout_s`, or done without it. `replicas` says how many
    processes share the rates: each grants its part while the store is gone. Pipelines see each
    other under the same `prefix`. One loop uses it at a time. Raises `ConfigurationError` for what
    cannot work, and `MissingExtra` without the client of Redis.
    """

    def __init__(
        self,
        url: str,
        *,
        replicas: int = 1,
        timeout_s: float = TIMEOUT_S,
        prefix: str = PREFIX,
        clock: Clock | None = None,
    ) -> None:
        check_shared(replicas=replicas, timeout_s=timeout_s, prefix=prefix)
        need_redis()
        self._link = RedisLink(redis_address(url), timeout_s, clock or SystemClock(), prefix)
        self.buckets = RedisBuckets(self._link, prefix, replicas)
        self.circuits = RedisCircuits(self._link, prefix)

    def __repr__(self) -> str:
        return f"Shared({self.shown!r})"

    @property
    def shown(self) -> str:
        """The URL without what is secret in it."""
        return self._link.address.shown

    @property
    def is_up(self) -> bool:
        """Whether the store answered when it was last asked."""
        return self._link.is_up

    async def start(self) -> None:
        """Connect; returns after a while if the store does not answer, and goes on trying."""
        await self._link.start()

    def forget_loop(self) -> None:
        """Begin anew in another event loop: the former is gone, or was left behind by a fork."""
        self._link.forget_loop()

    async def aclose(self) -> None:
        """Disconnect, and ask no more: from now on all is as without the store."""
        await self._link.aclose()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *raised: object) -> None:
        await self.aclose()


def check_shared(*, replicas: object, timeout_s: object, prefix: object) -> None:
    """Raise `ConfigurationError` with everything that is out of its bounds."""
    whole = isinstance(replicas, int) and not isinstance(replicas, bool)
    number = isinstance(timeout_s, (int, float)) and not isinstance(timeout_s, bool)
    fine_prefix = isinstance(prefix, str) and 0 < len(prefix) <= 100 and prefix.isprintable()
    checks = {
        "replicas": (whole and 1 <= replicas <= 100_000, "a whole number from 1", replicas),  # type: ignore[operator]  # `whole` has said that it is a number
        "timeout_s": (
            number and 0.001 <= timeout_s <= 60,  # type: ignore[operator]  # `number` has said so
            "from 0.001 to 60 seconds",
            timeout_s,
        ),
        "prefix": (fine_prefix, "a printable text of up to 100 characters", prefix),
    }
    faults = [
        Fault(f"must be {said} (got {value!r:.40})", key=key)
        for key, (fine, said, value) in checks.items()
        if not fine
    ]
    if faults:
        raise ConfigurationError(faults)
