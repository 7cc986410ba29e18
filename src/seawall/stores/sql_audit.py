"""The audit log in a database: appended to, never changed; one chain for all processes."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from sqlalchemy import insert, select, update

from seawall.contract.audit import AuditEntry, AuditMark, AuditRecord, AuditReport
from seawall.contract.errors import StoreUnavailable
from seawall.stores.chain import Chain
from seawall.stores.schema import audit, audit_head

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from sqlalchemy.ext.asyncio import AsyncConnection

    from seawall.stores.database import Database
    from seawall.stores.keys import Keys
    from seawall.stores.seal import Seal

MAX_DOUBTFUL = 64
"""Batches that are remembered until they are given again."""

_PAGE = 1_000


class SqlAudit:
    """Keeps entries for good."""

    def __init__(self, database: Database, keys: Keys | None, seal: Seal | None = None) -> None:
        self._database = database
        self._chain = Chain(keys, seal)
        self._doubtful: dict[int, list[tuple[tuple[AuditEntry, ...], AuditMark]]] = {}
        """Entries whose commit was not answered, by the first one, and the mark they would have."""

    async def append(self, entries: Sequence[AuditEntry]) -> AuditMark:
        """Keep entries, in this order, all or none; the last one's mark.

        Entries of which it is not known whether they were kept are kept once when they are given
        again: their place in the log tells.
        """
        tried: list[AuditMark] = []
        try:
            mark = await self._database.write(lambda c: self._append_once(c, entries, tried))
        except StoreUnavailable as error:
            if error.may_have_written and tried:
                self._doubt(entries, tried[-1])
            raise
        if entries:
            self._doubtful.pop(id(entries[0]), None)
        return mark

    def _doubt(self, entries: Sequence[AuditEntry], mark: AuditMark) -> None:
        while len(self._doubtful) >= MAX_DOUBTFUL:
            del self._doubtful[next(iter(self._doubtful))]
        self._doubtful.setdefault(id(entries[0]), []).append((tuple(entries), mark))

    async def _append_once(
        self, connection: AsyncConnection, entries: Sequence[AuditEntry], tried: list[AuditMark]
    ) -> AuditMark:
        mark = await self._locked_head(connection)
        for kept, at in self._doubtful.get(id(entries[0]), ()) if entries else ():
            same = select(audit.c.hash).where(audit.c.seq == at.seq)
            if (await connection.execute(same)).scalar() == at.hash:
                entries = entries[len(kept) :]
                break
        mark = await self._appended(connection, mark, entries)
        tried.append(mark)
        return mark

    async def barrier(self, connection: AsyncConnection) -> None:
        """Wait until whatever appended to the log before is kept, or never will be."""
        await self._locked_head(connection)

    async def append_in(
        self, connection: AsyncConnection, entries: Sequence[AuditEntry]
    ) -> AuditMark:
        """Keep entries in a transaction that somebody else began: they stand or fall with it.

        Others who append wait for its end, so this comes last in it.
        """
        return await self._appended(connection, await self._locked_head(connection), entries)

    async def _locked_head(self, connection: AsyncConnection) -> AuditMark:
        head = select(audit_head.c.seq, audit_head.c.hash).with_for_update()
        return AuditMark(*(await connection.execute(head)).one())

    async def _appended(
        self, connection: AsyncConnection, mark: AuditMark, entries: Sequence[AuditEntry]
    ) -> AuditMark:
        rows = []
        for entry in entries:
            record = self._chain.link(mark, entry)
            rows.append(
                {
                    "seq": record.seq,
                    "at": entry.at,
                    "entry": record.text,
                    "key": record.key,
                    "hash": record.hash,
                }
            )
            mark = AuditMark(record.seq, record.hash)
        if rows:
            await connection.execute(insert(audit), rows)
            await connection.execute(update(audit_head).values(seq=mark.seq, hash=mark.hash))
        return mark

    async def records(self, *, after: int = 0) -> AsyncIterator[AuditRecord]:
        """Give entries in order, those after a number, as they are when they are read."""
        while page := await self._database.read(partial(self._page, after=after)):
            for record in page:
                yield record
            after = page[-1].seq

    def why(self, record: AuditRecord) -> str:
        """Tell why it was so, also where that is sealed; raises `SealBroken` without its key."""
        return self._chain.why(record)

    async def verify(self, expected: AuditMark | None = None) -> AuditReport:
        """Read the whole log and find what was changed, removed or put elsewhere.

        `expected` is an entry noted before: that shows also whether the end was cut off.
        """
        head = await self._database.read(self._head)
        # An SQLite state makes its key before its first entry.
        checker, after = self._chain.checker(expected, keyed=self._database.dialect == "sqlite"), -1
        while page := await self._database.read(partial(self._page, after=after)):
            # What others write meanwhile is for another time.
            ours = [record for record in page if record.seq <= head.seq]
            checker.read(ours)
            if len(ours) < len(page) or not ours:
                break
            after = ours[-1].seq
        return checker.report(head)

    async def _head(self, connection: AsyncConnection) -> AuditMark:
        found = (await connection.execute(select(audit_head.c.seq, audit_head.c.hash))).first()
        return AuditMark(0, "") if found is None else AuditMark(*found)

    async def _page(self, connection: AsyncConnection, after: int) -> list[AuditRecord]:
        query = select(audit).where(audit.c.seq > after).order_by(audit.c.seq).limit(_PAGE)
        return [
            AuditRecord(seq=row.seq, text=row.entry, key=row.key, hash=row.hash)
            for row in await connection.execute(query)
        ]
