"""A store of somebody's own, no step of which waits without an end.

A state bounds its own transactions. Of a store that was given nothing is known: what it does not
answer in time is given up, and told as `StoreUnavailable`, which refuses what was about to be done.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

from seawall.contract.errors import StoreUnavailable

if TYPE_CHECKING:
    from collections.abc import Awaitable, Mapping, Sequence
    from typing import Any

    from seawall.contract.approval import Frozen, WaitingRoom
    from seawall.contract.audit import AuditEntry
    from seawall.orchestration.approvals.store import ApprovalStore, Box, Noting
    from seawall.orchestration.approvals.transitions import Transition
    from seawall.pipeline.clock import Clock

T = TypeVar("T")


class BoundedStore:
    """The store, each step of which ends within `timeout_s`. One that was given up may write."""

    def __init__(self, store: ApprovalStore, clock: Clock, timeout_s: float) -> None:
        self._store = store
        self._clock = clock
        self._timeout_s = timeout_s
        self._late: set[str] = set()
        """Records that were given up while they were added, and may still come."""

    @property
    def box(self) -> Box | None:
        """Its seal."""
        return self._store.box

    @property
    def owner(self) -> str:
        """Its name for this process."""
        return self._store.owner

    async def add(
        self,
        frozen: Frozen,
        payloads: Mapping[str, bytes],
        entries: Sequence[AuditEntry] = (),
        room: WaitingRoom | None = None,
    ) -> None:
        """Keep a new one."""
        adding = asyncio.ensure_future(self._store.add(frozen, payloads, entries, room))
        self._late.add(frozen.id)
        adding.add_done_callback(lambda _: self._late.discard(frozen.id))
        await self._within(adding, writes=True)

    async def load(self, batch_id: str) -> Frozen | None:
        """Give a record."""
        return await self._within(self._store.load(batch_id))

    async def payloads(self, batch_id: str) -> dict[str, bytes]:
        """Give what is kept beside it."""
        return await self._within(self._store.payloads(batch_id))

    async def page(
        self,
        *,
        closed: bool,
        before: tuple[float, str] | None,
        limit: int,
        alike: Sequence[str] | None = None,
    ) -> list[Frozen]:
        """Give records."""
        if alike is None:  # a store that nobody asks so need not know of it
            page = self._store.page(closed=closed, before=before, limit=limit)
        else:
            page = self._store.page(closed=closed, before=before, limit=limit, alike=alike)
        return await self._within(page)

    async def change(
        self,
        batch_id: str,
        step: Transition,
        payloads: Mapping[str, bytes] | None = None,
        noting: Noting | None = None,
    ) -> Frozen:
        """Apply a step; to a record that may still come, not before that is known."""
        if batch_id in self._late:
            raise self._no_answer("it is still being added", may_have_written=False)
        changed = self._store.change(batch_id, step, payloads, noting)
        return await self._within(changed, writes=True)

    async def prune(self, *, read_before: float, closed_before: float) -> int:
        """Remove what is old."""
        removed = self._store.prune(read_before=read_before, closed_before=closed_before)
        return await self._within(removed, writes=True)

    async def is_gone(self, owner: str) -> bool:
        """Whether a process has ended."""
        return await self._within(self._store.is_gone(owner))

    async def _within(self, step: Awaitable[T], *, writes: bool = False) -> T:
        """Run one step; it is cancelled when time is up, but not waited for any more."""
        task = asyncio.ensure_future(step)
        task.add_done_callback(_seen)
        rung, alarm = self._clock.alarm(self._timeout_s)
        try:
            await asyncio.wait((task, rung), return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                return task.result()
        finally:
            alarm.cancel()
            rung.cancel()
            task.cancel()
        said = f"no answer within {self._timeout_s:g} s"
        raise self._no_answer(said, may_have_written=writes)

    def _no_answer(self, said: str, *, may_have_written: bool) -> StoreUnavailable:
        name = type(self._store).__name__
        return StoreUnavailable(name, said, may_have_written=may_have_written)


def _seen(task: asyncio.Future[Any]) -> None:
    """Take note of what nobody waits for any more."""
    if not task.cancelled():
        task.exception()
