"""How many requests wait is known at once, and not by looking at all of them each time."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from seawall import ApprovalStatus, MemoryApprovals, Pipeline
from seawall.contract.errors import StoreUnavailable

if TYPE_CHECKING:
    from tests.orchestration.approvals.conftest import Place


class Watched(MemoryApprovals):
    """Counts how often all are looked at; may fail, or wait in between."""

    def __init__(self) -> None:
        super().__init__()
        self.looks = 0
        self.fails = False
        self.hold: asyncio.Event | None = None

    async def page(self, *, alike: Any = None, **fields: Any) -> Any:
        if alike is not None:
            return await super().page(alike=alike, **fields)
        self.looks += 1
        if self.fails:
            raise StoreUnavailable("memory", "away")
        found = await super().page(**fields)
        if self.hold is not None:
            await self.hold.wait()
        return found


@pytest.fixture
def store(memory: Place) -> Watched:
    memory.store = Watched()
    return memory.store


async def ask(pipeline: Pipeline, number: int) -> str:
    result = await pipeline.call("delete", {"table": f"t{number}"})
    assert result.metadata is not None
    found: str = result.metadata["approval_id"]
    return found


async def test_new_requests_are_counted_without_looking_at_all(
    memory: Place, store: Watched
) -> None:
    pipeline = memory.pipeline()
    for number in range(50):
        await ask(pipeline, number)
        assert pipeline.approvals.backlog()[0] == number + 1
    assert store.looks == 1


async def test_the_oldest_is_the_oldest_of_all(memory: Place, store: Watched) -> None:
    pipeline = memory.pipeline()
    await ask(pipeline, 1)
    await memory.clock.advance(0.5)
    await ask(pipeline, 2)
    assert store.looks == 1
    assert pipeline.approvals.backlog() == (2, 0.5)
    await memory.clock.advance(10)
    assert pipeline.approvals.backlog() == (2, 10.5)


async def test_the_first_that_is_not_looked_at_is_the_oldest(memory: Place, store: Watched) -> None:
    pipeline = memory.pipeline()
    await pipeline.approvals.refresh()
    await ask(pipeline, 1)
    assert store.looks == 1
    await memory.clock.advance(3)
    assert pipeline.approvals.backlog() == (1, 3.0)


@pytest.mark.parametrize("answer", ["approve", "deny", "withdraw", "expire"])
async def test_an_answer_is_seen_at_once(memory: Place, store: Watched, answer: str) -> None:
    pipeline = memory.pipeline()
    ids = [await ask(pipeline, number) for number in range(3)]

    await getattr(pipeline.approvals, answer)(ids[1])

    assert pipeline.approvals.backlog()[0] == 2
    await ask(pipeline, 4)
    assert pipeline.approvals.backlog()[0] == 3
    assert store.looks == 2


async def test_what_other_processes_ask_is_seen_after_a_second(
    memory: Place, store: Watched
) -> None:
    one, other = memory.pipeline(), memory.pipeline()
    await ask(one, 1)
    await ask(other, 2)
    await ask(one, 3)
    assert one.approvals.backlog()[0] == 2

    await memory.clock.advance(1)
    await ask(one, 4)

    assert one.approvals.backlog()[0] == 4
    assert store.looks == 3


async def test_a_request_that_comes_during_a_look_is_counted_once(
    memory: Place, store: Watched
) -> None:
    pipeline = memory.pipeline()
    await ask(pipeline, 1)
    store.hold = asyncio.Event()
    looking = asyncio.ensure_future(pipeline.approvals.refresh())
    await asyncio.sleep(0)  # lets the look begin
    await ask(pipeline, 2)
    assert pipeline.approvals.backlog()[0] == 2

    store.hold.set()
    await looking

    assert pipeline.approvals.backlog()[0] == 2
    await pipeline.approvals.refresh()
    assert pipeline.approvals.backlog()[0] == 2


async def test_a_look_that_was_overtaken_changes_nothing(memory: Place, store: Watched) -> None:
    pipeline = memory.pipeline()
    first = await ask(pipeline, 1)
    held = store.hold = asyncio.Event()
    slow = asyncio.ensure_future(pipeline.approvals.refresh())
    await asyncio.sleep(0)  # lets the look begin
    store.hold = None
    await pipeline.approvals.deny(first)
    assert pipeline.approvals.backlog() == (0, 0.0)

    held.set()
    await slow

    assert pipeline.approvals.backlog() == (0, 0.0)


async def test_a_look_that_fails_forgets_none(memory: Place, store: Watched) -> None:
    pipeline = memory.pipeline()
    await ask(pipeline, 1)
    await ask(pipeline, 2)
    store.fails = True
    await memory.clock.advance(1)
    await ask(pipeline, 3)
    store.fails = False

    listed = await pipeline.approvals.list(ApprovalStatus.PENDING)

    assert len(listed) == 3
    assert pipeline.approvals.backlog()[0] == 3
