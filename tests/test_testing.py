"""The kit for tests, which others use too."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import pytest

from seawall import Annotations, Invocation, Pipeline, RunPolicy, Tool, compose
from seawall.testing import FakeClock, FixedChance, LayerBench, scripted

if TYPE_CHECKING:
    from seawall import ToolResult


async def test_time_moves_only_when_it_is_told_to() -> None:
    clock = FakeClock(now=100)
    woken: list[float] = []

    async def sleeps(seconds: float) -> None:
        await clock.sleep(seconds)
        woken.append(clock.now())

    tasks = [asyncio.ensure_future(sleeps(s)) for s in (3, 1, 2, 0, -1)]
    await clock.settle()
    assert woken == [100, 100]
    await clock.advance(2.5)

    assert woken == [100, 100, 101, 102]
    assert (clock.now(), clock.next_due()) == (102.5, 103)
    await clock.run(tasks[0])
    assert clock.now() == 103


async def test_the_wall_clock_moves_along_and_can_be_set() -> None:
    clock = FakeClock(wall=1000)

    await clock.advance(5)
    clock.step_wall(-3600)

    assert (clock.now(), clock.wall()) == (5, 1005 - 3600)


async def test_a_cancelled_timer_does_not_ring() -> None:
    clock, rung = FakeClock(), list[int]()
    timer = clock.call_later(1, lambda: rung.append(1))
    clock.call_later(2, lambda: rung.append(2))

    timer.cancel()

    assert clock.next_due() == 2
    await clock.advance(5)
    assert rung == [2]
    assert clock.next_due() is None


async def test_running_work_gives_its_value_or_its_error() -> None:
    clock = FakeClock()

    async def works() -> str:
        await clock.sleep(60)
        return "value"

    async def fails() -> None:
        await clock.sleep(1)
        raise ValueError("own")

    assert await clock.run(works()) == "value"
    with pytest.raises(ValueError, match="own"):
        await clock.run(fails())


async def test_running_waits_for_threads() -> None:
    clock, go = FakeClock(), threading.Event()
    loop = asyncio.get_running_loop()
    loop.call_later(0.01, go.set)

    assert await clock.run(asyncio.to_thread(go.wait, 5)) is True


async def test_what_is_run_ends_with_who_runs_it() -> None:
    clock = FakeClock()
    begun, ended = asyncio.Event(), asyncio.Event()

    async def hangs() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    outer = asyncio.ensure_future(clock.run(hangs()))
    await begun.wait()
    outer.cancel()
    await asyncio.wait([outer])
    await asyncio.sleep(0)

    assert ended.is_set()


async def test_a_loop_that_hides_what_is_ready_is_waited_for_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Plain:
        """A loop that says nothing of itself."""

    clock, done = FakeClock(), list[int]()

    async def several_turns() -> None:
        for _ in range(10):
            await asyncio.sleep(0)
        done.append(1)

    task = asyncio.ensure_future(several_turns())
    monkeypatch.setattr("seawall.testing.asyncio.get_running_loop", Plain)
    await clock.settle()
    monkeypatch.undo()

    assert done == [1]
    await task


def test_chance_falls_as_it_is_fixed() -> None:
    chance = FixedChance(0.25)

    assert (chance.uniform(0, 8), chance.integer(0, 8)) == (2, 2)
    assert [chance.token(2), chance.token(2)] == ["0001", "0002"]
    assert FixedChance().uniform(1, 3) == 3


async def test_a_scripted_tool_gives_its_answers_in_turn() -> None:
    clock = FakeClock()
    tool = scripted(1, OSError("down"), ValueError, ("sleep", 2), ("sleep", 2, "late"), clock=clock)
    pipeline = Pipeline([tool], clock=clock)

    results = [await clock.run(pipeline.call("scripted", {"n": n})) for n in range(6)]

    assert [result.text.split(":")[0] for result in results] == [
        "1",
        "Error",
        "Error",
        "",
        "late",
        "late",
    ]
    assert clock.now() == 6
    executor: Any = tool.executor
    assert executor.calls == [{"n": n} for n in range(6)]


async def test_a_scripted_tool_without_a_clock_uses_the_pipelines() -> None:
    clock = FakeClock()
    pipeline = Pipeline([scripted(("sleep", 3, "late"), name="t")], clock=clock)

    assert (await clock.run(pipeline.call("t"))).text == "late"
    assert clock.now() == 3


def test_a_scripted_tool_takes_the_fields_of_any_tool() -> None:
    tool = scripted("x", annotations=Annotations.for_reading(), input_schema={"type": "object"})

    assert tool.retry_safe
    assert isinstance(tool, Tool)


async def test_a_bench_runs_one_layer_around_a_tool() -> None:
    bench = LayerBench(RunPolicy(timeout_s=5))

    async def counts(call: Invocation, proceed: Any) -> ToolResult:
        bench.context.count("mine", "seen")
        call.pipeline.progressed(call, "half", 1, 2)
        result: ToolResult = await proceed(call)
        return result

    results = await bench.calls(compose([counts], bench.answering("a", "b")), [{"n": 1}, {"n": 2}])

    assert [result.text for result in results] == ["a", "b"]
    assert bench.events == [("mine", "seen")] * 2
    assert bench.shown == [("1", "half", 1, 2), ("2", "half", 1, 2)]
    assert bench.new_key() != bench.new_key()


async def test_a_bench_has_a_slow_tool() -> None:
    bench = LayerBench()

    assert (await bench.call(bench.slow_tool(4, "late"))).text == "late"
    assert bench.clock.now() == 4


async def test_a_bench_runs_sync_tools_too() -> None:
    def works(arguments: dict[str, Any], context: Any) -> Any:
        return arguments

    bench = LayerBench(tool=Tool(name="t", description="", input_schema={}, executor=works))

    result = await bench.call(bench.execute(), {"n": 1}, timeout_s=5)

    assert result.structured_content == {"n": 1}
