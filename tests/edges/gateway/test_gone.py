"""A client that goes, or whose time is over, while a request for an approval is made.

Its key then stands for what is true: nothing ran, and nothing of it can be approved any more.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from tests.edges.gateway.serving import APPROVER, CALLER, bearer, call, listening, with_tokens
from tests.waiting import until

from seawall import Annotations, ApprovalSettings, Pipeline, tool
from seawall.edges.gateway.sessions import Sessions

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

KEY = {"Idempotency-Key": "invoice-7"}


class Shop:
    """A gateway with a tool that pays after an answer, and an announcement that may hang."""

    def __init__(self, state: str | None) -> None:
        self.paid = 0
        self.told = asyncio.Event()
        self.holds = True

        @tool(annotations=Annotations.for_destroying())
        async def pay(to: str) -> str:
            """Pay."""
            self.paid += 1
            return f"paid {to}"

        settings = ApprovalSettings(on_approval=self.tell)
        self.pipeline = Pipeline([pay], state=state, approvals=settings)

    async def tell(self, batch: Any) -> None:
        self.told.set()
        if self.holds:
            await asyncio.sleep(30)

    async def hang_up(self, base: str, **more: Any) -> None:
        """Make the call, and close the connection while it is announced."""
        async with httpx.AsyncClient(base_url=base, headers=bearer(CALLER)) as client:
            work = call(client, "pay", {"to": "ada"}, **more)
            asked = asyncio.ensure_future(work)
            await self.told.wait()
            await asyncio.sleep(0.1)
            asked.cancel()
            await asyncio.gather(asked, return_exceptions=True)
        self.holds = False

    async def statuses(self) -> list[str]:
        return sorted(one.status.value for one in await self.pipeline.approvals.list(None))


@asynccontextmanager
async def opened(shop: Shop) -> AsyncIterator[tuple[str, httpx.AsyncClient]]:
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(shop.pipeline)
        settings = with_tokens()
        base = await stack.enter_async_context(listening(shop.pipeline, **settings))
        client = httpx.AsyncClient(base_url=base, headers=bearer(CALLER))
        yield base, await stack.enter_async_context(client)


@pytest.fixture(params=["memory", "sqlite"])
def shop(request: pytest.FixtureRequest, tmp_path: Path) -> Shop:
    return Shop(None if request.param == "memory" else f"sqlite:///{tmp_path}/state.db")


async def answered(client: httpx.AsyncClient) -> httpx.Response:
    """Ask under the key until its call is said to run no more."""

    async def ask() -> httpx.Response | None:
        response: httpx.Response = await call(client, "pay", {"to": "ada"}, headers=KEY)
        return None if response.status_code == 409 else response

    found: httpx.Response = await until(ask)
    return found


async def test_a_key_whose_client_went_while_its_request_was_made_asks_once_anew(
    shop: Shop,
) -> None:
    async with opened(shop) as (base, client):
        await shop.hang_up(base, headers=KEY)
        first = await answered(client)
        assert first.status_code == 202
        assert await shop.statuses() == ["pending", "withdrawn"]
        address = first.json()["approval"]
        yes = await client.post(address, json={"decision": "approve"}, headers=bearer(APPROVER))
        assert yes.status_code == 200

        async def done() -> bool:
            return (await answered(client)).status_code == 200

        await until(done)
        last = await answered(client)

    assert (last.json()["text"], shop.paid) == ("paid ada", 1)


async def test_a_client_without_a_key_that_goes_leaves_nothing_to_approve(shop: Shop) -> None:
    async with opened(shop) as (base, _):
        await shop.hang_up(base)

        async def withdrawn() -> bool:
            return await shop.statuses() == ["withdrawn"]

        await until(withdrawn)


@pytest.mark.parametrize("headers", [{}, KEY])
async def test_what_is_out_of_time_while_it_is_announced_leaves_nothing_to_approve(
    shop: Shop, headers: dict[str, str]
) -> None:
    async with opened(shop) as (_, client):
        late = await call(client, "pay", {"to": "ada"}, deadlineS=0.2, headers=headers)
        assert late.status_code == 504
        assert await shop.statuses() == ["withdrawn"]
        shop.holds = False
        again = await call(client, "pay", {"to": "ada"}, headers=headers)

        assert again.status_code == 202
        assert await shop.statuses() == ["pending", "withdrawn"]


async def test_a_key_stands_for_its_request_whoever_goes_while_that_is_written_down(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = Shop(f"sqlite:///{tmp_path}/state.db")
    shop.holds = False
    assert shop.pipeline.state is not None
    ledger: Any = shop.pipeline.state.answers
    begin, reached, let = ledger.begin, asyncio.Event(), asyncio.Event()

    async def slow(intent: Any) -> Any:
        reached.set()
        await let.wait()
        return await begin(intent)

    async with opened(shop) as (base, client):
        monkeypatch.setattr(ledger, "begin", slow)
        shop.told = reached
        await shop.hang_up(base, headers=KEY)
        await asyncio.sleep(0.1)
        let.set()
        again = await answered(client)

        assert again.status_code == 202
        assert await shop.statuses() == ["pending"]


async def test_a_key_of_a_worker_that_ended_before_it_answered_stands_for_its_request(
    tmp_path: Path,
) -> None:
    shop = Shop(f"sqlite:///{tmp_path}/state.db")
    shop.holds = False
    lost = Sessions(1).session_of("caller", "")
    async with opened(shop) as (_, client):
        waits = await shop.pipeline.call(
            "pay", {"to": "ada"}, session=lost, idempotency_key=KEY["Idempotency-Key"]
        )
        assert waits.metadata is not None
        asked = await call(client, "pay", {"to": "ada"}, headers=KEY)
        again = await call(client, "pay", {"to": "ada"}, headers=KEY)

        addresses = [asked.json()["approval"], again.json()["approval"]]
        assert addresses == [f"/approvals/{waits.metadata['approval_id']}"] * 2
        assert await shop.statuses() == ["pending"]
