"""Foreign code under a limit of somebody else's: waited for within it, ended soon after."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from seawall.pipeline.graced import graced
from seawall.testing import FakeClock

if TYPE_CHECKING:
    from collections.abc import Callable


async def bounded(clock: FakeClock, work: Callable[[], Any], *, grace_s: float = 1) -> Any:
    """Run work under a limit of 5 s."""
    with clock.limit(5):
        return await graced(work, clock, 5, grace_s)
    return f"over at {clock.now():g}"


@pytest.mark.parametrize("seconds", [0, 4.9])
async def test_within_the_limit_it_gives_its_value(seconds: float) -> None:
    clock = FakeClock()

    async def works() -> str:
        await clock.sleep(seconds)
        return "value"

    assert await clock.run(bounded(clock, works)) == "value"
    assert clock.next_due() is None


async def test_a_plain_function_is_only_called() -> None:
    clock = FakeClock()

    assert await clock.run(bounded(clock, lambda: "value")) == "value"


async def test_any_awaitable_is_waited_for() -> None:
    clock = FakeClock()

    async def works() -> str:
        await clock.sleep(2)
        return "value"

    assert await clock.run(bounded(clock, lambda: asyncio.ensure_future(works()))) == "value"


async def test_what_it_raises_comes_through() -> None:
    clock = FakeClock()

    async def fails() -> None:
        await clock.sleep(1)
        raise ValueError("its own")

    with pytest.raises(ValueError, match="its own"):
        await clock.run(bounded(clock, fails))


@pytest.mark.parametrize(("cleanup_s", "over_at"), [(0, 5), (0.9, 5.9), (60, 6)])
async def test_after_the_limit_it_has_its_grace_and_no_more(
    cleanup_s: float, over_at: float
) -> None:
    clock = FakeClock()

    async def cleans_up() -> None:
        try:
            await clock.sleep(60)
        finally:
            await clock.sleep(cleanup_s)

    assert await clock.run(bounded(clock, cleans_up)) == f"over at {over_at:g}"


async def test_one_that_ignores_its_cancel_is_ended_where_it_stands() -> None:
    clock, log = FakeClock(), list[str]()

    async def deaf() -> None:
        while True:
            try:
                await clock.sleep(60)
            except asyncio.CancelledError:
                log.append("ignored")
            except GeneratorExit:
                log.append("ended")
                raise

    assert await clock.run(bounded(clock, deaf)) == "over at 6"
    assert log == ["ignored", "ended"]


async def test_a_value_that_comes_although_it_was_cancelled_is_not_taken() -> None:
    clock = FakeClock()

    async def swallows() -> str:
        try:
            await clock.sleep(60)
        except asyncio.CancelledError:
            return "value"
        return "late"

    assert await clock.run(bounded(clock, swallows)) == "over at 5"


async def test_before_its_limit_a_cancel_waits_for_its_cleanup() -> None:
    clock = FakeClock()

    async def cleans_up() -> None:
        try:
            await clock.sleep(60)
        finally:
            await clock.sleep(3)

    task = asyncio.ensure_future(bounded(clock, cleans_up))
    await clock.advance(1)
    task.cancel()
    await clock.advance(2.9)
    assert not task.done()

    await clock.advance(0.1)
    assert task.cancelled()


async def test_a_cancel_before_the_limit_does_not_outlive_it() -> None:
    clock = FakeClock()

    async def deaf() -> None:
        while True:
            try:
                await clock.sleep(60)
            except asyncio.CancelledError:
                continue

    task = asyncio.ensure_future(bounded(clock, deaf))
    await clock.advance(1)
    task.cancel()
    await clock.advance(4.9)
    assert not task.done()

    await clock.advance(1.1)
    assert task.cancelled()
