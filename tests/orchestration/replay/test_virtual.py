"""A loop whose time is virtual."""

from __future__ import annotations

import asyncio

import pytest

from seawall.orchestration.replay.virtual import VirtualClock, VirtualLoop


def a_loop() -> tuple[VirtualLoop, VirtualClock]:
    loop = VirtualLoop()  # type: ignore[abstract]  # typeshed's base has methods nobody needs
    return loop, VirtualClock(loop, wall=1_000)


def test_a_day_passes_at_once() -> None:
    loop, clock = a_loop()

    loop.run(clock.sleep(86_400))

    assert (clock.now(), clock.wall()) == (86_400, 87_400)


def test_timers_fire_in_their_order_at_exactly_their_time() -> None:
    loop, clock = a_loop()
    seen: list[tuple[str, float]] = []

    async def one(name: str, seconds: float) -> None:
        await clock.sleep(seconds)
        seen.append((name, clock.now()))

    async def work() -> None:
        await asyncio.gather(one("b", 0.3), one("a", 0.1), one("c", 0.3))

    loop.run(work())

    assert seen == [("a", 0.1), ("b", 0.3), ("c", 0.3)]


def test_a_limit_and_a_cancel_work_as_elsewhere() -> None:
    loop, clock = a_loop()

    async def work() -> bool:
        with clock.limit(2) as limit:
            await clock.sleep(5)
        return limit.expired

    assert loop.run(work())
    assert clock.now() == 2


def test_what_can_never_go_on_is_told() -> None:
    loop, _ = a_loop()

    async def work() -> None:
        await loop.create_future()

    with pytest.raises(RuntimeError, match="nothing is left that could ever go on"):
        loop.run(work())


def test_a_callback_that_raises_ends_the_run() -> None:
    loop, clock = a_loop()

    async def work() -> None:
        loop.call_soon(int, "no number")
        await clock.sleep(1)

    with pytest.raises(RuntimeError) as caught:
        loop.run(work())

    assert isinstance(caught.value.__cause__, ValueError)


def test_giving_way_lets_others_go_first() -> None:
    loop, clock = a_loop()
    seen: list[str] = []

    async def work() -> None:
        loop.call_soon(seen.append, "other")
        await clock.sleep(0)
        seen.append("self")

    loop.run(work())

    assert seen == ["other", "self"]
