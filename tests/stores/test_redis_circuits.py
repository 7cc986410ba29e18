"""Shared circuits on real servers: who may probe, and what all read."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

import pytest

from seawall.contract.circuit_news import CircuitNews

if TYPE_CHECKING:
    from tests.redis_servers import Server

    from seawall import Shared
    from seawall.stores.redis_circuits import RedisCircuits


@pytest.fixture
def circuits(shared: Shared) -> RedisCircuits:
    return shared.circuits


async def tell(circuits: RedisCircuits, what: Any, process: str = "a", **fields: Any) -> None:
    settings = {"name": "t", "left_s": 30.0, "cooldown_s": 30.0, "kind": "OSError", **fields}
    assert await circuits.tell(CircuitNews(what=what, process=process, **settings))


async def ask(circuits: RedisCircuits, process: str) -> float:
    wait_s = await circuits.ask("t", process, 30)
    assert wait_s is not None
    return wait_s


async def seen(circuits: RedisCircuits) -> Any:
    found = await circuits.read()
    assert found is not None
    return found.get("t")


async def test_a_circuit_that_opened_is_read_with_what_is_left(circuits: RedisCircuits) -> None:
    assert await seen(circuits) is None

    await tell(circuits, "tripped")

    one = await seen(circuits)
    assert (one.is_open, one.cooldown_s, one.kind) == (True, 30, "OSError")
    assert 29 < one.left_s <= 30
    assert 29 < await ask(circuits, "a") <= 30


ODD = [
    "hello",
    "[1]",
    "7",
    '{"open":true}',
    '{"changed":"z","open":true,"due":1e400,"cooldown":1e400,"kind":"","held":false}',
    '{"changed":"z","open":1,"due":1,"cooldown":1,"kind":"","holder":"","lapse":0,"forget":1}',
    b"\xff",
]


@pytest.mark.parametrize("odd", ODD)
async def test_a_field_that_cannot_be_read_is_passed_over_and_said_once(
    circuits: RedisCircuits, server: Server, odd: Any, caplog: pytest.LogCaptureFixture
) -> None:
    server.client.hset("seawall:circuits", "other", odd)
    server.client.hset("seawall:circuits", b"\xff", odd)

    await tell(circuits, "tripped")
    found = [await circuits.read() for _ in range(3)]

    assert [list(one or ()) for one in found] == [["t"]] * 3
    assert [one.getMessage()[:8] for one in caplog.records] == ["2 fields"]


@pytest.mark.parametrize("odd", ODD)
async def test_a_circuit_whose_field_cannot_be_read_is_kept_anew(
    circuits: RedisCircuits, server: Server, odd: Any
) -> None:
    for what in ("tripped", "held", "closed", "failed", "released"):
        server.client.hset("seawall:circuits", "t", odd)
        await tell(circuits, what)
    server.client.hset("seawall:circuits", "t", odd)

    assert await ask(circuits, "a") == 0
    await tell(circuits, "failed")
    assert (await seen(circuits)).is_open


async def test_a_key_of_another_type_is_replaced_when_there_is_something_to_say(
    circuits: RedisCircuits, shared: Shared, server: Server
) -> None:
    server.client.set("seawall:circuits", "hello")
    before = await circuits.read()

    await tell(circuits, "tripped")

    assert before == {}
    assert (await seen(circuits)).is_open
    assert shared.is_up


async def test_a_second_opening_does_not_put_off_the_first(circuits: RedisCircuits) -> None:
    await tell(circuits, "tripped")
    first = await seen(circuits)

    await tell(circuits, "tripped", "b", left_s=90.0)

    assert (await seen(circuits)).changed == first.changed


async def test_one_process_gets_leave_and_the_others_wait(circuits: RedisCircuits) -> None:
    await tell(circuits, "tripped", left_s=0.0)

    waits = await asyncio.gather(*(ask(circuits, f"process {n}") for n in range(50)))

    assert min(waits) == 0
    assert all(0 < wait_s <= 0.5 for wait_s in sorted(waits)[1:])


async def test_who_has_leave_keeps_it(circuits: RedisCircuits) -> None:
    await tell(circuits, "tripped", left_s=0.0)

    assert [await ask(circuits, "a"), await ask(circuits, "a")] == [0, 0]
    assert await ask(circuits, "b") > 0


async def test_leave_that_is_handed_back_goes_to_the_next(circuits: RedisCircuits) -> None:
    await tell(circuits, "tripped", left_s=0.0)
    await ask(circuits, "a")
    await tell(circuits, "released", "b")
    assert await ask(circuits, "b") > 0

    await tell(circuits, "released", "a")

    assert await ask(circuits, "b") == 0


async def test_leave_of_a_process_that_died_lapses(circuits: RedisCircuits, server: Server) -> None:
    await tell(circuits, "tripped", left_s=0.0)
    await ask(circuits, "a")
    kept = server.client.hget("seawall:circuits", "t")
    lapse = int(kept.decode().split('"lapse":')[1].split(",")[0].split("}")[0])
    assert lapse / 1000 - time.time() == pytest.approx(70, abs=2)

    past = kept.replace(str(lapse).encode(), str(int(time.time() * 1000) - 1).encode())
    server.client.hset("seawall:circuits", "t", past)

    assert await ask(circuits, "b") == 0


async def test_a_probe_that_succeeded_closes_and_one_that_failed_opens_again(
    circuits: RedisCircuits,
) -> None:
    await tell(circuits, "tripped", left_s=0.0)
    await ask(circuits, "a")
    await tell(circuits, "failed", "a", left_s=60.0, cooldown_s=60.0)
    assert (await seen(circuits)).cooldown_s == 60

    await tell(circuits, "failed", "a", left_s=0.0, cooldown_s=60.0)
    assert 59 < (await seen(circuits)).left_s <= 60


async def test_only_who_has_leave_says_what_came_of_it(circuits: RedisCircuits) -> None:
    await tell(circuits, "tripped", left_s=0.0)
    await ask(circuits, "a")

    await tell(circuits, "succeeded", "b")
    assert (await seen(circuits)).is_open

    await tell(circuits, "succeeded", "a")
    assert not (await seen(circuits)).is_open
    assert await ask(circuits, "b") < 0


async def test_who_closes_by_hand_needs_no_leave(circuits: RedisCircuits) -> None:
    await tell(circuits, "tripped")

    await tell(circuits, "closed", "b")

    assert not (await seen(circuits)).is_open


async def test_what_was_opened_by_hand_is_probed_by_nobody_until_it_is_closed_by_hand(
    circuits: RedisCircuits, server: Server
) -> None:
    await tell(circuits, "held", left_s=0.0)

    assert (await seen(circuits)).is_held
    assert await ask(circuits, "a") > 0
    for what in ("tripped", "failed", "succeeded", "released"):
        await tell(circuits, what)
    assert (await seen(circuits)).is_held
    # It outlives a fleet that is stopped over a weekend.
    assert server.client.pttl("seawall:circuits") > 6 * 24 * 3_600_000

    changed = (await seen(circuits)).changed
    await tell(circuits, "held", "b")
    assert (await seen(circuits)).changed == changed
    await tell(circuits, "closed", "b")
    assert not (await seen(circuits)).is_open
    assert not (await seen(circuits)).is_held


async def test_what_was_open_by_itself_may_be_opened_by_hand_too(circuits: RedisCircuits) -> None:
    await tell(circuits, "tripped")
    await tell(circuits, "held", "b")

    assert (await seen(circuits)).is_held


async def test_who_closes_by_hand_what_the_store_has_lost_is_heard_all_the_same(
    circuits: RedisCircuits,
) -> None:
    await tell(circuits, "closed")

    assert not (await seen(circuits)).is_open


async def test_of_a_circuit_that_the_store_has_lost_the_first_to_ask_probes(
    circuits: RedisCircuits,
) -> None:
    assert await ask(circuits, "a") == 0
    assert await ask(circuits, "b") > 0


async def test_what_is_kept_expires(circuits: RedisCircuits, server: Server) -> None:
    await tell(circuits, "tripped")

    assert 0 < server.client.ttl("seawall:circuits") <= 661


async def test_what_is_long_over_is_cleared_away(circuits: RedisCircuits, server: Server) -> None:
    await tell(circuits, "tripped", name="old")
    kept = server.client.hget("seawall:circuits", "old").decode()
    before, after = kept.split('"forget":')
    number = after.split(",")[0].split("}")[0]
    server.client.hset("seawall:circuits", "old", f'{before}"forget":{after.replace(number, "1")}')

    await tell(circuits, "tripped")

    assert set(await circuits.read() or {}) == {"t"}
