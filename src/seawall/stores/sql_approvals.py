"""Turns that wait for a person, in a database: they outlive whoever asked and whoever answers."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from sqlalchemy import delete, func, insert, select, tuple_, update

from seawall.contract.approval import ApprovalNotFound, Frozen, size_of
from seawall.stores.owner import Owner, is_gone_for_sure
from seawall.stores.plain_text import plain
from seawall.stores.schema import approval_payloads, approvals, owners

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from sqlalchemy.ext.asyncio import AsyncConnection

    from seawall.contract.approval import WaitingRoom
    from seawall.contract.audit import AuditEntry
    from seawall.stores.database import Database
    from seawall.stores.owners import Owners
    from seawall.stores.seal import Seal
    from seawall.stores.sql_audit import SqlAudit

T = TypeVar("T")

_record = approvals.c.record

_PRUNED_AT_ONCE = 500
"""No database takes any number of names in one statement, nor does anybody wait for that long."""


class SqlApprovals:
    """Keeps approvals in a state. One transaction for each step, alone with its record."""

    def __init__(
        self, database: Database, processes: Owners, audit: SqlAudit, seal: Seal | None
    ) -> None:
        self.box = seal
        self._database = database
        self._processes = processes
        self._audit = audit

    @property
    def owner(self) -> str:
        """Names this process."""
        return self._processes.me().id

    async def add(
        self,
        frozen: Frozen,
        payloads: Mapping[str, bytes],
        entries: Sequence[AuditEntry] = (),
        room: WaitingRoom | None = None,
    ) -> None:
        """Keep a new one with what belongs to it, all or nothing."""
        row = {
            "id": frozen.id,
            "created": frozen.created,
            "alike": frozen.alike,
            "caller": _fingerprint(frozen.caller),
            "size": size_of(frozen, payloads),
            "expires": frozen.expires,
        }

        async def work(connection: AsyncConnection) -> None:
            if room is not None:
                await _check_room(connection, row, room)
            await connection.execute(insert(approvals).values({**row, **_columns(frozen)}))
            await _put(connection, frozen.id, payloads)
            if entries:
                await self._audit.append_in(connection, entries)
                if room is not None and self._database.dialect == "postgresql":
                    # Of many at once each saw the room that was left before all. Here they come
                    # one after the other, as the log lets one in at a time.
                    await _check_room(connection, row, room)

        await self._database.write(work)

    async def load(self, batch_id: str) -> Frozen | None:
        """Give a record as it is."""

        async def work(connection: AsyncConnection) -> bytes | None:
            query = select(_record).where(approvals.c.id == batch_id)
            found: bytes | None = (await connection.execute(query)).scalar()
            return found

        if plain(batch_id) != batch_id:
            return None
        record = await self._database.read(work)
        return None if record is None else _decoded(record)

    async def payloads(self, batch_id: str) -> dict[str, bytes]:
        """Give all that is kept beside a record."""
        table = approval_payloads

        async def work(connection: AsyncConnection) -> dict[str, bytes]:
            query = select(table.c.name, table.c.sealed).where(table.c.approval == batch_id)
            return {row.name: bytes(row.sealed) for row in await connection.execute(query)}

        return await self._database.read(work)

    async def page(
        self,
        *,
        closed: bool,
        before: tuple[float, str] | None,
        limit: int,
        alike: Sequence[str] | None = None,
    ) -> list[Frozen]:
        """Give records, newest first."""
        place = tuple_(approvals.c.created, approvals.c.id)
        query = select(_record).order_by(approvals.c.created.desc(), approvals.c.id.desc())
        if not closed:
            query = query.where(approvals.c.closed == 0)
        if alike is not None:
            query = query.where(approvals.c.alike.in_(alike) | approvals.c.alike.is_(None))
        if before is not None:
            query = query.where(place < tuple_(*before))

        async def work(connection: AsyncConnection) -> list[Frozen]:
            rows = await connection.execute(query.limit(limit))
            return [_decoded(row.record) for row in rows]

        return await self._database.read(work)

    async def change(
        self,
        batch_id: str,
        step: Callable[[Frozen], Frozen],
        payloads: Mapping[str, bytes] | None = None,
        noting: Callable[[Frozen], Sequence[AuditEntry]] | None = None,
    ) -> Frozen:
        """Apply a step alone with the record."""

        async def work(connection: AsyncConnection) -> Frozen:
            query = select(_record).where(approvals.c.id == batch_id).with_for_update()
            record = (await connection.execute(query)).scalar()
            if record is None:
                # Its commit may still be on its way. Who waits for that must hold nothing.
                async with connection.begin_nested() as waiting:
                    await self._audit.barrier(connection)
                    await waiting.rollback()
                record = (await connection.execute(query)).scalar()
            if record is None:
                raise ApprovalNotFound(batch_id)
            before = _decoded(record)
            changed = step(before)
            if changed.owner != before.owner:
                await self._processes.sign(connection)
            if changed is not before:
                change = update(approvals).where(approvals.c.id == batch_id)
                await connection.execute(change.values(_columns(changed)))
            await _put(connection, batch_id, payloads or {})
            if noting is not None and (entries := noting(changed)):
                await self._audit.append_in(connection, entries)
            return changed

        if plain(batch_id) != batch_id:
            raise ApprovalNotFound(batch_id)  # not every database could be asked for it
        return await self._database.write(work)

    async def prune(self, *, read_before: float, closed_before: float) -> int:
        """Remove what was read, and what was closed, before these times."""
        old = (approvals.c.read < read_before) | (
            (approvals.c.closed == 1) & (approvals.c.created < closed_before)
        )

        some = select(approvals.c.id).where(old).limit(_PRUNED_AT_ONCE)

        async def work(connection: AsyncConnection) -> int:
            # By name: a subquery asked twice may give others the second time.
            found = [row.id for row in await connection.execute(some)]
            ours = approval_payloads.c.approval.in_(found)
            await connection.execute(delete(approval_payloads).where(ours))
            await connection.execute(delete(approvals).where(approvals.c.id.in_(found)))
            return len(found)

        removed = 0
        while gone := await self._database.write(work):
            removed += gone
        return removed

    async def is_gone(self, owner: str) -> bool:
        """Whether the process that held it can be seen to have ended."""
        process = owner.partition("/")[0]

        async def work(connection: AsyncConnection) -> Owner | None:
            query = select(owners).where(owners.c.id == process)
            row = (await connection.execute(query)).first()
            if row is None:
                return None
            return Owner(id=row.id, place=row.place, pid=row.pid, started=row.started)

        if not process or process == self.owner:
            return False
        found = await self._database.read(work)
        return found is not None and is_gone_for_sure(found) is True


async def _check_room(
    connection: AsyncConnection, row: Mapping[str, Any], room: WaitingRoom
) -> None:
    """Look what else of the caller waits; raises `ApprovalsFull`."""
    table = approvals.c
    waits = (table.caller == row["caller"]) & (table.closed == 0) & (table.id != row["id"])
    in_time = table.expires.is_(None) | (table.expires > row["created"])
    query = select(func.count(), func.coalesce(func.sum(table.size), 0)).where(waits & in_time)
    count, held = (await connection.execute(query)).one()
    room.check(count, int(held), row["size"])


def _fingerprint(caller: str) -> str:
    """Name a caller so that every database takes it, whatever the name is."""
    return blake2b(caller.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _columns(frozen: Frozen) -> dict[str, object]:
    return {
        "closed": int(frozen.is_closed),
        "read": frozen.read,
        "record": msgspec.json.encode(frozen),
    }


def _decoded(record: bytes) -> Frozen:
    return msgspec.json.decode(record, type=Frozen)


async def _put(connection: AsyncConnection, batch_id: str, payloads: Mapping[str, bytes]) -> None:
    table = approval_payloads
    names = list(payloads)
    if not names:
        return
    await connection.execute(
        delete(table).where(table.c.approval == batch_id, table.c.name.in_(names))
    )
    rows = [
        {"approval": batch_id, "name": name, "sealed": sealed} for name, sealed in payloads.items()
    ]
    await connection.execute(insert(table), rows)
