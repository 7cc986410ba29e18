"""Whoever is gone before they could wait leaves no request behind that a person may approve."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from tests.orchestration.approvals.conftest import Place, swap
from tests.orchestration.approvals.test_resuming import ONE, ends
from tests.waiting import until

from seawall import ApprovalConflict, ApprovalStatus, Pipeline, Session
from seawall.contract.approval import ApprovalNotFound
from seawall.contract.errors import StoreUnavailable
from seawall.orchestration.approvals.arrears import WAIT_S
from seawall.orchestration.approvals.withdrawing import LATE_S, MAX_TOLD

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from pathlib import Path

CALLER = Session("chat", caller="shop")


async def statuses(pipeline: Pipeline) -> list[ApprovalStatus]:
    return [one.status for one in await pipeline.approvals.list(None)]


def a_turn(pipeline: Pipeline) -> Coroutine[Any, Any, Any]:
    return pipeline.turn(ONE, session=CALLER)


def a_call(pipeline: Pipeline) -> Coroutine[Any, Any, Any]:
    return pipeline.call("delete", {"table": "t"}, session=CALLER, idempotency_key="k")


class Held:
    """Something that does not come to its end before it is let."""

    def __init__(self, inner: Callable[..., Any], *, after: bool = False) -> None:
        self._inner = inner
        self._after = after
        self.reached = asyncio.Event()
        self.let = asyncio.Event()

    async def __call__(self, *given: Any, **more: Any) -> Any:
        found = await self._inner(*given, **more) if self._after else None
        self.reached.set()
        await self.let.wait()
        return found if self._after else await self._inner(*given, **more)


@pytest.mark.parametrize("make", [a_turn, a_call])
@pytest.mark.parametrize("where", ["announcing", "counting", "storing", "stored, not answered"])
async def test_a_request_whose_caller_goes_while_it_is_made_is_withdrawn(
    place: Place, make: Callable[[Pipeline], Coroutine[Any, Any, Any]], where: str
) -> None:
    pipeline = place.pipeline()
    desk = pipeline.approvals
    held = Held(desk.refresh)
    if where == "announcing":
        held = Held(desk.refresh)
        desk.listen(held)
    elif where == "counting":
        swap(desk, "refresh", held)
    else:
        held = Held(desk.store.add, after="not answered" in where)
        swap(desk.store, "add", held)
    work = asyncio.ensure_future(make(pipeline))
    await held.reached.wait()

    work.cancel()
    await place.clock.settle()
    await place.clock.advance(1)
    held.let.set()
    with pytest.raises(asyncio.CancelledError):
        await work

    async def all_withdrawn() -> bool:
        await place.clock.advance(WAIT_S)
        return await statuses(pipeline) == [ApprovalStatus.WITHDRAWN]

    await until(all_withdrawn)
    (batch,) = await desk.list(None)
    with pytest.raises(ApprovalConflict):
        await desk.approve(batch.id)


async def test_a_call_out_of_time_while_its_request_is_announced_leaves_none(
    memory: Place,
) -> None:
    pipeline = memory.pipeline()
    held = Held(pipeline.approvals.refresh)
    pipeline.approvals.listen(held)
    call = pipeline.call("delete", {"table": "t"}, deadline_s=2.0)
    work = asyncio.ensure_future(call)
    await held.reached.wait()

    await memory.clock.advance(2)
    result = await work

    assert result.failure is not None
    assert (result.failure.reason, result.failure.may_have_run) == ("deadline_exceeded", False)
    assert await statuses(pipeline) == [ApprovalStatus.WITHDRAWN]


async def test_one_that_is_told_after_its_request_is_kept_and_goes_meanwhile_leaves_none(
    tmp_path: Path,
) -> None:
    place = Place(None, f"sqlite:///{tmp_path}/state.db")
    pipeline = place.pipeline()
    audit: Any = pipeline._audit
    held = Held(audit.settle)
    swap(audit, "settle", held)
    work = asyncio.ensure_future(a_call(pipeline))
    await held.reached.wait()
    assert await statuses(pipeline) == [ApprovalStatus.PENDING]

    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work

    async def withdrawn() -> bool:
        return await statuses(pipeline) == [ApprovalStatus.WITHDRAWN]

    await until(withdrawn)
    held.let.set()
    await place.close()


async def test_a_turn_that_is_cancelled_after_its_request_is_kept_leaves_none(
    memory: Place,
) -> None:
    pipeline = memory.pipeline()
    task: asyncio.Task[Any] = asyncio.ensure_future(asyncio.sleep(0))

    def cancelling(event: Any) -> None:
        if event.kind == "end":
            task.cancel()

    task = asyncio.ensure_future(pipeline.turn(ONE, on_event=cancelling))
    await memory.clock.settle()

    assert task.cancelled()
    assert await statuses(pipeline) == [ApprovalStatus.WITHDRAWN]


async def test_while_it_is_taken_back_nobody_can_approve_it(memory: Place) -> None:
    pipeline = memory.pipeline()
    desk = pipeline.approvals
    held = Held(desk.refresh)
    desk.listen(held)
    work = asyncio.ensure_future(a_call(pipeline))
    await held.reached.wait()
    store_change = Held(desk.store.change)
    swap(desk.store, "change", store_change)
    work.cancel()
    await store_change.reached.wait()
    (batch,) = await desk.list()

    with pytest.raises(ApprovalConflict, match="cannot be answered: it is being withdrawn"):
        await desk.approve(batch.id)
    with pytest.raises(ApprovalConflict, match="cannot be answered: it is being withdrawn"):
        await desk.approve(batch.approvals[0].id)

    assert not work.done()
    await memory.clock.advance(1)
    assert work.cancelled()
    store_change.let.set()
    await memory.clock.settle()
    assert await statuses(pipeline) == [ApprovalStatus.WITHDRAWN]


async def test_what_is_stored_after_it_was_given_up_is_withdrawn_when_it_comes(
    memory: Place,
) -> None:
    pipeline = memory.pipeline()
    store = pipeline.approvals.store
    add = store.add
    late: list[Any] = []

    async def unanswered(*given: Any) -> None:
        late.append(given)
        raise StoreUnavailable("there", "no answer", may_have_written=True)

    swap(store, "add", unanswered)
    assert ends(await a_turn(pipeline)) == ["gate_failed"]
    await memory.clock.advance(LATE_S / 2)
    await add(*late[0])
    assert await statuses(pipeline) == [ApprovalStatus.PENDING]
    await memory.clock.advance(WAIT_S)

    assert await statuses(pipeline) == [ApprovalStatus.WITHDRAWN]
    assert len(pipeline.approvals.arrears) == 0


async def test_what_never_comes_is_not_looked_for_for_ever(memory: Place) -> None:
    pipeline = memory.pipeline()

    async def unanswered(*_: Any) -> None:
        raise StoreUnavailable("there", "no answer", may_have_written=True)

    swap(pipeline.approvals.store, "add", unanswered)
    await a_turn(pipeline)
    await memory.clock.advance(LATE_S / 2)
    assert len(pipeline.approvals.arrears) == 1
    await memory.clock.advance(LATE_S)

    assert len(pipeline.approvals.arrears) == 0


async def gone_while_told(place: Place) -> Pipeline:
    pipeline = place.pipeline()
    held = Held(pipeline.approvals.refresh)
    pipeline.approvals.listen(held)
    work = asyncio.ensure_future(a_call(pipeline))
    await held.reached.wait()
    work.cancel()
    return pipeline


async def test_under_its_key_it_is_known_what_became_of_a_request(memory: Place) -> None:
    pipeline = await gone_while_told(memory)
    await memory.clock.settle()
    withdrawing = pipeline.approvals.withdrawing

    ending = withdrawing.of_key("shop", "k")
    assert ending is not None
    assert await ending is None
    assert withdrawing.of_key("shop", "other") is None
    withdrawing.forget_key("shop", "k")
    assert withdrawing.of_key("shop", "k") is None


async def test_one_that_was_answered_and_run_before_stands(memory: Place) -> None:
    pipeline = memory.pipeline()
    desk = pipeline.approvals
    held = Held(desk.refresh)
    desk.listen(held)
    work = asyncio.ensure_future(a_call(pipeline))
    await held.reached.wait()
    (batch,) = await desk.list()
    await desk.approve(batch.id)
    await pipeline.resume(batch.id)
    work.cancel()
    await memory.clock.settle()

    ending = desk.withdrawing.of_key("shop", "k")
    assert ending is not None
    assert await ending == batch.id


async def test_keys_are_remembered_in_bounded_number(memory: Place) -> None:
    withdrawing = memory.pipeline().approvals.withdrawing

    for number in range(MAX_TOLD + 1):
        await withdrawing.begin(f"apr_{number}", ("shop", f"{number}"))

    assert withdrawing.of_key("shop", "0") is None
    assert withdrawing.of_key("shop", "1") is not None


async def test_one_that_was_never_stored_is_not_there(memory: Place) -> None:
    pipeline = memory.pipeline()

    await pipeline.approvals.withdrawing.begin("apr_x", ("shop", "k"))
    await memory.clock.settle()

    assert "apr_x" not in pipeline.approvals.withdrawing
    with pytest.raises(ApprovalNotFound):
        await pipeline.approvals.show("apr_x")
