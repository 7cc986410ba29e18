"""Remember a bounded number of keys, and never refill one by forgetting it.

A key is forgotten only when it is idle, that is when nobody could tell it from a
new one. When all places are taken and nobody is idle, new keys of a group share
one state; a key that leaves it later starts where the shared one stands, so no
key ever has more than its own limit. There is no thread and no timer: whoever
opens a new key clears away a few idle ones, once half of the places are taken.
One event loop uses a table; it has no lock.
"""

from __future__ import annotations

import heapq
import math
from typing import TYPE_CHECKING, Generic, Protocol, Self, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

_CLEARED_AT_ONCE = 8


class State(Protocol):
    """What is kept for a key."""

    tracked: bool
    """Whether a table holds it as one key's own; set by the table."""

    def idle(self, at: float) -> bool:
        """Whether it is as good as new."""

    def idle_at(self) -> float:
        """From when on it is idle if nobody asks; rounding aside."""

    def branch(self, at: float) -> Self:
        """Make a state for one key that allows no more than this one does."""


S = TypeVar("S", bound=State)


class Table(Generic[S]):
    """States by key, at most `max_keys` of them."""

    def __init__(self, max_keys: int) -> None:
        if max_keys < 1:
            raise ValueError(f"max_keys must be at least 1 (got {max_keys})")
        self.max_keys = max_keys
        self.latest = -math.inf
        """The latest reading of the clock: time never goes back in here."""
        self._own: dict[str, S] = {}
        self._shared: dict[Hashable, S] = {}
        # Each key of `_own` has an entry that is not later than its idle time.
        self._due: list[tuple[float, str]] = []

    def reading(self, at: float) -> float:
        """Return `at`, or the latest reading if the clock was set back."""
        self.latest = max(at, self.latest)
        return self.latest

    def tracked(self) -> int:
        """Count the keys that are not idle; clears away all that are."""
        self._forget_idle(len(self._own))
        return len(self._own)

    def find(self, key: str, group: Hashable) -> S | None:
        """Return what a key uses now; None if it would start as new."""
        return self._own.get(key) or self._busy(group)

    def open(self, key: str, group: Hashable, make: Callable[[], S]) -> S:
        """Return what a key uses; a new state is only held once `keep` is called."""
        own = self._own.get(key)
        if own is not None:
            return own
        if len(self._own) > self.max_keys // 2:  # what comes again finds its state as it was
            self._forget_idle(_CLEARED_AT_ONCE)
        shared = self._busy(group)
        if len(self._own) < self.max_keys:
            return make() if shared is None else shared.branch(self.latest)
        return shared or self._share(group, make())

    def crowds(self, key: str, group: Hashable) -> bool:
        """Whether a key has no place of its own, and shares what those of its group have left."""
        return key not in self._own and self._busy(group) is not None

    def keep(self, key: str, group: Hashable, state: S) -> None:
        """Hold a state that `open` gave and that was written to since."""
        if state.tracked or self._shared.get(group) is state:
            return
        state.tracked = True
        self._own[key] = state
        self.hasten(key)

    def hasten(self, key: str) -> None:
        """Note that a key may be idle earlier than it was before."""
        state = self._own.get(key)
        if state is None:
            return
        heapq.heappush(self._due, (state.idle_at(), key))
        if len(self._due) > 2 * len(self._own) + 64:
            self._due = [(state.idle_at(), key) for key, state in self._own.items()]
            heapq.heapify(self._due)

    def discard(self, key: str) -> None:
        """Forget a key, idle or not."""
        state = self._own.pop(key, None)
        if state is not None:
            state.tracked = False

    def clear(self) -> int:
        """Forget all keys and say how many there were."""
        count = len(self._own)
        for key in list(self._own):
            self.discard(key)
        self._shared.clear()
        self._due.clear()
        return count

    def _busy(self, group: Hashable) -> S | None:
        shared = self._shared.get(group)
        return None if shared is None or shared.idle(self.latest) else shared

    def _share(self, group: Hashable, state: S) -> S:
        for other in [one for one, held in self._shared.items() if held.idle(self.latest)]:
            del self._shared[other]
        self._shared[group] = state
        return state

    def _forget_idle(self, at_most: int) -> None:
        """Clear away up to so many idle keys; those asked since are put back in the queue."""
        due = self._due
        while due and due[0][0] <= self.latest and at_most > 0:
            key = due[0][1]
            state = self._own.get(key)
            if state is None:
                heapq.heappop(due)
            elif state.idle(self.latest):
                heapq.heappop(due)
                self.discard(key)
                at_most -= 1
            else:
                later = math.nextafter(self.latest, math.inf)
                heapq.heapreplace(due, (max(state.idle_at(), later), key))


def shortest_wait(at: float, due: float, fits: Callable[[float], bool]) -> float:
    """Seconds from `at` to the time from which `fits` holds, which arithmetic puts at `due`.

    A call exactly that much later is granted, although floats round.
    """
    wait = max(due - at, 0.0)
    step = math.ulp(at + wait)
    while not fits(at + wait):
        wait += step
        step *= 2
    return wait
