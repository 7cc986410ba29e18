"""What is said of calls that were approved, or were not, where they do not run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seawall.contract.approval import ApprovalStatus
from seawall.contract.decision import Action
from seawall.contract.failure import REASONS, FailureCode
from seawall.contract.result import ToolResult
from seawall.orchestration.approvals.transitions import REASONS as OF_STATUS

if TYPE_CHECKING:
    from seawall.contract.approval import Frozen, FrozenCall

LAYER = "approvals"

_SAID = {
    ApprovalStatus.PENDING: "nobody has answered yet whether it may",
    ApprovalStatus.DENIED: "a person denied it",
    ApprovalStatus.WITHDRAWN: "the request was withdrawn",
    ApprovalStatus.EXPIRED: "the time for its approval is over",
    ApprovalStatus.TAKEN: "it is being run by another right now",
}
_USED = "its approval was used already; an approval is good for one run"
_FETCH = "Do not repeat this call: read the result under the approval's id."
_AGAIN = "Do not repeat this call; it needs a new approval. Tell the user why it is needed."

_GUIDANCE = {
    "approval_required": "Do not repeat this call: it runs when the request is approved.",
    "approval_denied": (
        "Do not repeat this call; choose another way, or tell the user why it is needed."
    ),
    "approval_expired": _AGAIN,
    "approval_used": _FETCH,
    "approval_mismatch": _AGAIN,
    "not_executed": "Do not repeat it by yourself; wait for the user.",
}


def refused(call: FrozenCall, reason: str, said: str, guidance: str = "") -> ToolResult:
    """Refuse a call that was never begun."""
    return ToolResult.failed(
        REASONS.get(reason, FailureCode.PERMISSION_DENIED),
        f"{call.tool} was not run: {said}",
        call_id=call.call_id,
        tool=call.tool,
        reason=reason,
        layer=LAYER,
        guidance=guidance or _GUIDANCE.get(reason, ""),
        may_have_run=False,
    )


def not_taken(call: FrozenCall) -> ToolResult:
    """Leave a call out, as another one of its turn may not run."""
    return refused(call, "not_executed", "another call of its turn may not run")


def refusals(frozen: Frozen, status: ApprovalStatus) -> tuple[ToolResult, ...]:
    """Refuse all calls of a request in this state; of a denied one, the denial goes to its own."""
    if status is ApprovalStatus.WITHDRAWN and frozen.instead:
        said = f"the request was one too many; {frozen.instead} is kept for the same call"
        return tuple(refused(call, OF_STATUS[status], said) for call in frozen.calls)
    return tuple(_refusal(call, status) for call in frozen.calls)


def _refusal(call: FrozenCall, status: ApprovalStatus) -> ToolResult:
    if status is ApprovalStatus.DENIED and call.decision is not Action.DENY:
        return not_taken(call)
    if status is ApprovalStatus.DENIED and call.deny_reason:
        return refused(call, "approval_denied", f"a person denied it: {call.deny_reason[:300]}")
    if status is ApprovalStatus.PENDING and not call.asked:
        return not_taken(call)
    return refused(call, OF_STATUS.get(status, "approval_used"), _SAID.get(status, _USED))


def in_doubt(call: FrozenCall) -> ToolResult:
    """Say that nobody knows whether a call took effect."""
    return ToolResult.failed(
        FailureCode.UNKNOWN,
        f"whether {call.tool} took effect is not known: whoever ran it was gone before it ended",
        call_id=call.call_id,
        tool=call.tool,
        reason="outcome_unknown",
        layer=LAYER,
        retryable=False,
    )


def unreadable(call: FrozenCall) -> ToolResult:
    """Say how a call ended whose result cannot be given: there was no key, or is another now."""
    if call.end == "ok":
        said = f"{call.tool} was run and succeeded. What it gave cannot be read: there is no key"
        content = ToolResult.of_text(f"{said} for it.").content
        return ToolResult(call_id=call.call_id, tool=call.tool, content=content)
    reason = call.end or "not_executed"
    return ToolResult.failed(
        REASONS.get(reason, FailureCode.EXECUTION_FAILED),
        f"{call.tool} ended so; what it said cannot be read: there is no key for it",
        call_id=call.call_id,
        tool=call.tool,
        reason=reason,
        layer=LAYER,
        may_have_run=call.begun is not None,
    )


def not_there(said: str) -> ToolResult:
    """Say that there is no such approval."""
    return ToolResult.failed(
        FailureCode.NOT_FOUND,
        said,
        reason="not_found",
        layer=LAYER,
        guidance="Do not guess ids; ask for a new approval.",
        may_have_run=False,
    )
