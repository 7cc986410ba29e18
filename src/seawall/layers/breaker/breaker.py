"""Leave a tool alone that keeps failing.

Inside `retry` it guards each attempt: an open circuit refuses before anything is tried, and a call
stops being repeated when the circuit opens on its way. Only what speaks of the tool's health
counts: a timeout, I/O that broke, a crash; what the tool answers, even that it cannot, does not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from seawall.layers.breaker.attempt_guard import AttemptGuard, RateGuard
from seawall.layers.breaker.fleet import CircuitStore
from seawall.layers.breaker.shared import SharedBreaker
from seawall.layers.breaker.slot import circuit_slot

if TYPE_CHECKING:
    from seawall.pipeline.layer import Layer, LayerContext


class Breaker(AttemptGuard):
    """Refuses attempts of a tool whose circuit is open: after failures in a row, or by a rate."""

    name = "breaker"

    @classmethod
    def for_tool(cls, context: LayerContext) -> Layer | None:
        """Nothing to do if the policy has no breaker; a store makes the circuit that of all."""
        slot = circuit_slot(context)
        if slot is None:
            return None
        guard = RateGuard(context, slot) if slot.policy.by_rate else cls(context, slot)
        store = context.part(CircuitStore)  # type: ignore[type-abstract]  # a protocol is a key too
        return guard if store is None else SharedBreaker(context, slot, guard, store)
