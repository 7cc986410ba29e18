"""A cancel at any moment of a call: the caller wins, and nothing is left behind."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seawall import (
    Annotations,
    BreakerPolicy,
    Outcome,
    Pipeline,
    Policies,
    Risk,
    RunPolicy,
    Tool,
    ToolResult,
)
from seawall.pipeline.recorder import Finished, ToolRecorder
from seawall.testing import FakeClock, FixedChance

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine

    from seawall.contract.span import Span

READS = Annotations.for_reading()
FULL: dict[str, Any] = {
    "timeout_s": 30,
    "max_retries": 2,
    "base_delay_s": 1,
    "rate": "5/day",
    "breaker": BreakerPolicy(threshold=3, cooldown_s=10),
    "max_concurrency": 1,
    "grace_s": 0.5,
}


class Books:
    """Keeps everything that is told of calls and attempts."""

    def __init__(self) -> None:
        self.finished: list[Finished] = []
        self.spans: list[Span] = []

    def for_tool(self, tool: str) -> ToolRecorder:
        return ToolRecorder(self.spans.append, self.finished.append)

    def unknown(self) -> None:
        raise AssertionError("every name is known here")


class Stage:
    """One pipeline with a tool `t`, moved on step by step: a turn of the loop, or a timer."""

    def __init__(self, policy: dict[str, Any] | None = None, **fields: Any) -> None:
        self.clock = FakeClock()
        self.books = Books()
        self.begun = 0
        self.failed_before = 0
        self.body: Callable[[int], Coroutine[Any, Any, Any]] = self.answers
        tools = [
            Tool(
                name="t",
                description="",
                input_schema={"type": "object"},
                executor=fields.pop("executor", self._execute),
                annotations=READS,
                **{"risk": Risk.LOW, "exclusive": "key", **fields},
            ),
            Tool(
                name="inner",
                description="",
                input_schema={},
                executor=self._inner,
                annotations=READS,
            ),
        ]
        self.pipeline = Pipeline(
            tools,
            policies=Policies(default=RunPolicy(**(FULL if policy is None else policy))),
            clock=self.clock,
            chance=FixedChance(),
            recorders=[self.books],
            confirm=self._confirm,
        )
        self.others: list[asyncio.Task[Any]] = []
        self.options: dict[str, Any] = {}

    async def _execute(self, arguments: dict[str, Any], context: Any) -> Any:
        self.begun += 1
        if arguments.get("hold"):
            await self.clock.sleep(5)
            return "held"
        self.context = context
        return await self.body(context.attempt)

    async def _inner(self, arguments: dict[str, Any], context: Any) -> str:
        await self.clock.sleep(1)
        return "inner"

    async def _confirm(self, prepared: Any, decision: Any) -> str:
        await self.clock.sleep(1)
        return "allow_once"

    async def answers(self, attempt: int) -> Any:
        await asyncio.sleep(0)
        await self.clock.sleep(1)
        return "well"

    async def start(self) -> asyncio.Task[ToolResult]:
        """Start the call that is looked at; a task that has not begun would be no call yet."""
        call = self.pipeline.call("t", {}, call_id="mine", **self.options)
        task = asyncio.ensure_future(call)
        await asyncio.sleep(0)
        return task

    async def step(self) -> None:
        """One turn of the loop; or, if nothing is ready, the next timer, its effect not yet."""
        if _ready():
            await asyncio.sleep(0)
            return
        due = self.clock.next_due()
        assert due is not None, "nothing moves any more"
        self.clock._now = max(self.clock._now, due)
        callback = self.clock._timers[0][2].callback
        self.clock._timers[0][2].cancel()
        assert callback is not None
        callback()

    async def drive(self, task: asyncio.Task[Any], cancels: tuple[int, ...]) -> int:
        """Go on to the end of `task`, cancelling before the steps that are named."""
        steps = 0
        while not task.done():
            if steps in cancels:
                task.cancel()
            await self.step()
            steps += 1
        return steps

    async def rest(self) -> None:
        """Let everything end that was left running."""
        for other in self.others:
            await self.clock.run(other)
        await self.clock.advance(1000)

    # What must hold afterwards, whatever happened

    def nothing_is_left(self) -> None:
        states = self.pipeline.states
        assert [route.in_flight for route in self.pipeline._routes.values()] == [0, 0]
        room = states.of_tool("t").find("bulkhead")
        assert room is None or (room.in_flight, room.waiting) == (0, 0)
        assert states.shared("exclusive").slot("rooms", dict) == {}
        memory = self.pipeline._session.memory
        assert memory.get("risk_gate", {}) == {}
        deadlines = states.shared("deadlines")._held.values()
        assert all(not shared._waiting for shared in deadlines)

    def books_are_closed(self, result: ToolResult | None) -> None:
        """The call ended once, and its spans tell a story that fits the end."""
        (last,) = [one for one in self.books.finished if one.call_id == "mine"]
        numbers = [span.attempt for span in self.books.spans if span.call_id == "mine"]
        assert numbers == ([*range(1, last.attempts + 1)] if last.attempts else [0])
        assert last.result is result
        if result is None:
            assert last.reason == "cancelled"
            assert last.outcome is (Outcome.FAILED if last.attempts else Outcome.DENIED)

    def circuit_is_fair(self) -> None:
        """Only attempts that failed by themselves were held against the tool."""
        slot = self.pipeline.states.of_tool("t").find("circuit")
        if slot is None or slot.circuit is None:
            return
        charged = [
            span for span in self.books.spans if span.reason in ("tool_failed", "attempt_timeout")
        ]
        assert slot.circuit.counts.failures == len(charged) + self.failed_before

    def no_probe_is_out(self) -> None:
        """At once, not only after the probe has lapsed."""
        slot = self.pipeline.states.of_tool("t").find("circuit")
        if slot is not None and slot.circuit is not None and slot.circuit.state == "half_open":
            assert slot.circuit.seconds_to_probe() == 0

    def tokens_are_right(self, begun_before: int, tokens_before: float) -> None:
        level = self.pipeline.states.of_tool("t").find("tokens_left")
        if level is not None:
            spent = 1 if self.begun > begun_before else 0
            assert round(level()) == round(tokens_before) - spent


def _ready() -> bool:
    loop: Any = asyncio.get_running_loop()
    return bool(loop._ready)


# --- where a call may be when it is cancelled


def running() -> Stage:
    return Stage()


def bare() -> Stage:
    return Stage({})


def retrying() -> Stage:
    stage = Stage()

    async def body(attempt: int) -> str:
        await asyncio.sleep(0)
        if attempt < 3:
            raise OSError("down")
        return "well"

    stage.body = body
    return stage


def asked() -> Stage:
    return Stage(risk=Risk.HIGH)


def in_line_for_a_place() -> Stage:
    return _behind_another(Stage(exclusive=None))


def in_line_for_a_key() -> Stage:
    return _behind_another(Stage({**FULL, "max_concurrency": None}))


def _behind_another(stage: Stage) -> Stage:
    stage.others.append(asyncio.ensure_future(stage.pipeline.call("t", {"hold": True})))
    return stage


def cleaning_up() -> Stage:
    stage = Stage({**FULL, "timeout_s": 2, "max_retries": 0})

    async def body(attempt: int) -> str:
        try:
            await stage.clock.sleep(5)
        finally:
            await stage.clock.sleep(0.25)
            await asyncio.sleep(0)
        return "late"

    stage.body = body
    return stage


def deaf() -> Stage:
    stage = Stage({**FULL, "timeout_s": 2, "max_retries": 1})

    async def body(attempt: int) -> str:
        end = stage.clock.now() + 20
        while stage.clock.now() < end:
            try:
                await stage.clock.sleep(end - stage.clock.now())
            except asyncio.CancelledError:
                continue
        return "late"

    stage.body = body
    return stage


def under_a_deadline() -> Stage:
    stage = Stage({**FULL, "timeout_s": 2, "deadline_s": 3})

    async def body(attempt: int) -> str:
        await stage.clock.sleep(20)
        return "late"

    stage.body = body
    return stage


def with_limits_of_the_callers_own() -> Stage:
    stage = Stage({**FULL, "timeout_s": None})
    stage.options = {"timeout_s": 0.5, "deadline_s": 4}
    return stage


def probing() -> Stage:
    stage = Stage({**FULL, "breaker": BreakerPolicy(threshold=1, cooldown_s=10)})
    circuit = stage.pipeline.breakers.circuit("t")
    circuit.failure(circuit.acquire() or 0, "OSError")
    stage.failed_before = 1
    stage.clock._now += 10
    return stage


def calling_another() -> Stage:
    stage = Stage()

    async def body(attempt: int) -> Any:
        return (await stage.context.call_tool("inner")).text

    stage.body = body
    return stage


def streaming() -> Stage:
    async def stream(arguments: dict[str, Any], context: Any) -> AsyncIterator[Any]:
        stage.begun += 1
        for number in range(3):
            await stage.clock.sleep(1)
            yield number

    stage = Stage(executor=stream)
    return stage


def with_tasks_of_its_own() -> Stage:
    stage = Stage()

    async def body(attempt: int) -> str:
        async with asyncio.TaskGroup() as group:
            group.create_task(stage.clock.sleep(1))
            group.create_task(stage.clock.sleep(2))
        await asyncio.gather(stage.clock.sleep(1), stage.clock.sleep(0.5))
        return "well"

    stage.body = body
    return stage


def with_scopes_of_its_own() -> Stage:
    stage = Stage()

    async def fails() -> None:
        await stage.clock.sleep(0.5)
        raise OSError("child")

    async def body(attempt: int) -> str:
        with stage.clock.limit(1):
            await stage.clock.sleep(10)
        for seconds in (10, 0):
            with suppress(ExceptionGroup):
                async with asyncio.TaskGroup() as group:
                    group.create_task(fails())
                    await stage.clock.sleep(seconds)
        return "well"

    stage.body = body
    return stage


SCENES = [
    with_scopes_of_its_own,
    running,
    bare,
    retrying,
    asked,
    in_line_for_a_place,
    in_line_for_a_key,
    cleaning_up,
    deaf,
    under_a_deadline,
    with_limits_of_the_callers_own,
    probing,
    calling_another,
    streaming,
    with_tasks_of_its_own,
]


async def played(scene: Callable[[], Stage], cancels: tuple[int, ...]) -> int:
    """Play one scene with cancels, check what is left, and go on working; how many steps."""
    stage = scene()
    if stage.others:
        await stage.clock.settle()
    begun, level = stage.begun, stage.pipeline.states.of_tool("t").find("tokens_left")
    tokens = level() if level else 0.0

    task = await stage.start()
    steps = await stage.drive(task, cancels)
    hit = any(cancel < steps for cancel in cancels)
    assert task.cancelled() is hit, "the caller's cancel wins, and nothing else is one"
    stage.tokens_are_right(begun, tokens)
    stage.no_probe_is_out()

    await stage.rest()
    stage.books_are_closed(None if hit else task.result())
    stage.nothing_is_left()
    stage.circuit_is_fair()
    await _works(stage)
    return steps


async def _works(stage: Stage) -> None:
    """A call that comes after is served as if nothing had been."""
    stage.body, stage.options = stage.answers, {}
    result = await stage.clock.run(stage.pipeline.call("t", {}))
    assert not result.is_error, result.text
    stage.nothing_is_left()
    slot = stage.pipeline.states.of_tool("t").find("circuit")
    assert slot is None or slot.circuit is None or slot.circuit.state == "closed"


@pytest.mark.parametrize("scene", SCENES)
async def test_a_cancel_at_any_moment_wins_and_leaves_nothing(scene: Callable[[], Stage]) -> None:
    steps = await played(scene, ())

    assert steps > 1
    for at in range(steps):
        await played(scene, (at,))


@settings(max_examples=150, deadline=None)
@given(
    scene=st.sampled_from(SCENES),
    first=st.integers(0, 40),
    second=st.integers(0, 6),
    third=st.integers(0, 3),
)
def test_cancels_that_are_repeated_change_nothing(
    scene: Callable[[], Stage], first: int, second: int, third: int
) -> None:
    asyncio.run(_repeated(scene, (first, first + second, first + second + third)))


async def _repeated(scene: Callable[[], Stage], cancels: tuple[int, ...]) -> None:
    await played(scene, cancels)


@settings(max_examples=100, deadline=None)
@given(
    cancels=st.lists(st.none() | st.sampled_from([0, 0.5, 1, 1.5, 3, 6]), min_size=2, max_size=6),
    seconds=st.lists(st.sampled_from([0, 1, 1.5, 3]), min_size=6, max_size=6),
)
def test_of_calls_that_compete_each_ends_as_it_should(
    cancels: list[float | None], seconds: list[float]
) -> None:
    async def scene() -> None:
        stage = Stage({**FULL, "rate": "100/day", "max_retries": 0})

        async def call(number: int) -> ToolResult:
            return await stage.pipeline.call("t", {"number": number})

        async def body(attempt: int) -> str:
            await stage.clock.sleep(seconds[stage.begun % 6])
            return "well"

        stage.body = body
        tasks = [asyncio.ensure_future(call(number)) for number in range(len(cancels))]
        alive: dict[int, bool] = {}
        for at in (0, 0.5, 1, 1.5, 3, 6):
            await stage.clock.advance(at - stage.clock.now())
            for number, cancel in enumerate(cancels):
                if cancel == at:
                    alive[number] = not tasks[number].done()
                    tasks[number].cancel()
        await stage.clock.advance(1000)

        for number, task in enumerate(tasks):
            assert task.done()
            assert task.cancelled() is alive.get(number, False)
        assert len(stage.books.finished) == len(tasks)
        stage.nothing_is_left()
        await _works(stage)

    asyncio.run(scene())


async def test_an_async_tool_that_raises_generator_exit_leaves_nothing_taken() -> None:
    """It cannot be told from the call being closed, so it is raised as it is, as a cancel is."""
    ran: list[str] = []

    async def leaves(arguments: dict[str, Any], context: Any) -> str:
        ran.append("once")
        if len(ran) == 1:
            raise GeneratorExit
        return "well"

    tool = Tool("t", "d.", {"type": "object"}, leaves, annotations=Annotations.for_reading())
    policy = RunPolicy(
        max_retries=2, max_concurrency=1, timeout_s=5, breaker=BreakerPolicy(threshold=1)
    )
    pipeline = Pipeline([tool], policies=Policies(default=policy))

    with pytest.raises(GeneratorExit):
        await pipeline.call("t", {})
    result = await pipeline.call("t", {})

    assert result.text == "well"
    assert len(ran) == 2  # nothing was tried again
    assert [span.reason for span in pipeline.trace.spans()] == ["", "cancelled"]
    assert pipeline.breakers.state("t") == "closed"
