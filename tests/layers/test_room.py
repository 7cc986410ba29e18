"""Places and a line before them, in any order of comings and goings."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from seawall.layers.room import Room
from seawall.testing import FakeClock


class Visitors:
    """Takes places of one room, and keeps who is where."""

    def __init__(self, limit: float) -> None:
        self.room = Room(limit)
        self.clock = FakeClock()
        self.inside: list[int] = []
        self.left: list[int] = []
        self.tasks: dict[int, asyncio.Task[None]] = {}
        self.ends: dict[int, asyncio.Future[None]] = {}

    async def visit(self, name: int, seconds: float | None) -> None:
        room = self.room
        if room.in_flight < room.limit and not room.line:
            room.in_flight += 1
        elif await room.wait(self.clock, seconds) is None:
            self.left.append(name)
            return
        try:
            self.inside.append(name)
            await self.ends[name]
        finally:
            self.inside.remove(name)
            room.leave()

    async def come(self, name: int, seconds: float | None = None) -> None:
        self.ends[name] = asyncio.get_running_loop().create_future()
        self.tasks[name] = asyncio.ensure_future(self.visit(name, seconds))
        await self.clock.settle()

    async def end(self, name: int) -> None:
        self.ends[name].set_result(None)
        await self.clock.settle()

    async def cancel(self, name: int) -> None:
        self.tasks[name].cancel()
        await self.clock.settle()


async def test_a_place_goes_to_the_first_in_line() -> None:
    visitors = Visitors(1)
    for name in range(3):
        await visitors.come(name)
    assert (visitors.room.in_flight, visitors.room.waiting) == (1, 2)

    await visitors.end(0)

    assert visitors.inside == [1]


async def test_a_place_that_is_handed_on_cannot_be_taken_by_somebody_new() -> None:
    visitors = Visitors(1)
    await visitors.come(0)
    await visitors.come(1)

    visitors.ends[0].set_result(None)
    await asyncio.sleep(0)  # 0 has left, 1 does not run yet
    await visitors.come(2)

    assert visitors.inside == [1]
    assert visitors.room.waiting == 1


async def test_a_place_handed_to_one_who_is_cancelled_at_once_goes_to_the_next() -> None:
    visitors = Visitors(1)
    for name in range(3):
        await visitors.come(name)

    visitors.room.leave()  # on behalf of 0
    visitors.tasks[1].cancel()
    await visitors.clock.settle()

    assert visitors.inside == [0, 2]
    assert visitors.room.in_flight == 1


async def test_one_who_has_waited_long_enough_leaves_the_line() -> None:
    visitors = Visitors(1)
    await visitors.come(0)
    await visitors.come(1, seconds=5)

    await visitors.clock.advance(5)

    assert visitors.left == [1]
    assert visitors.room.waiting == 0
    await visitors.end(0)
    assert visitors.room.idle


async def test_a_place_that_comes_just_as_the_wait_ends_is_taken() -> None:
    visitors = Visitors(1)
    await visitors.come(0)
    await visitors.come(1, seconds=5)
    ((_, _, timer),) = visitors.clock._timers
    assert timer.callback is not None

    visitors.room.leave()  # on behalf of 0
    timer.callback()
    await visitors.clock.settle()

    assert visitors.inside == [0, 1]
    assert visitors.left == []


async def test_more_places_count_at_once() -> None:
    visitors = Visitors(1)
    for name in range(4):
        await visitors.come(name)

    visitors.room.resize(3)
    await visitors.clock.settle()

    assert visitors.inside == [0, 1, 2]


async def test_fewer_places_put_nobody_out() -> None:
    visitors = Visitors(3)
    for name in range(4):
        await visitors.come(name)

    visitors.room.resize(1)
    await visitors.end(0)
    assert visitors.inside == [1, 2]
    await visitors.end(1)
    assert visitors.inside == [2]
    await visitors.end(2)

    assert visitors.inside == [3]


async def test_a_room_may_be_resized_from_another_thread() -> None:
    visitors = Visitors(1)
    await visitors.come(0)
    await visitors.come(1)

    thread = threading.Thread(target=visitors.room.resize, args=(2,))
    thread.start()
    thread.join()
    await visitors.clock.settle()

    assert visitors.inside == [0, 1]


EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("come"), st.none() | st.integers(1, 3)),
        st.tuples(st.just("end"), st.integers(0, 9)),
        st.tuples(st.just("cancel"), st.integers(0, 9)),
        st.tuples(st.just("resize"), st.integers(1, 4)),
        st.tuples(st.just("advance"), st.integers(1, 3)),
    ),
    max_size=30,
)


@settings(max_examples=150)
@given(events=EVENTS)
def test_in_any_order_no_place_is_lost_and_nobody_is_passed_over(events: Any) -> None:
    asyncio.run(_play(events))


async def _play(events: list[tuple[str, Any]]) -> None:
    visitors = Visitors(2)
    room = visitors.room
    for kind, value in events:
        if kind == "come":
            await visitors.come(len(visitors.tasks), value)
        elif kind == "end" and value in visitors.inside:
            await visitors.end(value)
        elif kind == "cancel" and value in visitors.tasks:
            await visitors.cancel(value)
        elif kind == "resize":
            room.resize(value)
            await visitors.clock.settle()
        elif kind == "advance":
            await visitors.clock.advance(value)
        waiting = [n for n, task in visitors.tasks.items() if not task.done()]
        waiting = [n for n in waiting if n not in visitors.inside]
        assert room.in_flight == len(visitors.inside)
        assert room.waiting == len(waiting)
        assert not waiting or room.in_flight >= room.limit
        assert all(inside < n for n in waiting for inside in visitors.inside)
    for name in list(visitors.tasks):
        await visitors.cancel(name)
    assert room.idle


async def test_what_was_taken_before_the_loop_was_forgotten_is_not_given_back_after() -> None:
    room, clock = Room(1), FakeClock()
    room.in_flight = 1
    waiting = asyncio.ensure_future(room.wait(clock, None))
    handed = asyncio.ensure_future(room.wait(clock, None))
    await clock.settle()
    room.leave()

    room.forget_loop()
    assert room.idle
    waiting.cancel()
    handed.cancel()
    await asyncio.wait([waiting, handed])

    assert room.idle


def test_those_in_line_in_a_loop_that_was_closed_are_passed_over() -> None:
    room, clock = Room(1), FakeClock()
    room.in_flight = 1
    loop = asyncio.new_event_loop()

    async def wait() -> asyncio.Task[float | None]:
        task = asyncio.ensure_future(room.wait(clock, None))
        await asyncio.sleep(0)
        return task

    task = loop.run_until_complete(wait())
    loop.close()
    assert not task.done()
    assert room.waiting == 1

    room.resize(2)
    room.leave()

    assert room.idle
