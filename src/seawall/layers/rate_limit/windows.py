"""Three ways to count the calls of one key: the arithmetic of the window strategies."""

from __future__ import annotations

import math
from collections import deque
from typing import Protocol

from seawall.layers.rate_limit.table import State


class Window(State, Protocol):
    """The calls of one key, counted in one of three ways."""

    def fits(self, at: float, room: int) -> bool:
        """Whether no more than `room` calls still count."""

    def due(self, at: float, room: int) -> float:
        """When that is so if nobody else asks; rounding aside."""

    def give_back(self, at: float, amount: int) -> None:
        """Take the newest calls out again."""


class FixedWindow:
    """Calls counted from the first one until the window is over."""

    def __init__(self, *, count: int = 0, expires_at: float = -math.inf) -> None:
        self.count = count
        self.expires_at = expires_at
        self.tracked = False

    def counted(self, at: float) -> int:
        """Return the calls that count now."""
        return self.count if at < self.expires_at else 0

    def add(self, at: float, period_s: float, amount: int) -> int:
        """Count calls, in a new window if the old one is over or empty."""
        if self.idle(at):
            self.count = 0
            self.expires_at = at + period_s
        self.count += amount
        return self.count

    def idle(self, at: float) -> bool:
        """Say whether no call counts."""
        return not self.counted(at)

    def idle_at(self) -> float:
        """Return when no call counts."""
        return self.expires_at if self.count else -math.inf

    def branch(self, at: float) -> FixedWindow:
        """Make one with the same calls."""
        return FixedWindow(count=self.counted(at), expires_at=self.expires_at)

    def fits(self, at: float, room: int) -> bool:
        """Say whether no more than `room` calls still count."""
        return self.counted(at) <= room

    def due(self, at: float, room: int) -> float:  # noqa: ARG002  # other windows need them
        """Return the end of the window."""
        return self.expires_at

    def give_back(self, at: float, amount: int) -> None:
        """Count so many calls less, if their window is not over."""
        self.count = max(0, self.counted(at) - amount)


class MovingWindow:
    """Each call counts for one period from when it was made."""

    def __init__(self, period_s: float) -> None:
        self.period_s = period_s
        self.calls: deque[tuple[float, int]] = deque()
        self.count = 0
        self.tracked = False

    def prune(self, at: float) -> None:
        """Drop the calls that no longer count."""
        while self.calls and self.calls[0][0] + self.period_s <= at:
            self.count -= self.calls.popleft()[1]

    def add(self, at: float, amount: int) -> None:
        """Count calls made now."""
        self.calls.append((at, amount))
        self.count += amount

    def idle(self, at: float) -> bool:
        """Say whether no call counts."""
        return self.idle_at() <= at

    def idle_at(self) -> float:
        """Return when the newest call no longer counts."""
        return self.calls[-1][0] + self.period_s if self.calls else -math.inf

    def branch(self, at: float) -> MovingWindow:
        """Make one with as many calls, all as old as the newest here: one entry, no copy of all."""
        self.prune(at)
        other = MovingWindow(self.period_s)
        if self.calls:
            other.add(self.calls[-1][0], self.count)
        return other

    def fits(self, at: float, room: int) -> bool:
        """Say whether no more than `room` calls still count."""
        return sum(amount for made, amount in self.calls if made + self.period_s > at) <= room

    def due(self, at: float, room: int) -> float:
        """Return when enough of the oldest calls no longer count."""
        count = self.count
        for made, amount in self.calls:
            count -= amount
            if count <= room:
                return made + self.period_s
        return at

    def give_back(self, at: float, amount: int) -> None:
        """Drop the newest calls."""
        self.prune(at)
        while amount > 0 and self.calls:
            made, newest = self.calls.pop()
            self.count -= newest
            if newest > amount:
                self.add(made, newest - amount)
            amount -= newest


class SlidingWindow:
    """Calls of this window, and those of the one before by the share of it that still counts."""

    def __init__(self, period_s: float, *, index: int, current: int = 0, previous: int = 0) -> None:
        self.period_s = period_s
        self.index = index
        self.current = current
        self.previous = previous
        self.tracked = False

    def rolled(self, at: float) -> SlidingWindow:
        """Return it as it is at a later time; itself if its window is not over."""
        index = int(at // self.period_s)
        if index <= self.index:
            return self
        previous = self.current if index == self.index + 1 else 0
        return SlidingWindow(self.period_s, index=index, previous=previous)

    def roll(self, at: float) -> None:
        """Go on to the window of this time."""
        later = self.rolled(at)
        self.index, self.current, self.previous = later.index, later.current, later.previous

    def left_s(self, at: float) -> float:
        """Return the seconds until the window is over."""
        return min(max((self.index + 1) * self.period_s - at, 0.0), self.period_s)

    def idle(self, at: float) -> bool:
        """Say whether no call counts, not even by a share."""
        later = self.rolled(at)
        return not later.current and not later.previous

    def idle_at(self) -> float:
        """Return when the share of all calls is none."""
        windows = 2 if self.current else 1 if self.previous else 0
        return (self.index + windows) * self.period_s

    def branch(self, at: float) -> SlidingWindow:
        """Make one with the same calls."""
        now = self.rolled(at)
        return SlidingWindow(
            self.period_s, index=now.index, current=now.current, previous=now.previous
        )

    def fits(self, at: float, room: int) -> bool:
        """Say whether no more than `room` whole calls still count."""
        now = self.rolled(at)
        # The same steps as in `limits`, so that both round alike.
        return now.previous * now.left_s(at) / self.period_s + now.current < room + 1

    def due(self, at: float, room: int) -> float:
        """Return when the shares have shrunk enough: in this window, or else in the next."""
        now = self.rolled(at)
        end = (now.index + 1) * self.period_s
        spare = room + 1 - now.current
        if spare > 0:
            return end - self.period_s * spare / max(now.previous, spare)
        return end + self.period_s - self.period_s * (room + 1) / now.current

    def give_back(self, at: float, amount: int) -> None:
        """Count so many calls less, first in this window."""
        self.roll(at)
        here = min(amount, self.current)
        self.current -= here
        self.previous = max(0, self.previous - (amount - here))
