"""Who answers, when, and that no answer is ever overwritten."""

from __future__ import annotations

import asyncio
import json
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import text
from tests.orchestration.approvals.conftest import Place, swap
from tests.stores.test_database import database_of

from seawall import (
    Action,
    ApprovalBatch,
    ApprovalConflict,
    ApprovalNotFound,
    ApprovalStatus,
    MemoryApprovals,
    Pipeline,
    Risk,
    RiskPolicy,
    Session,
    open_state,
)
from seawall.contract.errors import StoreUnavailable
from seawall.layers.risk_rules import RuledPolicy
from seawall.stores.approvals import approvals_in
from seawall.stores.memory_audit import MemoryAudit

if TYPE_CHECKING:
    from pathlib import Path

TWO = [("delete", {"table": "t"}, "a"), ("delete", {"table": "u"}, "b")]


async def asked(pipeline: Pipeline, calls: Any = TWO, **options: Any) -> ApprovalBatch:
    batch = (await pipeline.turn(calls, **options)).approval
    assert batch is not None
    return batch


async def test_whoever_answers_sees_what_is_asked(place: Place) -> None:
    pipeline = place.pipeline()
    batch = await asked(pipeline, session=Session("s", caller="c"), carry={"thread": 7})

    assert await place.pipeline().approvals.show(batch.id) == batch
    first = batch.approvals[0]
    assert (first.tool, first.call_id, first.reason) == ("delete", "a", "high risk")
    assert (first.session_id, first.caller, first.batch_id) == ("s", "c", batch.id)
    assert (first.state, first.expires) == ({"thread": 7}, batch.created + 86_400)
    assert '"table": "t"' in first.arguments
    assert len(first.digest.partition(":")[2]) == 32


async def test_the_risk_that_an_operator_says_is_the_one_that_is_shown(memory: Place) -> None:
    policy = RuledPolicy(RiskPolicy(), risks={"read": Risk.HIGH})
    batch = await asked(memory.pipeline(risk=policy), [("read", {}, "a")])

    assert [(one.risk, one.reason) for one in batch.approvals] == [(Risk.HIGH, "high risk")]


async def test_an_answer_says_who_gave_it_and_when(place: Place) -> None:
    pipeline = place.pipeline()
    batch = await asked(pipeline)
    place.clock.step_wall(5)

    await pipeline.approvals.approve(batch.approvals[0].id, by="ada")
    half = await pipeline.approvals.show(batch.id)
    whole = await pipeline.approvals.approve(batch.id, by="bob")

    assert (half.status, whole.status) == (ApprovalStatus.PENDING, ApprovalStatus.APPROVED)
    said = [(one.decision, one.decided_by, one.decided) for one in whole.approvals]
    now = place.clock.wall()
    assert said == [(Action.ALLOW, "ada", now), (Action.ALLOW, "bob", now)]


@pytest.mark.parametrize("first", ["approve", "deny", "withdraw", "expire"])
@pytest.mark.parametrize("second", ["approve", "deny"])
async def test_an_answer_is_never_overwritten(place: Place, first: str, second: str) -> None:
    pipeline = place.pipeline()
    batch = await asked(pipeline)
    await getattr(pipeline.approvals, first)(batch.id)
    before = await pipeline.approvals.show(batch.id)

    for approval_id in (batch.id, batch.approvals[1].id):
        with pytest.raises(ApprovalConflict):
            await getattr(pipeline.approvals, second)(approval_id)

    assert await pipeline.approvals.show(batch.id) == before


async def test_of_two_who_answer_at_once_one_is_heard(place: Place) -> None:
    pipeline, other = place.pipeline(), place.pipeline()
    batch = await asked(pipeline)

    said = await asyncio.gather(
        pipeline.approvals.approve(batch.id, by="ada"),
        other.approvals.deny(batch.id, by="bob"),
        return_exceptions=True,
    )

    (heard,) = [one for one in said if isinstance(one, ApprovalBatch)]
    now = await pipeline.approvals.show(batch.id)
    assert (now.status, now.approvals) == (heard.status, heard.approvals)


async def test_too_late_an_answer_counts_for_nothing(place: Place) -> None:
    pipeline = place.pipeline(settings={"expires_after_s": 60})
    batch = await asked(pipeline)
    place.clock.step_wall(60)

    with pytest.raises(ApprovalConflict) as caught:
        await pipeline.approvals.approve(batch.id)

    assert (caught.value.reason, caught.value.status) == ("approval_expired", "expired")
    assert (await pipeline.approvals.show(batch.id)).status is ApprovalStatus.EXPIRED


async def test_what_is_over_is_written_down_when_somebody_looks(memory: Place) -> None:
    pipeline = memory.pipeline(settings={"expires_after_s": 30})
    await asked(pipeline)
    await memory.clock.advance(31)
    fresh = await asked(pipeline)

    assert await pipeline.approvals.expire() == 1
    assert await pipeline.approvals.expire() == 0
    assert [one.id for one in await pipeline.approvals.list()] == [fresh.id]
    assert len(await pipeline.approvals.list(status="expired")) == 1


async def test_a_withdrawn_one_cannot_be_run(place: Place) -> None:
    pipeline = place.pipeline()
    batch = await asked(pipeline)
    await pipeline.approvals.approve(batch.id)
    await pipeline.approvals.withdraw(batch.id, by="agent")

    outcome = await pipeline.resume(batch.id)

    assert outcome.reason == "approval_denied"
    assert place.effects == []


async def test_what_ran_cannot_be_withdrawn(place: Place) -> None:
    pipeline = place.pipeline()
    batch = await asked(pipeline)
    await pipeline.approvals.approve(batch.id)
    await pipeline.resume(batch.id)

    for change in (pipeline.approvals.withdraw, pipeline.approvals.expire):
        with pytest.raises(ApprovalConflict):
            await change(batch.id)


async def test_lists_are_by_status_and_session_newest_first(place: Place) -> None:
    pipeline = place.pipeline()
    batches = []
    for name in ("a", "b", "a", "b", "a"):
        batches.append((await asked(pipeline, session=Session(name))).id)
        place.clock.step_wall(1)
    await pipeline.approvals.deny(batches[0])

    found = await pipeline.approvals.list(session_id="a")
    newest = await pipeline.approvals.list(None, limit=2)

    assert [one.id for one in found] == [batches[4], batches[2]]
    assert [one.id for one in newest] == [batches[4], batches[3]]
    assert len(await pipeline.approvals.list(None)) == 5
    assert [one.id for one in await pipeline.approvals.list("denied")] == [batches[0]]


@pytest.mark.parametrize("approval_id", ["", "apr_x", "apr_x.0", "{}.7", "{}.x", "{}.1"])
async def test_an_id_that_is_none_is_not_found(memory: Place, approval_id: str) -> None:
    pipeline = memory.pipeline()
    batch = await asked(pipeline, [("delete", {}, "a"), ("read", {}, "b")])

    for change in ("show", "approve", "deny"):
        with pytest.raises(ApprovalNotFound):
            await getattr(pipeline.approvals, change)(approval_id.format(batch.id))


async def test_it_is_stored_before_it_is_announced_and_announcing_may_fail(place: Place) -> None:
    found: list[ApprovalStatus] = []

    async def announce(batch: ApprovalBatch) -> None:
        found.append((await pipeline.approvals.show(batch.id)).status)
        raise RuntimeError("no network")

    class Hook:
        def on_approval(self, batch: ApprovalBatch) -> None:
            found.append(batch.status)

    pipeline = place.pipeline(settings={"on_approval": announce}, hooks=[Hook()])
    batch = await asked(pipeline)

    assert found == [ApprovalStatus.PENDING, ApprovalStatus.PENDING]
    assert (await pipeline.approvals.show(batch.id)) == batch


async def test_an_announcement_that_hangs_holds_nothing_up(memory: Place) -> None:
    async def hang(_: ApprovalBatch) -> None:
        await memory.clock.sleep(1e6)

    pipeline = memory.pipeline(settings={"on_approval": hang})
    begun = memory.clock.now()

    await memory.clock.run(asked(pipeline))

    assert memory.clock.now() - begun == 10


async def test_every_decision_is_in_the_audit_log_with_who_and_why(memory: Place) -> None:
    audit = MemoryAudit()
    memory.store = MemoryApprovals(audit=audit)
    pipeline = memory.pipeline()
    first, second, third = [await asked(pipeline, session=Session("s")) for _ in range(3)]
    await pipeline.approvals.approve(first.approvals[0].id, by="ada", reason="looks fine")
    await memory.clock.advance(1)
    await pipeline.approvals.approve(first.id, by="eve")
    await pipeline.approvals.deny(second.id, "never", by="bob")
    await pipeline.approvals.withdraw(third.id, by="agent")
    await pipeline.resume(first.id, arguments={"a": {}})
    await pipeline.resume(first.id)

    found = [json.loads(record.text) async for record in audit.records()]
    said = [(one["outcome"], one.get("by", ""), one.get("why", "")) for one in found]
    assert said == [
        *[("asked", "", "")] * 6,
        ("approved", "ada", "looks fine"),
        ("approved", "eve", ""),
        *[("denied", "bob", "never")] * 2,
        *[("withdrawn", "agent", "")] * 2,
        *[("refused", "", "approval_mismatch")] * 2,
        *[("resumed", "", "")] * 2,
    ]
    assert {one["kind"] for one in found} == {"approval"}
    assert found[0]["about"] == first.approvals[0].id
    assert found[0]["digest"] == first.approvals[0].digest
    assert (await audit.verify()).sound


async def test_an_answer_that_cannot_be_audited_is_none(tmp_path: Path) -> None:
    place = Place(None, f"sqlite:///{tmp_path}/state.db")
    pipeline = place.pipeline()
    batch = await asked(pipeline)

    async def down(*_: Any) -> None:
        raise ConnectionError("the audit is down")

    swap(pipeline.approvals.store, "_audit", SimpleNamespace(append_in=down))

    with pytest.raises(StoreUnavailable):
        await pipeline.approvals.approve(batch.id)
    alone = await pipeline.call("delete", {})

    assert (await pipeline.approvals.show(batch.id)).status is ApprovalStatus.PENDING
    assert alone.failure is not None
    assert alone.failure.reason == "gate_failed"
    await place.close()


@pytest.mark.parametrize("approval_id", ["apr_\0", "apr_\ud800", "x" * 5_000])
async def test_an_id_that_a_database_does_not_take_is_that_of_no_request(
    place: Place, approval_id: str
) -> None:
    pipeline = place.pipeline()

    assert (await pipeline.resume(approval_id)).reason == "not_found"
    with pytest.raises(ApprovalNotFound):
        await pipeline.approvals.show(approval_id)
    with pytest.raises(ApprovalNotFound):
        await pipeline.approvals.approve(approval_id, by="ada")


async def test_however_many_old_requests_there_are_they_are_removed(state_url: str) -> None:
    async with open_state(state_url, key=bytes(32)) as state:
        database = database_of(state)
        empty = "CAST('' AS BYTEA)" if database.dialect == "postgresql" else "CAST('' AS BLOB)"
        many = (
            "INSERT INTO approvals (id, created, closed, record) WITH RECURSIVE n(i) AS"
            " (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 33000)"
            f" SELECT 'old' || i, 0, 1, {empty} FROM n"
        )
        await database.write(lambda connection: connection.execute(text(many)))

        removed = await approvals_in(state).prune(read_before=1, closed_before=1)

        assert removed == 33_000
        assert await approvals_in(state).page(closed=True, before=None, limit=1) == []
