"""What runs after an answer: what was approved, once, if it is still what was approved."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from tests.orchestration.approvals.conftest import Place, swap
from tests.waiting import until

from seawall import (
    Action,
    AllowlistPolicy,
    Annotations,
    ApprovalStatus,
    Decision,
    HookContext,
    Pipeline,
    Policies,
    Replace,
    Rewrite,
    Risk,
    RiskPolicy,
    RunPolicy,
    Session,
    TurnOutcome,
    TurnStatus,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path


BOTH = [("read", {"q": 1}, "a"), ("delete", {"table": "t"}, "b")]
ONE = [("delete", {"table": "t"}, "b")]


def ends(outcome: TurnOutcome) -> list[str]:
    return ["ok" if one.failure is None else one.failure.reason for one in outcome.results]


def id_of(outcome: TurnOutcome) -> str:
    assert outcome.status is TurnStatus.WAITING
    assert outcome.approval is not None
    return outcome.approval.id


async def approved(pipeline: Pipeline, calls: Any = ONE, **options: Any) -> str:
    batch_id = id_of(await pipeline.turn(calls, **options))
    await pipeline.approvals.approve(batch_id, by="ada")
    return batch_id


async def test_nothing_of_a_turn_runs_before_the_answer_and_all_of_it_afterwards(
    place: Place,
) -> None:
    pipeline = place.pipeline()

    waiting = await pipeline.turn(BOTH)
    assert ends(waiting) == ["not_executed", "approval_required"]
    assert place.effects == []

    batch_id = id_of(waiting)
    await pipeline.approvals.approve(batch_id)
    assert place.effects == []
    outcome = await pipeline.resume(batch_id)

    assert [one.text for one in outcome.results] == ["read done", "delete done"]
    assert outcome.status is TurnStatus.DONE
    assert sorted(place.effects) == [("delete", {"table": "t"}), ("read", {"q": 1})]


async def test_another_process_answers_and_another_one_runs_it(place: Place) -> None:
    batch_id = id_of(await place.pipeline().turn(BOTH, session=Session("chat-1", caller="c")))

    (seen,) = await place.pipeline().approvals.list()
    await place.pipeline().approvals.approve(seen.approvals[0].id, by="ada")
    outcome = await place.pipeline().resume(batch_id)

    assert (seen.id, seen.session_id, seen.caller) == (batch_id, "chat-1", "c")
    assert ends(outcome) == ["ok", "ok"]


async def test_an_approval_is_good_for_one_run(place: Place) -> None:
    pipeline = place.pipeline()
    batch_id = await approved(pipeline)

    outcomes = [await pipeline.resume(batch_id) for _ in range(3)]

    assert [ends(one) for one in outcomes] == [["ok"], ["approval_used"], ["approval_used"]]
    assert len(place.effects) == 1


async def test_of_two_who_resume_at_once_one_runs_it(place: Place) -> None:
    batch_id = await approved(place.pipeline())
    one, other = place.pipeline(), place.pipeline()

    outcomes = await asyncio.gather(*(p.resume(batch_id) for p in (one, other, one, other)))

    assert sorted(ends(outcome)[0] for outcome in outcomes) == ["approval_used"] * 3 + ["ok"]
    assert len(place.effects) == 1


async def test_what_came_of_it_is_kept_under_the_id_until_it_is_read(place: Place) -> None:
    pipeline = place.pipeline(settings={"keep_read_s": 60})
    batch_id = await approved(pipeline, BOTH)
    ran = await pipeline.resume(batch_id)
    place.clock.step_wall(86_400 * 20)
    await pipeline.approvals.expire()

    kept = await place.pipeline().outcome(batch_id)
    place.clock.step_wall(61)
    await pipeline.approvals.expire()

    assert kept.results == ran.results
    assert ends(await pipeline.outcome(batch_id)) == ["not_found"]


async def test_before_an_answer_the_outcome_is_that_it_waits(memory: Place) -> None:
    pipeline = memory.pipeline()
    batch_id = id_of(await pipeline.turn(ONE))

    outcome = await pipeline.outcome(batch_id)

    assert (outcome.status, outcome.results) == (TurnStatus.WAITING, ())
    assert ends(await pipeline.resume(batch_id)) == ["approval_required"]
    assert memory.effects == []


async def test_one_denied_gets_the_denial_and_the_others_are_not_executed(place: Place) -> None:
    pipeline = place.pipeline()
    calls = [("delete", {"table": "t"}, "a"), ("read", {}, "b"), ("delete", {"table": "u"}, "c")]
    outcome = await pipeline.turn(calls)
    assert outcome.approval is not None
    first, second = outcome.approval.approvals
    await pipeline.approvals.approve(first.id)
    await pipeline.approvals.deny(second.id, "u is in use")

    resumed = await pipeline.resume(outcome.approval.id)

    assert ends(resumed) == ["not_executed", "not_executed", "approval_denied"]
    assert "u is in use" in resumed.results[2].render()
    assert place.effects == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"description": "Another."}, "description changed"),
        ({"input_schema": {"type": "object", "required": ["table"]}}, "schema changed"),
        ({"risk": Risk.MEDIUM}, "risk changed"),
        ({"annotations": Annotations(destructive=True)}, "annotations changed"),
    ],
)
async def test_a_tool_that_is_not_what_it_was_is_refused_and_the_approval_stays_good(
    place: Place, change: dict[str, Any], said: str
) -> None:
    batch_id = await approved(place.pipeline())
    changed = [msgspec.structs.replace(place.tools[0], **change), place.tools[1]]

    refused = await place.pipeline(changed).resume(batch_id)
    right = await place.pipeline().resume(batch_id)

    assert ends(refused) == ["approval_mismatch"]
    assert said in refused.results[0].render()
    assert (ends(right), len(place.effects)) == (["ok"], 1)


async def test_a_tool_that_is_gone_is_refused_and_so_is_all_of_its_turn(place: Place) -> None:
    pipeline = place.pipeline()
    batch_id = await approved(pipeline, BOTH)
    pipeline.registry.unregister("delete")

    outcome = await pipeline.resume(batch_id)

    assert ends(outcome) == ["not_executed", "approval_mismatch"]
    assert "no such tool" in outcome.results[1].render()
    assert place.effects == []


@pytest.mark.parametrize(
    ("given", "end"),
    [({"table": "t"}, "ok"), ({"table": "u"}, "approval_mismatch"), ({}, "approval_mismatch")],
)
async def test_arguments_that_are_given_again_have_to_be_the_approved_ones(
    place: Place, given: dict[str, Any], end: str
) -> None:
    pipeline = place.pipeline()
    batch_id = await approved(pipeline)

    assert ends(await pipeline.resume(batch_id, arguments=given)) == [end]


async def test_a_stricter_policy_applies_to_what_was_approved(place: Place) -> None:
    batch_id = await approved(place.pipeline())
    strict = place.pipeline(risk=AllowlistPolicy(allow=["read"], deny=["delete"]))

    assert ends(await strict.resume(batch_id)) == ["denied_by_policy"]
    assert place.effects == []


async def test_what_nobody_was_asked_about_is_not_run_where_it_needs_an_answer_now(
    place: Place,
) -> None:
    batch_id = await approved(place.pipeline(), BOTH)
    strict = place.pipeline(risk=RiskPolicy(ask_from=Risk.LOW))

    outcome = await strict.resume(batch_id)

    assert ends(outcome) == ["approval_mismatch", "not_executed"]
    assert "has to be asked about it" in outcome.results[0].render()


async def test_a_policy_that_raises_refuses_what_was_approved(memory: Place) -> None:
    class Raises:
        def decide(self, prepared: Any) -> Decision:
            raise RuntimeError("broken")

    batch_id = await approved(memory.pipeline())

    assert ends(await memory.pipeline(risk=Raises()).resume(batch_id)) == ["gate_failed"]


async def test_what_the_session_denied_meanwhile_is_not_run(memory: Place) -> None:
    pipeline, session = memory.pipeline(), Session("s")
    batch_id = await approved(pipeline, session=session)
    session.permissions.deny("delete", "not today")

    outcome = await pipeline.resume(batch_id)

    assert ends(outcome) == ["approval_denied"]
    assert "not today" in outcome.results[0].render()


@pytest.mark.parametrize("other", [Session("t"), Session("s", caller="mallory"), Session()])
async def test_another_session_cannot_use_an_approval(place: Place, other: Session) -> None:
    pipeline = place.pipeline()
    batch_id = await approved(pipeline, session=Session("s"))

    assert ends(await pipeline.resume(batch_id, session=other)) == ["approval_mismatch"]
    assert ends(await pipeline.resume(batch_id, session=Session("s"))) == ["ok"]


async def test_an_approval_is_worth_nothing_after_its_time(place: Place) -> None:
    pipeline = place.pipeline(settings={"expires_after_s": 10})
    batch_id = await approved(pipeline)
    place.clock.step_wall(10)

    assert ends(await pipeline.resume(batch_id)) == ["approval_expired"]
    assert place.effects == []


async def test_hooks_that_were_asked_are_not_asked_again_but_told_of_the_result(
    memory: Place,
) -> None:
    seen: list[str] = []

    class Hook:
        def before(self, context: HookContext) -> Rewrite:
            seen.append("before")
            return Rewrite({**context.arguments, "force": True})

        def after(self, context: HookContext) -> Replace:
            seen.append("after")
            return Replace(content="redacted")

    pipeline = memory.pipeline(hooks=[Hook()])
    waiting = await pipeline.turn(ONE)
    batch_id = id_of(waiting)
    assert waiting.approval is not None
    assert '"force": true' in waiting.approval.approvals[0].arguments
    await pipeline.approvals.approve(batch_id)

    outcome = await pipeline.resume(batch_id)

    assert seen == ["before", "after"]
    assert memory.effects == [("delete", {"table": "t", "force": True})]
    assert outcome.results[0].text == "redacted"


async def test_what_a_tools_own_shim_made_is_not_put_through_it_again(memory: Place) -> None:
    def wrap(arguments: Any) -> Any:
        return {"wrapped": arguments}

    tool = memory.tool("wipe", risk=Risk.HIGH, prepare_arguments=wrap)
    pipeline = memory.pipeline([tool])
    batch_id = await approved(pipeline, [("wipe", {"x": 1.0}, "a")])

    await pipeline.resume(batch_id)

    assert memory.effects == [("wipe", {"wrapped": {"x": 1.0}})]


async def test_every_attempt_of_every_resume_has_the_same_idempotency_key(memory: Place) -> None:
    keys: list[str] = []

    async def run(_: Any, context: Any) -> str:
        keys.append(context.idempotency_key)
        if len(keys) < 3:
            raise ConnectionError("reset")
        return "done"

    tool = memory.tool(
        "put", run, risk=Risk.HIGH, annotations=Annotations(idempotent=True, destructive=False)
    )
    policies = Policies(default=RunPolicy(max_retries=2))
    pipeline = memory.pipeline([tool], policies=policies)
    batch_id = await approved(pipeline, [("put", {}, "a"), ("put", {"b": 1}, "b")])

    await memory.clock.run(pipeline.resume(batch_id))

    assert len(keys) == 4
    assert len(set(keys)) == 2


async def test_the_same_call_given_twice_runs_once_and_refused_ones_stay_refused(
    place: Place,
) -> None:
    pipeline = place.pipeline()
    calls = [*ONE, *ONE, ("nothing", {}, "x"), ("read", "no", "y")]
    waiting = await pipeline.turn(calls)
    await pipeline.approvals.approve(id_of(waiting))
    pipeline.registry.register(place.tool("nothing"))

    outcome = await pipeline.resume(id_of(waiting))

    assert ends(outcome) == ["ok", "ok", "tool_not_found", "arguments_not_json"]
    assert len(place.effects) == 1


class Crash(BaseException):
    """The process is gone: nothing after this is written."""


async def crashed(place: Place, resuming: Awaitable[Any], pipeline: Pipeline) -> None:
    """End a resume as a crash does: its tool is cut off, and its store answers no more."""
    task = asyncio.ensure_future(resuming)
    await place.clock.settle()
    await until(lambda: place.effects)

    async def nothing(*_: Any, **__: Any) -> Any:
        raise ConnectionError("gone")

    swap(pipeline.approvals.store, "change", nothing)
    task.cancel()
    await asyncio.wait([task])


def hanging(place: Place, **fields: Any) -> Any:
    async def hang(_: Any, context: Any) -> str:
        if len(place.effects) > 1:
            return "done"
        await asyncio.Event().wait()
        return ""

    return place.tool("pay", hang, risk=Risk.HIGH, **fields)


@pytest.mark.parametrize(
    ("fields", "end", "effects"),
    [
        ({}, "outcome_unknown", 1),
        ({"replay": "safe"}, "ok", 2),
        ({"annotations": Annotations(idempotent=True)}, "ok", 2),
    ],
)
async def test_what_a_crash_left_in_doubt_is_run_again_only_where_that_is_safe(
    tmp_path: Any, fields: dict[str, Any], end: str, effects: int
) -> None:
    place = Place(None, f"sqlite:///{tmp_path}/state.db")
    place.tools = [hanging(place, **fields)]
    first = place.pipeline(settings={"lease_s": 5})
    batch_id = await approved(first, [("pay", {}, "a")])
    await crashed(place, first.resume(batch_id), first)

    second = place.pipeline(settings={"lease_s": 5})
    assert (await second.approvals.show(batch_id)).status is ApprovalStatus.TAKEN
    assert ends(await second.resume(batch_id)) == ["approval_used"]
    await place.advance(6)
    assert (await second.approvals.show(batch_id)).status is ApprovalStatus.UNKNOWN
    outcome = await second.resume(batch_id)

    assert (ends(outcome), len(place.effects)) == ([end], effects)
    assert ends(await second.outcome(batch_id)) == [end]
    await place.close()


async def test_a_caller_who_goes_leaves_in_doubt_what_was_begun_and_frees_the_rest(
    memory: Place,
) -> None:
    memory.tools.append(hanging(memory, execution="sequential"))
    pipeline = memory.pipeline()
    batch_id = await approved(pipeline, [("pay", {}, "a"), ("read", {}, "b")])
    task = asyncio.ensure_future(pipeline.resume(batch_id))
    await memory.clock.settle()

    task.cancel()
    await asyncio.wait([task])

    assert task.cancelled()
    assert (await pipeline.approvals.show(batch_id)).status is ApprovalStatus.UNKNOWN
    assert ends(await pipeline.resume(batch_id)) == ["outcome_unknown", "ok"]


async def test_who_lost_the_lease_begins_nothing_more(memory: Place) -> None:
    gate = asyncio.Event()

    async def slow(_: Any, context: Any) -> str:
        await gate.wait()
        return "late"

    memory.tools = [
        memory.tool("slow", slow, risk=Risk.HIGH, execution="sequential"),
        memory.tool("next"),
    ]
    stalled, other = memory.pipeline(settings={"lease_s": 5}), memory.pipeline()
    batch_id = await approved(stalled, [("slow", {}, "a"), ("next", {}, "b")])
    task = asyncio.ensure_future(stalled.resume(batch_id))
    await memory.clock.settle()
    memory.clock.step_wall(6)

    taken = await other.resume(batch_id)
    gate.set()
    late = await memory.clock.run(task)

    assert ends(taken) == ["outcome_unknown", "ok"]
    assert ends(late) == ["ok", "approval_used"]
    assert [name for name, _ in memory.effects] == ["slow", "next"]
    # Who began it knows better than who could only say that it is not known.
    assert ends(await other.outcome(batch_id)) == ["ok", "ok"]


async def test_a_sign_of_life_keeps_the_lease_of_a_long_run(memory: Place) -> None:
    async def long(_: Any, context: Any) -> str:
        await memory.clock.sleep(100)
        return "done"

    memory.tools = [memory.tool("long", long, risk=Risk.HIGH)]
    pipeline = memory.pipeline(settings={"lease_s": 6}, policies=Policies(default=RunPolicy()))
    batch_id = await approved(pipeline, [("long", {}, "a")])
    task = asyncio.ensure_future(pipeline.resume(batch_id))
    await memory.clock.advance(50)

    assert ends(await memory.pipeline().resume(batch_id)) == ["approval_used"]
    assert ends(await memory.clock.run(task)) == ["ok"]


@pytest.mark.parametrize(("step", "end"), [("begin", "gate_failed"), ("settle", "ok")])
async def test_a_store_that_fails_lets_nothing_begin_and_hides_no_result(
    memory: Place, step: str, end: str
) -> None:
    pipeline = memory.pipeline()
    batch_id = await approved(pipeline)
    change = pipeline.approvals.store.change

    async def failing(batch_id: str, wanted: Any, payloads: Any = None, noting: Any = None) -> Any:
        if wanted.name == step:
            raise ConnectionError("the store is down")
        return await change(batch_id, wanted, payloads, noting)

    swap(pipeline.approvals.store, "change", failing)

    assert ends(await memory.clock.run(pipeline.resume(batch_id))) == [end]
    assert len(memory.effects) == (end == "ok")


async def test_an_end_that_could_not_be_stored_is_said_to_be_unknown(memory: Place) -> None:
    pipeline = memory.pipeline()
    batch_id = await approved(pipeline)
    change = pipeline.approvals.store.change

    async def failing(batch_id: str, wanted: Any, payloads: Any = None, noting: Any = None) -> Any:
        if wanted.name == "settle":
            raise ConnectionError("the store is down")
        return await change(batch_id, wanted, payloads, noting)

    swap(pipeline.approvals.store, "change", failing)
    await memory.clock.run(pipeline.resume(batch_id))
    assert (await pipeline.approvals.show(batch_id)).status is ApprovalStatus.TAKEN

    await pipeline.aclose()
    await memory.clock.advance(31)

    assert ends(await memory.pipeline().outcome(batch_id)) == ["outcome_unknown"]
    assert (await pipeline.approvals.show(batch_id)).status is ApprovalStatus.UNKNOWN


@pytest.mark.parametrize("is_stored", [False, True])
@pytest.mark.parametrize("step", ["settle", "finish"])
async def test_what_happened_is_stored_by_a_store_that_was_away_for_a_moment(
    memory: Place, step: str, *, is_stored: bool
) -> None:
    pipeline = memory.pipeline()
    batch_id = await approved(pipeline)
    change = pipeline.approvals.store.change
    fails = iter([True, True, True])

    async def failing(batch_id: str, wanted: Any, payloads: Any = None, noting: Any = None) -> Any:
        is_away = wanted.name == step and next(fails, False)
        if is_stored or not is_away:
            changed = await change(batch_id, wanted, payloads, noting)
        if is_away:
            raise ConnectionError("the store is away")
        return changed

    swap(pipeline.approvals.store, "change", failing)
    outcome = await memory.clock.run(pipeline.resume(batch_id))
    await memory.clock.advance(5)

    assert ends(outcome) == ["ok"]
    assert ends(await memory.pipeline().outcome(batch_id)) == ["ok"]
    assert len(memory.effects) == 1


async def test_an_id_that_is_none_is_answered_as_a_result(memory: Place) -> None:
    pipeline = memory.pipeline()

    assert ends(await pipeline.resume("apr_nothing")) == ["not_found"]
    assert ends(await pipeline.outcome("apr_nothing.3")) == ["not_found"]


async def test_what_a_resumed_call_calls_cannot_wait(memory: Place) -> None:
    async def outer(_: Any, context: Any) -> str:
        result = await context.call_tool("delete", {})
        return str(result.failure.reason)

    memory.tools.append(memory.tool("outer", outer, risk=Risk.HIGH))
    pipeline = memory.pipeline()
    batch_id = await approved(pipeline, [("outer", {}, "a")])

    outcome = await pipeline.resume(batch_id)

    assert outcome.results[0].text == "approval_required"
    assert await pipeline.approvals.list() == ()


def test_actions_are_compared_by_strictness() -> None:
    assert sorted(Action) == [Action.ALLOW, Action.ASK, Action.DENY]


async def test_the_end_of_a_resumed_turn_and_who_let_it_run_are_audited(tmp_path: Path) -> None:
    place = Place(None, f"sqlite:///{tmp_path}/state.db")
    pipeline = place.pipeline()
    batch_id = await approved(pipeline, BOTH)

    await pipeline.resume(batch_id)
    await pipeline.aclose()

    found = [json.loads(record.text) async for record in place.states[0].audit.records()]
    await place.close()
    turns = [one["outcome"] for one in found if one["kind"] == "turn"]
    calls = {one["tool"]: one["by"] for one in found if one["kind"] == "call" and "by" in one}
    assert turns == ["waiting", "done"]
    assert calls["delete"] == "approval"


async def test_what_another_began_while_one_looked_is_in_doubt_for_the_one_who_looked(
    memory: Place,
) -> None:
    memory.tools.append(hanging(memory, execution="sequential"))
    pipeline, other = memory.pipeline(), memory.pipeline()
    batch_id = await approved(pipeline, [("pay", {}, "a"), ("read", {}, "b")])
    await between_look_and_take(memory, lambda: begun_and_left(memory, other.resume(batch_id)))

    outcome = await pipeline.resume(batch_id)

    assert ends(outcome) == ["outcome_unknown", "ok"]
    assert ends(await pipeline.outcome(batch_id)) == ["outcome_unknown", "ok"]
    assert [name for name, _ in memory.effects] == ["pay", "read"]


async def begun_and_left(place: Place, resuming: Awaitable[Any]) -> None:
    task = asyncio.ensure_future(resuming)
    await place.clock.settle()
    task.cancel()
    await asyncio.wait([task])


async def between_look_and_take(place: Place, happens: Callable[[], Awaitable[Any]]) -> None:
    """Let something happen when the next resume has made its plan and has taken nothing yet."""
    store: Any = place.store

    async def is_gone(owner: str) -> bool:
        store.is_gone = before
        await happens()
        return bool(await before(owner))

    before = swap(store, "is_gone", is_gone)


async def test_a_request_that_changes_at_every_look_is_given_up(memory: Place) -> None:
    pipeline = memory.pipeline()
    batch_id = await approved(pipeline)
    store: Any = memory.store

    async def is_gone(_: str) -> bool:
        await store.change(batch_id, lambda frozen: msgspec.structs.replace(frozen, owner="x"))
        await store.change(batch_id, lambda f: msgspec.structs.replace(f, created=f.created - 1))
        return False

    before = swap(store, "is_gone", is_gone)
    assert ends(await pipeline.resume(batch_id)) == ["approval_used"]
    swap(store, "is_gone", before)
    assert ends(await pipeline.resume(batch_id)) == ["ok"]
    assert len(memory.effects) == 1


async def test_a_refused_resume_says_of_what_ran_before_that_it_did(memory: Place) -> None:
    async def forever(_: Any, context: Any) -> None:
        await asyncio.Event().wait()

    memory.tools = [
        memory.tool("first", risk=Risk.HIGH, execution="sequential"),
        memory.tool("pay", forever, risk=Risk.HIGH, execution="sequential"),
        memory.tool("third"),
    ]
    pipeline = memory.pipeline()
    calls: Any = [("first", {}, "a"), ("first", {}, "a"), ("pay", {}, "b"), ("third", {}, "c")]
    batch_id = await approved(pipeline, calls)
    hang = asyncio.ensure_future(pipeline.resume(batch_id))
    await memory.clock.settle()
    hang.cancel()
    await asyncio.wait([hang])
    changed = [*memory.tools[:2], memory.tool("third", description="Another one.")]

    outcome = await memory.pipeline(changed).resume(batch_id)

    assert [one.call_id for one in outcome.results][2:] == ["b", "c"]
    assert ends(outcome) == ["ok", "ok", "outcome_unknown", "approval_mismatch"]
