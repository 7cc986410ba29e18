"""Where a person, or a program for them, sees what waits and answers it.

    for batch in await pipeline.approvals.list():
        await pipeline.approvals.approve(batch.id, by="ada")

An id is that of a request, for all its calls, or that of one call of it.
"""

from __future__ import annotations

import asyncio
import math
from functools import partial
from typing import TYPE_CHECKING, Any

from seawall.contract.approval import (
    LIVE,
    ApprovalBatch,
    ApprovalConflict,
    ApprovalNotFound,
    ApprovalPage,
    ApprovalsFull,
    ApprovalStatus,
    Frozen,
    WaitingRoom,
    batch_of,
    item_id,
)
from seawall.contract.decision import Action, PendingApproval
from seawall.orchestration.approvals.arrears import Arrears
from seawall.orchestration.approvals.bounded import BoundedStore
from seawall.orchestration.approvals.entries import noting
from seawall.orchestration.approvals.freezing import Freezer
from seawall.orchestration.approvals.kept import Envelope
from seawall.orchestration.approvals.settings import ApprovalSettings
from seawall.orchestration.approvals.transitions import (
    Decide,
    Expire,
    Read,
    Supersede,
    Tell,
    Withdraw,
    conflict,
    is_untouched,
)
from seawall.orchestration.approvals.withdrawing import Withdrawing, has_loop
from seawall.pipeline.foreign import guarded_async, log
from seawall.stores.approvals import approvals_in
from seawall.stores.memory_approvals import MemoryApprovals
from seawall.stores.plain_text import plain

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from seawall.contract.annotations import Risk
    from seawall.contract.tool import Tool
    from seawall.orchestration.approvals.store import ApprovalStore
    from seawall.orchestration.approvals.transitions import Transition
    from seawall.orchestration.waiting import Shares, Waiting
    from seawall.pipeline.chance import Chance
    from seawall.pipeline.clock import Clock
    from seawall.pipeline.session import Session
    from seawall.stores.state import State

MAX_SESSIONS = 1_000
MAX_LISTED = 1_000
MAX_COUNTED = 1_000
"""Requests beyond a page that are counted."""
MAX_REASON = 1_000
MAX_BY = 200
LEAVING_S = 1.0
"""How long a cancel is held up until a request is taken back; that goes on in any case."""
LOOK_S = 1.0
"""How often at most all that wait are looked at while new ones are made."""
SWEEP_S = 60.0
"""How often at most old ones are removed while new ones are made."""


class Approvals:
    """The approvals of a pipeline. What its store raises is raised: nothing was changed then."""

    def __init__(
        self,
        settings: ApprovalSettings | None,
        clock: Clock,
        chance: Chance,
        *,
        state: State | None = None,
        listeners: Sequence[Callable[..., Any]] = (),
        risk_of: Callable[[Tool], Risk] = lambda tool: tool.effective_risk,
        room: Callable[[], WaitingRoom] = WaitingRoom,
    ) -> None:
        self.settings = settings or ApprovalSettings()
        self.enabled = settings is not None or state is not None
        """Whether calls wait at all; else whoever may not run is refused at once."""
        self.store = _store_of(self.settings, state, clock)
        self.clock = clock
        self.arrears = Arrears(clock)
        """What the store did not take and still has to."""
        self.withdrawing = Withdrawing(self.store, clock, self.arrears, self._looked_again)
        """Requests that nobody waits for."""
        own = self.settings.on_approval
        self._listeners = (*(() if own is None else (own,)), *listeners)
        self._waiting: tuple[int, float] = (0, 0.0)
        """As many as there were, and when the oldest was made, when last looked."""
        self._since: dict[str, float] = {}
        """Those made here that it could not see, and when."""
        self._looks = self._newest_look = 0
        self._look_again_at = 0.0
        self._freezer = Freezer(self.store, self.settings, clock, chance, risk_of, room)
        self._sessions: dict[str, Session] = {}
        self._swept = clock.now()
        self.new_id = self._freezer.new_id
        self.sharing: Shares | None = None
        """Lets a call made again share its request; None: each call has its own."""

    def listen(self, listener: Callable[..., Any]) -> None:
        """Tell one more of each new request, as `on_approval` is told."""
        self._listeners = (*self._listeners, listener)

    def backlog(self) -> tuple[int, float]:
        """How many requests wait for an answer, and how long the oldest has.

        One that comes is counted. All are looked at when one is answered here, by `refresh`, and
        when one comes, but for that at most every second, as there may be many.
        """
        count, oldest = self._waiting
        since = tuple(self._since.values())
        if not count:
            oldest = min(since, default=0.0)
        count += len(since)
        return count, max(self.clock.wall() - oldest, 0.0) if count else 0.0

    async def refresh(self) -> None:
        """Look again what waits, as other processes may have made or answered requests."""
        self._looks = look = self._looks + 1
        now, before = self.clock.wall(), tuple(self._since)
        page = await self.store.page(closed=False, before=None, limit=MAX_LISTED)
        if look < self._newest_look:
            return  # another one began later and was faster
        self._newest_look, self._look_again_at = look, self.clock.now() + LOOK_S
        waiting = [one.created for one in page if one.status(now) is ApprovalStatus.PENDING]
        self._waiting = (len(waiting), min(waiting, default=0.0))
        for seen in (*before, *(one.id for one in page)):
            self._since.pop(seen, None)

    async def _one_more(self, frozen: Frozen) -> None:
        self._since[frozen.id] = frozen.created
        if len(self._since) > MAX_LISTED:  # as many as are looked at
            del self._since[next(iter(self._since))]
        if self.clock.now() >= self._look_again_at:
            await self._looked_again()

    async def list(
        self,
        status: ApprovalStatus | str | None = ApprovalStatus.PENDING,
        *,
        session_id: str | None = None,
        limit: int = 100,
    ) -> tuple[ApprovalBatch, ...]:
        """Give the newest requests of this status, or of any."""
        page = await self._page(status, session_id, limit, after=None, count=0)
        return page.approvals

    async def page(
        self,
        status: ApprovalStatus | str | None = ApprovalStatus.PENDING,
        *,
        session_id: str | None = None,
        limit: int = 100,
        after: str | None = None,
    ) -> ApprovalPage:
        """Give a part of them, the newest or those `after` another part, and how many are left.

        At most 1,000 of those left are counted. Raises ValueError if `after` is of no such part.
        """
        return await self._page(status, session_id, limit, after, MAX_COUNTED)

    async def _page(
        self,
        status: ApprovalStatus | str | None,
        session_id: str | None,
        limit: int,
        after: str | None,
        count: int,
    ) -> ApprovalPage:
        wanted = None if status is None else ApprovalStatus(status)
        limit = min(max(limit, 1), MAX_LISTED)
        before = None if after is None else _place_of(after)
        fitting = self._fitting(wanted, session_id, before, limit + count)
        found = [frozen async for frozen in fitting]
        shown = found[:limit]
        return ApprovalPage(
            approvals=tuple([await self._seen(frozen) for frozen in shown]),
            more=len(found) - len(shown),
            after=_after(shown[-1]) if len(found) > limit else None,
        )

    async def _fitting(
        self,
        status: ApprovalStatus | None,
        session_id: str | None,
        before: tuple[float, str] | None,
        limit: int,
    ) -> AsyncIterator[Frozen]:
        left = limit
        while True:
            page = await self.store.page(closed=status not in LIVE, before=before, limit=limit)
            for frozen in page:
                if await self._fits(frozen, status, session_id):
                    yield frozen
                    left -= 1
                    if not left:
                        return
            if len(page) < limit:
                return
            before = page[-1].created, page[-1].id

    async def _fits(
        self, frozen: Frozen, status: ApprovalStatus | None, session_id: str | None
    ) -> bool:
        if session_id is not None and frozen.session_id != session_id:
            return False
        return status is None or await self.status(frozen) is status

    async def show(self, approval_id: str, *, whole: bool = False) -> ApprovalBatch:
        """Give one request, with all of its arguments or of long ones a part.

        Raises `ApprovalNotFound`.
        """
        frozen = await self.frozen(approval_id)
        return _batch(frozen, await self.envelope(frozen), await self.status(frozen), whole=whole)

    async def approve(self, approval_id: str, *, by: str = "", reason: str = "") -> ApprovalBatch:
        """Allow one call, or all of a request that have no answer yet.

        Nothing runs because of it: that is for `resume`. Raises `ApprovalConflict` if it was
        answered before, or too late.
        """
        return await self._decided(approval_id, Action.ALLOW, "approved", by, reason)

    async def deny(self, approval_id: str, reason: str = "", *, by: str = "") -> ApprovalBatch:
        """Deny one call, or all without an answer; the others of the turn will not run either."""
        return await self._decided(approval_id, Action.DENY, "denied", by, reason)

    async def withdraw(self, approval_id: str, *, by: str = "") -> ApprovalBatch:
        """Take a whole request back, approved or not, as long as nothing of it was run."""
        batch_id, _ = batch_of(approval_id)
        now = self.clock.wall()
        step = Withdraw(now=now, by=by[:MAX_BY])
        return await self._changed(batch_id, step, "withdrawn", by, "", now)

    async def supersede(self, approval_id: str, instead: str) -> None:
        """Take back a request that waits, as one for the same call is kept `instead`."""
        now = self.clock.wall()
        why = f"{instead} is kept for the same call"
        await self._changed(approval_id, Supersede(instead, now=now), "withdrawn", "", why, now)

    async def expire(self, approval_id: str | None = None) -> int:
        """End the wait of one request now, or write down all whose time is over; how many.

        The second also removes what is kept no longer. Nothing depends on its being called:
        times that have passed count by themselves.
        """
        if approval_id is not None:
            now = self.clock.wall()
            step = Expire(now=now, at_once=True)
            await self._changed(batch_of(approval_id)[0], step, "expired", "", "", now)
            return 1
        return await self._sweep()

    async def frozen(self, approval_id: str) -> Frozen:
        """Give the record itself; raises `ApprovalNotFound`."""
        batch_id, position = batch_of(approval_id)
        found = await self.store.load(batch_id)
        if found is None or not _has(found, position):
            raise ApprovalNotFound(approval_id)
        return found

    async def kept(self, approval_id: str) -> Frozen:
        """Give the record that counts: of a request that was one too many, the one kept instead."""
        frozen = await self.frozen(approval_id)
        while frozen.instead:
            frozen = await self.frozen(frozen.instead)
        return frozen

    async def envelope(self, frozen: Frozen) -> Envelope:
        """Give what is kept beside a record."""
        payloads = await self.store.payloads(frozen.id)
        return Envelope(frozen.id, self.store.box, payloads)

    async def freeze(
        self,
        batch_id: str,
        waiting: Sequence[Waiting],
        session: Session,
        *,
        execution: str | None = None,
        state: Any = None,
    ) -> ApprovalBatch:
        """Store a turn, then announce it; what the store raises is raised."""
        storing = asyncio.ensure_future(
            self._freezer.freeze(batch_id, waiting, session, execution=execution, state=state)
        )
        try:
            return await self._frozen(batch_id, storing, session)
        except asyncio.CancelledError:
            tried = self.take_back(batch_id, waiting, storing)
            if tried is not None:
                with self.clock.limit(LEAVING_S):
                    await asyncio.shield(tried)
            raise
        except ApprovalsFull:
            raise  # nothing is there to be taken back
        except BaseException:
            self.take_back(batch_id, waiting, storing)
            raise

    async def _frozen(
        self,
        batch_id: str,
        storing: asyncio.Future[tuple[Frozen, Envelope]],
        session: Session,
    ) -> ApprovalBatch:
        frozen, envelope = await asyncio.shield(storing)
        self._remember(batch_id, session)
        batch = _batch(frozen, envelope, frozen.status(self.clock.wall()))
        await self._announced(batch)
        await self._swept_now_and_then()
        await self._one_more(frozen)
        return batch

    def take_back(
        self,
        batch_id: str,
        waiting: Sequence[Waiting] = (),
        storing: asyncio.Future[Any] | None = None,
    ) -> asyncio.Future[None] | None:
        """See to it that nobody is asked about a turn that does not wait after all.

        Done after the first try; it goes on until the store has answered. None if its event loop
        is over, and with it all that could be done.
        """
        if not has_loop():
            return None
        self._sessions.pop(batch_id, None)
        return self.withdrawing.begin(batch_id, _key_of(waiting), storing)

    def session_of(self, frozen: Frozen) -> Session | None:
        """The session that made it, if that was in this process and not long ago."""
        return self._sessions.get(frozen.id)

    async def read(self, frozen: Frozen) -> None:
        """Write down that the results were fetched."""
        await self.store.change(frozen.id, Read(now=self.clock.wall()))
        self._sessions.pop(frozen.id, None)

    async def told(self, frozen: Frozen) -> None:
        """Write down that whoever made the call again knows that its outcome is not known."""
        await self.store.change(frozen.id, Tell(now=self.clock.wall()))

    async def status(self, frozen: Frozen) -> ApprovalStatus:
        """How far a record is now; whoever is seen to be gone holds nothing."""
        status = frozen.status(self.clock.wall())
        if status is ApprovalStatus.TAKEN and await self.store.is_gone(frozen.owner):
            return frozen.status(max(self.clock.wall(), frozen.lease_until or 0))
        return status

    async def _decided(
        self, approval_id: str, action: Action, event: str, by: str, reason: str
    ) -> ApprovalBatch:
        batch_id, position = batch_of(approval_id)
        if position is not None:
            await self.frozen(approval_id)
        if batch_id in self.withdrawing:
            frozen, why = await self.frozen(batch_id), "it is being withdrawn"
            raise conflict(frozen, ApprovalStatus.WITHDRAWN, "cannot be answered", why)
        now = self.clock.wall()
        step = Decide(position, action, now=now, by=by[:MAX_BY], reason=reason[:MAX_REASON])
        return await self._changed(batch_id, step, event, by, reason, now)

    async def _changed(
        self, batch_id: str, step: Transition, event: str, by: str, why: str, now: float
    ) -> ApprovalBatch:
        noted = noting(event, at=now, by=by[:MAX_BY], why=why)
        changed = await self.store.change(batch_id, step, noting=noted)
        await self._looked_again()
        return await self._seen(changed)

    async def _looked_again(self) -> None:
        await guarded_async("looking what waits failed", self.refresh, lambda _: None)

    async def _announced(self, batch: ApprovalBatch) -> None:
        for listener in self._listeners:
            with self.clock.limit(self.settings.announce_within_s) as limit:
                await guarded_async(
                    "announcing an approval raised", partial(listener, batch), lambda _: None
                )
            if limit.expired:
                log.warning("announcing approval %s took too long", batch.id)

    def _remember(self, batch_id: str, session: Session) -> None:
        while len(self._sessions) >= MAX_SESSIONS:
            del self._sessions[next(iter(self._sessions))]
        self._sessions[batch_id] = session

    async def _swept_now_and_then(self) -> None:
        if self.clock.now() - self._swept >= SWEEP_S:
            await guarded_async("removing old approvals failed", self._sweep, lambda _: 0)

    async def _sweep(self) -> int:
        self._swept = self.clock.now()
        now = self.clock.wall()
        settings = self.settings
        await self.store.prune(
            read_before=now - settings.keep_read_s, closed_before=now - settings.keep_closed_s
        )
        written = 0
        for frozen in await self.store.page(closed=False, before=None, limit=MAX_LISTED):
            if frozen.status(now) is ApprovalStatus.EXPIRED and is_untouched(frozen):
                written += await self._expired(frozen)
        return written

    async def _expired(self, frozen: Frozen) -> int:
        try:
            now = self.clock.wall()
            await self.store.change(frozen.id, Expire(now=now), noting=noting("expired", at=now))
        except (ApprovalConflict, ApprovalNotFound):
            return 0  # somebody was faster
        return 1

    async def _seen(self, frozen: Frozen) -> ApprovalBatch:
        return _batch(frozen, await self.envelope(frozen), await self.status(frozen))


def _store_of(settings: ApprovalSettings, state: State | None, clock: Clock) -> ApprovalStore:
    given = settings.store
    if given is None:  # an empty store may be a false one
        return approvals_in(state)
    if isinstance(given, MemoryApprovals):
        return given  # it never waits
    return BoundedStore(given, clock, settings.store_timeout_s)


def _key_of(waiting: Sequence[Waiting]) -> tuple[str, str] | None:
    call = waiting[0].call if len(waiting) == 1 else None
    if call is None or call.idempotency_key is None:
        return None
    return call.session.caller, call.idempotency_key


def _after(frozen: Frozen) -> str:
    return f"{frozen.created!r}_{frozen.id}"


def _place_of(after: str) -> tuple[float, str]:
    created, found, approval_id = after.partition("_")
    place = float(created) if found else math.nan
    if not math.isfinite(place):
        raise ValueError("is of no part of the requests; use the `after` of an earlier part")
    return place, plain(approval_id)


def _batch(
    frozen: Frozen, envelope: Envelope, status: ApprovalStatus, *, whole: bool = False
) -> ApprovalBatch:
    state = envelope.state()
    approvals = tuple(
        _item(frozen, position, envelope, state, whole=whole)
        for position, call in enumerate(frozen.calls)
        if call.asked
    )
    return ApprovalBatch(
        id=frozen.id,
        status=status,
        created=frozen.created,
        expires=frozen.expires,
        session_id=frozen.session_id,
        caller=frozen.caller,
        calls=len(frozen.calls),
        approvals=approvals,
        state=state,
        owner=frozen.owner,
        lease_until=frozen.lease_until,
    )


def _has(frozen: Frozen, position: int | None) -> bool:
    if position is None:
        return True
    return 0 <= position < len(frozen.calls) and frozen.calls[position].asked


def _item(
    frozen: Frozen, position: int, envelope: Envelope, state: Any, *, whole: bool
) -> PendingApproval:
    call = frozen.calls[position]
    arguments, is_cut = envelope.shown(position), envelope.is_cut(position)
    if whole and is_cut:
        arguments, is_cut = envelope.whole(position)
    return PendingApproval(
        id=item_id(frozen.id, position),
        call_id=call.call_id,
        tool=call.tool,
        risk=call.risk,
        reason=envelope.reason(position),
        created=frozen.created,
        expires=frozen.expires,
        decision=call.decision,
        deny_reason=call.deny_reason if call.decision is Action.DENY else "",
        decided=call.decided,
        decided_by=call.decided_by,
        state=state,
        arguments=arguments,
        arguments_cut=is_cut,
        digest=call.digest,
        session_id=frozen.session_id,
        caller=frozen.caller,
        batch_id=frozen.id,
        origin=call.origin,
    )
