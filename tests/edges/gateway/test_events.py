"""Who is told what, live."""

from __future__ import annotations

import httpx
import pytest
from tests.edges.gateway.serving import (
    ADMIN,
    APPROVER,
    CALLER,
    TOOLS,
    bearer,
    call,
    listening,
    with_tokens,
)
from tests.waiting import until

from seawall import ApprovalSettings, Pipeline
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
