"""No call hangs on a server that is gone, and it is found again; on a real server."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING

import pytest
from tests.redis_servers import Server, running, until_up
from tests.waiting import until_idle

from seawall.pipeline.clock import SystemClock
from seawall.stores.redis_address import redis_address
from seawall.stores.redis_link import CONNECTIONS, RedisLink

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

ECHO = "return ARGV[1]"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running() as found:
        yield found


@pytest.fixture
async def link(server: Server) -> AsyncIterator[RedisLink]:
    found = made(server.url, timeout_s=0.5)
    await found.start()
    await until_up(found)
    yield found
    await found.aclose()


def made(url: str, timeout_s: float) -> RedisLink:
    link = RedisLink(redis_address(url), timeout_s, SystemClock())
    link.script("echo", ECHO)
    link.script("wrong", "return redis.call('NO-SUCH-COMMAND')")
    return link


async def asked(link: RedisLink, script: str = "echo") -> tuple[object, float]:
    begun = time.monotonic()
    answer = await link.ask(script, "key", ("said",))
    return answer, time.monotonic() - begun


async def test_a_script_is_asked(link: RedisLink) -> None:
    assert (await asked(link))[0] == b"said"


async def test_the_first_asking_connects(server: Server) -> None:
    link = made(server.url, timeout_s=5)

    assert (await asked(link))[0] == b"said"

    await link.aclose()


async def test_a_server_that_hangs_holds_nobody_longer_than_the_bound(server: Server) -> None:
    link = made(server.url, timeout_s=1.5)
    await link.start()
    await until_up(link)
    server.pause()
    try:
        first, took_s = await asked(link)
        others = await asyncio.gather(*(asked(link) for _ in range(50)))
    finally:
        server.go_on()

    assert first is None
    assert 1.4 < took_s < 5
    assert all(answer is None and took_s < 1.4 for answer, took_s in others)
    await until_up(link)
    assert (await asked(link))[0] == b"said"
    await link.aclose()


async def test_a_server_that_is_not_there_is_no_error_and_no_wait() -> None:
    link = made("redis://127.0.0.1:9/0", timeout_s=5)

    answers = [await asked(link) for _ in range(3)]

    assert all(answer is None and took_s < 4 for answer, took_s in answers)
    await link.aclose()


async def test_a_server_that_was_restarted_is_found_again(
    link: RedisLink, server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "seawall"):
        server.stop()
        assert (await asked(link))[0] is None
        server.start()
        await until_up(link)

    assert (await asked(link))[0] == b"said"
    assert "does not serve" in caplog.text
    assert "serves again" in caplog.records[-1].getMessage()


async def test_what_the_server_refuses_is_no_answer(link: RedisLink) -> None:
    assert (await asked(link, "wrong"))[0] is None

    await until_up(link)
    assert (await asked(link))[0] == b"said"


async def test_a_server_that_refuses_what_is_asked_is_not_up_and_down_with_every_call(
    link: RedisLink, caplog: pytest.LogCaptureFixture
) -> None:
    await until_up(link)

    with caplog.at_level(logging.WARNING, "seawall"):
        for _ in range(40):
            await asked(link, "wrong")
            await asyncio.sleep(0.01)

    assert len([one for one in caplog.records if "serve" in one.getMessage()]) <= 4


async def test_who_only_waits_for_others_does_not_take_the_server_for_gone(
    server: Server,
) -> None:
    link = made(server.url, timeout_s=5)
    await link.start()
    await until_up(link)
    impatient = RedisLink.__new__(RedisLink)
    impatient.__dict__.update({**link.__dict__, "_timeout_s": 0.02})
    for _ in range(CONNECTIONS):
        await link._places.acquire()

    answer, _ = await asked(impatient)

    assert answer is None
    assert impatient.is_up
    for _ in range(CONNECTIONS):
        link._places.release()
    await link.aclose()


async def test_an_answer_that_came_while_the_process_stood_still_counts(
    server: Server,
) -> None:
    link = made(server.url, timeout_s=0.2)
    await link.start()
    await until_up(link)

    asking = asyncio.ensure_future(asked(link))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    time.sleep(0.4)  # noqa: ASYNC251  # the process stands still: that is what is tested
    answer, _ = await asking

    assert answer == b"said"
    await link.aclose()


async def test_who_is_cancelled_while_asking_is_cancelled(link: RedisLink, server: Server) -> None:
    server.pause()
    asking = asyncio.ensure_future(asked(link))
    await until_idle()
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    server.go_on()

    assert link.is_up
    assert (await asked(link))[0] == b"said"


async def test_many_askings_share_a_few_connections(link: RedisLink, server: Server) -> None:
    before = server.client.info("clients")["connected_clients"]

    answers = await asyncio.gather(*(asked(link) for _ in range(200)))

    assert [answer for answer, _ in answers] == [b"said"] * 200
    assert server.client.info("clients")["connected_clients"] == before


async def test_after_it_was_closed_nothing_is_asked_and_nothing_runs(server: Server) -> None:
    link = made(server.url, timeout_s=0.5)
    await link.start()
    await link.aclose()

    assert (await asked(link))[0] is None
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_knocking_ends_when_it_is_closed() -> None:
    link = made("redis://127.0.0.1:9/0", timeout_s=0.5)
    await asked(link)

    await link.aclose()

    assert asyncio.all_tasks() == {asyncio.current_task()}


def test_it_can_go_on_in_another_loop(server: Server) -> None:
    link = made(server.url, timeout_s=5)

    async def once() -> object:
        answer, _ = await asked(link)
        for close in link._closers:
            await close()
        link.forget_loop()
        return answer

    assert [asyncio.run(once()), asyncio.run(once())] == [b"said", b"said"]


async def test_a_server_that_answers_but_takes_no_write_does_not_serve(server: Server) -> None:
    link = made(server.url, timeout_s=0.5)
    link.script("write", "return redis.call('SET', KEYS[1], ARGV[1])")
    await link.start()
    await until_up(link)
    server.fill()
    try:
        assert (await asked(link, "write"))[0] is None
        await asyncio.sleep(0.3)
        assert not link.is_up
    finally:
        server.make_room()

    await until_up(link)
    assert (await asked(link, "write"))[0] is not None
    await link.aclose()


async def test_an_outage_is_told_once_with_the_reason(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    link = made(server.url.replace("redis://", "redis://:secret@"), timeout_s=0.5)

    with caplog.at_level(logging.WARNING, "seawall"):
        for _ in range(3):
            await asked(link)
            await asyncio.sleep(0.1)

    assert len(caplog.records) == 1
    assert "AuthenticationError" in caplog.text
    assert "secret" not in caplog.text
    await link.aclose()
