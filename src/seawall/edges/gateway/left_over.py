"""What was approved and is run by nobody: taken up, whoever approved it and whoever was to run it.

A worker may end between the answer to whoever approves and the run; a terminal approves and runs
nothing. Only what waits because of a call at a gateway is taken up. Who takes it is settled in the
state, so it runs once however many gateways look.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from seawall.contract.approval import ApprovalStatus
from seawall.edges.gateway.sessions import FRONT
from seawall.pipeline.foreign import guarded_async

if TYPE_CHECKING:
    from collections.abc import Callable

    from seawall.contract.approval import Frozen
    from seawall.orchestration.approvals.desk import Approvals

EVERY_S = 3.0
"""Between two looks."""
A_LOOK = 200
"""Requests of one look; the next goes on after them, until all were seen."""
GRACE_S = 2.0
"""How long whoever took the answer has to begin, before others do."""
FIRST_WAIT_S = 10.0
MAX_WAIT_S = 600.0
"""Between two tries of one that stays as it is: its tool may be away, or is not what it was."""


class LeftOver:
    """Looks now and then, from the start on; `take_up` says whether it began to run one."""

    def __init__(self, desk: Approvals, take_up: Callable[[Frozen], bool]) -> None:
        self._desk = desk
        self._take_up = take_up
        self._before: tuple[float, str] | None = None
        self._tried: dict[str, tuple[float, float]] = {}
        """When one may be tried again, and the wait after that; of those of the current round."""
        self._met: set[str] = set()

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            await guarded_async("looking what was left failed", self.look, lambda _: None)
            await self._desk.clock.sleep(EVERY_S)

    async def look(self) -> None:
        """Look once, at the next ones."""
        page = await self._desk.store.page(closed=False, before=self._before, limit=A_LOOK)
        self._before = (page[-1].created, page[-1].id) if len(page) == A_LOOK else None
        for frozen in page:
            if frozen.front == FRONT:
                self._met.add(frozen.id)
                if await self._is_left(frozen):
                    self._try(frozen)
        if self._before is None:
            self._tried = {one: self._tried[one] for one in self._met & self._tried.keys()}
            self._met.clear()

    async def _is_left(self, frozen: Frozen) -> bool:
        decided = max((call.decided or 0.0 for call in frozen.calls), default=0.0)
        if self._desk.clock.wall() - decided < GRACE_S:
            return False
        status = await self._desk.status(frozen)
        begun = frozen.taken is not None and frozen.finished is None
        return status is ApprovalStatus.APPROVED or (
            begun and status in (ApprovalStatus.UNKNOWN, ApprovalStatus.EXPIRED)
        )

    def _try(self, frozen: Frozen) -> None:
        now = self._desk.clock.now()
        at, wait_s = self._tried.get(frozen.id, (now, FIRST_WAIT_S))
        if now >= at and self._take_up(frozen):
            self._tried[frozen.id] = now + wait_s, min(wait_s * 2, MAX_WAIT_S)
