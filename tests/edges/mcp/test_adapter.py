import asyncio
import time
from typing import Any

import pytest
from mcp import Client
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from tests.edges.mcp.conftest import Connect, Served, heard, nasty
from tests.waiting import SOON_S, until

from seawall import ConfigurationError, FailureCode, Pipeline, Policies, Registry, RunPolicy, wrap
from seawall.edges import mcp
from seawall.edges.mcp.adapter import tools_of, tools_of_session
from seawall.edges.mcp.config import ServerConfig
from seawall.edges.mcp.servers import connect

POLICIES = Policies(default=RunPolicy(timeout_s=20, breaker=None))


def server() -> MCPServer:
    made = MCPServer("inside")

    @made.tool()
    async def add(a: int, b: int, ctx: Context[Any]) -> int:
        """Add two numbers."""
        await ctx.report_progress(1, 2, "half")
        return a + b

    @made.tool()
    def fail() -> str:
        """Fail."""
        raise ValueError("no luck")

    return made


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_the_tools_of_an_open_session_are_called_through_the_pipeline(mode: str) -> None:
    reports: list[Any] = []
    async with Client(server(), mode=mode) as client:
        registry = await tools_of_session(client, server="in")
        pipeline = Pipeline(registry, policies=POLICIES)

        right = await pipeline.call(
            "in__add", {"a": "2", "b": 3}, on_progress=lambda *report: reports.append(report)
        )
        wrong = await pipeline.call("in__fail")

    assert right.structured_content == {"result": 5}
    assert reports == [("half", 1.0, 2.0)]
    assert wrong.failure is not None
    assert wrong.failure.code is FailureCode.EXECUTION_FAILED
    assert "Error executing tool fail" in wrong.failure.message


async def test_tools_of_several_sessions_stand_in_one_registry() -> None:
    registry = Registry()
    async with Client(server()) as one, Client(server()) as other:
        await tools_of_session(one, server="one", into=registry)
        await tools_of_session(other.session, server="other", into=registry)

    assert set(registry.names()) == {"one__add", "one__fail", "other__add", "other__fail"}


async def test_a_call_given_up_leaves_at_once_and_ends_on_the_server(served: Served) -> None:
    served.start()
    async with Client(served.config.url or "") as client:
        registry = await tools_of_session(client)
        began = time.monotonic()

        result = await Pipeline(registry, policies=POLICIES).call("hang", timeout_s=0.3)

        assert time.monotonic() - began < SOON_S
        assert result.failure is not None
        assert result.failure.code is FailureCode.TIMEOUT
        await until(lambda: heard(served.log, "hang ended"))


async def test_a_session_that_has_ended_gives_a_failure() -> None:
    async with Client(server(), mode="legacy") as client:
        registry = await tools_of_session(client)

    result = await asyncio.wait_for(Pipeline(registry, policies=POLICIES).call("fail"), 5)

    assert result.failure is not None
    assert result.failure.reason == "transport"


async def test_wrapping_a_session_says_how_its_tools_are_had() -> None:
    async with Client(server()) as client:
        for session in (client, client.session):
            for source in (session, [session], {"one": session}):
                with pytest.raises(ConfigurationError, match="await tools_of_session"):
                    wrap(source)

    assert tools_of([]) is None


@pytest.mark.parametrize("listed", [False, True])
def test_wrapping_a_server_that_is_configured_says_how_its_tools_are_had(listed: bool) -> None:
    config = ServerConfig(name="s", command=("server",))

    with pytest.raises(ConfigurationError, match=r"\(await connect\(config\)\)\.registry"):
        wrap([config] if listed else config)


async def test_what_the_instructions_name_is_there(connected: Connect) -> None:
    servers = await connected(nasty(tools={"t": "meta"}))

    assert set(wrap(servers.registry).names()) == {"n__t"}
    assert mcp.tools_of_session is tools_of_session
    assert mcp.connect is connect


def test_other_things_of_ours_are_told_as_before() -> None:
    with pytest.raises(ConfigurationError, match="cannot make a registry of Policies"):
        wrap(Policies.default())
