"""What a proxy shares with others of one Redis: limits of the same server alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.redis_servers import Server, running, until_up

from seawall import Policies, RunPolicy, Tool
from seawall.edges.mcp.proxy.options import ProxyOptions
from seawall.policy.settings import SharedSettings

if TYPE_CHECKING:
    from collections.abc import Iterator

RATE = RunPolicy(rate="1/hour")


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running("debian") as found:
        yield found


async def first_of(server: Server, prefix: dict[str, Any], **options: Any) -> bool:
    """Make one call through a proxy of its own; whether there was one left in the hour."""
    settings = SharedSettings(url=server.url, timeout_s=2, **prefix)
    policies = Policies(RATE, shared=settings)
    guard = ProxyOptions(policies=policies, **options).guard()

    async def search(arguments: dict[str, Any], context: Any) -> str:
        return "found"

    guard.pipeline.registry.register(Tool("search", "", {"type": "object"}, search))
    shared = guard.pipeline.shared
    assert shared is not None
    await shared.start()
    await until_up(shared)
    result = await guard.pipeline.call("search")
    await guard.aclose()
    assert policies.shared is settings
    return result.failure is None


@pytest.mark.parametrize(
    ("prefix", "one", "other", "apart"),
    [
        ({}, {"command": ("npx", "a")}, {"command": ("npx", "b")}, True),
        ({}, {"command": ("npx", "a")}, {"url": "http://127.0.0.1:1/mcp"}, True),
        ({}, {"command": ("npx", "a")}, {"command": ("npx", "a"), "server_name": "x"}, True),
        ({}, {"command": ("npx", "a")}, {"command": ("npx", "a")}, False),
        (
            {},
            {"command": ("npx", "a"), "server_name": "x"},
            {"url": "http://127.0.0.1:1/mcp", "server_name": "x"},
            False,
        ),
        ({"prefix": "ours"}, {"command": ("npx", "a")}, {"command": ("npx", "b")}, False),
        ({"prefix": "seawall"}, {"command": ("npx", "a")}, {"command": ("npx", "b")}, False),
    ],
)
async def test_proxies_of_two_servers_share_no_limits_unless_a_prefix_is_given(
    server: Server, prefix: dict[str, Any], one: Any, other: Any, *, apart: bool
) -> None:
    server.client.flushall()

    granted = [await first_of(server, prefix, **options) for options in (one, other, one)]

    assert granted == [True, apart, False]
    first = prefix.get("prefix", "seawall").encode()
    assert all(key.startswith(first) for key in server.client.scan_iter())
