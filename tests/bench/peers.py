"""Seawall's full chain against peers as they are shipped: the same tool, the same arguments.

Each is measured twice: in a tight loop, and with one turn of the event loop per call, since a loop
of awaits that never suspend hides what a library puts into tasks and timers. What peers do of
Seawall's duties differs; `does` says it.
"""

import asyncio
import functools
import json
import os
from collections.abc import Awaitable, Callable
from typing import Any

from tests.bench.by_hand import MANY, PACKAGES, ByHand
from tests.bench.measure import Case, Pair
from tests.bench.tools import FLAT_GIVEN, POLICY, a_tool, add, adding

from seawall import Annotations, Pipeline, Policies, tool

TEXT = json.dumps(FLAT_GIVEN)
DUTIES = {
    "J": "reads JSON text",
    "V": "checks arguments",
    "R": "limits the rate",
    "Y": "retries",
    "B": "breaks the circuit",
    "T": "limits the time",
    "M": "counts for Prometheus",
    "L": "logs the duration",
    "N": "makes a message of the framework",
}
"""Seawall does J V R Y B T M, keeps a trace and usage, asks by risk and makes a result."""

Call = Callable[[], Awaitable[Any]]


def looping(call: Call, before: Callable[[], None] | None = None) -> Case:
    async def run(times: int) -> None:
        if before is not None:
            before()
        for _ in range(times):
            await call()

    return run


def turning(call: Call, before: Callable[[], None] | None = None) -> Case:
    async def run(times: int) -> None:
        if before is not None:
            before()
        for _ in range(times):
            await call()
            await asyncio.sleep(0)

    return run


class _Compared:
    """Collects pairs: each peer beside ours, in the same manner of loop."""

    def __init__(self) -> None:
        tools = [
            a_tool("adding", executor=adding),
            tool(add, annotations=Annotations.for_reading()),
        ]
        call = Pipeline(tools, policies=Policies(default=POLICY)).call
        self.pairs: list[Pair] = []
        by_mapping = functools.partial(call, "adding", FLAT_GIVEN)
        by_text = functools.partial(call, "adding", TEXT)
        typed = functools.partial(call, "add", FLAT_GIVEN)
        self._by_mapping = (looping(by_mapping), turning(by_mapping))
        self._by_text = (looping(by_text), turning(by_text))
        self._typed = looping(typed)

    def add(
        self,
        name: str,
        does: str,
        packages: tuple[str, ...],
        call: Call,
        *,
        text: bool = False,
        aim: float | None = None,
        before: Callable[[], None] | None = None,
    ) -> None:
        """Add the pairs of a peer that takes a mapping, or JSON text."""
        how = "JSON text" if text else "a mapping"
        tight, turned = looping(call, before), turning(call, before)
        mine, mine_turned = self._by_text if text else self._by_mapping
        ours = [
            (f"{how}", mine, tight, aim),
            (f"{how}, a turn of the loop", mine_turned, turned, aim),
        ]
        if not text:
            ours.append((f"{how}, a typed function", self._typed, tight, None))
        self.pairs += [
            Pair(of, us, name, peer, most, packages, does) for of, us, peer, most in ours
        ]


async def pairs() -> list[Pair]:
    _quiet()
    compared = _Compared()
    _by_hand(compared)
    _pyresilience(compared)
    await _fastmcp(compared)
    _langgraph(compared)
    await _pydantic_ai(compared)
    _openai_agents(compared)
    return compared.pairs


def _quiet() -> None:
    """Peers that write a line per call by default would be slower by it: let them not."""
    os.environ.setdefault("FASTMCP_LOG_LEVEL", "WARNING")
    os.environ.setdefault("FASTMCP_CHECK_FOR_UPDATES", "off")
    os.environ.setdefault("LANGSMITH_TRACING", "false")
    os.environ.setdefault("OPENAI_AGENTS_DISABLE_TRACING", "1")


def _by_hand(compared: _Compared) -> None:
    for text in (False, True):
        stack = ByHand(add, "add")
        compared.add(
            "tenacity, pybreaker, limits, pydantic, prometheus-client by hand",
            "J V R Y B T M" if text else "V R Y B T M",
            PACKAGES,
            functools.partial(stack, TEXT if text else FLAT_GIVEN),
            text=text,
            aim=1 / 6,
            before=stack.forget,
        )


def _pyresilience(compared: _Compared) -> None:
    import pyresilience

    guarded: Any = pyresilience.resilient(
        retry=pyresilience.RetryConfig(max_attempts=3, delay=0.1),
        timeout=pyresilience.TimeoutConfig(seconds=30),
        circuit_breaker=pyresilience.CircuitBreakerConfig(failure_threshold=5),
        rate_limiter=pyresilience.RateLimiterConfig(max_calls=MANY, period=1.0),
    )(add)

    async def by_mapping() -> Any:
        return await guarded(**FLAT_GIVEN)

    async def by_text() -> Any:
        return await guarded(**json.loads(TEXT))

    name, packages = "pyresilience", ("pyresilience",)
    compared.add(name, "R Y B T", packages, by_mapping, aim=1)
    compared.add(f"{name} after `json.loads`", "J R Y B T", packages, by_text, text=True)


async def _fastmcp(compared: _Compared) -> None:
    from fastmcp import FastMCP
    from fastmcp.server.middleware.error_handling import ErrorHandlingMiddleware, RetryMiddleware
    from fastmcp.server.middleware.rate_limiting import RateLimitingMiddleware
    from fastmcp.server.middleware.timing import TimingMiddleware

    plain = FastMCP("plain")
    full = FastMCP(
        "full",
        middleware=[
            ErrorHandlingMiddleware(),
            RateLimitingMiddleware(max_requests_per_second=MANY),
            TimingMiddleware(),
            RetryMiddleware(),
        ],
    )
    for server in (plain, full):
        server.tool(add)
    name, packages = "FastMCP `call_tool`", ("fastmcp",)
    bare = functools.partial(plain.call_tool, "add", FLAT_GIVEN)
    whole = functools.partial(full.call_tool, "add", FLAT_GIVEN)
    compared.add(name, "V N", packages, bare)
    compared.add(f"{name}, four middleware", "V R Y L N", packages, whole, aim=1 / 25)


def _langgraph(compared: _Compared) -> None:
    from langchain.agents.middleware import ToolRetryMiddleware
    from langchain_core.messages import AIMessage
    from langchain_core.tools import tool as langchain_tool
    from langgraph.prebuilt import ToolNode
    from langgraph.runtime import Runtime

    retry = ToolRetryMiddleware(max_retries=2)
    node = ToolNode([langchain_tool(add)], awrap_tool_call=retry.awrap_tool_call)
    call = {"name": "add", "args": FLAT_GIVEN, "id": "call_1", "type": "tool_call"}
    state = {"messages": [AIMessage("", tool_calls=[call])]}
    # Outside a graph a node needs the runtime that a graph would hand to it.
    config: Any = {"configurable": {"__pregel_runtime": Runtime()}}
    compared.add(
        "LangGraph `ToolNode`, retry middleware",
        "V Y N",
        ("langgraph-prebuilt", "langchain", "langchain-core"),
        functools.partial(node.ainvoke, state, config),
    )


async def _pydantic_ai(compared: _Compared) -> None:
    from pydantic_ai import Agent, FunctionToolset, RunContext
    from pydantic_ai.messages import ToolCallPart
    from pydantic_ai.models.test import TestModel

    toolset: FunctionToolset[Any] = FunctionToolset(timeout=30)
    toolset.add_function(add, takes_ctx=False)
    held: list[Any] = []

    async def grab(ctx: RunContext[Any]) -> str:
        held.append(ctx.tool_manager)
        return "ok"

    # Its manager of tools exists inside a run only: a model that calls one tool hands it out.
    agent: Agent[Any, Any] = Agent(TestModel(call_tools=["grab"]), toolsets=[toolset])
    agent.tool(grab)
    await agent.run("go")
    for text in (False, True):
        part = ToolCallPart("add", TEXT if text else FLAT_GIVEN)
        compared.add(
            "pydantic-ai toolset in an agent",
            "J V T" if text else "V T",
            ("pydantic-ai-slim",),
            functools.partial(held[0].handle_call, part),
            text=text,
        )


def _openai_agents(compared: _Compared) -> None:
    from agents import function_tool
    from agents.tool import invoke_function_tool
    from agents.tool_context import ToolContext

    context: Any = ToolContext(
        context=None, tool_name="add", tool_call_id="call_1", tool_arguments=TEXT
    )
    packages = ("openai-agents",)
    one, timed = function_tool(add), function_tool(add, timeout=30)
    alone = functools.partial(one.on_invoke_tool, context, TEXT)
    run = functools.partial(
        invoke_function_tool, function_tool=timed, context=context, arguments=TEXT
    )
    name = "OpenAI Agents"
    compared.add(f"{name} `on_invoke_tool`", "J V", packages, alone, text=True)
    compared.add(f"{name}, as a run calls it, with a timeout", "J V T", packages, run, text=True)
