"""The cases about MCP servers and about tools' names, played with real servers in real time."""

import asyncio
import json
import re
import time
from pathlib import Path
from typing import Any

import pytest
from tests.edges.mcp.conftest import (
    Connect,
    Served,
    connected_fixture,  # noqa: F401  # a fixture
    heard,
    nasty,
    notes_fixture,  # noqa: F401  # a fixture
    served_fixture,  # noqa: F401  # a fixture
)

from seawall import BreakerPolicy, FailureCode, Pipeline, Policies, Registry, RunPolicy, ToolResult
from seawall.edges.mcp.definitions import McpTool
from seawall.testing import scripted

Case = dict[str, Any]

CASES: list[Case] = json.loads((Path(__file__).parent / "cases.json").read_text("utf-8"))


def of(key: str) -> list[Any]:
    """The cases in which something is given, but for those about the proxy."""
    found = [case for case in CASES if key in case["given"] and not case["given"].get("proxy")]
    return [pytest.param(case, id=case["id"]) for case in found]


def policy(said: dict[str, Any]) -> RunPolicy:
    names = {
        "timeout_s": "timeout_s",
        "idle_timeout_s": "idle_timeout_s",
        "max_total_s": "deadline_s",
        "max_result_bytes": "max_result_bytes",
    }
    fields: dict[str, Any] = {names[key]: value for key, value in said.items() if key in names}
    if "breaker" in said:
        fields["breaker"] = BreakerPolicy(threshold=said["breaker"]["failure_threshold"])
    unknown = set(said) - set(names) - {"breaker", "max_attempts"}
    assert not unknown, f"the policy of the case has words that are not played: {unknown}"
    return RunPolicy(max_retries=said.get("max_attempts", 1) - 1, **{"breaker": None, **fields})


def outcome(result: ToolResult) -> str:
    failure = result.failure
    if failure is None:
        return "ok"
    if failure.code is FailureCode.TIMEOUT:
        return "timeout"
    if failure.code is FailureCode.CIRCUIT_OPEN:
        return "circuit_open"
    return "transport_error" if failure.reason == "transport" else "tool_error"


class Played:
    """What came of the calls of a timeline."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self.results: dict[str, ToolResult] = {}
        self.elapsed_s: dict[str, float] = {}

    async def play(self, timeline: list[dict[str, Any]], restart: Any = None) -> None:
        began = time.monotonic()
        for event in timeline:
            await asyncio.sleep(max(began + event["at"] - time.monotonic(), 0))
            if event["do"] == "restart_server":
                restart()
            elif event["do"] == "call_many":
                await asyncio.gather(*(self._call(event, f"#{n}") for n in range(event["count"])))
            else:
                assert event["do"] == "call", event
                await self._call(event, event["as"])

    async def _call(self, event: dict[str, Any], name: str) -> None:
        began = time.monotonic()
        self.results[name] = await self._pipeline.call(f"s__{event['tool']}", event.get("args", {}))
        self.elapsed_s[name] = time.monotonic() - began


EXPECTED = {
    "outcomes",
    "elapsed_max_s",
    "may_have_run",
    "wire_notifications",
    "wire_requests",
    "cancelled_id_matches",
    "request_has_progress_token",
    "image_intact_or_removed",
    "error_mentions",
    "breaker",
}


def judge(expect: dict[str, Any], played: Played, log: Path, pipeline: Pipeline) -> None:
    assert set(expect) <= EXPECTED
    for name, wanted in expect.get("outcomes", {}).items():
        assert outcome(played.results[name]) == wanted, played.results[name].render()
    for name, most in expect.get("elapsed_max_s", {}).items():
        assert played.elapsed_s[name] <= most
    for name, wanted in expect.get("may_have_run", {}).items():
        failure = played.results[name].failure
        assert failure is not None
        assert failure.may_have_run is wanted
    for name, said in expect.get("error_mentions", {}).items():
        assert said in played.results[name].render()
    for method, count in {
        **expect.get("wire_requests", {}),
        **expect.get("wire_notifications", {}),
    }.items():
        assert len(heard(log, method)) == count
    if expect.get("cancelled_id_matches"):
        (call,), (cancelled,) = heard(log, "tools/call"), heard(log, "notifications/cancelled")
        assert cancelled["params"]["requestId"] == call["id"]
    if expect.get("request_has_progress_token"):
        assert heard(log, "tools/call")[0]["params"]["_meta"]["progressToken"]
    if expect.get("image_intact_or_removed"):
        blocks = played.results["c1"].content
        assert all(getattr(block, "data", "A" * 200_000) == "A" * 200_000 for block in blocks)
    for state in expect.get("breaker", {}).values():
        assert pipeline.breakers.state("s__t") == state


@pytest.mark.parametrize("case", of("mcp_stdio"))
async def test_a_case_of_a_server_on_stdio(case: Case, connected: Connect, tmp_path: Path) -> None:
    given, log = case["given"], tmp_path / "log"
    said = given["mcp_stdio"]
    servers = await connected(
        nasty("s", tools=said["tools"], stdout_before=said.get("stdout_before", ""), log=str(log))
    )
    pipeline = Pipeline(
        servers.registry, policies=Policies(default=policy(given.get("policy", {})))
    )
    played = Played(pipeline)

    await played.play(case["call"]["timeline"])
    await asyncio.sleep(0.1)

    judge(case["expect"], played, log, pipeline)


@pytest.mark.parametrize("case", of("mcp_http"))
async def test_a_case_of_a_server_on_http(case: Case, connected: Connect, served: Served) -> None:
    def restart() -> None:
        served.stop()
        served.start()

    served.start()
    servers = await connected(served.config, protocol="handshake")
    pipeline = Pipeline(servers.registry, policies=Policies(default=policy({})))
    played = Played(pipeline)
    timeline = [
        {**event, "tool": "echo", "args": {"words": "hi"}} for event in case["call"]["timeline"]
    ]

    await played.play(timeline, restart)

    judge(case["expect"], played, served.log, pipeline)


@pytest.mark.parametrize("case", of("servers"))
async def test_a_case_of_equal_names_on_several_servers(case: Case, connected: Connect) -> None:
    given = case["given"]["servers"]
    servers = await connected(
        *(
            nasty(name, tools=dict.fromkeys(tools, f"is_error:{name}"))
            for name, tools in given.items()
        )
    )
    registry = servers.registry
    pipeline = Pipeline(registry, policies=Policies(default=policy({})))

    exported = [tool["function"]["name"] for tool in registry.declarations("openai")]
    reached = {name: (await pipeline.call(name)).text for name in registry.names()}

    assert len(set(exported)) == len(exported) == sum(map(len, given.values()))
    for tool in registry:
        assert isinstance(tool, McpTool)
        assert reached[tool.name] == tool.server


@pytest.mark.parametrize("case", of("provider_pattern"))
def test_a_case_of_names_for_a_model_api(case: Case) -> None:
    names = case["given"]["registry"]
    registry = Registry(scripted(name, name=name) for name in names)

    exported = [tool["function"]["name"] for tool in registry.declarations("openai")]

    assert all(re.fullmatch(case["given"]["provider_pattern"], name) for name in exported)
    assert len(set(exported)) == len(names)
    assert [registry.provider_names.original(name) for name in exported] == names
