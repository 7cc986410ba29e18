from __future__ import annotations

import json

import httpx
import pytest
from tests.edges.gateway.serving import (
    ADMIN,
    APPROVER,
    CALLER,
    TOOLS,
    add,
    asking,
    bearer,
    call,
    listening,
    with_tokens,
)
from tests.waiting import until

from seawall import Pipeline, Policies, Registry, Tool
from seawall.policy.ready_made import ready_made
from seawall.toolkit.bundle import bundled


async def test_tools_are_listed_with_what_a_caller_needs() -> None:
    async with asking() as client:
        body = (await client.get("/tools")).json()

    tools = {tool["name"]: tool for tool in body["tools"]}
    assert tools["add"]["inputSchema"]["required"] == ["a", "b"]
    assert tools["add"]["riskLevel"] == "low"
    assert (tools["add"]["needConfirm"], tools["drop_table"]["needConfirm"]) == (False, True)
    assert tools["add"]["annotations"]["destructiveHint"] is False
    assert tools["add"]["breaker"] == "closed"
    assert tools["add"]["rate"] == {"limit": "120/minute", "left": 120}
    assert body["counts"] == {
        "all": 3,
        "runnable": 2,
        "needsApproval": 1,
        "notReleased": 0,
        "blocked": 0,
    }


async def test_the_brief_view_is_a_part_of_the_full_one_and_has_the_same_counts() -> None:
    async with asking([*TOOLS, *(_numbered(number) for number in range(250))]) as client:
        full = (await client.get("/tools")).json()
        brief = (await client.get("/tools", params={"view": "brief"})).json()
        wrong = await client.get("/tools", params={"view": "short"})

    assert len(full["tools"]) == 253
    left_out = full["tools"][0].keys() - brief["tools"][0].keys()
    assert left_out >= {"inputSchema", "outputSchema", "policy", "annotations"}
    kept = brief["tools"][0].keys()
    assert brief["tools"] == [{key: tool[key] for key in kept} for tool in full["tools"]]
    assert brief["counts"] == full["counts"]
    assert wrong.status_code == 400


def _numbered(number: int) -> Tool:
    async def run(_: object, __: object) -> str:
        return "done"

    return Tool(f"tool_{number}", "One of many.", {"type": "object"}, run)


@pytest.mark.parametrize(
    ("token", "name", "may"),
    [
        (CALLER, "caller", ["call"]),
        (APPROVER, "approver", ["approve"]),
        (ADMIN, "admin", ["call", "approve", "admin"]),
        (None, "nobody", []),
    ],
)
async def test_a_client_is_told_who_it_is_and_what_it_may_do(
    token: str | None, name: str, may: list[str]
) -> None:
    async with asking(**with_tokens(), token=token) as client:
        said = (await client.get("/client")).json()

    assert said["name"] == name
    assert [scope for scope, granted in said["may"].items() if granted] == may


@pytest.mark.parametrize("address", ["/traces?limit=", "/tools?view=", "/approvals?status="])
async def test_a_parameter_that_is_there_but_empty_is_refused(address: str) -> None:
    async with asking(**with_tokens(), token=ADMIN) as client:
        assert (await client.get(address)).status_code == 400


async def test_under_the_gateway_policy_web_checks_need_approval() -> None:
    pipeline = Pipeline(bundled(), policies=Policies.load(ready_made("gateway")))
    async with asking(pipeline=pipeline) as client:
        tool = (await client.get("/tools/http_check")).json()

    assert tool["needConfirm"] is True
    assert tool["riskLevel"] == "medium"
    assert tool["state"] == "locked"


async def test_one_tool_is_shown_and_an_unknown_one_is_404_with_hints() -> None:
    async with asking() as client:
        found = await client.get("/tools/add")
        missing = await client.get("/tools/adds")

    assert found.json()["name"] == "add"
    assert missing.status_code == 404
    assert missing.json()["failure"]["hints"] == ["add"]


async def test_a_quarantined_tool_is_blocked_with_its_reason() -> None:
    registry = Registry([add])
    broken = Tool("broken", "Broken.", {"type": "strung"}, lambda *_: None)
    registry.register(broken, on_invalid="quarantine")
    async with asking(registry) as client:
        tool = (await client.get("/tools/broken")).json()

    assert tool["state"] == "blocked"
    assert "strung" in tool["quarantined"]


async def test_the_console_runs_only_what_is_released_on_it() -> None:
    async with asking(console_allow=("count_*",)) as client:
        listed = (await client.get("/tools")).json()
        refused = await client.post("/console/call", json={"tool": "add", "arguments": {}})
        run = await client.post("/console/call", json={"tool": "count_to", "arguments": {"n": 1}})
        elsewhere = await call(client, "add", {"a": 1, "b": 2})

    states = {tool["name"]: tool["state"] for tool in listed["tools"]}
    assert states == {"add": "not_released", "drop_table": "not_released", "count_to": "runnable"}
    assert (refused.status_code, run.status_code, elsewhere.status_code) == (403, 200, 200)


async def test_a_circuit_can_be_opened_seen_and_closed() -> None:
    async with asking(**with_tokens(), token=ADMIN) as client:
        opened = await client.post("/breakers/add", json={"action": "open"})
        seen = (await client.get("/breakers")).json()["breakers"]
        refused = await call(client, "add", {"a": 1, "b": 2})
        closed = await client.post("/breakers/add", json={"action": "close"})
        again = await call(client, "add", {"a": 1, "b": 2})

    assert opened.json() == {"tool": "add", "state": "open"}
    assert {"tool": "add", "state": "open"} in seen
    assert refused.status_code == 503
    assert closed.json()["state"] == "closed"
    assert again.status_code == 200


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/breakers/nothing", {"action": "open"}, 404),
        ("/breakers/add", {"action": "explode"}, 400),
        ("/breakers/add", {}, 400),
    ],
)
async def test_a_change_of_a_circuit_that_cannot_be_is_refused(
    path: str, body: dict[str, str], status: int
) -> None:
    async with asking(**with_tokens(), token=ADMIN) as client:
        response = await client.post(path, json=body)

    assert response.status_code == status


async def test_usage_and_spans_are_shown_without_arguments() -> None:
    async with asking() as client:
        await call(client, "add", {"a": 123456, "b": 654321})
        usage = await client.get("/usage")
        traces = await client.get("/traces", params={"limit": 1})

    assert usage.json()["tools"][0]["successes"] == 1
    assert traces.json()["spans"][0]["outcome"] == "success"
    counts = {"success": 1, "failed": 0, "denied": 0, "skipped": 0}
    assert traces.json()["histogram"] == counts
    assert "123456" not in usage.text + traces.text


@pytest.mark.parametrize("limit", ["-1", "x", "1.5", "1001", "9999999", "٣"])
async def test_a_limit_that_is_none_is_400(limit: str) -> None:
    async with asking() as client:
        response = await client.get("/traces", params={"limit": limit})

    assert response.status_code == 400


async def test_metrics_are_those_of_the_pipeline() -> None:
    async with asking() as client:
        await call(client, "add", {"a": 1, "b": 2})
        response = await client.get("/metrics")

    assert 'seawall_calls_total{outcome="success",tool="add"} 1.0' in response.text
    assert response.headers["content-type"].startswith("text/plain")


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/nothing", 404), ("DELETE", "/tools", 405), ("GET", "/tools/call", 405)],
)
async def test_what_is_not_there_is_said_in_the_same_shape(
    method: str, path: str, status: int
) -> None:
    async with asking() as client:
        response = await client.request(method, path)

    assert response.status_code in {status, 404}
    assert response.json()["isError"] is True


async def test_every_answer_forbids_guessing_its_type_and_keeping_it() -> None:
    async with asking() as client:
        responses = [await client.get(path) for path in ("/tools", "/", "/nothing", "/healthz")]

    assert {response.headers["x-content-type-options"] for response in responses} == {"nosniff"}
    assert {response.headers["cache-control"] for response in responses} == {"no-store"}


async def test_the_page_may_load_nothing_from_elsewhere() -> None:
    async with asking() as client:
        page = await client.get("/")
        script = await client.get("/assets/console.js")
        missing = await client.get("/assets/..%2fapp.py")

    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert page.headers["x-frame-options"] == "DENY"
    assert script.headers["content-type"].startswith("text/javascript")
    assert missing.status_code == 404
    assert "<script>" not in page.text
    assert "style=" not in page.text


async def test_spans_are_told_live() -> None:
    async with (
        listening(Pipeline(TOOLS)) as base,
        httpx.AsyncClient(base_url=base) as client,
        client.stream("GET", "/events") as events,
    ):
        lines = events.aiter_lines()
        assert await anext(lines) == "event: hello"
        await call(client, "add", {"a": 1, "b": 2}, requestId="seen")
        while not (line := await anext(lines)).startswith('data: {"requestId"'):
            pass

    assert json.loads(line.removeprefix("data: "))["requestId"] == "seen"


async def test_a_viewer_that_goes_is_forgotten() -> None:
    pipeline = Pipeline(TOOLS)
    async with listening(pipeline) as base:
        async with (
            httpx.AsyncClient(base_url=base) as client,
            client.stream("GET", "/events") as events,
        ):
            await anext(events.aiter_lines())
            assert pipeline.trace._listeners
        await until(lambda: not pipeline.trace._listeners)


async def test_the_end_does_not_wait_for_viewers() -> None:
    async with (
        httpx.AsyncClient() as client,
        listening(Pipeline(TOOLS), drain_s=30) as base,
        client.stream("GET", f"{base}/events") as events,
    ):
        await anext(events.aiter_lines())
    # Leaving `listening` has returned: had it waited for the stream, it would have hung.


async def test_admin_may_do_everything() -> None:
    async with asking(**with_tokens()) as client:
        response = await call(client, "add", {"a": 1, "b": 2}, headers=bearer(ADMIN))

    assert response.status_code == 200


async def test_an_address_with_too_many_parameters_is_no_request() -> None:
    async with asking() as client:
        answer = await client.get("/traces?" + "a=1&" * 200)
    assert answer.status_code == 400
    assert "100 parameters" in answer.json()["failure"]["message"]
