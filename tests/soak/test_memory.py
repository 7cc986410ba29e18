"""Memory is flat once a pipeline is warm, whatever calls it gets."""

from __future__ import annotations

import asyncio
import gc
import logging
import tracemalloc
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from seawall import (
    Annotations,
    BreakerPolicy,
    Failure,
    FailureCode,
    Pipeline,
    Policies,
    Registry,
    Risk,
    RunPolicy,
    Session,
    Tool,
    ToolFailed,
)
from seawall.recording.trace import TraceRecorder
from seawall.testing import FakeClock

if TYPE_CHECKING:
    from collections.abc import Callable

SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "limit": {"type": "integer", "minimum": 1},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["name"],
}
OUTPUT = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
POLICY = RunPolicy(
    timeout_s=1.0,
    max_retries=1,
    base_delay_s=0.1,
    rate="100/second",
    breaker=BreakerPolicy(threshold=3),
    max_concurrency=8,
    max_result_bytes=10_000,
)


class Soak(NamedTuple):
    """How much is done."""

    tools: int
    calls: int
    warm: int
    """Calls after which memory should not grow any more."""
    most_growth: int
    """Bytes."""


def kinds(clock: FakeClock) -> list[Callable[[int], Tool]]:
    async def answers(arguments: dict[str, Any], context: Any) -> Any:
        return {"n": len(arguments)}

    async def says_much(arguments: dict[str, Any], context: Any) -> str:
        return "x" * 20_000

    async def raises(arguments: dict[str, Any], context: Any) -> Any:
        raise ConnectionError(arguments["name"])

    async def refuses(arguments: dict[str, Any], context: Any) -> Any:
        raise ToolFailed(Failure(code=FailureCode.NOT_FOUND, message="no such thing"))

    async def hangs(arguments: dict[str, Any], context: Any) -> Any:
        await clock.sleep(60)

    async def breaks_its_promise(arguments: dict[str, Any], context: Any) -> Any:
        return {"n": "x"}

    async def streams(arguments: dict[str, Any], context: Any) -> Any:
        for number in range(3):
            yield {"n": number}

    def made(name: str, executor: Any, **fields: Any) -> Callable[[int], Tool]:
        return lambda number: Tool(
            f"{name}_{number}",
            f"Number {number}.",
            SCHEMA,
            executor,
            annotations=Annotations.for_reading(),
            **fields,
        )

    return [
        made("answers", answers, output_schema=OUTPUT),
        made("says_much", says_much),
        made("raises", raises),
        made("refuses", refuses),
        made("hangs", hangs),
        made("breaks_its_promise", breaks_its_promise, output_schema=OUTPUT),
        made("streams", streams),
        made("is_dangerous", answers, risk=Risk.HIGH),
        made("waits_for_its_turn", answers, exclusive="$name"),
        made("answers_again", answers),
    ]


GIVEN: list[Any] = [
    {"name": "a"},
    {"name": "a", "limit": "5"},
    '{"name": "a", "limit": 5,}',
    {"limit": 0, "tags": "x"},
    '{"name": "a',
    {"name": "a", "tags": [1, "b"] * 20},
    {"name": float("nan")},
    None,
]


async def soak(clock: FakeClock, plan: Soak) -> list[int]:
    """Make all calls; gives the bytes in use when warm and at the end."""
    makers = kinds(clock)
    registry = Registry(makers[n % len(makers)](n) for n in range(plan.tools))
    names = registry.names()
    policies = Policies(default=POLICY)
    trace = TraceRecorder(1_000)
    used: list[int] = []
    async with Pipeline(registry, policies=policies, clock=clock, trace=trace) as pipeline:
        for number in range(plan.calls):
            if number == plan.warm:
                used.append(in_use())
            await clock.run(one(pipeline, names, number))
        used.append(in_use())
    return used


async def one(pipeline: Pipeline, names: tuple[str, ...], number: int) -> None:
    """Make one call, and now and then one of a name that nobody knows, or one that is cancelled."""
    session = Session(f"session-{number // 50}") if number % 3 else None
    given = GIVEN[number % len(GIVEN)]
    if number % 11 == 0:
        await pipeline.call(f"nothing_like_{number}", given, session=session)
        return
    name = names[number * 7 % len(names)]
    call = pipeline.call(name, given, session=session, call_id=f"call-{number}")
    if number % 13:
        await call
        return
    task = asyncio.ensure_future(call)
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait({task})


def in_use() -> int:
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


@pytest.mark.parametrize(
    "plan",
    [
        Soak(tools=100, calls=8_000, warm=4_000, most_growth=100_000),
        pytest.param(
            Soak(tools=1_000, calls=100_000, warm=40_000, most_growth=200_000),
            marks=pytest.mark.long,
        ),
    ],
    ids=["short", "long"],
)
def test_memory_is_flat_when_a_pipeline_is_warm(
    plan: Soak, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL, logger="seawall")  # what is captured would be kept
    tracemalloc.start()
    try:
        warm, end = asyncio.run(soak(FakeClock(), plan))
    finally:
        tracemalloc.stop()

    assert end - warm < plan.most_growth, f"{warm:,} bytes when warm, {end:,} at the end"
