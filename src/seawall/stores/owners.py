"""The table of who holds what, and the sign of life of this process."""

from __future__ import annotations

import asyncio
import math
from contextlib import suppress
from typing import TYPE_CHECKING

from sqlalchemy import delete, select
from sqlalchemy import literal as value
from sqlalchemy.dialects.postgresql import insert as insert_postgres
from sqlalchemy.dialects.sqlite import insert as insert_sqlite

from seawall.contract.errors import StoreUnavailable
from seawall.stores.owner import BEAT_S, LEASE_S, Owner, is_gone_for_sure, this_process
from seawall.stores.schema import owners

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sqlalchemy import Executable
    from sqlalchemy.ext.asyncio import AsyncConnection

    from seawall.pipeline.chance import Chance
    from seawall.pipeline.clock import Clock
    from seawall.stores.database import Database


KEPT_S = 7 * 86_400.0
"""How long a process that gives no sign of life stays written down."""
_PRUNED_AT_ONCE = 200


class Owners:
    """This process among all that use the state."""

    def __init__(self, database: Database, clock: Clock, chance: Chance) -> None:
        self._database = database
        self._clock = clock
        self._chance = chance
        self._me: Owner | None = None
        self._held = 0
        self._beating: asyncio.Task[None] | None = None
        self._signing: asyncio.Task[None] | None = None
        self._seen_at = -math.inf
        self._made = 0

    def me(self) -> Owner:
        """Describe this process; another one after a fork."""
        found = this_process("")
        if self._me is None or self._me.pid != found.pid:
            self._me = this_process(self._chance.token(16))
            self._held = 0
            self._beating = None
            self._seen_at = -math.inf
        return self._me

    async def sign(self, connection: AsyncConnection) -> str:
        """Write that this process is there, in the transaction that takes something; its id.

        Not each time. Others of this process who sign wait for the end of that transaction.
        """
        me = self.me()
        if not self._is_seen():
            await connection.execute(self._sign_of(me))
        return me.id

    async def signed_in(self) -> str:
        """Write it in a transaction of its own, the same for all who ask meanwhile; the id.

        Raises `StoreUnavailable`.
        """
        me = self.me()
        if not self._is_seen():
            signing = self._signing
            if signing is None or signing.done() or signing.get_loop() is not _loop():
                signing = self._signing = self._database.background(self._sign_in)
            await asyncio.shield(signing)
        return me.id

    async def _sign_in(self) -> None:
        sign = self._sign_of(self.me())
        is_first = self._seen_at == -math.inf

        async def seen(connection: AsyncConnection) -> None:
            if is_first:
                await self._prune(connection)
            await connection.execute(sign)

        await self._database.write(seen)
        self._seen_at = self._clock.now()
        self._made = self._database.connections_made

    def _is_seen(self) -> bool:
        # Behind another connection there may be another server, which has not seen it.
        is_same = self._made == self._database.connections_made
        return is_same and self._clock.now() - self._seen_at < BEAT_S

    def _sign_of(self, me: Owner) -> Executable:
        row = {"id": me.id, "place": me.place, "pid": me.pid, "started": me.started}
        insert = insert_sqlite if self._database.dialect == "sqlite" else insert_postgres
        now = self._database.now()
        signed = insert(owners).values(**row, seen=now)
        return signed.on_conflict_do_update(index_elements=["id"], set_={"seen": now})

    async def _prune(self, connection: AsyncConnection) -> None:
        """Remove some that hold nothing any more: who does signs, and who signs again is added."""
        silent = owners.c.seen < self._database.now() - value(KEPT_S)
        # What another process is about to remove is left to it.
        old = select(owners.c.id).where(silent).limit(_PRUNED_AT_ONCE)
        found = await connection.execute(old.with_for_update(skip_locked=True))
        await connection.execute(delete(owners).where(owners.c.id.in_([row.id for row in found])))

    async def gone(self, connection: AsyncConnection, ids: Iterable[str]) -> set[str]:
        """Say which of these hold nothing any more, as their processes have ended."""
        wanted = set(ids) - {self.me().id}
        if not wanted:
            return set()
        query = select(
            owners, (owners.c.seen < self._database.now() - value(LEASE_S)).label("silent")
        ).where(owners.c.id.in_(wanted))
        found = set(wanted)  # whoever is not even written down is not there
        for row in await connection.execute(query):
            owner = Owner(id=row.id, place=row.place, pid=row.pid, started=row.started)
            sure = is_gone_for_sure(owner)
            if not (row.silent if sure is None else sure):
                found.discard(row.id)
        return found

    def hold(self) -> None:
        """Begin to hold something: signs of life go out until as many `release` have come."""
        self.me()
        self._held += 1
        loop = asyncio.get_running_loop()
        beating = self._beating
        if beating is None or beating.done() or beating.get_loop() is not loop:
            self._beating = loop.create_task(self._beat())

    def release(self) -> None:
        """Hold one thing less."""
        self._held = max(self._held - 1, 0)
        if not self._held and self._beating is not None:
            self._beating.cancel()
            self._beating = None

    async def _beat(self) -> None:
        while True:
            await self._clock.sleep(BEAT_S)
            with suppress(StoreUnavailable):  # as good as silence; what is begun next says it too
                await self._sign_in()


def _loop() -> asyncio.AbstractEventLoop:
    return asyncio.get_running_loop()
