"""Calls whose client cannot be asked: each has a request in the state, answered from elsewhere."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from seawall.contract.approval import ApprovalStatus, Frozen
from seawall.contract.failure import REASONS, FailureCode
from seawall.contract.result import ToolResult
from seawall.orchestration.approvals.refusals import refusals
from seawall.orchestration.approvals.sharing import Sharing
from seawall.pipeline.foreign import guarded_async

if TYPE_CHECKING:
    from seawall.edges.mcp.proxy.exchange import Exchange
    from seawall.orchestration.pipeline import Pipeline

LAYER = "risk_gate"

APPROVE_ELSEWHERE = (
    "Tell the user what waits for their approval: they answer with `seawall approvals approve {id}"
    " --state …`, with the state of this proxy. Once they have, make the same call again."
)
USED = (
    "Do not repeat this call now: an approval is good for one run, and another call has it."
    " `seawall approvals outcome {id} --state …` shows what comes of it."
)
FIND_OUT = (
    "Do not repeat this call: tell the user, and find out first whether it took effect. If they"
    " still want it, the same call asks for a new approval, which says what became of this one."
)


class Requests:
    """Follows the requests of one pipeline; `exchanges` is where its tools find their client."""

    def __init__(self, pipeline: Pipeline, exchanges: dict[str, Exchange]) -> None:
        self._pipeline = pipeline
        self._desk = pipeline.approvals
        self._desk.sharing = Sharing(self._desk)
        self._exchanges = exchanges
        self._running: set[str] = set()

    async def outcome(self, exchange: Exchange, result: ToolResult) -> ToolResult:
        """Give what comes of a call; of one that needs no request, what came of it already."""
        request = str((result.metadata or {}).get("approval_id", ""))
        if not request:
            return result
        frozen = await self._desk.kept(request)
        request = frozen.id
        status = await self._desk.status(frozen)
        if request in self._running:
            status = ApprovalStatus.TAKEN
        if status is ApprovalStatus.APPROVED:
            return await self._resumed(exchange, frozen)
        if status is ApprovalStatus.UNKNOWN:
            await self._told(frozen)
            return _in_doubt(frozen)
        return _waits(frozen) if status is ApprovalStatus.PENDING else _refused(frozen, status)

    async def _resumed(self, exchange: Exchange, frozen: Frozen) -> ToolResult:
        """Run what was approved, once: for this client, which makes the call again."""
        call_id = frozen.calls[0].call_id
        self._running.add(frozen.id)
        self._exchanges[call_id] = exchange
        try:
            outcome = await self._pipeline.resume(frozen.id)
        finally:
            self._exchanges.pop(call_id, None)
            self._running.discard(frozen.id)
        result = outcome.results[0]
        if _is_in_doubt(result, exchange):
            await self._told(frozen)
        return result

    async def _told(self, frozen: Frozen) -> None:
        """Remember that the client knows; if that fails it is told again."""
        what = f"noting that the end of approval {frozen.id} was told failed"
        await guarded_async(what, lambda: self._desk.told(frozen), lambda _: None)


def _is_in_doubt(result: ToolResult, exchange: Exchange) -> bool:
    """Whether the client is told by this that the call may have taken effect, or may not."""
    failure = result.failure
    if failure is None or failure.reason == "outcome_unknown":
        return failure is not None
    return exchange.answered is None and failure.may_have_run is not False


def _waits(frozen: Frozen) -> ToolResult:
    said = f"was not run: it waits for a person's approval; the request is {frozen.id}"
    return _failed(frozen, "approval_required", said, APPROVE_ELSEWHERE.format(id=frozen.id))


def _refused(frozen: Frozen, status: ApprovalStatus) -> ToolResult:
    refusal = refusals(frozen, status)[0]
    if refusal.failure is None or refusal.failure.reason != "approval_used":
        return refusal
    runs = "is run right now, for another call" if status is ApprovalStatus.TAKEN else "was used"
    said = f"was not run: its approval {frozen.id} {runs}"
    return _failed(frozen, "approval_used", said, USED.format(id=frozen.id))


def _failed(frozen: Frozen, reason: str, said: str, guidance: str) -> ToolResult:
    call = frozen.calls[0]
    return ToolResult.failed(
        REASONS[reason],
        f"{call.tool} {said}",
        reason=reason,
        layer=LAYER,
        guidance=guidance,
        may_have_run=False,
        call_id=call.call_id,
        tool=call.tool,
    )


def _in_doubt(frozen: Frozen) -> ToolResult:
    call = frozen.calls[0]
    approved, begun = _moment(call.decided), _moment(call.begun)
    return ToolResult.failed(
        FailureCode.UNKNOWN,
        f"{call.tool} was not run again: the same call was approved{approved} ({frozen.id}) and"
        f" begun{begun}, and whether it took effect is not known; it may have",
        reason="outcome_unknown",
        layer=LAYER,
        guidance=FIND_OUT,
        retryable=False,
        call_id=call.call_id,
        tool=call.tool,
    )


def _moment(at: float | None) -> str:
    if at is None:
        return ""
    return f" at {datetime.fromtimestamp(at, UTC).isoformat(sep=' ', timespec='seconds')}"
