"""The effects ledger in a database.

One row for each call, found by its key. Who runs a call is written beside it, so that a row of a
process that has ended is told from one that still runs.
"""

from __future__ import annotations

import asyncio
import hashlib
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from sqlalchemy import and_, delete, or_, select, update
from sqlalchemy.dialects.postgresql import insert as insert_postgres
from sqlalchemy.dialects.sqlite import insert as insert_sqlite

from seawall.contract.audit import AuditEntry, AuditKind
from seawall.contract.effect import Begun, Effect, EffectState, Intent, KeyUse, Settled
from seawall.contract.errors import SealBroken, StoreUnavailable
from seawall.pipeline.foreign import log
from seawall.stores.database import Step
from seawall.stores.plain_text import name_key, plain
from seawall.stores.schema import effects
from seawall.stores.sealed_results import opened_result, sealed_result

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Sequence

    from sqlalchemy import Row
    from sqlalchemy.ext.asyncio import AsyncConnection

    from seawall.pipeline.clock import Clock
    from seawall.stores.database import Database
    from seawall.stores.owners import Owners
    from seawall.stores.seal import Seal

T = TypeVar("T")

INTERRUPTED = "interrupted"
"""Why it is not known how a call ended whose process has ended, or seems to have."""

NO_KEY = "the state has no key to seal with, so results are not kept"
NOT_KEPT = "it was too large to be kept, or held what JSON cannot say"

FIRST_WAIT_S = 1.0
WAIT_S = 2.0
"""Between the tries to write down an outcome while the database does not answer."""

PATIENCE_S = 86_400.0
"""How long it is tried again. Only calls that ran when the database went have something to say."""

_PRUNE_EVERY = 256
_PRUNED_AT_ONCE = 500


class EffectAudit(Protocol):
    """Is told of effects, in the transaction that keeps them."""

    async def append_in(self, connection: AsyncConnection, entries: Sequence[AuditEntry]) -> object:
        """Take entries; what it raises keeps the effect from being kept."""
        ...

    async def barrier(self, connection: AsyncConnection) -> None:
        """Wait until whatever took entries before is kept, or never will be."""
        ...


class NoAudit:
    """For what is no effect, and is kept as one only so that it happens once."""

    async def append_in(self, connection: AsyncConnection, entries: Sequence[AuditEntry]) -> None:
        """Keep nothing."""

    async def barrier(self, connection: AsyncConnection) -> None:
        """Wait for nothing: an intent that is kept late counts as left behind."""


class SqlLedger:
    """Keeps intents and outcomes.

    What is kept for no tool, but for an answer that is to be given once, is not listed and not
    swept.
    """

    def __init__(
        self,
        database: Database,
        owners: Owners,
        audit: EffectAudit,
        seal: Seal | None,
        clock: Clock,
    ) -> None:
        self._database = database
        self._owners = owners
        self._audit = audit
        self._seal = seal
        self._clock = clock
        self._open: dict[str, int] = {}
        """Calls that this process runs now, and the generation of the database that has them."""
        self._beginning: set[str] = set()
        """Intents of which others may read before this process hears that they are kept."""
        self._never_ran: set[str] = set()
        """Intents that may have been kept although nothing came of them."""
        self._begun = 0

    async def begin(self, intent: Intent) -> Begun:
        """Keep an intent, or give the call that had its key."""
        step = Step()
        beginning = self._database.background(lambda: self._begin(intent, step))
        try:
            begun = await asyncio.shield(beginning)
        except asyncio.CancelledError:
            step.drop()
            self._never_ran.add(intent.token)
            self._database.background(lambda: self._take_back(intent.token, beginning))
            raise
        except StoreUnavailable as error:
            if error.may_have_written:
                self._never_ran.add(intent.token)
                self._database.background(lambda: self._take_back(intent.token, beginning))
            raise
        if begun.earlier is None:
            self._owners.hold()
        return begun

    async def earlier(self, intent: Intent) -> Begun:
        """Give the call that had the key of an intent, and keep nothing."""
        same = {"scope": name_key(intent.scope), "tool": plain(intent.tool)}
        same["key"] = _hashed(intent.key or "")
        query = select(effects).where(*(effects.c[name] == value for name, value in same.items()))

        async def look(connection: AsyncConnection) -> Begun:
            row = (await connection.execute(query)).first()
            is_over = row is not None and row.expires <= self._clock.wall()
            if row is None or (is_over and row.state != EffectState.RUNNING):
                return Begun()
            conflict = row.digest != intent.digest and not self._is_of_another_key(row)
            return Begun(earlier=self._effect(row), conflict=conflict)

        return await self._database.read(look)

    async def uses(self, key: str, scopes: Iterable[str]) -> list[KeyUse]:
        """Give the calls of all tools that had a key in any of these scopes; keeps nothing."""
        kept_as = {name_key(scope): scope for scope in scopes}
        query = select(effects).where(
            effects.c.key == _hashed(key), effects.c.scope.in_(list(kept_as))
        )

        async def look(connection: AsyncConnection) -> list[KeyUse]:
            now = self._clock.wall()
            return [
                KeyUse(
                    scope=kept_as[row.scope],
                    tool=row.tool,
                    digest=None if self._is_of_another_key(row) else row.digest,
                    effect=self._effect(row),
                )
                for row in await connection.execute(query)
                if row.expires > now or row.state == EffectState.RUNNING
            ]

        return await self._database.read(look)

    def never_ran(self, token: str) -> bool:
        """Whether an intent is about to be forgotten, as nothing came of it."""
        return token in self._never_ran

    async def settle(self, settled: Settled) -> None:
        """Keep how a call ended; tried again and again if the database does not answer."""
        settling = self._database.background(lambda: self._settle(settled))
        try:
            await asyncio.shield(settling)
        except asyncio.CancelledError:
            self._database.background(lambda: self._insist_after(settling, settled))
            raise
        except StoreUnavailable:
            self._database.background(lambda: self._insist_on(settled))
            raise
        self._forget(settled.token)

    def settle_soon(self, settled: Settled) -> None:
        """Keep how a call ended, without anybody waiting for it."""
        self._database.background(lambda: self._insist_on(settled))

    def withdraw_soon(self, token: str) -> None:
        """Forget an intent of which nothing was run."""
        self._forget(token)
        self._never_ran.add(token)
        self._database.background(lambda: self._take_back(token))

    async def unknown(self, *, limit: int = 100) -> Sequence[Effect]:
        """Give the calls of which it is not known how they ended, the newest first.

        Those that a process left behind when it ended are among them.
        """

        async def look(connection: AsyncConnection) -> list[Effect]:
            await self._sweep(connection)
            query = (
                select(effects)
                .where(effects.c.state == EffectState.UNKNOWN, effects.c.tool != "")
                .order_by(effects.c.created.desc())
                .limit(limit)
            )
            return [self._effect(row) for row in await connection.execute(query)]

        return await self._database.write(look)

    async def _begin(self, intent: Intent, step: Step) -> Begun:
        try:
            owner = await self._owners.signed_in()
        except StoreUnavailable as error:
            raise StoreUnavailable(error.store, error.said, may_have_written=False) from error
        self._beginning.add(intent.token)
        try:
            begun = await self._database.write(lambda c: self._begin_in(c, intent, owner), step)
            self._begun += 1
            if begun.earlier is None:
                self._open[intent.token] = self._database.generation
        finally:
            self._beginning.discard(intent.token)
        return begun

    async def _begin_in(self, connection: AsyncConnection, intent: Intent, owner: str) -> Begun:
        now = self._clock.wall()
        if self._begun % _PRUNE_EVERY == 0:
            await self._prune(connection, now)
        row = self._row(intent, owner, now)
        another = await self._another(connection, intent, row, now)
        if another is not None:
            return Begun(earlier=another, conflict=True)
        insert = insert_sqlite if self._database.dialect == "sqlite" else insert_postgres
        kept = await connection.execute(insert(effects).values(**row).on_conflict_do_nothing())
        if kept.rowcount != 1:
            earlier = await self._earlier(connection, row)
            begun = await self._judged(connection, intent, earlier, now)
            if begun is not None:
                return begun
            await connection.execute(
                update(effects).where(effects.c.token == earlier.token).values(**row)
            )
        await self._audit.append_in(connection, [_entry_of_intent(intent, now)])
        return Begun()

    async def _another(
        self, connection: AsyncConnection, intent: Intent, row: dict[str, Any], now: float
    ) -> Effect | None:
        """Give a call of another tool that has the key of an intent.

        Whoever begins a call under the key at the same moment waits until this one is kept.
        """
        if intent.key is None:
            return None
        await self._database.alone(connection, f"key {row['key']}")
        here = and_(effects.c.scope == row["scope"], effects.c.tool != row["tool"])
        beside = effects.c.scope.in_([name_key(scope) for scope in intent.rivals])
        query = select(effects).where(effects.c.key == row["key"], or_(here, beside))
        for other in await connection.execute(query):
            is_over = other.state != EffectState.RUNNING and other.expires <= now
            if not is_over and self._is_another(other, intent, row):
                return self._effect(other)
        return None

    def _is_another(self, other: Row[Any], intent: Intent, row: dict[str, Any]) -> bool:
        if other.token in self._never_ran:
            return False
        if other.scope == row["scope"]:
            return True
        if intent.tool:
            return bool(other.call_id != row["call_id"])
        if other.tool:
            return bool(other.tool != plain(intent.answers))
        return other.digest != intent.digest and not self._is_of_another_key(other)

    async def _earlier(self, connection: AsyncConnection, row: dict[str, Any]) -> Row[Any]:
        same = [effects.c[name] == row[name] for name in ("scope", "tool", "key")]
        query = select(effects).where(*same).with_for_update()
        return (await connection.execute(query)).one()

    async def _judged(
        self, connection: AsyncConnection, intent: Intent, earlier: Row[Any], now: float
    ) -> Begun | None:
        """Say what an earlier call with the same key means; None if this one may take its place."""
        if earlier.token in self._never_ran:
            return None
        state, reason = EffectState(earlier.state), earlier.reason
        if state is EffectState.RUNNING and await self._is_left(connection, earlier):
            state, reason = EffectState.UNKNOWN, INTERRUPTED
            await self._mark_left(connection, [earlier], now)
        if state is not EffectState.RUNNING and earlier.expires <= now:
            return None
        if earlier.digest != intent.digest:
            effect = self._effect(earlier, state, reason)
            # Digests of another key compare with none of ours: it may well be the same call.
            return Begun(earlier=effect, conflict=not self._is_of_another_key(earlier))
        if state is EffectState.UNKNOWN and intent.replay:
            return None
        return Begun(earlier=self._effect(earlier, state, reason))

    async def _is_left(self, connection: AsyncConnection, row: Row[Any]) -> bool:
        """Whether nobody runs this call any more."""
        if row.owner == self._owners.me().id:
            is_new = row.token in self._beginning
            return not is_new and self._open.get(row.token) != self._database.generation
        return row.owner in await self._owners.gone(connection, [row.owner])

    async def _sweep(self, connection: AsyncConnection) -> None:
        """Mark what processes left behind when they ended."""
        running = (effects.c.state == EffectState.RUNNING) & (effects.c.tool != "")
        query = select(effects).where(running)
        rows = (await connection.execute(query.with_for_update())).all()
        gone = await self._owners.gone(connection, {row.owner for row in rows})
        left = [row for row in rows if row.owner in gone]
        if left:
            await self._mark_left(connection, left, self._clock.wall())

    async def _mark_left(
        self, connection: AsyncConnection, rows: Sequence[Row[Any]], now: float
    ) -> None:
        await connection.execute(
            update(effects)
            .where(effects.c.token.in_([row.token for row in rows]))
            .values(state=EffectState.UNKNOWN, reason=INTERRUPTED, settled=now)
        )
        entries = [
            AuditEntry(
                kind=AuditKind.EFFECT,
                at=now,
                tool=row.tool,
                call_id=row.call_id,
                outcome=EffectState.UNKNOWN,
                reason=INTERRUPTED,
                digest=row.digest,
                about=row.token,
            )
            for row in rows
        ]
        await self._audit.append_in(connection, entries)

    async def _settle(self, settled: Settled) -> None:
        now = self._clock.wall()
        outcome = self._sealed(settled)
        # The truth replaces what was not known; what was kept, but not said to be, stays as it is.
        is_open = or_(
            effects.c.state == EffectState.RUNNING,
            and_(effects.c.state == EffectState.UNKNOWN, effects.c.reason == INTERRUPTED),
        )
        end = {
            "state": settled.state,
            "reason": plain(settled.reason),
            "settled": now,
            "expires": now + settled.keep_s,
            "outcome": outcome,
        }

        async def keep(connection: AsyncConnection) -> None:
            change = update(effects).where(effects.c.token == settled.token, is_open).values(**end)
            if not (await connection.execute(change)).rowcount:
                there = select(effects.c.token).where(effects.c.token == settled.token)
                if (await connection.execute(there)).first() is not None:
                    return
            entry = AuditEntry(
                kind=AuditKind.EFFECT,
                at=now,
                tool=settled.tool,
                outcome=settled.state,
                reason=settled.reason,
                about=settled.token,
            )
            await self._audit.append_in(connection, [entry])

        await self._database.write(keep)

    def _sealed(self, settled: Settled) -> bytes | None:
        if settled.outcome is None or self._seal is None:
            return None
        return sealed_result(self._seal, settled.outcome, _place(settled.token))

    async def _take_back(self, token: str, beginning: asyncio.Task[Begun] | None = None) -> None:
        """Remove an intent, once it was kept."""
        doubt = False
        if beginning is not None:
            await asyncio.wait([beginning])
            kept = _kept(beginning)
            if kept is False:
                self._never_ran.discard(token)
                return
            doubt = kept is None
        self._open.pop(token, None)

        async def remove(connection: AsyncConnection) -> None:
            gone = delete(effects).where(
                effects.c.token == token, effects.c.state == EffectState.RUNNING
            )
            if (await connection.execute(gone)).rowcount:
                now = self._clock.wall()
                entry = AuditEntry(kind=AuditKind.EFFECT, at=now, outcome="not_begun", about=token)
                await self._audit.append_in(connection, [entry])

        async def removed() -> None:
            if doubt:  # its commit may still be on its way
                await self._database.write(self._audit.barrier)
            await self._database.write(remove)

        await self._insist(removed)
        self._never_ran.discard(token)

    async def _insist_after(self, settling: asyncio.Task[None], settled: Settled) -> None:
        await asyncio.wait([settling])
        if settling.cancelled() or settling.exception() is not None:
            await self._insist_on(settled)
        else:
            self._forget(settled.token)

    async def _insist_on(self, settled: Settled) -> None:
        await self._insist(lambda: self._settle(settled))
        self._forget(settled.token)

    async def _insist(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Do it now, or as soon as the database answers again."""
        end = self._clock.now() + PATIENCE_S
        wait_s = FIRST_WAIT_S
        while True:
            try:
                await work()
            except StoreUnavailable as error:
                if self._clock.now() >= end:
                    log.error("a call's end could not be written down: %s", error)
                    return
                await self._clock.sleep(wait_s)
                wait_s = WAIT_S
            else:
                return

    def _forget(self, token: str) -> None:
        if self._open.pop(token, None) is not None:
            self._owners.release()

    async def _prune(self, connection: AsyncConnection, now: float) -> None:
        """Delete some of what nobody can ask for any more."""
        old = (
            select(effects.c.token)
            .where(effects.c.expires <= now, effects.c.state != EffectState.RUNNING)
            .limit(_PRUNED_AT_ONCE)
        )
        await connection.execute(delete(effects).where(effects.c.token.in_(old)))

    def _row(self, intent: Intent, owner: str, now: float) -> dict[str, Any]:
        return {
            "token": intent.token,
            "scope": name_key(intent.scope),
            "tool": plain(intent.tool),
            "key": None if intent.key is None else _hashed(intent.key),
            "digest": intent.digest,
            "call_id": plain(intent.call_id),
            "owner": owner,
            "state": EffectState.RUNNING,
            "reason": "",
            "created": now,
            "settled": None,
            "expires": now + intent.keep_s,
            "outcome": None,
        }

    def _effect(
        self, row: Row[Any], state: EffectState | None = None, reason: str | None = None
    ) -> Effect:
        outcome, unreadable = None, ""
        if row.state in (EffectState.DONE, EffectState.FAILED):
            outcome, unreadable = self._opened(row)
        return Effect(
            token=row.token,
            scope=row.scope,
            tool=row.tool,
            call_id=row.call_id,
            state=EffectState(row.state) if state is None else state,
            reason=row.reason if reason is None else reason,
            created=row.created,
            settled=row.settled,
            outcome=outcome,
            unreadable=unreadable,
        )

    def _is_of_another_key(self, row: Row[Any]) -> bool:
        return row.outcome is not None and (
            self._seal is None or not self._seal.has_key_of(row.outcome)
        )

    def _opened(self, row: Row[Any]) -> tuple[Any, str]:
        if self._seal is None:
            return None, NO_KEY
        if row.outcome is None:
            return None, NOT_KEPT
        try:
            return opened_result(self._seal, row.outcome, _place(row.token)), ""
        except SealBroken as error:
            return None, str(error)


def _kept(beginning: asyncio.Task[Begun]) -> bool | None:
    """Whether a row of its own was kept for an intent; None if nobody knows."""
    if beginning.cancelled():
        return None
    error = beginning.exception()
    if isinstance(error, StoreUnavailable):
        return None if error.may_have_written else False
    return error is None and beginning.result().earlier is None


def _place(token: str) -> str:
    return f"effects:{token}:outcome"


def _hashed(key: str) -> str:
    """Fingerprint of a caller's key: callers put names of their own into it."""
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


def _entry_of_intent(intent: Intent, now: float) -> AuditEntry:
    return AuditEntry(
        kind=AuditKind.EFFECT,
        at=now,
        tool=intent.tool,
        call_id=intent.call_id,
        session=intent.session,
        caller=intent.caller,
        outcome=EffectState.RUNNING,
        by=intent.decided[0],
        why=intent.decided[1],
        digest=intent.digest,
        about=intent.token,
    )
