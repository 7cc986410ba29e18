"""Which approval a call under an `Idempotency-Key` waits for: asked again, it asks nobody anew.

The answer to a key whose call had to wait is what became of its approval: that it waits, that it
runs, its result, or that it was denied or has expired. Known in memory, and with a durable state
to all who use that.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from seawall.contract.approval import LIVE, ApprovalConflict, ApprovalNotFound, ApprovalStatus
from seawall.contract.effect import ANSWERS, EffectState, Intent, Settled
from seawall.contract.errors import StoreUnavailable
from seawall.contract.failure import FailureCode
from seawall.contract.result import ToolResult
from seawall.edges.gateway.answers import Answer, answer_of, approval_of, refusal
from seawall.edges.gateway.kept_answers import KEYS_OF_A_CLIENT, REPLAYED, conflict, full
from seawall.edges.gateway.state_answers import Held, unavailable
from seawall.pipeline.foreign import log

if TYPE_CHECKING:
    from seawall.contract.span import Digest
    from seawall.edges.gateway.kept_answers import Key
    from seawall.orchestration.pipeline import Pipeline
    from seawall.stores.sql_ledger import SqlLedger

_SAID = {
    ApprovalStatus.PENDING: "waits for a person's approval",
    ApprovalStatus.APPROVED: "was approved, and is to be run",
    ApprovalStatus.TAKEN: "was approved, and runs",
}


class _Entry(NamedTuple):
    approval: str
    payload: Digest
    until: float


class AskedBefore:
    """The approvals that calls under a key wait for."""

    def __init__(self, pipeline: Pipeline, keep_s: float) -> None:
        self._pipeline = pipeline
        self._keep_s = keep_s
        self._clients: dict[str, OrderedDict[str, _Entry]] = {}
        """Of each client, what was asked longest ago first."""
        self._keeping: set[asyncio.Task[Answer | None]] = set()
        state = pipeline.state
        self._ledger: SqlLedger | None = None if state is None else state.answers

    async def answer(self, key: Key, payload: Digest, about: dict[str, str]) -> Answer | None:
        """Say what became of the approval of this key; None if the key never waited for one."""
        if not self._pipeline.approvals.enabled:
            return None
        try:
            entry = self._known(key) or await self._kept(key, payload, about)
            if entry is None:
                self._check_room(key, about)
                return None
            if entry.payload != payload:
                return conflict(about)
            return await self._of(entry.approval, about)
        except StoreUnavailable as error:
            raise Held(unavailable(about)) from error

    async def keep(
        self, key: Key, payload: Digest, result: ToolResult, about: dict[str, str]
    ) -> Answer | None:
        """Keep which approval a call waits for, whoever is cancelled meanwhile.

        If another process was faster with the same key, its approval counts: ours is taken back,
        and what is given is to be answered.
        """
        approval = approval_of(result)
        if approval is None:
            return None
        self.remember(key, payload, approval)
        if self._ledger is None:
            return None
        work = self._kept_for_all(self._ledger, key, payload, result, about)
        keeping = asyncio.ensure_future(work)
        self._keeping.add(keeping)
        keeping.add_done_callback(self._has_kept)
        return await asyncio.shield(keeping)

    async def _kept_for_all(
        self,
        ledger: SqlLedger,
        key: Key,
        payload: Digest,
        result: ToolResult,
        about: dict[str, str],
    ) -> Answer | None:
        approval = approval_of(result) or ""
        try:
            instead = await self._begun(ledger, key, payload, result, about)
        except StoreUnavailable as error:
            await self._taken_back(key, approval)
            raise Held(unavailable(about)) from error
        if instead is not None:
            await self._taken_back(key, approval)
        return instead

    async def _taken_back(self, key: Key, approval: str) -> None:
        self._forget(key)
        await self._withdrawn(approval)

    def _has_kept(self, keeping: asyncio.Task[Answer | None]) -> None:
        self._keeping.discard(keeping)
        if not keeping.cancelled():
            keeping.exception()  # looked at, as nobody else may be there to

    def stands_for(self, key: Key) -> bool:
        """Whether a key is known here to stand for an approval, so that nothing ran under it."""
        return self._known(key) is not None

    def remember(self, key: Key, payload: Digest, approval: str) -> _Entry:
        """Let a key stand for an approval, in this process."""
        client, name = key
        entry = _Entry(approval, payload, self._pipeline.clock.now() + self._keep_s)
        own = self._clients.setdefault(client, OrderedDict())
        own[name] = entry
        own.move_to_end(name)
        if self._ledger is not None and len(own) > KEYS_OF_A_CLIENT:
            own.popitem(last=False)
        return entry

    def _forget(self, key: Key) -> None:
        client, name = key
        self._clients.get(client, OrderedDict()).pop(name, None)

    def _known(self, key: Key) -> _Entry | None:
        """Look into memory, where what is over is dropped."""
        client, name = key
        own, now = self._clients.get(client), self._pipeline.clock.now()
        if own is None:
            return None
        while own and next(iter(own.values())).until <= now:
            own.popitem(last=False)
        return own.get(name)

    def _check_room(self, key: Key, about: dict[str, str]) -> None:
        """Refuse a new key where memory is all there is, and the client's part of it is full."""
        own = self._clients.get(key[0])
        if self._ledger is None and own is not None and len(own) >= KEYS_OF_A_CLIENT:
            first = next(iter(own.values()))
            raise Held(full(about, first.until - self._pipeline.clock.now()))

    async def _kept(self, key: Key, payload: Digest, about: dict[str, str]) -> _Entry | None:
        """Look into the state; remembers what is there."""
        if self._ledger is None:
            return None
        begun = await self._ledger.earlier(self._intent(key, payload, "", ""))
        if begun.conflict:
            raise Held(conflict(about))
        if begun.earlier is None:
            return None
        return self.remember(key, payload, begun.earlier.call_id)

    async def _begun(
        self,
        ledger: SqlLedger,
        key: Key,
        payload: Digest,
        result: ToolResult,
        about: dict[str, str],
    ) -> Answer | None:
        intent = self._intent(key, payload, approval_of(result) or "", self._pipeline.new_key())
        begun = await ledger.begin(intent)
        if begun.conflict:
            return conflict(about)
        if begun.earlier is not None:
            return await self._of(begun.earlier.call_id, about)
        settled = Settled(
            token=intent.token,
            scope=intent.scope,
            tool="",
            state=EffectState.FAILED,
            outcome=result,
            keep_s=self._keep_s,
        )
        try:
            await ledger.settle(settled)
        except StoreUnavailable as error:
            log.warning("the approval of a key could not be kept yet: %s", error)  # tried again
        return None

    def _intent(self, key: Key, payload: Digest, approval: str, token: str) -> Intent:
        client, name = key
        return Intent(
            token=token,
            scope=f"asked:{client}",
            tool="",
            key=name,
            digest=payload.mac,
            call_id=approval,
            caller=client,
            rivals=(ANSWERS + client,),
            keep_s=self._keep_s,
        )

    async def _withdrawn(self, approval: str) -> None:
        try:
            await self._pipeline.approvals.withdraw(approval)
        except (ApprovalConflict, ApprovalNotFound, StoreUnavailable) as error:
            log.warning("approval %s is one too many for its key: %s", approval, error)

    async def _of(self, approval: str, about: dict[str, str]) -> Answer:
        try:
            batch = await self._pipeline.approvals.show(approval)
        except ApprovalNotFound:
            return _gone(approval, about)
        if batch.status in LIVE:
            return _waits(approval, batch.status, about)
        outcome = await self._pipeline.outcome(approval, read=False)
        return answer_of(outcome.results[0], headers=(REPLAYED,))


def _waits(approval: str, status: ApprovalStatus, about: dict[str, str]) -> Answer:
    result = ToolResult.failed(
        FailureCode.PERMISSION_DENIED,
        f"{about['tool']} {_SAID[status]}: the request is {approval}",
        reason="approval_required",
        layer="gateway",
        tool=about["tool"],
        may_have_run=None if status is ApprovalStatus.TAKEN else False,
    )
    result = replace(result, metadata={"approval_id": approval})
    return answer_of(result, about["request_id"], headers=(REPLAYED,))


def _gone(approval: str, about: dict[str, str]) -> Answer:
    return refusal(
        FailureCode.UNKNOWN,
        "outcome_unreadable",
        f"the call with this Idempotency-Key waited for the approval {approval}, of which nothing"
        " is kept any more: its results were read, or are too old",
        may_have_run=None,
        **about,
    )
