"""The same call has one request, and what ended unknown is told before it is asked about anew."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace
from sqlalchemy import text
from tests.orchestration.approvals.conftest import swap

from seawall import Annotations, Pipeline, Session
from seawall.contract.approval import ApprovalConflict, ApprovalStatus, Frozen
from seawall.orchestration.approvals.sharing import Sharing

if TYPE_CHECKING:
    from tests.orchestration.approvals.conftest import Place


def sharing(place: Place, **options: Any) -> Pipeline:
    pipeline = place.pipeline(**options)
    pipeline.approvals.sharing = Sharing(pipeline.approvals)
    return pipeline


async def asked(pipeline: Pipeline, **arguments: Any) -> str:
    result = await pipeline.call("delete", arguments, session=Session())
    assert result.metadata is not None, result
    return str(result.metadata["approval_id"])


async def cut_off(place: Place, **arguments: Any) -> str:
    """Let an approved call be given up while it runs."""
    begun = asyncio.Event()

    async def run(arguments: dict[str, Any], context: Any) -> Any:
        begun.set()
        await asyncio.Event().wait()

    hangs = place.tool("delete", run, annotations=Annotations.for_destroying())
    pipeline = sharing(place, tools=[hangs])
    request = await asked(pipeline, **arguments)
    await pipeline.approvals.approve(request)
    running = asyncio.ensure_future(pipeline.resume(request))
    await begun.wait()
    running.cancel()
    await asyncio.wait([running])
    return request


async def test_a_request_is_shared_while_something_may_come_of_it(place: Place) -> None:
    pipeline, other = sharing(place), sharing(place)
    first = await asked(pipeline, table="t")

    assert await asked(other, table="t") == first
    assert await asked(other, table="u") != first

    await pipeline.approvals.approve(first)
    assert await asked(other, table="t") == first
    await pipeline.resume(first)
    assert await asked(other, table="t") != first


async def test_only_the_requests_for_the_same_call_are_looked_at(place: Place) -> None:
    pipeline = sharing(place)
    asked_first = await asked(pipeline, table="t")
    for other in "uvwxyz":
        await asked(pipeline, table=other)
    given: list[Frozen] = []
    page = pipeline.approvals.store.page

    async def noted(**options: Any) -> list[Frozen]:
        found = await page(**options)
        given.extend(found)
        return found

    swap(pipeline.approvals.store, "page", noted)

    assert await asked(pipeline, table="t") == asked_first
    assert [one.id for one in given] == [asked_first]


@pytest.mark.parametrize("keys", [("11" * 32, "22" * 32 + "," + "11" * 32), (None, None)])
async def test_a_request_is_found_after_its_key_was_replaced(
    postgres: Place, monkeypatch: pytest.MonkeyPatch, keys: tuple[str | None, str | None]
) -> None:
    """With no key at all, calls are found by their tool."""

    def with_key(key: str | None) -> None:
        monkeypatch.delenv("SEAWALL_STATE_KEY", raising=False)
        if key is not None:
            monkeypatch.setenv("SEAWALL_STATE_KEY", key)

    with_key(keys[0])
    before = await asked(sharing(postgres), table="t")
    with_key(keys[1])

    assert await asked(sharing(postgres), table="t") == before
    assert await asked(sharing(postgres), table="u") != before


async def test_a_request_of_an_earlier_version_is_found(postgres: Place) -> None:
    pipeline = sharing(postgres)
    request = await asked(pipeline, table="t")
    assert postgres.states[0].database is not None
    await postgres.states[0].database.write(_without_names)

    assert await asked(pipeline, table="t") == request


async def test_a_request_that_cannot_be_read_does_not_keep_its_tool_from_being_asked_about(
    postgres: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    unreadable = await asked(sharing(postgres), table="t")
    assert postgres.states[0].database is not None
    await postgres.states[0].database.write(_without_names)
    monkeypatch.setenv("SEAWALL_STATE_KEY", "22" * 32)

    assert await asked(sharing(postgres), table="t") != unreadable


async def _without_names(connection: Any) -> None:
    await connection.execute(text("UPDATE approvals SET alike = NULL"))


async def test_without_sharing_each_call_has_its_own(memory: Place) -> None:
    pipeline = memory.pipeline()

    assert await asked(pipeline, table="t") != await asked(pipeline, table="t")


async def test_calls_made_at_once_share_one_request(place: Place) -> None:
    pipeline = sharing(place)

    ids = await asyncio.gather(*(asked(pipeline, table="t") for _ in range(5)))

    assert len(set(ids)) == 1
    assert len(await pipeline.approvals.list(None)) == 1


async def test_processes_that_ask_at_once_keep_the_same_request(place: Place) -> None:
    pipelines = [sharing(place) for _ in range(3)]

    told = await asyncio.gather(*(asked(one, table="t") for one in pipelines))

    (kept,) = await pipelines[0].approvals.list("pending")
    assert {(await pipelines[0].approvals.kept(one)).id for one in told} == {kept.id}
    assert {await asked(one, table="t") for one in pipelines} == {kept.id}


async def test_a_request_that_is_one_too_many_says_which_is_kept(place: Place) -> None:
    pipeline = place.pipeline()
    surplus, kept = [await asked(pipeline, table="t") for _ in range(2)]
    await pipeline.approvals.supersede(surplus, kept)

    assert (await pipeline.approvals.kept(surplus)).id == kept
    with pytest.raises(ApprovalConflict, match=f"{kept} is kept for the same call"):
        await pipeline.approvals.approve(surplus)
    (refusal,) = (await pipeline.resume(surplus)).results
    assert kept in refusal.text
    assert place.effects == []


async def test_what_was_answered_is_not_one_too_many(place: Place) -> None:
    pipeline = place.pipeline()
    answered, other = [await asked(pipeline, table="t") for _ in range(2)]
    await pipeline.approvals.approve(answered)

    with pytest.raises(ApprovalConflict, match="cannot be replaced by another: it is "):
        await pipeline.approvals.supersede(answered, other)
    assert (await pipeline.approvals.kept(answered)).id == answered


async def test_a_tool_that_changed_is_asked_about_anew(memory: Place) -> None:
    first = await asked(sharing(memory), table="t")
    delete, read = memory.tools
    changed = sharing(memory, tools=[replace(delete, description="Another."), read])

    assert await asked(changed, table="t") != first


async def test_a_run_that_was_cut_off_is_given_until_it_was_told(place: Place) -> None:
    pipeline = sharing(place)
    first = await cut_off(place, table="t")
    desk = pipeline.approvals
    assert await desk.status(await desk.frozen(first)) is ApprovalStatus.UNKNOWN

    assert await asked(sharing(place), table="t") == first
    assert await asked(pipeline, table="t") == first
    await desk.told(await desk.frozen(first))
    second = await asked(pipeline, table="t")

    assert second != first
    (item,) = (await desk.show(second)).approvals
    assert "ended unknown and may have taken effect" in item.reason
    assert first in item.reason


@pytest.mark.parametrize("fetched", [True, False])
async def test_it_is_told_also_when_it_was_closed_and_read(place: Place, *, fetched: bool) -> None:
    pipeline = sharing(place)
    first = await cut_off(place, table="t")
    await pipeline.resume(first)
    if fetched:
        await pipeline.outcome(first)

    assert await asked(pipeline, table="t") == first
