"""The same call asks once: whoever makes it again gets the request that is there already.

The same is the same tool with the same arguments, whichever session makes the call. A request whose
run ended unknown is given too, until whoever makes the call was told so; then the call may be asked
about anew, and the new request says what became of the earlier one.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, NamedTuple

from seawall.contract.approval import ApprovalConflict, ApprovalStatus, Frozen
from seawall.contract.decision import Decision
from seawall.contract.errors import SealBroken
from seawall.contract.sentences import joined
from seawall.orchestration.approvals.binding import definition_of, names_of, same_digest

if TYPE_CHECKING:
    from seawall.orchestration.approvals.desk import Approvals
    from seawall.orchestration.waiting import Make
    from seawall.pipeline.invocation import Invocation

PAGE = 1_000
"""Records that are looked at together."""

MAX_NOTED = 3
"""Earlier runs that a new request names."""


class Known(NamedTuple):
    """A request for a call, and how far it is."""

    frozen: Frozen
    status: ApprovalStatus


class Sharing:
    """Finds or makes the request for a call, alone: of one pipeline, on one event loop."""

    def __init__(self, approvals: Approvals) -> None:
        self._approvals = approvals
        self._alone = asyncio.Lock()

    async def request(self, call: Invocation, decision: Decision, make: Make) -> str:
        """Give the id of the one request for this call; what the store raises is raised."""
        async with self._alone:
            known = await self.known(call, closed=True)
            found = next(filter(_is_untold, known), None) or next(filter(_is_live, known), None)
            if found is not None:
                return found.frozen.id
            made = await make(_noted(decision, known))
            return await self._agreed(call, made)

    async def known(self, call: Invocation, *, closed: bool) -> list[Known]:
        """Give the requests for this call that something may come of, or that ended unknown."""
        found: list[Known] = []
        before: tuple[float, str] | None = None
        store = self._approvals.store
        alike = names_of(store.box, call.tool.name, call.arguments)
        while True:
            page = await store.page(closed=closed, before=before, limit=PAGE, alike=alike)
            for frozen in page:
                status = await self._status_if_same(frozen, call)
                if status is not None:
                    found.append(Known(frozen, status))
            if len(page) < PAGE:
                return found
            before = page[-1].created, page[-1].id

    async def _status_if_same(self, frozen: Frozen, call: Invocation) -> ApprovalStatus | None:
        if len(frozen.calls) != 1 or frozen.calls[0].tool != call.tool.name:
            return None
        kept = frozen.calls[0]
        if kept.origin != call.tool.origin:
            return None  # a tool of this name, of another server
        status = await self._approvals.status(frozen)
        if status in _WAITING and kept.definition != definition_of(call.tool):
            return None  # it was asked about another tool of this name, and lets this one not run
        if status not in _LIVE and status is not ApprovalStatus.UNKNOWN and frozen.told is None:
            return None
        envelope = await self._approvals.envelope(frozen)
        try:
            is_same = same_digest(envelope.digest(kept.tool, call.arguments), kept.digest)
        except SealBroken:
            return None  # nor could it be run, and calls of its tool must not fail over it
        return status if is_same else None

    async def _agreed(self, call: Invocation, made: str) -> str:
        """Keep one request, if another process asked at the same time: all keep the same."""
        live = [one for one in await self.known(call, closed=False) if _is_live(one)]
        waiting = [one for one in live if one.status is ApprovalStatus.PENDING]
        further = [one for one in live if one.status is not ApprovalStatus.PENDING]
        kept = min(further or waiting, key=_place, default=None)
        if kept is None:
            return made
        for other in waiting:
            if other is not kept:
                with contextlib.suppress(ApprovalConflict):
                    await self._approvals.supersede(other.frozen.id, kept.frozen.id)
        return kept.frozen.id


_WAITING = frozenset({ApprovalStatus.PENDING, ApprovalStatus.APPROVED})
_LIVE = _WAITING | {ApprovalStatus.TAKEN}


def _is_live(known: Known) -> bool:
    return known.status in _LIVE


def _is_untold(known: Known) -> bool:
    return known.status is ApprovalStatus.UNKNOWN and known.frozen.told is None


def _place(known: Known) -> tuple[float, str]:
    return known.frozen.created, known.frozen.id


def _noted(decision: Decision, known: list[Known]) -> Decision:
    """Say to whoever decides that the call may have taken effect before."""
    ids = [one.frozen.id for one in known if one.frozen.told is not None][:MAX_NOTED]
    if not ids:
        return decision
    said = f"an earlier run of the same call ended unknown and may have taken effect: {ids[0]}"
    return Decision(decision.action, joined((", ".join([said, *ids[1:]]), decision.reason)))
