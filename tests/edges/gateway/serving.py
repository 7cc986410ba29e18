"""A gateway to ask in a test: in this process without a network, or on a port of this machine."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

import httpx

from seawall import Annotations, Pipeline, ToolContext, tool
from seawall.edges.gateway.app import Gateway
from seawall.edges.gateway.serve import serve
from seawall.edges.gateway.settings import GatewaySettings
from seawall.edges.gateway.tokens import token_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

CALLER = "caller-token-0123456789"
APPROVER = "approver-token-0123456789"
ADMIN = "admin-token-0123456789"


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


@tool(annotations=Annotations.for_reading())
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool(annotations=Annotations.for_destroying())
def drop_table(name: str) -> str:
    """Drop a table."""
    return f"{name} is gone"


@tool(annotations=Annotations.for_reading())
async def count_to(n: int, context: ToolContext) -> str:
    """Count, and say so."""
    for number in range(1, n + 1):
        context.progress(f"at {number}", number, n)
        await asyncio.sleep(0)
    return "counted"


TOOLS = (add, drop_table, count_to)


@asynccontextmanager
async def asking(
    tools: Any = TOOLS,
    *,
    token: str | None = None,
    pipeline: Pipeline | None = None,
    **settings: Any,
) -> AsyncIterator[httpx.AsyncClient]:
    """A client of a gateway in this process."""
    gateway = Gateway(pipeline or Pipeline(tools), GatewaySettings(**settings))
    headers = {} if token is None else bearer(token)
    transport = httpx.ASGITransport(gateway)
    async with httpx.AsyncClient(
        transport=transport, base_url="http://127.0.0.1", headers=headers
    ) as client:
        yield client
        await gateway.approvals.drained()


def with_tokens(**also: Any) -> dict[str, Any]:
    """Settings of a gateway that gave out a token for each scope."""
    tokens = (
        token_of("caller", CALLER, "call")
        + token_of("approver", APPROVER, "approve")
        + token_of("admin", ADMIN, "admin")
    )
    return {"tokens": tokens, **also}


@asynccontextmanager
async def listening(pipeline: Pipeline, **settings: Any) -> AsyncIterator[str]:
    """The address of a gateway on a real port."""
    bound: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    running = asyncio.ensure_future(
        serve(pipeline, GatewaySettings(port=0, **settings), bound.set_result)
    )
    try:
        yield await bound
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running


async def call(client: httpx.AsyncClient, name: str, arguments: Any = None, **more: Any) -> Any:
    headers = more.pop("headers", None)
    body = {"tool": name, "arguments": arguments, **more}
    return await client.post("/tools/call", json=body, headers=headers)
