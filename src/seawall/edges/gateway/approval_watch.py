"""What other processes do to approvals, noticed while somebody looks: by asking the state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from seawall.pipeline.foreign import guarded_async

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from seawall.contract.approval import ApprovalBatch, Frozen
    from seawall.orchestration.approvals.desk import Approvals

EVERY_S = 0.5
MAX_WATCHED = 1_000

_Seen = tuple[Any, ...]


class ApprovalWatch:
    """Compares what waits with what was known, and tells what is new or has changed.

    What this process has told already is noted, and not told again.
    """

    def __init__(
        self,
        desk: Approvals,
        changed: Callable[[ApprovalBatch], Awaitable[None]],
    ) -> None:
        self._desk = desk
        self._changed = changed
        self._known: dict[str, _Seen] | None = None
        """What was last seen; None until something was looked at."""

    def note(self, batch: ApprovalBatch) -> None:
        """This process told of it as it is now."""
        if self._known is not None:
            decisions = tuple(one.decision for one in batch.approvals)
            self._known[batch.id] = (batch.status, decisions)

    def forget(self, batch_id: str) -> None:
        """This process told how it ended."""
        if self._known is not None:
            self._known.pop(batch_id, None)

    async def run(self) -> None:
        """Look until cancelled; what is there at the first look is no news."""
        self._known = None
        try:
            while True:
                await guarded_async("looking what others do failed", self._look, lambda _: None)
                await self._desk.clock.sleep(EVERY_S)
        finally:
            self._known = None

    async def _look(self) -> None:
        now = self._desk.clock.wall()
        page = await self._desk.store.page(closed=False, before=None, limit=MAX_WATCHED)
        seen = {one.id: _seen(one, now) for one in page}
        before, self._known = self._known, seen
        if before is None:
            return
        for batch_id in [*reversed(seen), *(one for one in before if one not in seen)]:
            if seen.get(batch_id) != before.get(batch_id):
                await self._changed(await self._desk.show(batch_id))


def _seen(frozen: Frozen, now: float) -> _Seen:
    decisions = tuple(call.decision for call in frozen.calls if call.asked)
    return (frozen.status(now), decisions)
