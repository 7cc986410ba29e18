from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest
from tests.edges.gateway.serving import (
    ADMIN,
    APPROVER,
    CALLER,
    TOOLS,
    asking,
    bearer,
    call,
    drop_table,
    with_tokens,
)
from tests.waiting import until

from seawall import (
    Annotations,
    ApprovalSettings,
    Pipeline,
    Policies,
    Registry,
    RunPolicy,
    tool,
)
from seawall.contract.approval import WaitingRoom
from seawall.testing import FakeClock

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    import httpx


@pytest.fixture(params=["memory", "sqlite"])
def pipeline(request: pytest.FixtureRequest, tmp_path: Path) -> Pipeline:
    if request.param == "memory":
        return Pipeline(TOOLS, approvals=ApprovalSettings())
    return Pipeline(TOOLS, state=f"sqlite:///{tmp_path}/state.db")


@pytest.fixture
async def client(pipeline: Pipeline) -> AsyncIterator[httpx.AsyncClient]:
    async with pipeline, asking(pipeline=pipeline, **with_tokens(), token=CALLER) as client:
        yield client


async def waiting(client: httpx.AsyncClient, **more: Any) -> str:
    """Make a call that has to wait; the address of its approval."""
    response = await call(client, "drop_table", {"name": "users"}, **more)
    assert response.status_code == 202
    address: str = response.json()["approval"]
    return address


async def decided(
    client: httpx.AsyncClient, address: str, decision: str, token: str = APPROVER, **more: Any
) -> httpx.Response:
    return await client.post(address, json={"decision": decision, **more}, headers=bearer(token))


async def finished(client: httpx.AsyncClient, address: str) -> dict[str, Any]:
    async def ended() -> dict[str, Any] | None:
        found: dict[str, Any] = (await client.get(address)).json()
        return found if "results" in found else None

    found: dict[str, Any] = await until(ended)
    return found


async def test_a_call_that_needs_approval_is_202_with_the_address_of_it(
    client: httpx.AsyncClient,
) -> None:
    response = await call(client, "drop_table", {"name": "users"}, requestId="r-1")

    assert response.status_code == 202
    body = response.json()
    assert body["failure"]["reason"] == "approval_required"
    shown = await client.get(body["approval"])
    assert shown.status_code == 202
    (asked,) = shown.json()["calls"]
    assert (asked["tool"], asked["requestId"], asked["risk"]) == ("drop_table", "r-1", "high")
    assert "users" in asked["arguments"]


@pytest.mark.parametrize("where", ["memory", "sqlite"])
async def test_a_client_whose_requests_fill_its_room_is_told_so_alone(
    where: str, tmp_path: Path
) -> None:
    state = f"sqlite:///{tmp_path}/state.db" if where == "sqlite" else "memory:"
    policies = Policies(approvals=WaitingRoom(max_waiting=2))
    pipeline = Pipeline(TOOLS, policies=policies, approvals=ApprovalSettings(), state=state)
    async with pipeline, asking(pipeline=pipeline, **with_tokens(), token=CALLER) as client:
        first, second = [await waiting(client), await waiting(client)]

        refused = await call(
            client, "drop_table", {"name": "users"}, headers={"Idempotency-Key": "k"}
        )

        assert refused.status_code == 429
        assert refused.headers["Retry-After"] == "60"
        failure = refused.json()["failure"]
        assert (failure["reason"], failure["mayHaveRun"]) == ("approvals_full", False)
        assert "answered or withdrawn" in failure["guidance"]
        other = await call(client, "drop_table", {"name": "users"}, headers=bearer(ADMIN))
        assert other.status_code == 202

        await decided(client, first, "deny")
        again = await call(
            client, "drop_table", {"name": "users"}, headers={"Idempotency-Key": "k"}
        )
        assert again.status_code == 202
        listed = (await client.get("/approvals", headers=bearer(APPROVER))).json()
        assert first not in {f"/approvals/{one['id']}" for one in listed["approvals"]}
        assert second in {f"/approvals/{one['id']}" for one in listed["approvals"]}


async def test_all_of_long_arguments_is_there_for_who_may_approve(
    client: httpx.AsyncClient,
) -> None:
    long = {"name": "x" * 3_000 + "IN THE MIDDLE" + "y" * 3_000}
    address = (await call(client, "drop_table", long)).json()["approval"]

    (asked,) = (await client.get(address)).json()["calls"]
    listed = (await client.get("/approvals", headers=bearer(APPROVER))).json()
    (seen,) = (await client.get(address, headers=bearer(APPROVER))).json()["calls"]

    assert (asked["argumentsCut"], "IN THE MIDDLE" in asked["arguments"]) == (True, False)
    assert listed["approvals"][0]["calls"][0] == asked
    assert (seen["argumentsCut"], json.loads(seen["arguments"])) == (False, long)
    assert seen["digest"] == asked["digest"]


async def test_the_list_gives_a_part_and_says_how_many_are_left(client: httpx.AsyncClient) -> None:
    asked = [(await waiting(client)).rpartition("/")[2] for _ in range(5)]
    headers = bearer(APPROVER)

    first = (await client.get("/approvals?limit=2", headers=headers)).json()
    rest = await client.get(
        "/approvals", params={"after": first["after"], "limit": 500}, headers=headers
    )

    assert (len(first["approvals"]), first["more"]) == (2, 3)
    assert (rest.json()["more"], rest.json()["after"]) == (0, None)
    found = [one["id"] for one in (*first["approvals"], *rest.json()["approvals"])]
    assert sorted(found) == sorted(asked)


@pytest.mark.parametrize("query", ["limit=0", "limit=501", "limit=x", "limit=²", "after=gone"])
async def test_a_part_of_the_list_that_cannot_be_is_refused(
    client: httpx.AsyncClient, query: str
) -> None:
    refused = await client.get(f"/approvals?{query}", headers=bearer(APPROVER))

    assert refused.status_code == 400
    assert query.partition("=")[0] in refused.json()["failure"]["message"]


async def test_what_is_approved_is_run_once_and_its_result_is_at_the_address(
    client: httpx.AsyncClient,
) -> None:
    address = await waiting(client)

    approved = await decided(client, address, "approve", reason="it is old")
    found = await finished(client, address)

    assert approved.status_code == 200
    assert found["status"] == "done"
    assert [result["text"] for result in found["results"]] == ["users is gone"]
    assert found["calls"][0]["decidedBy"] == "approver"


async def test_what_is_denied_gives_the_reason_and_never_runs(client: httpx.AsyncClient) -> None:
    address = await waiting(client)

    await decided(client, address, "deny", reason="not on a Friday")
    found = await finished(client, address)

    assert found["status"] == "denied"
    assert found["results"][0]["failure"]["reason"] == "approval_denied"
    assert "not on a Friday" in found["results"][0]["text"]


@pytest.mark.parametrize("digests", [[], ["14/14:0"], ["14/14:0", "14/14:0"]])
async def test_a_decision_about_something_else_than_is_asked_decides_nothing(
    client: httpx.AsyncClient, digests: list[str]
) -> None:
    address = await waiting(client)

    refused = await decided(client, address, "approve", digests=digests)

    assert refused.status_code == 409
    assert refused.json()["failure"]["reason"] == "approval_mismatch"
    asked = (await client.get(address)).json()
    assert asked["status"] == "pending"
    digest = asked["calls"][0]["digest"]
    assert (await decided(client, address, "deny", digests=[digest])).json()["status"] == "denied"


@pytest.mark.parametrize("first", ["approve", "deny", "withdraw"])
async def test_an_answer_is_never_overwritten(client: httpx.AsyncClient, first: str) -> None:
    address = await waiting(client)
    await decided(client, address, first)
    if first == "approve":
        await finished(client, address)

    second = await decided(client, address, "deny")

    assert second.status_code == 409


async def test_what_runs_is_shown_as_taken_from_the_answer_to_the_end(pipeline: Pipeline) -> None:
    looked, begun, go_on = asyncio.Event(), asyncio.Event(), asyncio.Event()

    @tool(annotations=Annotations.for_destroying())
    async def drop_table(name: str) -> str:
        """Drop a table."""
        begun.set()
        await go_on.wait()
        return f"{name} is gone"

    pipeline.registry.register(drop_table, on_duplicate="replace")
    resume = pipeline.resume

    async def late(*arguments: Any, **options: Any) -> Any:
        await looked.wait()
        return await resume(*arguments, **options)

    async with pipeline, asking(pipeline=pipeline, **with_tokens(), token=CALLER) as client:
        pipeline.resume = late  # type: ignore[method-assign]  # what comes before it is written down
        address = await waiting(client)
        await decided(client, address, "approve")
        before = (await client.get(address)).json()["status"]
        looked.set()
        await begun.wait()
        running = (await client.get(address)).json()["status"]
        go_on.set()
        ended = (await finished(client, address))["status"]

    assert (before, running, ended) == ("taken", "taken", "done")


@pytest.mark.parametrize(("token", "status"), [(CALLER, 403), (APPROVER, 200), (ADMIN, 200)])
async def test_only_who_may_approve_lists_and_answers(
    client: httpx.AsyncClient, token: str, status: int
) -> None:
    address = await waiting(client)

    listed = await client.get("/approvals", headers=bearer(token))
    answered = await decided(client, address, "approve", token)

    assert (listed.status_code, answered.status_code) == (status, status)


async def test_on_loopback_an_agent_cannot_approve_itself() -> None:
    async with asking(pipeline=Pipeline(TOOLS, approvals=ApprovalSettings())) as client:
        address = await waiting(client)
        answered = await client.post(address, json={"decision": "approve"})
        listed = await client.get("/approvals")
        own = await client.get(address)

    assert (answered.status_code, listed.status_code, own.status_code) == (401, 401, 202)


async def test_a_client_sees_no_requests_of_others(client: httpx.AsyncClient) -> None:
    response = await call(client, "drop_table", {"name": "x"}, headers=bearer(ADMIN))

    shown = await client.get(response.json()["approval"])

    assert shown.status_code == 404


async def test_what_changed_meanwhile_is_not_run_and_says_so(
    client: httpx.AsyncClient, pipeline: Pipeline
) -> None:
    address = await waiting(client)
    registry: Registry = pipeline.registry
    registry.unregister("drop_table")

    await decided(client, address, "approve")
    found = await finished(client, address)

    assert found["status"] == "approved"
    assert found["results"][0]["failure"]["reason"] == "approval_mismatch"


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("GET", "/approvals/none", None, 404),
        ("POST", "/approvals/none", {"decision": "approve"}, 404),
        ("POST", "/approvals/none", {"decision": "perhaps"}, 400),
        ("GET", "/approvals?status=perhaps", None, 400),
        ("GET", "/approvals?status=all", None, 200),
    ],
)
async def test_what_is_not_there_or_no_answer_is_said(
    client: httpx.AsyncClient, method: str, path: str, body: Any, status: int
) -> None:
    response = await client.request(method, path, json=body, headers=bearer(ADMIN))

    assert response.status_code == status


async def test_how_many_wait_and_how_long_is_in_the_metrics(client: httpx.AsyncClient) -> None:
    await waiting(client)

    text = (await client.get("/metrics")).text

    assert "seawall_approvals_waiting 1.0" in text


async def test_results_are_read_by_whoever_made_the_call_and_not_by_whoever_approves(
    pipeline: Pipeline, client: httpx.AsyncClient
) -> None:
    address = await waiting(client)
    await decided(client, address, "approve")

    async def seen_by_approver() -> bool:
        looked = await client.get(address, headers=bearer(APPROVER))
        return bool(looked.json().get("results"))

    async def is_read() -> bool:
        frozen = await pipeline.approvals.frozen(address.rpartition("/")[2])
        return frozen.read is not None

    await until(seen_by_approver)
    assert not await is_read()
    await client.get(address)
    assert await is_read()


async def test_what_a_rate_refuses_after_its_approval_stays_approved_under_its_key(
    tmp_path: Path,
) -> None:
    clock = FakeClock()
    policies = Policies(RunPolicy(rate="1/minute"))
    state = f"sqlite:///{tmp_path}/state.db"
    pipeline = Pipeline(TOOLS, policies=policies, state=state, clock=clock)
    async with pipeline, asking(pipeline=pipeline, **with_tokens(), token=CALLER) as client:
        first = await waiting(client, headers={"Idempotency-Key": "1"})
        second = await waiting(client, headers={"Idempotency-Key": "2"})
        await decided(client, first, "approve")
        await finished(client, first)
        await decided(client, second, "approve")
        refused = await finished(client, second)
        again = await call(
            client, "drop_table", {"name": "users"}, headers={"Idempotency-Key": "2"}
        )
        await clock.advance(61)
        assert (await decided(client, second, "approve")).status_code == 200

        async def done() -> dict[str, Any] | None:
            found: dict[str, Any] = (await client.get(second)).json()
            return found if found["status"] == "done" else None

        ended = await until(done)

    assert refused["status"] == "approved"
    assert refused["results"][0]["failure"]["reason"] == "rate_limited"
    assert (again.status_code, again.json()["approval"]) == (202, second)
    assert ended["results"][0]["text"] == "users is gone"


def test_the_tool_of_these_tests_needs_approval() -> None:
    assert drop_table.effective_risk.name == "HIGH"
