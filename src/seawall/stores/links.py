"""Connections to one database, for one event loop: made, kept, thrown away when they are dead.

A connection that the server closed is known by its socket, so none is asked first whether it still
lives. Of one that was broken off because it gave no answer it is known that others may be as dead:
what has not answered since is made anew. A driver's connection is never left by a cancel: it would
ask the server to stop, over another connection that may hang as well.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import sqlite3
import threading
from typing import TYPE_CHECKING, Any

from sqlalchemy import URL, event, make_url
from sqlalchemy.exc import DisconnectionError
from sqlalchemy.ext.asyncio import create_async_engine

if TYPE_CHECKING:
    from pathlib import Path

    from sqlalchemy.engine import Connection, ExceptionContext
    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

    from seawall.pipeline.clock import Clock

POOL = 5
"""Connections of one loop of one process."""

_CHECK_MS = 1_000
"""How often the server looks whether the client of a statement is still there."""

_SPENT = {
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_CORRUPT,
    sqlite3.SQLITE_NOTADB,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_FULL,
}
"""After these, a connection to a file is made anew: one that was opened for reading only, as
nothing else was possible then, would stay so."""


_OPENERS = 20
"""How many may be met that open a new file at the same moment."""

_OUT_OF_STEP = "InternalClientError"
"""What asyncpg says of a connection on which the server said goodbye a moment ago: it is not closed
yet, and takes nothing any more."""


class Links:
    """What the two kinds have in common."""

    def __init__(self, engine: AsyncEngine) -> None:
        self.engine = engine
        self.made = 0
        """How many connections there have been."""
        self._raw: list[_Raw] = []
        self._in_hand: dict[asyncio.Task[Any] | None, Any] = {}
        # First of all: what comes after it on a new connection may be broken off.
        event.listen(engine.sync_engine, "connect", self._connected, insert=True)
        event.listen(engine.sync_engine, "checkout", self._taken)
        event.listen(engine.sync_engine, "handle_error", _judge)

    def let_go(self) -> None:
        """Say that this task has no connection any more."""
        self._in_hand.pop(asyncio.current_task(), None)

    def has(self, task: asyncio.Task[Any]) -> bool:
        """Whether a task has a connection."""
        return task in self._in_hand

    def break_off(self, task: asyncio.Task[Any]) -> bool:  # noqa: ARG002  # for those that can
        """Break the connection that a task has; whether it has one, and that could be done."""
        return False

    def check(self, connection: AsyncConnection) -> None:
        """Raise if what was written through this connection would be nowhere."""

    def answered(self, connection: AsyncConnection) -> None:
        """Take note that a connection works."""

    async def aclose(self) -> None:
        """Close all."""
        await self.engine.dispose()
        for raw in self._raw:
            raw.stop()  # those that were in use, which nobody gives back any more

    def leave(self) -> None:
        """End all without their loop, which is gone."""
        for raw in self._raw:
            raw.stop()
        self.engine.sync_engine.dispose(close=False)

    def _connected(self, dbapi_connection: Any, record: Any) -> None:
        self._raw = [known for known in self._raw if known.is_alive()]
        self._raw.append(_Raw(dbapi_connection.driver_connection))
        self.made += 1
        self._noted(record)

    def _noted(self, record: Any) -> None:
        """Note on a new connection what is to be known of it later."""

    def _taken(self, dbapi_connection: Any, record: Any, _: Any) -> None:
        self._usable(dbapi_connection.driver_connection, record)
        self._in_hand[asyncio.current_task()] = dbapi_connection.driver_connection

    def _usable(self, raw: Any, record: Any) -> None:
        """Raise `DisconnectionError` for a connection that is to be made anew."""


class ServerLinks(Links):
    """Connections to a PostgreSQL server."""

    def __init__(self, url: str, clock: Clock, timeout_s: float) -> None:
        self._clock = clock
        self._suspected_at = -1.0
        """Whatever has not answered since may be dead."""
        self._alone: list[asyncio.Task[Any]] = []
        """Connections that are being made, and that nobody waits for any more: for the next."""
        settings = {
            "application_name": "seawall",
            # Shorter than what is idle: of several clients that are gone, each that waits for a
            # lock would get it when the one before is ended, and keep the others waiting.
            "statement_timeout": _milliseconds(timeout_s * 0.6),
            "lock_timeout": _milliseconds(timeout_s * 0.6),
            # Else a process that hangs would keep its row locks, and others waiting.
            "idle_in_transaction_session_timeout": _milliseconds(timeout_s * 0.8),
        }
        engine = create_async_engine(
            make_url(url),
            connect_args={
                "timeout": timeout_s,
                "server_settings": settings,
                "async_creator_fn": self._connect,
            },
            **_common(timeout_s),
        )
        super().__init__(engine)

    def break_off(self, task: asyncio.Task[Any]) -> bool:
        """End the connection at once, so that what waits for its answer fails."""
        raw = self._in_hand.get(task)
        if raw is None:
            return False
        self._suspected_at = self._clock.now()
        raw.terminate()
        return True

    def answered(self, connection: AsyncConnection) -> None:
        """Take note that a connection works."""
        info = connection.sync_connection
        if info is not None:
            info.info["answered"] = self._clock.now()

    async def aclose(self) -> None:
        """Close all, those too that are still being made."""
        alone, self._alone = self._alone, []
        for task in alone:
            task.cancel()
        if alone:
            await asyncio.wait(alone)
        for task in alone:
            if not task.cancelled() and task.exception() is None:
                task.result().terminate()
        await super().aclose()

    def _noted(self, record: Any) -> None:
        record.info["answered"] = self._clock.now()

    def _usable(self, raw: Any, record: Any) -> None:
        if raw.is_closed() or record.info["answered"] < self._suspected_at:
            raw.terminate()  # or it would be asked to say goodbye
            raise DisconnectionError

    async def _connect(self, *arguments: Any, **options: Any) -> Any:
        """Connect in a task of its own, which goes on for the next if this one is cancelled."""
        asyncpg: Any = importlib.import_module("asyncpg")
        connecting = self._left() or asyncio.ensure_future(
            _connected(asyncpg.connect, *arguments, **options)
        )
        try:
            raw = await asyncio.shield(connecting)
        except asyncio.CancelledError:
            self._alone.append(connecting)
            raise
        self._in_hand[asyncio.current_task()] = raw
        return raw

    def _left(self) -> asyncio.Task[Any] | None:
        """Give a connection that somebody began to make, if it may still come to something."""
        while self._alone:
            task = self._alone.pop()
            if not task.done():
                return task
            if not task.cancelled() and task.exception() is None and not task.result().is_closed():
                return task
        return None


class FileLinks(Links):
    """Connections to an SQLite file, which may be taken away or replaced under them."""

    def __init__(self, path: Path, timeout_s: float) -> None:
        self._path = path
        _made(path)
        engine = create_async_engine(
            # Never made by the way: one that was taken away is missed, not made anew and empty.
            URL.create("sqlite+aiosqlite", database=_uri(path), query={"uri": "true"}),
            connect_args={"isolation_level": None, "timeout": timeout_s},
            **_common(timeout_s),
        )
        super().__init__(engine)
        event.listen(engine.sync_engine, "connect", _set_pragmas)
        event.listen(engine.sync_engine, "begin", _begin)

    def check(self, connection: AsyncConnection) -> None:
        """Raise if the file is not the one that was opened: what is written would be lost."""
        found = connection.sync_connection
        if found is not None and found.info["file"] != self._file():
            found.invalidate()
            raise FileNotFoundError(self._path)

    def _noted(self, record: Any) -> None:
        record.info["file"] = self._file()

    def _usable(self, raw: Any, record: Any) -> None:  # noqa: ARG002  # the file tells
        if record.info["file"] != self._file():
            raise DisconnectionError

    def _file(self) -> tuple[int, int]:
        found = self._path.stat()
        return found.st_dev, found.st_ino


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


async def _connected(connect: Any, *arguments: Any, **options: Any) -> Any:
    raw = await connect(*arguments, **options)
    if raw.get_server_version() >= (14,):
        # Else what waits for a lock goes on to wait after its client is gone.
        try:
            await raw.execute(f"SET client_connection_check_interval = {_CHECK_MS}")
        except BaseException:
            raw.terminate()
            raise
    return raw


def _milliseconds(seconds: float) -> str:
    return str(max(int(seconds * 1000), 1))


def _common(timeout_s: float) -> dict[str, Any]:
    # Parameters are what is to be kept: they never get into errors or logs.
    return {
        "hide_parameters": True,
        "pool_size": POOL,
        "max_overflow": 0,
        "pool_timeout": timeout_s,
    }


def _uri(path: Path) -> str:
    return f"{path.absolute().as_uri()}?mode=rw"


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
    _write_ahead(cursor)
    for pragma in ("synchronous=FULL", "trusted_schema=OFF"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _write_ahead(cursor: Any) -> None:
    """Have the file written ahead, also where several open it for the first time at once.

    SQLite waits for nobody then, and says that the file is locked; a transaction does wait.
    """
    for _ in range(_OPENERS):
        try:
            cursor.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                raise
            cursor.execute("BEGIN IMMEDIATE")
            cursor.execute("COMMIT")
        else:
            return
    cursor.execute("PRAGMA journal_mode=WAL")


def _begin(connection: Connection) -> None:
    writes = connection.get_execution_options().get("seawall_write", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _judge(context: ExceptionContext) -> None:
    """Have a connection made anew after what may be its own fault, and that one alone.

    The others are looked at when they are taken: all of them at once would be asked to say goodbye.
    """
    original = context.original_exception
    code = getattr(original, "sqlite_errorcode", None)
    is_spent = code is not None and code & 0xFF in _SPENT
    if is_spent or type(original).__name__ == _OUT_OF_STEP:
        context.is_disconnect = True
    context.invalidate_pool_on_disconnect = False
