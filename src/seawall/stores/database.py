"""One database behind a state: connections, transactions, and no wait without an end.

    await database.write(work)   # `BEGIN IMMEDIATE` on SQLite; row locks are `work`'s on PostgreSQL
    await database.read(work)

`work` is given a connection inside a transaction of its own, committed when `work` returns; if the
connection turns out to be lost before that, it is run once more. What goes wrong with the database
is one error, `StoreUnavailable`, after `timeout_s` at the latest; it says whether a commit was on
its way, as what it was about may be kept only then. What has begun goes on when its caller is
cancelled: whether a write was committed would be unknown otherwise, and a driver that is broken off
in the middle leaves a connection, and a thread, that nobody closes. What still waits for its turn
is dropped then.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import sqlite3
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy import func, literal, select, text
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from seawall.contract.errors import ConfigurationError, MissingExtra, StoreUnavailable
from seawall.pipeline.foreign import log, type_names
from seawall.stores.links import POOL, FileLinks, Links, ServerLinks
from seawall.stores.migrations import MIGRATIONS, TYPES

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Sequence
    from pathlib import Path

    from sqlalchemy import ColumnElement
    from sqlalchemy.engine import Connection
    from sqlalchemy.ext.asyncio import AsyncConnection

    from seawall.pipeline.clock import Clock
    from seawall.stores.address import Address
    from seawall.stores.migrations import Migration

T = TypeVar("T")

TIMEOUT_S = 5.0
"""How long one transaction may take, waiting for a lock or a connection included."""

MAX_BUSY = 10_000
"""Transactions that may be under way or wait for a connection; one more is refused at once."""

_ENDING_S = 0.1
"""How long what has lost its connection may take to end by itself."""

_MIGRATING = 0x5EA3A11
"""The advisory lock under which a PostgreSQL state is brought up to date."""

_left_behind: list[Any] = []
"""Engines of the process that this one was forked from: to close them here would harm it."""


class Database:
    """A database in whatever loop asks for it; connects when it is first used."""

    def __init__(
        self,
        address: Address,
        clock: Clock,
        *,
        timeout_s: float = TIMEOUT_S,
        migrations: Sequence[Migration] = MIGRATIONS,
    ) -> None:
        self.shown = address.shown
        self.dialect = address.kind
        self.clock = clock
        self.timeout_s = timeout_s
        self._address = address
        self._migrations = migrations
        self._errors = _errors(address.kind)
        self._here: _Here | None = None
        self._generation = 0

    async def start(self) -> None:
        """Connect and bring the tables up to date, once in a loop.

        Raises `StoreUnavailable`, and `ConfigurationError` for a state that a newer version made.
        """
        await self._bounded(self._started, write=True)

    async def read(self, work: Callable[[AsyncConnection], Awaitable[T]]) -> T:
        """Run `work` in a transaction that does not keep others from writing."""
        return await self._bounded(lambda step: self._run(step, work, write=False), write=False)

    async def write(
        self, work: Callable[[AsyncConnection], Awaitable[T]], step: Step | None = None
    ) -> T:
        """Run `work` in a transaction that may write; nobody else writes meanwhile on SQLite."""
        return await self._bounded(lambda one: self._run(one, work, write=True), step, write=True)

    async def alone(self, connection: AsyncConnection, name: str) -> None:
        """Let no other transaction go on that asks for the same name, until this one ends."""
        if self.dialect == "postgresql":
            lock = func.pg_advisory_xact_lock(_MIGRATING, func.hashtext(name))
            await connection.execute(select(lock))

    def now(self) -> ColumnElement[Any]:
        """The database's time, the same for all who use it, as a part of a statement."""
        if self.dialect == "postgresql":
            return func.extract("epoch", func.clock_timestamp())
        return literal(self.clock.wall())

    def background(self, work: Callable[[], Coroutine[Any, Any, T]]) -> asyncio.Task[T]:
        """Do something whoever is cancelled meanwhile; `aclose` waits for it."""
        here = self._current()
        task: asyncio.Task[T] = here.task(work())
        return task

    async def quiet(self) -> None:
        """Wait until nothing is done in the background any more."""
        await self._current().quiet()

    @property
    def connections_made(self) -> int:
        """How often the database was connected to: after another time it may be another one."""
        return self._current().links.made

    @property
    def generation(self) -> int:
        """Another number for each loop; what was under way in a former one will not end."""
        self._current()
        return self._generation

    async def aclose(self) -> None:
        """Let what is being written end, within the time limit, and close all connections."""
        here = self._here
        if here is None:
            return
        if here.is_current():
            # What comes of what is under way belongs to it too, so it is still the one.
            await here.quiet_within(self.clock, self.timeout_s)
        if self._here is here:
            self._here = None
        if here.is_current():
            await here.close()
        else:
            here.leave()

    async def _run(
        self, step: Step, work: Callable[[AsyncConnection], Awaitable[T]], *, write: bool
    ) -> T:
        # Each connection that is kept may be one that the server ended a moment ago.
        for _ in range(POOL):
            try:
                return await self._once(step, work, write=write)
            except self._errors as error:
                if step.committing or step.given_up or not self._is_mended(error):
                    raise
        # Nothing was kept: the server had ended the connection, or another one took its place.
        return await self._once(step, work, write=write)

    def _is_mended(self, error: BaseException) -> bool:
        """Whether the same may work now, on another connection or with the tables made anew."""
        here = self._here
        if here is None or not isinstance(error, DBAPIError):
            return False
        if _is_of_no_table(error):
            here.ready = False
            return True
        return error.connection_invalidated

    async def _once(
        self, step: Step, work: Callable[[AsyncConnection], Awaitable[T]], *, write: bool
    ) -> T:
        here = await self._started(step)
        # A driver with a thread is not broken off while it connects.
        step.begun = self.dialect == "sqlite" and not write
        if not (write and self.dialect == "sqlite"):
            return await here.transaction(step, work, write=write)
        # In turn, as whoever waits for SQLite's own lock waits by asking again and again.
        async with here.writing:
            step.begun = True
            return await here.transaction(step, work, write=True)

    async def _started(self, step: Step) -> _Here:
        here = self._current()
        async with here.starting:
            if not here.ready:
                step.begun = True
                prepare = _migrate if self.dialect == "sqlite" else _migrate_postgres

                async def bring_up_to_date(connection: AsyncConnection) -> int:
                    return await connection.run_sync(prepare, self._migrations, self.shown)

                found = await here.transaction(step, bring_up_to_date, write=True)
                step.committing = False
                if here.was_ready and not found:
                    log.error("the state at %s was empty: what it held is not there", self.shown)
                here.ready = here.was_ready = True
        return here

    def _current(self) -> _Here:
        here = self._here
        if here is None or not here.is_current():
            if here is not None:
                here.leave()
            here = self._here = _Here(self._links())
            self._generation += 1
        return here

    def _links(self) -> Links:
        if self._address.path is not None:
            return self._file_links(self._address.path)
        return ServerLinks(self._address.url, self.clock, self.timeout_s)

    def _file_links(self, path: Path) -> Links:
        try:
            return FileLinks(path, self.timeout_s)
        except OSError as error:
            names = ", ".join(type_names(error)[:3])
            raise StoreUnavailable(self.shown, names, may_have_written=False) from error

    async def _bounded(
        self, work: Callable[[Step], Awaitable[T]], step: Step | None = None, *, write: bool
    ) -> T:
        """Run in a task of its own, which is left alone with what it still does when time is up."""
        here, step = self._current(), step or Step()
        if here.busy >= MAX_BUSY:
            said = f"{MAX_BUSY:,} others wait for it"
            raise StoreUnavailable(self.shown, said, may_have_written=False)
        task: asyncio.Task[T] = here.task(self._guarded(step, work, write=write))
        step.may_be_dropped = lambda: here.drop(task)

        def give_up() -> None:
            step.given_up = True
            here.give_up(task)

        timer = self.clock.call_later(self.timeout_s, give_up)
        task.add_done_callback(lambda _: timer.cancel())
        rung, alarm = self.clock.alarm(self.timeout_s)
        try:
            await asyncio.wait((task, rung), return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            step.drop()
            raise
        finally:
            alarm.cancel()
            rung.cancel()
        if task.done() and not task.cancelled():
            return task.result()
        said = "not begun" if step.dropped else f"no answer within {self.timeout_s:g} s"
        raise StoreUnavailable(self.shown, said, may_have_written=write and step.committing)

    async def _guarded(self, step: Step, work: Callable[[Step], Awaitable[T]], *, write: bool) -> T:
        if step.dropped:
            raise StoreUnavailable(self.shown, "not begun", may_have_written=False)
        try:
            return await work(step)
        except self._errors as error:
            # Their texts may hold what was to be kept; their types do not.
            names = ", ".join(type_names(error)[:3])
            may = write and step.committing
            raise StoreUnavailable(self.shown, names, may_have_written=may) from error


class Step:
    """How far one transaction has come."""

    __slots__ = ("begun", "committing", "dropped", "given_up", "may_be_dropped")

    def __init__(self) -> None:
        self.begun = False
        """Whether it has what it waited for: it is not dropped any more."""
        self.committing = False
        """Whether a commit was sent: only then anything may be kept."""
        self.given_up = False
        self.dropped = False
        self.may_be_dropped: Callable[[], bool] = lambda: True

    def drop(self) -> None:
        """Let it not begin, if it has not: nobody waits for it any more."""
        if not self.begun and not self.dropped:
            self.dropped = self.may_be_dropped()


class _Here:
    """What belongs to one loop of one process."""

    def __init__(self, links: Links) -> None:
        self.links = links
        self.engine = links.engine
        self.starting = asyncio.Lock()
        self.writing = asyncio.Lock()
        self.ready = False
        """Whether the tables are there."""
        self.was_ready = False
        self._loop = asyncio.get_running_loop()
        self._process = os.getpid()
        self._tasks: set[asyncio.Task[Any]] = set()

    def is_current(self) -> bool:
        return self._loop is asyncio.get_running_loop() and self._process == os.getpid()

    @property
    def busy(self) -> int:
        return len(self._tasks)

    def task(self, work: Any) -> asyncio.Task[Any]:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # whoever waited has it, or has gone

    def give_up(self, task: asyncio.Task[Any]) -> None:
        """Break off what takes too long: by its connection, if it has one that can be broken."""
        if self.links.break_off(task):
            # It ends by itself now, unless it waits for something else.
            self._loop.call_later(_ENDING_S, task.cancel)
            return
        task.cancel()

    def drop(self, task: asyncio.Task[Any]) -> bool:
        """End what still waits for its turn; whether it did."""
        if self.links.has(task):
            return False
        task.cancel()
        return True

    async def transaction(
        self, step: Step, work: Callable[[AsyncConnection], Awaitable[T]], *, write: bool
    ) -> T:
        try:
            async with self.engine.connect() as connection:
                step.begun = True
                if write:
                    await connection.execution_options(seawall_write=True)
                async with connection.begin() as transaction:
                    found = await work(connection)
                    self.links.check(connection)
                    step.committing = True
                    await transaction.commit()
                self.links.answered(connection)
                return found
        finally:
            self.links.let_go()

    async def quiet(self) -> None:
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def quiet_within(self, clock: Clock, seconds: float) -> None:
        """The same, for so long at most."""
        if not self._tasks:
            return
        rung, timer = clock.alarm(seconds)
        while self._tasks and not rung.done():
            await asyncio.wait((*self._tasks, rung), return_when=asyncio.FIRST_COMPLETED)
        timer.cancel()
        rung.cancel()

    async def close(self) -> None:
        for task in tuple(self._tasks):
            self.give_up(task)
        await self.links.aclose()

    def leave(self) -> None:
        """Drop what cannot be closed in order: its loop is gone, or this is another process."""
        if self._process != os.getpid():
            _left_behind.append(self)
            return
        self.links.leave()


def _errors(dialect: str) -> tuple[type[BaseException], ...]:
    found: tuple[type[BaseException], ...] = (SQLAlchemyError, sqlite3.Error, OSError, TimeoutError)
    if dialect == "postgresql":
        try:
            asyncpg: Any = importlib.import_module("asyncpg")
        except ImportError as error:
            raise MissingExtra("a state in PostgreSQL", "postgres") from error
        # While it connects, the driver's own errors come as they are.
        found += (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError)
    return found


_NO_TABLE = "42P01"
"""The standard's code of a table that is not there."""


def _is_of_no_table(error: DBAPIError) -> bool:
    original = error.orig
    if getattr(original, "sqlstate", None) == _NO_TABLE:
        return True
    return isinstance(original, sqlite3.OperationalError) and "no such table" in str(original)


def _migrate_postgres(connection: Connection, migrations: Sequence[Migration], shown: str) -> int:
    connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _MIGRATING})
    return _migrate(connection, migrations, shown)


def _migrate(connection: Connection, migrations: Sequence[Migration], shown: str) -> int:
    """Run the steps that this state has not seen; how many it had seen.

    The caller's transaction keeps others away.
    """
    connection.exec_driver_sql(
        "CREATE TABLE IF NOT EXISTS seawall_schema (one INTEGER PRIMARY KEY, version INTEGER)"
    )
    version = connection.execute(text("SELECT version FROM seawall_schema")).scalar()
    if version is None:
        connection.execute(text("INSERT INTO seawall_schema (one, version) VALUES (1, 0)"))
    found = version or 0
    if found > len(migrations):
        raise ConfigurationError(
            f"the state at {shown} was made by a newer version (schema {found}; this one knows"
            f" up to {len(migrations)}): use that version, or another state"
        )
    types = TYPES[connection.dialect.name]
    for step in migrations[found:]:
        for statement in step:
            connection.exec_driver_sql(statement.format(**types))
    if found < len(migrations):
        update = text("UPDATE seawall_schema SET version = :version")
        connection.execute(update, {"version": len(migrations)})
    return int(found)
