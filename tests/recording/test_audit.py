import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import until_idle

from seawall import (
    Abort,
    Action,
    AllowlistPolicy,
    Annotations,
    Answer,
    Decision,
    Defer,
    Deny,
    Digest,
    Hook,
    Outcome,
    Pipeline,
    Policies,
    RiskPolicy,
    Session,
    Stop,
    StoreUnavailable,
    Tool,
    ToolFailed,
    open_state,
)
from seawall.contract.audit import AuditEntry, AuditKind
from seawall.layers.risk_rules import ArgumentRule, RuledPolicy
from seawall.pipeline.recorder import Finished
from seawall.policy.settings import AuditSettings
from seawall.recording.audit import BATCH_S, MAX_BATCH, MAX_PAUSE_S, MAX_QUEUED, Audit
from seawall.testing import FakeClock, scripted


class Log:
    """A store that remembers what it was given, and may be away."""

    def __init__(self) -> None:
        self.batches: list[list[AuditEntry]] = []
        self.away = 0
        self.hold: asyncio.Event | None = None

    async def append(self, entries: Sequence[AuditEntry]) -> None:
        if self.hold is not None:
            await self.hold.wait()
        if self.away:
            self.away -= 1
            raise StoreUnavailable("there", "gone")
        self.batches.append(list(entries))

    @property
    def entries(self) -> list[AuditEntry]:
        return [entry for batch in self.batches for entry in batch]


def finished(call_id: str = "1", **fields: Any) -> Finished:
    given: dict[str, Any] = {
        "tool": "pay",
        "outcome": Outcome.SUCCESS,
        "reason": "",
        "layer": "",
        "elapsed_s": 1,
        "executed_s": 1,
        "attempts": 1,
        "session_id": "s",
        "caller": "c",
        "result": None,
    }
    return Finished(call_id=call_id, **{**given, **fields})


def end(audit: Audit, call: Finished) -> None:
    on_call = audit.for_tool("pay").on_call
    assert on_call is not None
    on_call(call)


async def test_entries_are_written_together_a_little_later() -> None:
    log, clock = Log(), FakeClock()
    audit = Audit(log, clock)
    for number in range(3):
        end(audit, finished(str(number)))

    await clock.advance(BATCH_S / 2)
    assert log.batches == []
    await clock.advance(BATCH_S / 2)
    assert [entry.call_id for entry in log.entries] == ["0", "1", "2"]
    assert len(log.batches) == 1


async def test_an_entry_says_what_was_decided_and_holds_no_arguments() -> None:
    log, clock = Log(), FakeClock()
    audit = Audit(log, clock)

    end(
        audit,
        finished(decided=("person", "allow_once"), digest=Digest(10, 9, "ab12"), batch_id="turn-1"),
    )
    await audit.aclose()

    assert log.entries == [
        AuditEntry(
            kind=AuditKind.CALL,
            at=clock.wall(),
            tool="pay",
            call_id="1",
            turn_id="turn-1",
            session="s",
            caller="c",
            outcome="success",
            by="person",
            why="allow_once",
            digest="ab12",
        )
    ]


async def test_what_is_in_a_hurry_takes_along_what_was_queued_before() -> None:
    log = Log()
    audit = Audit(log, FakeClock())
    end(audit, finished("first"))
    end(audit, finished("second", decided=("person", "deny")))
    due = audit.due

    await audit.settle()

    assert [entry.call_id for entry in log.entries] == ["first", "second"]
    assert (due, audit.due) == (True, False)
    await audit.aclose()


async def test_an_entry_is_not_written_twice_if_who_waits_for_it_is_cancelled() -> None:
    log = Log()
    log.hold = asyncio.Event()
    audit = Audit(log, FakeClock())
    end(audit, finished())
    waiting = asyncio.create_task(audit.settle())
    await until_idle()
    waiting.cancel()
    await asyncio.wait([waiting])
    log.hold.set()

    await audit.aclose()

    assert len(log.entries) == 1


async def test_while_the_store_is_away_entries_wait_and_nobody_waits_for_them() -> None:
    log, clock = Log(), FakeClock()
    log.away = 3
    audit = Audit(log, clock)
    end(audit, finished("1"))
    await audit.settle()
    end(audit, finished("2"))
    await asyncio.wait_for(audit.settle(), 1)
    assert log.entries == []

    await clock.advance(1 + 2 + 4)

    assert [entry.call_id for entry in log.entries] == ["1", "2"]
    await audit.aclose()


async def test_a_store_that_breaks_harms_nobody() -> None:
    class Broken:
        async def append(self, _: Any) -> None:
            raise ZeroDivisionError

    audit = Audit(Broken(), FakeClock())
    end(audit, finished())
    await audit.settle()
    await audit.aclose()

    assert audit.queued == 1


async def test_pauses_grow_to_a_bound() -> None:
    log, clock = Log(), FakeClock()
    log.away = 1_000_000
    audit = Audit(log, clock)
    end(audit, finished())
    await clock.advance(1_000)

    log.away = 0
    await clock.advance(MAX_PAUSE_S)

    assert len(log.entries) == 1
    await audit.aclose()


async def test_what_is_lost_is_counted_in_the_log() -> None:
    log, clock = Log(), FakeClock()
    audit = Audit(log, clock)
    for number in range(MAX_QUEUED + 7):
        end(audit, finished(str(number)))

    await clock.advance(BATCH_S)

    assert len(log.entries) == MAX_QUEUED + 1
    assert (log.entries[-1].kind, log.entries[-1].outcome) == (AuditKind.GAP, "7")
    assert max(map(len, log.batches)) <= MAX_BATCH + 1
    end(audit, finished("later"))
    await audit.aclose()
    assert log.entries[-1].call_id == "later"


@pytest.mark.parametrize(
    ("calls", "kept"), [("all", ["ok", "no"]), ("refused", ["no"]), ("off", [])]
)
async def test_the_policy_says_which_calls_are_kept(calls: str, kept: list[str]) -> None:
    log = Log()
    audit = Audit(log, FakeClock(), calls=calls)
    recorder = audit.for_tool("pay")
    if recorder.on_call is not None:
        recorder.on_call(finished("ok"))
        recorder.on_call(finished("no", outcome=Outcome.DENIED))
    await audit.aclose()

    assert [entry.call_id for entry in log.entries] == kept


async def test_with_wait_each_call_is_written_before_it_is_answered() -> None:
    async with open_state() as state:
        policies = Policies(audit=AuditSettings(wait=True))
        pipeline = Pipeline(
            [scripted(name="look")], state=state, policies=policies, clock=FakeClock()
        )

        await pipeline.call("look")

        assert len(await entries_of(state)) == 1


async def entries_of(state: Any, kind: str = "") -> list[dict[str, Any]]:
    found = [json.loads(record.text) async for record in state.audit.records()]
    return [entry for entry in found if not kind or entry["kind"] == kind]


DANGEROUS = Annotations.for_destroying()


def deciding(outcome: Any) -> Any:
    return lambda *_: outcome


@pytest.mark.parametrize(
    ("options", "prepare", "by", "why", "outcome"),
    [
        ({}, None, "policy", "", "success"),
        (
            {"risk": AllowlistPolicy(allow=("other",))},
            None,
            "policy",
            "no list has it",
            "denied",
        ),
        ({"confirm": deciding(Answer.ALLOW_ONCE)}, None, "person", "allow_once", "success"),
        ({"confirm": deciding(Answer.DENY)}, None, "person", "deny", "denied"),
        ({}, "allow", "session", "allowed for this session", "success"),
        ({}, "deny", "session", "denied for this session", "denied"),
        ({"layers": []}, None, "", "", "success"),
    ],
)
async def test_who_decided_is_kept(
    options: dict[str, Any], prepare: str | None, by: str, why: str, outcome: str
) -> None:
    async with open_state() as state:
        tool = scripted(
            name="wipe", annotations=DANGEROUS if "confirm" in options else Annotations()
        )
        session = Session("s")
        if prepare is not None:
            getattr(session.permissions, prepare)("wipe")
        async with Pipeline([tool], state=state, **options) as pipeline:
            await pipeline.call("wipe", session=session)

        (entry,) = await entries_of(state)

    assert (entry.get("by", ""), entry["outcome"]) == (by, outcome)
    assert why in entry.get("why", "")


class ByAccount:
    """A policy of a program's own, whose reasons repeat arguments."""

    def decide(self, prepared: Any) -> Decision:
        action = Action(prepared.arguments["action"])
        return Decision(action, f"the account {prepared.arguments['iban']} was looked at")


SECRET = "DE-SECRET-1"


def _is_kept(folder: Path) -> bool:
    """Whether the secret stands readable in any file of a state."""
    return any(SECRET.encode() in file.read_bytes() for file in folder.iterdir())


@pytest.mark.parametrize("action", ["allow", "ask", "deny"])
async def test_what_a_policy_of_a_programs_own_says_is_kept_sealed(
    tmp_path: Path, action: str
) -> None:
    async with open_state(f"sqlite:///{tmp_path}/state.db") as state:
        pipeline = Pipeline(
            [scripted(name="pay", annotations=DANGEROUS)], state=state, risk=ByAccount()
        )
        async with pipeline:
            first = await pipeline.call("pay", {"iban": SECRET, "action": action})
            if action == "ask":
                assert first.metadata is not None
                await pipeline.approvals.approve(first.metadata["approval_id"], by="ada")
                await pipeline.resume(first.metadata["approval_id"])
        records = [record async for record in state.audit.records()]
        whys = {
            state.audit.why(record) for record in records if "why_sealed" in json.loads(record.text)
        }
        assert (await state.audit.verify()).sound

    assert whys == {f"the account {SECRET} was looked at"}
    assert not _is_kept(tmp_path)
    assert not any("why" in json.loads(record.text) for record in records)


@pytest.mark.parametrize("said", [Deny, Defer, Abort, Stop])
async def test_what_a_hook_says_of_a_call_is_kept_sealed(tmp_path: Path, said: Any) -> None:
    class Looks(Hook):
        async def before(self, call: Any) -> Any:
            return said(f"not to {call.arguments['iban']}")

    async with open_state(f"sqlite:///{tmp_path}/state.db") as state:
        async with Pipeline([scripted(name="pay")], state=state, hooks=[Looks()]) as pipeline:
            await pipeline.turn([("pay", {"iban": SECRET})])
        assert (await state.audit.verify()).entries

    assert not _is_kept(tmp_path)


@pytest.mark.parametrize("kind", ["allow", "deny"])
async def test_what_a_program_said_of_a_tool_for_a_session_is_kept_sealed(
    tmp_path: Path, kind: str
) -> None:
    session = Session("s")
    getattr(session.permissions, kind)("pay", f"as for {SECRET}")
    async with open_state(f"sqlite:///{tmp_path}/state.db") as state:
        async with Pipeline([scripted(name="pay")], state=state) as pipeline:
            await pipeline.call("pay", session=session)
        records = [record async for record in state.audit.records()]
        assert {state.audit.why(record) for record in records} - {""} == {f"as for {SECRET}"}

    assert not _is_kept(tmp_path)


async def test_without_a_key_what_foreign_code_said_is_left_out() -> None:
    async with open_state() as state:
        pipeline = Pipeline([scripted(name="pay")], state=state, risk=ByAccount())
        await pipeline.call("pay", {"iban": SECRET, "action": "deny"})

        (entry,) = await entries_of(state)

    assert (entry["by"], entry["outcome"]) == ("policy", "denied")
    assert "why" not in entry
    assert SECRET not in json.dumps(entry)


async def test_what_rules_of_a_policy_file_say_stays_readable(tmp_path: Path) -> None:
    rule = ArgumentRule(
        tool="pay", argument="/amount", above=10, decide=Action.DENY, reason="too much"
    )
    async with open_state(f"sqlite:///{tmp_path}/state.db") as state:
        pipeline = Pipeline(
            [scripted(name="pay")], state=state, risk=RuledPolicy(RiskPolicy(), [rule])
        )
        await pipeline.call("pay", {"amount": 11})

        (entry,) = await entries_of(state)

    assert (entry["by"], entry["why"], entry["outcome"]) == ("policy", "too much", "denied")


@pytest.mark.parametrize("risk", [RiskPolicy()])
async def test_a_refusal_by_the_gate_is_in_the_log_when_it_is_answered(risk: RiskPolicy) -> None:
    async with open_state() as state:
        tool = scripted(name="wipe", annotations=DANGEROUS)
        pipeline = Pipeline([tool], state=state, risk=risk, clock=FakeClock())

        await pipeline.call("wipe")

        # The question itself is in the log too.
        (entry,) = [one for one in await entries_of(state) if one.get("layer") == "risk_gate"]
        assert entry["reason"] == "approval_required"


async def test_each_end_of_a_turn_is_kept() -> None:
    begun = asyncio.Event()

    async def wait(arguments: Any, context: Any) -> str:
        begun.set()
        await asyncio.Event().wait()
        return ""

    class Aborts(Hook):
        def before(self, context: Any) -> Any:
            return Abort("enough")

    async def fail(arguments: Any, context: Any) -> str:
        raise ToolFailed("no")

    tools = [
        scripted(name="look"),
        Tool("wait", "Waits.", {}, wait),
        Tool("fail", "Fails.", {}, fail),
    ]
    async with open_state() as state:
        async with Pipeline(tools, state=state) as pipeline:
            await pipeline.turn([("look", {})])
            await pipeline.turn([("fail", {})])
            turn = asyncio.create_task(pipeline.turn([("wait", {})]))
            await begun.wait()
            turn.cancel()
            await asyncio.wait([turn])
        async with Pipeline(tools, state=state, hooks=[Aborts()]) as pipeline:
            await pipeline.turn([("look", {})])
        async with Pipeline(tools, state=state) as pipeline:
            loops = Session("loops")
            for _ in range(8):
                await pipeline.turn([("look", {})], session=loops)

        turns = await entries_of(state, "turn")
        calls = await entries_of(state, "call")

    assert [turn["outcome"] for turn in turns[:4]] == ["done", "done", "cancelled", "aborted"]
    assert "loop" in {turn["outcome"] for turn in turns if turn.get("session") == loops.id}
    assert {turn["turn_id"] for turn in turns} == {call["turn_id"] for call in calls}
    assert [call["reason"] for call in calls if call["tool"] == "wait"] == ["cancelled"]


async def test_a_turn_that_breaks_off_is_kept_with_the_type_of_its_error() -> None:
    log = Log()
    audit = Audit(log, FakeClock())

    with pytest.raises(ZeroDivisionError), audit.turn("t", "s", "c"):
        raise ZeroDivisionError("hunter2")
    await audit.aclose()

    assert [(e.outcome, e.why) for e in log.entries] == [("error", "ZeroDivisionError")]


def test_it_goes_on_in_another_loop() -> None:
    log = Log()
    audit = Audit(log, FakeClock())

    async def one(name: str) -> None:
        audit.forget_loop()
        end(audit, finished(name))

    async def last() -> None:
        await one("b")
        await audit.aclose()

    asyncio.run(one("a"))
    asyncio.run(last())

    assert [entry.call_id for entry in log.entries] == ["a", "b"]


def test_without_a_loop_an_entry_waits_for_the_end() -> None:
    log = Log()
    audit = Audit(log, FakeClock())
    end(audit, finished("a"))

    asyncio.run(audit.aclose())

    assert len(log.entries) == 1


async def test_each_failed_try_and_each_dropped_entry_is_counted() -> None:
    log, clock, failures = Log(), FakeClock(), [0]

    def failed() -> None:
        failures[0] += 1

    log.away = 2
    audit = Audit(log, clock, failed=failed)
    end(audit, finished())
    await clock.advance(BATCH_S)
    assert failures == [1]
    await clock.advance(1.0)
    assert failures == [2]
    await clock.advance(MAX_PAUSE_S)
    assert (failures, len(log.entries)) == ([2], 1)

    for number in range(MAX_QUEUED + 3):
        end(audit, finished(str(number)))
    assert failures == [5]
    await audit.aclose()


async def test_a_pipeline_counts_what_its_audit_log_cannot_take() -> None:
    state = open_state("memory:")
    log = Log()
    log.away = 1
    state.audit = log  # type: ignore[assignment]  # as much of one as is needed
    policies = Policies(audit=AuditSettings(wait=True))
    async with Pipeline([scripted(1, name="pay")], state=state, policies=policies) as pipeline:
        await pipeline.call("pay")

        assert b"seawall_audit_failures_total 1.0" in pipeline.metrics.text()
