"""How many attempts of a tool may be extra ones, so that a brown-out is not doubled.

Retries and hedges together are at most a share of the tool's calls in a sliding window, with a
small number that is allowed in any case. As in Finagle, calls make room and extra attempts use it
up; as in failsafe-go, retries and hedges share one budget. One event loop uses it.
"""

from __future__ import annotations

import math
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from seawall.contract.optional_policies import RetryBudgetPolicy
    from seawall.pipeline.invocation import Invocation
    from seawall.pipeline.layer import LayerContext

PARTS = 10
"""Parts of the window: a call is forgotten after nine to ten tenths of it."""

_ROUNDING = 1e-9


class Budget:
    """Calls and extra attempts of one tool in a sliding window."""

    __slots__ = ("_now", "_part_s", "_parts", "_policy", "calls", "extra")

    def __init__(self, policy: RetryBudgetPolicy, now: Callable[[], float]) -> None:
        self._now = now
        self._part_s = policy.window_s / PARTS
        # Each part: its number, calls, extra attempts. None is older than the window.
        self._parts: deque[list[int]] = deque()
        self.calls = self.extra = 0
        """In the window, as of the last change."""
        self.retune(policy)

    def retune(self, policy: RetryBudgetPolicy) -> None:
        """Go on under other numbers; another window begins anew."""
        part_s = policy.window_s / PARTS
        if self._parts and part_s != self._part_s:
            self._parts.clear()
            self.calls = self.extra = 0
        self._part_s = part_s
        self._policy = policy

    def entered(self, call: Invocation) -> None:
        """Let a call make room, once, whichever layer sees it first."""
        if not call.budgeted:
            call.budgeted = True
            self._part()[1] += 1
            self.calls += 1

    def take(self) -> bool:
        """Take room for one extra attempt, if there is any."""
        part = self._part()
        if self.extra + 1 > self.most + _ROUNDING:
            return False
        part[2] += 1
        self.extra += 1
        return True

    @property
    def watches(self) -> bool:
        """Whether it only says what it would have refused."""
        return self._policy.mode == "shadow"

    def give_back(self) -> None:
        """Give back room that was not used: nothing was tried."""
        self._part()
        for part in reversed(self._parts):
            if part[2]:
                part[2] -= 1
                self.extra -= 1
                return

    @property
    def most(self) -> float:
        """Extra attempts that the calls of the window allow."""
        return max(self._policy.min_retries, self._policy.share * self.calls)

    def _part(self) -> list[int]:
        number = math.floor(self._now() / self._part_s)
        parts = self._parts
        while parts and parts[0][0] <= number - PARTS:
            _, calls, extra = parts.popleft()
            self.calls -= calls
            self.extra -= extra
        if not parts or parts[-1][0] < number:
            parts.append([number, 0, 0])
        return parts[-1]


def budget_of(context: LayerContext, policy: RetryBudgetPolicy) -> Budget:
    """Find the tool's budget, the same for all of its layers."""
    budget = context.slots.slot("retry_budget", lambda: Budget(policy, context.clock.now))
    budget.retune(policy)
    return budget
