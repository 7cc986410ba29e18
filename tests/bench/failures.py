"""Calls that fail: one retried at once, against bare tenacity, one that is not, and refusals."""

from __future__ import annotations

import asyncio
import itertools
import logging
from typing import Annotated, Any

import tenacity
from pydantic import AfterValidator
from tests.bench.chain import BLOCK, calling, timeout_block
from tests.bench.measure import Case, Pair
from tests.bench.tools import FLAT_GIVEN, NESTED, NESTED_GIVEN, a_tool

from seawall import BreakerPolicy, Pipeline, Policies, RunPolicy, tool

ALL_DAY = 86_400
POLICY = RunPolicy(timeout_s=30, max_retries=1, rate="1000000000/minute", breaker=BreakerPolicy())
ONCE = RunPolicy(rate="1/day")
FRAGILE = RunPolicy(
    timeout_s=30,
    max_retries=0,
    breaker=BreakerPolicy(threshold=1, cooldown_s=ALL_DAY, max_cooldown_s=ALL_DAY),
)
NESTED_WRONG: dict[str, Any] = {**NESTED_GIVEN, "inside": {"x": "x", "y": 2.5}}
UNGUARDED = RunPolicy(timeout_s=30, max_retries=0, breaker=BreakerPolicy(mode="off"))


class EveryOther:
    """A tool of which every other attempt fails."""

    def __init__(self) -> None:
        self._odd = False

    async def __call__(self, arguments: dict[str, Any], context: Any) -> str:
        self._odd = not self._odd
        if self._odd:
            raise ConnectionError("reset")
        return "ok"


async def broken(arguments: dict[str, Any], context: Any) -> str:
    raise ConnectionError("reset")


def is_even(number: int) -> int:
    if number % 2:
        raise ValueError("must be even")
    return number


async def typed(a: int, b: Annotated[int, AfterValidator(is_even)]) -> str:
    """Answer."""
    return "ok"


async def failing_block(times: int) -> None:
    for _ in range(times):
        try:
            async with asyncio.timeout(30):
                await broken(FLAT_GIVEN, None)
        except ConnectionError:
            pass


async def pairs() -> list[Pair]:
    logging.getLogger("seawall").setLevel(logging.CRITICAL)
    return [await _retried(), await _raised(), *await _refused()]


async def _retried() -> Pair:
    flaky = a_tool("flaky", executor=EveryOther())
    pipeline = Pipeline([flaky], policies=Policies(default=POLICY))
    result = await pipeline.call("flaky", FLAT_GIVEN)
    assert (result.text, result.attempts) == ("ok", 2)

    attempt = EveryOther()

    @tenacity.retry(
        stop=tenacity.stop_after_attempt(2),
        wait=tenacity.wait_none(),
        retry=tenacity.retry_if_exception_type(ConnectionError),
        reraise=True,
    )
    async def retried(arguments: dict[str, Any]) -> str:
        return await attempt(arguments, None)

    async def bare(times: int) -> None:
        for _ in range(times):
            await retried(FLAT_GIVEN)

    name = "full chain, one retry without a wait"
    ours = calling(pipeline, "flaky")
    return Pair(name, ours, "tenacity alone", bare, 0.5, ("tenacity",))


async def _raised() -> Pair:
    policies = Policies(default=UNGUARDED)
    pipeline = Pipeline([a_tool("broken", executor=broken)], policies=policies)
    await _fails(pipeline, "broken", "tool_failed")
    return Pair(
        "the tool raises, no retry",
        calling(pipeline, "broken"),
        f"{BLOCK} in which it raises",
        failing_block,
    )


async def _refused() -> list[Pair]:
    policies = Policies(default=POLICY, tools={"once": ONCE, "fragile": FRAGILE})
    tools = [
        a_tool("flat"),
        a_tool("nested", NESTED),
        a_tool("once"),
        a_tool("fragile", executor=broken),
        tool(typed),
    ]
    pipeline = Pipeline(tools, policies=policies)
    await pipeline.call("once", FLAT_GIVEN)
    await pipeline.call("fragile", FLAT_GIVEN)
    refusals: dict[str, tuple[str, str, dict[str, Any]]] = {
        "refused by the rate limit": ("once", "rate_limited", FLAT_GIVEN),
        "refused by an open circuit": ("fragile", "circuit_open", FLAT_GIVEN),
        "refused by the argument check": ("flat", "argument_type", {"a": "x", "b": 2}),
        "the same of twelve arguments, nested": ("nested", "argument_type", NESTED_WRONG),
        "refused by a typed function's own check": ("typed", "argument_invalid", {"a": 1, "b": 3}),
        "the same unknown name again": ("flut", "tool_not_found", FLAT_GIVEN),
    }
    found = []
    for what, (name, reason, given) in refusals.items():
        await _fails(pipeline, name, reason, given)
        found.append(Pair(what, calling(pipeline, name, given), BLOCK, timeout_block))
    unknown = "a name that is not registered"
    return [*found, Pair(unknown, _misspelling(pipeline), BLOCK, timeout_block)]


def _misspelling(pipeline: Pipeline) -> Case:
    """Always another name, as what is near to one that comes again is kept."""
    names = itertools.cycle([f"flut{number}" for number in range(200)])

    async def run(times: int) -> None:
        call = pipeline.call
        for _ in range(times):
            await call(next(names), FLAT_GIVEN)

    return run


async def _fails(
    pipeline: Pipeline, name: str, reason: str, given: dict[str, Any] = FLAT_GIVEN
) -> None:
    """Make sure that what is measured is what the row says."""
    failure = (await pipeline.call(name, given)).failure
    assert failure is not None
    assert failure.reason == reason, failure
