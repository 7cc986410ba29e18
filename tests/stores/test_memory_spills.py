from seawall.contract.ownership import owner_key
from seawall.stores.memory_spills import MemorySpills
from seawall.testing import FakeClock


async def test_a_text_is_read_in_parts_by_its_owner_alone() -> None:
    kept = MemorySpills(FakeClock())
    await kept.keep("1", "a", b"0123456789", 4, 60)

    part = await kept.part("1", "a", 4, 4)
    assert part is not None
    assert (part.data, part.size, part.page_bytes) == (b"4567", 10, 4)
    assert await kept.part("1", "b", 0, 4) is None
    assert await kept.part("2", "a", 0, 4) is None


async def test_a_text_is_kept_for_its_time_and_its_room_is_given_back() -> None:
    clock = FakeClock()
    kept = MemorySpills(clock, total_bytes=10)
    await kept.keep("1", "a", b"x" * 10, 4, 60)
    await clock.advance(59)
    assert await kept.part("1", "a", 0, 1) is not None
    await clock.advance(1)
    assert await kept.part("1", "a", 0, 1) is None

    await kept.keep("2", "a", b"y" * 10, 4, 60)
    assert await kept.part("2", "a", 0, 1) is not None


async def test_the_oldest_of_an_owner_then_of_all_give_way() -> None:
    kept = MemorySpills(FakeClock(), per_owner_bytes=20, total_bytes=30)
    for name in ("1", "2", "3"):
        await kept.keep(name, "a", b"x" * 10, 4, 60)
    assert [await kept.part(n, "a", 0, 1) is None for n in "123"] == [True, False, False]

    await kept.keep("4", "b", b"x" * 10, 4, 60)
    await kept.keep("5", "b", b"x" * 10, 4, 60)
    assert [await kept.part(n, "a", 0, 1) is None for n in "23"] == [True, False]
    assert [await kept.part(n, "b", 0, 1) is None for n in "45"] == [False, False]


async def test_one_caller_cannot_push_out_the_texts_of_another() -> None:
    kept = MemorySpills(FakeClock(), per_owner_bytes=20, total_bytes=40)
    await kept.keep("kept", owner_key("shop", ""), b"x" * 10, 4, 60)
    for session in "abcdef":
        await kept.keep(session, owner_key("other", session), b"x" * 10, 4, 60)

    assert await kept.part("kept", owner_key("shop", ""), 0, 1) is not None
    gone = [await kept.part(one, owner_key("other", one), 0, 1) is None for one in "abcdef"]
    assert gone == [True, True, True, False, False, False]
