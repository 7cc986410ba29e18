"""The strategies of `limits` by name, all asked in the same way.

    token-bucket            a burst, then a steady flow: the default
    fixed-window            so many per window, counted from its first call
    moving-window           so many in any period; keeps the time of each call
    sliding-window-counter  nearly that, from two counts

Their state is kept in memory by the clock that is handed in. A strategy over a
store on a network needs an asynchronous `take`; it is no `Limiter`.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol, TypeVar

from limits.strategies import (
    FixedWindowRateLimiter,
    MovingWindowRateLimiter,
    RateLimiter,
    SlidingWindowCounterRateLimiter,
)
from limits.util import parse_many

from seawall.contract.errors import ConfigurationError, Fault
from seawall.contract.taken import Taken
from seawall.layers.rate_limit.bucket import MemoryBuckets, TokenBucket, checked, escaped
from seawall.layers.rate_limit.memory_windows import MemoryWindows

if TYPE_CHECKING:
    from collections.abc import Callable

    from limits import RateLimitItem
    from limits.storage import Storage

T = TypeVar("T", MemoryBuckets, MemoryWindows)

_LONGEST_TEXT = 100
_ZERO_PERIODS = re.compile(r"(?:/|per)\s*0+\s*[a-z]", re.IGNORECASE)
_LARGEST = 10**9
_NEARLY = re.compile(
    r"(?P<amount>[1-9][0-9]{0,8})\s*(?:x|times|calls|requests)?\s*"
    r"(?:(?P<short>rp[smhd])|(?:/|per|an?|each|every)\s*(?P<periods>[1-9][0-9]{0,8})?"
    r"\s*(?P<word>[a-z]+)\.?)"
)
_UNITS = ("second", "minute", "hour", "day", "month", "year")
_SHORT = {"s": "second", "m": "minute", "h": "hour", "hr": "hour", "hrs": "hour", "d": "day"}

_WINDOWS: dict[str, type[RateLimiter]] = {
    "fixed-window": FixedWindowRateLimiter,
    "moving-window": MovingWindowRateLimiter,
    "sliding-window-counter": SlidingWindowCounterRateLimiter,
}

STRATEGIES = ("token-bucket", *_WINDOWS)
"""The names a policy may give."""


class BoundLimiter(Protocol):
    """One rate for one key: what a caller that asks often holds on to."""

    crowded: Callable[[], object] | None
    """Told of each asking while this key shares a budget, as no place is left for its own."""

    def take(self, cost: int = 1) -> Taken:
        """Take `cost` tokens or none, and say when to come back."""

    def give_back(self, cost: int = 1) -> None:
        """Return tokens of a call that was not made."""


class Limiter(Protocol):
    """A strategy with its state. Asking never waits."""

    @property
    def tracked(self) -> int:
        """How many keys are remembered: those that are not as good as new."""

    def bind(self, item: RateLimitItem, *identifiers: str) -> BoundLimiter:
        """Return what to ask again and again: it finds its key once."""

    def take(self, item: RateLimitItem, *identifiers: str, cost: int = 1) -> Taken:
        """Take `cost` tokens or none, and say when to come back."""

    def give_back(self, item: RateLimitItem, *identifiers: str, cost: int = 1) -> None:
        """Return tokens of a call that was not made."""


class BoundWindow:
    """One rate for one key under a window strategy."""

    __slots__ = ("_identifiers", "_item", "_key", "_name", "_storage", "_strategy", "crowded")

    def __init__(
        self,
        name: str,
        strategy: RateLimiter,
        storage: MemoryWindows,
        item: RateLimitItem,
        identifiers: tuple[str, ...],
    ) -> None:
        self._name = name
        self._strategy = strategy
        self._storage = storage
        self._item = item
        self._identifiers = tuple(map(escaped, identifiers))
        self._key = item.key_for(*self._identifiers)
        self.crowded: Callable[[], object] | None = None

    def take(self, cost: int = 1) -> Taken:
        """Count `cost` calls or none: `limits` is only told of those that fit."""
        checked(cost)
        strategy, item, identifiers = self._strategy, self._item, self._identifiers
        room = item.amount - cost
        granted = (
            room >= 0
            and strategy.test(item, *identifiers, cost=cost)
            and strategy.hit(item, *identifiers, cost=cost)
        )
        left = float(strategy.get_window_stats(item, *identifiers).remaining)
        if self.crowded is not None and self._storage.crowds(self._name, self._key):
            self.crowded()
        if granted:
            return Taken(granted=True, retry_after_s=0.0, left=left)
        wait_s = self._storage.wait_s(self._name, self._key, room) if room >= 0 else None
        return Taken(granted=False, retry_after_s=wait_s, left=left)

    def give_back(self, cost: int = 1) -> None:
        """Take the newest calls out of the count again, if they still count."""
        self._storage.give_back(self._name, self._key, checked(cost))


class WindowLimiter:
    """A window strategy of `limits` over our storage, asked like the token bucket.

    The rate is part of a key here: a changed rate begins a new window.
    """

    def __init__(self, name: str, storage: MemoryWindows) -> None:
        self.strategy = _WINDOWS[name](storage)
        self._name = name
        self._storage = storage

    @property
    def tracked(self) -> int:
        """How many keys have a window in which something counts now."""
        return self._storage.tracked

    def bind(self, item: RateLimitItem, *identifiers: str) -> BoundWindow:
        """Return a window to ask again and again: it finds its key once."""
        return BoundWindow(self._name, self.strategy, self._storage, item, identifiers)

    def take(self, item: RateLimitItem, *identifiers: str, cost: int = 1) -> Taken:
        """Count `cost` calls or none, and say when to come back."""
        return self.bind(item, *identifiers).take(cost)

    def give_back(self, item: RateLimitItem, *identifiers: str, cost: int = 1) -> None:
        """Take the newest calls out of the count again, if they still count."""
        self.bind(item, *identifiers).give_back(cost)


def limiter_for(strategy: str, storage: Storage | None, now: Callable[[], float]) -> Limiter:
    """Make the limiter a policy names; without a storage it gets one of its own.

    A storage of `limits` itself is refused: it counts by the wall clock.
    """
    if strategy == "token-bucket":
        return TokenBucket(_own(strategy, storage, MemoryBuckets) or MemoryBuckets(), now)
    if strategy in _WINDOWS:
        windows = _own(strategy, storage, MemoryWindows) or MemoryWindows(now)
        return WindowLimiter(strategy, windows)
    raise _wrong("rate_strategy", f"is {strategy!r}; use one of {', '.join(STRATEGIES)}")


def parse_rate(text: object) -> RateLimitItem:
    """Read one rate in the notation of `limits`: `120/minute`, `10 per 2 hours`.

    Several rates in one text, and zeros, are refused: `limits` takes the first and reads 0 as 1.
    """
    if not isinstance(text, str) or len(text) > _LONGEST_TEXT:
        raise _not_one(text)
    return _parsed(text)


@lru_cache(maxsize=256)
def _parsed(text: str) -> RateLimitItem:
    """Read each text once, however many tools it is for."""
    items = _read(text)
    if len(items) != 1:
        raise _not_one(text)
    item = items[0]
    if item.amount < 1 or _ZERO_PERIODS.search(text):
        raise _wrong("rate", f"is {_shown(text)}; it must be above 0, or left out for no limit")
    if max(item.amount, item.get_expiry()) > _LARGEST:
        raise _wrong(
            "rate", f"is {_shown(text)}; neither calls nor seconds may be above {_LARGEST:,}"
        )
    return item


def _read(text: str) -> list[RateLimitItem]:
    try:
        return parse_many(text)
    except ValueError:
        return []


def _not_one(text: object) -> ConfigurationError:
    said = f"is {_shown(text)}; give one rate, like 120/minute or 10 per 2 hours"
    meant = _meant(text) if isinstance(text, str) else None
    return _wrong("rate", f"is {_shown(text)}; did you mean {meant}?" if meant else said)


def _meant(text: str) -> str | None:
    """Give the rate that a text may mean in another notation: `10/min`, `5 a second`, `100rpm`."""
    found = _NEARLY.fullmatch(text.strip().lower()) if len(text) <= _LONGEST_TEXT else None
    if found is None:
        return None
    amount, per_word, word = found["amount"], found["word"] or "", found["short"]
    unit = _SHORT.get(word[2]) if word else _unit(per_word)
    if unit is None:
        return None
    periods = found["periods"]
    meant = f"{amount} per {periods} {unit}s" if periods else f"{amount}/{unit}"
    return meant if len(_read(meant)) == 1 else None


def _unit(word: str) -> str | None:
    if word in _SHORT:
        return _SHORT[word]
    return next((unit for unit in _UNITS if len(word) > 2 and unit.startswith(word[:3])), None)


def _own(strategy: str, storage: Storage | None, kind: type[T]) -> T | None:
    if storage is None or isinstance(storage, kind):
        return storage
    raise _wrong(
        "storage", f"is {type(storage).__name__}; the strategy {strategy} needs {kind.__name__}"
    )


def _shown(text: object) -> str:
    return repr(text)[:_LONGEST_TEXT]


def _wrong(key: str, message: str) -> ConfigurationError:
    return ConfigurationError([Fault(message, key=key)])
