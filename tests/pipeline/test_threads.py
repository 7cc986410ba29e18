"""Worker threads: bounded, in order, and counted when nobody waits any more."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import pytest
from tests.waiting import until

from seawall.pipeline.threads import MAX_IDLE, Threads, Workers, depth

if TYPE_CHECKING:
    from collections.abc import Callable


def nothing() -> None:
    """Tell nobody that a thread has begun."""


class Gate:
    """Work that ends when it is let; counts how much of it runs."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self.running = 0
        self.most = 0
        self._lock = threading.Lock()

    def work(self) -> str:
        with self._lock:
            self.running += 1
            self.most = max(self.most, self.running)
        self.open.wait(5)
        with self._lock:
            self.running -= 1
        return "done"


def started(workers: Workers, work: Callable[[], Any], log: list[Any] | None = None) -> Any:
    return asyncio.ensure_future(
        workers.run(work, nothing if log is None else lambda: log.append(1))
    )


async def test_work_is_done_elsewhere_and_its_value_comes_back() -> None:
    workers = Workers(Threads(), 2)

    assert await workers.run(threading.get_ident, nothing) != threading.get_ident()
    with pytest.raises(ValueError, match="own"):
        await workers.run(lambda: int("own"), nothing)
    assert workers.busy == 0


async def test_a_tool_has_no_more_threads_than_its_limit() -> None:
    workers, gate = Workers(Threads(), 3), Gate()
    tasks = [started(workers, gate.work) for _ in range(8)]
    await until(lambda: gate.running == 3)

    gate.open.set()
    assert await asyncio.gather(*tasks) == ["done"] * 8

    assert (gate.most, workers.busy) == (3, 0)


async def test_who_waits_is_served_in_order_and_before_who_comes_later() -> None:
    workers, gate, order = Workers(Threads(), 1), Gate(), list[str]()

    async def call(name: str) -> None:
        await workers.run(gate.work, lambda: order.append(name))

    tasks = [asyncio.ensure_future(call(name)) for name in "abc"]
    await until(lambda: gate.running == 1)
    tasks[0].add_done_callback(lambda _: tasks.append(asyncio.ensure_future(call("late"))))
    gate.open.set()
    await asyncio.gather(*tasks)
    await asyncio.gather(*tasks)

    assert order == ["a", "b", "c", "late"]


async def test_a_cancel_leaves_the_thread_at_work_and_counts_it() -> None:
    threads = Threads()
    workers, gate, begun = Workers(threads, 1), Gate(), list[Any]()
    task = started(workers, gate.work, begun)
    await until(lambda: gate.running == 1)

    task.cancel()
    await asyncio.wait([task])

    assert (task.cancelled(), len(begun)) == (True, 1)
    assert (workers.abandoned, threads.abandoned, workers.busy) == (1, 1, 1)
    gate.open.set()
    await until(lambda: workers.busy == 0)
    assert (workers.abandoned, threads.abandoned) == (0, 0)


async def test_a_cancel_in_the_moment_in_which_the_thread_ends_leaves_nothing_behind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    threads, gate = Threads(), Gate()
    workers, left, delivered = Workers(threads, 1), list[str](), threading.Event()
    loop = asyncio.get_running_loop()
    deliver = loop.call_soon_threadsafe

    def delivering(*arguments: Any) -> Any:
        handle = deliver(*arguments)
        delivered.set()
        return handle

    def left_behind() -> Callable[[], None]:
        left.append("begun")
        return lambda: left.append("ended")

    monkeypatch.setattr(loop, "call_soon_threadsafe", delivering)
    task = asyncio.ensure_future(workers.run(gate.work, nothing, left_behind))
    await until(lambda: gate.running == 1)
    gate.open.set()
    assert delivered.wait(5)  # the loop stands still: it has not heard of it yet

    task.cancel()
    await asyncio.wait([task])

    assert task.cancelled()
    assert left in ([], ["begun", "ended"])
    assert (workers.busy, workers.abandoned, threads.abandoned) == (0, 0, 0)


async def test_a_cancel_while_waiting_for_a_thread_begins_nothing() -> None:
    workers, gate, begun = Workers(Threads(), 1), Gate(), list[Any]()
    first, waiting = started(workers, gate.work), started(workers, gate.work, begun)
    await until(lambda: gate.running == 1)

    waiting.cancel()
    await asyncio.wait([waiting])
    gate.open.set()

    assert await first == "done"
    assert not begun
    assert (gate.most, workers.busy, len(workers._places)) == (1, 0, 0)


@pytest.mark.parametrize("cancel_first", [True, False])
async def test_a_cancel_as_a_place_is_handed_over_loses_no_place(cancel_first: bool) -> None:
    gate, tasks = Gate(), list[asyncio.Task[Any]]()

    class Busy(Workers):
        def _next(self) -> None:
            if cancel_first:
                tasks[1].cancel()
            super()._next()
            tasks[1].cancel()

    workers = Busy(Threads(), 1)
    tasks.extend(started(workers, gate.work) for _ in range(4))
    await until(lambda: gate.running == 1)

    gate.open.set()
    await asyncio.wait(tasks)

    assert [task.cancelled() for task in tasks] == [False, True, False, False]
    assert (workers.busy, gate.most, len(workers._places)) == (0, 1, 0)


async def test_a_raised_limit_lets_more_in_as_threads_end() -> None:
    workers, gate = Workers(Threads(), 1), Gate()
    tasks = [started(workers, gate.work) for _ in range(3)]
    await until(lambda: gate.running == 1)

    workers.limit = 3
    gate.open.set()

    assert await asyncio.gather(*tasks) == ["done"] * 3


async def test_threads_are_used_again() -> None:
    workers = Workers(Threads(), 2)

    idents = {await workers.run(threading.get_ident, nothing) for _ in range(20)}

    assert len(idents) == 1


async def test_idle_threads_are_few_and_end_when_the_pool_is_closed() -> None:
    threads, gate = Threads(), Gate()
    before = threading.active_count()
    tasks = [started(Workers(threads, 1), gate.work) for _ in range(MAX_IDLE + 5)]
    await until(lambda: gate.running == MAX_IDLE + 5)
    gate.open.set()
    await asyncio.gather(*tasks)
    await until(lambda: threading.active_count() == before + MAX_IDLE)

    threads.close()

    await until(lambda: threading.active_count() == before)


async def test_a_thread_that_is_at_work_when_the_pool_is_closed_ends_with_its_work() -> None:
    threads, gate = Threads(), Gate()
    before = threading.active_count()
    task = started(Workers(threads, 1), gate.work)
    await until(lambda: gate.running == 1)

    threads.close()
    gate.open.set()

    assert await task == "done"
    await until(lambda: threading.active_count() == before)
    # And work that comes all the same is done.
    assert await Workers(threads, 1).run(lambda: 5, nothing) == 5


@pytest.mark.parametrize("error", [StopIteration, GeneratorExit])
async def test_what_would_end_the_waiting_coroutine_is_said_to_be_an_error(
    error: type[BaseException],
) -> None:
    def raises() -> None:
        raise error

    with pytest.raises(RuntimeError, match=error.__name__):
        await Workers(Threads(), 1).run(raises, nothing)


def test_work_that_outlives_its_loop_harms_nobody_and_frees_its_place() -> None:
    threads, gate = Threads(), Gate()
    workers = Workers(threads, 1)

    async def leaves() -> None:
        task = started(workers, gate.work)
        await until(lambda: gate.running == 1)
        task.cancel()
        await asyncio.wait([task])

    asyncio.run(leaves())
    assert workers.abandoned == 1
    gate.open.set()

    async def comes_later() -> Any:
        await until(lambda: workers.busy == 0)
        return await workers.run(lambda: "again", nothing)

    assert asyncio.run(comes_later()) == "again"
    assert (workers.abandoned, threads.abandoned) == (0, 0)


def test_who_waited_in_a_loop_that_is_gone_is_not_served() -> None:
    threads, gate = Threads(), Gate()
    workers = Workers(threads, 1)
    loop = asyncio.new_event_loop()

    async def leaves() -> list[Any]:
        tasks = [started(workers, gate.work) for _ in range(2)]
        await until(lambda: gate.running == 1)
        return tasks

    tasks = loop.run_until_complete(leaves())
    for task in tasks:
        task.cancel()
    loop.run_until_complete(asyncio.wait(tasks))
    loop.close()
    gate.open.set()

    async def comes_later() -> Any:
        await until(lambda: workers.busy == 0)
        return await workers.run(lambda: "again", nothing)

    assert asyncio.run(comes_later()) == "again"
    assert not workers._places


def test_when_the_loop_is_forgotten_places_are_free_and_late_ends_change_nothing() -> None:
    threads, gate = Threads(), Gate()
    workers = Workers(threads, 1)
    loop = asyncio.new_event_loop()

    async def leaves() -> list[Any]:
        tasks = [started(workers, gate.work) for _ in range(2)]
        await until(lambda: gate.running == 1)
        tasks[0].cancel()
        await asyncio.wait(tasks[:1])
        return tasks

    tasks = loop.run_until_complete(leaves())
    loop.close()
    assert (workers.busy, workers.abandoned, threads.abandoned) == (1, 1, 1)

    workers.forget_loop()
    threads.forget_loop()
    assert (workers.busy, workers.abandoned, threads.abandoned) == (0, 0, 0)
    gate.open.set()

    async def comes_later() -> Any:
        await until(lambda: gate.running == 0)
        return await workers.run(lambda: "again", nothing)

    assert asyncio.run(comes_later()) == "again"
    del tasks
    assert (workers.busy, workers.abandoned, threads.abandoned) == (0, 0, 0)


def test_a_thread_whose_news_nobody_took_ends_when_the_loop_is_forgotten() -> None:
    threads, gate = Threads(), Gate()
    workers, found = Workers(threads, 1), list[threading.Thread]()
    loop = asyncio.new_event_loop()

    def work() -> None:
        found.append(threading.current_thread())
        gate.work()

    async def leaves() -> Any:
        task = started(workers, work)
        await until(lambda: gate.running == 1)
        return task

    task = loop.run_until_complete(leaves())
    gate.open.set()
    # The news is in the loop's queue, but the loop does not run any more.
    while not loop._ready:  # type: ignore[attr-defined]  # how else to see that it has come
        found[0].join(0.001)
    loop.close()
    assert found[0].is_alive()

    threads.forget_loop()

    found[0].join(5)
    assert not found[0].is_alive()
    del task


async def test_idle_threads_of_another_process_are_not_given_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    threads = Threads()
    workers = Workers(threads, 1)
    first = await workers.run(threading.current_thread, nothing)
    assert await workers.run(threading.current_thread, nothing) is first

    monkeypatch.setattr(threads, "_process", threads._process + 1)

    assert await workers.run(threading.current_thread, nothing) is not first


async def test_tools_that_wait_in_threads_are_counted_along_the_chain() -> None:
    workers, loop = Workers(Threads(), 4), asyncio.get_running_loop()

    async def inner() -> int:
        found: int = await workers.run(depth, nothing)
        return found

    def outer() -> tuple[int, int]:
        return depth(), asyncio.run_coroutine_threadsafe(inner(), loop).result(5)

    assert await workers.run(outer, nothing) == (1, 2)
    assert depth() == 0
