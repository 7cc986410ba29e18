"""Notes in a database: text and tags sealed, bounded for each owner and in all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from sqlalchemy import delete, func, insert, select

from seawall.contract.errors import SealBroken
from seawall.contract.note import Note, StoreFullError
from seawall.contract.ownership import holder_of
from seawall.pipeline.foreign import log
from seawall.stores.plain_text import owned_key
from seawall.stores.schema import notes
from seawall.stores.shares import Share, to_drop

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import Row
    from sqlalchemy.ext.asyncio import AsyncConnection

    from seawall.stores.database import Database
    from seawall.stores.seal import Seal


class _Kept(msgspec.Struct, frozen=True):
    text: str
    tags: tuple[str, ...]


class SqlNotes:
    """Keeps notes for good.

    A note is never dropped to make room for another of the same owner. When all room is taken, the
    caller with the most notes makes some: of its owners, whoever has written nothing for longest.
    """

    def __init__(
        self, database: Database, seal: Seal, *, per_owner: int = 500, total: int = 10_000
    ) -> None:
        self._database = database
        self._seal = seal
        self._per_owner = per_owner
        self._total = total

    async def add(self, owner: str, text: str, tags: tuple[str, ...], created: float) -> Note:
        """Keep a note; raises `StoreFullError` when there is no room for it."""
        key = owned_key(owner)
        added = await self._database.write(lambda c: self._add(c, key, text, tags, created))
        if added is None:
            raise StoreFullError
        return added

    async def notes(self, owner: str) -> Sequence[Note]:
        """Give the notes of an owner, oldest first."""
        query = select(notes).where(notes.c.owner == owned_key(owner)).order_by(notes.c.number)

        async def read(connection: AsyncConnection) -> Sequence[Row[tuple[object, ...]]]:
            return (await connection.execute(query)).all()

        found = [self._note(row) for row in await self._database.read(read)]
        return [note for note in found if note is not None]

    async def _add(
        self,
        connection: AsyncConnection,
        owner: str,
        text: str,
        tags: tuple[str, ...],
        created: float,
    ) -> Note | None:
        await self._database.alone(connection, "notes")
        highest = select(func.coalesce(func.max(notes.c.number), 0)).where(notes.c.owner == owner)
        number = int((await connection.execute(highest)).scalar_one()) + 1
        if number > self._per_owner:
            return None
        if not await self._make_room(connection, owner):
            return None
        plain = msgspec.json.encode(_Kept(text, tags))
        row = {
            "owner": owner,
            "number": number,
            "created": created,
            "sealed": self._seal.close(plain, _place(owner, number)),
        }
        await connection.execute(insert(notes).values(**row))
        return Note(number, text, tags, created)

    async def _make_room(self, connection: AsyncConnection, writer: str) -> bool:
        """Drop notes until one more fits; false if those would be the writer's own."""
        count = select(func.count()).select_from(notes)
        if (await connection.execute(count)).scalar_one() < self._total:
            return True
        by_age = (
            select(notes.c.owner, func.count().label("size"))
            .where(notes.c.owner != writer)
            .group_by(notes.c.owner)
            .order_by(func.max(notes.c.created), notes.c.owner)
        )
        own = select(func.count()).select_from(notes).where(notes.c.owner == writer)
        written = (await connection.execute(own)).scalar_one() + 1
        kept = [_share(row.owner, row.size) for row in await connection.execute(by_age)]
        dropped = to_drop([*kept, _share(writer, written)], self._total)
        if writer in dropped:
            return False
        await connection.execute(delete(notes).where(notes.c.owner.in_(dropped)))
        return True

    def _note(self, row: Row[tuple[object, ...]]) -> Note | None:
        try:
            plain = self._seal.open(row.sealed, _place(row.owner, row.number))
            kept = msgspec.json.decode(plain, type=_Kept)
        except (SealBroken, msgspec.MsgspecError) as error:
            log.warning("a note cannot be read: %s", error)
            return None
        return Note(row.number, kept.text, kept.tags, row.created)


def _share(owner: str, size: int) -> Share:
    return Share(owner, holder_of(owner), size)


def _place(owner: str, number: int) -> str:
    return f"notes:{owner}:{number}"
