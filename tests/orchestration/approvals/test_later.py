"""Which calls wait, and what is said of those that do and of those that cannot."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.orchestration.approvals.conftest import swap

from seawall import (
    Abort,
    Answer,
    BatchRunner,
    Defer,
    HookContext,
    Pipeline,
    Policies,
    RunPolicy,
    Session,
    TurnEvent,
    TurnStatus,
)

if TYPE_CHECKING:
    from tests.orchestration.approvals.conftest import Place

CALLS = [("read", {}, "a"), ("delete", {}, "b"), ("read", {"again": 1}, "c")]


def ends(outcome: Any) -> list[str]:
    return ["ok" if one.failure is None else one.failure.reason for one in outcome.results]


async def test_a_call_alone_is_refused_for_now_with_the_id_of_its_approval(place: Place) -> None:
    pipeline = place.pipeline()

    result = await pipeline.call("delete", {"table": "t"}, call_id="x", carry=[1])

    assert result.failure is not None
    assert (result.failure.reason, result.failure.may_have_run) == ("approval_required", False)
    assert result.metadata is not None
    batch_id = result.metadata["approval_id"]
    assert batch_id in result.text
    assert (await pipeline.approvals.approve(batch_id)).state == [1]
    outcome = await pipeline.resume(batch_id)
    assert (outcome.results[0].call_id, outcome.results[0].text) == ("x", "delete done")


async def test_a_call_waits_where_nobody_can_be_asked_now(place: Place) -> None:
    pipeline = place.pipeline(confirm=lambda prepared, decision: Answer.LATER)

    result = await pipeline.call("delete", {"table": "t"})

    assert result.metadata is not None
    batch_id = result.metadata["approval_id"]
    await pipeline.approvals.approve(batch_id)
    assert (await pipeline.resume(batch_id)).results[0].text == "delete done"


async def test_without_approvals_it_is_refused_then(memory: Place) -> None:
    pipeline = Pipeline(memory.tools, confirm=lambda prepared, decision: Answer.LATER)

    result = await pipeline.call("delete", {"table": "t"})

    assert result.failure is not None
    assert result.failure.reason == "approval_required"
    assert memory.effects == []


@pytest.mark.parametrize("execution", ["parallel", "sequential"])
async def test_whatever_the_order_nothing_of_the_turn_runs(memory: Place, execution: Any) -> None:
    pipeline = memory.pipeline()

    outcome = await pipeline.turn(CALLS, execution=execution)

    assert ends(outcome) == ["not_executed", "approval_required", "not_executed"]
    assert (memory.effects, outcome.status) == ([], TurnStatus.WAITING)


async def test_a_turn_in_a_row_still_runs_in_a_row_when_nobody_has_to_be_asked(
    memory: Place,
) -> None:
    running: list[str] = []

    async def slow(arguments: Any, _: Any) -> str:
        running.append("begin")
        await memory.clock.sleep(1)
        running.append("end")
        return "done"

    memory.tools.append(memory.tool("slow", slow, execution="sequential"))
    pipeline = memory.pipeline()

    await memory.clock.run(pipeline.turn([("slow", {"n": n}) for n in range(3)]))

    assert running == ["begin", "end"] * 3


async def test_a_hook_that_defers_makes_the_turn_wait(place: Place) -> None:
    class Careful:
        def before(self, context: HookContext) -> Defer | None:
            return Defer("look at this") if context.arguments.get("again") else None

    pipeline = place.pipeline(hooks=[Careful()])
    waiting = await pipeline.turn([CALLS[0], CALLS[2]])

    assert ends(waiting) == ["not_executed", "approval_required"]
    assert waiting.approval is not None
    (item,) = waiting.approval.approvals
    assert (item.tool, item.reason) == ("read", "look at this")
    await pipeline.approvals.approve(item.id)
    assert ends(await pipeline.resume(waiting.approval.id)) == ["ok", "ok"]


async def test_a_turn_that_a_hook_breaks_off_asks_nobody(memory: Place) -> None:
    class Breaks:
        def before(self, context: HookContext) -> Abort | None:
            return Abort("enough") if context.arguments.get("again") else None

    outcome = await memory.pipeline(hooks=[Breaks()]).turn(CALLS)

    assert (outcome.status, outcome.approval) == (TurnStatus.ABORTED, None)
    assert ends(outcome) == ["aborted"] * 3


async def test_nobody_is_asked_about_what_is_invalid_or_denied(memory: Place) -> None:
    pipeline, session = memory.pipeline(), Session()
    session.permissions.deny("delete")

    outcome = await pipeline.turn([("delete", "no json"), ("delete", {})], session=session)

    assert outcome.status is TurnStatus.DONE
    assert await pipeline.approvals.list(None) == ()


async def test_with_somebody_to_ask_at_once_nothing_waits(memory: Place) -> None:
    outcome = await memory.pipeline(confirm=lambda *_: True).turn(CALLS)

    assert ends(outcome) == ["ok"] * 3


async def test_without_approvals_a_turn_does_not_wait(memory: Place) -> None:
    outcome = await Pipeline(memory.tools, clock=memory.clock).turn(CALLS)

    assert ends(outcome) == ["ok", "approval_required", "ok"]
    assert (outcome.status, outcome.approval) == (TurnStatus.DONE, None)


async def test_a_gate_in_shadow_asks_nobody_later_either(memory: Place) -> None:
    policies = Policies(default=RunPolicy(gate_mode="shadow"))
    pipeline = memory.pipeline(policies=policies)

    assert ends(await pipeline.turn(CALLS)) == ["ok"] * 3
    assert await pipeline.approvals.list(None) == ()


async def test_what_a_running_tool_calls_cannot_wait(memory: Place) -> None:
    async def outer(_: Any, context: Any) -> str:
        result = await context.call_tool("delete", {})
        return str(result.failure.reason)

    memory.tools.append(memory.tool("outer", outer))
    pipeline = memory.pipeline()

    assert (await pipeline.call("outer")).text == "approval_required"
    outcome = await pipeline.turn([("outer", {}), ("read", {})])
    assert outcome.results[0].text == "approval_required"
    assert await pipeline.approvals.list(None) == ()


async def test_a_batch_asks_for_its_steps_before_the_first_and_cannot_wait(memory: Place) -> None:
    pipeline = memory.pipeline()
    runner = BatchRunner(pipeline)

    outcome = await runner.run([{"tool": "read"}, {"tool": "delete"}])

    assert outcome.refusal is not None
    assert (outcome.refusal.reason, memory.effects) == ("approval_required", [])
    assert await pipeline.approvals.list(None) == ()


async def test_what_cannot_be_stored_is_refused_and_nothing_of_the_turn_runs(
    memory: Place,
) -> None:
    pipeline = memory.pipeline()

    async def down(*_: Any) -> None:
        raise ConnectionError("the store is down")

    swap(pipeline.approvals.store, "add", down)

    outcome = await pipeline.turn(CALLS)
    alone = await pipeline.call("delete", {})

    assert ends(outcome) == ["not_executed", "gate_failed", "not_executed"]
    assert alone.failure is not None
    assert (alone.failure.reason, memory.effects) == ("gate_failed", [])


async def test_state_that_is_no_json_is_told_before_anything_else(memory: Place) -> None:
    pipeline = memory.pipeline()

    with pytest.raises(TypeError):
        await pipeline.turn(CALLS, carry=object())
    with pytest.raises(TypeError):
        await pipeline.call("read", {}, carry=object())


async def test_each_call_of_a_waiting_turn_has_one_start_and_one_end(memory: Place) -> None:
    events: list[tuple[str, str]] = []

    def on_event(event: TurnEvent) -> None:
        events.append((event.kind, event.call_id))

    await memory.pipeline().turn(CALLS, on_event=on_event)

    assert sorted(events) == [(kind, name) for kind in ("end", "start") for name in "abc"]


async def test_deadlines_stand_still_for_a_turn_that_waits_for_its_store(memory: Place) -> None:
    policies = Policies(default=RunPolicy(deadline_s=1))
    pipeline = memory.pipeline(policies=policies)
    add = pipeline.approvals.store.add

    async def slowly(*given: Any) -> None:
        await memory.clock.sleep(60)
        await add(*given)

    swap(pipeline.approvals.store, "add", slowly)

    outcome = await memory.clock.run(pipeline.turn(CALLS))

    assert outcome.status is TurnStatus.WAITING
