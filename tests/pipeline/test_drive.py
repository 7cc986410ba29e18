from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seawall.pipeline.clock import SystemClock
from seawall.pipeline.drive import Drive, LetGo
from seawall.testing import FakeClock, LayerBench

if TYPE_CHECKING:
    from seawall.pipeline.invocation import Invocation

Body = Callable[[FakeClock, list[str]], Awaitable[Any]]


class Stage:
    """A driven coroutine on a fake clock, and what it left in its log."""

    def __init__(self, grace_s: float = 1.0) -> None:
        self.clock: Any = FakeClock()
        self.log: list[str] = []
        self.call: Invocation = LayerBench(clock=self.clock).invocation()
        self.grace_s = grace_s
        self.drive: Drive[Any]

    async def under(self, seconds: float | None, body: Body) -> Any:
        coro = cast("Any", body(self.clock, self.log))
        drive: Drive[Any] = Drive(coro, self.call, self.clock, self.grace_s)
        self.drive = drive
        timer = None if seconds is None else self.clock.call_later(seconds, drive.expire)
        try:
            return await drive
        except asyncio.CancelledError:
            if drive.expired and drive.settle():
                return "timeout"
            raise
        except LetGo:
            if drive.settle():
                return "let go"
            raise asyncio.CancelledError from None
        finally:
            if timer is not None:
                timer.cancel()


async def _sleeps(clock: FakeClock, log: list[str]) -> str:
    try:
        await clock.sleep(10)
    finally:
        log.append("ended")
    return "value"


async def _cleans_up_slowly(clock: FakeClock, log: list[str]) -> str:
    try:
        await clock.sleep(10)
    finally:
        await clock.sleep(0.5)
        log.append("cleaned")
    return "value"


async def _deaf(clock: FakeClock, log: list[str]) -> str:
    end = clock.now() + 10
    while clock.now() < end:
        try:
            await clock.sleep(end - clock.now())
        except asyncio.CancelledError:
            log.append("ignored")
    log.append("finished")
    return "late"


async def _deaf_inner_task(clock: FakeClock, log: list[str]) -> str:
    return await asyncio.ensure_future(_deaf(clock, log))


async def _deafer(clock: FakeClock, log: list[str]) -> str:
    for _ in range(3):
        try:
            await clock.sleep(10)
            log.append("driven on")
        except BaseException:  # noqa: BLE001  # what is tested: it will not even be ended
            log.append("ignored")
    return "late"


async def _holds_a_deafer(clock: FakeClock, log: list[str]) -> str:
    return await _deafer(clock, log)


async def _busy_deaf(clock: FakeClock, log: list[str]) -> str:
    while "stop" not in log:
        try:  # noqa: SIM105  # it has to swallow the cancel itself
            await asyncio.sleep(0)
        except asyncio.CancelledError:
            pass
    return "late"


async def _fails_after(clock: FakeClock, seconds: float) -> None:
    await clock.sleep(seconds)
    raise OSError("child")


async def _fails_in_cleanup(clock: FakeClock, log: list[str]) -> str:
    try:
        await clock.sleep(10)
    finally:
        raise ValueError("in cleanup")


async def test_a_coroutine_that_ends_in_time_gives_its_value() -> None:
    stage = Stage()

    assert await stage.clock.run(stage.under(11, _sleeps)) == "value"
    assert stage.clock.now() == 10


async def test_a_coroutine_past_its_limit_is_cancelled() -> None:
    stage = Stage()

    assert await stage.clock.run(stage.under(3, _sleeps)) == "timeout"
    assert stage.clock.now() == 3
    assert stage.log == ["ended"]


async def test_cleanup_within_the_grace_is_waited_for() -> None:
    stage = Stage()

    assert await stage.clock.run(stage.under(3, _cleans_up_slowly)) == "timeout"
    assert stage.log == ["cleaned"]
    assert stage.clock.now() == 3.5


@pytest.mark.parametrize("body", [_deaf, _deaf_inner_task])
async def test_a_deaf_coroutine_is_ended_where_it_stands_after_its_grace(body: Body) -> None:
    stage = Stage()

    assert await stage.clock.run(stage.under(3, body)) == "let go"
    assert stage.clock.now() == 4
    await stage.clock.advance(20)  # a task that the tool made itself ends in its own time


async def test_what_a_deaf_coroutine_would_have_done_later_is_not_done() -> None:
    stage = Stage()

    await stage.clock.run(stage.under(3, _deaf))
    await stage.clock.advance(20)

    assert "finished" not in stage.log


@pytest.mark.parametrize("body", [_deafer, _holds_a_deafer])
async def test_a_coroutine_that_will_not_be_ended_either_is_driven_no_further(body: Body) -> None:
    stage = Stage()

    assert await stage.clock.run(stage.under(3, body)) == "let go"
    await stage.clock.advance(20)

    assert stage.log[:2] == ["ignored", "ignored"]
    assert "driven on" not in stage.log


async def test_scopes_of_a_tool_that_was_let_go_do_not_cancel_its_caller_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stage = Stage()

    async def scoped(clock: Any, log: list[str]) -> None:
        async with asyncio.timeout(60):
            while True:
                try:
                    await clock.sleep(1_000)
                except asyncio.CancelledError:
                    log.append("ignored")

    moving = asyncio.ensure_future(stage.clock.advance(10))
    assert await stage.under(3, scoped) == "let go"
    await moving
    loop = asyncio.get_running_loop()
    later = loop.time() + 100  # asyncio.timeout knows no clock but the loop's
    monkeypatch.setattr(loop, "time", lambda: later)
    for _ in range(3):
        await asyncio.sleep(0)

    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


async def test_a_deaf_coroutine_that_never_waits_for_long_is_let_go_too() -> None:
    stage = Stage(grace_s=0.02)
    stage.clock = SystemClock()  # a fake clock waits until nothing is busy

    assert await stage.under(0.02, _busy_deaf) == "let go"

    stage.log.append("stop")
    await asyncio.sleep(0)


async def test_the_callers_cancel_of_a_deaf_coroutine_ends_with_its_limit_at_the_latest() -> None:
    stage = Stage()
    running = asyncio.ensure_future(stage.under(5, _deaf))
    await stage.clock.advance(1)

    running.cancel()
    await stage.clock.advance(4)
    assert not running.done()
    await stage.clock.advance(1)

    assert running.cancelled()


async def test_a_scope_of_the_tool_may_take_longer_than_the_grace_to_clean_up() -> None:
    stage = Stage(grace_s=0.5)

    async def scoped(clock: FakeClock, log: list[str]) -> str:
        with clock.limit(1):
            try:
                await clock.sleep(10)
            finally:
                await clock.sleep(3)
                log.append("cleaned")
        return "went on"

    assert await stage.clock.run(stage.under(60, scoped)) == "went on"
    assert stage.log == ["cleaned"]


async def test_a_timeout_inside_the_tool_is_the_tools_own() -> None:
    stage = Stage()
    stage.clock = SystemClock()  # asyncio.timeout knows no other

    async def scoped(clock: FakeClock, log: list[str]) -> str:
        try:
            async with asyncio.timeout(0.01):
                await asyncio.sleep(10)
        except TimeoutError:
            log.append("its own")
        await clock.sleep(0)
        return "went on"

    assert await stage.under(60, scoped) == "went on"
    assert stage.log == ["its own"]


async def test_the_callers_cancel_wins_over_a_value_given_in_spite_of_it() -> None:
    stage = Stage()

    async def swallows(clock: FakeClock, log: list[str]) -> str:
        try:
            await clock.sleep(10)
        except asyncio.CancelledError:
            log.append("swallowed")
        return "value"

    running = asyncio.ensure_future(stage.under(None, swallows))
    await stage.clock.advance(1)
    running.cancel()
    await stage.clock.settle()

    assert running.cancelled()
    assert stage.log == ["swallowed"]


@pytest.mark.parametrize("ours_first", [True, False])
async def test_a_cancel_at_the_same_moment_as_the_limit_wins(ours_first: bool) -> None:
    stage = Stage()
    running = asyncio.ensure_future(stage.under(9, _sleeps))
    await stage.clock.settle()

    both: list[Callable[[], Any]] = [stage.drive.expire, running.cancel]
    for cancel in both if ours_first else reversed(both):
        cancel()
    await stage.clock.settle()

    assert running.cancelled()


async def test_a_second_cancel_during_cleanup_reaches_the_cleanup() -> None:
    stage = Stage(grace_s=5)

    async def stubborn(clock: FakeClock, log: list[str]) -> None:
        try:
            await clock.sleep(10)
        finally:
            try:
                await clock.sleep(3)
            except asyncio.CancelledError:
                log.append("second")
                raise

    running = asyncio.ensure_future(stage.under(None, stubborn))
    await stage.clock.advance(1)
    running.cancel()
    await stage.clock.advance(1)
    running.cancel()
    await stage.clock.settle()

    assert running.cancelled()
    assert stage.log == ["second"]
    assert stage.clock.now() == 2


async def test_an_error_during_cleanup_is_what_comes_out() -> None:
    stage = Stage()

    with pytest.raises(ValueError, match="in cleanup"):
        await stage.clock.run(stage.under(3, _fails_in_cleanup))


async def test_a_future_that_somebody_else_cancels_is_no_cancel_of_the_call() -> None:
    stage = Stage()
    waited_for: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def waits(clock: FakeClock, log: list[str]) -> str:
        try:
            await waited_for
        except asyncio.CancelledError:
            return "went on"
        return "never"

    running = asyncio.ensure_future(stage.under(5, waits))
    await stage.clock.settle()
    waited_for.cancel()
    await stage.clock.settle()

    assert await running == "went on"


async def test_an_error_of_an_awaited_future_reaches_the_coroutine() -> None:
    stage = Stage()
    waited_for: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def waits(clock: FakeClock, log: list[str]) -> str:
        try:
            await waited_for
        except OSError:
            return "handled"
        return "never"

    running = asyncio.ensure_future(stage.under(5, waits))
    await stage.clock.settle()
    waited_for.set_exception(OSError("gone"))
    await stage.clock.settle()

    assert await running == "handled"


async def test_scopes_of_the_tool_end_in_the_task_where_they_began() -> None:
    stage = Stage(grace_s=5)
    tasks: list[asyncio.Task[Any] | None] = []

    async def looks(clock: FakeClock, log: list[str]) -> None:
        tasks.append(asyncio.current_task())
        try:
            await clock.sleep(10)
        finally:
            await clock.sleep(1)
            tasks.append(asyncio.current_task())

    assert await stage.clock.run(stage.under(2, looks)) == "timeout"
    assert tasks[0] is tasks[1]


async def test_an_outer_timeout_is_not_taken_for_ours() -> None:
    stage = Stage()

    async def outer() -> None:
        async with asyncio.timeout(0.01):
            await stage.under(5, _sleeps)

    with pytest.raises(TimeoutError):
        await outer()
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


async def test_after_our_timeout_the_task_is_not_left_cancelling() -> None:
    stage = Stage()

    async def twice() -> list[Any]:
        first = await stage.under(1, _sleeps)
        second = await stage.under(20, _sleeps)
        task = asyncio.current_task()
        assert task is not None
        return [first, second, task.cancelling()]

    assert await stage.clock.run(twice()) == ["timeout", "value", 0]


@pytest.mark.parametrize("limit", [None, 50])
async def test_a_scope_of_the_coroutines_own_is_no_cancel_of_the_call(limit: float | None) -> None:
    stage = Stage()

    async def own(clock: FakeClock, log: list[str]) -> str:
        with clock.limit(1):
            try:
                await clock.sleep(10)
            finally:
                await clock.sleep(0.5)
                log.append("cleaned")
        await clock.sleep(2)
        return "value"

    assert await stage.clock.run(stage.under(limit, own)) == "value"
    assert stage.log == ["cleaned"]
    assert stage.clock.now() == 3.5
    assert stage.call.cancel_reason is None


async def test_an_own_scope_around_a_task_waits_for_the_task_to_end() -> None:
    stage = Stage()

    async def own(clock: FakeClock, log: list[str]) -> str:
        with clock.limit(1):
            await asyncio.ensure_future(_cleans_up_slowly(clock, log))
        return "value"

    assert await stage.clock.run(stage.under(None, own)) == "value"
    assert (stage.log, stage.clock.now()) == (["cleaned"], 1.5)


async def test_an_error_that_an_own_scope_raises_comes_out() -> None:
    stage = Stage()

    async def own(clock: FakeClock, log: list[str]) -> None:
        async with asyncio.timeout(0):
            await clock.sleep(10)

    with pytest.raises(TimeoutError):
        await stage.clock.run(stage.under(50, own))


async def test_a_group_of_which_one_fails_raises_what_it_raised() -> None:
    stage = Stage()

    async def own(clock: FakeClock, log: list[str]) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(_fails_after(clock, 1))
            await clock.sleep(10)

    with pytest.raises(ExceptionGroup) as raised:
        await stage.clock.run(stage.under(50, own))
    assert isinstance(raised.value.exceptions[0], OSError)


async def test_a_group_that_waits_for_its_tasks_when_one_fails_is_no_cancel_of_the_call() -> None:
    """Before Python 3.13 such a group cancels its task and does not take the cancel back."""
    stage = Stage()

    async def own(clock: FakeClock, log: list[str]) -> str:
        for _ in range(2):
            with suppress(ExceptionGroup):
                async with asyncio.TaskGroup() as group:
                    group.create_task(_fails_after(clock, 1))
                    group.create_task(_cleans_up_slowly(clock, log))
        await clock.sleep(1)
        return "value"

    async def call() -> tuple[str, int]:
        value = await stage.under(50, own)
        task = asyncio.current_task()
        assert task is not None
        return value, task.cancelling()

    assert await stage.clock.run(call()) == ("value", 0)
    assert stage.log == ["cleaned", "cleaned"]


@pytest.mark.parametrize("at", [0.5, 1.25])
async def test_the_callers_cancel_of_a_group_that_waits_for_its_tasks_wins(at: float) -> None:
    stage = Stage()

    async def own(clock: FakeClock, log: list[str]) -> str:
        with suppress(ExceptionGroup):
            async with asyncio.TaskGroup() as group:
                group.create_task(_fails_after(clock, 1))
                group.create_task(_cleans_up_slowly(clock, log))
        return "value"

    running = asyncio.ensure_future(stage.under(50, own))
    await stage.clock.advance(at)
    running.cancel()
    await stage.clock.advance(5)

    assert running.cancelled()


async def test_a_limit_that_is_over_while_an_own_scope_cleans_up_counts() -> None:
    stage = Stage(grace_s=5)

    async def own(clock: FakeClock, log: list[str]) -> str:
        with clock.limit(1):
            try:
                await clock.sleep(10)
            finally:
                await clock.sleep(3)
        return "value"

    assert await stage.clock.run(stage.under(2, own)) == "timeout"
    assert stage.clock.now() == 2


async def test_the_callers_cancel_while_an_own_scope_cleans_up_wins() -> None:
    stage = Stage(grace_s=5)

    async def own(clock: FakeClock, log: list[str]) -> str:
        with clock.limit(1):
            try:
                await clock.sleep(10)
            finally:
                await clock.sleep(3)
        return "value"

    running = asyncio.ensure_future(stage.under(None, own))
    await stage.clock.advance(2)
    running.cancel()
    await stage.clock.settle()

    assert running.cancelled()


async def test_scopes_of_other_libraries_know_their_own_cancel() -> None:
    anyio = pytest.importorskip("anyio")
    stage = Stage()

    async def own(clock: FakeClock, log: list[str]) -> str:
        with anyio.move_on_after(0.01) as scope:
            await anyio.sleep(10)
        async with anyio.create_task_group() as group:
            group.start_soon(anyio.sleep, 10)
            group.cancel_scope.cancel()
        return f"moved on: {scope.cancelled_caught}"

    assert await stage.clock.run(stage.under(None, own)) == "moved on: True"


async def test_a_drive_that_is_dropped_closes_its_coroutine() -> None:
    stage = Stage()
    running: Any = stage.under(None, _sleeps)
    running.send(None)

    running.close()

    assert stage.log == ["ended"]


async def test_a_drive_needs_a_task() -> None:
    stage, failed = Stage(), asyncio.get_running_loop().create_future()

    def outside() -> None:
        try:
            Drive(cast("Any", _sleeps(stage.clock, stage.log)), stage.call, stage.clock, 1)
        except RuntimeError as error:
            failed.set_result(str(error))

    asyncio.get_running_loop().call_soon(outside)

    assert "needs a running asyncio task" in await failed


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["sleep", "swallow", "shield", "task", "spin", "own limit", "own group"]),
        st.sampled_from([0.0, 0.5, 1.0, 1.5]),
    ),
    min_size=1,
    max_size=6,
)


@settings(max_examples=300, deadline=None)
@given(
    steps=STEPS,
    limit=st.none() | st.sampled_from([0.5, 1.0, 2.0, 2.5]),
    cancel_at=st.none() | st.sampled_from([0.0, 0.5, 1.0, 1.75, 3.0]),
    cancels=st.integers(1, 2),
)
def test_however_it_is_timed_a_cancel_from_outside_wins_and_nothing_hangs(
    steps: list[tuple[str, float]], limit: float | None, cancel_at: float | None, cancels: int
) -> None:
    async def scene() -> None:
        stage = Stage(grace_s=0.25)

        async def body(clock: FakeClock, log: list[str]) -> str:
            for kind, seconds in steps:
                if kind == "swallow":
                    try:  # noqa: SIM105  # a tool that ignores its cancellation
                        await clock.sleep(seconds)
                    except asyncio.CancelledError:
                        pass
                elif kind == "shield":
                    await asyncio.shield(asyncio.ensure_future(clock.sleep(seconds)))
                elif kind == "task":
                    await asyncio.ensure_future(clock.sleep(seconds))
                elif kind == "own limit":
                    with clock.limit(seconds):
                        try:
                            await clock.sleep(0.75)
                        finally:
                            await asyncio.sleep(0)
                elif kind == "own group":
                    with suppress(ExceptionGroup):
                        async with asyncio.TaskGroup() as group:
                            group.create_task(_fails_after(clock, seconds))
                            await clock.sleep(0.75)
                elif kind == "spin":
                    await asyncio.sleep(0)
                else:
                    await clock.sleep(seconds)
            return "value"

        running = asyncio.ensure_future(stage.under(limit, body))
        outcome_before_cancel = None
        if cancel_at is not None:
            await stage.clock.advance(cancel_at)
            outcome_before_cancel = running.done()
            for _ in range(cancels):
                running.cancel()
        await stage.clock.advance(50)

        assert running.done()
        if cancel_at is not None and not outcome_before_cancel:
            assert running.cancelled()
        else:
            assert not running.cancelled()
            assert running.result() in {"value", "timeout", "let go"}

    asyncio.run(scene())


async def test_what_belongs_to_another_loop_is_told_at_once() -> None:
    stage, elsewhere = Stage(), asyncio.new_event_loop()

    async def waits(clock: FakeClock, log: list[str]) -> None:
        await task

    async def other() -> None:
        await asyncio.sleep(0)

    task = elsewhere.create_task(other())
    try:
        with pytest.raises(RuntimeError, match="different loop"):
            await stage.under(5, waits)
    finally:
        await asyncio.to_thread(elsewhere.run_until_complete, task)
        elsewhere.close()


class Yielding:
    """Waits for what no task can wait for."""

    def __await__(self) -> Any:
        yield 5


async def test_what_nothing_can_wait_for_is_told_as_a_task_tells_it() -> None:
    async def waits(clock: FakeClock, log: list[str]) -> str:
        with pytest.raises(RuntimeError, match=r"^Task got bad yield: 5$"):
            await Yielding()
        return "value"

    assert await Stage().under(5, waits) == "value"


async def test_what_nothing_can_wait_for_is_told_to_a_cleanup_too() -> None:
    stage = Stage()

    async def waits(clock: FakeClock, log: list[str]) -> None:
        try:
            await clock.sleep(10)
        finally:
            with pytest.raises(RuntimeError, match=r"^Task got bad yield: 5$"):
                await Yielding()
            log.append("ended")

    running = asyncio.ensure_future(stage.under(5, waits))
    await asyncio.sleep(0)
    await stage.clock.advance(5)

    assert await running == "timeout"
    assert stage.log == ["ended"]
