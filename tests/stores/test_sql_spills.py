from pathlib import Path

import pytest
from sqlalchemy import func, select, update
from sqlalchemy.ext.asyncio import AsyncConnection
from tests.stores.test_database import database_of

from seawall import State, open_state
from seawall.contract.errors import StoreUnavailable
from seawall.contract.ownership import owner_key
from seawall.pipeline.clock import SystemClock
from seawall.stores.address import address_of
from seawall.stores.database import Database
from seawall.stores.migrations import MIGRATIONS
from seawall.stores.schema import spill_parts, spills
from seawall.stores.sql_spills import PART_BYTES, SqlSpills

KEY = bytes(range(32))


def spills_of(state: State, **bounds: int) -> SqlSpills:
    assert state.seal is not None
    return SqlSpills(database_of(state), state.seal, **bounds)


async def rows(state: State) -> tuple[int, int]:
    """How many texts, and parts of texts, stand in the tables."""

    async def count(connection: AsyncConnection) -> tuple[int, int]:
        texts = await connection.execute(select(func.count()).select_from(spills))
        parts = await connection.execute(select(func.count()).select_from(spill_parts))
        return texts.scalar_one(), parts.scalar_one()

    return await database_of(state).read(count)


async def test_a_text_is_read_in_parts_by_its_owner_alone(state_url: str) -> None:
    whole = bytes(range(256)) * (PART_BYTES // 64)
    async with open_state(state_url, key=KEY) as state:
        await spills_of(state).keep("1", "a", whole, 100, 60)
    async with open_state(state_url, key=KEY) as state:
        kept = spills_of(state)
        for start, size in (
            (0, 0),
            (0, 100),
            (PART_BYTES - 7, 20),
            (PART_BYTES, PART_BYTES),
            (len(whole) - 5, 100),
            (len(whole) + 5, 100),
            (0, len(whole)),
        ):
            part = await kept.part("1", "a", start, size)
            assert part is not None
            assert part.data == whole[start : start + size]
            assert (part.size, part.page_bytes) == (len(whole), 100)
        assert await kept.part("1", "b", 0, 4) is None
        assert await kept.part("2", "a", 0, 4) is None


async def test_an_owner_may_have_any_name(state_url: str) -> None:
    async with open_state(state_url, key=KEY) as state:
        kept = spills_of(state)
        for owner in ("a\0", "\ud800", "x" * 300):
            await kept.keep(f"of {len(owner)} {owner[0]!a}", owner, b"text", 100, 60)
            part = await kept.part(f"of {len(owner)} {owner[0]!a}", owner, 0, 9)
            assert part is not None
            assert part.data == b"text"


async def test_an_expired_text_is_gone_and_its_parts_with_the_next(state_url: str) -> None:
    async with open_state(state_url, key=KEY) as state:
        kept = spills_of(state)
        await kept.keep("1", "a", b"x" * (PART_BYTES + 1), 100, 60)
        await database_of(state).write(lambda c: c.execute(update(spills).values(expires=1.0)))

        assert await kept.part("1", "a", 0, 1) is None
        assert await rows(state) == (1, 2)
        await kept.keep("2", "b", b"y", 100, 60)
        assert await rows(state) == (1, 1)


async def test_the_oldest_of_an_owner_then_of_all_give_way(state_url: str) -> None:
    async with open_state(state_url, key=KEY) as state:
        kept = spills_of(state, per_owner_bytes=20, total_bytes=30)
        for name in ("1", "2", "3"):
            await kept.keep(name, "a", b"x" * 10, 4, 60)
        assert [await kept.part(n, "a", 0, 1) is None for n in "123"] == [True, False, False]

        await kept.keep("4", "b", b"x" * 10, 4, 60)
        await kept.keep("5", "b", b"x" * 10, 4, 60)
        assert [await kept.part(n, "a", 0, 1) is None for n in "23"] == [True, False]
        assert [await kept.part(n, "b", 0, 1) is None for n in "45"] == [False, False]
        assert await rows(state) == (3, 3)


async def test_one_caller_cannot_push_out_the_texts_of_another(state_url: str) -> None:
    async with open_state(state_url, key=KEY) as state:
        kept = spills_of(state, per_owner_bytes=20, total_bytes=40)
        await kept.keep("kept", owner_key("shop", ""), b"x" * 10, 4, 60)
        for session in "abcdef":
            await kept.keep(session, owner_key("other", session), b"x" * 10, 4, 60)

        assert await kept.part("kept", owner_key("shop", ""), 0, 1) is not None
        gone = [await kept.part(one, owner_key("other", one), 0, 1) is None for one in "abcdef"]
        assert gone == [True, True, True, False, False, False]
        assert await rows(state) == (4, 4)


async def test_a_text_of_another_key_is_not_there(state_url: str) -> None:
    async with open_state(state_url, key=KEY) as state:
        await spills_of(state).keep("1", "a", b"text", 100, 60)
    async with open_state(state_url, key=bytes(32)) as other:
        assert await spills_of(other).part("1", "a", 0, 4) is None


async def test_a_state_from_before_is_brought_up_to_date(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/state.db"
    before = Database(address_of(url), SystemClock(), migrations=MIGRATIONS[:2])
    await before.start()
    await before.aclose()

    async with open_state(url) as state:
        await spills_of(state).keep("1", "a", b"text", 100, 60)

        assert await rows(state) == (1, 1)


async def test_a_state_that_does_not_answer_is_told(tmp_path: Path) -> None:
    state = open_state(f"sqlite:///{tmp_path}/state.db")
    (tmp_path / "state.db").mkdir()
    with pytest.raises(StoreUnavailable):
        await spills_of(state).keep("1", "a", b"text", 100, 60)
    with pytest.raises(StoreUnavailable):
        await spills_of(state).part("1", "a", 0, 60)


@pytest.mark.parametrize("spill_id", ["\0", "\ud800", "x" * 5_000])
async def test_an_id_that_a_database_does_not_take_is_that_of_no_text(
    state_url: str, spill_id: str
) -> None:
    async with open_state(state_url, key=KEY) as state:
        assert await spills_of(state).part(spill_id, "a", 0, 10) is None
