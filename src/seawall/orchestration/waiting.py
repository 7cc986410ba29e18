"""Calls that wait for a person: what their turn knows of them, and what is said meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from msgspec.structs import replace

from seawall.contract.approval import ApprovalsFull
from seawall.contract.failure import FailureCode

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from seawall.contract.approval import ApprovalBatch
    from seawall.contract.decision import Decision
    from seawall.contract.result import ToolResult
    from seawall.pipeline.invocation import Invocation
    from seawall.pipeline.session import Session

    Make = Callable[[Decision], Awaitable[str]]
    """Makes a new request, with why a person is asked, and gives its id."""

T = TypeVar("T")

LAYER = "risk_gate"

ROOM_AFTER_S = 60.0
"""When to try again where requests are full: a person has to do something first."""


class Waiting(NamedTuple):
    """One call of a turn that waits, as the turn knows it."""

    call_id: str
    tool: str
    call: Invocation | None = None
    """None for a name that cannot be called, or a twin."""
    decision: Decision | None = None
    """Why a person is asked; None if it needs nobody's answer."""
    refusal: ToolResult | None = None
    """What came of it already: it never gets to run."""
    twin_of: int | None = None


class Freezes(Protocol):
    """Keeps turns that wait."""

    def new_id(self) -> str:
        """Draw the id of a request."""
        ...

    async def freeze(
        self,
        batch_id: str,
        waiting: Sequence[Waiting],
        session: Session,
        *,
        execution: str | None = None,
        state: Any = None,
    ) -> ApprovalBatch:
        """Store a turn, then announce it; whoever is cancelled meanwhile has it withdrawn."""
        ...

    def take_back(self, batch_id: str) -> object:
        """Withdraw one that nobody waits for after all; goes on by itself."""
        ...


class Shares(Protocol):
    """Lets equal calls have one request."""

    async def request(self, call: Invocation, decision: Decision, make: Make) -> str:
        """Find the request for a call, or make it; its id."""
        ...


def needs_approval(call: Invocation, batch_id: str, decision: Decision) -> ToolResult:
    """Answer a call that waits for a person now."""
    result = call.refuse(
        FailureCode.PERMISSION_DENIED,
        f"{call.tool.name} was not run: it waits for a person's approval"
        f" ({decision.reason[:300]}); the request is {batch_id}",
        reason="approval_required",
        layer=LAYER,
        guidance=GUIDANCE,
        may_have_run=False,
    )
    return _with_id(result, batch_id)


def waits_too(call: Invocation, batch_id: str) -> ToolResult:
    """Answer a call that needs nobody's approval, but whose turn does."""
    result = call.refuse(
        FailureCode.EXECUTION_FAILED,
        f"{call.tool.name} was not run: it waits for the approval of another call of this turn;"
        f" the request is {batch_id}",
        reason="not_executed",
        layer=LAYER,
        guidance=GUIDANCE,
        may_have_run=False,
    )
    return _with_id(result, batch_id)


def not_stored(call: Invocation) -> ToolResult:
    """Refuse a call, as the request for its approval could not be kept."""
    return call.refuse(
        FailureCode.PERMISSION_DENIED,
        f"{call.tool.name} was not run: it needs a person's approval, and the request for it could"
        " not be stored",
        reason="gate_failed",
        layer=LAYER,
        guidance="Do not repeat this call now; tell the user that approvals do not work here.",
        may_have_run=False,
    )


async def if_room(storing: Awaitable[T]) -> T | ApprovalsFull:
    """Wait for a request to be stored; that there is no room is an answer, and nobody's fault."""
    try:
        return await storing
    except ApprovalsFull as full:
        return full


def no_room(call: Invocation, why: str) -> ToolResult:
    """Refuse a call, as its caller has as many requests as may wait."""
    return call.refuse(
        FailureCode.RATE_LIMITED,
        f"{call.tool.name} was not run: it needs a person's approval, and {why}",
        reason="approvals_full",
        layer=LAYER,
        guidance="Tell the user that requests of yours wait for an answer and that there is no room"
        " for more. Make this call again once they have answered or withdrawn some"
        " (`seawall approvals list`, or the gateway's console); ask for less at once.",
        retry_after_s=ROOM_AFTER_S,
        may_have_run=False,
    )


def _with_id(result: ToolResult, batch_id: str) -> ToolResult:

    return replace(result, metadata={**(result.metadata or {}), "approval_id": batch_id})


GUIDANCE = (
    "Do not repeat this call: it runs when the request is approved. Tell the user that it waits"
    " for their approval."
)
