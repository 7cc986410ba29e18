"""A cancel at any moment of a turn, a batch or a shortcut: the caller wins, nothing is left."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.composition.test_cancellation import FULL, READS, Books, Stage

from seawall import (
    BatchRunner,
    LoopPolicy,
    Outcome,
    Pipeline,
    Policies,
    Risk,
    RunPolicy,
    Session,
    Shortcuts,
    Tool,
    TurnEvent,
)
from seawall.testing import FakeClock, FixedChance

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from seawall import HookContext

ANY: dict[str, Any] = {"type": "object"}
POLICY = RunPolicy(**{**FULL, "timeout_s": 4, "rate": None, "max_concurrency": 2})


class SlowBooks(Books):
    """Books of a pipeline in which unknown names are asked for too."""

    def __init__(self) -> None:
        super().__init__()
        self.unknowns = 0

    def unknown(self) -> None:
        self.unknowns += 1


class SlowHook:
    """Takes its time before and after each call."""

    def __init__(self, clock: FakeClock) -> None:
        self._clock = clock

    async def before(self, context: HookContext) -> None:
        await self._clock.sleep(0.1)

    async def after(self, context: HookContext) -> None:
        await self._clock.sleep(0.1)


class Many(Stage):
    """A pipeline with tools of every kind, a slow hook, a slow judge and a slow person."""

    def __init__(self, work: Callable[[Many], Awaitable[Any]], width: int = 16) -> None:
        self.clock = FakeClock()
        self.books: SlowBooks = SlowBooks()
        self.others = []
        self.work = work
        self.width = width
        self.told: list[TurnEvent] = []
        self.session = Session("s")
        kinds: dict[str, dict[str, Any]] = {
            "quick": {},
            "slow": {},
            "again": {"annotations": READS},
            "asked": {"risk": Risk.HIGH},
            "keyed": {"exclusive": "key"},
            "calls": {},
            "deaf": {},
            "serial": {"execution": "sequential"},
        }
        tools = [
            Tool(
                name=name,
                description="",
                input_schema=ANY,
                executor=getattr(self, name, self.slow),
                **{"risk": Risk.LOW, **fields},
            )
            for name, fields in kinds.items()
        ]
        self.pipeline = Pipeline(
            tools,
            policies=Policies(default=POLICY),
            clock=self.clock,
            chance=FixedChance(),
            recorders=[self.books],
            confirm=self._confirm,
            hooks=[SlowHook(self.clock)],
            loop=LoopPolicy(judge=self._judge, judge_after=0, judge_every=1),
            max_turn_width=width,
        )
        self.batches = BatchRunner(self.pipeline)
        self.pipeline.registry.register(self.batches.tool)
        self.shortcuts = Shortcuts(self.pipeline)

    async def quick(self, arguments: Any, context: Any) -> str:
        return "quick"

    async def slow(self, arguments: Any, context: Any) -> str:
        context.progress("half")
        await self.clock.sleep(1)
        return "slow"

    async def again(self, arguments: Any, context: Any) -> str:
        await self.clock.sleep(0.2)
        if context.attempt == 1:
            raise OSError("down")
        return "well"

    async def calls(self, arguments: Any, context: Any) -> str:
        result: str = (await context.call_tool("keyed", {})).text
        return result

    async def deaf(self, arguments: Any, context: Any) -> str:
        end = self.clock.now() + 3
        while self.clock.now() < end:
            try:
                await self.clock.sleep(end - self.clock.now())
            except asyncio.CancelledError:
                continue
        return "late"

    async def _judge(self, question: Any) -> None:
        await self.clock.sleep(0.5)

    async def start(self) -> asyncio.Task[Any]:
        await self.shortcuts.define(
            {
                "id": "shortcut.pair",
                "name": "a pair",
                "steps": [{"tool": "slow", "arguments": {}}, {"tool": "asked", "arguments": {}}],
            }
        )
        task = asyncio.ensure_future(self.work(self))
        await asyncio.sleep(0)
        return task

    def turn(self, *calls: Any, **options: Any) -> Awaitable[Any]:
        return self.pipeline.turn(calls, session=self.session, on_event=self.told.append, **options)

    def each_call_ended_once(self, *, whole: bool) -> None:
        """In the books always; for the listener, unless the turn was cancelled on the way."""
        ends = Counter(one.call_id for one in self.books.finished)
        assert set(ends.values()) <= {1}
        attempts = Counter((span.call_id, span.attempt) for span in self.books.spans)
        assert set(attempts.values()) <= {1}
        # A step that was left out has a span, and is no call.
        tried = [span for span in self.books.spans if span.outcome is not Outcome.SKIPPED]
        assert {span.call_id for span in tried} == ends.keys()
        told = {kind: Counter[int]() for kind in ("start", "update", "end")}
        for event in self.told:
            told[event.kind][event.position] += 1
        assert set(told["start"].values()) <= {1}
        assert set(told["end"].values()) <= {1}
        assert told["end"].keys() <= told["start"].keys()
        if whole:
            assert told["end"] == told["start"]

    def nothing_is_left(self) -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        assert not others
        assert not any(route.in_flight for route in self.pipeline._routes.values())
        for name in self.pipeline.registry.names():
            room = self.pipeline.states.of_tool(name).find("bulkhead")
            assert room is None or (room.in_flight, room.waiting) == (0, 0)
        states = self.pipeline.states
        assert states.shared("exclusive").slot("rooms", dict) == {}
        assert not self.batches._runner._consents
        deadlines = states.shared("deadlines")._held.values()
        assert all(not shared._waiting for shared in deadlines)


STEPS: list[dict[str, Any]] = [
    {"tool": name, "arguments": {}} for name in ("quick", "asked", "again", "calls")
]


def scene(work: Callable[[Many], Awaitable[Any]], **options: Any) -> Callable[[], Many]:
    return lambda: Many(work, **options)


SCENES = {
    "turn": scene(lambda it: it.turn(("slow", {}), ("again", {}), ("nope", {}), ("quick", {}))),
    "turn with a question": scene(lambda it: it.turn(("quick", {}), ("asked", {}), ("slow", {}))),
    "turn in sequence": scene(lambda it: it.turn(("again", {}), ("serial", {}), ("quick", {}))),
    "turn that waits for places": scene(
        lambda it: it.turn(*[("slow", {"n": n}) for n in range(3)], ("quick", {})), width=1
    ),
    "turn that waits for rooms and keys": scene(
        lambda it: it.turn(*[(name, {"n": n}) for name in ("slow", "keyed") for n in range(3)])
    ),
    "turn with twins": scene(
        lambda it: it.turn(("slow", {}, "x"), ("quick", {}, "x"), ("slow", {}, "x"))
    ),
    "turn of tools that call tools": scene(lambda it: it.turn(("calls", {}), ("calls", {"n": 1}))),
    "turn with a deaf tool": scene(lambda it: it.turn(("deaf", {}), ("slow", {}))),
    "turn with a batch": scene(
        lambda it: it.turn(("tool_batch_run", {"steps": STEPS}), ("slow", {}))
    ),
    "batch": scene(lambda it: it.batches.run(STEPS, session=it.session)),
    "batch that is out of time": scene(
        lambda it: it.batches.run([{"tool": "slow"}] * 4, session=it.session, budget_s=2)
    ),
    "batch with a shortcut": scene(
        lambda it: it.batches.run([{"tool": "shortcut.pair"}, *STEPS[:1]], session=it.session)
    ),
    "shortcut": scene(lambda it: it.turn(("shortcut.pair", {}), ("quick", {}))),
}


async def played(name: str, cancels: tuple[int, ...]) -> int:
    """Play a scene with cancels, and look at what is left; how many steps it took."""
    stage = SCENES[name]()
    task = await stage.start()
    steps = await stage.drive(task, cancels)
    hit = any(cancel < steps for cancel in cancels)
    assert task.cancelled() is hit, "the caller's cancel wins, and nothing else is one"
    if not hit:
        task.result()
    # Who asks a person has a moment to take the question back; all else has ended by now.
    left = [one for one in asyncio.all_tasks() if "Questions" not in repr(one.get_coro())]
    assert left == [asyncio.current_task()], "no task outlives what it belongs to"
    await stage.rest()
    stage.each_call_ended_once(whole=not hit)
    stage.nothing_is_left()

    stage.told.clear()
    outcome = await stage.clock.run(stage.turn(("quick", {"after": 1}), ("keyed", {"after": 1})))
    assert [result.is_error for result in outcome.results] == [False, False]
    stage.nothing_is_left()
    return steps


@pytest.mark.parametrize("name", SCENES)
async def test_a_cancel_at_any_moment_ends_all_and_leaves_nothing(name: str) -> None:
    steps = await played(name, ())

    assert steps > 5
    for at in range(steps):
        await played(name, (at,))


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(sorted(SCENES)), st.integers(0, 80), st.integers(1, 6), st.integers(1, 6))
def test_cancels_that_are_repeated_change_nothing(
    name: str, first: int, second: int, third: int
) -> None:
    async def play() -> None:
        await played(name, (first, first + second, first + second + third))

    asyncio.run(play())
