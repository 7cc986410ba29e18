"""Turns that wait for a person, in memory: gone with the process, bounded for each and for all."""

from __future__ import annotations

import heapq
import itertools
import threading
from bisect import bisect_left, insort
from hashlib import blake2b
from typing import TYPE_CHECKING

from seawall.contract.approval import ApprovalNotFound, ApprovalsFull, Frozen, size_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from seawall.contract.approval import WaitingRoom
    from seawall.contract.audit import AuditEntry
    from seawall.stores.memory_audit import MemoryAudit

MAX_BATCHES = 10_000
"""Requests of all callers together."""

Place = tuple[float, str]

_numbers = itertools.count(1)


class MemoryApprovals:
    """Keeps approvals in this process; several pipelines may share one, in any threads."""

    def __init__(self, max_batches: int = MAX_BATCHES, *, audit: MemoryAudit | None = None) -> None:
        self.box = _Open()
        self.owner = f"memory-{next(_numbers)}"
        self._max = max_batches
        self._audit = audit
        self._lock = threading.Lock()
        self._records: dict[str, Frozen] = {}
        self._payloads: dict[str, dict[str, bytes]] = {}
        self._all = _Order()
        self._live = _Order()
        """Those that something may still come of."""
        self._alike: dict[str | None, _Order] = {}
        self._callers: dict[str, _OfCaller] = {}

    async def add(
        self,
        frozen: Frozen,
        payloads: Mapping[str, bytes],
        entries: Sequence[AuditEntry] = (),
        room: WaitingRoom | None = None,
    ) -> None:
        """Keep a new one; the oldest that is closed makes room, its caller's first."""
        size = size_of(frozen, payloads)
        with self._lock:
            own = self._callers.setdefault(frozen.caller, _OfCaller())
            try:
                if room is not None:
                    self._check_room(own, frozen.created, size, room)
                self._make_room(own, room)
            except ApprovalsFull:
                if not own:
                    del self._callers[frozen.caller]
                raise
            self._callers[frozen.caller] = own  # its last one may just have made room
            self._records[frozen.id] = frozen
            self._payloads[frozen.id] = dict(payloads)
            own.put(frozen, size)
            for order in (self._all, self._live, self._alike.setdefault(frozen.alike, _Order())):
                order.add(_place(frozen))
        await self._noted(entries)

    async def load(self, batch_id: str) -> Frozen | None:
        """Give a record as it is."""
        with self._lock:
            return self._records.get(batch_id)

    async def payloads(self, batch_id: str) -> dict[str, bytes]:
        """Give all that is kept beside a record."""
        with self._lock:
            return dict(self._payloads.get(batch_id, {}))

    async def page(
        self,
        *,
        closed: bool,
        before: Place | None,
        limit: int,
        alike: Sequence[str] | None = None,
    ) -> list[Frozen]:
        """Give records, newest first; what is not given is not looked at."""
        with self._lock:
            if alike is None:
                places = (self._all if closed else self._live).newest(before)
            else:
                places = self._named(alike, before)
            records = (self._records[key] for _, key in places)
            fitting = (record for record in records if closed or not record.is_closed)
            return list(itertools.islice(fitting, limit))

    async def change(
        self,
        batch_id: str,
        step: Callable[[Frozen], Frozen],
        payloads: Mapping[str, bytes] | None = None,
        noting: Callable[[Frozen], Sequence[AuditEntry]] | None = None,
    ) -> Frozen:
        """Apply a step alone with the record."""
        with self._lock:
            record = self._records.get(batch_id)
            if record is None:
                raise ApprovalNotFound(batch_id)
            changed = self._records[batch_id] = step(record)
            self._payloads[batch_id].update(payloads or {})
            size = size_of(changed, self._payloads[batch_id]) if payloads else None
            self._callers[record.caller].changed(changed, size)
            if changed.is_closed and not record.is_closed:
                self._live.remove(_place(record))
        await self._noted(() if noting is None else noting(changed))
        return changed

    async def prune(self, *, read_before: float, closed_before: float) -> int:
        """Remove what was read, and what was closed, before these times."""
        with self._lock:
            old = [
                key
                for key, record in self._records.items()
                if (record.read is not None and record.read < read_before)
                or (record.is_closed and record.created < closed_before)
            ]
            for key in old:
                self._remove(key)
        return len(old)

    async def is_gone(self, owner: str) -> bool:  # noqa: ARG002  # a store may know more
        """Nobody is gone before memory is."""
        return False

    async def _noted(self, entries: Sequence[AuditEntry]) -> None:
        if self._audit is not None and entries:
            await self._audit.append(entries)

    def _check_room(self, own: _OfCaller, now: float, size: int, room: WaitingRoom) -> None:
        try:
            room.check(len(own.live), own.live_bytes, size)
        except ApprovalsFull:
            # Nobody may have written down of some that their time is over.
            over = [one for one in own.live if _is_over(self._records[one], now)]
            held = own.live_bytes - sum(own.live[one] for one in over)
            room.check(len(own.live) - len(over), held, size)

    def _make_room(self, own: _OfCaller, room: WaitingRoom | None) -> None:
        """Let closed ones go: of this caller what is beyond its part, then of all the oldest."""
        while room is not None and own.closed and own.has_too_many_closed(room):
            self._remove(next(iter(own.closed)))
        while len(self._records) >= self._max:
            oldest = next(iter(own.closed), None) or self._oldest_closed()
            if oldest is None:
                raise ApprovalsFull(f"{self._max:,} requests of all callers wait already")
            self._remove(oldest)

    def _oldest_closed(self) -> str | None:
        if len(self._live) == len(self._all):
            return None
        return next((key for key, record in self._records.items() if record.is_closed), None)

    def _named(self, alike: Sequence[str], before: Place | None) -> Iterator[Place]:
        orders = [self._alike[name] for name in {*alike, None} if name in self._alike]
        return heapq.merge(*(order.newest(before) for order in orders), reverse=True)

    def _remove(self, key: str) -> None:
        record = self._records.pop(key)
        del self._payloads[key]
        own, order, place = self._callers[record.caller], self._alike[record.alike], _place(record)
        own.drop(key)
        if not own:
            del self._callers[record.caller]
        self._all.remove(place)
        if not record.is_closed:
            self._live.remove(place)
        order.remove(place)
        if not order:
            del self._alike[record.alike]


class _Order:
    """Places in the order of time, so that nobody has to sort them to see the newest."""

    __slots__ = ("_places",)

    def __init__(self) -> None:
        self._places: list[Place] = []

    def __len__(self) -> int:
        return len(self._places)

    def add(self, place: Place) -> None:
        insort(self._places, place)

    def remove(self, place: Place) -> None:
        del self._places[bisect_left(self._places, place)]

    def newest(self, before: Place | None) -> Iterator[Place]:
        end = len(self._places) if before is None else bisect_left(self._places, before)
        return (self._places[at] for at in range(end - 1, -1, -1))


class _OfCaller:
    """The requests of one caller, with their bytes."""

    __slots__ = ("closed", "closed_bytes", "live", "live_bytes")

    def __init__(self) -> None:
        self.live: dict[str, int] = {}
        self.live_bytes = 0
        self.closed: dict[str, int] = {}
        """What was closed longest ago first."""
        self.closed_bytes = 0

    def __bool__(self) -> bool:
        return bool(self.live or self.closed)

    def put(self, record: Frozen, size: int) -> None:
        if record.is_closed:
            self.closed[record.id] = size
            self.closed_bytes += size
        else:
            self.live[record.id] = size
            self.live_bytes += size

    def changed(self, record: Frozen, size: int | None) -> None:
        """Count a record as it is now; a size of None is that of before."""
        is_same = size is None and record.is_closed == (record.id in self.closed)
        if not is_same:
            before = self.drop(record.id)
            self.put(record, before if size is None else size)

    def drop(self, key: str) -> int:
        if key in self.live:
            size = self.live.pop(key)
            self.live_bytes -= size
        else:
            size = self.closed.pop(key)
            self.closed_bytes -= size
        return size

    def has_too_many_closed(self, room: WaitingRoom) -> bool:
        most, most_bytes = room.max_waiting, room.max_waiting_bytes
        return (most is not None and len(self.closed) > most) or (
            most_bytes is not None and self.closed_bytes > most_bytes
        )


def _is_over(record: Frozen, now: float) -> bool:
    return record.expires is not None and record.expires <= now


def _place(record: Frozen) -> Place:
    return record.created, record.id


class _Open:
    """No box at all: what is in memory is as readable as the program itself."""

    def close(self, plain: bytes, place: str) -> bytes:  # noqa: ARG002  # as a box has it
        return plain

    def names(self, plain: bytes) -> tuple[str, ...]:
        return (blake2b(plain, digest_size=16).hexdigest(),)

    def open(self, sealed: bytes, place: str) -> bytes:  # noqa: ARG002  # as a box has it
        return sealed
