"""Try again what may be tried again.

Only tools that are retry-safe, only failures that pass by themselves, only while the call's time
lasts. Waits have full jitter, or are exact if the policy lists them; a tool that says when to come
back is not asked earlier. A call that ends well never enters the machinery. Where the policy has a
budget, retries are a share of the tool's calls at most.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tenacity

from seawall.layers.budget import Budget, budget_of
from seawall.layers.transient import is_open_circuit, is_transient
from seawall.pipeline.convert import with_effect
from seawall.pipeline.layer import Fitted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seawall.contract.failure import Failure
    from seawall.contract.policy import RunPolicy
    from seawall.contract.result import ToolResult
    from seawall.pipeline.chance import Chance
    from seawall.pipeline.invocation import Handler, Invocation
    from seawall.pipeline.layer import LayerContext

MAX_EXPONENT = 62
"""Beyond it every ceiling is `max_delay_s` anyway, and the power stays a small number."""


class Retry(Fitted):
    """Repeats an attempt of a retry-safe tool after a transient failure."""

    name = "retry"

    def __init__(self, context: LayerContext) -> None:
        policy = context.policy
        self._clock = context.clock
        self._waits = Waits(policy, context.chance)
        self._attempts = policy.attempts
        self._max_delay_s = policy.max_delay_s
        self._count = context.count
        budget = policy.retry_budget
        off = budget is None or budget.mode == "off"
        self._budget = None if off or budget is None else budget_of(context, budget)

    @classmethod
    def for_tool(cls, context: LayerContext) -> Retry | None:
        """Nothing to do for a tool that must not be repeated blindly, whatever the policy says."""
        if context.policy.attempts == 1 or not context.tool.retry_safe:
            return None
        return cls(context)

    def fitted(self, proceed: Handler) -> Handler:
        """Make the first attempt, and others only if it failed."""
        budget = self._budget

        async def tried(call: Invocation) -> ToolResult:
            if budget is not None:
                budget.entered(call)
            result = await proceed(call)
            if result.failure is None:
                return result
            return await self._again(call, proceed, result)

        return tried

    async def _again(self, call: Invocation, proceed: Handler, result: ToolResult) -> ToolResult:
        budget, retry = self._budget, 0
        while (wait_s := self._wait_s(call, result.failure, retry)) is not None:
            taken = budget is not None and budget.take()
            if budget is not None and not taken and self._ends(call, budget):
                return result
            call.close_attempt(call, result)
            self._count(self.name, "retried")
            call.mark("wait", wait_s)
            made = call.attempt
            try:
                if wait_s or retry:  # many that do not wait let others work in between
                    await self._clock.sleep(wait_s)
                later = await proceed(call)
            finally:
                if budget is not None and taken and call.attempt == made:
                    budget.give_back()
            if later.failure is None:
                return later
            if is_open_circuit(later.failure):
                # The circuit opened on the way: the call's own failure says more than a refusal.
                return result
            result = _of_both(call, result, later)
            retry += 1
        return result

    def _ends(self, call: Invocation, budget: Budget) -> bool:
        """Note that there is no room for one more attempt, and say whether that ends the call."""
        if budget.watches:
            self._count(self.name, "shadow_refused")
            call.note("retry:would_refuse:over_budget")
            return False
        self._count(self.name, "over_budget")
        call.note("retry:over_budget")
        return True

    def _wait_s(self, call: Invocation, failure: Failure | None, retry: int) -> float | None:
        """Seconds to wait before the next attempt, or None if there is to be none."""
        if retry + 1 >= self._attempts or failure is None:
            return None
        if call.shown or not is_transient(failure):
            return None
        wait_s = self._waits.draw(retry)
        if failure.retry_after_s is not None:
            if failure.retry_after_s > self._max_delay_s:
                return None
            wait_s = max(wait_s, failure.retry_after_s)
        if call.deadline is not None and self._clock.now() + wait_s >= call.deadline:
            return None
        return wait_s


def _of_both(call: Invocation, earlier: ToolResult, later: ToolResult) -> ToolResult:
    """Have the failure of an attempt that did nothing say what an earlier one may have done."""
    before, after = earlier.failure, later.failure
    if before is None or after is None or after.may_have_run is not False:
        return later
    if before.may_have_run is False or call.tool.annotations.is_read_only:
        return later
    return with_effect(later, may_have_run=before.may_have_run)


class Waits:
    """How long to wait before each retry: tenacity gives the ceilings, our chance draws."""

    def __init__(self, policy: RunPolicy, chance: Chance) -> None:
        self._exact: Sequence[float] = policy.delays_s
        self._chance = chance
        self._exponential = tenacity.wait_exponential(
            multiplier=policy.base_delay_s, max=policy.max_delay_s, exp_base=2
        )
        self._ceilings: dict[int, float] = {}

    def ceiling(self, retry: int) -> float:
        """The longest wait before retry `retry`, from 0: `min(max_delay, base * 2**retry)`."""
        known = self._ceilings.get(retry)
        if known is None:
            number = min(max(retry, 0), MAX_EXPONENT)
            state: Any = _Tried(attempt_number=number + 1)  # it reads the number alone
            known = self._ceilings[number] = self._exponential(state)
        return known

    def draw(self, retry: int) -> float:
        """Seconds before retry `retry`: exact, or uniform from 0 to the ceiling, ends included."""
        if self._exact:
            return self._exact[min(retry, len(self._exact) - 1)] if retry >= 0 else 0.0
        ceiling = self.ceiling(retry)
        return self._chance.uniform(0.0, ceiling) if ceiling else 0.0


class _Tried:
    """As much of tenacity's state as its waits read; theirs asks the system's clock."""

    __slots__ = ("attempt_number",)

    def __init__(self, *, attempt_number: int) -> None:
        self.attempt_number = attempt_number
