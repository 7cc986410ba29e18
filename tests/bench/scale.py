"""What many tools, calls and spans cost: times against few, and bytes."""

from __future__ import annotations

import asyncio
import functools
import gc
import itertools
import time
import tracemalloc
from typing import TYPE_CHECKING, Any

import jsonschema_rs
from rapidfuzz import process
from rapidfuzz.distance import Levenshtein
from tests.bench.chain import calling
from tests.bench.measure import Case, Pair, Row, versions_of
from tests.bench.tools import FLAT_GIVEN, POLICY, a_tool

from seawall import Pipeline, Policies, Tool, TraceRecorder

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

MANY = 10_000
IN_FLIGHT = 1_000
KIB = 1_024

Key = tuple[str, str]
REGISTERING = ("10,000 tools registered, chains and all", "compiling their schemas")
REGISTERED = ("10,000 tools registered", "in seconds of the processor")
TOOL = ("a tool beyond its schema", "of 10,000")
CALL = ("a call in flight beyond its task", "of 1,000")
SPAN = ("a span kept", "of 10,000")


def schema_of(number: int) -> dict[str, Any]:
    """A schema of a tool's own, as large as those of real ones."""
    return {
        "type": "object",
        "properties": {
            "query": {"type": "string", "maxLength": 100 + number},
            "limit": {"type": "integer", "minimum": 0},
            "kind": {"enum": ["fast", "deep"]},
            "a": {"type": "integer"},
            "b": {"type": "integer"},
        },
        "required": ["a", "b"],
    }


def tools(count: int) -> list[Tool]:
    return [a_tool(f"tool_{number}", schema_of(number)) for number in range(count)]


def piped(these: list[Tool]) -> Pipeline:
    return Pipeline(these, policies=Policies(default=POLICY))


async def pairs() -> list[Pair]:
    few, more, many = (piped(tools(count)) for count in (10, 1_000, MANY))
    beside = calling(few, "tool_5")
    return [
        Pair("a call among 1,000 tools", calling(more, "tool_5"), "among 10", beside, 1.1),
        Pair("a call among 10,000 tools", calling(many, "tool_5"), "among 10", beside, 1.1),
        Pair(
            "calls of 100 tools in turns", _in_turns(more), "of one", calling(more, "tool_5"), 1.5
        ),
        _hints(many),
    ]


def _in_turns(pipeline: Pipeline) -> Case:
    """What is remembered of a tool must still be there when its turn comes again."""
    names = [f"tool_{number}" for number in range(100)]

    async def run(times: int) -> None:
        call = pipeline.call
        for name in itertools.islice(itertools.cycle(names), times):
            await call(name, FLAT_GIVEN)

    return run


def _hints(many: Pipeline) -> Pair:
    """Always another name, as what is near to one that comes again is kept."""
    wrong = [f"tol_{number}" for number in range(5_000, 5_200)]
    names = list(many.registry.names())
    call = many.call

    async def hinted(times: int) -> None:
        for name in itertools.islice(itertools.cycle(wrong), times):
            await call(name, FLAT_GIVEN)

    async def one_pass(times: int) -> None:
        for name in itertools.islice(itertools.cycle(wrong), times):
            process.extract(name, names, scorer=Levenshtein.normalized_similarity, limit=3)

    return Pair(
        "an unknown name among 10,000 tools",
        hinted,
        "one pass by rapidfuzz",
        one_pass,
        None,
        ("rapidfuzz",),
    )


async def _registering() -> Row:
    """Against the least that must be done: compiling each schema."""
    these = tools(MANY)
    schemas = [schema_of(number) for number in range(MANY)]

    def compiled() -> list[Any]:
        return [jsonschema_rs.Draft202012Validator(schema) for schema in schemas]

    rounds = [(_seconds(compiled), _seconds(lambda: piped(these))) for _ in range(3)]
    ratios = sorted(ours / other for other, ours in rounds)
    ours, other = sorted(ours for _, ours in rounds)[1], sorted(other for other, _ in rounds)[1]
    return Row(
        *REGISTERING,
        ratios[1],
        ratios[0],
        ratios[-1],
        ours * 1e6,
        other * 1e6,
        versions=versions_of(("jsonschema-rs",)),
    )


def _seconds(make: Callable[[], Any]) -> float:
    gc.collect()
    begun = time.process_time()
    made = make()
    took = time.process_time() - begun
    del made
    return took


def _size(key: Key, bytes_each: float, aim: float | None = None) -> Row:
    return Row(*key, *(round(bytes_each / KIB, 2),) * 3, aim=aim, unit="KiB")


async def _traced_alone(measure: Callable[[], Awaitable[Row]]) -> Row:
    """Tracing slows everything, so it is on only meanwhile."""
    tracemalloc.start()
    try:
        return await measure()
    finally:
        tracemalloc.stop()


def _traced() -> int:
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


async def _per_tool() -> Row:
    these = tools(MANY)
    before = _traced()
    pipeline = piped(these)
    each = (_traced() - before) / MANY
    del pipeline
    return _size(TOOL, each, 12)


async def _per_call() -> Row:
    released = asyncio.Event()

    async def waits(arguments: dict[str, Any], context: Any) -> str:
        await released.wait()
        return "ok"

    pipeline = piped([a_tool("waits", executor=waits)])

    async def held(call: Callable[[], Any]) -> float:
        released.clear()
        before = _traced()
        calls = [asyncio.ensure_future(call()) for _ in range(IN_FLIGHT)]
        await asyncio.sleep(0.2)
        each = (_traced() - before) / IN_FLIGHT
        released.set()
        await asyncio.gather(*calls)
        return each

    bare = await held(lambda: waits({}, None))
    ours = await held(lambda: pipeline.call("waits", FLAT_GIVEN))
    return _size(CALL, ours - bare)


async def _per_span() -> Row:
    trace = TraceRecorder(MANY)
    pipeline = Pipeline([a_tool("flat")], policies=Policies(default=POLICY), trace=trace)
    await pipeline.call("flat", FLAT_GIVEN)
    before = _traced()
    for _ in range(MANY):
        await pipeline.call("flat", FLAT_GIVEN)
    return _size(SPAN, (_traced() - before) / MANY)


async def _registered_in() -> Row:
    these = tools(MANY)
    took_s = min(_seconds(lambda: piped(these)) for _ in range(2))
    return Row(*REGISTERED, *(round(took_s, 2),) * 3, aim=4, unit="s")


MEASURES: dict[Key, Callable[[], Awaitable[Row]]] = {
    REGISTERING: _registering,
    REGISTERED: _registered_in,
    TOOL: functools.partial(_traced_alone, _per_tool),
    CALL: functools.partial(_traced_alone, _per_call),
    SPAN: functools.partial(_traced_alone, _per_span),
}
"""What is no pair."""
