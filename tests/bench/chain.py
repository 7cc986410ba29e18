"""What the chain costs: whole and layer by layer, against one `asyncio.timeout` block."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import jsonschema_rs
import msgspec
from tests.bench.measure import WALL, Case, Pair
from tests.bench.tools import (
    FLAT,
    FLAT_GIVEN,
    NESTED,
    NESTED_GIVEN,
    POLICY,
    a_tool,
    add,
    answer,
    answer_sync,
)

from seawall import Annotations, Pipeline, Policies, Session, tool
from seawall.pipeline.arguments.prepare import preparing
from seawall.pipeline.invocation import Invocation

BLOCK = "one `asyncio.timeout` block"
CHECK = "one check by jsonschema-rs"
LAYERS = ("argument_check", "rate_limit", "retry", "breaker", "timeout", "risk_gate")

TEXT = {
    "type": "object",
    "properties": {"query": {"type": "string"}, "limit": {"type": "integer"}},
    "required": ["query"],
}
TEXT_GIVEN: dict[str, Any] = {"query": "some words", "limit": 5}


async def timeout_block(times: int) -> None:
    for _ in range(times):
        async with asyncio.timeout(30):
            await answer(FLAT_GIVEN, None)


async def bare_await(times: int) -> None:
    for _ in range(times):
        await answer(FLAT_GIVEN, None)


async def to_thread(times: int) -> None:
    for _ in range(times):
        await asyncio.to_thread(answer_sync, FLAT_GIVEN, None)


def calling(pipeline: Pipeline, name: str, given: Any = FLAT_GIVEN) -> Case:
    async def run(times: int) -> None:
        call = pipeline.call
        for _ in range(times):
            await call(name, given)

    return run


def limited(pipeline: Pipeline) -> Case:
    async def run(times: int) -> None:
        call = pipeline.call
        for _ in range(times):
            await call("flat", FLAT_GIVEN, timeout_s=20)

    return run


def in_a_session(pipeline: Pipeline) -> Case:
    """Calls as an agent makes them: no two alike, and looked at by the loop detector."""
    session = Session("s")

    async def run(times: int) -> None:
        call = pipeline.call
        for number in range(times):
            await call("flat", {"a": number, "b": 2}, session=session)

    return run


def in_turns(pipeline: Pipeline) -> Case:
    session = Session("s")

    async def run(times: int) -> None:
        turn = pipeline.turn
        for number in range(times):
            await turn([("flat", {"a": number, "b": 2})], session=session)

    return run


async def pairs() -> list[Pair]:
    return [*_chains(), *_ways(), *_layers(), *_checks()]


def _ways() -> list[Pair]:
    """The same chain, and what a call may bring."""
    full = Pipeline([a_tool("flat")], policies=Policies(default=POLICY))
    bounded = Policies(default=msgspec.structs.replace(POLICY, deadline_s=600))
    named = {
        "full chain, under the policy's deadline": calling(
            Pipeline([a_tool("flat")], policies=bounded), "flat"
        ),
        "full chain, under a limit of the call's own": limited(full),
        "full chain, in a session": in_a_session(full),
        "full chain, a turn of one call": in_turns(full),
    }
    return [Pair(name, case, BLOCK, timeout_block) for name, case in named.items()]


def _chains() -> list[Pair]:
    tools = [
        a_tool("flat"),
        a_tool("nested", NESTED),
        a_tool("sync", executor=answer_sync),
        tool(add, annotations=Annotations.for_reading()),
    ]
    full = Pipeline(tools, policies=Policies(default=POLICY))
    named = {
        "full chain, 2 fields, mapping": (calling(full, "flat"), 3.0),
        "full chain, 2 fields, JSON text": (calling(full, "flat", json.dumps(FLAT_GIVEN)), None),
        "full chain, 12 fields, mapping": (calling(full, "nested", NESTED_GIVEN), None),
        "full chain, 12 fields, JSON text": (
            calling(full, "nested", json.dumps(NESTED_GIVEN)),
            None,
        ),
        "full chain, typed function": (calling(full, "add"), None),
        "bare await": (bare_await, None),
    }
    found = [Pair(name, case, BLOCK, timeout_block, aim) for name, (case, aim) in named.items()]
    sync = calling(full, "sync")
    threads = Pair("full chain, sync tool", sync, "`asyncio.to_thread`", to_thread, 1.6)
    return [*found, threads._replace(clock=WALL)]


def _layers() -> list[Pair]:
    def alone(*layers: str) -> Case:
        policies = Policies(default=POLICY)
        return calling(Pipeline([a_tool("flat")], policies=policies, layers=layers), "flat")

    return [
        Pair("no layers", alone(), BLOCK, timeout_block),
        *(Pair(f"`{one}` alone", alone(one), BLOCK, timeout_block) for one in LAYERS),
    ]


def _checks() -> list[Pair]:
    """Preparing a call as the pipeline does, and a bare check of the same value.

    The bound is above 1 since the pipeline also copies, and searches for what is no JSON.
    """
    return [
        _check("argument check, 2 integers", FLAT, FLAT_GIVEN),
        _check("argument check, text and integer", TEXT, TEXT_GIVEN),
    ]


def _check(name: str, schema: dict[str, Any], given: dict[str, Any]) -> Pair:
    one = a_tool("checked", schema)
    prepare = preparing(one, POLICY)
    call = Invocation(one, POLICY, prepare, given, "c", Session(), 0.0)
    is_valid = jsonschema_rs.Draft202012Validator(schema).is_valid

    async def prepared(times: int) -> None:
        for _ in range(times):
            prepare(call)

    async def bare(times: int) -> None:
        for _ in range(times):
            is_valid(given)

    return Pair(name, prepared, CHECK, bare, 4.0, ("jsonschema-rs",))
