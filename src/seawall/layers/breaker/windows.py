"""What the calls of a sliding window came to: so many calls, or so many seconds.

The two windows of resilience4j. A window of seconds is kept in ten parts, as in Polly: a call is
forgotten between nine and ten tenths of the window after it ended. Pure: the time is handed in.
"""

from __future__ import annotations

import math
from collections import deque
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from seawall.contract.policy import BreakerPolicy

PARTS = 10
"""Parts of a window of seconds."""


class Window(Protocol):
    """Counts of the calls that are in it."""

    calls: int
    failed: int
    slow: int

    def add(self, at: float, *, failed: bool, slow: bool) -> None:
        """Let a call in, and those go that are too old."""
        ...

    def clear(self) -> None:
        """Begin anew."""
        ...


class CountWindow:
    """The last `size` calls."""

    __slots__ = ("_kept", "_size", "calls", "failed", "slow")

    def __init__(self, size: int) -> None:
        self._size = size
        self._kept: deque[tuple[bool, bool]] = deque()
        self.calls = self.failed = self.slow = 0

    def add(self, at: float, *, failed: bool, slow: bool) -> None:  # noqa: ARG002  # as the other
        """Let a call in, and the oldest go."""
        self._count(failed, slow, 1)
        self._kept.append((failed, slow))
        if len(self._kept) > self._size:
            self._count(*self._kept.popleft(), -1)

    def clear(self) -> None:
        """Begin anew."""
        self._kept.clear()
        self.calls = self.failed = self.slow = 0

    def _count(self, failed: bool, slow: bool, sign: int) -> None:  # noqa: FBT001  # a stored pair
        self.calls += sign
        self.failed += sign * failed
        self.slow += sign * slow


class TimeWindow:
    """The calls of the last `seconds`."""

    __slots__ = ("_part_s", "_parts", "calls", "failed", "slow")

    def __init__(self, seconds: float) -> None:
        self._part_s = seconds / PARTS
        # Each part: its number, calls, failed, slow. None is older than the window.
        self._parts: deque[list[int]] = deque()
        self.calls = self.failed = self.slow = 0

    def add(self, at: float, *, failed: bool, slow: bool) -> None:
        """Let a call in, and those go that are too old."""
        part = self.move(at)
        for place, more in enumerate((1, int(failed), int(slow)), 1):
            part[place] += more
        self.calls += 1
        self.failed += failed
        self.slow += slow

    def move(self, at: float) -> list[int]:
        """Let go what is too old at this time, and give the part that it falls in."""
        number = math.floor(at / self._part_s)
        while self._parts and self._parts[0][0] <= number - PARTS:
            _, calls, failed, slow = self._parts.popleft()
            self.calls -= calls
            self.failed -= failed
            self.slow -= slow
        if not self._parts or self._parts[-1][0] < number:
            self._parts.append([number, 0, 0, 0])
        return self._parts[-1]

    def clear(self) -> None:
        """Begin anew."""
        self._parts.clear()
        self.calls = self.failed = self.slow = 0


class Rates:
    """Decides by shares: of the calls in a window while closed, of the probes while half-open."""

    __slots__ = ("_failure_rate", "_min_calls", "_permits", "_slow_rate", "probes", "window")

    def __init__(self, policy: BreakerPolicy) -> None:
        self.window: Window = (
            CountWindow(policy.window_calls)
            if policy.window_s is None
            else TimeWindow(policy.window_s)
        )
        self.probes = CountWindow(policy.permits)
        self.retune(policy)

    def retune(self, policy: BreakerPolicy) -> None:
        """Go on under other numbers, with the same window."""
        self._failure_rate = math.inf if policy.failure_rate is None else policy.failure_rate
        self._slow_rate = math.inf if policy.slow_rate is None else policy.slow_rate
        # As in resilience4j, a window of fewer calls is reckoned when it is full.
        least = policy.min_calls
        self._min_calls = least if policy.window_s else min(least, policy.window_calls)
        self._permits = policy.permits

    def exceeded(self) -> bool:
        """Whether the calls of the window are enough, and too many of them went wrong."""
        return self.window.calls >= self._min_calls and self._too_many(self.window)

    def probed(self) -> bool | None:
        """Whether too many of the probes went wrong; None while some are to come."""
        return None if self.probes.calls < self._permits else self._too_many(self.probes)

    def clear(self) -> None:
        """Begin anew."""
        self.window.clear()
        self.probes.clear()

    def _too_many(self, window: Window) -> bool:
        failed, slow = window.failed / window.calls, window.slow / window.calls
        return failed >= self._failure_rate or slow >= self._slow_rate


def rates_for(policy: BreakerPolicy, before: Rates | None, was: BreakerPolicy) -> Rates | None:
    """Give the rates of a policy; those from before, if the window is still the same."""
    if not policy.by_rate:
        return None
    same = (policy.window_calls, policy.window_s) == (was.window_calls, was.window_s)
    if before is None or not same or policy.permits != was.permits:
        return Rates(policy)
    before.retune(policy)
    return before
