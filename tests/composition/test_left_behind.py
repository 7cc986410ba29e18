"""What is given up and still runs: its key stays taken until it ends."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

from seawall import Annotations, Pipeline, Policies, RunPolicy, Tool
from seawall.testing import FakeClock, scripted

if TYPE_CHECKING:
    from collections.abc import Callable

POLICY = RunPolicy(timeout_s=1, grace_s=0.1)


class Thread:
    """A plain function that ignores its cancellation until it is told to end."""

    def __init__(self) -> None:
        self.end = threading.Event()
        self.running = 0
        self.most = 0

    def __call__(self, arguments: dict[str, Any], context: Any) -> str:
        self.running += 1
        self.most = max(self.most, self.running)
        self.end.wait(10)
        self.running -= 1
        return "done"

    def tool(self, name: str = "edit", **fields: Any) -> Tool:
        return Tool(
            name, "", {"type": "object"}, self, exclusive=fields.pop("exclusive", "file"), **fields
        )


async def until(clock: FakeClock, seen: Callable[[], bool]) -> None:
    """Let threads begin and end, which no clock can tell."""
    for _ in range(2_000):
        await clock.settle()
        if seen():
            return
        await asyncio.to_thread(threading.Event().wait, 0.001)
    raise AssertionError("it did not happen")


async def test_a_key_is_kept_until_the_thread_of_a_timed_out_call_ends() -> None:
    work, clock = Thread(), FakeClock()
    async with Pipeline([work.tool()], policies=Policies(POLICY), clock=clock) as pipeline:
        first = await clock.run(pipeline.call("edit"))
        second = asyncio.ensure_future(pipeline.call("edit"))
        await clock.settle()

        assert first.failure is not None
        assert first.failure.reason == "attempt_timeout"
        await until(clock, lambda: work.most == 1)
        assert not second.done()

        work.end.set()
        await until(clock, second.done)

        assert second.result().text == "done"
        assert work.most == 1


async def test_a_call_that_waits_for_a_kept_key_is_bound_by_its_deadline() -> None:
    work, clock = Thread(), FakeClock()
    async with Pipeline([work.tool()], policies=Policies(POLICY), clock=clock) as pipeline:
        await clock.run(pipeline.call("edit"))

        late = await clock.run(pipeline.call("edit", deadline_s=5))

        assert late.failure is not None
        assert late.failure.reason == "deadline_exceeded"
        assert late.attempts == 0
        work.end.set()


async def test_a_tool_keeps_its_key_while_a_call_that_it_made_still_runs() -> None:
    work, clock = Thread(), FakeClock()

    async def outer(arguments: dict[str, Any], context: Any) -> str:
        return str((await context.call_tool("edit")).is_error)

    calling = Tool("outer", "", {"type": "object"}, outer, exclusive="file")
    tools = [work.tool(), calling, scripted("read", name="read", exclusive="file")]
    policies = Policies(RunPolicy(), tools={"edit": POLICY})
    async with Pipeline(tools, policies=policies, clock=clock) as pipeline:
        assert (await clock.run(pipeline.call("outer"))).text == "True"
        reading = asyncio.ensure_future(pipeline.call("read"))
        await clock.settle()
        assert not reading.done()

        work.end.set()
        await until(clock, reading.done)

        assert reading.result().text == "read"


async def test_a_retry_does_not_wait_for_the_thread_of_the_attempt_before() -> None:
    # It is one call, and its tool has said that it may be repeated.
    work, clock = Thread(), FakeClock()
    tool = work.tool(annotations=Annotations.for_reading())
    policy = RunPolicy(timeout_s=1, grace_s=0.1, max_retries=1)
    async with Pipeline([tool], policies=Policies(policy), clock=clock) as pipeline:
        result = await clock.run(pipeline.call("edit"))

        assert result.attempts == 2
        await until(clock, lambda: work.most == 2)
        work.end.set()
