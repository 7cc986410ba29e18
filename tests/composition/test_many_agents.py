"""Agents that do at random whatever tools, hooks, models and callers can do, all at once."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.composition.test_cancellation_of_many import SlowBooks

from seawall import (
    Abort,
    Annotations,
    BatchRunner,
    BreakerPolicy,
    Defer,
    Deny,
    Outcome,
    Pipeline,
    Policies,
    Replace,
    Rewrite,
    Risk,
    RunPolicy,
    Session,
    Shortcuts,
    Stop,
    Tool,
    ToolCall,
    ToolResult,
    TurnEvent,
)
from seawall.testing import FakeClock

if TYPE_CHECKING:
    from random import Random

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}}
TOOLS = ("a", "b", "c", "s")
PAIR = {
    "id": "shortcut.ab",
    "name": "a and b",
    "steps": [{"tool": "a", "arguments": {"n": 1}}, {"tool": "b", "arguments": {}}],
}


def cancel(task: asyncio.Future[Any]) -> None:
    task.cancel()


class Odd(BaseException):
    """What no tool should raise."""


class Agents:
    """A pipeline, two sessions and three agents; `chance` says what everybody does."""

    def __init__(self, chance: Random) -> None:
        self.chance = chance
        self.clock = FakeClock()
        self.books = SlowBooks()
        self.sessions = [Session("0"), Session("1")]
        tools = [
            Tool(
                name,
                "",
                SCHEMA,
                self.execute,
                annotations=chance.choice([Annotations(), Annotations.for_reading()]),
                execution="sequential" if name == "s" else "parallel",
                exclusive=chance.choice([None, "$n"]) if name == "c" else None,
                risk=Risk.LOW,
            )
            for name in TOOLS
        ]
        policy = RunPolicy(
            timeout_s=chance.choice([None, 2, 5]),
            deadline_s=chance.choice([20, 4, 12]),
            idle_timeout_s=chance.choice([None, 1]),
            max_retries=chance.randint(0, 2),
            base_delay_s=0.1,
            max_concurrency=chance.choice([None, 2]),
            grace_s=chance.choice([0, 1]),
            breaker=chance.choice([None, BreakerPolicy()]),
        )
        self.pipeline = Pipeline(
            tools,
            policies=Policies(default=policy),
            hooks=[self],
            clock=self.clock,
            confirm=lambda *_: chance.random() < 0.5,
            recorders=[self.books],
            max_turn_width=chance.choice([1, 3, 16]),
        )
        self.pipeline.registry.register(BatchRunner(self.pipeline).tool)

    async def execute(self, arguments: dict[str, Any], context: Any) -> Any:
        for _ in range(self.chance.randint(0, 2)):
            answer = await self.misbehave(self.chance.randint(0, 14), context)
            if answer is not None:
                return answer
        return str(arguments)

    async def misbehave(self, what: int, context: Any) -> Any:
        errors = {0: ValueError("x"), 1: asyncio.CancelledError(), 2: OSError("io")}
        errors |= {3: Odd(), 4: SystemExit(3)}
        if what in errors:
            raise errors[what]
        if what == 5:
            await self.clock.sleep(self.chance.random() * 10)
        elif what == 6:
            await self.is_deaf()
        elif what == 7:
            return await context.call_tool(self.chance.choice(TOOLS), {"n": 1})
        elif what == 8:
            context.progress("so far")
        elif what == 9:
            task = asyncio.current_task()
            assert task is not None
            task.cancel()
            await asyncio.sleep(0)
        elif what == 10:
            return ToolResult(terminate=True)
        elif what == 11:
            await self.has_a_group()
        return None

    async def is_deaf(self) -> None:
        try:
            await self.clock.sleep(20)
        except asyncio.CancelledError:
            if self.chance.random() < 0.5:
                raise

    async def has_a_group(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self.clock.sleep(1))
            if self.chance.random() < 0.5:
                raise ValueError("in a group")

    async def before(self, context: Any) -> Any:
        answers = [Deny("no"), Rewrite({"n": 1}), Rewrite({"n": "x"}), Stop("s"), Abort("s"), 5]
        answers += [Defer("d")]
        match self.chance.randint(0, 60):
            case 0:
                raise ValueError("x")
            case 1:
                raise asyncio.CancelledError
            case 2:
                await self.is_deaf()
            case 3:
                context.inject("m")
            case n if n - 4 < len(answers):
                return answers[n - 4]
        return None

    def after(self, _: Any) -> Any:
        answers: list[Any] = [Replace(content="r"), Stop("s"), Replace(content=5), "rubbish"]  # type: ignore[arg-type]  # on purpose
        which = self.chance.randint(0, 40)
        if which == 40:
            raise ValueError("x")
        return answers[which] if which < len(answers) else None

    def call(self) -> ToolCall:
        name = self.chance.choice([*TOOLS, "tool_batch_run", "shortcut.ab", "nope"])
        arguments: Any = self.chance.choice([{"n": self.chance.randint(0, 2)}, '{"n":1}', "{bad"])
        if name == "tool_batch_run":
            steps = self.chance.choices([*TOOLS, "shortcut.ab"], k=self.chance.randint(1, 3))
            arguments = {"steps": [{"tool": step, "arguments": {}} for step in steps]}
        return ToolCall(name, arguments, self.chance.choice([None, "x", "y", "x_2"]))

    async def turn(self, session: Session) -> None:
        calls = [self.call() for _ in range(self.chance.randint(0, 5))]
        if calls and self.chance.random() < 0.3:
            calls.append(self.chance.choice(calls))
        told: list[TurnEvent] = []
        turn = asyncio.ensure_future(
            self.pipeline.turn(calls, session=session, on_event=told.append)
        )
        if self.chance.random() < 0.2:
            self.clock.call_later(self.chance.random() * 5, partial(cancel, turn))
        await asyncio.wait([turn])
        positions = {
            kind: Counter(event.position for event in told if event.kind == kind)
            for kind in ("start", "end")
        }
        assert set(positions["start"].values()) | set(positions["end"].values()) <= {1}
        if turn.cancelled():
            return
        results = turn.result().results
        everyone = set(range(len(calls)))
        assert positions["start"].keys() == positions["end"].keys() == everyone
        ends = {event.position: event for event in told if event.kind == "end"}
        for position, (result, call) in enumerate(zip(results, calls, strict=True)):
            assert result is ends[position].result
            assert (result.call_id, result.tool) == (ends[position].call_id, call.name)

    async def agent(self, session: Session) -> None:
        for _ in range(12):
            await self.turn(session)

    async def live(self) -> None:
        shortcuts = Shortcuts(self.pipeline)
        await shortcuts.define(PAIR)
        first, second = self.sessions
        await self.clock.run(asyncio.gather(*map(self.agent, (first, second, first))))
        await self.clock.advance(200)

    def nothing_is_left(self) -> None:
        assert asyncio.all_tasks() == {asyncio.current_task()}
        assert not any(route.in_flight for route in self.pipeline._routes.values())
        for name in TOOLS:
            room = self.pipeline.states.of_tool(name).find("bulkhead")
            assert room is None or (room.in_flight, room.waiting) == (0, 0)
        assert self.pipeline.states.shared("exclusive").slot("rooms", dict) == {}
        spans = [span for span in self.books.spans if span.outcome is not Outcome.SKIPPED]
        assert len(spans) == sum(max(call.attempts, 1) for call in self.books.finished)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.randoms(use_true_random=True))
def test_each_call_has_one_result_and_nothing_is_left_whatever_everybody_does(
    chance: Random,
) -> None:
    async def play() -> None:
        agents = Agents(chance)
        await agents.live()
        agents.nothing_is_left()

    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        asyncio.run(play())
    finally:
        logging.disable(before)
