from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import pytest
from tests.waiting import until_idle

from seawall import Annotations, FallbackPolicy, Pipeline, Policies, RunPolicy, ToolContext, tool
from seawall.pipeline.breaking_off import had_begun, note_begun


class House:
    """Tools that wait until they are cancelled, one at a time."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.tools = [
            tool(self.pay, exclusive="till", annotations=Annotations.for_changing(), risk="low"),
            tool(self.read, annotations=Annotations.for_reading()),
        ]

    async def pay(self) -> str:
        """Pay."""
        self.begun.set()
        await asyncio.Event().wait()
        return "paid"

    async def read(self, context: ToolContext) -> str:
        """Call the tool that pays."""
        return (await context.call_tool("pay")).text


async def _cancelled(call: asyncio.Future[Any]) -> BaseException:
    """Cancel a call, and give what came out of it, in the task that made it."""
    call.cancel()
    found: BaseException = await call
    return found


async def _caught(pipeline: Pipeline, name: str) -> BaseException | None:
    try:
        await pipeline.call(name)
    except asyncio.CancelledError as error:
        return error
    return None


async def test_a_call_that_was_cancelled_while_it_ran_had_begun() -> None:
    house = House()
    call = asyncio.ensure_future(_caught(Pipeline(house.tools), "pay"))
    await house.begun.wait()

    assert had_begun(await _cancelled(call))


@pytest.mark.parametrize("policy", [{}, {"deadline_s": 60.0}, {"timeout_s": 60.0}])
async def test_a_call_that_was_cancelled_while_it_waited_had_not_begun(policy: Any) -> None:
    house = House()
    pipeline = Pipeline(house.tools, policies=Policies(RunPolicy(**policy)))
    first = asyncio.ensure_future(_caught(pipeline, "pay"))
    await house.begun.wait()
    waiting = asyncio.ensure_future(_caught(pipeline, "pay"))
    await until_idle()

    assert not had_begun(await _cancelled(waiting))
    assert had_begun(await _cancelled(first))


async def test_a_tool_had_begun_although_what_it_calls_still_waited() -> None:
    house = House()
    pipeline = Pipeline(house.tools)
    first = asyncio.ensure_future(_caught(pipeline, "pay"))
    await house.begun.wait()
    outer = asyncio.ensure_future(_caught(pipeline, "read"))
    await until_idle()

    assert had_begun(await _cancelled(outer))
    await _cancelled(first)


async def test_a_call_has_begun_when_the_tool_that_stands_in_for_its_own_has() -> None:
    house = House()
    policies = Policies(
        RunPolicy(),
        tools={
            "read": RunPolicy(
                rate="1/hour", fallback=FallbackPolicy(tool="pay", on=("rate_limited",))
            )
        },
    )
    pipeline = Pipeline(house.tools, policies=policies)
    first = asyncio.ensure_future(_caught(pipeline, "read"))
    await house.begun.wait()
    await _cancelled(first)
    house.begun.clear()
    second = asyncio.ensure_future(_caught(pipeline, "read"))
    await house.begun.wait()

    assert had_begun(await _cancelled(second))


@dataclass(frozen=True)
class _Closed(Exception):  # noqa: N818  # what a framework might raise
    said: str


def test_it_is_noted_whatever_is_raised_and_in_doubt_a_call_had_begun() -> None:
    error = _Closed("")
    assert had_begun(error)
    note_begun(error, begun=False)
    assert not had_begun(error)
    note_begun(error, begun=True)
    note_begun(error, begun=False)
    assert had_begun(error)
