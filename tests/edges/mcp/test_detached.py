import asyncio
from typing import Any

import pytest
from tests.waiting import until_idle

from seawall.edges.mcp.detached import detached


async def test_the_work_gives_what_it_gives() -> None:
    tasks: set[asyncio.Task[Any]] = set()

    async def work() -> int:
        assert len(tasks) == 1
        return 7

    assert await detached(work(), tasks=tasks) == 7
    await asyncio.sleep(0)
    assert not tasks


async def test_who_is_cancelled_leaves_at_once_though_the_work_takes_its_time() -> None:
    tasks: set[asyncio.Task[Any]] = set()
    may_end, ended = asyncio.Event(), asyncio.Event()
    told: list[asyncio.Task[None]] = []

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await may_end.wait()
            ended.set()

    waiting = asyncio.create_task(detached(work(), tasks=tasks, given_up=told.append))
    await until_idle()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting

    assert not ended.is_set()
    assert len(told) == 1
    may_end.set()
    await ended.wait()


async def test_work_that_was_cancelled_by_others_gives_nothing() -> None:
    tasks: set[asyncio.Task[Any]] = set()
    waiting = asyncio.create_task(detached(asyncio.Event().wait(), tasks=tasks))
    await until_idle()

    for task in tasks:
        task.cancel()

    assert await waiting is None


async def test_an_error_after_nobody_waits_any_more_is_no_noise() -> None:
    tasks: set[asyncio.Task[Any]] = set()

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            raise ValueError("late")

    waiting = asyncio.create_task(detached(work(), tasks=tasks))
    await until_idle()
    waiting.cancel()

    with pytest.raises(asyncio.CancelledError):
        await waiting
    await until_idle()
    assert not tasks
