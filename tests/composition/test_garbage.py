"""What is over leaves nothing that only a collection of cycles would find.

But for what was cancelled: asyncio keeps the cancel at the task, and so the frames that know it.
"""

from __future__ import annotations

import asyncio
import gc
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from seawall import Annotations, Pipeline, Policies, RunPolicy, Session, Tool, ToolContext, tool

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

READS = Annotations.for_reading()


async def at_once(arguments: dict[str, Any], context: ToolContext) -> str:
    return "at once"


async def waits(arguments: dict[str, Any], context: ToolContext) -> str:
    await asyncio.sleep(0)
    return "a moment later"


async def fails(arguments: dict[str, Any], context: ToolContext) -> str:
    raise ConnectionError("reset")


async def hangs(arguments: dict[str, Any], context: ToolContext) -> str:
    await asyncio.sleep(60)
    return "never"


async def calls_another(arguments: dict[str, Any], context: ToolContext) -> str:
    return (await context.call_tool("at_once")).text


def in_a_thread(arguments: dict[str, Any], context: ToolContext) -> str:
    return "in a thread"


@tool(annotations=READS)
async def typed(a: int) -> int:
    """Give it back."""
    return a


OF_A_CALL = {
    *("Invocation", "ToolContext", "Drive", "ToolResult", "Turn", "Member", "Ticket", "Barrier"),
    *("coroutine", "Task", "frame", "traceback", "CancelledError", "ConnectionError"),
}
"""What belongs to one call or turn; a pipeline of an earlier test may end at any time."""

EXECUTORS = (at_once, waits, fails, hangs, calls_another, in_a_thread)

PIPELINE_CALLS: dict[str, Callable[[Pipeline, Session], Awaitable[Any]]] = {
    "at once": lambda p, s: p.call("at_once"),
    "JSON text": lambda p, s: p.call("at_once", '{"a": 1}'),
    "in a session": lambda p, s: p.call("at_once", session=s),
    "after a wait": lambda p, s: p.call("waits"),
    "under own limits": lambda p, s: p.call("waits", timeout_s=5, deadline_s=9),
    "in a thread": lambda p, s: p.call("in_a_thread"),
    "typed": lambda p, s: p.call("typed", {"a": 1}),
    "nested": lambda p, s: p.call("calls_another"),
    "a failure, tried again": lambda p, s: p.call("fails"),
    "a timeout": lambda p, s: p.call("hangs", timeout_s=0.001),
    "a deadline": lambda p, s: p.call("hangs", deadline_s=0.001),
    "an unknown name": lambda p, s: p.call("at_one"),
    "a turn of one": lambda p, s: p.turn([("at_once", {})], session=s),
    "a turn": lambda p, s: p.turn([("waits", {}), ("fails", {}), ("at_once", {})], session=s),
    "a turn with twins": lambda p, s: p.turn([("waits", {}, "1"), ("waits", {}, "1")], session=s),
}


@contextmanager
def collecting() -> Iterator[list[Any]]:
    """Give a list in which, after the block, stands what only a collection found."""
    found: list[Any] = []
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        yield found
        gc.collect()
        found += gc.garbage
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


@pytest.mark.parametrize("name", PIPELINE_CALLS)
async def test_a_call_that_is_over_leaves_no_ring_behind(name: str) -> None:
    policy = RunPolicy(timeout_s=30, max_retries=1, delays_s=(0,), breaker=None)
    tools = [Tool(f.__name__, "", {}, f, annotations=READS) for f in EXECUTORS]
    pipeline = Pipeline([*tools, typed], policies=Policies(default=policy), loop=None)
    session, work = Session("s"), PIPELINE_CALLS[name]
    for _ in range(3):  # what is made once may leave what it likes
        await work(pipeline, session)

    with collecting() as found:
        for _ in range(10):
            await work(pipeline, session)

    assert {type(one).__name__ for one in found} & OF_A_CALL == set()
