"""Windows in memory, as a storage for the window strategies of `limits`.

It stands in for the memory storage of `limits`, which reads the wall clock and
starts a thread to clean up: here times come from the clock that is handed in, and
whoever asks cleans up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from limits.storage import MovingWindowSupport, SlidingWindowCounterSupport, Storage

from seawall.layers.rate_limit.table import Table, shortest_wait
from seawall.layers.rate_limit.windows import FixedWindow, MovingWindow, SlidingWindow, Window

if TYPE_CHECKING:
    from collections.abc import Callable


class MemoryWindows(Storage, MovingWindowSupport, SlidingWindowCounterSupport):
    """Windows of this process, at most `max_keys` per strategy; none is forgotten that counts.

    When no place is left, new keys of a rate share one window.
    """

    def __init__(self, now: Callable[[], float], max_keys: int = 10_000) -> None:
        super().__init__()
        self._now = now
        self._fixed: Table[FixedWindow] = Table(max_keys)
        self._moving: Table[MovingWindow] = Table(max_keys)
        self._sliding: Table[SlidingWindow] = Table(max_keys)
        self._tables: dict[str, _AnyTable] = {
            "fixed-window": self._fixed,
            "moving-window": self._moving,
            "sliding-window-counter": self._sliding,
        }

    @property
    def tracked(self) -> int:
        """How many keys have a window in which something counts now."""
        at = self._now()
        for table in self._tables.values():
            table.reading(at)
        return sum(table.tracked() for table in self._tables.values())

    def wait_s(self, strategy: str, key: str, room: int) -> float:
        """Seconds until no more than `room` calls of a key count, if nobody else asks."""
        asked = self._now()
        table = self._tables[strategy]
        at = table.reading(asked)
        found: Window | None = table.find(key, _rate_of(key))
        if found is None:
            return 0.0
        window = found
        return shortest_wait(asked, window.due(at, room), lambda later: window.fits(later, room))

    def crowds(self, strategy: str, key: str) -> bool:
        """Whether a key has no window of its own, and shares that of its rate."""
        return self._tables[strategy].crowds(key, _rate_of(key))

    def give_back(self, strategy: str, key: str, amount: int) -> None:
        """Take the newest calls of a key out again."""
        table = self._tables[strategy]
        at = table.reading(self._now())
        window: Window | None = table.find(key, _rate_of(key))
        if window is not None:
            window.give_back(at, amount)
            table.hasten(key)

    @property
    def base_exceptions(self) -> tuple[type[Exception], ...]:
        """Return no type: memory does not fail."""
        return ()

    def incr(self, key: str, expiry: int, amount: int = 1) -> int:
        """Count calls in the fixed window, and return how many there are in it now."""
        at = self._fixed.reading(self._now())
        window = self._fixed.open(key, _rate_of(key), FixedWindow)
        count = window.add(at, expiry, amount)
        self._fixed.keep(key, _rate_of(key), window)
        return count

    def get(self, key: str) -> int:
        """Return the calls in the fixed window."""
        at = self._fixed.reading(self._now())
        window = self._fixed.find(key, _rate_of(key))
        return 0 if window is None else window.counted(at)

    def get_expiry(self, key: str) -> float:
        """Return when the fixed window is over, by the clock handed in; now if there is none."""
        at = self._fixed.reading(self._now())
        window = self._fixed.find(key, _rate_of(key))
        return at if window is None else max(at, window.expires_at)

    def acquire_entry(self, key: str, limit: int, expiry: int, amount: int = 1) -> bool:
        """Count calls in the moving window, or none if they do not all fit."""
        at = self._moving.reading(self._now())
        window = self._moving.open(key, _rate_of(key), lambda: MovingWindow(expiry))
        window.prune(at)
        if window.count + amount > limit:
            return False
        window.add(at, amount)
        self._moving.keep(key, _rate_of(key), window)
        return True

    def get_moving_window(self, key: str, limit: int, expiry: int) -> tuple[float, int]:  # noqa: ARG002  # the signature of `limits`
        """Return when the oldest call that counts was made, and how many count."""
        at = self._moving.reading(self._now())
        window = self._moving.find(key, _rate_of(key))
        if window is None:
            return at, 0
        window.prune(at)
        return (window.calls[0][0] if window.calls else at), window.count

    def acquire_sliding_window_entry(
        self, key: str, limit: int, expiry: int, amount: int = 1
    ) -> bool:
        """Count calls in the sliding window, or none if they do not all fit."""
        at = self._sliding.reading(self._now())
        window = self._sliding.open(
            key, _rate_of(key), lambda: SlidingWindow(expiry, index=int(at // expiry))
        )
        if amount > limit or not window.fits(at, limit - amount):
            return False
        window.roll(at)
        window.current += amount
        self._sliding.keep(key, _rate_of(key), window)
        return True

    def get_sliding_window(self, key: str, expiry: int) -> tuple[int, float, int, float]:
        """Return the calls of the previous and of this window, each with the seconds it counts."""
        at = self._sliding.reading(self._now())
        found = self._sliding.find(key, _rate_of(key))
        if found is None:
            return 0, 0.0, 0, float(expiry)
        window = found.rolled(at)
        left_s = window.left_s(at)
        return window.previous, left_s, window.current, left_s + expiry

    def clear_sliding_window(self, key: str, expiry: int) -> None:  # noqa: ARG002  # the signature of `limits`
        """Forget the sliding window of a key."""
        self._sliding.discard(key)

    def check(self) -> bool:
        """Say that it works."""
        return True

    def reset(self) -> int:
        """Forget all windows and say how many there were."""
        return sum(table.clear() for table in self._tables.values())

    def clear(self, key: str) -> None:
        """Forget the windows of a key."""
        for table in self._tables.values():
            table.discard(key)


_AnyTable: TypeAlias = Table[FixedWindow] | Table[MovingWindow] | Table[SlidingWindow]


def _rate_of(key: str) -> str:
    """Return the end of a key of `limits`: amount, multiples and unit, which share an overflow."""
    return "/".join(key.rsplit("/", 3)[1:])
