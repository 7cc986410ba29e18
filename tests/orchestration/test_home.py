"""One loop for one pipeline, and the way there from anywhere else."""

from __future__ import annotations

import asyncio
import gc
import os
import select
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from seawall import Pipeline, Policies, RunPolicy, Tool, ToolResult
from seawall.orchestration import home as home_module
from seawall.orchestration.home import Home
from seawall.pipeline.clock import SystemClock
from seawall.pipeline.context import MAX_DEPTH
from seawall.testing import scripted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


async def thread_of(arguments: dict[str, Any], context: Any) -> int:
    await asyncio.sleep(0)
    return threading.get_ident()


def pipeline(executor: Any = thread_of, **policy: Any) -> Pipeline:
    tool = Tool(name="t", description="", input_schema={"type": "object"}, executor=executor)
    return Pipeline([tool], policies=Policies(default=RunPolicy(**policy)))


@pytest.fixture(autouse=True)
def _quick_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(home_module, "LOOK_AGAIN_S", 0.01)


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(8) as made:
        yield made


BEFORE: set[threading.Thread] = set()


@pytest.fixture(autouse=True)
def _loops_of_others() -> None:
    """A pipeline that nobody closed keeps its loop; it is none of these tests'."""
    BEFORE.clear()
    BEFORE.update(loops())


def loops() -> list[threading.Thread]:
    return [
        thread
        for thread in threading.enumerate()
        if thread.name == "seawall-loop" and thread not in BEFORE
    ]


def closed(made: Pipeline) -> None:
    asyncio.run(made.aclose())


def test_without_a_loop_calls_go_to_one_kept_in_a_thread_of_its_own() -> None:
    made = pipeline()

    idents = {made.call_sync("t").structured_content for _ in range(3)}

    assert len(idents) == len(loops()) == 1
    assert idents != {threading.get_ident()}
    closed(made)
    assert not loops()


def test_calls_from_many_threads_at_once_all_go_to_the_same_loop(pool: ThreadPoolExecutor) -> None:
    made = pipeline()

    found = [pool.submit(made.call_sync, "t") for _ in range(50)]

    assert len({one.result(10).structured_content for one in found}) == 1
    assert len(loops()) == 1
    closed(made)


async def test_while_its_loop_runs_other_threads_are_served_there() -> None:
    made = pipeline()
    first = await made.call("t")

    second = await asyncio.to_thread(made.call_sync, "t")

    assert first.structured_content == second.structured_content == threading.get_ident()
    assert not loops()


async def test_in_the_loops_own_thread_it_is_an_error_that_says_what_to_do() -> None:
    made = pipeline()

    for _ in range(2):  # before its first call, and after
        with pytest.raises(RuntimeError, match=r"await pipeline\.call"):
            made.call_sync("t")
        await made.call("t")


def test_from_another_loop_it_is_an_error_that_says_what_to_do() -> None:
    made = pipeline()
    made.call_sync("t")

    async def elsewhere() -> None:
        await made.call("t")

    with pytest.raises(RuntimeError, match="belongs to another event loop"):
        asyncio.run(elsewhere())
    closed(made)


def test_a_loop_that_is_not_running_is_not_waited_for() -> None:
    made, loop = pipeline(), asyncio.new_event_loop()
    loop.run_until_complete(made.call("t"))

    with pytest.raises(RuntimeError, match="not running now"):
        made.call_sync("t")
    loop.close()
    assert not made.call_sync("t").is_error
    closed(made)


def test_run_after_run_each_with_a_loop_of_its_own() -> None:
    made = pipeline(timeout_s=0.02, rate="3/day", breaker=None, max_concurrency=1)

    for _ in range(3):
        assert not asyncio.run(made.call("t")).is_error

    refused = asyncio.run(made.call("t")).failure
    assert refused is not None
    assert refused.reason == "rate_limited"


def test_timeouts_hold_in_the_second_loop_too() -> None:
    async def hangs_at_last(arguments: dict[str, Any], context: Any) -> None:
        if arguments:
            await asyncio.sleep(30)

    made = pipeline(hangs_at_last, timeout_s=0.02)
    asyncio.run(made.call("t"))

    result = asyncio.run(made.call("t", {"hang": True}))

    assert result.failure is not None
    assert result.failure.reason == "attempt_timeout"


def test_who_waits_for_a_loop_that_ends_is_told(pool: ThreadPoolExecutor) -> None:
    begun = threading.Event()

    async def hangs(arguments: dict[str, Any], context: Any) -> None:
        begun.set()
        await asyncio.sleep(30)

    made = pipeline(hangs)
    loop = asyncio.new_event_loop()
    loop.run_until_complete(made.call("nobody"))

    async def briefly() -> Any:
        made._home.enter()
        waiting = pool.submit(made.call_sync, "t")
        await asyncio.to_thread(begun.wait, 5)
        return waiting

    waiting = loop.run_until_complete(briefly())

    with pytest.raises(RuntimeError, match="ended before the call did"):
        waiting.result(10)
    for task in asyncio.all_tasks(loop):
        task.cancel()
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()


def test_who_waits_for_a_pipeline_that_is_closed_is_told(pool: ThreadPoolExecutor) -> None:
    begun, ended = threading.Event(), threading.Event()

    async def hangs(arguments: dict[str, Any], context: Any) -> None:
        begun.set()
        try:
            await asyncio.sleep(30)
        finally:
            ended.set()

    made = pipeline(hangs)
    waiting = pool.submit(made.call_sync, "t")
    assert begun.wait(5)

    closed(made)

    with pytest.raises(RuntimeError, match="ended before the call did"):
        waiting.result(10)
    assert ended.is_set()
    assert not loops()


def test_a_loop_closed_just_before_is_told_too(monkeypatch: pytest.MonkeyPatch) -> None:
    home, loop = Home(), asyncio.new_event_loop()
    loop.close()
    monkeypatch.setattr(Home, "_for_sync", lambda self: loop)

    async def work() -> None:
        raise AssertionError("never run")

    with pytest.raises(RuntimeError, match="ended before the call did"):
        home.run(work)


def test_an_error_of_the_work_comes_back_as_it_is() -> None:
    home = Home()

    async def fails() -> None:
        raise TimeoutError("its own")

    with pytest.raises(TimeoutError, match="its own"):
        home.run(fails)
    home.close()
    home.close()


def test_long_work_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    home, enough, looks = Home(), asyncio.Event(), list[float | None]()
    answer = home_module._answer

    def looked(future: Any, seconds: float | None = None) -> Any:
        looks.append(seconds)
        if len(looks) == 4:
            home.soon(enough.set)
        return answer(future, seconds)

    monkeypatch.setattr(home_module, "_answer", looked)

    async def takes_a_while() -> str:
        await enough.wait()
        return "value"

    assert home.run(takes_a_while) == "value"
    home.close()


def test_after_closing_calls_are_served_again() -> None:
    made = pipeline()
    made.call_sync("t")
    closed(made)

    assert not made.call_sync("t").is_error
    closed(made)


def test_closing_from_within_the_loop_does_not_wait_for_itself() -> None:
    made: Pipeline

    async def closes(arguments: dict[str, Any], context: Any) -> str:
        await made.aclose()
        return "closed"

    made = pipeline(closes)
    begun = time.perf_counter()

    assert made.call_sync("t").text == "closed"

    for thread in loops():
        thread.join(5)
    assert time.perf_counter() - begun < 3
    assert not loops()


def test_progress_from_a_tools_thread_arrives_in_the_loops_thread() -> None:
    heard: list[Any] = []

    def works(arguments: dict[str, Any], context: Any) -> int:
        context.progress("half")
        return threading.get_ident()

    tool = Tool(name="t", description="", input_schema={}, executor=works)
    made = Pipeline([tool], on_progress=lambda *report: heard.append(threading.get_ident()))

    async def call() -> ToolResult:
        return await made.call("t")

    worker = asyncio.run(call()).structured_content

    assert heard == [threading.get_ident()]
    assert worker != threading.get_ident()


def test_news_for_a_loop_that_is_gone_is_dropped() -> None:
    home, heard = Home(), list[int]()
    home.soon(lambda: heard.append(0))

    async def enters() -> None:
        home.enter()
        home.enter()
        home.soon(lambda: heard.append(1))

    asyncio.run(enters())
    thread = threading.Thread(target=lambda: home.soon(lambda: heard.append(2)))
    thread.start()
    thread.join()

    assert heard == [0, 1]


async def test_a_tool_in_a_thread_may_call_on_by_call_sync_but_not_in_a_loop_of_its_own() -> None:
    made: Pipeline

    def calls_on(arguments: dict[str, Any], context: Any) -> str:
        through = made.call_sync("inner").text
        try:
            asyncio.run(context.call_tool("inner"))
        except RuntimeError as error:
            return f"{through}; {error}"
        return "both"

    outer = Tool(name="t", description="", input_schema={}, executor=calls_on)
    made = Pipeline([outer, scripted("inner's", name="inner")])

    result = await made.call("t")

    assert result.text.startswith("inner's; this pipeline belongs to another event loop")
    await made.aclose()


def in_a_fork(work: Callable[[], object]) -> int:
    """Exit code of a forked process that does the work; -9 if it hangs."""
    alive, child_only = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # that a fork with threads is risky
        child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    os.close(child_only)
    ended, _, _ = select.select([alive], [], [], 5)  # readable once nobody can write any more
    os.close(alive)
    if not ended:
        os.kill(child, 9)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def here(arguments: dict[str, Any], context: Any) -> int:
    return os.getpid()


@pytest.mark.parametrize("executor", [thread_of, here])
@pytest.mark.parametrize("timeout_s", [None, 1.0])
@pytest.mark.parametrize("way", ["call", "call_sync"])
def test_a_forked_process_goes_on_with_a_loop_and_threads_of_its_own(
    executor: Any, timeout_s: float | None, way: str
) -> None:
    made = pipeline(executor, timeout_s=timeout_s)

    def calls() -> None:
        if way == "call":
            assert not asyncio.run(made.call("t")).is_error
        else:
            assert not made.call_sync("t").is_error

    calls()
    assert in_a_fork(calls) == 0
    calls()
    closed(made)


def test_places_taken_by_calls_before_a_fork_are_free_in_the_child(
    pool: ThreadPoolExecutor,
) -> None:
    begun, go = threading.Event(), threading.Event()

    def waits(arguments: dict[str, Any], context: Any) -> str:
        if arguments:
            begun.set()
            go.wait(10)
        return "done"

    made = pipeline(waits, max_concurrency=1, max_threads=1)
    waiting = pool.submit(made.call_sync, "t", {"wait": True})
    assert begun.wait(5)

    def calls() -> None:
        with made._home._guarded():
            assert made._routes["t"].in_flight == 0
        assert made.call_sync("t").text == "done"

    assert in_a_fork(calls) == 0
    go.set()
    assert waiting.result(10).text == "done"
    closed(made)


def test_a_guard_held_at_the_fork_does_not_hold_up_the_child() -> None:
    made = pipeline()

    with made._home._guarded():
        assert in_a_fork(lambda: made.call_sync("t")) == 0


async def hangs_if_told(arguments: dict[str, Any], context: Any) -> str:
    if arguments:
        await asyncio.Event().wait()
    return "done"


def thread_that_hangs_if_told(arguments: dict[str, Any], context: Any) -> str:
    if arguments:
        arguments["gate"] = threading.Event().wait(2)
    return "done"


@pytest.mark.parametrize("executor", [hangs_if_told, thread_that_hangs_if_told])
@pytest.mark.parametrize("exclusive", [None, "key"])
@pytest.mark.parametrize("kept", [True, False])
def test_places_of_calls_whose_loop_was_closed_are_free_in_the_next(
    executor: Any, exclusive: str | None, kept: bool, caplog: pytest.LogCaptureFixture
) -> None:
    tool = Tool(
        name="t",
        description="",
        input_schema={"type": "object"},
        executor=executor,
        exclusive=exclusive,
    )
    policy = RunPolicy(max_concurrency=1, max_threads=1, timeout_s=2)
    made, loop = Pipeline([tool], policies=Policies(default=policy)), asyncio.new_event_loop()

    async def leaves() -> list[Any]:
        tasks = [asyncio.ensure_future(made.call("t", {"hang": True})) for _ in range(3)]
        await asyncio.sleep(0.02)
        return tasks

    tasks = loop.run_until_complete(leaves())
    loop.close()
    if not kept:
        del tasks
        gc.collect()

    async def again() -> list[ToolResult]:
        return [await asyncio.wait_for(made.call("t"), 1) for _ in range(2)]

    assert [result.text for result in asyncio.run(again())] == ["done", "done"]

    if kept:
        del tasks
        gc.collect()
    room = made.states.of_tool("t").find("bulkhead")
    assert (room.in_flight, room.waiting, made._routes["t"].in_flight) == (0, 0, 0)
    assert "Event loop is closed" not in caplog.text


def test_pipelines_that_share_a_clock_keep_their_timers_apart() -> None:
    async def waits(arguments: dict[str, Any], context: Any) -> None:
        await asyncio.sleep(30 if arguments else 0)

    clock = SystemClock()
    policies = Policies(default=RunPolicy(timeout_s=0.05))
    tool = Tool(name="t", description="", input_schema={"type": "object"}, executor=waits)
    first, second = (Pipeline([tool], clock=clock, policies=policies) for _ in range(2))
    asyncio.run(first.call("t"))

    async def calls() -> ToolResult:
        return await asyncio.wait_for(second.call("t", {"hang": True}), 5)

    failure = asyncio.run(calls()).failure
    assert failure is not None
    assert failure.reason == "attempt_timeout"


def test_a_tool_that_interrupts_ends_its_loop_and_the_next_call_has_another() -> None:
    async def interrupts(arguments: dict[str, Any], context: Any) -> str:
        if arguments:
            raise KeyboardInterrupt
        return "done"

    made = pipeline(interrupts)
    made.call_sync("t")
    (first,) = loops()

    with pytest.raises(KeyboardInterrupt):
        made.call_sync("t", {"interrupt": True})

    assert made.call_sync("t").text == "done"
    assert not first.is_alive()
    closed(made)
    assert not loops()


def test_closing_while_other_threads_call_gives_them_an_answer_or_a_runtime_error(
    pool: ThreadPoolExecutor, caplog: pytest.LogCaptureFixture
) -> None:
    made = pipeline()

    def calls() -> set[str]:
        found = set()
        for _ in range(40):
            try:
                found.add(type(made.call_sync("t")).__name__)
            except RuntimeError as error:
                assert "ended before the call did" in str(error)  # noqa: PT017  # answers count too
        return found

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        running = [pool.submit(calls) for _ in range(4)]
        while not all(one.done() for one in running):
            closed(made)
        assert {name for one in running for name in one.result()} <= {"ToolResult"}
    assert not caplog.records
    closed(made)


def test_tools_that_call_on_by_call_sync_do_so_to_a_bounded_depth() -> None:
    made: Pipeline
    depths: list[int] = []

    def calls_on(arguments: dict[str, Any], context: Any) -> str:
        depths.append(arguments["depth"])
        return made.call_sync("t", {"depth": arguments["depth"] + 1}).render()

    made = pipeline(calls_on, max_threads=20, max_concurrency=None)

    text = made.call_sync("t", {"depth": 0}).render()

    assert depths == list(range(MAX_DEPTH))
    assert "this call would be deeper" in text
    assert made.call_sync("t", {"depth": 0}).render() == text
    closed(made)


# --- tools in threads that call themselves


def recursive(**policy: Any) -> Pipeline:
    def again(arguments: dict[str, Any], context: Any) -> str:
        gate = arguments.get("meet")
        if gate is not None:
            meeting.wait(5)
        if not arguments["n"]:
            return "end"
        return made.call_sync("again", {"n": arguments["n"] - 1}).render()

    meeting = threading.Barrier(2)
    tool = Tool(name="again", description="", input_schema={}, executor=again)
    made = Pipeline([tool], policies=Policies(default=RunPolicy(**policy)))
    return made


@pytest.mark.parametrize(("depth", "fits"), [(2, True), (3, False), (6, False)])
async def test_a_tool_whose_threads_all_wait_for_it_is_refused_at_once(
    depth: int, *, fits: bool
) -> None:
    made = recursive(max_threads=3, timeout_s=60)

    result = await made.call("again", {"n": depth})

    assert (result.text == "end") is fits
    assert fits or "all 3 threads of again wait for calls of it" in result.text


async def test_of_two_chains_that_would_wait_for_each_other_one_goes_on() -> None:
    made = recursive(max_threads=2, timeout_s=60)

    results = await asyncio.gather(
        *(made.call("again", {"n": 1, "meet": name}) for name in ("a", "b"))
    )

    assert sorted(result.text[:3] for result in results) == ["Err", "end"]


async def test_a_thread_that_others_hold_is_waited_for() -> None:
    def holds(arguments: dict[str, Any], context: Any) -> str:
        inside.set()
        free.wait(5)
        return "held"

    inside, free = threading.Event(), threading.Event()
    tool = Tool(name="t", description="", input_schema={}, executor=holds)
    made = Pipeline([tool], policies=Policies(default=RunPolicy(max_threads=1)))
    first = asyncio.ensure_future(made.call("t"))
    await asyncio.to_thread(inside.wait, 5)
    second = asyncio.ensure_future(made.call("t"))
    await asyncio.sleep(0)

    free.set()

    assert [(await one).text for one in (first, second)] == ["held", "held"]
