"""The barrier alone: who starts when, who waits, and that nobody is left behind."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from seawall import ToolResult
from seawall.orchestration.barrier import Barrier, Ticket
from seawall.testing import FakeClock, LayerBench


class Runs:
    """Jobs that pass a gate, then run; and what they did."""

    def __init__(self, width: int = 16) -> None:
        self.clock = FakeClock()
        self.barrier = Barrier(self.clock, width)
        self.log: list[str] = []

    async def job(
        self, name: str, ticket: Ticket, *, gate_s: float = 0.0, run_s: float = 1.0
    ) -> None:
        self.log.append(f"gate {name}")
        await self.clock.sleep(gate_s)
        if await ticket.enter() is not None:
            self.log.append(f"refused {name}")
            return
        self.log.append(f"run {name}")
        try:
            await self.clock.sleep(run_s)
        finally:
            ticket.leave()
        self.log.append(f"done {name}")

    async def refused(self, name: str, ticket: Ticket) -> None:
        self.log.append(f"refused {name}")


async def test_a_job_starts_when_the_one_before_is_past_its_gates_or_at_its_end() -> None:
    runs = Runs()
    jobs = [partial(runs.job, "a", gate_s=1), partial(runs.refused, "b"), partial(runs.job, "c")]

    await runs.clock.run(runs.barrier.run(jobs))

    assert runs.log == ["gate a", "refused b", "gate c", "run a", "run c", "done a", "done c"]


async def test_places_are_handed_on_in_order() -> None:
    runs = Runs(width=1)

    await runs.clock.run(runs.barrier.run(partial(runs.job, name) for name in "abc"))

    assert runs.log[3:] == ["run a", "done a", "run b", "done b", "run c", "done c"]


async def test_no_jobs_are_done_at_once() -> None:
    await Runs().barrier.run([])


async def test_who_waits_when_the_barrier_comes_down_begins_no_more() -> None:
    runs = Runs(width=1)
    bench = LayerBench()

    async def held(name: str, ticket: Ticket) -> None:
        ticket.given_to(bench.invocation(), lambda: ToolResult.of_text("over"))
        await runs.job(name, ticket)

    task = asyncio.create_task(runs.barrier.run(partial(held, name) for name in "abc"))
    await runs.clock.advance(0.5)
    runs.barrier.bring_down()
    await runs.clock.run(task)

    assert runs.log[3:] == ["run a", "refused b", "refused c", "done a"]


async def test_a_job_that_raises_ends_them_all() -> None:
    runs = Runs()

    async def defect(ticket: Ticket) -> None:
        await ticket.enter()
        await runs.clock.sleep(0.5)
        raise LookupError("a defect")

    with pytest.raises(LookupError):
        await runs.clock.run(runs.barrier.run([partial(runs.job, "a"), defect]))

    assert runs.log == ["gate a", "run a"]
    assert len(asyncio.all_tasks()) == 1


async def test_a_job_that_raises_at_its_gates_keeps_the_next_from_starting() -> None:
    runs = Runs()

    async def defect(_: Ticket) -> None:
        raise LookupError("a defect")

    with pytest.raises(LookupError):
        await runs.clock.run(runs.barrier.run([defect, partial(runs.job, "a")]))

    assert runs.log == []


async def test_one_that_cancels_itself_leaves_the_others_running() -> None:
    runs = Runs()

    async def quits(ticket: Ticket) -> None:
        await ticket.enter()
        raise asyncio.CancelledError

    await runs.clock.run(runs.barrier.run([quits, partial(runs.job, "a")]))

    assert runs.log[-1] == "done a"
    assert not runs.barrier.stopping


async def test_who_comes_when_the_barrier_is_down_is_told_at_once() -> None:
    runs = Runs()
    ticket = Ticket(runs.barrier)
    ticket.given_to(LayerBench().invocation(), lambda: ToolResult.of_text("over"))

    runs.barrier.bring_down()
    refusal = await ticket.enter()

    assert refusal is not None
    assert refusal.text == "over"
