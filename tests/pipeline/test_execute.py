"""The executor is run once, whatever it is, and whatever it raises becomes a result."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import gc
import json
import logging
import math
import threading
import time
import weakref
from typing import TYPE_CHECKING, Any

import pytest

from seawall import Annotations, Pipeline, Policies, RunPolicy
from seawall.contract.failure import Failure, FailureCode, ToolFailed
from seawall.contract.result import ToolResult
from seawall.contract.tool import Tool
from seawall.pipeline import execute
from seawall.pipeline.convert import parts_of
from seawall.pipeline.execute import executing, is_async
from seawall.pipeline.threads import Threads, Workers
from seawall.testing import FakeClock, LayerBench, scripted

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator


class Ground:
    """Runs one executor on a bench."""

    def __init__(self, executor: Any, **options: Any) -> None:
        self.tool = Tool(name="t", description="", input_schema={}, executor=executor)
        self.bench = LayerBench(tool=self.tool)
        workers = Workers(Threads(), 8)
        self.execute = executing(self.tool, self.bench.clock, lambda: workers, **options)
        self.call = self.bench.invocation({"a": 1})
        self.call.prepared()

    async def run(self) -> ToolResult:
        result: ToolResult = await self.bench.clock.run(self.execute(self.call))
        return result


async def gives(arguments: dict[str, Any], context: Any) -> Any:
    return arguments


def gives_sync(arguments: dict[str, Any], context: Any) -> Any:
    return arguments


async def streams(arguments: dict[str, Any], context: Any) -> AsyncIterator[Any]:
    yield "first"
    yield {"second": 2}
    yield arguments


def streams_sync(arguments: dict[str, Any], context: Any) -> Iterator[Any]:
    yield "first"
    yield {"second": 2}
    yield arguments


def gives_later(arguments: dict[str, Any], context: Any) -> Any:
    return gives(arguments, context)


def streams_later(arguments: dict[str, Any], context: Any) -> Any:
    return streams(arguments, context)


class Callable:
    async def __call__(self, arguments: dict[str, Any], context: Any) -> Any:
        return arguments


class CallableStream:
    async def __call__(self, arguments: dict[str, Any], context: Any) -> AsyncIterator[Any]:
        yield "first"
        yield {"second": 2}
        yield arguments


class SyncCallable:
    def __call__(self, arguments: dict[str, Any], context: Any) -> Any:
        return arguments


def with_more(more: int, arguments: dict[str, Any], context: Any) -> Any:
    return arguments


async def with_more_later(more: int, arguments: dict[str, Any], context: Any) -> Any:
    return arguments


EXECUTORS: dict[str, tuple[Any, bool]] = {
    "async": (gives, True),
    "sync": (gives_sync, False),
    "async generator": (streams, True),
    "generator": (streams_sync, False),
    "object": (Callable(), True),
    "object that streams": (CallableStream(), True),
    "sync object": (SyncCallable(), False),
    "partial": (functools.partial(with_more, 1), False),
    "async partial": (functools.partial(with_more_later, 1), True),
    "partial of a generator": (functools.partial(streams), True),
    "gives an awaitable": (gives_later, False),
    "gives an async generator": (streams_later, False),
}


class Text(str):
    __slots__ = ()


class Number(int):
    pass


@pytest.mark.parametrize(
    "value",
    [
        *("text", "\ud800", Text("own"), None, True, 3, Number(3), 2**80, -0.0, 1.5, math.nan),
        *(math.inf, b"\xff", [], [1, "ä", None], (1, 2), {}, {"a": [1.5, {"b": False}]}),
        {"a": {1}},
    ],
    ids=repr,
)
async def test_a_value_that_is_settled_as_it_is_gives_what_settling_gives(value: Any) -> None:
    async def gives_it(arguments: dict[str, Any], context: Any) -> Any:
        return value

    result = await Ground(gives_it).run()

    # repr: `True` is not `1`, and `-0.0` not `0.0`
    assert repr((result.content, result.structured_content)) == repr(parts_of(value))


@pytest.mark.parametrize("kind", EXECUTORS)
async def test_any_kind_of_executor_gives_its_last_value(kind: str) -> None:
    executor, runs_in_loop = EXECUTORS[kind]
    ground = Ground(executor)

    result = await ground.run()

    assert result.structured_content == {"a": 1}
    assert result.attempts == 1
    assert ground.call.started
    assert is_async(executor) is runs_in_loop


@pytest.mark.parametrize("executor", [streams, streams_sync, CallableStream(), streams_later])
async def test_of_a_stream_all_but_the_last_item_is_progress(executor: Any) -> None:
    ground = Ground(executor)

    await ground.run()

    shown = [report.text for _, report, _, _ in ground.bench.shown]
    assert shown == ["first", '{"second":2}']
    assert ground.call.shown


async def test_a_stream_may_yield_results_of_its_own() -> None:
    async def stream(arguments: dict[str, Any], context: Any) -> AsyncIterator[Any]:
        yield ToolResult.of_text("partial")
        yield ToolResult(details="mine")

    ground = Ground(stream)

    assert (await ground.run()).details == "mine"
    assert ground.bench.shown[0][1].text == "partial"


@pytest.mark.parametrize("kind", ["async", "sync"])
async def test_a_stream_without_items_gives_nothing(kind: str) -> None:
    async def stream(arguments: dict[str, Any], context: Any) -> AsyncIterator[Any]:
        return
        yield

    def stream_sync(arguments: dict[str, Any], context: Any) -> Iterator[Any]:
        return
        yield

    result = await Ground(stream if kind == "async" else stream_sync).run()

    assert (result.content, result.is_error) == ((), False)


async def test_a_stream_that_fails_is_closed_and_its_error_told() -> None:
    closed: list[bool] = []

    async def stream(arguments: dict[str, Any], context: Any) -> AsyncIterator[Any]:
        try:
            yield 1
            raise OSError("broke")
        finally:
            closed.append(True)

    result = await Ground(stream).run()

    assert "broke" in result.text
    assert closed == [True]


class Panic(BaseException):
    """What extensions written in other languages raise."""


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ValueError("x"), "tool_failed"),
        (SystemExit(2), "tool_failed"),
        (Panic("x"), "tool_failed"),
        (TimeoutError(), "tool_timeout"),
        (asyncio.CancelledError(), "tool_failed"),
        (StopAsyncIteration(), "tool_failed"),
        (StopIteration(), "tool_failed"),
        (BaseExceptionGroup("g", [SystemExit(1)]), "tool_failed"),
    ],
    ids=lambda value: type(value).__name__,
)
@pytest.mark.parametrize("in_thread", [False, True])
async def test_whatever_is_raised_becomes_a_result(
    error: BaseException, reason: str, in_thread: bool
) -> None:
    async def raises(arguments: dict[str, Any], context: Any) -> Any:
        raise error

    def raises_sync(arguments: dict[str, Any], context: Any) -> Any:
        raise error

    ground = Ground(raises_sync if in_thread else raises)

    result = await ground.run()

    assert result.failure is not None
    assert (result.failure.reason, result.failure.layer) == (reason, "executor")
    assert ground.call.error is not None


@pytest.mark.parametrize(
    ("annotations", "is_known"),
    [
        (Annotations.for_reading(), True),
        (Annotations(read_only=False, idempotent=True), True),
        (Annotations.for_changing(), False),
        (Annotations(), False),
    ],
)
async def test_of_what_may_change_something_and_raised_nobody_knows_whether_it_did(
    annotations: Annotations, *, is_known: bool
) -> None:
    async def breaks(arguments: dict[str, Any], context: Any) -> str:
        raise ConnectionError("reset after the order was sent")

    tool = Tool("t", "", {}, breaks, annotations=annotations)
    policies = Policies(default=RunPolicy(max_retries=0))

    result = await Pipeline([tool], policies=policies).call("t", {})

    assert ("Whether it took effect is not known" in result.text) is not is_known


@pytest.mark.parametrize("error", [KeyboardInterrupt(), GeneratorExit()])
async def test_an_interrupt_is_nobodys_answer(error: BaseException) -> None:
    async def raises(arguments: dict[str, Any], context: Any) -> Any:
        raise error

    ground = Ground(raises)
    attempt: Any = ground.execute(ground.call)

    with pytest.raises(type(error)):
        attempt.send(None)
    assert not ground.call.live


async def test_a_value_that_fails_when_it_is_read_is_the_tools_failure() -> None:
    async def broken(arguments: dict[str, Any], context: Any) -> Any:
        def numbers() -> Iterator[int]:
            yield 1
            raise OSError("mid-way")

        return numbers()

    result = await Ground(broken).run()

    assert "mid-way" in result.text


async def test_defects_can_be_raised_for_development() -> None:
    async def raises(arguments: dict[str, Any], context: Any) -> Any:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await Ground(raises, on_defect="raise").run()


async def test_a_wait_that_the_error_asks_for_is_handed_on() -> None:
    async def raises(arguments: dict[str, Any], context: Any) -> Any:
        error = OSError("busy")
        error.retry_after = 7  # type: ignore[attr-defined]  # as HTTP clients do
        raise error

    failure = (await Ground(raises).run()).failure

    assert failure is not None
    assert failure.retry_after_s == 7


async def test_an_executor_that_cannot_be_called_so_is_a_failure() -> None:
    async def takes_nothing() -> None:
        return None

    assert "TypeError" in (await Ground(takes_nothing).run()).text


async def test_typed_arguments_are_what_the_executor_gets_if_there_are_any() -> None:
    for executor in (gives, gives_sync, streams):
        ground = Ground(executor)
        ground.call.bound = {"a": "typed"}
        assert (await ground.run()).structured_content == {"a": "typed"}


async def test_times_are_those_inside_the_executor() -> None:
    bench = LayerBench()

    async def works(arguments: dict[str, Any], context: Any) -> None:
        await bench.clock.sleep(2)

    tool = Tool(name="t", description="", input_schema={}, executor=works)
    execute = executing(tool, bench.clock, lambda: Workers(Threads(), 8))
    call = bench.invocation()

    first = await bench.clock.run(execute(call))
    await bench.clock.advance(10)
    second = await bench.clock.run(execute(call))

    assert (first.duration_ms, second.duration_ms) == (2000, 4000)
    assert (call.attempt, call.attempt_started) == (2, 12)


async def test_a_sync_tool_runs_in_a_thread_with_the_callers_context_variables() -> None:
    variable = contextvars.ContextVar("v", default="unset")
    variable.set("mine")

    def looks(arguments: dict[str, Any], context: Any) -> list[Any]:
        return [threading.current_thread().name.split("-")[0], variable.get()]

    assert (await Ground(looks).run()).structured_content == ["seawall", "mine"]


async def test_a_generator_in_a_thread_stops_when_its_attempt_is_given_up() -> None:
    taken: list[int] = []
    going, ended = threading.Event(), threading.Event()

    def counts(arguments: dict[str, Any], context: Any) -> Iterator[int]:
        try:
            for number in range(1_000_000):
                taken.append(number)
                going.set()
                time.sleep(0.001)
                yield number
        finally:
            ended.set()

    ground = Ground(counts)
    running = asyncio.ensure_future(ground.execute(ground.call))
    await asyncio.to_thread(going.wait, 5)

    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running

    assert await asyncio.to_thread(ended.wait, 5)
    assert len(taken) < 10_000


async def test_a_failure_of_ones_own_passes_from_a_thread_too() -> None:
    def refuses(arguments: dict[str, Any], context: Any) -> None:
        raise ToolFailed(Failure(code=FailureCode.NOT_FOUND, message="no such row"))

    result = await Ground(refuses).run()

    assert result.failure is not None
    assert result.failure.code is FailureCode.NOT_FOUND


async def test_a_plain_functions_iterator_is_consumed_in_its_thread() -> None:
    threads = []

    def rows(arguments: dict[str, Any], context: Any) -> Any:
        def row(n: int) -> int:
            threads.append(threading.current_thread())
            return n

        return map(row, range(3))

    result = await Ground(rows).run()

    assert result.structured_content == [0, 1, 2]
    assert threading.main_thread() not in threads


async def test_an_iterator_is_left_when_its_call_was_given_up() -> None:
    taken = []

    def rows(arguments: dict[str, Any], context: Any) -> Any:
        def row(n: int) -> int:
            taken.append(n)
            ground.call.cancel_reason = "cancelled"
            return n

        return map(row, range(100))

    ground = Ground(rows)
    await ground.run()

    assert taken == [0]


async def test_what_comes_with_a_value_and_raises_is_a_failure() -> None:
    class Odd(BaseException):
        pass

    class Thing:
        def __getattr__(self, name: str) -> Any:
            raise Odd(name)

    async def gives_thing(arguments: dict[str, Any], context: Any) -> Any:
        return Thing()

    result = await Ground(gives_thing).run()

    assert result.failure is not None
    assert result.failure.cause == ("Odd",)


# --- values that are more than they look


def _shared(levels: int) -> Any:
    value: Any = [1]
    for _ in range(levels):
        value = [value, value]
    return value


@pytest.mark.parametrize(
    "value",
    [
        {"v": _shared(60)},
        ToolResult(structured_content=_shared(60)),
        ToolResult(content=_shared(60)),
        [["x" * 1_000_000] * 1_000] * 1_000,
    ],
    ids=["value", "structured content", "content", "texts"],
)
async def test_a_value_that_would_be_too_much_is_given_in_its_beginning(value: Any) -> None:
    async def gives(arguments: dict[str, Any], context: Any) -> Any:
        return value

    result = await Ground(gives).run()

    assert not result.is_error
    assert len(result.text) < 30_000_000
    assert "<more>" in (result.text or json.dumps(result.structured_content))


@pytest.mark.parametrize("wrap", [lambda items: items, lambda items: {"a": [items]}])
async def test_iterators_of_an_async_tool_let_others_work_and_are_cut_by_a_cancel(
    wrap: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(execute, "SLICE_S", -1.0)  # as if each item took its time
    taken: list[int] = []

    def slowly() -> Iterator[int]:
        for number in range(1_000):
            taken.append(number)
            yield number

    async def gives(arguments: dict[str, Any], context: Any) -> Any:
        return wrap(slowly())

    ground = Ground(gives)
    running = asyncio.ensure_future(ground.execute(ground.call))
    for _ in range(4):
        await asyncio.sleep(0)

    running.cancel()
    await asyncio.wait([running])

    assert running.cancelled()
    assert 0 < len(taken) < 10


async def test_an_iterator_in_what_a_plain_function_gives_is_asked_in_its_thread() -> None:
    threads = []

    def numbers() -> Iterator[int]:
        threads.append(threading.current_thread())
        yield 1

    result = await Ground(lambda arguments, context: {"n": numbers()}).run()

    assert result.structured_content == {"n": [1]}
    assert threads != [threading.current_thread()]


@pytest.mark.parametrize(
    ("error", "policy", "levels"),
    [
        (OSError("down"), RunPolicy(), [logging.WARNING]),
        (OSError("down"), RunPolicy(max_retries=2), [logging.INFO, logging.INFO, logging.WARNING]),
        (PermissionError("no"), RunPolicy(max_retries=2), [logging.WARNING]),
    ],
)
async def test_what_a_tool_raised_is_a_warning_once_a_call(
    caplog: pytest.LogCaptureFixture, error: Exception, policy: RunPolicy, levels: list[int]
) -> None:
    tool = scripted(error, name="t", annotations=Annotations.for_reading())
    clock = FakeClock()
    pipeline = Pipeline([tool], policies=Policies(default=policy), clock=clock)

    with caplog.at_level(logging.INFO, "seawall"):
        await clock.run(pipeline.call("t"))

    assert [record.levelno for record in caplog.records] == levels


async def test_a_tool_that_is_never_tried_again_is_warned_of_at_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    policies = Policies(default=RunPolicy(max_retries=2))
    pipeline = Pipeline([scripted(OSError("down"), name="t")], policies=policies)

    with caplog.at_level(logging.INFO, "seawall"):
        await pipeline.call("t")

    assert [record.levelno for record in caplog.records] == [logging.WARNING]


async def test_what_a_failed_attempt_raised_is_gone_with_the_call() -> None:
    class DownError(OSError):
        pass

    raised: list[weakref.ref[BaseException]] = []

    async def fails(arguments: Any, context: Any) -> str:
        error = DownError("down")
        raised.append(weakref.ref(error))
        try:
            raise error
        finally:
            del error

    gc.collect()
    gc.disable()
    try:
        async with Pipeline([Tool("t", "", {}, fails)]) as pipeline:
            await pipeline.call("t")
            assert raised[0]() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("later", [False, True])
async def test_an_async_generator_that_never_waits_is_given_up_at_its_limit(later: bool) -> None:
    ended: list[str] = []

    async def endless(arguments: dict[str, Any], context: Any) -> AsyncIterator[str]:
        try:
            while True:
                yield "item"
        finally:
            ended.append("closed")

    def begun(arguments: dict[str, Any], context: Any) -> Any:
        return endless(arguments, context)

    executor: Any = begun if later else endless
    tool = Tool("t", "", {"type": "object"}, executor, annotations=Annotations.for_reading())
    pipeline = Pipeline([tool], policies=Policies(RunPolicy(timeout_s=0.05)))

    result = await pipeline.call("t")

    assert result.failure is not None
    assert result.failure.reason == "attempt_timeout"
    assert ended == ["closed"]


async def test_an_async_generator_that_never_waits_can_be_cancelled() -> None:
    async def endless(arguments: dict[str, Any], context: Any) -> AsyncIterator[str]:
        while True:
            yield "item"

    pipeline = Pipeline([Tool("t", "", {"type": "object"}, endless)])
    running = asyncio.ensure_future(pipeline.call("t"))
    await asyncio.sleep(0)
    await asyncio.sleep(0)

    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
