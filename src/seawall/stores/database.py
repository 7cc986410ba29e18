"""One database behind a state: connections, transactions, and no wait without an end.

    await database.write(work)   # `BEGIN IMMEDIATE` on SQLite; row locks are `work`'s on PostgreSQL
    await database.read(work)

`work` is given a connection inside a transaction of its own, committed when `work` returns. What
goes wrong with the database is one error, `StoreUnavailable`, after `timeout_s` at the latest.
It goes on when its caller is cancelled: whether a write was committed would be unknown otherwise,
and a driver that is broken off in the middle leaves a connection, and a thread, that nobody closes.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import sqlite3
import threading
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy import URL, event, func, literal, make_url, select, text
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import create_async_engine

from seawall.contract.errors import ConfigurationError, MissingExtra, StoreUnavailable
from seawall.pipeline.foreign import type_names
from seawall.stores.migrations import MIGRATIONS, TYPES

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Sequence
    from pathlib import Path

    from sqlalchemy import ColumnElement
    from sqlalchemy.engine import Connection
    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

    from seawall.pipeline.clock import Clock
    from seawall.stores.address import Address
    from seawall.stores.migrations import Migration

T = TypeVar("T")

TIMEOUT_S = 5.0
"""How long one transaction may take, waiting for a lock or a connection included."""

_POOL = 5
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
        await self._bounded(self._started)

    async def read(self, work: Callable[[AsyncConnection], Awaitable[T]]) -> T:
        """Run `work` in a transaction that does not keep others from writing."""
        return await self._bounded(lambda: self._run(work, write=False))

    async def write(self, work: Callable[[AsyncConnection], Awaitable[T]]) -> T:
        """Run `work` in a transaction that may write; nobody else writes meanwhile on SQLite."""
        return await self._bounded(lambda: self._run(work, write=True))

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
    def generation(self) -> int:
        """Another number for each loop; what was under way in a former one will not end."""
        self._current()
        return self._generation

    async def aclose(self) -> None:
        """Let what is being written end, within the time limit, and close all connections."""
        here, self._here = self._here, None
        if here is None:
            return
        if here.is_current():
            await here.close(self.clock, self.timeout_s)
        else:
            here.leave()

    async def _run(self, work: Callable[[AsyncConnection], Awaitable[T]], *, write: bool) -> T:
        here = await self._started()
        if not (write and self.dialect == "sqlite"):
            return await here.transaction(work, write=write)
        # In turn, as whoever waits for SQLite's own lock waits by asking again and again.
        async with here.writing:
            return await here.transaction(work, write=True)

    async def _started(self) -> _Here:
        here = self._current()
        async with here.starting:
            if not here.ready:
                prepare = _migrate if self.dialect == "sqlite" else _migrate_postgres

                async def bring_up_to_date(connection: AsyncConnection) -> None:
                    await connection.run_sync(prepare, self._migrations, self.shown)

                await here.transaction(bring_up_to_date, write=True)
                here.ready = True
        return here

    def _current(self) -> _Here:
        here = self._here
        if here is None or not here.is_current():
            if here is not None:
                here.leave()
            here = self._here = _Here(self._engine())
            self._generation += 1
        return here

    def _engine(self) -> AsyncEngine:
        try:
            return _engine(self._address, self.timeout_s)
        except OSError as error:
            names = ", ".join(type_names(error)[:3])
            raise StoreUnavailable(self.shown, names, may_have_written=False) from error

    async def _bounded(self, work: Callable[[], Awaitable[T]]) -> T:
        """Run in a task of its own, which is left alone with what it still does when time is up."""
        task: asyncio.Task[T] = self._current().task(self._guarded(work))

        def give_up() -> None:
            task.cancel()

        timer = self.clock.call_later(self.timeout_s, give_up)
        task.add_done_callback(lambda _: timer.cancel())
        rung, alarm = self.clock.alarm(self.timeout_s)
        try:
            await asyncio.wait((task, rung), return_when=asyncio.FIRST_COMPLETED)
        finally:
            alarm.cancel()
            rung.cancel()
        if task.done() and not task.cancelled():
            return task.result()
        raise StoreUnavailable(self.shown, f"no answer within {self.timeout_s:g} s")

    async def _guarded(self, work: Callable[[], Awaitable[T]]) -> T:
        try:
            return await work()
        except self._errors as error:
            # Their texts may hold what was to be kept; their types do not.
            names = ", ".join(type_names(error)[:3])
            raise StoreUnavailable(self.shown, names) from error


class _Here:
    """What belongs to one loop of one process."""

    def __init__(self, engine: AsyncEngine) -> None:
        self.engine = engine
        self.starting = asyncio.Lock()
        self.writing = asyncio.Lock()
        self.ready = False
        self._loop = asyncio.get_running_loop()
        self._process = os.getpid()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._connections: list[Any] = []
        # First of all: what comes after it on a new connection may be broken off.
        event.listen(engine.sync_engine, "connect", self._connected, insert=True)

    def _connected(self, dbapi_connection: Any, _: object) -> None:
        self._connections = [known for known in self._connections if known.is_alive()]
        self._connections.append(_Raw(dbapi_connection.driver_connection))

    def is_current(self) -> bool:
        return self._loop is asyncio.get_running_loop() and self._process == os.getpid()

    def task(self, work: Any) -> asyncio.Task[Any]:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # whoever waited has it, or has gone

    async def transaction(
        self, work: Callable[[AsyncConnection], Awaitable[T]], *, write: bool
    ) -> T:
        async with self.engine.connect() as connection:
            if write:
                await connection.execution_options(seawall_write=True)
            async with connection.begin():
                return await work(connection)

    async def quiet(self) -> None:
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def close(self, clock: Clock, within_s: float) -> None:
        if self._tasks:
            rung, timer = clock.alarm(within_s)
            everything = asyncio.gather(*self._tasks, return_exceptions=True)
            await asyncio.wait((everything, rung), return_when=asyncio.FIRST_COMPLETED)
            timer.cancel()
            rung.cancel()
        for task in self._tasks:
            task.cancel()
        await self.engine.dispose()
        for raw in self._connections:
            raw.stop()  # those that were in use, which nobody gives back any more

    def leave(self) -> None:
        """Drop what cannot be closed in order: its loop is gone, or this is another process."""
        if self._process != os.getpid():
            _left_behind.append(self)
            return
        for raw in self._connections:
            raw.stop()
        self.engine.sync_engine.dispose(close=False)


class _Raw:
    """A driver's connection, to be ended without its loop."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def is_alive(self) -> bool:
        connection = self._connection
        if hasattr(connection, "is_closed"):  # asyncpg's
            return not connection.is_closed()
        return connection._connection is not None  # noqa: SLF001  # aiosqlite has no other word

    def stop(self) -> None:
        if not self.is_alive():
            return
        transport = getattr(self._connection, "_transport", None)
        if transport is not None:
            # A closed loop cannot be asked to do it, as asyncpg's own `terminate` would.
            transport._call_connection_lost(None)  # noqa: SLF001  # there is no public way
            return
        # In a thread without a loop: else its own thread would answer to a loop that may be gone.
        stopping = threading.Thread(target=self._connection.stop)
        stopping.start()
        stopping.join()


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


def _engine(address: Address, timeout_s: float) -> AsyncEngine:
    # Parameters are what is to be kept: they never get into errors or logs.
    common: dict[str, Any] = {
        "hide_parameters": True,
        "pool_size": _POOL,
        "max_overflow": 0,
        "pool_timeout": timeout_s,
    }
    if address.path is not None:
        _made(address.path)
        engine = create_async_engine(
            URL.create("sqlite+aiosqlite", database=str(address.path)),
            connect_args={"isolation_level": None, "timeout": timeout_s},
            **common,
        )
        event.listen(engine.sync_engine, "connect", _set_pragmas)
        event.listen(engine.sync_engine, "begin", _begin)
        return engine
    milliseconds = str(int(timeout_s * 1000))
    settings = {
        "application_name": "seawall",
        "statement_timeout": milliseconds,
        "lock_timeout": milliseconds,
        # Else a process that hangs would keep its row locks, and others waiting.
        "idle_in_transaction_session_timeout": milliseconds,
    }
    return create_async_engine(
        make_url(address.url),
        connect_args={"timeout": timeout_s, "server_settings": settings},
        pool_pre_ping=True,
        **common,
    )


def _made(path: Path) -> None:
    """Make the file, for its owner alone; SQLite gives its companions the same mode."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        if os.name == "posix" and os.fstat(handle).st_uid == os.geteuid():
            os.fchmod(handle, 0o600)
    finally:
        os.close(handle)


def _set_pragmas(dbapi_connection: Any, _: object) -> None:
    cursor = dbapi_connection.cursor()
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "trusted_schema=OFF"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _begin(connection: Connection) -> None:
    writes = connection.get_execution_options().get("seawall_write", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _migrate_postgres(connection: Connection, migrations: Sequence[Migration], shown: str) -> None:
    connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _MIGRATING})
    _migrate(connection, migrations, shown)


def _migrate(connection: Connection, migrations: Sequence[Migration], shown: str) -> None:
    """Run the steps that this state has not seen. The caller's transaction keeps others away."""
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
