"""Connections that die, hang, or lead to a file that is not there any more."""

from __future__ import annotations

import asyncio
import os
import pwd
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, Any

import asyncpg  # type: ignore[import-untyped]  # it has no types
import pytest
from tests.outages.network import network_to
from tests.stores.test_database import add_owner, all_held, database_of, owners
from tests.waiting import until_idle

from seawall.contract.errors import StoreUnavailable
from seawall.stores import open_state
from seawall.stores.links import POOL, _set_pragmas

if TYPE_CHECKING:
    from pathlib import Path

    from tests.servers import PostgresServer

ENDED = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'seawall'"


async def all_used(database: Any) -> None:
    """Have the pool hold as many connections as it can."""
    together = asyncio.Barrier(POOL)

    async def meet(_: Any) -> None:
        await together.wait()

    await asyncio.gather(*(database.read(meet) for _ in range(POOL)))


async def test_a_connection_that_the_server_ended_costs_no_error(
    postgres_server: PostgresServer, postgres_url: str
) -> None:
    async with open_state(postgres_url) as state:
        database = database_of(state)
        await all_used(database)
        for number in range(3):
            postgres_server.query(postgres_url, ENDED)
            await database.write(partial(add_owner, name=f"{number}"))

        assert await database.read(owners) == ["0", "1", "2"]


async def test_a_connection_that_was_just_about_to_be_closed_costs_no_error(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server's goodbye was read, but not yet the end of the connection."""
    start = asyncpg.transaction.Transaction.start
    refused: list[Any] = []

    async def out_of_step(transaction: Any) -> None:
        if not refused:
            refused.append(transaction._connection)
            said = "cannot switch to state 15; another operation (2) is in progress"
            raise asyncpg.exceptions.InternalClientError(said)
        await start(transaction)

    async with open_state(postgres_url) as state:
        database = database_of(state)
        await all_used(database)
        monkeypatch.setattr(asyncpg.transaction.Transaction, "start", out_of_step)

        await database.write(add_owner)

        assert await database.read(owners) == ["a"]
        assert refused[0].is_closed()


async def test_work_whose_connection_is_lost_before_the_commit_is_run_again(
    postgres_server: PostgresServer, postgres_url: str
) -> None:
    runs = []
    async with open_state(postgres_url) as state:

        async def add(connection: Any) -> None:
            await add_owner(connection)
            runs.append(connection)
            if len(runs) == 1:
                postgres_server.query(postgres_url, ENDED)
            await add_owner(connection, "b")

        await database_of(state).write(add)

        assert len(runs) == 2
        assert await database_of(state).read(owners) == ["a", "b"]


async def test_once_one_gave_no_answer_the_others_are_not_waited_for(
    postgres_server: PostgresServer, postgres_url: str
) -> None:
    with network_to(postgres_server.port) as network:
        url = postgres_url.replace(f":{postgres_server.port}/", f":{network.port}/")
        state = open_state(url, timeout_s=3.0)
        await all_used(database_of(state))
        network.swallow()
        with pytest.raises(StoreUnavailable, match="no answer"):
            await database_of(state).write(add_owner)
        network.mend()

        begun = asyncio.get_running_loop().time()
        for _ in range(POOL):
            await database_of(state).read(owners)

        assert (
            asyncio.get_running_loop().time() - begun < 6
        )  # 2 s each if they were closed in peace
        await state.aclose()


async def test_a_server_that_takes_no_connection_is_asked_for_few(
    postgres_server: PostgresServer, postgres_url: str
) -> None:
    """What is given up while it connects goes on to, for the next; no more pile up."""
    with network_to(postgres_server.port) as network:
        network.swallow()
        url = postgres_url.replace(f":{postgres_server.port}/", f":{network.port}/")
        state = open_state(url, timeout_s=0.3)
        for _ in range(5):
            waiting = [
                asyncio.ensure_future(database_of(state).write(add_owner)) for _ in range(20)
            ]
            await asyncio.sleep(0.1)
            for each in waiting:
                each.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)

        assert len(network._ways) <= POOL
        await state.aclose()


async def test_who_goes_before_it_is_their_turn_has_nothing_written(state_url: str) -> None:
    async with open_state(state_url) as state:
        database = database_of(state)
        holding, go_on = await all_held(database)
        late = asyncio.ensure_future(database.write(add_owner))
        await until_idle()
        late.cancel()
        with pytest.raises(asyncio.CancelledError):
            await late
        go_on.set()
        await asyncio.gather(*holding)

        assert await database.read(owners) == []


async def test_what_failed_before_its_commit_was_sent_is_known_not_to_be_kept(
    state_url: str,
) -> None:
    async with open_state(state_url) as state:

        async def add_twice(connection: Any) -> None:
            await add_owner(connection)
            await add_owner(connection)

        with pytest.raises(StoreUnavailable) as caught:
            await database_of(state).write(add_twice)

    assert caught.value.may_have_written is False


async def test_tables_that_are_gone_are_made_anew_and_told(
    postgres_server: PostgresServer, postgres_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    """As after a failover to a server that has nothing."""
    async with open_state(postgres_url) as state:
        await database_of(state).write(add_owner)
        postgres_server.query(postgres_url, "DROP SCHEMA public CASCADE; CREATE SCHEMA public")

        await database_of(state).write(lambda connection: add_owner(connection, "b"))

        assert await database_of(state).read(owners) == ["b"]
    assert "was empty: what it held is not there" in caplog.text


async def test_nothing_is_written_into_a_file_that_was_taken_away(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    async with open_state(f"sqlite:///{path}") as state:
        database = database_of(state)
        await database.write(add_owner)
        aside = path.rename(tmp_path / "aside.db")
        for work in (database.write, database.read):
            with pytest.raises(StoreUnavailable, match=r"OperationalError|FileNotFoundError"):
                await work(owners)
        assert not path.exists()

        aside.rename(path)
        await database.write(lambda connection: add_owner(connection, "b"))

        assert await database.read(owners) == ["a", "b"]


async def test_a_file_that_is_taken_away_during_a_write_is_missed_before_the_commit(
    tmp_path: Path,
) -> None:
    path = tmp_path / "state.db"
    async with open_state(f"sqlite:///{path}") as state:

        async def add(connection: Any) -> None:
            await add_owner(connection)
            path.rename(tmp_path / "aside.db")

        with pytest.raises(StoreUnavailable) as caught:
            await database_of(state).write(add)

    assert caught.value.may_have_written is False


async def test_a_file_that_was_replaced_is_the_one_that_is_used(tmp_path: Path) -> None:
    path, other = tmp_path / "state.db", tmp_path / "other.db"
    async with open_state(f"sqlite:///{other}") as state:
        await database_of(state).write(lambda connection: add_owner(connection, "other"))
    async with open_state(f"sqlite:///{path}") as state:
        await database_of(state).write(add_owner)
        for companion in ("state.db-wal", "state.db-shm"):
            path.with_name(companion).unlink()
        other.replace(path)

        assert await database_of(state).read(owners) == ["other"]


def test_several_that_open_a_new_file_at_once_are_not_told_that_it_is_locked(
    tmp_path: Path,
) -> None:
    together = threading.Barrier(6)

    def opened(path: Path) -> str:
        together.wait(30)
        with closing(sqlite3.connect(path, timeout=30, isolation_level=None)) as connection:
            _set_pragmas(connection, None)
            return str(connection.execute("PRAGMA journal_mode").fetchone()[0])

    with ThreadPoolExecutor(6) as threads:
        for number in range(60):
            path = tmp_path / f"{number}.db"
            path.touch()
            assert set(threads.map(opened, [path] * 6)) == {"wal"}


async def test_a_file_that_another_process_holds_is_waited_for_so_long_and_no_longer(
    tmp_path: Path,
) -> None:
    path = tmp_path / "state.db"
    async with open_state(f"sqlite:///{path}", timeout_s=0.5) as state:
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        begun = asyncio.get_running_loop().time()
        with pytest.raises(StoreUnavailable):
            await database_of(state).write(add_owner)
        assert asyncio.get_running_loop().time() - begun < 4
        assert await database_of(state).read(owners) == []
        other.execute("ROLLBACK")
        other.close()

        await database_of(state).write(add_owner)


FULL = """
import asyncio, resource, sys
from pathlib import Path
from sqlalchemy import text
from seawall import StoreUnavailable, open_state

async def put(state, size):
    statement = text("INSERT INTO owners (id, place, pid, started, seen) VALUES (:i, :p, 0, 0, 0)")
    await state.database.write(
        lambda connection: connection.execute(statement, {"i": str(size), "p": "x" * size})
    )

async def main():
    async with open_state(f"sqlite:///{sys.argv[1]}") as state:
        await put(state, 1)
        _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        longest = Path(f"{sys.argv[1]}-wal").stat().st_size
        resource.setrlimit(resource.RLIMIT_FSIZE, (longest + 4096, hard))
        for _ in range(3):
            try:
                await put(state, 1_000_000)
            except StoreUnavailable:
                print("full")
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        await put(state, 100_001)
        rows = await state.database.read(lambda c: c.execute(text("SELECT id FROM owners")))
        print(sorted(row.id for row in rows))

asyncio.run(main())
"""


def test_a_full_disk_is_an_error_and_room_on_it_is_used(tmp_path: Path) -> None:
    said = subprocess.run(
        [sys.executable, "-c", FULL, str(tmp_path / "state.db")],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert said.stdout.splitlines() == ["full"] * 3 + ["['1', '100001']"], said.stderr


READ_ONLY = """
import asyncio, os, sys
from pathlib import Path
from sqlalchemy import text
from seawall import StoreUnavailable, open_state

path = Path(sys.argv[1])

async def put(state, name):
    statement = text("INSERT INTO owners (id, place, pid, started, seen) VALUES (:i, '', 0, 0, 0)")
    await state.database.write(lambda connection: connection.execute(statement, {"i": name}))

async def main():
    async with open_state(f"sqlite:///{path}.other") as state:
        await put(state, "all that is imported later is imported now")
    if len(sys.argv) > 2:
        os.setuid(int(sys.argv[2]))
    async with open_state(f"sqlite:///{path}") as state:
        await put(state, "a")
        await state.database.aclose()
        os.chmod(path.parent, 0o500)
        os.chmod(path, 0o400)
        for _ in range(2):
            try:
                await put(state, "b")
            except StoreUnavailable:
                print("read only")
        os.chmod(path.parent, 0o700)
        os.chmod(path, 0o600)
        await put(state, "c")
        rows = await state.database.read(lambda c: c.execute(text("SELECT id FROM owners")))
        print(sorted(row.id for row in rows))

asyncio.run(main())
"""


@pytest.mark.skipif(os.name != "posix", reason="rights of files are another matter there")
def test_a_file_for_reading_only_is_an_error_until_it_may_be_written() -> None:
    user = []
    with tempfile.TemporaryDirectory(prefix="seawall-kept-") as folder:
        if os.geteuid() == 0:  # who may write everywhere
            nobody = pwd.getpwnam("nobody").pw_uid
            user = [str(nobody)]
            os.chown(folder, nobody, -1)
        said = subprocess.run(
            [sys.executable, "-c", READ_ONLY, f"{folder}/state.db", *user],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    assert said.stdout.splitlines() == ["read only"] * 2 + ["['a', 'c']"], said.stderr


async def test_a_server_that_hangs_during_a_commit_leaves_in_doubt_what_was_to_be_kept(
    postgres_server: PostgresServer, postgres_url: str
) -> None:
    state = open_state(postgres_url, timeout_s=0.5)
    await state.start()
    workers: list[int] = []

    async def add(connection: Any) -> None:
        await add_owner(connection)
        found = postgres_server.query(
            postgres_url,
            "SELECT pid FROM pg_stat_activity"
            " WHERE application_name = 'seawall' AND state = 'idle in transaction'",
        )
        workers.extend(map(int, found.split()))
        for worker in workers:
            os.kill(worker, signal.SIGSTOP)

    try:
        with pytest.raises(StoreUnavailable) as caught:
            await database_of(state).write(add)
    finally:
        for worker in workers:
            os.kill(worker, signal.SIGCONT)

    assert caught.value.may_have_written is True
    await state.aclose()
