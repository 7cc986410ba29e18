"""The shared bucket on real servers, compared with the bucket of one process."""

from __future__ import annotations

import asyncio
import random
import time
from typing import TYPE_CHECKING

import pytest
import redis.asyncio
from tests.redis_servers import Server, running_cluster, running_sentinel, until_up
from tests.waiting import until

from seawall import Shared
from seawall.stores.redis_buckets import _SCRIPT

if TYPE_CHECKING:
    from seawall.contract.taken import Taken


async def take(shared: Shared, capacity: int, period_s: int, cost: int = 1) -> Taken:
    taken = await shared.buckets.take("k", capacity, period_s, cost)
    assert taken is not None, "the store gave no answer"
    return taken


async def test_a_burst_up_to_the_amount_is_granted_and_then_nothing(shared: Shared) -> None:
    taken = [await take(shared, 3, 3_600) for _ in range(5)]

    assert [one.granted for one in taken] == [True, True, True, False, False]
    assert taken[0].left == 2
    assert taken[0].retry_after_s == 0
    assert 0 <= taken[3].left < 0.01


async def test_a_refusal_takes_nothing_and_says_when_there_is_room(shared: Shared) -> None:
    for _ in range(4):
        await take(shared, 4, 1)
    refused = await take(shared, 4, 1)
    assert refused.retry_after_s is not None

    await asyncio.sleep(refused.retry_after_s)

    assert not refused.granted
    assert (await take(shared, 4, 1)).granted


async def test_a_call_a_moment_before_the_time_said_is_refused(shared: Shared) -> None:
    await take(shared, 1, 1)
    begun = time.monotonic()
    refused = await take(shared, 1, 1)
    assert refused.retry_after_s is not None

    await asyncio.sleep(refused.retry_after_s - 0.2 - (time.monotonic() - begun))

    assert not (await take(shared, 1, 1)).granted


async def test_what_is_given_back_can_be_taken_again_and_no_more(shared: Shared) -> None:
    await take(shared, 2, 3_600)
    for _ in range(3):
        await shared.buckets.give_back("k", 2, 3_600, 1)

    taken = [(await take(shared, 2, 3_600)).granted for _ in range(3)]

    assert taken == [True, True, False]


async def test_giving_back_to_a_bucket_that_is_full_leaves_no_key(
    shared: Shared, server: Server
) -> None:
    await shared.buckets.give_back("k", 2, 3_600, 1)

    assert server.keys() == []


async def test_a_cost_is_taken_whole_or_not_at_all(shared: Shared) -> None:
    taken = [await take(shared, 5, 3_600, 3), await take(shared, 5, 3_600, 3)]
    taken.append(await take(shared, 5, 3_600, 2))

    assert [one.granted for one in taken] == [True, False, True]


async def test_keys_expire_when_their_bucket_is_full(shared: Shared, server: Server) -> None:
    await take(shared, 10, 1)

    assert 0 < server.client.pttl("seawall:bucket:k") <= 102
    await until(lambda: not server.keys())


async def test_a_changed_rate_goes_on_from_the_tokens_that_are_there(shared: Shared) -> None:
    for _ in range(8):
        await take(shared, 10, 3_600)

    assert int((await take(shared, 100, 3_600)).left) == 1
    assert (await take(shared, 1, 3_600)).granted
    assert not (await take(shared, 100, 3_600)).granted


async def test_a_server_clock_that_was_set_back_gives_nobody_more(
    shared: Shared, server: Server
) -> None:
    ahead = (time.time() + 3_600) * 1e6
    server.client.set("seawall:bucket:k", f"0.5 {ahead:.0f} 2 {2_000_000}", px=60_000)

    refused = await take(shared, 2, 2)
    assert refused.retry_after_s is not None
    await asyncio.sleep(refused.retry_after_s)

    assert 0.4 < refused.retry_after_s <= 0.5
    assert (await take(shared, 2, 2)).granted


async def test_a_script_that_the_server_forgot_is_sent_again(
    shared: Shared, server: Server
) -> None:
    first = await take(shared, 2, 36_000)
    server.client.script_flush()

    later = [await take(shared, 2, 36_000) for _ in range(2)]

    assert [first.granted, *(one.granted for one in later)] == [True, True, False]


async def test_the_decision_is_one_round_trip(shared: Shared, server: Server) -> None:
    await take(shared, 9, 3_600)
    before = server.client.info("stats")["total_commands_processed"]

    for _ in range(5):
        await take(shared, 9, 3_600)

    # The script's own commands count too: TIME, GET, SET; and the INFO before.
    assert server.client.info("stats")["total_commands_processed"] - before == 5 * 4 + 1


async def test_any_series_of_takings_is_decided_as_arithmetic_says(shared: Shared) -> None:
    chance = random.Random(5)
    capacity, period_s = 20, 1
    granted = 0
    begun = time.monotonic()

    async def one() -> None:
        nonlocal granted
        cost = chance.randint(1, 3)
        if (await take(shared, capacity, period_s, cost)).granted:
            granted += cost

    for _ in range(60):
        await asyncio.gather(*(one() for _ in range(12)))
    took = time.monotonic() - begun

    assert capacity + took * capacity / period_s - 3 <= granted
    assert granted <= capacity + took * capacity / period_s + 1


@pytest.mark.parametrize("how", [running_sentinel, running_cluster])
async def test_sentinels_and_clusters_are_asked_in_the_same_way(how: object) -> None:
    with how() as (server, url):  # type: ignore[operator]  # one of the two above
        async with Shared(url, timeout_s=2) as shared:
            await until_up(shared)
            taken = [await take(shared, 2, 3_600) for _ in range(3)]
            circuits = await shared.circuits.read()

        assert [one.granted for one in taken] == [True, True, False]
        assert circuits == {}
        assert server.keys() == ["seawall:bucket:k"]


@pytest.mark.parametrize(
    "odd",
    [
        "hello",
        "",
        "1 2 3",
        "nan 1 10 60000000",
        "inf 1 10 60000000",
        "1 1 0 60",
        "-5 1 10 60",
        b"\xff",
    ],
)
async def test_what_is_there_and_is_no_bucket_begins_anew(
    shared: Shared, server: Server, odd: str | bytes
) -> None:
    server.client.set("seawall:bucket:k", odd)

    taken = [await take(shared, 2, 3_600) for _ in range(3)]

    assert [one.granted for one in taken] == [True, True, False]
    assert taken[0].left == 1


async def test_a_bucket_of_another_type_begins_anew_and_the_store_goes_on(
    shared: Shared, server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    server.client.lpush("seawall:bucket:k", "x")
    await shared.buckets.give_back("k", 2, 3_600, 1)

    taken = [await take(shared, 2, 3_600) for _ in range(3)]

    assert [one.granted for one in taken] == [True, True, False]
    assert shared.is_up
    assert caplog.records == []


async def test_the_bare_script_gives_what_the_store_makes_of_it(server: Server) -> None:
    client = redis.asyncio.Redis(port=server.port)
    answer = await client.eval(_SCRIPT, 1, "bare", 4, 1_000_000, 1)
    await client.aclose()

    assert answer == [1, b"0", b"3"]
