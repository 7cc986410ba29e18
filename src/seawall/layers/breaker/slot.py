"""Where the circuit of a tool, or of several, is kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seawall.layers.breaker.circuit import Circuit

if TYPE_CHECKING:
    from collections.abc import Callable

    from seawall.contract.policy import BreakerPolicy
    from seawall.pipeline.layer import LayerContext


class CircuitSlot:
    """Where a tool's circuit is kept. It is made by the first failure: before, it is closed."""

    __slots__ = ("_count", "_now", "circuit", "on_change", "on_hold", "policy")

    def __init__(
        self, policy: BreakerPolicy, now: Callable[[], float], count: Callable[[str, str], None]
    ) -> None:
        self.policy = policy
        self._now = now
        self._count = count
        self.circuit: Circuit | None = None
        self.on_change: Callable[[str, str], None] | None = None
        """Who else is told of the old and the new state."""
        self.on_hold: Callable[[], None] | None = None
        """Who else is told that it was opened by hand."""

    def hold_open(self) -> None:
        """Open it by hand."""
        self.made().force_open()
        if self.on_hold is not None:
            self.on_hold()

    def made(self) -> Circuit:
        """Give the circuit; makes it if nothing has failed yet."""
        if self.circuit is None:
            self.circuit = Circuit(self.policy, self._now, self._changed)
        return self.circuit

    def retune(self, policy: BreakerPolicy) -> None:
        """Go on under other numbers, with all that was learnt."""
        if policy == self.policy:
            return
        self.policy = policy
        if self.circuit is not None:
            self.circuit.retune(policy)

    def _changed(self, before: str, after: str) -> None:
        self._count("breaker", after)
        if self.on_change is not None:
            self.on_change(before, after)


def circuit_slot(context: LayerContext) -> CircuitSlot | None:
    """Find the place of the tool's circuit, a shared one if its policy says so."""
    policy = context.policy.breaker
    if policy is None or policy.mode == "off":
        return None
    slots = context.slots if policy.shared is None else context.states.shared(policy.shared)
    slot = slots.slot("circuit", lambda: CircuitSlot(policy, context.clock.now, context.count))
    slot.retune(policy)
    return slot
