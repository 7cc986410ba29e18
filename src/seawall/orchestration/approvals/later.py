"""What the risk gate does with a call that needs an answer when nobody is there to give one."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from seawall.contract.approval import ApprovalsFull
from seawall.orchestration.approvals.same_key import under_same_key
from seawall.orchestration.waiting import Waiting, if_room, needs_approval, no_room, not_stored
from seawall.pipeline.aside import Alone
from seawall.pipeline.foreign import guarded_async

if TYPE_CHECKING:
    from seawall.contract.decision import Decision
    from seawall.contract.result import ToolResult
    from seawall.orchestration.approvals.desk import Approvals
    from seawall.pipeline.invocation import Invocation


class Later:
    """Lets calls wait: one of a turn with all of its turn, one alone by itself.

    What a running tool calls, and steps of a batch, cannot wait: their caller would be left half
    done.
    """

    def __init__(self, approvals: Approvals) -> None:
        self._approvals = approvals

    async def __call__(self, call: Invocation, decision: Decision) -> ToolResult | None:
        """Give the answer for now; None if this call cannot wait."""
        aside = call.aside
        if call.depth or (aside is not None and aside.resumed):
            return None
        turn = None if aside is None else aside.turn
        if turn is not None and not isinstance(turn, Alone):
            return await turn.wait_for_answer(call, decision)
        return None if call.batch_id is not None else await self._alone(call, decision)

    async def _alone(self, call: Invocation, decision: Decision) -> ToolResult:
        state = None if call.aside is None else call.aside.carry
        sharing = self._approvals.sharing
        make = partial(self._made, call, state)
        asking = make if sharing is None else partial(sharing.request, call, make=make)
        made: str | ApprovalsFull | None = await guarded_async(
            f"storing an approval of {call.tool.name!r} failed",
            lambda: if_room(asking(decision)),
            lambda _: None,
        )
        if isinstance(made, ApprovalsFull):
            return no_room(call, str(made))
        return not_stored(call) if made is None else needs_approval(call, made, decision)

    async def _made(self, call: Invocation, state: Any, decision: Decision) -> str:
        approvals = self._approvals
        known = await under_same_key(approvals, call)
        if known is not None:
            # Whoever made the call before may still wait for it, so it is not taken back.
            key = call.session.caller, call.idempotency_key or ""
            call.beside().on_lost = partial(approvals.withdrawing.leave, key, known)
            return known
        waiting = [Waiting(call.call_id, call.tool.name, call, decision)]
        batch = await approvals.freeze(approvals.new_id(), waiting, call.session, state=state)
        if approvals.sharing is None:
            # One that others may have found meanwhile is not theirs to take back.
            call.beside().on_lost = partial(approvals.take_back, batch.id, waiting)
        return batch.id
