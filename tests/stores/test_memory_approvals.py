"""Approvals in memory: in order without being sorted, and bounded for each caller and for all."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest

from seawall.contract.approval import ApprovalsFull, Frozen, FrozenCall, WaitingRoom
from seawall.stores.memory_approvals import MemoryApprovals

CALL = (FrozenCall(call_id="1", tool="pay", asked=True),)
ROOM = WaitingRoom(max_waiting=3, max_waiting_bytes=10_000)


def request(name: str, created: float = 1.0, caller: str = "", **more: Any) -> Frozen:
    return Frozen(id=name, created=created, calls=CALL, caller=caller, **more)


def close(frozen: Frozen) -> Frozen:
    return msgspec.structs.replace(frozen, withdrawn=1.0)


async def names(store: MemoryApprovals, **options: Any) -> list[str]:
    asked = {"closed": True, "before": None, "limit": 1_000, **options}
    return [one.id for one in await store.page(**asked)]


async def test_pages_are_newest_first_in_whatever_order_they_came() -> None:
    store = MemoryApprovals()
    places = [(float(number % 50), f"r{number:03}") for number in range(200)]
    shuffled = random.Random(7).sample(places, len(places))
    for created, name in shuffled:
        await store.add(request(name, created, alike=f"{int(created) % 3}"), {})
    gone = {name for _, name in places[::4]}
    for name in gone:
        await store.change(name, close)

    ordered = [name for _, name in sorted(places, reverse=True)]
    open_ones = [name for name in ordered if name not in gone]
    assert await names(store) == ordered
    assert await names(store, closed=False) == open_ones
    at = {name: created for created, name in places}
    before = (at[open_ones[20]], open_ones[20])
    assert await names(store, closed=False, before=before, limit=30) == open_ones[21:51]
    alike = [name for name in ordered if int(at[name]) % 3 == 1]
    assert await names(store, alike=["1"]) == alike
    assert await names(store, alike=["1"], before=(at[alike[5]], alike[5])) == alike[6:]
    assert await names(store, alike=["none"]) == []


async def test_closed_ones_of_a_caller_make_room_for_its_own_and_stay_for_others() -> None:
    store = MemoryApprovals()
    await store.add(request("other", 0.0, "shop"), {})
    await store.change("other", close)
    for number in range(20):
        name = f"r{number:02}"
        await store.add(request(name, number + 1.0, "greedy"), {"a": bytes(100)}, (), ROOM)
        await store.change(name, close)

    assert await names(store) == ["r19", "r18", "r17", "r16", "other"]
    assert await store.payloads("r00") == {}


async def test_the_bytes_of_closed_ones_are_bounded_with_what_came_of_them() -> None:
    store = MemoryApprovals()
    for number in range(3):
        await store.add(request(f"r{number}", number + 1.0, "ann"), {"a": bytes(100)}, (), ROOM)
        await store.change(f"r{number}", close, {"result": bytes(9_000)})

    await store.add(request("new", 9.0, "ann"), {}, (), ROOM)

    assert await names(store) == ["new", "r2"]


async def test_places_of_all_are_told_to_be_full_only_if_nothing_closed_is_there() -> None:
    store = MemoryApprovals(2)
    await store.add(request("a", 1.0, "ann"), {})
    await store.add(request("b", 2.0, "bob"), {})
    with pytest.raises(ApprovalsFull, match="2 requests of all callers"):
        await store.add(request("c", 3.0, "eve"), {}, (), ROOM)

    await store.change("a", close)
    await store.add(request("c", 3.0, "eve"), {}, (), ROOM)

    assert await names(store) == ["c", "b"]
    assert await store.prune(read_before=0.0, closed_before=9.0) == 0
    await store.change("c", close)
    await store.change("b", close)
    assert await store.prune(read_before=0.0, closed_before=9.0) == 2
    assert await names(store) == []
