"""Turns that wait for a person, in memory: gone with the process, bounded in number."""

from __future__ import annotations

import itertools
import threading
from hashlib import blake2b
from typing import TYPE_CHECKING

from seawall.contract.approval import ApprovalNotFound, Frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from seawall.contract.audit import AuditEntry
    from seawall.stores.memory_audit import MemoryAudit

MAX_BATCHES = 10_000

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
        self._alike: dict[str | None, dict[str, None]] = {}

    async def add(
        self, frozen: Frozen, payloads: Mapping[str, bytes], entries: Sequence[AuditEntry] = ()
    ) -> None:
        """Keep a new one; the oldest that is closed makes room, else it is refused."""
        with self._lock:
            if len(self._records) >= self._max and not self._make_room():
                raise OverflowError(f"{self._max} approvals wait already")
            self._records[frozen.id] = frozen
            self._alike.setdefault(frozen.alike, {})[frozen.id] = None
            self._payloads[frozen.id] = dict(payloads)
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
        before: tuple[float, str] | None,
        limit: int,
        alike: Sequence[str] | None = None,
    ) -> list[Frozen]:
        """Give records, newest first."""
        with self._lock:
            chosen = self._records.values() if alike is None else self._named(alike)
            records = sorted(chosen, key=_place, reverse=True)
        fitting = (
            record
            for record in records
            if (closed or not record.is_closed) and (before is None or _place(record) < before)
        )
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

    def _make_room(self) -> bool:
        closed = next((key for key, record in self._records.items() if record.is_closed), None)
        if closed is not None:
            self._remove(closed)
        return closed is not None

    def _named(self, alike: Sequence[str]) -> list[Frozen]:
        keys = (key for name in {*alike, None} for key in self._alike.get(name, ()))
        return [self._records[key] for key in keys]

    def _remove(self, key: str) -> None:
        name = self._records[key].alike
        del self._records[key], self._payloads[key], self._alike[name][key]
        if not self._alike[name]:
            del self._alike[name]


def _place(record: Frozen) -> tuple[float, str]:
    return record.created, record.id


class _Open:
    """No box at all: what is in memory is as readable as the program itself."""

    def close(self, plain: bytes, place: str) -> bytes:  # noqa: ARG002  # as a box has it
        return plain

    def names(self, plain: bytes) -> tuple[str, ...]:
        return (blake2b(plain, digest_size=16).hexdigest(),)

    def open(self, sealed: bytes, place: str) -> bytes:  # noqa: ARG002  # as a box has it
        return sealed
