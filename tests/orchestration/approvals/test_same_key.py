"""For one idempotency key there is one request that a person can approve."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from tests.orchestration.approvals.conftest import swap
from tests.waiting import until_idle

from seawall import ApprovalStatus, Pipeline, Session, ToolResult

if TYPE_CHECKING:
    from tests.orchestration.approvals.conftest import Place


async def wanted(pipeline: Pipeline, key: str | None = "k", **more: Any) -> str:
    """Make a call that waits; the id of its request."""
    arguments = more.pop("arguments", {"table": "t"})
    session = more.pop("session", None) or Session("chat", caller="shop")
    result: ToolResult = await pipeline.call(
        "delete", arguments, session=session, idempotency_key=key, **more
    )
    assert result.failure is not None
    assert result.failure.reason == "approval_required"
    assert result.metadata is not None
    found: str = result.metadata["approval_id"]
    return found


async def test_a_call_that_is_made_again_under_its_key_has_the_request_that_is_there(
    place: Place,
) -> None:
    ended, there = place.pipeline(), place.pipeline()

    first = await wanted(ended)
    again = [await wanted(there), await wanted(ended, arguments='{"table": "t"}')]
    await there.approvals.approve(first)
    approved = await wanted(there)

    assert {first, *again, approved} == {first}
    assert len(await there.approvals.list(None)) == 1


@pytest.mark.parametrize(
    "other",
    [
        {"key": "other"},
        {"key": None},
        {"arguments": {"table": "u"}},
        {"session": Session("chat", caller="another")},
        {"session": Session("another", caller="shop")},
        {"session": Session("chat", caller="shop", state={"tenant": "acme"})},
    ],
)
async def test_another_call_has_a_request_of_its_own(memory: Place, other: Any) -> None:
    pipeline = memory.pipeline()
    first = await wanted(pipeline)

    assert await wanted(pipeline, **other) != first


@pytest.mark.parametrize("end", ["deny", "withdraw", "expire"])
async def test_what_came_to_nothing_is_asked_about_anew(memory: Place, end: str) -> None:
    pipeline = memory.pipeline()
    first = await wanted(pipeline)

    await getattr(pipeline.approvals, end)(first)

    assert await wanted(pipeline) != first


async def test_a_request_for_what_the_tool_was_before_does_not_stand(memory: Place) -> None:
    first = await wanted(memory.pipeline())
    changed = [
        memory.tool("delete", description="Another.", annotations=memory.tools[0].annotations)
    ]

    assert await wanted(memory.pipeline(changed)) != first


async def test_whoever_goes_meanwhile_takes_back_no_request_of_an_earlier_call(
    memory: Place,
) -> None:
    pipeline = memory.pipeline()
    first = await wanted(pipeline)
    store = pipeline.approvals.store
    page, reached = store.page, asyncio.Event()

    async def slow(**options: Any) -> Any:
        found = await page(**options)
        reached.set()
        await until_idle()
        return found

    swap(store, "page", slow)
    work = asyncio.ensure_future(wanted(pipeline))
    await reached.wait()
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    swap(store, "page", page)

    (batch,) = await pipeline.approvals.list(None)
    assert (batch.id, batch.status) == (first, ApprovalStatus.PENDING)


async def test_under_its_key_a_request_that_was_there_before_is_known_to_stand(
    memory: Place,
) -> None:
    pipeline = memory.pipeline()
    first = await wanted(pipeline)
    withdrawing = pipeline.approvals.withdrawing

    withdrawing.leave(("shop", "k"), first)

    ending = withdrawing.of_key("shop", "k")
    assert ending is not None
    assert await ending == first
