"""The audit log of a process: the last entries, as long as it lives."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from seawall.contract.audit import AuditEntry, AuditMark, AuditRecord, AuditReport
from seawall.stores.chain import BEGINNING, Chain

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

MAX_ENTRIES = 10_000
"""Kept entries; the oldest give way."""


class MemoryAudit:
    """Keeps entries in memory."""

    def __init__(self) -> None:
        self._chain = Chain(None)
        self._records: deque[AuditRecord] = deque(maxlen=MAX_ENTRIES)
        self._head = BEGINNING
        self._cut = BEGINNING
        """The last entry that gave way."""

    async def append(self, entries: Sequence[AuditEntry]) -> AuditMark:
        """Keep entries, in this order."""
        for entry in entries:
            record = self._chain.link(self._head, entry)
            if len(self._records) == MAX_ENTRIES:
                self._cut = AuditMark(self._records[0].seq, self._records[0].hash)
            self._records.append(record)
            self._head = AuditMark(record.seq, record.hash)
        return self._head

    async def records(self, *, after: int = 0) -> AsyncIterator[AuditRecord]:
        """Give entries in order, those after a number."""
        for record in tuple(self._records):
            if record.seq > after:
                yield record

    def why(self, record: AuditRecord) -> str:
        """Tell why it was so; what foreign code said of it is not kept in memory."""
        return self._chain.why(record)

    async def verify(self, expected: AuditMark | None = None) -> AuditReport:
        """Check what is kept."""
        checker = self._chain.checker(expected, start=self._cut)
        checker.read(self._records)
        return checker.report(self._head)
