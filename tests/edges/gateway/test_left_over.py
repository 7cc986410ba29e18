"""What is approved is run by a gateway, also if nobody began to. Each pipeline here has a
connection to the state of its own, as processes have."""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from tests.edges.gateway.serving import APPROVER, CALLER, bearer, call, listening, with_tokens
from tests.waiting import until

from seawall import Annotations, Pipeline, open_state, tool
from seawall.edges.gateway import left_over

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

KEY = b"k" * 32


class Tables:
    def __init__(self) -> None:
        self.dropped: list[str] = []

        @tool(annotations=Annotations.for_destroying())
        def drop(name: str) -> str:
            """Drop."""
            self.dropped.append(name)
            return f"{name} is gone"

        self.tools = [drop]


@pytest.fixture(autouse=True)
def _looks_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(left_over, "EVERY_S", 0.05)
    monkeypatch.setattr(left_over, "GRACE_S", 0.0)


@asynccontextmanager
async def process(tables: Tables, state_url: str) -> AsyncIterator[Pipeline]:
    async with open_state(state_url, key=KEY) as state, Pipeline(tables.tools, state=state) as one:
        yield one


@asynccontextmanager
async def gateway(tables: Tables, state_url: str) -> AsyncIterator[httpx.AsyncClient]:
    async with AsyncExitStack() as stack:
        state = await stack.enter_async_context(open_state(state_url, key=KEY))
        pipeline = Pipeline(tables.tools, state=state)
        base = await stack.enter_async_context(listening(pipeline, **with_tokens()))
        client = httpx.AsyncClient(base_url=base, headers=bearer(CALLER))
        yield await stack.enter_async_context(client)


async def waits(client: httpx.AsyncClient, name: str = "users") -> str:
    response = await call(client, "drop", {"name": name})
    assert response.status_code == 202
    address: str = response.json()["approval"]
    return address


def shows(client: httpx.AsyncClient, address: str, status: str) -> Callable[[], Any]:
    async def look() -> Any:
        found = (await client.get(address)).json()
        return found if found["status"] == status else None

    return look


async def test_what_was_approved_by_another_process_is_run_by_the_gateway(state_url: str) -> None:
    tables = Tables()
    async with gateway(tables, state_url) as client, process(tables, state_url) as terminal:
        address = await waits(client)
        await terminal.approvals.approve(address.rsplit("/", 1)[1], by="terminal")
        found = await until(shows(client, address, "done"))

    assert found["results"][0]["text"] == "users is gone"
    assert tables.dropped == ["users"]


async def test_what_was_approved_and_not_begun_is_run_by_the_next_gateway(state_url: str) -> None:
    tables = Tables()
    async with gateway(tables, state_url) as client:
        address = await waits(client)
    async with process(tables, state_url) as terminal:
        await terminal.approvals.approve(address.rsplit("/", 1)[1])
    async with gateway(tables, state_url) as client:
        await until(shows(client, address, "done"))

    assert tables.dropped == ["users"]


async def test_however_many_gateways_look_it_runs_once(state_url: str) -> None:
    tables = Tables()
    names = [f"t{number}" for number in range(10)]
    async with AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(gateway(tables, state_url)) for _ in range(3)]
        terminal = await stack.enter_async_context(process(tables, state_url))
        addresses = [await waits(clients[0], name) for name in names]
        for address in addresses:
            await terminal.approvals.approve(address.rsplit("/", 1)[1])
        for address in addresses:
            await until(shows(clients[1], address, "done"))

    assert sorted(tables.dropped) == names


async def test_what_no_gateway_asked_for_is_left_to_whoever_did(state_url: str) -> None:
    tables = Tables()
    async with gateway(tables, state_url) as client, process(tables, state_url) as other:
        result = await other.call("drop", {"name": "others"})
        assert result.metadata is not None
        await other.approvals.approve(result.metadata["approval_id"])
        address = await waits(client)
        await other.approvals.approve(address.rsplit("/", 1)[1])
        await until(shows(client, address, "done"))

    assert tables.dropped == ["users"]


async def test_what_is_approved_and_run_by_nobody_is_run_by_approving_it_again(
    state_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(left_over, "GRACE_S", 3_600.0)  # nothing is taken up
    tables = Tables()
    async with gateway(tables, state_url) as client, process(tables, state_url) as terminal:
        address = await waits(client)
        await terminal.approvals.approve(address.rsplit("/", 1)[1])
        again = await client.post(address, json={"decision": "approve"}, headers=bearer(APPROVER))
        await until(shows(client, address, "done"))

    assert again.status_code == 200
    assert tables.dropped == ["users"]


async def test_a_key_whose_call_waited_asks_nobody_anew(state_url: str) -> None:
    tables = Tables()

    async def keyed(client: httpx.AsyncClient, name: str) -> httpx.Response:
        key = {"Idempotency-Key": "k"}
        answer: httpx.Response = await call(client, "drop", {"name": name}, headers=key)
        return answer

    async with gateway(tables, state_url) as one, gateway(tables, state_url) as other:
        first = await keyed(one, "users")
        waiting = [await keyed(one, "users"), await keyed(other, "users")]
        misused = [await keyed(one, "x"), await keyed(other, "x")]
        address = first.json()["approval"]
        await one.post(address, json={"decision": "approve"}, headers=bearer(APPROVER))
        await until(shows(one, address, "done"))
        ended = [await keyed(one, "users"), await keyed(other, "users")]

    assert [(one.status_code, one.json()["approval"]) for one in waiting] == [(202, address)] * 2
    assert [one.status_code for one in misused] == [422, 422]
    assert [(one.status_code, one.json()["text"]) for one in ended] == [(200, "users is gone")] * 2
    assert tables.dropped == ["users"]
