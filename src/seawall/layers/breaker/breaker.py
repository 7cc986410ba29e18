"""Leave a tool alone that keeps failing.

Inside `retry` it guards each attempt: an open circuit refuses before anything is tried, and a call
stops being repeated when the circuit opens on its way. Only what speaks of the tool's health
counts: a timeout, I/O that broke, a crash; what the tool answers, even that it cannot, does not.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from seawall.contract.failure import Failure, FailureCode
from seawall.layers.breaker.circuit import FIRST_PERMIT, Circuit, Permit
from seawall.pipeline.convert import is_infrastructure
from seawall.pipeline.foreign import leaves

if TYPE_CHECKING:
    from collections.abc import Callable

    from seawall.contract.policy import BreakerPolicy
    from seawall.contract.result import ToolResult
    from seawall.pipeline.invocation import Handler, Invocation
    from seawall.pipeline.layer import LayerContext


class CircuitSlot:
    """Where a tool's circuit is kept. It is made by the first failure: before, it is closed."""

    __slots__ = ("_count", "_now", "circuit", "policy")

    def __init__(
        self, policy: BreakerPolicy, now: Callable[[], float], count: Callable[[str, str], None]
    ) -> None:
        self.policy = policy
        self._now = now
        self._count = count
        self.circuit: Circuit | None = None

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

    def _changed(self, _: str, after: str) -> None:
        self._count("breaker", after)


def circuit_slot(context: LayerContext) -> CircuitSlot | None:
    """Find the place of the tool's circuit, a shared one if its policy says so."""
    policy = context.policy.breaker
    if policy is None or policy.mode == "off":
        return None
    slots = context.slots if policy.shared is None else context.states.shared(policy.shared)
    slot = slots.slot("circuit", lambda: CircuitSlot(policy, context.clock.now, context.count))
    slot.retune(policy)
    return slot


class Breaker:
    """Refuses attempts of a tool whose circuit is open, and settles every permit it takes."""

    name = "breaker"

    def __init__(self, context: LayerContext, slot: CircuitSlot) -> None:
        self._slot = slot
        self._ignored = frozenset(slot.policy.ignore)
        self._shadow = slot.policy.mode == "shadow"
        self._count = context.count

    @classmethod
    def for_tool(cls, context: LayerContext) -> Breaker | None:
        """Nothing to do if the policy has no breaker."""
        slot = circuit_slot(context)
        return None if slot is None else cls(context, slot)

    async def __call__(self, call: Invocation, proceed: Handler) -> ToolResult:
        """Take a permit, make the attempt, settle the permit."""
        slot = self._slot
        circuit = slot.circuit
        permit: Permit | None = FIRST_PERMIT if circuit is None else circuit.acquire()
        if permit is None:
            if not self._shadow:
                return self._refused(call, slot.made())
            self._count(self.name, "shadow_refused")
            call.note("breaker:would_refuse:circuit_open")
            return await proceed(call)

        before = call.attempt
        try:
            result = await proceed(call)
        except BaseException:
            circuit = circuit or slot.circuit
            if circuit is not None:
                circuit.give_back(permit)
            raise
        # The circuit that gave the permit, even if the policy has put another in its place.
        circuit = circuit or slot.circuit
        if result.failure is not None:
            ran = call.attempt > before
            self._settle(call, circuit, permit, result.failure, ran=ran)
        elif circuit is not None:
            circuit.success(permit)
        return result

    def _settle(
        self,
        call: Invocation,
        circuit: Circuit | None,
        permit: Permit,
        failure: Failure,
        *,
        ran: bool,
    ) -> None:
        if not ran or self._says_nothing(call, failure):
            if circuit is not None:
                circuit.give_back(permit)
        elif is_infrastructure(failure, call.error):
            (circuit or self._slot.made()).failure(permit, _kind(failure))
        elif circuit is not None:
            circuit.answered(permit)

    def _says_nothing(self, call: Invocation, failure: Failure) -> bool:
        """Not about the tool: the caller's deadline, a full house, an error the policy ignores."""
        if failure.reason in ("deadline_exceeded", "overloaded") and failure.layer != "executor":
            return True
        if failure.reason == "attempt_timeout" and not call.begun:
            return True
        if not self._ignored or call.error is None:
            return False
        kinds = {kind.__name__ for leaf in leaves(call.error) for kind in type(leaf).__mro__}
        return not self._ignored.isdisjoint(kinds | {type(call.error).__name__})

    def _refused(self, call: Invocation, circuit: Circuit) -> ToolResult:
        wait_s = circuit.seconds_to_probe()
        because = f", last: {circuit.last_error}" if circuit.last_error else ""
        seconds = max(math.ceil(wait_s), 1)
        return call.refuse(
            FailureCode.CIRCUIT_OPEN,
            f"{call.tool.name} has failed again and again{because}; it is left alone and will be"
            f" tried again in {seconds} s",
            layer=self.name,
            retry_after_s=wait_s,
        )


def _kind(failure: Failure) -> str:
    return failure.cause[0] if failure.cause else failure.reason
