"""What a pipeline is made of, whatever its tools: what was given, a default for what was not.

What it opened itself is closed with it; what was given open stays open.
"""

from __future__ import annotations

import weakref
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from seawall.layers.breaker.shared import close_fleet, start_fleet
from seawall.layers.environment import Environment
from seawall.layers.ledger import EffectLedger
from seawall.layers.result_spill import SpillStore
from seawall.layers.risk_gate import Gate
from seawall.orchestration.sharing import parts_of, shared_by
from seawall.pipeline.chance import Chance, SystemChance
from seawall.pipeline.clock import Clock, SystemClock
from seawall.pipeline.digest import Digester
from seawall.pipeline.state import StateTable
from seawall.pipeline.threads import Threads
from seawall.policy.build import Builder
from seawall.recording.audit import Audit
from seawall.recording.metrics import Metrics
from seawall.recording.trace import TraceRecorder
from seawall.recording.usage import UsageTracker
from seawall.stores.opening import open_state

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from contextlib import AbstractContextManager

    from seawall.contract.tool import Tool
    from seawall.contract.turn import TurnStatus
    from seawall.orchestration.approvals.desk import Approvals
    from seawall.pipeline.invocation import Handler
    from seawall.pipeline.layer import Layer, LayerContext, LayerRecipe
    from seawall.pipeline.recorder import Recorder
    from seawall.pipeline.schemas import Schemas
    from seawall.pipeline.session import Session
    from seawall.policy.model import Policies
    from seawall.recording.gauges import Gauge
    from seawall.stores.shared import Shared
    from seawall.stores.state import State


class Equipment:
    """Clock, chance and books, what tools leave behind, where it is kept, and the threads."""

    def __init__(
        self,
        policies: Policies,
        *,
        clock: Clock | None,
        chance: Chance | None,
        environment: Environment | None,
        trace: TraceRecorder | None,
        usage: UsageTracker | None,
        metrics: Metrics | None,
        recorders: Iterable[Recorder],
        state: State | str | None,
        shared: Shared | str | None,
        digest_key: bytes | None,
    ) -> None:
        self.clock = clock or SystemClock()
        self.chance = chance or SystemChance()
        self.environment = environment or Environment(self.clock.now)
        # An empty recorder is a false one, so each is compared with None.
        self.trace = _trace(policies, self.clock) if trace is None else trace
        self.usage = UsageTracker(self.clock) if usage is None else usage
        self.metrics = Metrics() if metrics is None else metrics
        self.states = StateTable()
        self.threads = Threads()
        self._owns_state = isinstance(state, str)
        self.state = open_state(state, clock=self.clock) if isinstance(state, str) else state
        if digest_key is None and self.state is not None:
            digest_key = self.state.digest_key
        self.digester = Digester(digest_key)
        self.shared, self._owns_shared = shared_by(shared, policies, self.clock)
        self.audit = self._made_audit(policies)
        self.recorders: tuple[Recorder, ...] = (
            self.trace,
            self.usage,
            self.metrics,
            *recorders,
            *(() if self.audit is None else (self.audit,)),
        )

    def _made_audit(self, policies: Policies) -> Audit | None:
        if self.state is None:
            return None
        settings = policies.audit
        audit = Audit(
            self.state.audit,
            self.clock,
            calls=settings.calls,
            wait=settings.wait,
            failed=self.metrics.audit_failed,
        )
        self.state.serves(audit)
        return audit

    def builder(
        self,
        policies: Policies,
        layers: Sequence[LayerRecipe | Layer],
        *,
        gate: Gate,
        schemas: Callable[[Tool], Schemas | None],
        around: Callable[[LayerContext, Handler], Handler] | None,
        on_defect: str,
    ) -> Builder:
        """Make what composes the chains of tools."""
        return Builder(
            policies=policies,
            layers=layers,
            clock=self.clock,
            chance=self.chance,
            states=self.states,
            recorders=self.recorders,
            digester=self.digester,
            threads=self.threads,
            parts={Environment: self.environment, Gate: gate, **self._stores(policies)},
            on_defect=on_defect,
            schemas=schemas,
            around=around,
        )

    def _stores(self, policies: Policies) -> dict[type, Any]:
        """What layers need of state and shared store, by the protocols that they declare."""
        shared = parts_of(self.shared, policies)
        if self.state is None:
            return shared
        own = {EffectLedger: self.state.ledger, SpillStore: self.state.spills}
        return {kind: store for kind, store in own.items() if store is not None} | shared

    def ending(
        self, turn_id: str, session: Session
    ) -> AbstractContextManager[Callable[[TurnStatus, str], object]]:
        """Write the end of a turn into the audit log, if there is one."""
        if self.audit is None:
            return nullcontext(lambda _status, _reason: None)
        return self.audit.turn(turn_id, session.id, session.caller)

    def forget_counts(self, name: str) -> None:
        """A name is no tool's any more: nothing is counted under it."""
        self.usage.forget(name)
        self.metrics.forget(name)

    def forget_loop(self) -> None:
        """Take back what calls of a loop that is gone, or left behind by a fork, still hold."""
        self.states.forget_loop()
        self.threads.forget_loop()
        if self.audit is not None:
            self.audit.forget_loop()
        if self.shared is not None:
            self.shared.forget_loop()

    async def start(self) -> None:
        """Connect to the stores, so that no call has to wait for that."""
        if self._owns_state and self.state is not None:
            await self.state.start()
        if self.shared is not None:
            await self.shared.start()
            await start_fleet(self.states)

    async def close_shared(self) -> None:
        """Part from the other processes; first, and in the loop in which they were met."""
        await close_fleet(self.states)
        if self._owns_shared and self.shared is not None:
            await self.shared.aclose()

    async def close_state(self) -> None:
        """Write what is left of the audit log, then close what it is written to."""
        if self.audit is not None:
            await self.audit.aclose()
        if self._owns_state and self.state is not None:
            await self.state.aclose()


def _trace(policies: Policies, clock: Clock) -> TraceRecorder:
    capacity = policies.trace.capacity
    if capacity is None:
        return TraceRecorder(clock=clock)
    return TraceRecorder(capacity, clock=clock)


def watched(
    pipeline: Any,
    read: Callable[[], Iterable[Gauge]],
    approvals: Approvals,
    metrics: Metrics,
) -> Callable[[], Any]:
    """Give a pipeline's gauges until it is collected, or until what is returned is called."""
    found, desk = weakref.WeakMethod(read), weakref.ref(approvals)

    def source() -> Iterable[Gauge]:
        read_now = found()
        return () if read_now is None else read_now()

    def backlog() -> tuple[int, float]:
        desk_now = desk()
        return (0, 0.0) if desk_now is None else desk_now.backlog()

    def end() -> None:
        metrics.unwatch(source)
        metrics.unwatch_approvals(backlog)

    metrics.watch(source)
    metrics.watch_approvals(backlog)
    finalizer = weakref.finalize(pipeline, end)
    finalizer.atexit = False
    return finalizer
