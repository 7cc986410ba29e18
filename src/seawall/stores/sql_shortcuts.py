"""Shortcuts in a database, sealed: their templates hold what somebody wrote into them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from sqlalchemy import delete, func, insert, select, update

from seawall.contract.errors import SealBroken
from seawall.contract.shortcut import Shortcut
from seawall.pipeline.foreign import log
from seawall.stores.schema import shortcuts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy.ext.asyncio import AsyncConnection

    from seawall.stores.database import Database
    from seawall.stores.seal import Seal


class SqlShortcuts:
    """Keeps definitions for good."""

    def __init__(self, database: Database, seal: Seal) -> None:
        self._database = database
        self._seal = seal

    async def save(self, shortcut: Shortcut) -> None:
        """Keep a definition, in place of one with the same id."""
        sealed = self._seal.close(msgspec.json.encode(shortcut), _place(shortcut.id))

        async def keep(connection: AsyncConnection) -> None:
            await self._database.alone(connection, "shortcuts")
            same = update(shortcuts).where(shortcuts.c.id == shortcut.id).values(sealed=sealed)
            if (await connection.execute(same)).rowcount:
                return
            highest = select(func.coalesce(func.max(shortcuts.c.position), 0))
            position = int((await connection.execute(highest)).scalar_one()) + 1
            row = {"id": shortcut.id, "position": position, "sealed": sealed}
            await connection.execute(insert(shortcuts).values(**row))

        await self._database.write(keep)

    async def remove(self, shortcut_id: str) -> None:
        """Forget a definition; nothing happens if there is none."""
        gone = delete(shortcuts).where(shortcuts.c.id == shortcut_id)
        await self._database.write(lambda connection: connection.execute(gone))

    async def all(self) -> Sequence[Shortcut]:
        """Give all definitions that can be read, in the order they came."""
        query = select(shortcuts).order_by(shortcuts.c.position)
        rows = await self._database.read(lambda connection: connection.execute(query))
        found = [self._opened(row.id, row.sealed) for row in rows]
        return [shortcut for shortcut in found if shortcut is not None]

    def _opened(self, shortcut_id: str, sealed: bytes) -> Shortcut | None:
        try:
            plain = self._seal.open(sealed, _place(shortcut_id))
            return msgspec.json.decode(plain, type=Shortcut)
        except (SealBroken, msgspec.MsgspecError) as error:
            log.warning("the shortcut %s cannot be read: %s", shortcut_id, error)
            return None


def _place(shortcut_id: str) -> str:
    return f"shortcuts:{shortcut_id}"
