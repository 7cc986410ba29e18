"""A store that is away at each step of an approval: nothing is lost, and nothing is done twice."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from tests.orchestration.approvals.conftest import Place, swap
from tests.orchestration.approvals.test_resuming import approved, ends

from seawall import Policies, RunPolicy, Session
from seawall.contract.approval import ApprovalStatus
from seawall.contract.errors import StoreUnavailable

if TYPE_CHECKING:
    from pathlib import Path

    from seawall import Pipeline


class Away:
    """Stands before a store that is away for some tries of one step."""

    def __init__(
        self, pipeline: Pipeline, step: str, *, is_kept: bool = False, tries: int = 1
    ) -> None:
        store = pipeline.approvals.store
        self._inner: dict[str, Any] = {"add": store.add, "change": store.change}
        self._step = step
        self._is_kept = is_kept
        self._left = tries
        swap(store, "add", self._add)
        swap(store, "change", self._change)

    async def _add(self, *arguments: Any) -> None:
        await self._asked("add", *arguments, step="add")

    async def _change(self, batch_id: str, step: Any, *more: Any, **options: Any) -> Any:
        return await self._asked("change", batch_id, step, *more, step=step.name, **options)

    async def _asked(self, method: str, *arguments: Any, step: str, **options: Any) -> Any:
        fails = step == self._step and self._left > 0
        if not fails or self._is_kept:
            found = await self._inner[method](*arguments, **options)
        if fails:
            self._left -= 1
            raise StoreUnavailable("there", "away", may_have_written=self._is_kept)
        return found


async def test_a_call_that_could_not_be_begun_can_be_resumed(memory: Place) -> None:
    for is_kept in (True, False):
        memory.effects.clear()
        pipeline = memory.pipeline()
        batch_id = await approved(pipeline)
        Away(pipeline, "begin", is_kept=is_kept)

        first = await pipeline.resume(batch_id)
        await memory.clock.advance(2)
        assert (ends(first), memory.effects) == (["gate_failed"], [])
        assert first.results[0].failure is not None
        assert first.results[0].failure.may_have_run is False

        assert ends(await pipeline.resume(batch_id)) == ["ok"]
        assert len(memory.effects) == 1
        assert ends(await pipeline.resume(batch_id)) == ["approval_used"]


async def test_a_call_that_the_ledger_refused_can_be_resumed(tmp_path: Path) -> None:
    place = Place(None, f"sqlite:///{tmp_path}/state.db")
    pipeline = place.pipeline()
    batch_id = await approved(pipeline, session=Session("chat"))
    assert pipeline.state is not None
    ledger: Any = pipeline.state.ledger

    async def away(*_: Any) -> None:
        raise StoreUnavailable("there", "away", may_have_written=False)

    begin = swap(ledger, "begin", away)
    assert ends(await pipeline.resume(batch_id)) == ["ledger_unavailable"]
    swap(ledger, "begin", begin)

    assert ends(await pipeline.resume(batch_id)) == ["ok"]
    assert len(place.effects) == 1
    await place.close()


@pytest.mark.parametrize("is_kept", [True, False])
async def test_whose_taking_was_not_answered_gives_it_back(memory: Place, *, is_kept: bool) -> None:
    pipeline = memory.pipeline()
    batch_id = await approved(pipeline)
    Away(pipeline, "take", is_kept=is_kept)

    with pytest.raises(StoreUnavailable):
        await pipeline.resume(batch_id)
    await memory.clock.advance(2)

    assert ends(await pipeline.resume(batch_id)) == ["ok"]
    assert len(memory.effects) == 1


async def test_nobody_is_asked_about_a_turn_that_was_told_not_to_wait(memory: Place) -> None:
    pipeline = memory.pipeline()
    Away(pipeline, "add", is_kept=True)

    outcome = await pipeline.turn([("delete", {"table": "t"}, "a")])
    await memory.clock.advance(2)

    assert ends(outcome) == ["gate_failed"]
    assert await pipeline.approvals.list() == ()
    withdrawn = await pipeline.approvals.list(None)
    assert [one.status for one in withdrawn] == [ApprovalStatus.WITHDRAWN]


@pytest.mark.parametrize("step", ["settle", "finish"])
async def test_results_are_there_once_the_store_is_and_the_lease_is_kept_meanwhile(
    memory: Place, step: str
) -> None:
    pipeline = memory.pipeline(settings={"lease_s": 6})
    batch_id = await approved(pipeline)
    Away(pipeline, step, tries=20)

    assert ends(await pipeline.resume(batch_id)) == ["ok"]
    await memory.clock.advance(15)
    other = memory.pipeline()
    assert ends(await other.resume(batch_id)) == ["approval_used"]
    await memory.clock.advance(10)

    assert ends(await other.outcome(batch_id)) == ["ok"]
    assert len(memory.effects) == 1


@pytest.mark.parametrize("step", ["add", "take", "begin", "settle", "finish"])
async def test_a_caller_may_go_whatever_the_store_does(memory: Place, step: str) -> None:
    """At once where nothing is held, and within a second where a request is to be given back."""
    pipeline = memory.pipeline()
    batch_id = "" if step == "add" else await approved(pipeline)
    hangs = asyncio.Event()
    store = pipeline.approvals.store
    add, change = store.add, store.change

    async def hanging_add(*arguments: Any) -> None:
        await hangs.wait()
        await add(*arguments)

    async def hanging(batch_id: str, wanted: Any, *more: Any, **options: Any) -> Any:
        if wanted.name == step:
            await hangs.wait()
        return await change(batch_id, wanted, *more, **options)

    swap(store, "add", hanging_add if step == "add" else add)
    swap(store, "change", hanging)
    work = pipeline.turn([("delete", {}, "a")]) if step == "add" else pipeline.resume(batch_id)
    task = asyncio.ensure_future(work)
    await memory.clock.settle()

    task.cancel()
    await memory.clock.advance(1)
    assert task.done()
    hangs.set()
    await memory.clock.advance(2)

    assert await pipeline.approvals.list() == ()
    if step == "take":
        assert ends(await pipeline.resume(batch_id)) == ["ok"]


async def test_a_call_whose_time_was_over_before_it_began_can_be_resumed(memory: Place) -> None:
    pipeline = memory.pipeline(policies=Policies(RunPolicy(deadline_s=1.0)))
    batch_id = await approved(pipeline, [("delete", {}, "a")])
    hangs = asyncio.Event()
    change = pipeline.approvals.store.change

    async def hanging(batch_id: str, wanted: Any, *more: Any, **options: Any) -> Any:
        if wanted.name == "begin":
            await hangs.wait()
        return await change(batch_id, wanted, *more, **options)

    swap(pipeline.approvals.store, "change", hanging)
    resuming = asyncio.ensure_future(pipeline.resume(batch_id))
    await memory.clock.advance(1.5)
    hangs.set()
    await memory.clock.settle()

    assert (ends(await resuming), memory.effects) == (["deadline_exceeded"], [])
    assert ends(await pipeline.resume(batch_id)) == ["ok"]
    assert len(memory.effects) == 1
