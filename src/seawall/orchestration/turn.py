"""The calls of one turn: gates in order, executors together, every call with exactly one result.

    start 1 ▶ gates 1 ▶ start 2 ▶ gates 2 ▶ … ▶ executors, so many at once ▶ ends as they come

Nothing runs before all have passed their gates. A call that fails leaves the others running; the
caller's cancel stops all, and no task outlives the turn.
"""

from __future__ import annotations

import asyncio
import inspect
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from seawall.contract.approval import ApprovalsFull
from seawall.contract.failure import FailureCode, Issue
from seawall.contract.result import ToolResult
from seawall.contract.turn import TurnEvent, TurnOutcome, TurnStatus
from seawall.orchestration.barrier import Barrier
from seawall.orchestration.hook_results import not_begun
from seawall.orchestration.waiting import (
    Waiting,
    if_room,
    needs_approval,
    no_room,
    not_stored,
    waits_too,
)
from seawall.pipeline.foreign import guarded_async, told

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from seawall.contract.approval import ApprovalBatch
    from seawall.contract.decision import Decision
    from seawall.contract.tool import ToolCall
    from seawall.orchestration.barrier import Ticket
    from seawall.orchestration.calls import Member
    from seawall.orchestration.loop import LoopDetector
    from seawall.orchestration.loop_policy import LoopFinding
    from seawall.orchestration.waiting import Freezes
    from seawall.pipeline.aside import Aside
    from seawall.pipeline.clock import Clock
    from seawall.pipeline.invocation import Invocation
    from seawall.pipeline.route import Route
    from seawall.pipeline.session import Session

LAYER = "turn"

MAX_CALLS = 1_000
"""Calls of one turn; what is beyond is refused."""

MAX_SHOWN = 300


class Doors(NamedTuple):
    """What a turn needs of its pipeline."""

    clock: Clock
    loop: LoopDetector | None
    width: int
    route_of: Callable[[str], Route | None]
    invocation: Callable[[Route, Any, str, Session], Invocation]
    run: Callable[[Route, Invocation], Awaitable[ToolResult]]
    not_callable: Callable[[ToolCall, str, Session, ToolResult | None], ToolResult]
    """Answers for a name that cannot be called; with what is given last, if there is any."""
    approvals: Freezes | None = None
    """Keeps turns that wait for a person; None if they cannot."""


class Turn:
    """One turn while it runs."""

    def __init__(
        self,
        doors: Doors,
        members: Sequence[Member],
        session: Session,
        *,
        turn_id: str,
        truncated: bool,
        on_event: Callable[[TurnEvent], Any] | None,
        carry: Any = None,
    ) -> None:
        if on_event is not None:
            _check_listener(on_event)
        self._doors = doors
        self._members = members
        self._singles = [member for member in members if member.twin_of is None]
        self._session = session
        self._turn_id = turn_id
        self._truncated = truncated
        self._listeners = () if on_event is None else (on_event,)
        self._calls: dict[Member, Invocation] = {}
        self.ended: tuple[TurnStatus, str] | None = None
        """By a hook: how, and why."""
        self._judged: LoopFinding | None = None
        self._barrier = Barrier(doors.clock, doors.width)
        self._asked: dict[Invocation, Decision] = {}
        self._carry = carry
        self._execution: str | None = None
        self._approval: ApprovalBatch | None = None
        self._lost: Callable[[Invocation], ToolResult] | None = None
        """What is said to calls that should wait, if that could not be stored."""

    async def run(self, execution: str | None) -> TurnOutcome:
        """Run all calls, and say what came of them."""
        try:
            await self._run(execution)
            return self._outcome()
        except BaseException:
            if self._approval is not None and self._doors.approvals is not None:
                self._doors.approvals.take_back(self._approval.id)
            raise
        finally:
            # Calls know their turn: unless it forgets them, only the collector ends them all.
            self._calls.clear()
            self._asked.clear()

    async def _run(self, execution: str | None) -> None:
        if self._doors.loop is not None and self._members:
            calls = tuple(member.call for member in self._members)
            self._judged = await self._doors.loop.judged(self._session, calls)
        singles = (m for m in self._members if not self._started_as_twin(m))
        self._execution = execution
        is_sequential = self._is_sequential(execution)
        if self._gates_first:
            width = 1 if is_sequential else self._doors.width
            self._barrier = Barrier(self._doors.clock, width)
            jobs = (partial(self._one, member) for member in singles)
            await self._barrier.run(jobs, self._freeze)
            self._put_in_order()
        elif is_sequential:
            for member in singles:
                await self._one(member)
        else:
            await self._barrier.run(partial(self._one, member) for member in singles)
            self._put_in_order()

    @property
    def _gates_first(self) -> bool:
        """Whether all gates are passed before anything runs, even if it runs one by one."""
        return self._doors.approvals is not None

    async def wait_for_answer(self, call: Invocation, decision: Decision) -> ToolResult | None:
        """Hold a call until all of the turn are past their gates, and its wait is stored."""
        turnstile = call.beside().turnstile
        if self._doors.approvals is None or turnstile is None:
            return None
        self._asked[call] = decision
        return await turnstile.enter()

    async def _freeze(self) -> None:
        """Store the turn if a person has to be asked about any of its calls."""
        approvals = self._doors.approvals
        if approvals is None or not self._asked or self.ended is not None:
            return
        batch_id = approvals.new_id()
        waiting = [self._waiting(member) for member in self._members]
        options = {"execution": self._execution, "state": self._carry}
        frozen = await guarded_async(
            f"storing approval {batch_id} failed",
            lambda: if_room(approvals.freeze(batch_id, waiting, self._session, **options)),
            lambda _: None,
        )
        if isinstance(frozen, ApprovalsFull):
            self._lost = partial(no_room, why=str(frozen))
        elif frozen is None:
            self._lost = not_stored
        else:
            self._approval = frozen
            self.end(TurnStatus.WAITING, f"a person has to answer first: {batch_id}")
            return
        self.end(TurnStatus.DONE, "a request for approval could not be stored")

    def _waiting(self, member: Member) -> Waiting:
        call, twin_of = self._calls.get(member), member.twin_of
        return Waiting(
            member.call_id,
            member.call.name[:MAX_SHOWN],
            call,
            None if call is None else self._asked.get(call),
            member.result if twin_of is None else None,
            None if twin_of is None else twin_of.position,
        )

    def end(self, status: TurnStatus, reason: str) -> None:
        """Begin nothing more; the first who says so gives the reason."""
        if self.ended is None:
            self.ended = status, reason
            self._barrier.bring_down()

    def _is_sequential(self, execution: str | None) -> bool:
        if execution == "sequential" or len(self._singles) < 2:
            return True
        routes = (self._doors.route_of(member.call.name) for member in self._singles)
        return any(route is not None and route.tool.execution == "sequential" for route in routes)

    async def _one(self, member: Member, ticket: Ticket | None = None) -> None:
        """Run one call from its start to its end, and answer its twins."""
        self._tell(member, "start", arguments=member.call.arguments)
        try:
            result = await self._result(member, ticket)
        except asyncio.CancelledError:
            if ticket is None or self._barrier.stopping:
                raise
            # The tool cancelled its own task; the others are none of its business.
            result = self._cancelled_itself(member)
        for each in (member, *member.twins):
            self._finish(each, result)

    def _started_as_twin(self, member: Member) -> bool:
        """Whether a call is run as another one; it starts here, and ends when that one does."""
        other = member.twin_of
        if other is None:
            return False
        self._tell(member, "start", arguments=member.call.arguments)
        if other.result is not None:
            self._finish(member, other.result)
        else:
            other.twins.append(member)
        return True

    def _finish(self, member: Member, result: ToolResult) -> None:
        member.result = result
        self._tell(member, "end", result=result)

    async def _result(self, member: Member, ticket: Ticket | None) -> ToolResult:
        route = self._doors.route_of(member.call.name)
        if route is None:
            said = self._instead(member)
            return self._doors.not_callable(member.call, member.call_id, self._session, said)
        call = self._call(route, member, ticket)
        refusal = self._too_many(member) or self._refused(call)
        return route.finish(call, refusal) if refusal else await self._doors.run(route, call)

    def _call(self, route: Route, member: Member, ticket: Ticket | None) -> Invocation:
        call = self._calls[member] = self._doors.invocation(
            route, member.call.arguments, member.call_id, self._session
        )
        call.batch_id = self._turn_id
        call.given_truncated = self._truncated or member.call.truncated
        call.on_progress = lambda *news: self._progressed(member, *news)
        call.beside().turn = self
        if ticket is not None:
            ticket.given_to(call, partial(self._refused, call))
        error = member.call.arguments_error
        if error is not None:
            call.unprepared = False
            call.refusal = _unreadable(call, error[:MAX_SHOWN])
        return call

    def _refused(self, call: Invocation) -> ToolResult | None:
        if self._judged is not None and self._doors.loop is not None:
            return self._doors.loop.refused(call, self._judged)
        if self.ended is None:
            return None
        if self._approval is not None:
            decision = self._asked.get(call)
            batch_id = self._approval.id
            waits = None if decision is None else needs_approval(call, batch_id, decision)
            return waits or waits_too(call, batch_id)
        if self._lost is not None and call in self._asked:
            return self._lost(call)
        return not_begun(call, *self.ended)

    def _too_many(self, member: Member) -> ToolResult | None:
        if member.position < MAX_CALLS:
            return None
        return self._failed(member, FailureCode.RATE_LIMITED, _TOO_MANY, "overloaded")

    def _instead(self, member: Member) -> ToolResult | None:
        """Say what comes before that a name cannot be called."""
        if member.position >= MAX_CALLS:
            return self._too_many(member)
        if self._truncated or member.call.truncated:
            reason = "arguments_truncated"
            return self._failed(member, FailureCode.INVALID_ARGUMENT, _CUT_OFF, reason)
        if self.ended is not None:
            reason = "aborted" if self.ended[0] is TurnStatus.ABORTED else "not_executed"
            return self._failed(member, FailureCode.EXECUTION_FAILED, _OVER, reason)
        return None

    def _cancelled_itself(self, member: Member) -> ToolResult:
        call = self._calls[member]
        return call.refuse(
            FailureCode.EXECUTION_FAILED,
            f"{call.tool.name} cancelled itself",
            reason="cancelled",
            layer="executor",
            may_have_run=call.started,
        )

    def _failed(self, member: Member, code: FailureCode, said: str, reason: str) -> ToolResult:
        return ToolResult.failed(
            code,
            said,
            call_id=member.call_id,
            tool=member.call.name[:MAX_SHOWN],
            reason=reason,
            layer=LAYER,
            may_have_run=False,
        )

    def _progressed(
        self, member: Member, report: Any, done: float | None, total: float | None
    ) -> None:
        # From a thread it may come when the call has just ended.
        if member.result is None:
            for each in (member, *member.twins):
                self._tell(each, "update", report=report, done=done, total=total)

    def _tell(self, member: Member, kind: Any, **fields: Any) -> None:
        if self._listeners:
            event = TurnEvent(
                kind=kind,
                call_id=member.call_id,
                tool=member.call.name,
                position=member.position,
                **fields,
            )
            told(self._listeners, event)

    def _put_in_order(self) -> None:
        if self._doors.loop is not None:
            self._doors.loop.settle(self._session, [aside.seen for aside in self._asides()])

    def _asides(self) -> list[Aside]:
        calls = (self._calls.get(member) for member in self._singles)
        return [call.beside() for call in calls if call is not None]

    def _outcome(self) -> TurnOutcome:
        results = tuple(member.result for member in self._members)
        status, reason = self._status(results)
        messages = [message for aside in self._asides() for message in aside.messages]
        return TurnOutcome(
            results=results,
            status=status,
            approval=self._approval,
            messages=tuple(messages),
            reason=reason,
        )

    def _status(self, results: Sequence[ToolResult]) -> tuple[TurnStatus, str]:
        if self.ended is not None:
            return self.ended
        for result in results:
            if result.failure is not None and result.failure.reason == "loop_detected":
                return TurnStatus.LOOP, result.failure.message
        if results and all(result.terminate is True for result in results):
            return TurnStatus.TERMINATED, "every result asked for the end"
        return TurnStatus.DONE, ""


def _check_listener(on_event: Callable[[TurnEvent], Any]) -> None:
    if not callable(on_event):
        raise TypeError(f"on_event must be a function; it is {on_event!r:.80}")
    if inspect.iscoroutinefunction(on_event):
        raise TypeError(
            "on_event must be a plain function; one that sends may put the events into an"
            " asyncio.Queue"
        )


_CUT_OFF = (
    "the provider cut this call off before it was complete; send it again with complete, shorter"
    " arguments"
)
_OVER = "the turn was ended before this call could begin"
_TOO_MANY = f"a turn may have {MAX_CALLS} calls, and this one is beyond"


def _unreadable(call: Invocation, error: str) -> ToolResult:
    return call.refuse(
        FailureCode.INVALID_ARGUMENT,
        f"the arguments of {call.tool.name} cannot be used: {error}",
        reason="arguments_not_json",
        layer="argument_check",
        issues=(Issue("", error, "parse"),),
    )
