"""Who is told what, live."""

from __future__ import annotations

import asyncio
import json

import httpx
import pytest
from tests.edges.gateway.serving import (
    ADMIN,
    APPROVER,
    CALLER,
    TOOLS,
    asking,
    bearer,
    call,
    listening,
    with_tokens,
)
from tests.waiting import until

from seawall import ApprovalSettings, Pipeline
from seawall.edges.gateway.changes import GATHER_S
from seawall.edges.gateway.tokens import token_of

OTHER = "other-token-0123456789"


@pytest.mark.parametrize(
    ("token", "told"),
    [(CALLER, True), (ADMIN, True), (OTHER, False)],
    ids=["own", "admin", "other"],
)
async def test_an_approval_is_told_to_its_caller_and_to_who_may_approve(
    token: str, *, told: bool
) -> None:
    settings = with_tokens()
    settings["tokens"] += token_of("other", OTHER, "call")
    pipeline = Pipeline(TOOLS, approvals=ApprovalSettings())
    async with (
        listening(pipeline, **settings) as base,
        httpx.AsyncClient(base_url=base, headers=bearer(CALLER)) as client,
        client.stream("GET", "/events", headers=bearer(token)) as events,
    ):
        lines = events.aiter_lines()
        await anext(lines)
        asked = (await call(client, "drop_table", {"name": "users"})).json()
        approved = {"decision": "approve"}
        await client.post(asked["approval"], json=approved, headers=bearer(APPROVER))

        async def is_done() -> bool:
            answer = await client.get(asked["approval"])
            return bool(answer.json()["status"] == "done")

        await until(is_done)
        await call(client, "add", {"a": 1, "b": 2}, requestId="the-last")
        seen = ""
        async for line in lines:
            seen += line
            if "the-last" in line:
                break
    assert ("users" in seen) is told
    assert ("event: approval" in seen) is told
    assert ("event: resumed" in seen) is told


async def test_what_the_model_is_told_of_a_denial_is_told_to_who_may_see_the_request() -> None:
    pipeline = Pipeline(TOOLS, approvals=ApprovalSettings())
    async with (
        listening(pipeline, **with_tokens()) as base,
        httpx.AsyncClient(base_url=base, headers=bearer(CALLER)) as client,
        client.stream("GET", "/events", headers=bearer(APPROVER)) as events,
    ):
        lines = events.aiter_lines()
        await anext(lines)
        asked = (await call(client, "drop_table", {"name": "users"})).json()
        no = {"decision": "deny", "reason": "not on a Friday"}
        await client.post(asked["approval"], json=no, headers=bearer(APPROVER))
        async for line in lines:
            if line == "event: resumed":
                break
        told = json.loads((await anext(lines)).removeprefix("data: "))
        kept = (await client.get(asked["approval"])).json()

    assert told == {"id": kept["id"], "results": kept["results"]}
    assert "not on a Friday" in told["results"][0]["failure"]["message"]


async def _told(token: str) -> list[str]:
    """Names of the events that a client hears while a tool is called, and an approval asked for."""
    pipeline = Pipeline(TOOLS, approvals=ApprovalSettings())
    async with (
        listening(pipeline, **with_tokens()) as base,
        httpx.AsyncClient(base_url=base, headers=bearer(CALLER)) as client,
        client.stream("GET", "/events", headers=bearer(token)) as events,
    ):
        lines = events.aiter_lines()
        await anext(lines)
        await call(client, "add", {"a": 1, "b": 2})
        await asyncio.sleep(GATHER_S * 2)
        await call(client, "drop_table", {"name": "users"})
        found: list[str] = []
        async for line in lines:
            if line.startswith("event: "):
                found.append(line.removeprefix("event: "))
            if line == "event: approval":
                break
    return found


async def test_a_call_is_told_with_what_it_changed_of_its_tool() -> None:
    assert await _told(ADMIN) == ["span", "tools", "approval"]


async def test_who_may_only_approve_is_told_of_approvals_alone() -> None:
    assert await _told(APPROVER) == ["approval"]


async def test_who_may_neither_call_nor_approve_is_told_nothing() -> None:
    async with asking(**with_tokens()) as client:
        assert (await client.get("/events")).status_code == 401
