import asyncio
import gc
import os
import signal
import stat
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import inspect, text
from sqlalchemy.ext.asyncio import AsyncConnection
from tests.servers import PostgresServer
from tests.waiting import SOON_S, until

from seawall.contract.errors import ConfigurationError, StoreUnavailable
from seawall.pipeline.clock import SystemClock
from seawall.stores import State, open_state
from seawall.stores.address import address_of
from seawall.stores.database import Database
from seawall.stores.links import POOL
from seawall.stores.migrations import MIGRATIONS
from seawall.stores.schema import metadata
from seawall.testing import FakeClock

START = """
import asyncio, sys
from seawall.stores import open_state

async def main():
    async with open_state(sys.argv[1]):
        pass

asyncio.run(main())
"""


def database_of(state: State) -> Database:
    assert state.database is not None
    return state.database


async def add_owner(connection: AsyncConnection, name: str = "a") -> None:
    await connection.execute(
        text("INSERT INTO owners (id, place, pid, started, seen) VALUES (:id, '', 0, 0, 0)"),
        {"id": name},
    )


async def all_held(database: Database) -> tuple[list[asyncio.Task[None]], asyncio.Event]:
    """Begin writes that keep everybody else waiting, until the event is set."""
    go_on = asyncio.Event()
    begun: list[AsyncConnection] = []
    at_once = 1 if database.dialect == "sqlite" else POOL

    async def hold(connection: AsyncConnection) -> None:
        begun.append(connection)
        await go_on.wait()

    holding = [asyncio.ensure_future(database.write(hold)) for _ in range(POOL)]
    await until(lambda: len(begun) == at_once)
    return holding, go_on


async def owners(connection: AsyncConnection) -> list[Any]:
    return list((await connection.execute(text("SELECT id FROM owners ORDER BY id"))).scalars())


async def test_the_tables_of_the_steps_are_the_tables_of_the_schema(state_url: str) -> None:
    async with open_state(state_url) as state:

        def look(connection: Any) -> dict[str, Any]:
            found = inspect(connection)
            return {
                name: (
                    {(c["name"], str(c["type"]).split("(")[0], c["nullable"]) for c in columns},
                    set(found.get_pk_constraint(name)["constrained_columns"]),
                    {
                        (i["name"], tuple(i["column_names"]), bool(i["unique"]))
                        for i in found.get_indexes(name)
                    },
                )
                for name in found.get_table_names()
                if (columns := found.get_columns(name))
            }

        found = await database_of(state).read(lambda connection: connection.run_sync(look))

    found.pop("seawall_schema")
    assert set(found) == set(metadata.tables)
    for name, table in metadata.tables.items():
        columns, keys, indexes = found[name]
        assert {(c[0], c[2]) for c in columns} == {(c.name, bool(c.nullable)) for c in table.c}
        assert keys == {c.name for c in table.primary_key}
        assert indexes == {
            (i.name, tuple(c.name for c in i.columns), i.unique) for i in table.indexes
        }


def test_processes_that_start_at_once_make_the_tables_once(state_url: str) -> None:
    started = [
        subprocess.Popen([sys.executable, "-c", START, state_url], stderr=subprocess.PIPE)
        for _ in range(4)
    ]

    said = [process.communicate(timeout=120)[1].decode() for process in started]

    assert [process.returncode for process in started] == [0, 0, 0, 0], said

    async def version(connection: AsyncConnection) -> list[Any]:
        found = await connection.execute(text("SELECT version FROM seawall_schema"))
        return list(found.scalars())

    async def look() -> list[Any]:
        async with open_state(state_url) as state:
            return await database_of(state).read(version)

    assert asyncio.run(look()) == [len(MIGRATIONS)]


async def test_a_state_of_a_newer_version_is_refused(state_url: str) -> None:
    address, clock = address_of(state_url), SystemClock()
    newer = Database(address, clock, migrations=[*MIGRATIONS, ["CREATE TABLE later (a INTEGER)"]])
    await newer.start()
    await newer.aclose()

    ours = Database(address, clock)
    with pytest.raises(ConfigurationError, match="made by a newer version"):
        await ours.start()
    await ours.aclose()


async def test_a_step_is_added_to_a_state_that_has_the_others(state_url: str) -> None:
    address, clock = address_of(state_url), SystemClock()
    async with open_state(state_url) as state:
        await database_of(state).write(add_owner)

    newer = Database(address, clock, migrations=[*MIGRATIONS, ["CREATE TABLE later (a INTEGER)"]])

    assert await newer.read(owners) == ["a"]
    await newer.read(lambda connection: connection.execute(text("SELECT a FROM later")))
    await newer.aclose()


async def test_a_step_that_fails_leaves_nothing_behind(state_url: str) -> None:
    address, clock = address_of(state_url), SystemClock()
    broken = Database(
        address, clock, migrations=[*MIGRATIONS, ["CREATE TABLE later (a INTEGER)", "NONSENSE"]]
    )
    with pytest.raises(StoreUnavailable):
        await broken.start()
    await broken.aclose()

    whole = Database(address, clock, migrations=[*MIGRATIONS, ["CREATE TABLE later (a INTEGER)"]])
    await whole.start()
    await whole.aclose()


async def test_what_fails_in_a_transaction_is_undone(state_url: str) -> None:
    async with open_state(state_url) as state:

        async def add_twice(connection: AsyncConnection) -> None:
            await add_owner(connection)
            await add_owner(connection)

        with pytest.raises(StoreUnavailable):
            await database_of(state).write(add_twice)

        assert await database_of(state).read(owners) == []


async def test_an_error_says_nothing_of_what_was_to_be_kept(state_url: str) -> None:
    async with open_state(state_url) as state:

        async def add_twice(connection: AsyncConnection) -> None:
            await add_owner(connection, "hunter2")
            await add_owner(connection, "hunter2")

        with pytest.raises(StoreUnavailable) as caught:
            await database_of(state).write(add_twice)

    assert "IntegrityError" in str(caught.value)
    assert "hunter2" not in str(caught.value)


async def test_a_write_goes_on_when_its_caller_is_cancelled(state_url: str) -> None:
    state = open_state(state_url)
    await state.start()
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def add_slowly(connection: AsyncConnection) -> None:
        begun.set()
        await go_on.wait()
        await add_owner(connection)

    caller = asyncio.create_task(database_of(state).write(add_slowly))
    await begun.wait()
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    go_on.set()
    await state.aclose()

    async with open_state(state_url) as again:
        assert await database_of(again).read(owners) == ["a"]


def test_a_read_whose_caller_goes_at_any_moment_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    raised: list[object] = []
    monkeypatch.setattr(threading, "excepthook", raised.append)
    monkeypatch.setattr(sys, "unraisablehook", raised.append)
    url = f"sqlite:///{tmp_path}/state.db"

    async def go(moment: int) -> None:
        state = open_state(url)
        caller = asyncio.create_task(database_of(state).read(owners))
        for _ in range(moment):
            await asyncio.sleep(0.0003)  # a connection takes some turns and threads to open
        caller.cancel()
        with suppress(asyncio.CancelledError):
            await caller
        await state.aclose()

    for moment in range(40):
        asyncio.run(go(moment))  # a driver's thread that outlives its loop ends with an error
    gc.collect()
    for thread in threading.enumerate():
        if "_connection_worker" in thread.name:
            thread.join(10)
            assert not thread.is_alive()
    assert raised == []


async def test_work_that_does_not_end_is_given_up(state_url: str) -> None:
    clock = FakeClock()
    async with open_state(state_url, clock=clock, timeout_s=5) as state:
        begun = asyncio.Event()

        async def write_for_ever(connection: AsyncConnection) -> None:
            await add_owner(connection)
            begun.set()
            await asyncio.Event().wait()

        caller = asyncio.create_task(database_of(state).write(write_for_ever))
        await begun.wait()
        await clock.advance(5)

        with pytest.raises(StoreUnavailable, match="no answer within 5 s"):
            await caller
        assert await database_of(state).read(owners) == []


async def test_a_server_that_hangs_does_not_hang_a_caller(
    postgres_server: PostgresServer, postgres_url: str
) -> None:
    state = open_state(postgres_url, timeout_s=0.5)
    await state.start()
    workers = postgres_server.query(
        postgres_url, "SELECT pid FROM pg_stat_activity WHERE application_name = 'seawall'"
    ).split()
    for worker in workers:
        os.kill(int(worker), signal.SIGSTOP)
    try:
        before = asyncio.get_running_loop().time()
        with pytest.raises(StoreUnavailable):
            await database_of(state).write(add_owner)
        assert asyncio.get_running_loop().time() - before < SOON_S
    finally:
        for worker in workers:
            os.kill(int(worker), signal.SIGCONT)

    await database_of(state).write(lambda connection: add_owner(connection, "b"))
    await state.aclose()


async def test_no_server_is_an_error_of_ours() -> None:
    state = open_state("postgresql://somebody:hunter2@127.0.0.1:1/nothing", timeout_s=5)

    with pytest.raises(StoreUnavailable) as caught:
        await state.start()

    assert "127.0.0.1:1" in str(caught.value)
    assert "hunter2" not in str(caught.value)
    await state.aclose()


def test_a_state_serves_one_loop_after_the_other(state_url: str) -> None:
    state = open_state(state_url)

    async def add(name: str) -> list[Any]:
        await database_of(state).write(lambda connection: add_owner(connection, name))
        return await database_of(state).read(owners)

    assert asyncio.run(add("a")) == ["a"]
    assert asyncio.run(add("b")) == ["a", "b"]

    asyncio.run(state.aclose())


def test_a_forked_process_has_connections_of_its_own(state_url: str) -> None:
    program = """
import asyncio, os, sys
from seawall.stores import open_state
from sqlalchemy import text

state = open_state(sys.argv[1])

async def add(name):
    async def work(connection):
        await connection.execute(
            text("INSERT INTO owners (id, place, pid, started, seen) VALUES (:id, '', 0, 0, 0)"),
            {"id": name},
        )
    await state.database.write(work)

async def main():
    await add("parent before")
    child = os.fork()
    if child == 0:
        return "child"
    assert os.waitpid(child, 0)[1] == 0
    await add("parent after")
    return "parent"

loop = asyncio.new_event_loop()
who = loop.run_until_complete(main())
if who == "child":
    asyncio.events._set_running_loop(None)
    asyncio.run(add("child"))
    os._exit(0)
loop.run_until_complete(state.aclose())
"""
    subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program, state_url], check=True, timeout=60
    )

    async def look() -> list[Any]:
        async with open_state(state_url) as state:
            return await database_of(state).read(owners)

    assert asyncio.run(look()) == ["child", "parent after", "parent before"]


async def test_writers_of_one_process_take_turns(state_url: str) -> None:
    async with open_state(state_url) as state:

        async def add(number: int) -> None:
            await database_of(state).write(lambda connection: add_owner(connection, f"{number:03}"))

        await asyncio.gather(*map(add, range(40)))

        assert len(await database_of(state).read(owners)) == 40


async def test_the_files_of_a_state_are_for_their_owner_alone(tmp_path: Path) -> None:
    async with open_state(f"sqlite:///{tmp_path}/deep/state.db") as state:
        await database_of(state).write(add_owner)
        files = sorted((tmp_path / "deep").iterdir())

        modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in files}

    assert modes == dict.fromkeys(
        ("state.db", "state.db-shm", "state.db-wal", "state.db.key"), 0o600
    )


async def test_sqlite_commits_reach_the_disk(tmp_path: Path) -> None:
    async with open_state(f"sqlite:///{tmp_path}/state.db") as state:

        async def ask(connection: AsyncConnection) -> list[Any]:
            asked = ("journal_mode", "synchronous", "busy_timeout")
            return [(await connection.exec_driver_sql(f"PRAGMA {name}")).scalar() for name in asked]

        assert await database_of(state).read(ask) == ["wal", 2, 5000]
