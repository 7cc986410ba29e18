"""An approval is used up by what ran, and not by a refusal that ran nothing."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from tests.orchestration.approvals.conftest import Place, swap
from tests.orchestration.approvals.test_resuming import approved, ends
from tests.waiting import until

from seawall import (
    Annotations,
    ApprovalConflict,
    ApprovalStatus,
    BreakerPolicy,
    FallbackPolicy,
    Pipeline,
    Policies,
    Risk,
    RunPolicy,
    Session,
    ToolResult,
)
from seawall.contract.failure import FailureCode

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

DELETE = [("delete", {"table": "t"}, "b")]
PAIR = [("delete", {"table": "t"}, "b"), ("read", {"q": 1}, "a")]


def destroying(place: Place, run: Callable[..., Awaitable[Any]] | None = None) -> Any:
    return place.tool("delete", run, annotations=Annotations.for_destroying())


async def status(pipeline: Pipeline, batch_id: str) -> ApprovalStatus:
    return (await pipeline.approvals.show(batch_id)).status


async def limited(place: Place) -> tuple[Pipeline, str]:
    """A pipeline whose rate is used up, and an approved call."""
    pipeline = place.pipeline(policies=Policies(RunPolicy(rate="1/minute")))
    first = await approved(pipeline, DELETE)
    batch_id = await approved(pipeline, DELETE)
    assert ends(await pipeline.resume(first)) == ["ok"]
    return pipeline, batch_id


async def cancelled_at(reached: asyncio.Event, resuming: asyncio.Task[Any]) -> None:
    await reached.wait()
    resuming.cancel()
    with pytest.raises(asyncio.CancelledError):
        await resuming


async def test_a_call_that_a_rate_refuses_is_still_approved_and_runs_later(place: Place) -> None:
    pipeline, batch_id = await limited(place)

    refused = await pipeline.resume(batch_id)

    assert ends(refused) == ["rate_limited"]
    assert refused.results[0].failure is not None
    assert refused.results[0].failure.may_have_run is False
    assert await status(pipeline, batch_id) is ApprovalStatus.APPROVED
    await place.advance(61)
    assert ends(await pipeline.resume(batch_id)) == ["ok"]
    assert ends(await pipeline.resume(batch_id)) == ["approval_used"]
    assert len(place.effects) == 2


async def test_what_is_still_approved_may_be_taken_back(memory: Place) -> None:
    pipeline, batch_id = await limited(memory)
    await pipeline.resume(batch_id)

    await pipeline.approvals.withdraw(batch_id)

    assert ends(await pipeline.resume(batch_id)) == ["approval_denied"]


async def test_what_is_still_approved_ends_with_its_time(memory: Place) -> None:
    pipeline, batch_id = await limited(memory)
    await pipeline.resume(batch_id)
    memory.clock.step_wall(86_401)

    assert await pipeline.approvals.expire() == 1
    assert ends(await pipeline.resume(batch_id)) == ["approval_expired"]


async def test_what_began_is_not_taken_back(memory: Place) -> None:
    pipeline, batch_id = await limited(memory)
    await memory.clock.advance(61)
    await pipeline.resume(batch_id)

    with pytest.raises(ApprovalConflict):
        await pipeline.approvals.withdraw(batch_id)


async def test_a_call_that_meets_an_open_circuit_is_still_approved(memory: Place) -> None:
    broken = [True]

    async def run(_: Any, __: Any) -> str:
        if broken:
            broken.pop()
            raise ConnectionError("away")
        return "done"

    policies = Policies(RunPolicy(breaker=BreakerPolicy(threshold=1, cooldown_s=10)))
    pipeline = memory.pipeline([destroying(memory, run)], policies=policies)
    ids = [await approved(pipeline, DELETE) for _ in range(2)]

    assert ends(await pipeline.resume(ids[0])) == ["tool_failed"]
    assert ends(await pipeline.resume(ids[1])) == ["circuit_open"]
    assert await status(pipeline, ids[0]) is ApprovalStatus.DONE
    await memory.clock.advance(11)
    assert ends(await pipeline.resume(ids[1])) == ["ok"]


async def test_of_a_turn_only_what_was_refused_runs_again(memory: Place) -> None:
    policies = Policies(tools={"delete": RunPolicy(rate="1/minute")})
    pipeline = memory.pipeline(policies=policies)
    await pipeline.resume(await approved(pipeline, DELETE))
    batch_id = await approved(pipeline, PAIR)
    memory.effects.clear()

    assert ends(await pipeline.resume(batch_id)) == ["rate_limited", "ok"]
    await memory.clock.advance(61)
    assert ends(await pipeline.resume(batch_id)) == ["ok", "ok"]

    assert [name for name, _ in memory.effects] == ["read", "delete"]


async def test_a_tool_that_ran_uses_its_approval_up_whatever_it_says(memory: Place) -> None:
    async def run(_: Any, __: Any) -> ToolResult:
        return ToolResult.failed(
            FailureCode.RATE_LIMITED, "later", reason="rate_limited", may_have_run=False
        )

    pipeline = memory.pipeline([destroying(memory, run)])
    batch_id = await approved(pipeline, DELETE)

    assert ends(await pipeline.resume(batch_id)) == ["rate_limited"]
    assert ends(await pipeline.resume(batch_id)) == ["approval_used"]
    assert len(memory.effects) == 1


async def test_a_fallback_that_ran_uses_the_approval_up(memory: Place) -> None:
    async def fails(_: Any, __: Any) -> str:
        raise ConnectionError("after the effect")

    other = memory.tool("other", fails, risk=Risk.LOW)
    fallback = FallbackPolicy(tool="other", on=("rate_limited",))
    policies = Policies(tools={"delete": RunPolicy(rate="1/minute", fallback=fallback)})
    pipeline = memory.pipeline([destroying(memory), other], policies=policies)
    await pipeline.resume(await approved(pipeline, DELETE))
    batch_id = await approved(pipeline, DELETE)

    assert ends(await pipeline.resume(batch_id)) == ["rate_limited"]
    assert ends(await pipeline.resume(batch_id)) == ["approval_used"]
    assert [name for name, _ in memory.effects] == ["delete", "other"]


async def test_a_call_cancelled_before_its_tool_began_is_as_if_it_had_not_begun(
    place: Place,
) -> None:
    pipeline = place.pipeline()
    batch_id = await approved(pipeline, DELETE)
    change, reached = pipeline.approvals.store.change, asyncio.Event()

    async def slow(batch: str, step: Any, *more: Any, **options: Any) -> Any:
        found = await change(batch, step, *more, **options)
        if step.name == "begin":
            reached.set()
            await asyncio.sleep(0.05)
        return found

    swap(pipeline.approvals.store, "change", slow)
    resuming = asyncio.ensure_future(pipeline.resume(batch_id))
    await cancelled_at(reached, resuming)

    async def is_approved() -> bool:
        return await status(pipeline, batch_id) is ApprovalStatus.APPROVED

    await until(is_approved)
    assert place.effects == []
    assert ends(await pipeline.resume(batch_id)) == ["ok"]


async def test_a_call_cancelled_while_its_tool_runs_is_in_doubt(memory: Place) -> None:
    reached = asyncio.Event()

    async def run(_: Any, __: Any) -> str:
        reached.set()
        await asyncio.Event().wait()
        return "never"

    pipeline = memory.pipeline([destroying(memory, run)])
    batch_id = await approved(pipeline, DELETE, session=Session("chat"))
    resuming = asyncio.ensure_future(pipeline.resume(batch_id))
    await cancelled_at(reached, resuming)

    assert ends(await pipeline.resume(batch_id)) == ["outcome_unknown"]
    assert len(memory.effects) == 1


async def test_a_call_cancelled_while_its_fallback_runs_is_in_doubt(memory: Place) -> None:
    reached = asyncio.Event()

    async def run(_: Any, __: Any) -> str:
        reached.set()
        await asyncio.Event().wait()
        return "never"

    other = memory.tool("other", run, risk=Risk.LOW)
    fallback = FallbackPolicy(tool="other", on=("rate_limited",))
    policies = Policies(tools={"delete": RunPolicy(rate="1/minute", fallback=fallback)})
    pipeline = memory.pipeline([destroying(memory), other], policies=policies)
    await pipeline.resume(await approved(pipeline, DELETE))
    batch_id = await approved(pipeline, DELETE)
    resuming = asyncio.ensure_future(pipeline.resume(batch_id))
    await cancelled_at(reached, resuming)

    assert ends(await pipeline.resume(batch_id)) == ["outcome_unknown"]


async def test_how_a_call_ended_is_kept_although_its_caller_goes_while_it_is_written(
    memory: Place,
) -> None:
    pipeline = memory.pipeline()
    batch_id = await approved(pipeline, DELETE)
    change, reached = pipeline.approvals.store.change, asyncio.Event()
    held = [True]

    async def slow(batch: str, step: Any, *more: Any, **options: Any) -> Any:
        if step.name == "settle" and held:
            held.pop()
            reached.set()
            await asyncio.Event().wait()
        return await change(batch, step, *more, **options)

    swap(pipeline.approvals.store, "change", slow)
    resuming = asyncio.ensure_future(pipeline.resume(batch_id))
    await cancelled_at(reached, resuming)

    assert ends(await pipeline.resume(batch_id)) == ["ok"]
    assert len(memory.effects) == 1
