import os
import subprocess
import sys

import pytest
from sqlalchemy import Float, cast, select, text
from tests.servers import PostgresServer
from tests.stores.test_database import database_of

from seawall.contract.errors import StoreUnavailable
from seawall.stores import State, open_state
from seawall.stores.owner import BEAT_S, LEASE_S, Owner, is_gone_for_sure, this_process
from seawall.stores.owners import KEPT_S, Owners
from seawall.stores.schema import owners
from seawall.testing import FakeClock

ELSEWHERE = "another machine/pid:[1]"


def owners_of(state: State) -> Owners:
    assert state.owners is not None
    return state.owners


async def put(state: State, owner: Owner, seen: float) -> None:
    await database_of(state).write(
        lambda connection: connection.execute(
            owners.insert().values(
                id=owner.id, place=owner.place, pid=owner.pid, started=owner.started, seen=seen
            )
        )
    )


async def gone(state: State, *ids: str) -> set[str]:
    return await database_of(state).read(lambda c: owners_of(state).gone(c, ids))


def test_this_process_is_there() -> None:
    assert is_gone_for_sure(this_process("a")) is False


def test_a_process_that_ended_is_gone() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        here = this_process("a")
        pid = process.pid
        process.wait()

    assert is_gone_for_sure(Owner(id="b", place=here.place, pid=pid, started=1)) is True


def test_another_process_with_the_same_number_is_not_the_one() -> None:
    here = this_process("a")

    other = Owner(id="b", place=here.place, pid=os.getpid(), started=here.started - 1)

    assert is_gone_for_sure(other) is True


def test_a_process_that_nobody_fetched_is_gone() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        begun = Owner(id="b", place=this_process("a").place, pid=process.pid, started=0)
        assert is_gone_for_sure(begun) is False
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)

        assert is_gone_for_sure(begun) is True


@pytest.mark.parametrize("place", [ELSEWHERE, ""])
def test_of_another_machine_nothing_is_sure(place: str) -> None:
    assert is_gone_for_sure(Owner(id="b", place=place, pid=os.getpid(), started=1)) is None


async def test_elsewhere_a_process_is_there_as_long_as_its_lease(tmp_path: object) -> None:
    clock = FakeClock()
    async with open_state(f"sqlite:///{tmp_path}/state.db", clock=clock) as state:
        await put(state, Owner(id="b", place=ELSEWHERE, pid=1, started=1), clock.wall())

        await clock.advance(LEASE_S)
        assert await gone(state, "b") == set()
        await clock.advance(1)
        assert await gone(state, "b") == {"b"}


async def test_the_lease_is_counted_by_the_database(state_url: str) -> None:
    async with open_state(state_url) as state:
        now = state.clock.wall()
        await put(state, Owner(id="late", place=ELSEWHERE, pid=1, started=1), now - LEASE_S - 20)
        await put(state, Owner(id="there", place=ELSEWHERE, pid=1, started=1), now)

        assert await gone(state, "late", "there", "never written") == {"late", "never written"}


async def test_who_holds_something_gives_signs_of_life(tmp_path: object) -> None:
    clock = FakeClock()
    async with open_state(f"sqlite:///{tmp_path}/state.db", clock=clock) as state:
        mine = owners_of(state)
        me = await database_of(state).write(mine.sign)
        mine.hold()

        before = await seen(state)
        await clock.advance(BEAT_S)
        await database_of(state).write(_nothing)
        assert await seen(state) == before + BEAT_S

        mine.release()
        await clock.advance(BEAT_S * 3)
        assert await seen(state) == before + BEAT_S
        assert await gone(state, me) == set()


async def _nothing(_: object) -> None:
    """Wait for the writes before this one."""


async def seen(state: State) -> float:
    found = await database_of(state).read(
        lambda c: c.scalar(owners.select().with_only_columns(owners.c.seen))
    )
    assert isinstance(found, float)
    return found


async def test_a_missed_sign_of_life_is_made_up_for(
    tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = FakeClock()
    async with open_state(f"sqlite:///{tmp_path}/state.db", clock=clock) as state:
        mine, database = owners_of(state), database_of(state)
        await database.write(mine.sign)
        before = await seen(state)
        mine.hold()

        async def fail(_: object) -> None:
            raise StoreUnavailable("there", "gone")

        with monkeypatch.context() as broken:
            broken.setattr(database, "write", fail)
            await clock.advance(BEAT_S)
        await clock.advance(BEAT_S)
        await database.write(_nothing)

        assert await seen(state) == before + 2 * BEAT_S
        mine.release()


async def test_processes_that_were_silent_for_a_week_are_removed_when_another_comes(
    state_url: str,
) -> None:
    async with open_state(state_url, key=b"k" * 32) as state:
        now = await database_of(state).read(
            lambda c: c.scalar(select(cast(database_of(state).now(), Float)))
        )
        assert now is not None
        long_ago = now - KEPT_S - 60
        for number in range(3):
            old = Owner(id=f"old {number}", place=ELSEWHERE, pid=number, started=1)
            await put(state, old, long_ago)
        await put(state, Owner(id="late", place=ELSEWHERE, pid=9, started=1), now - KEPT_S + 600)

        await owners_of(state).signed_in()
        left = await database_of(state).read(lambda c: c.execute(select(owners.c.id)))

    assert {row.id for row in left} == {"late", owners_of(state).me().id}


async def test_one_that_was_removed_signs_again(state_url: str) -> None:
    async with open_state(state_url, key=b"k" * 32) as state:
        mine = await database_of(state).write(owners_of(state).sign)
        await database_of(state).write(lambda c: c.execute(owners.delete()))
        await database_of(state).write(owners_of(state).sign)

        assert await gone(state, "another") == {"another"}
        left = await database_of(state).read(lambda c: c.execute(select(owners.c.id)))
        assert [row.id for row in left] == [mine]


async def test_behind_a_new_connection_the_sign_of_life_is_given_anew(
    postgres_server: PostgresServer, postgres_url: str
) -> None:
    """There may be another server, restored from what was before the last sign."""
    async with open_state(postgres_url) as state:
        mine, database = owners_of(state), database_of(state)
        await mine.signed_in()
        postgres_server.query(postgres_url, "DELETE FROM owners")
        await mine.signed_in()
        assert await gone(state, mine.me().id) == set()  # never of oneself
        rows = "SELECT count(*) FROM owners"
        assert postgres_server.query(postgres_url, rows) == "0\n"

        ended = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        postgres_server.query(postgres_url, f"{ended} WHERE application_name = 'seawall'")
        await database.read(lambda connection: connection.execute(text("SELECT 1")))
        await mine.signed_in()

        assert postgres_server.query(postgres_url, rows) == "1\n"
