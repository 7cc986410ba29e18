"""Begin a second attempt of a read-only tool while the first is slow, and take the faster one.

Only tools that read: the losers may have run to their end. An extra attempt is begun a fixed delay
after the last one, or the time in which most attempts were answered before; at most `max_extra`
for each attempt of retry, and only while the tool's budget of extra attempts lasts. Each goes
through breaker and timeout by itself. Losers are cancelled and counted; nobody waits for their end.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from seawall.contract.failure import FailureCode
from seawall.contract.optional_policies import MAX_SAMPLES, RetryBudgetPolicy
from seawall.layers.budget import Budget, budget_of
from seawall.layers.latencies import Latencies
from seawall.layers.transient import is_transient

if TYPE_CHECKING:
    from seawall.contract.optional_policies import HedgePolicy
    from seawall.contract.result import ToolResult
    from seawall.pipeline.invocation import Handler, Invocation
    from seawall.pipeline.layer import LayerContext

LAYER = "hedge"

MAX_LOSERS = 64
"""Losers of one tool that may still be ending; beyond that no extra attempt is begun."""


class Hedge:
    """Races attempts of one call against each other."""

    name = "hedge"

    def __init__(self, context: LayerContext, policy: HedgePolicy) -> None:
        self._policy = policy
        self.clock = context.clock
        self.count = context.count
        self.max_extra = policy.max_extra
        # There is always one: without, a brown-out would double the load.
        budget = context.policy.retry_budget
        bounded = budget is not None and budget.mode != "off"
        self._budget: Budget = budget_of(
            context, budget if bounded and budget is not None else RetryBudgetPolicy()
        )
        self.latencies = context.slots.slot("latencies", lambda: Latencies(MAX_SAMPLES))
        self.losers: set[asyncio.Task[Any]] = context.slots.slot("hedge_losers", _Losers)

    @classmethod
    def for_tool(cls, context: LayerContext) -> Hedge | None:
        """Nothing to do for a tool that does more than read, whatever the policy says."""
        policy = context.policy.hedge
        if policy is None or not context.tool.annotations.is_read_only:
            return None
        return cls(context, policy)

    async def __call__(self, call: Invocation, proceed: Handler) -> ToolResult:
        """Race the attempts; the first good answer is the one."""
        refusal = call.prepared()
        if refusal is not None:
            return refusal
        self._budget.entered(call)
        return await _Race(self, call, proceed).run()

    def delay_s(self) -> float:
        """How long to wait before an extra attempt."""
        quantile = self._policy.quantile
        if quantile is None or len(self.latencies) < self._policy.min_samples:
            return self._policy.delay_s
        return self.latencies.quantile(quantile)

    @property
    def budget(self) -> Budget:
        """What extra attempts are taken from."""
        return self._budget

    def was_refused(self) -> None:
        """Give room back: the extra attempt was not made."""
        self._budget.give_back()


class _Race:
    """The attempts of one call that run beside each other."""

    def __init__(self, hedge: Hedge, call: Invocation, proceed: Handler) -> None:
        self._hedge = hedge
        self._count = hedge.count
        self._call = call
        self._proceed = proceed
        self._before = call.attempt
        self._forks: list[Invocation] = []
        self._running: dict[asyncio.Task[ToolResult], Invocation] = {}
        self._failed: ToolResult | None = None
        self._refused: ToolResult | None = None
        self._spare: ToolResult | None = None
        self._over_budget = False
        self._due = 0.0

    async def run(self) -> ToolResult:
        """Begin attempts and wait for them until one decides."""
        call = self._call
        # An attempt that runs is ended by its own layer, not by the scope of the call's deadline.
        call.live = True
        if call.idempotency_key is None:
            call.idempotency_key = call.pipeline.new_key()
        try:
            self._begin()
            while (result := await self._next()) is None:
                pass
        except asyncio.CancelledError as cancel:
            await self._cancel_all(*cancel.args[:1])
            raise
        finally:
            call.live = False
            self._merge()
            self._leave_losers()
        return result

    def _begin(self) -> None:
        call = self._call
        fork = call.fork(self._before + len(self._forks))
        if self._forks:
            fork.pipeline = _Quiet(call.pipeline)
            fork.note(EXTRA)
        self._forks.append(fork)
        self._due = self._hedge.clock.now() + self._hedge.delay_s()
        self._running[asyncio.ensure_future(self._proceed(fork))] = fork

    async def _next(self) -> ToolResult | None:
        """Wait until an attempt ends, or it is time for another; a result if that decides."""
        waiting: set[asyncio.Future[Any]] = set(self._running)
        alarm = timer = None
        if self._wants_more():
            clock = self._hedge.clock
            alarm, timer = clock.alarm(max(self._due - clock.now(), 0.0))
            waiting.add(alarm)
        try:
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        finally:
            if timer is not None:
                timer.cancel()
        for task in [task for task in self._running if task.done()]:
            result = self._ended(task)
            if result is not None:
                return result
        if not self._running:
            return self._spare or self._failed or self._refused
        if alarm is not None and alarm.done():
            self._begin_extra()
        return None

    def _wants_more(self) -> bool:
        return (
            len(self._forks) <= self._hedge.max_extra
            and not self._over_budget
            and not self._forks[0].shown
        )

    def _begin_extra(self) -> None:
        hedge = self._hedge
        if self._forks[0].shown:
            return
        if len(hedge.losers) < MAX_LOSERS:
            taken = hedge.budget.take()
            if taken or hedge.budget.watches:
                self._begin_beside(taken=taken)
                return
        self._over_budget = True
        self._count(LAYER, "over_budget")
        self._call.note(f"{LAYER}:over_budget")

    def _begin_beside(self, *, taken: bool) -> None:
        if not taken:
            self._count(LAYER, "shadow_refused")
            self._call.note(f"{LAYER}:would_refuse:over_budget")
        self._count(LAYER, "begun")
        self._begin()
        if taken:
            self._forks[-1].budgeted = True

    def _ended(self, task: asyncio.Task[ToolResult]) -> ToolResult | None:
        """Book an attempt that ended; its result if that is the answer."""
        fork = self._running.pop(task)
        result = task.result()
        failure = result.failure
        if not self._was_made(fork):
            if fork.budgeted:
                self._hedge.was_refused()
            self._refused = result
            return result if failure is None else None
        self._hedge.latencies.add(fork.executed_s or 0.0)
        fork.close_attempt(fork, result)
        if failure is not None and is_transient(failure):
            self._failed = self._failed or result
            self._call.error = self._call.error or fork.error
            return None
        if self._first_has_shown(fork):
            self._spare = result
            return None
        self._call.error = fork.error
        if fork is not self._forks[0]:
            self._count(LAYER, "won")
        return result

    def _was_made(self, fork: Invocation) -> bool:
        """Whether the executor was reached: no layer has refused the attempt."""
        return fork.attempt > self._before + self._forks.index(fork)

    def _first_has_shown(self, fork: Invocation) -> bool:
        """Whether the first attempt still runs and has shown what its own answer belongs to."""
        first = self._forks[0]
        return first is not fork and first.shown and first in self._running.values()

    async def _cancel_all(self, *reason: Any) -> None:
        for task in self._running:
            task.cancel(*reason)
        if self._running:
            await asyncio.wait(self._running)

    def _merge(self) -> None:
        """Take over what the attempts came to."""
        call, now = self._call, self._hedge.clock.now()
        for fork in self._forks:
            if self._was_made(fork):
                call.attempt = fork.attempt
            elif fork.marks is not None:
                call.marks = fork.marks
            call.started = call.started or fork.started
            call.begun = call.begun or fork.begun
            call.shown = call.shown or fork.shown
            if fork.begun:
                spent_s = now - fork.attempt_started if fork.live else fork.executed_s or 0.0
                call.executed_s = (call.executed_s or 0.0) + spent_s
        call.digest = call.digest or self._forks[0].digest

    def _leave_losers(self) -> None:
        for task, fork in self._running.items():
            if self._was_made(fork):
                self._count(LAYER, "cancelled")
            if task.done():
                self._book(task, fork)
            else:
                self._leave(task, fork)

    def _leave(self, task: asyncio.Task[ToolResult], fork: Invocation) -> None:
        """Cancel an attempt that is no longer wanted; it is booked when it has ended."""
        hedge = self._hedge
        if fork.begun:  # at least so long: else the slowest would never be known
            hedge.latencies.add(hedge.clock.now() - fork.attempt_started)
        task.cancel()
        hedge.losers.add(task)
        leftovers = self._call.left_behind()

        def ended(_: asyncio.Task[ToolResult]) -> None:
            hedge.losers.discard(task)
            leftovers.ended()
            self._book(task, fork)

        task.add_done_callback(ended)

    def _book(self, task: asyncio.Task[ToolResult], fork: Invocation) -> None:
        fork.note(LOST)
        if task.cancelled() or task.exception() is not None:
            fork.close_attempt(fork, _cancelled(fork))
        else:
            fork.close_attempt(fork, task.result())


EXTRA = "hedge:extra"
LOST = "hedge:lost"


def _cancelled(fork: Invocation) -> ToolResult:
    return fork.refuse(
        FailureCode.EXECUTION_FAILED,
        f"another attempt of {fork.tool.name} was faster",
        reason="cancelled",
        layer=Hedge.name,
    )


class _Quiet:
    """The pipeline as an extra attempt sees it: what it would show is not shown."""

    def __init__(self, pipeline: Any) -> None:
        self._pipeline = pipeline

    def __getattr__(self, name: str) -> Any:
        return getattr(self._pipeline, name)

    def progressed(self, *_: Any) -> None:
        """Say nothing: the first attempt is the one that is heard."""


class _Losers(set["asyncio.Task[Any]"]):
    """Attempts that lost and are still ending."""

    def forget_loop(self) -> None:
        """Those of a loop that is gone run no more."""
        self.clear()
