"""`/approvals`: what waits for a person, answered here, and run by the gateway once approved.

Whoever may approve sees all requests; a client sees its own, so that the address in a 202 leads
to the result.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import msgspec

from seawall.contract.annotations import Risk
from seawall.contract.approval import ApprovalConflict, ApprovalNotFound, ApprovalStatus
from seawall.contract.errors import StoreUnavailable
from seawall.contract.failure import FailureCode
from seawall.edges.gateway.answers import STOPPED, body_of, json_answer, refusal
from seawall.edges.gateway.approval_watch import ApprovalWatch
from seawall.edges.gateway.asked import Refused, bad_request
from seawall.edges.gateway.left_over import LeftOver
from seawall.pipeline.foreign import guarded_async

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from seawall.contract.approval import ApprovalBatch, Frozen
    from seawall.contract.decision import PendingApproval
    from seawall.contract.turn import TurnOutcome
    from seawall.edges.gateway.answers import Answer
    from seawall.edges.gateway.asked import Asked
    from seawall.edges.gateway.guard import Guard
    from seawall.orchestration.pipeline import Pipeline

T = TypeVar("T")

LISTED = 100
MAX_LISTED = 500
MAX_REFUSALS = 1_000
MAX_TAKEN_UP = 16
"""How much may run at once before what others left is left a little longer."""
LOOK_S = 10.0
"""How often it is looked what other processes made or answered."""

_READABLE = frozenset({ApprovalStatus.DONE, ApprovalStatus.UNKNOWN, ApprovalStatus.DENIED})


class DecisionBody(msgspec.Struct, frozen=True):
    """What a person says."""

    decision: Literal["approve", "deny", "withdraw"]
    reason: str = ""
    digests: tuple[str, ...] | None = None
    """Of the calls, as they were shown to that person; None: nobody says what was shown."""


_read_decision = msgspec.json.Decoder(DecisionBody).decode


class ApprovalDesk:
    """The requests of a pipeline, over HTTP."""

    def __init__(
        self,
        pipeline: Pipeline,
        guard: Guard,
        tell: Callable[[str, Any, str], None],
        max_body: int,
    ) -> None:
        self._pipeline = pipeline
        self._desk = pipeline.approvals
        self._guard = guard
        self._tell = tell
        self._max_body = max_body
        self._resuming: dict[str, asyncio.Task[None]] = {}
        self._looking: tuple[asyncio.Task[None], ...] = ()
        self._refusals: OrderedDict[str, list[Any]] = OrderedDict()
        """Why what was approved could not be run; it stays approved, and may be approved again."""
        self._watch = ApprovalWatch(self._desk, self._changed_elsewhere)
        self._left_over = LeftOver(self._desk, self._take_up)
        self._desk.listen(self._asked)

    def start(self) -> None:
        """Begin to look what other processes do, and what they left."""
        if self._desk.enabled:
            looks = (self._look(), self._left_over.run())
            self._looking = tuple(asyncio.ensure_future(look) for look in looks)

    def stop(self) -> None:
        """Look no more."""
        for looking in self._looking:
            looking.cancel()

    async def watch(self) -> None:
        """Tell viewers what other processes make, answer and run, until cancelled."""
        await self._watch.run()

    @property
    def is_busy(self) -> bool:
        """Whether something runs that was approved."""
        return bool(self._resuming)

    async def drained(self) -> None:
        """Wait for what was approved and runs."""
        if self._resuming:
            await asyncio.wait(self._resuming.values())

    def break_off(self) -> None:
        """Cancel what was approved and runs; its approval says that its outcome is not known."""
        for resuming in self._resuming.values():
            resuming.cancel(STOPPED)

    async def listed(self, asked: Asked) -> Answer:
        """List requests, the newest first, or those after another part of the list."""
        query = asked.query()
        said = query.get("status", ApprovalStatus.PENDING.value)
        try:
            status = None if said == "all" else ApprovalStatus(said)
        except ValueError as error:
            known = ", ".join([*ApprovalStatus, "all"])
            raise Refused(bad_request(f"status must be one of {known}")) from error
        limit = query.get("limit", str(LISTED))
        if not limit.isascii() or not limit.isdigit() or not 1 <= int(limit[:9]) <= MAX_LISTED:
            raise Refused(bad_request(f"limit must be a whole number from 1 to {MAX_LISTED}"))
        try:
            found = await _reached(
                self._desk.page(status, limit=int(limit), after=query.get("after") or None)
            )
        except ValueError as error:
            raise Refused(bad_request("after must be what an earlier answer gave")) from error
        shown = [_request(batch) for batch in found.approvals]
        return json_answer({"approvals": shown, "more": found.more, "after": found.after})

    async def shown(self, asked: Asked) -> Answer:
        """Show one request, with the results once there are any; all of it to who may approve."""
        batch = await self._found(asked, whole=asked.client.may("approve"))
        if not asked.client.may("approve"):
            self._guard.demand(asked, "call")
            if batch.caller != asked.client.name:
                raise Refused(_not_there(asked.part("id")))
        shown = _request(batch)
        if batch.status is ApprovalStatus.APPROVED and batch.id in self._resuming:
            shown["status"] = ApprovalStatus.TAKEN.value  # it is not written down yet
        if batch.status in _READABLE:
            # Results are kept until whoever made the call has seen them, not whoever approves.
            is_theirs = asked.client.name == batch.caller
            outcome = await _reached(self._pipeline.outcome(batch.id, read=is_theirs))
            shown["results"] = _results(outcome)
        elif batch.id in self._refusals:
            shown["results"] = self._refusals[batch.id]
        return json_answer(shown, 202 if batch.status is ApprovalStatus.PENDING else 200)

    async def decided(self, asked: Asked) -> Answer:
        """Approve, deny or withdraw; what is approved as a whole runs."""
        self._guard.demand(asked, "approve")
        body = await asked.json(self._max_body, _read_decision)
        before = await self._found(asked)
        if body.digests not in (None, tuple(one.digest for one in before.approvals)):
            raise Refused(_another(before.id))
        if body.decision == "approve" and before.status is ApprovalStatus.APPROVED:
            batch = before  # nobody runs it, so it is run now; that it is approved stands already
        else:
            batch = await self._answered(asked, body)
            self._asked(batch)
        if batch.status is ApprovalStatus.APPROVED:
            self._resume(batch.id, batch.caller)
        if batch.status is ApprovalStatus.DENIED:
            await guarded_async(
                f"telling the denial of {batch.id} failed",
                lambda: self._tell_results(batch),
                lambda _: None,
            )
        return json_answer(_request(batch))

    async def _answered(self, asked: Asked, body: DecisionBody) -> ApprovalBatch:
        approval_id, by = asked.part("id"), asked.client.name
        desk = self._desk
        try:
            if body.decision == "approve":
                return await _reached(desk.approve(approval_id, by=by, reason=body.reason))
            if body.decision == "deny":
                return await _reached(desk.deny(approval_id, body.reason, by=by))
            return await _reached(desk.withdraw(approval_id, by=by))
        except ApprovalConflict as error:
            raise Refused(_conflict(str(error))) from error

    async def _found(self, asked: Asked, *, whole: bool = False) -> ApprovalBatch:
        try:
            return await _reached(self._desk.show(asked.part("id"), whole=whole))
        except ApprovalNotFound as error:
            raise Refused(_not_there(asked.part("id"))) from error

    def _resume(self, batch_id: str, caller: str) -> None:
        if batch_id in self._resuming:
            return

        async def run() -> None:
            outcome = await guarded_async(
                f"resuming approval {batch_id} failed",
                lambda: self._pipeline.resume(batch_id),
                lambda _: None,
            )
            # If another was faster, that one tells what came of it.
            if outcome is not None and outcome.reason != "approval_used":
                self._ended(batch_id, caller, _results(outcome))

        task = self._resuming[batch_id] = asyncio.ensure_future(run())
        task.add_done_callback(lambda _: self._resuming.pop(batch_id, None))

    def _take_up(self, frozen: Frozen) -> bool:
        """Run what was left over; False if too much runs for now."""
        if len(self._resuming) >= MAX_TAKEN_UP:
            return False
        self._resume(frozen.id, frozen.caller)
        return True

    def _ended(self, batch_id: str, caller: str, results: list[Any]) -> None:
        if all(result["isError"] for result in results):
            self._refusals[batch_id] = results
            if len(self._refusals) > MAX_REFUSALS:
                self._refusals.popitem(last=False)
        self._watch.forget(batch_id)
        self._tell("resumed", {"id": batch_id, "results": results}, caller)

    async def _changed_elsewhere(self, batch: ApprovalBatch) -> None:
        self._tell("approval", _request(batch), batch.caller)
        if batch.status in _READABLE:
            await self._tell_results(batch)

    async def _tell_results(self, batch: ApprovalBatch) -> None:
        outcome = await self._pipeline.outcome(batch.id, read=False)
        self._tell("resumed", {"id": batch.id, "results": _results(outcome)}, batch.caller)

    def _asked(self, batch: ApprovalBatch) -> None:
        self._watch.note(batch)
        self._tell("approval", _request(batch), batch.caller)

    async def _look(self) -> None:
        while True:
            await self._pipeline.clock.sleep(LOOK_S)
            await guarded_async("looking what waits failed", self._desk.refresh, lambda _: None)


async def _reached(work: Awaitable[T]) -> T:
    """Wait for a store; one that is away is said to be so."""
    try:
        return await work
    except StoreUnavailable as error:
        raise Refused(
            refusal(
                FailureCode.RATE_LIMITED,
                "overloaded",
                f"the state cannot be reached: {error}",
                retry_after_s=5.0,
            )
        ) from error


def _request(batch: ApprovalBatch) -> dict[str, Any]:
    return {
        "id": batch.id,
        "status": batch.status.value,
        "created": batch.created,
        "expires": batch.expires,
        "sessionId": batch.session_id,
        "caller": batch.caller,
        "calls": [_call(one) for one in batch.approvals],
    }


def _call(approval: PendingApproval) -> dict[str, Any]:
    return {
        "id": approval.id,
        "requestId": approval.call_id,
        "tool": approval.tool,
        "server": approval.origin,
        "risk": Risk(approval.risk).name.lower(),
        "reason": approval.reason,
        "arguments": approval.arguments,
        "argumentsCut": approval.arguments_cut,
        "digest": approval.digest,
        "decision": None if approval.decision is None else approval.decision.value,
        "denyReason": approval.deny_reason,
        "decided": approval.decided,
        "decidedBy": approval.decided_by,
    }


def _results(outcome: TurnOutcome) -> list[Any]:
    return [msgspec.to_builtins(body_of(result, ""), enc_hook=str) for result in outcome.results]


def _not_there(approval_id: str) -> Answer:
    return refusal(
        FailureCode.NOT_FOUND, "not_found", f"there is no approval {approval_id[:100]!r}"
    )


def _another(approval_id: str) -> Answer:
    answer = refusal(
        FailureCode.PERMISSION_DENIED,
        "approval_mismatch",
        f"what was shown to whoever decides is not what {approval_id} asks about",
        guidance="Nothing was decided. Look at the approval as it is now.",
    )
    return msgspec.structs.replace(answer, status=409)


def _conflict(said: str) -> Answer:
    return refusal(
        FailureCode.PERMISSION_DENIED,
        "approval_used",
        said,
        guidance="An answer is never overwritten; look at the approval as it is now.",
    )
