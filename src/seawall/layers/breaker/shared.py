"""A breaker whose circuit is that of all processes.

While it is closed this costs no round trip, while it cools down neither. Where it may be probed,
the store is asked first whether another process is at it, so that one probes for all. Without the
store each process goes by its own circuit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from seawall.layers.breaker.fleet import CircuitStore, Fleet
from seawall.pipeline.layer import Fitted

if TYPE_CHECKING:
    from seawall.contract.result import ToolResult
    from seawall.layers.breaker.attempt_guard import AttemptGuard
    from seawall.layers.breaker.slot import CircuitSlot
    from seawall.pipeline.invocation import Handler, Invocation
    from seawall.pipeline.layer import LayerContext
    from seawall.pipeline.state import StateTable

_FLEET = "breaker/fleet"


class SharedBreaker(Fitted):
    """Stands around the breaker of this process, whose circuit it keeps in step with the others."""

    name = "breaker"

    def __init__(
        self, context: LayerContext, slot: CircuitSlot, guard: AttemptGuard, store: CircuitStore
    ) -> None:
        self._slot = slot
        self._guard = guard
        self._count = context.count
        shared = slot.policy.shared
        self._circuit_name = f"tool/{context.tool.name}" if shared is None else f"shared/{shared}"
        self._fleet = context.states.shared(_FLEET).slot(
            "fleet", lambda: Fleet(store, context.clock, context.chance.token(8))
        )
        self._fleet.enlist(self._circuit_name, slot)

    def fitted(self, proceed: Handler) -> Handler:
        """Make the attempt if the circuit allows it; a probe, if no other process makes one."""
        fleet, name, slot = self._fleet, self._circuit_name, self._slot
        attempt = self._guard.fitted(proceed)

        async def guarded(call: Invocation) -> ToolResult:
            if not fleet.keeps(name, slot):
                fleet.join(name, slot)
            circuit = slot.circuit
            if circuit is None or circuit.is_closed or circuit.seconds_to_probe() > 0:
                return await attempt(call)
            may_probe: bool | None = None
            try:
                may_probe = await fleet.may_probe(name, circuit)
                if may_probe is None:
                    self._count(self.name, "store_local")
                    call.note("breaker:store_local")
                return await attempt(call)
            finally:
                # Also if nobody waited for the answer, or it was late: leave may have been given.
                if may_probe is not False:
                    fleet.probed(name, circuit)

        return guarded


async def start_fleet(states: StateTable) -> None:
    """Know of all circuits that are open elsewhere before the first call, if any are shared."""
    fleet = states.shared(_FLEET).find("fleet")
    if isinstance(fleet, Fleet):
        await fleet.start()


async def close_fleet(states: StateTable) -> None:
    """End what keeps circuits in step, if anything does."""
    fleet = states.shared(_FLEET).find("fleet")
    if isinstance(fleet, Fleet):
        await fleet.aclose()
