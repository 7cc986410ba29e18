"""What a breaker does around each attempt, whoever the circuit belongs to."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from seawall.contract.failure import Failure, FailureCode
from seawall.layers.breaker.circuit import FIRST_PERMIT, Circuit, Permit
from seawall.pipeline.convert import is_infrastructure
from seawall.pipeline.foreign import leaves
from seawall.pipeline.layer import Fitted

if TYPE_CHECKING:
    from seawall.contract.result import ToolResult
    from seawall.layers.breaker.slot import CircuitSlot
    from seawall.pipeline.invocation import Handler, Invocation
    from seawall.pipeline.layer import LayerContext


class AttemptGuard(Fitted):
    """Refuses attempts of a tool whose circuit is open, and settles every permit it takes."""

    name = "breaker"

    def __init__(self, context: LayerContext, slot: CircuitSlot) -> None:
        self._slot = slot
        self._ignored = frozenset(slot.policy.ignore)
        self._shadow = slot.policy.mode == "shadow"
        self._honours_hint = slot.policy.honour_retry_after
        self._count = context.count

    def fitted(self, proceed: Handler) -> Handler:
        """Take a permit, make the attempt, settle the permit."""
        slot = self._slot

        async def guarded(call: Invocation) -> ToolResult:
            circuit = slot.circuit
            permit: Permit | None = FIRST_PERMIT
            if circuit is not None:
                permit = circuit.acquire()
                if not circuit.is_closed:
                    call.mark("asked", circuit.decided)
            if permit is None:
                return await self._without_permit(call, slot.made(), proceed)
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
                self._settle(call, circuit, permit, result.failure, before)
            elif circuit is not None:
                circuit.success(permit)
            return result

        return guarded

    async def _without_permit(
        self, call: Invocation, circuit: Circuit, proceed: Handler
    ) -> ToolResult:
        if not self._shadow:
            return self._refused(call, circuit)
        self._count(self.name, "shadow_refused")
        call.note("breaker:would_refuse:circuit_open")
        return await proceed(call)

    def _settle(
        self,
        call: Invocation,
        circuit: Circuit | None,
        permit: Permit,
        failure: Failure,
        before: int,
    ) -> None:
        """Say what became of a permit that was taken `before` there were so many attempts."""
        if call.attempt == before or self._says_nothing(call, failure):
            if circuit is not None:
                circuit.give_back(permit)
        elif is_infrastructure(failure, call.error):
            hint_s = failure.retry_after_s if self._honours_hint else None
            circuit = circuit or self._slot.made()
            decided = circuit.decided
            circuit.failure(permit, _kind(failure), retry_after_s=hint_s)
            if circuit.decided != decided:
                call.mark("settled", circuit.decided)
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
        call.mark("short", wait_s)
        because = f", last: {circuit.last_error}" if circuit.last_error else ""
        seconds = max(math.ceil(wait_s), 1)
        return call.refuse(
            FailureCode.CIRCUIT_OPEN,
            f"{call.tool.name} has failed again and again{because}; it is left alone and will be"
            f" tried again in {seconds} s",
            layer=self.name,
            retry_after_s=wait_s,
        )


class RateGuard(AttemptGuard):
    """The breaker of a policy with a rate: every call counts, and how long it took."""

    def __init__(self, context: LayerContext, slot: CircuitSlot) -> None:
        super().__init__(context, slot)
        self._now = context.clock.now
        slow_s = slot.policy.slow_call_s
        self._slow_s = math.inf if slow_s is None else slow_s

    def fitted(self, proceed: Handler) -> Handler:
        """Take a permit, make the attempt, settle the permit with what it came to."""
        slot, now, slow_s = self._slot, self._now, self._slow_s

        async def guarded(call: Invocation) -> ToolResult:
            circuit = slot.made()
            permit = circuit.acquire()
            if not circuit.is_closed:
                call.mark("asked", circuit.decided)
            if permit is None:
                return await self._without_permit(call, circuit, proceed)
            before, began = call.attempt, now()
            try:
                result = await proceed(call)
            except BaseException:
                circuit.give_back(permit)
                raise
            decided = circuit.decided
            slow = now() - began > slow_s
            if result.failure is None:
                circuit.success(permit, slow=slow)
            else:
                ran = call.attempt > before
                self._settle_timed(call, circuit, permit, result.failure, ran=ran, slow=slow)
            if circuit.decided != decided:
                call.mark("settled", circuit.decided)
            return result

        return guarded

    def _settle_timed(
        self,
        call: Invocation,
        circuit: Circuit,
        permit: Permit,
        failure: Failure,
        *,
        ran: bool,
        slow: bool,
    ) -> None:
        if not ran or self._says_nothing(call, failure):
            circuit.give_back(permit)
        elif is_infrastructure(failure, call.error):
            hint_s = failure.retry_after_s if self._honours_hint else None
            circuit.failure(permit, _kind(failure), slow=slow, retry_after_s=hint_s)
        else:
            circuit.answered(permit, slow=slow)


def _kind(failure: Failure) -> str:
    return failure.cause[0] if failure.cause else failure.reason
