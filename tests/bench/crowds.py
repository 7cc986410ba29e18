"""1,000 calls at once of a tool that waits 10 ms, against `asyncio.gather` of the bare tool."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from tests.bench.by_hand import PACKAGES, ByHand
from tests.bench.measure import WALL, Case, Pair
from tests.bench.tools import FLAT_GIVEN, POLICY, a_tool

from seawall import Pipeline, Policies

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

AT_ONCE = 1_000


async def sleeper(a: int, b: int) -> int:
    await asyncio.sleep(0.01)
    return a + b


async def sleeping(arguments: dict[str, Any], context: Any) -> int:
    await asyncio.sleep(0.01)
    return 3


def at_once(call: Callable[[], Awaitable[Any]]) -> Case:
    async def run(times: int) -> None:
        for _ in range(times):
            await asyncio.gather(*(call() for _ in range(AT_ONCE)))

    return run


async def pairs() -> list[Pair]:
    pipeline = Pipeline([a_tool("sleeping", executor=sleeping)], policies=Policies(default=POLICY))
    stack = ByHand(sleeper, "sleeper")

    async def timed() -> None:
        async with asyncio.timeout(30):
            await sleeper(1, 2)

    async def by_hand(times: int) -> None:
        stack.forget()
        await at_once(lambda: stack(FLAT_GIVEN))(times)

    ours = at_once(lambda: pipeline.call("sleeping", FLAT_GIVEN))
    name = "1,000 calls at once of a tool of 10 ms"
    found = [
        Pair(name, ours, "`asyncio.gather`", at_once(lambda: sleeper(1, 2)), 2.2),
        Pair(name, ours, "`asyncio.gather`, each in `asyncio.timeout`", at_once(timed)),
        Pair(name, ours, "the stack by hand", by_hand, None, PACKAGES, "V R Y B T M"),
    ]
    return [pair._replace(clock=WALL) for pair in found]
