"""Keep who let a call run or did not, and how each call and each turn ended.

Told after all hooks and layers, so nothing that they do keeps an entry out. Entries are queued and
written together, a quarter of a second later at most. What a person, a session or a policy refused
or a person allowed is waited for instead: who gets such an answer finds it in the log. So are all
entries where the policy says `wait`.

While the store does not answer, entries stay queued and calls go on: what must not run without
being written down is the ledger's to keep back. Beyond `MAX_QUEUED` the newest are dropped, and an
entry says how many.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol

from seawall.contract.audit import AuditEntry, AuditKind, Private
from seawall.contract.errors import StoreUnavailable
from seawall.contract.failure import REASONS, FailureCode
from seawall.contract.span import Outcome
from seawall.pipeline.foreign import guarded_async, log, type_name
from seawall.pipeline.recorder import Finished, ToolRecorder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from seawall.pipeline.clock import Clock

BATCH_S = 0.25
"""How long an entry may wait for others to be written with."""

MAX_BATCH = 500
MAX_QUEUED = 10_000
MAX_PAUSE_S = 2.0
"""The longest pause before the next try, while the store does not answer."""

_OF_TURNS = frozenset({"", "every result asked for the end", *REASONS})
"""Why a turn ended, where that was not said by a hook, a judge, or about one request."""

_WAITED_FOR = frozenset({"person", "approval"})


class AuditStore(Protocol):
    """Keeps entries in order."""

    async def append(self, entries: Sequence[AuditEntry]) -> Any:
        """Keep entries, all or none."""
        ...


class Audit:
    """A recorder that keeps calls and turns in an audit store."""

    def __init__(
        self,
        store: AuditStore,
        clock: Clock,
        *,
        calls: str = "all",
        wait: bool = False,
        failed: Callable[[], None] = lambda: None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._calls = calls
        self._wait = wait
        self._failed = failed
        """Told of each try to write that failed, and of each entry that was dropped."""
        self._queue: deque[AuditEntry] = deque()
        self._lost = 0
        self._pause_s = 0.0
        self._writer: _Writer | None = None
        self.due = False
        """Whether an entry is queued that is to be waited for."""

    def for_tool(self, tool: str) -> ToolRecorder:  # noqa: ARG002  # the same for all
        """Give the functions for a registered tool."""
        return ToolRecorder() if self._calls == "off" else ToolRecorder(on_call=self._call_ended)

    def unknown(self) -> None:
        """Nothing: a name that nobody registered ran nothing, and may be anything."""

    @property
    def queued(self) -> int:
        """Entries that are not written yet."""
        return len(self._queue)

    @contextmanager
    def turn(self, turn_id: str, session: str, caller: str) -> Iterator[Callable[[str, str], None]]:
        """Keep how a turn ends: as is said to what this gives, else cancelled or broken off."""
        end = ["error", ""]

        def ended(status: str, reason: str) -> None:
            end[:] = status, reason if reason in _OF_TURNS else Private(reason)

        try:
            yield ended
        except asyncio.CancelledError:
            end[0] = "cancelled"
            raise
        except BaseException as error:
            end[1] = type_name(error)
            raise
        finally:
            self._turn_ended(turn_id, session, caller, *end)

    def _turn_ended(
        self, turn_id: str, session: str, caller: str, status: str, reason: str
    ) -> None:
        self._put(
            AuditEntry(
                kind=AuditKind.TURN,
                at=self._clock.wall(),
                turn_id=turn_id,
                session=session,
                caller=caller,
                outcome=status,
                why=reason,
            )
        )

    def _call_ended(self, call: Finished) -> None:
        if self._calls == "refused" and call.outcome is not Outcome.DENIED:
            return
        by, why = call.decided
        entry = AuditEntry(
            kind=AuditKind.CALL,
            at=self._clock.wall(),
            tool=call.tool,
            call_id=call.call_id,
            turn_id=call.batch_id or "",
            session=call.session_id,
            caller=call.caller,
            outcome=call.outcome.value,
            reason=call.reason,
            layer=call.layer,
            by=by,
            why=why,
            digest="" if call.digest is None else call.digest.mac,
        )
        if self._wait or by in _WAITED_FOR or _is_refused(call):
            self.due = True
        self._put(entry)

    def _put(self, entry: AuditEntry) -> None:
        if len(self._queue) >= MAX_QUEUED:
            self._lost += 1
            self._failed()
            return
        self._queue.append(entry)
        if self._writer is None:
            self._begin()

    def _begin(self) -> _Writer | None:
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return None  # a loop that ends breaks its calls off; whoever closes us writes them
        writer = self._writer = _Writer(loop.create_task(self._write_all()))
        return writer

    def forget_loop(self) -> None:
        """Begin anew: the loop of the writer is gone."""
        self._writer = None

    async def settle(self) -> None:
        """Wait until what is queued was written; not while the store is known not to answer."""
        self.due = False
        writer = self._writer
        if writer is not None and not self._pause_s:
            await writer.hurried()

    async def aclose(self) -> None:
        """Write what is queued, and end."""
        writer = self._writer
        if writer is None or not writer.is_here():
            self._writer = None
            writer = self._begin() if self._queue else None
        if writer is not None:
            await writer.hurried()
            writer.task.cancel()
            self._writer = None
        if self._queue:
            log.error("%d audit entries could not be written", len(self._queue))

    async def _write_all(self) -> None:
        """Write until nothing is queued; the only one that does."""
        while (writer := self._writer) is not None and (self._queue or self._lost):
            await writer.pause(self._clock, self._pause_s or BATCH_S)
            written = await self._write()
            self._pause_s = 0.0 if written else min(max(2 * self._pause_s, 1.0), MAX_PAUSE_S)
            writer.tried()
        self._writer = None

    async def _write(self) -> bool:
        """Write all that is queued, in batches; whether it was."""
        while self._queue or self._lost:
            lost = self._lost
            batch = list(islice(self._queue, MAX_BATCH))
            gap = [self._gap(lost)] if lost and len(batch) == len(self._queue) else []
            if not await self._kept([*batch, *gap]):
                self._failed()
                return False
            for _ in batch:
                self._queue.popleft()
            self._lost -= lost if gap else 0
        return True

    async def _kept(self, entries: Sequence[AuditEntry]) -> bool:
        kept: Any = await guarded_async(
            "audit entries could not be written",
            lambda: self._appended(entries),
            lambda _: False,
        )
        return kept is True

    async def _appended(self, entries: Sequence[AuditEntry]) -> bool:
        try:
            await self._store.append(entries)
        except StoreUnavailable as error:
            log.warning("audit entries wait to be written: %s", error)
            return False
        return True

    def _gap(self, lost: int) -> AuditEntry:
        said = "entries came faster than they could be written"
        return AuditEntry(kind=AuditKind.GAP, at=self._clock.wall(), outcome=str(lost), why=said)


class _Writer:
    """The task that writes, and those who wait for it."""

    def __init__(self, task: asyncio.Task[None]) -> None:
        self.task = task
        self._hurry = asyncio.Event()
        self._waiting: list[asyncio.Future[None]] = []

    def is_here(self) -> bool:
        return self.task.get_loop() is asyncio.get_running_loop()

    async def pause(self, clock: Clock, seconds: float) -> None:
        """Wait, unless somebody is in a hurry."""
        rung, timer = clock.alarm(seconds)
        hurry = asyncio.ensure_future(self._hurry.wait())
        try:
            await asyncio.wait((rung, hurry), return_when=asyncio.FIRST_COMPLETED)
        finally:
            timer.cancel()
            hurry.cancel()
            rung.cancel()
        self._hurry.clear()

    async def hurried(self) -> None:
        """Let it write now, and wait until it has tried."""
        tried: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(tried)
        self._hurry.set()
        await asyncio.wait((tried, self.task), return_when=asyncio.FIRST_COMPLETED)

    def tried(self) -> None:
        waiting, self._waiting = self._waiting, []
        for each in waiting:
            if not each.done():
                each.set_result(None)


def _is_refused(call: Finished) -> bool:
    failure = None if call.result is None else call.result.failure
    return (
        call.outcome is Outcome.DENIED
        and failure is not None
        and failure.code is FailureCode.PERMISSION_DENIED
    )
