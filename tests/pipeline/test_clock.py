"""Time that is handed in: limits, shared deadlines, and the real clock."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import pytest

from seawall.pipeline.clock import Clock, Deadlines, Limit, SystemClock
from seawall.testing import FakeClock

if TYPE_CHECKING:
    from collections.abc import Callable


class Waiter:
    """Notes when its time is over."""

    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock
        self.expired_at: float | None = None

    def expire(self) -> None:
        self.expired_at = self.clock.now()


async def test_a_limit_ends_its_body_and_the_code_after_it_goes_on() -> None:
    clock = FakeClock()

    async def work() -> tuple[str, bool]:
        with clock.limit(3) as limit:
            await clock.sleep(10)
            return "never", limit.expired
        return "after", limit.expired

    assert await clock.run(work()) == ("after", True)
    assert clock.now() == 3


@pytest.mark.parametrize("seconds", [None, 20])
async def test_a_body_that_ends_in_time_is_left_alone(seconds: float | None) -> None:
    clock = FakeClock()

    async def work() -> bool:
        with clock.limit(seconds) as limit:
            await clock.sleep(10)
        return limit.expired

    assert await clock.run(work()) is False
    assert clock.next_due() is None


async def test_a_limit_that_is_over_already_ends_the_first_wait() -> None:
    clock = FakeClock()

    async def work() -> float:
        with clock.limit(-1):
            await clock.sleep(10)
        return clock.now()

    assert await clock.run(work()) == 0


async def test_an_error_of_the_body_passes_through() -> None:
    with pytest.raises(ValueError, match="own"), FakeClock().limit(1):
        raise ValueError("own")


@pytest.mark.parametrize("ours_first", [True, False])
async def test_a_cancel_from_outside_wins_also_at_the_same_moment(ours_first: bool) -> None:
    clock, limits = FakeClock(), list[Limit]()

    async def work() -> None:
        with clock.limit(5) as limit:
            limits.append(limit)
            await clock.sleep(10)

    task = asyncio.ensure_future(work())
    await clock.settle()
    both: list[Callable[[], object]] = [limits[0].expire, task.cancel]
    for cancel in both if ours_first else reversed(both):
        cancel()
    await clock.settle()

    assert task.cancelled()


async def test_of_two_limits_the_inner_one_is_not_taken_for_the_outer() -> None:
    clock = FakeClock()

    async def work() -> list[bool]:
        with clock.limit(9) as outer:
            with clock.limit(2) as inner:
                await clock.sleep(20)
            await clock.sleep(1)
        return [outer.expired, inner.expired]

    assert await clock.run(work()) == [False, True]
    assert clock.now() == 3


async def test_after_a_limit_the_task_is_not_left_cancelling() -> None:
    clock = FakeClock()

    async def work() -> int:
        with clock.limit(1):
            await clock.sleep(2)
        task = asyncio.current_task()
        assert task is not None
        return task.cancelling()

    assert await clock.run(work()) == 0


def test_a_limit_needs_a_task() -> None:
    with pytest.raises(RuntimeError, match="needs a running asyncio task"):
        asyncio.run(_outside_of_a_task())


async def _outside_of_a_task() -> None:
    loop = asyncio.get_running_loop()
    failed = loop.create_future()

    def enter() -> None:
        try:
            with FakeClock().limit(1):
                pass
        except RuntimeError as error:
            failed.set_exception(error)

    loop.call_soon(enter)
    await failed


async def test_waits_of_one_length_share_a_timer_and_end_in_order() -> None:
    clock = FakeClock()
    shared = Deadlines(clock, 5)
    first, second = Waiter(clock), Waiter(clock)

    shared.enter(first)
    await clock.advance(2)
    shared.enter(second)
    assert len(clock._timers) == 1
    await clock.advance(10)

    assert (first.expired_at, second.expired_at) == (5, 7)


async def test_a_wait_that_began_before_others_ends_before_them() -> None:
    clock = FakeClock()
    shared = Deadlines(clock, 5)
    await clock.advance(3)
    first, held_up, gone = Waiter(clock), Waiter(clock), Waiter(clock)

    shared.enter(first)
    shared.enter(held_up, began=1)
    shared.enter(gone, began=0)
    shared.leave(gone)
    await clock.advance(10)
    shared.leave(held_up)

    assert (held_up.expired_at, first.expired_at, gone.expired_at) == (6, 8, None)
    assert clock.next_due() is None


async def test_a_wait_that_is_over_when_it_is_entered_expires_at_once() -> None:
    clock = FakeClock()
    shared = Deadlines(clock, 5)
    await clock.advance(20)
    late = Waiter(clock)

    shared.enter(late, began=1)
    await clock.advance(0)

    assert late.expired_at == 20


async def test_a_wait_that_ended_early_does_not_expire_and_is_not_held() -> None:
    clock = FakeClock()
    shared = Deadlines(clock, 5)

    for _ in range(1000):
        waiter = Waiter(clock)
        shared.enter(waiter)
        shared.leave(waiter)
        shared.leave(waiter)
    assert not shared._waiting
    await clock.advance(10)

    assert waiter.expired_at is None
    assert clock.next_due() is None


async def test_waits_begin_anew_after_a_pause() -> None:
    clock = FakeClock()
    shared = Deadlines(clock, 5)
    shared.enter(Waiter(clock))
    await clock.advance(100)

    late = Waiter(clock)
    shared.enter(late)
    await clock.advance(5)

    assert late.expired_at == 105


def test_waits_go_on_working_in_the_next_loop() -> None:
    clock = SystemClock()
    shared = Deadlines(clock, 0.01)

    async def wait(*, expires: bool) -> bool:
        class Bell:
            def __init__(self) -> None:
                self.rung = asyncio.Event()

            def expire(self) -> None:
                self.rung.set()

        bell = Bell()
        shared.enter(bell)
        if expires:
            await bell.rung.wait()
        return expires

    asyncio.run(wait(expires=False))  # its timer dies with the loop
    shared.forget_loop()

    assert asyncio.run(wait(expires=True))


async def test_the_real_clock_is_monotonic_and_wakes_who_sleeps() -> None:
    clock, woken = SystemClock(), asyncio.Event()

    begun = clock.now()
    clock.call_later(0.01, woken.set)
    await woken.wait()
    await clock.sleep(0)

    assert 0.005 < clock.now() - begun < 5
    assert abs(clock.wall() - time.time()) < 5


async def test_an_alarm_rings_once_and_can_be_put_off() -> None:
    clock = FakeClock()
    rung, _ = clock.alarm(3)
    silent, timer = clock.alarm(3)
    given_up, _ = clock.alarm(3)
    timer.cancel()
    given_up.cancel()

    await clock.advance(3)

    assert rung.done()
    assert not silent.done()


async def test_a_clock_of_ones_own_says_what_is_missing() -> None:
    clock = Clock()

    for ask in (clock.now, clock.wall, lambda: clock.call_later(1, print)):
        with pytest.raises(NotImplementedError):
            ask()
    with pytest.raises(NotImplementedError):
        await clock.sleep(1)
