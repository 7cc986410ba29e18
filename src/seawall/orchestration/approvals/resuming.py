"""Run what was approved: check everything again, take it, run each call once, keep the results.

    load ▶ approved? ▶ arguments, tools and rules as they were? ▶ take ▶ run ▶ finish

Up to `take` nothing is changed: what does not fit is refused, and a right try may follow.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple

from seawall.contract.approval import (
    ApprovalConflict,
    ApprovalNotFound,
    ApprovalStatus,
    Frozen,
)
from seawall.contract.errors import StoreUnavailable
from seawall.contract.failure import FailureCode
from seawall.contract.tool import ToolCall
from seawall.contract.turn import TurnOutcome, TurnStatus
from seawall.orchestration.approvals.checking import Checker, Given, unusable
from seawall.orchestration.approvals.entries import noting
from seawall.orchestration.approvals.refusals import (
    LAYER,
    in_doubt,
    not_taken,
    not_there,
    refusals,
    unreadable,
)
from seawall.orchestration.approvals.resumed_turn import ResumedTurn
from seawall.orchestration.approvals.transitions import (
    Begin,
    Finish,
    Look,
    Moved,
    NotBegun,
    Release,
    Renew,
    Settle,
    Take,
)
from seawall.orchestration.calls import Member
from seawall.pipeline.foreign import guarded, guarded_async, log
from seawall.pipeline.session import Session

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from seawall.contract.failure import Failure
    from seawall.contract.result import ToolResult
    from seawall.contract.turn import TurnEvent
    from seawall.orchestration.approvals.desk import Approvals
    from seawall.orchestration.approvals.grounds import Grounds
    from seawall.orchestration.approvals.kept import Envelope
    from seawall.orchestration.approvals.resumed_turn import Planned
    from seawall.orchestration.approvals.transitions import Transition
    from seawall.pipeline.invocation import Invocation


LEAVING_S = 1.0
"""How long a cancel is held up until the request is given back; that goes on in any case."""

_FINAL = frozenset({"approval_used", "aborted", "not_executed"})
"""Of calls that were not run and are not to be: another has them, or their turn was ended."""

_PLANS = 5
"""How often a resume looks anew when others change the request while it looks."""


class Resuming:
    """Resumes the approvals of one pipeline."""

    def __init__(self, grounds: Grounds, approvals: Approvals) -> None:
        self._grounds = grounds
        self._approvals = approvals
        self._checker = Checker(grounds, approvals)

    async def resume(
        self,
        approval_id: str,
        *,
        arguments: Mapping[str, Any] | None,
        session: Session | None,
        on_event: Callable[[TurnEvent], Any] | None,
    ) -> TurnOutcome:
        """Run an approved request, or say why not."""
        for _ in range(_PLANS - 1):
            try:
                return await self._resume_as_seen(approval_id, arguments, session, on_event)
            except Moved:
                continue  # others were at it meanwhile, so what was found out does not hold
        try:
            return await self._resume_as_seen(approval_id, arguments, session, on_event)
        except Moved as error:
            results = refusals(await self._approvals.frozen(approval_id), error.status)
            return TurnOutcome(results=results, reason=error.reason)

    async def _resume_as_seen(
        self,
        approval_id: str,
        arguments: Mapping[str, Any] | None,
        session: Session | None,
        on_event: Callable[[TurnEvent], Any] | None,
    ) -> TurnOutcome:
        """Plan and run; raises `Moved` if somebody changed the request between these."""
        try:
            frozen = await self._approvals.frozen(approval_id)
        except ApprovalNotFound as error:
            return TurnOutcome(results=(not_there(str(error)),), reason="not_found")
        envelope = await self._approvals.envelope(frozen)
        status = await self._approvals.status(frozen)
        if status is ApprovalStatus.UNKNOWN and frozen.finished is not None:
            return self._told(frozen, envelope)
        if not _may_be_taken(frozen, status):
            return self._refused(frozen, status)
        session = session or self._approvals.session_of(frozen) or _session_of(frozen)
        given = Given(arguments, frozen)
        plan = await guarded_async(
            f"what is kept of approval {frozen.id} cannot be used",
            lambda: self._checker.plan(frozen, envelope, given, session),
            lambda _: unusable(frozen),
        )
        if any(one.blocks for one in plan.values()):
            return await self._blocked(frozen, plan)
        run = _Run(self._grounds, self._approvals, frozen, envelope, plan)
        return await run.outcome(session, on_event)

    async def outcome(self, approval_id: str, *, read: bool = True) -> TurnOutcome:
        """Give the results of a request that was run; until then, that it waits."""
        try:
            frozen = await self._approvals.frozen(approval_id)
        except ApprovalNotFound as error:
            return TurnOutcome(results=(not_there(str(error)),), reason="not_found")
        status = await self._approvals.status(frozen)
        if frozen.finished is None and status is not ApprovalStatus.UNKNOWN:
            return await self._not_yet(frozen, status)
        told = self._told(frozen, await self._approvals.envelope(frozen))
        if read and frozen.finished is not None:
            await self._approvals.read(frozen)
        return told

    async def _not_yet(self, frozen: Frozen, status: ApprovalStatus) -> TurnOutcome:
        waits = (ApprovalStatus.PENDING, ApprovalStatus.APPROVED, ApprovalStatus.TAKEN)
        if status not in waits:
            return self._refused(frozen, status)
        batch = await self._approvals.show(frozen.id)
        return TurnOutcome(
            status=TurnStatus.WAITING, approval=batch, reason=f"approval {frozen.id} is {status}"
        )

    def _refused(self, frozen: Frozen, status: ApprovalStatus) -> TurnOutcome:
        results = refusals(frozen, status)
        return TurnOutcome(results=results, reason=_first_reason(results))

    async def _blocked(self, frozen: Frozen, plan: Mapping[int, Planned]) -> TurnOutcome:
        results = tuple(_left_as_it_is(frozen, at, plan) for at in range(len(frozen.calls)))
        reason = _first_reason(results)
        now = self._approvals.clock.wall()
        noted = noting("refused", at=now, why=reason)
        await guarded_async(
            "a refused resume could not be audited",
            lambda: self._approvals.store.change(frozen.id, Look(), noting=noted),
            lambda _: None,
        )
        return TurnOutcome(results=results, reason=reason)

    def _told(self, frozen: Frozen, envelope: Envelope) -> TurnOutcome:
        return TurnOutcome(
            results=tuple(
                kept_result(frozen, position, envelope) for position in range(len(frozen.calls))
            )
        )


def _may_be_taken(frozen: Frozen, status: ApprovalStatus) -> bool:
    if status is ApprovalStatus.APPROVED:
        return True
    begun = frozen.taken is not None and frozen.finished is None
    return begun and status in (ApprovalStatus.UNKNOWN, ApprovalStatus.EXPIRED)


def _left_as_it_is(frozen: Frozen, at: int, plan: Mapping[int, Planned]) -> ToolResult:
    """Say of a call what is true while its request stays as it is: it may have run before."""
    call = frozen.calls[at]
    if call.twin_of is not None and plan[at].kept is None:
        return _left_as_it_is(frozen, call.twin_of, plan)
    kept = plan[at].kept
    if kept is not None:
        return kept
    return in_doubt(call) if call.in_doubt else not_taken(call)


def _first_reason(results: tuple[ToolResult, ...]) -> str:
    found = (one.failure.reason for one in results if one.failure is not None)
    return next((reason for reason in found if reason != "not_executed"), "")


def _session_of(frozen: Frozen) -> Session:
    return Session(frozen.session_id, caller=frozen.caller)


def kept_result(frozen: Frozen, position: int, envelope: Envelope) -> ToolResult:
    """Give what is known of how a call ended."""
    call = frozen.calls[position]
    if call.twin_of is not None:
        return kept_result(frozen, call.twin_of, envelope)
    if call.ended is None and not call.refused:
        return in_doubt(call) if call.begun is not None else not_taken(call)
    found = guarded(
        f"a result of approval {frozen.id} cannot be read",
        lambda: envelope.result(position, "refusal" if call.refused else "result"),
        lambda _: None,
    )
    if found is not None:
        return found
    return in_doubt(call) if call.end == "outcome_unknown" else unreadable(call)


def _is_for_now(failure: Failure) -> bool:
    """Whether a call that was refused before it ran may run another time."""
    return failure.may_have_run is False and failure.reason not in _FINAL


class Due(NamedTuple):
    """Something that happened and is still to be stored."""

    what: str
    step: Transition
    payloads: Mapping[str, bytes] | None = None


class _Run:
    """One request while it is run."""

    def __init__(
        self,
        grounds: Grounds,
        approvals: Approvals,
        frozen: Frozen,
        envelope: Envelope,
        plan: Mapping[int, Planned],
    ) -> None:
        self._grounds = grounds
        self._approvals = approvals
        self._store = approvals.store
        self._clock = approvals.clock
        self._lease_s = approvals.settings.lease_s
        self._frozen = frozen
        self._envelope = envelope
        self._plan = plan
        # One process may try twice at once, so its name alone would not do.
        self._owner = f"{self._store.owner}/{grounds.new_key()[:12]}"
        self._settled: set[int] = set()
        self._beginning: dict[int, asyncio.Future[Frozen]] = {}
        self._left: set[int] = set()
        """Calls that were not run: a store was not there, or something refused them for now."""
        self._due: deque[Due] = deque()
        """What the store has still to take, in this order."""

    async def outcome(
        self, session: Session, on_event: Callable[[TurnEvent], Any] | None
    ) -> TurnOutcome:
        """Take it, run it, and keep what came of it."""
        gone = await self._store.is_gone(self._frozen.owner)
        now = self._clock.wall()
        take = Take(self._owner, self._frozen, now=now, lease_s=self._lease_s, gone=gone)
        try:
            self._frozen = await self._taken(take, now)
        except Moved:
            raise
        except ApprovalConflict as error:
            results = refusals(self._frozen, error.status)
            return TurnOutcome(results=results, reason=error.reason)
        beating = asyncio.ensure_future(self._beat())
        try:
            outcome = await self._ran(session, on_event)
            for position, result in enumerate(outcome.results):
                await self._settle_rest(position, result)
        except BaseException:
            self._due.append(Due("release", Release(self._owner)))
            tried = self._write_due(beating)
            with self._clock.limit(LEAVING_S):
                await asyncio.shield(tried)
            raise
        # What was not begun, as the store did not take that, is for the next who resumes.
        left = Release(self._owner) if self._left else None
        last = Finish(self._owner, now=self._clock.wall()) if left is None else left
        self._due.append(Due(last.name, last))
        await self._write_due(beating)
        return outcome

    async def _taken(self, take: Take, now: float) -> Frozen:
        """Take it; give it back if nobody waits for that any more, or nobody said that it is so."""
        noted = noting("resumed", at=now)
        taking = asyncio.ensure_future(self._store.change(self._frozen.id, take, noting=noted))
        try:
            return await asyncio.shield(taking)
        except (StoreUnavailable, asyncio.CancelledError):
            self._approvals.arrears.write(self._said("release"), lambda: self._given_back(taking))
            raise

    async def _given_back(self, taking: asyncio.Future[Frozen]) -> None:
        await asyncio.wait([taking])
        error = None if taking.cancelled() else taking.exception()
        if isinstance(error, StoreUnavailable) and not error.may_have_written:
            return
        await self._change(Release(self._owner))

    def _write_due(self, beating: asyncio.Future[None]) -> asyncio.Future[None]:
        """Write what is still to be written, however often that takes; done after the first try."""

        async def write() -> None:
            # What is still on its way comes first, or what takes it back would find nothing.
            if self._beginning:
                await asyncio.gather(*self._beginning.values(), return_exceptions=True)
            while self._due:
                due = self._due[0]
                if not await self._written(due.what, due.step, due.payloads):
                    raise StoreUnavailable(self._frozen.id, f"{due.what} waits")
                self._due.popleft()

        return self._approvals.arrears.write(self._said("its end"), write, beating.cancel)

    def _said(self, what: str) -> str:
        return f"approval {self._frozen.id}: {what} could not be stored yet"

    async def _ran(
        self, session: Session, on_event: Callable[[TurnEvent], Any] | None
    ) -> TurnOutcome:
        turn_id = self._grounds.new_key()
        with self._grounds.ending(turn_id, session) as ended:
            outcome = await self._turn(turn_id, session, on_event).run(self._frozen.execution)
            ended(outcome.status, outcome.reason)
        return outcome

    def _turn(
        self, turn_id: str, session: Session, on_event: Callable[[TurnEvent], Any] | None
    ) -> ResumedTurn:
        doors = self._grounds.doors._replace(loop=None, approvals=None)
        return ResumedTurn(
            doors,
            self._members(),
            session,
            turn_id=turn_id,
            truncated=False,
            on_event=on_event,
            plan=self._plan,
            books=self,
        )

    def _members(self) -> list[Member]:
        members: list[Member] = []
        for position, call in enumerate(self._frozen.calls):
            planned = self._plan[position]
            asked = ToolCall(call.tool, planned.arguments, call.call_id)
            member = Member(position, asked, call.call_id)
            if call.twin_of is not None:
                member.twin_of = members[call.twin_of]
            members.append(member)
        return members

    async def begin(self, call: Invocation, position: int, *, again: bool) -> ToolResult | None:
        """Write down that a call is about to run; what the store refuses is not run."""
        step = Begin(position, self._owner, now=self._clock.wall(), again=again)
        what = f"noting that {call.tool.name!r} begins failed"
        beginning = self._beginning[position] = asyncio.ensure_future(self._change(step))
        found = await guarded_async(what, lambda: asyncio.shield(beginning), lambda error: error)
        if isinstance(found, Frozen):
            return None
        lost = isinstance(found, ApprovalConflict)
        if not lost:
            self._leave(position)
        why = str(found) if lost else "that it begins could not be stored"
        return call.refuse(
            FailureCode.PERMISSION_DENIED,
            f"{call.tool.name} was not run: {why}",
            reason="approval_used" if lost else "gate_failed",
            layer=LAYER,
            may_have_run=False,
        )

    async def settle(self, position: int, result: ToolResult, *, ran: bool) -> None:
        """Keep how a call ended; later, if the store does not take it now.

        A refusal that ran nothing does not use the approval up: the call is for the next resume.
        """
        self._settled.add(position)
        failure = result.failure
        if position in self._left:
            return
        if failure is not None and not ran and _is_for_now(failure):
            beginning = self._beginning.get(position)
            if beginning is not None and not beginning.done():
                self._leave(position)  # that it begins is still on its way, and comes first
            else:
                await self._keep(self._left_due(position))
            return
        end = "ok" if failure is None else failure.reason
        kept = self._envelope.put_result(position, "result", result)
        step = Settle(position, self._owner, end, now=self._clock.wall())
        await self._keep(Due("settle", step, kept))

    async def _keep(self, due: Due) -> None:
        """Write what has happened to a call; later, if the store does not take it now."""
        try:
            if self._due or not await self._written(*due):
                self._due.append(due)
        except BaseException:
            self._due.append(due)  # whoever is cancelled here: it is known all the same
            raise

    def not_begun(self, position: int) -> None:
        """Take back that a cancelled call was about to run."""
        if position not in self._settled:
            self._leave(position)

    def _leave(self, position: int) -> None:
        """Let a call be as if it had not been begun, as nothing of it ran."""
        if position not in self._left:
            self._due.append(self._left_due(position))

    def _left_due(self, position: int) -> Due:
        self._left.add(position)
        step = NotBegun(position, self._owner, self._frozen.calls[position])
        return Due("not begun", step)

    async def _settle_rest(self, position: int, result: ToolResult) -> None:
        """Keep the ends that came without the call's own doing."""
        call = self._frozen.calls[position]
        is_known = call.refused or call.twin_of is not None or call.ended is not None
        if not is_known and position not in self._settled:
            await self.settle(position, result, ran=False)

    async def _change(
        self, step: Transition, payloads: Mapping[str, bytes] | None = None
    ) -> Frozen:
        return await self._store.change(self._frozen.id, step, payloads)

    async def _written(
        self, what: str, step: Transition, payloads: Mapping[str, bytes] | None = None
    ) -> bool:
        """Write what has happened already; False if the store did not take it, so that it waits."""
        said = f"approval {self._frozen.id}: {what} could not be stored"

        async def write() -> bool:
            try:
                await self._change(step, payloads)
            except (ApprovalConflict, ApprovalNotFound) as error:
                log.warning("%s: %s", said, error)  # and never will be
            return True

        done: Any = await guarded_async(said, write, lambda _: False)
        return done is True

    async def _beat(self) -> None:
        """Say again and again that it is still run."""
        while True:
            await self._clock.sleep(self._lease_s / 3)
            step = Renew(self._owner, now=self._clock.wall(), lease_s=self._lease_s)
            if not await self._written("renewing its lease", step):
                log.warning("approval %s may be taken over by another", self._frozen.id)
