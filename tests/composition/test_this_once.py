"""A yes for this once runs a tool once, whichever way equal calls come together."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from seawall import Annotations, Answer, BatchRunner, Pipeline, Session, ToolContext, tool

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

CALLS = 3


class Shop:
    """A tool that pays, one that has it paid often, and a person who says yes each time."""

    def __init__(self) -> None:
        self.asked = 0
        self.open = 0
        self.paid = 0

        @tool(annotations=Annotations.for_destroying())
        async def pay(to: str) -> str:
            """Pay."""
            self.paid += 1
            await asyncio.sleep(0)
            return "paid"

        @tool(annotations=Annotations.for_reading())
        async def pays(context: ToolContext) -> str:
            """Pay often."""
            each = (context.call_tool("pay", {"to": "ada"}) for _ in range(CALLS))
            return f"{len(await asyncio.gather(*each))}"

        self.pipeline = Pipeline([pay, pays], confirm=self.confirm)

    async def confirm(self, prepared: Any, decision: Any) -> Answer:
        self.asked += 1
        self.open += 1
        assert self.open == 1, "questions come in line"
        for _ in range(20):
            await asyncio.sleep(0)
        self.open -= 1
        return Answer.ALLOW_ONCE


async def at_once(shop: Shop) -> None:
    session = Session("chat")
    calls = (shop.pipeline.call("pay", {"to": "ada"}, session=session) for _ in range(CALLS))
    await asyncio.gather(*calls)


async def without_a_session(shop: Shop) -> None:
    await asyncio.gather(*(shop.pipeline.call("pay", {"to": "ada"}) for _ in range(CALLS)))


async def in_one_turn(shop: Shop) -> None:
    calls = [("pay", {"to": "ada"}, f"c{at}") for at in range(CALLS)]
    await shop.pipeline.turn(calls, session=Session("chat"))


async def in_turns_of_one_session(shop: Shop) -> None:
    session = Session("chat")
    turn = shop.pipeline.turn
    await asyncio.gather(*(turn([("pay", {"to": "ada"})], session=session) for _ in range(CALLS)))


async def by_a_running_tool(shop: Shop) -> None:
    await shop.pipeline.call("pays", session=Session("chat"))


async def in_a_batch(shop: Shop) -> None:
    step = {"tool": "pay", "arguments": {"to": "ada"}}
    await BatchRunner(shop.pipeline).run([step] * CALLS, session=Session("chat"))


@pytest.mark.parametrize(
    "come",
    [
        at_once,
        without_a_session,
        in_one_turn,
        in_turns_of_one_session,
        by_a_running_tool,
        in_a_batch,
    ],
)
async def test_each_of_several_equal_calls_needs_a_yes_of_its_own(
    come: Callable[[Shop], Awaitable[None]],
) -> None:
    shop = Shop()

    await come(shop)

    assert (shop.asked, shop.paid) == (CALLS, CALLS)
