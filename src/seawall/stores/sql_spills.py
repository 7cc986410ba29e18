"""What result limits cut, in a database: sealed, for a while, bounded for each owner and in all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import delete, func, insert, select

from seawall.contract.errors import SealBroken
from seawall.contract.ownership import holder_of
from seawall.contract.spill import SpillPart
from seawall.pipeline.foreign import log
from seawall.stores.memory_spills import PER_OWNER_BYTES, TOTAL_BYTES
from seawall.stores.plain_text import owned_key, plain
from seawall.stores.schema import spill_parts, spills
from seawall.stores.shares import Share, to_drop

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement, Row
    from sqlalchemy.ext.asyncio import AsyncConnection

    from seawall.stores.database import Database
    from seawall.stores.seal import Seal

PART_BYTES = 64 * 1024

Read = tuple["Row[Any]", "list[Row[Any]]"]


class SqlSpills:
    """Keeps texts beyond the process; times are the database's, the same for all who use it."""

    def __init__(
        self,
        database: Database,
        seal: Seal,
        *,
        per_owner_bytes: int = PER_OWNER_BYTES,
        total_bytes: int = TOTAL_BYTES,
    ) -> None:
        self._database = database
        self._seal = seal
        self._per_owner = per_owner_bytes
        self._total = total_bytes

    async def keep(
        self, spill_id: str, owner: str, data: bytes, page_bytes: int, keep_s: float
    ) -> None:
        """Keep a text; the oldest give way. Raises `StoreUnavailable`."""
        key = owned_key(owner)
        cut = range(0, len(data), PART_BYTES)
        parts = [
            {
                "spill": spill_id,
                "number": number,
                "sealed": self._seal.close(
                    data[start : start + PART_BYTES], _place(key, spill_id, number)
                ),
            }
            for number, start in enumerate(cut)
        ]
        row = {"id": spill_id, "owner": key, "size": len(data), "page_bytes": page_bytes}

        async def work(connection: AsyncConnection) -> None:
            await self._database.alone(connection, "spills")
            now = float((await connection.execute(select(self._database.now()))).scalar_one())
            await _forget(connection, spills.c.expires <= now)
            row.update(created=now, expires=now + keep_s)
            await connection.execute(insert(spills).values(**row))
            if parts:
                await connection.execute(insert(spill_parts), parts)
            await _shrink(connection, spills.c.owner == key, self._per_owner, spill_id)
            await _shrink(connection, spills.c.id.is_not(None), self._total, spill_id)

        await self._database.write(work)

    async def part(self, spill_id: str, owner: str, start: int, size: int) -> SpillPart | None:
        """Give some bytes of a text; None if it is gone, or somebody else's."""
        key = owned_key(owner)
        first = start // PART_BYTES

        async def work(connection: AsyncConnection) -> Read | None:
            query = select(spills).where(
                spills.c.id == spill_id,
                spills.c.owner == key,
                spills.c.expires > self._database.now(),
            )
            row = (await connection.execute(query)).one_or_none()
            if row is None or size == 0:
                return None if row is None else (row, [])
            wanted = (
                select(spill_parts)
                .where(
                    spill_parts.c.spill == spill_id,
                    spill_parts.c.number.between(first, (start + size) // PART_BYTES),
                )
                .order_by(spill_parts.c.number)
            )
            return row, list(await connection.execute(wanted))

        if plain(spill_id) != spill_id:
            return None  # a model may ask for anything, and a database takes not all of it
        found = await self._database.read(work)
        if found is None:
            return None
        row, parts = found
        data = self._opened(key, parts)
        if data is None:
            return None
        begin = start - first * PART_BYTES
        return SpillPart(data[begin : begin + size], row.size, row.page_bytes)

    def _opened(self, owner: str, parts: list[Row[Any]]) -> bytes | None:
        try:
            return b"".join(
                self._seal.open(part.sealed, _place(owner, part.spill, part.number))
                for part in parts
            )
        except SealBroken as error:
            log.warning("what a result limit cut cannot be read: %s", error)
            return None


async def _forget(connection: AsyncConnection, which: ColumnElement[bool]) -> None:
    gone = select(spills.c.id).where(which)
    await connection.execute(delete(spill_parts).where(spill_parts.c.spill.in_(gone)))
    await connection.execute(delete(spills).where(which))


async def _shrink(
    connection: AsyncConnection, which: ColumnElement[bool], most: int, newest: str
) -> None:
    """Drop the oldest of whoever has most of these until they fit."""
    total = select(func.coalesce(func.sum(spills.c.size), 0)).where(which)
    taken = int((await connection.execute(total)).scalar_one())
    if taken <= most:
        return
    # What was kept just now is the newest, whatever the clock says.
    by_age = (
        select(spills.c.id, spills.c.owner, spills.c.size)
        .where(which)
        .order_by(spills.c.id == newest, spills.c.created, spills.c.id)
    )
    found = await connection.execute(by_age)
    old = to_drop([Share(row.id, holder_of(row.owner), row.size) for row in found], most)
    await _forget(connection, spills.c.id.in_(old))


def _place(owner: str, spill_id: str, number: int) -> str:
    return f"spill_parts:{owner}:{spill_id}:{number}"
