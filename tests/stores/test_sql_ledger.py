import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from sqlalchemy import text
from tests.stores.test_database import all_held, database_of
from tests.stores.test_owners import owners_of
from tests.waiting import until_idle

from seawall.contract.effect import Begun, EffectState, Intent, Settled
from seawall.contract.errors import StoreUnavailable
from seawall.contract.failure import FailureCode
from seawall.contract.result import ToolResult
from seawall.stores import State, open_state
from seawall.stores.keys import VARIABLE
from seawall.stores.owner import BEAT_S, LEASE_S, Owner
from seawall.stores.sql_ledger import NO_KEY, NOT_KEPT, SqlLedger
from seawall.testing import FakeClock

KEY = bytes(range(32))
OTHER_KEY = bytes(range(1, 33))


def ledger_of(state: State) -> SqlLedger:
    assert state.ledger is not None
    return state.ledger


def intent(token: str, **fields: Any) -> Intent:
    given = {"scope": "session:a", "tool": "pay", "key": "k", "digest": "d", **fields}
    return Intent(token=token, **given)


def settled(token: str, state: EffectState = EffectState.DONE, **fields: Any) -> Settled:
    given = {"scope": "session:a", "tool": "pay", **fields}
    return Settled(token=token, state=state, **given)


RUN = """
import asyncio, os, sys, time
from seawall import Pipeline, tool

url, effects, linger = sys.argv[1:4]

@tool
async def pay(amount: int) -> str:
    with open(effects, "a") as file:
        file.write("paid\\n")
    if linger == "yes":
        print("running", flush=True)
        await asyncio.sleep(60)
    return "paid"

@tool
async def refund(amount: int) -> str:
    with open(effects, "a") as file:
        file.write("refunded\\n")
    return "refunded"

async def main():
    async with Pipeline([pay, refund], state=url) as pipeline:
        while time.time() < float(sys.argv[4]):
            pass
        result = await pipeline.call(sys.argv[5], {"amount": 5}, idempotency_key="k")
        print(result.failure.reason if result.failure else result.text, flush=True)

asyncio.run(main())
"""


def run(
    url: str, effects: Any, *, linger: str = "no", at: float = 0, tool: str = "pay"
) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", RUN, url, effects, linger, str(at), tool],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, VARIABLE: KEY.hex()},
    )


def test_a_call_that_was_killed_is_unknown_and_not_run_again(state_url: str, tmp_path: Any) -> None:
    effects = tmp_path / "effects"
    with run(state_url, effects, linger="yes") as first:
        assert first.stdout is not None
        assert first.stdout.readline() == "running\n"
        with run(state_url, effects) as second:
            assert second.communicate(timeout=60)[0] == "still_running\n"
        first.send_signal(signal.SIGKILL)
        first.wait()

    with run(state_url, effects) as third:
        assert third.communicate(timeout=60)[0] == "outcome_unknown\n"
    assert effects.read_text() == "paid\n"

    async def look() -> list[tuple[str, str]]:
        async with open_state(state_url, key=KEY) as state:
            return [(e.state, e.reason) for e in await ledger_of(state).unknown()]

    assert asyncio.run(look()) == [("unknown", "interrupted")]


def test_processes_with_the_same_key_at_once_are_one_effect(state_url: str, tmp_path: Any) -> None:
    effects = tmp_path / "effects"
    import time  # noqa: PLC0415  # the real time: processes are to begin at once

    processes = [run(state_url, effects, at=time.time() + 2) for _ in range(4)]
    said = sorted(process.communicate(timeout=60)[0].strip() for process in processes)

    assert effects.read_text() == "paid\n"
    assert "paid" in said
    assert set(said) <= {"paid", "still_running"}


def test_processes_with_one_key_for_two_tools_at_once_are_one_effect(
    state_url: str, tmp_path: Any
) -> None:
    effects = tmp_path / "effects"
    import time  # noqa: PLC0415  # the real time: processes are to begin at once

    at = time.time() + 2
    tools = ("pay", "refund") * 2
    processes = [run(state_url, effects, at=at, tool=tool) for tool in tools]
    said = [process.communicate(timeout=60)[0].strip() for process in processes]

    (done,) = effects.read_text().splitlines()
    assert done in said
    others = [what for what, tool in zip(said, tools, strict=True) if done[:2] != tool[:2]]
    assert others == ["idempotency_conflict"] * 2


async def test_of_many_tools_with_one_key_at_once_one_begins(state_url: str) -> None:
    async with open_state(state_url) as one, open_state(state_url) as other:
        begun = await asyncio.gather(
            *(
                ledger_of(state).begin(intent(f"{name}{number}", tool=f"{name}{number}"))
                for number in range(10)
                for name, state in (("a", one), ("b", other))
            )
        )

        assert [each.earlier is None for each in begun].count(True) == 1
        assert [each.conflict for each in begun].count(True) == len(begun) - 1
        (kept,) = {each.earlier.tool for each in begun if each.earlier is not None}
        again = await ledger_of(one).begin(intent("again", tool=kept))
        assert (again.conflict, again.earlier is None) == (False, False)


ANSWER = {"scope": "answers:a", "tool": "", "rivals": ("caller:a", "asked:a")}
EFFECT = {"scope": "caller:a", "rivals": ("answers:a",), "call_id": "1"}
ASKED = {"scope": "asked:a", "tool": "", "rivals": ("answers:a",)}


@pytest.mark.parametrize(
    ("first", "second", "conflict"),
    [
        (EFFECT, {**EFFECT, "tool": "refund"}, True),
        (EFFECT, {**EFFECT, "scope": "caller:b", "tool": "refund"}, False),
        (EFFECT, {**EFFECT, "key": "other", "tool": "refund"}, False),
        (EFFECT, {**EFFECT, "key": None, "tool": "refund"}, False),
        (ANSWER, EFFECT, True),
        ({**ANSWER, "call_id": "1"}, EFFECT, False),
        (EFFECT, ANSWER, True),
        (EFFECT, {**ANSWER, "answers": "pay"}, False),
        (EFFECT, {**ANSWER, "answers": "refund"}, True),
        (ASKED, ANSWER, False),
        (ASKED, {**ANSWER, "digest": "e"}, True),
        (ANSWER, {**ASKED, "digest": "e"}, True),
        (ASKED, EFFECT, False),
    ],
)
async def test_a_key_stands_for_one_call_wherever_it_is_kept(
    state_url: str, first: Any, second: Any, conflict: bool
) -> None:
    clock = FakeClock()
    async with open_state(state_url, clock=clock) as state:
        ledger = ledger_of(state)
        await ledger.begin(intent("first", **first))

        begun = await ledger.begin(intent("second", **second))
        assert begun.conflict is conflict

        if conflict:
            ledger.withdraw_soon("first")
            freed = await ledger.begin(intent("third", **second))
            assert freed == Begun()


async def test_a_key_is_free_for_another_tool_once_its_call_is_kept_no_longer(
    state_url: str,
) -> None:
    clock = FakeClock()
    async with open_state(state_url, clock=clock) as state:
        ledger = ledger_of(state)
        await ledger.begin(intent("first"))
        await ledger.settle(settled("first", keep_s=100))

        before = await ledger.begin(intent("second", tool="refund"))
        clock.step_wall(101)
        after = await ledger.begin(intent("third", tool="refund"))

        assert (before.conflict, after) == (True, Begun())


async def test_of_many_at_once_one_begins(state_url: str) -> None:
    async with open_state(state_url) as one, open_state(state_url) as other:
        begun = await asyncio.gather(
            *(
                ledger_of(state).begin(intent(f"{name}{number}"))
                for number in range(10)
                for name, state in (("a", one), ("b", other))
            )
        )

        assert [each.earlier is None for each in begun].count(True) == 1
        assert {e.earlier.state for e in begun if e.earlier is not None} == {EffectState.RUNNING}


async def test_what_a_process_left_is_found_without_a_key(state_url: str) -> None:
    async with open_state(state_url) as state:
        await ledger_of(state).begin(intent("t", key=None))
        await disowned(state)

        found = await ledger_of(state).unknown()

    assert [(e.token, e.state, e.reason) for e in found] == [
        ("t", EffectState.UNKNOWN, "interrupted")
    ]


async def disowned(state: State) -> None:
    """Make what runs be run by a process that has ended."""
    await database_of(state).write(lambda c: c.execute(text("UPDATE effects SET owner = 'nobody'")))


async def test_the_truth_replaces_what_was_not_known(state_url: str) -> None:
    async with open_state(state_url, key=KEY) as state:
        ledger = ledger_of(state)
        await ledger.begin(intent("t"))
        await disowned(state)
        await ledger.unknown()

        await ledger.settle(settled("t", outcome=ToolResult.of_text("paid")))

        begun = await ledger.begin(intent("u"))
        assert begun.earlier is not None
        assert begun.earlier.outcome is not None
        assert begun.earlier.outcome.text == "paid"


@pytest.mark.parametrize(
    "result",
    [
        ToolResult.of_text("paid"),
        ToolResult(structured_content={"a": [1, None, "x"]}, tool="pay", terminate=True),
        ToolResult.failed(FailureCode.EXECUTION_FAILED, "declined", may_have_run=True),
        ToolResult.of_text("\ud800"),
    ],
)
async def test_an_outcome_comes_back_as_a_model_saw_it(state_url: str, result: ToolResult) -> None:
    async with open_state(state_url, key=KEY) as state:
        ledger = ledger_of(state)
        await ledger.begin(intent("t"))
        await ledger.settle(settled("t", outcome=result))

        earlier = (await ledger.begin(intent("u"))).earlier

    assert earlier is not None
    if earlier.outcome is None:
        assert earlier.unreadable == NOT_KEPT
    else:
        assert earlier.outcome == result


async def test_without_a_key_an_outcome_is_not_kept(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    async with open_state(postgres_url) as state:
        ledger = ledger_of(state)
        await ledger.begin(intent("t"))
        await ledger.settle(settled("t", outcome=ToolResult.of_text("paid")))

        earlier = (await ledger.begin(intent("u"))).earlier

    assert earlier is not None
    assert (earlier.state, earlier.outcome, earlier.unreadable) == (EffectState.DONE, None, NO_KEY)


async def test_an_outcome_that_is_too_large_is_not_kept(tmp_path: Any) -> None:
    async with open_state(f"sqlite:///{tmp_path}/state.db") as state:
        ledger = ledger_of(state)
        await ledger.begin(intent("t"))
        await ledger.settle(settled("t", outcome=ToolResult.of_text("x" * 5_000_000)))

        earlier = (await ledger.begin(intent("u"))).earlier

    assert earlier is not None
    assert earlier.unreadable == NOT_KEPT


@pytest.mark.parametrize("name", ["a\0b", "\ud800", "x" * 5_000])
async def test_names_that_a_database_does_not_take_are_made_fit(state_url: str, name: str) -> None:
    async with open_state(state_url) as state:
        await ledger_of(state).begin(intent("t", call_id=name, session=name, caller=name, key=name))

        assert (await ledger_of(state).begin(intent("u", key=name))).earlier is not None


async def test_old_rows_are_removed(tmp_path: Any) -> None:
    clock = FakeClock()
    async with open_state(f"sqlite:///{tmp_path}/state.db", clock=clock) as state:
        ledger = ledger_of(state)
        for number in range(3):
            await ledger.begin(intent(f"t{number}", key=None))
            await ledger.settle(settled(f"t{number}", keep_s=60))
        await clock.advance(61)
        ledger._begun = 0
        await ledger.begin(intent("new", key=None))

        rows = await database_of(state).read(lambda c: c.execute(text("SELECT token FROM effects")))
        assert [row.token for row in rows] == ["new"]


async def test_an_outcome_is_written_later_if_the_database_was_away(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = FakeClock()
    async with open_state(f"sqlite:///{tmp_path}/state.db", clock=clock) as state:
        ledger, database = ledger_of(state), database_of(state)
        await ledger.begin(intent("t"))

        async def fail(_: object) -> None:
            raise StoreUnavailable("there", "gone")

        with monkeypatch.context() as away:
            away.setattr(database, "write", fail)
            with pytest.raises(StoreUnavailable):
                await ledger.settle(settled("t", outcome=ToolResult.of_text("paid")))
            await clock.advance(0.5)
        assert (await ledger.begin(intent("u"))).earlier.state is EffectState.RUNNING  # type: ignore[union-attr]  # it is there
        await clock.advance(1)
        await database.quiet()

        earlier = (await ledger.begin(intent("v"))).earlier
    assert earlier is not None
    assert earlier.state is EffectState.DONE


async def test_an_intent_that_could_not_be_kept_for_sure_does_not_block_its_key(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = FakeClock()
    async with open_state(f"sqlite:///{tmp_path}/state.db", clock=clock) as state:
        ledger, database = ledger_of(state), database_of(state)
        write = database.write

        async def kept_but_not_said(work: Any) -> None:
            await write(work)
            raise StoreUnavailable("there", "gone while it answered")

        with monkeypatch.context() as away:
            away.setattr(database, "write", kept_but_not_said)
            with pytest.raises(StoreUnavailable):
                await ledger.begin(intent("t"))

        assert (await ledger.begin(intent("u"))).earlier is None


class AgainstAModel(RuleBasedStateMachine):
    """Two processes use one ledger; a plain table says what each answer must be."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.folder = tempfile.TemporaryDirectory()
        self.clock = FakeClock()
        self.states: dict[int, State] = {}
        self.table: dict[str, dict[str, Any]] = {}
        self.numbers = iter(range(10_000))
        for process in (0, 1):
            self.launch(process)

    def await_(self, work: Any) -> Any:
        return self.loop.run_until_complete(work)

    def launch(self, process: int) -> None:
        url = f"sqlite:///{self.folder.name}/state.db"
        state = self.states[process] = open_state(url, clock=self.clock)
        # As on two machines: neither sees the other's processes, and the lease decides.
        owner = Owner(id=f"p{next(self.numbers)}", place="", pid=os.getpid(), started=0)
        owners_of(state)._me = owner

    def run_by(self, process: int) -> list[dict[str, Any]]:
        return [r for r in self.table.values() if r["state"] == "running" and r["by"] == process]

    @rule(
        process=st.sampled_from((0, 1)),
        key=st.sampled_from("ab"),
        digest=st.sampled_from("xy"),
        replay=st.booleans(),
    )
    def begin(self, process: int, key: str, digest: str, *, replay: bool) -> None:
        token = f"t{next(self.numbers)}"
        begun: Begun = self.await_(
            ledger_of(self.states[process]).begin(
                intent(token, key=key, digest=digest, replay=replay, keep_s=300)
            )
        )
        expected = self.expected(key, digest, replay=replay)
        if expected is None:
            assert begun.earlier is None
            row = {"state": "running", "by": process, "token": token, "digest": digest}
            self.table[key] = {**row, "expires": self.clock.wall() + 300}
        else:
            assert begun.earlier is not None
            assert (begun.earlier.state, begun.earlier.token, begun.conflict) == expected

    def expected(self, key: str, digest: str, *, replay: bool) -> tuple[str, str, bool] | None:
        row = self.table.get(key)
        if row is None:
            return None
        if row["state"] == "running" and row["by"] is None:
            row["state"] = "unknown"
        if row["state"] != "running" and row["expires"] <= self.clock.wall():
            return None
        if row["digest"] != digest:
            return row["state"], row["token"], True
        if row["state"] == "unknown" and replay:
            return None
        return row["state"], row["token"], False

    @rule(process=st.sampled_from((0, 1)), state=st.sampled_from(("done", "failed", "unknown")))
    def settle(self, process: int, state: str) -> None:
        for row in self.run_by(process)[:1]:
            outcome = None if state == "unknown" else ToolResult.of_text(row["token"])
            self.await_(
                ledger_of(self.states[process]).settle(
                    settled(row["token"], EffectState(state), outcome=outcome, keep_s=300)
                )
            )
            row.update(state=state, expires=self.clock.wall() + 300)

    @rule(process=st.sampled_from((0, 1)))
    def withdraw(self, process: int) -> None:
        for row in self.run_by(process)[:1]:
            self.await_(self.withdraw_by(process, row["token"]))
            self.table = {key: kept for key, kept in self.table.items() if kept is not row}

    async def withdraw_by(self, process: int, token: str) -> None:
        ledger_of(self.states[process]).withdraw_soon(token)
        await database_of(self.states[process]).quiet()

    @rule(process=st.sampled_from((0, 1)))
    def crash(self, process: int) -> None:
        state = self.states[process]
        owners_of(state)._held = 1
        owners_of(state).release()
        self.await_(database_of(state).aclose())
        for row in self.run_by(process):
            row["by"] = None
        self.launch(process)
        self.pass_time(LEASE_S + 1)

    @precondition(lambda self: any(r["state"] != "running" for r in self.table.values()))
    @rule(seconds=st.sampled_from((60.0, 301.0)))
    def pass_time(self, seconds: float) -> None:
        end = self.clock.now() + seconds
        while self.clock.now() < end:
            self.await_(self.clock.advance(min(BEAT_S, end - self.clock.now())))
            for state in self.states.values():
                self.await_(database_of(state).quiet())
                self.await_(self.clock.settle())

    @invariant()
    def what_is_kept_can_be_read(self) -> None:
        for row in self.table.values():
            if row["state"] in ("done", "failed") and row["expires"] > self.clock.wall():
                self.expect_outcome(row)

    def expect_outcome(self, row: dict[str, Any]) -> None:
        key = next(key for key, kept in self.table.items() if kept is row)
        begun = self.await_(
            ledger_of(self.states[0]).begin(intent("probe", key=key, digest=row["digest"]))
        )
        assert begun.earlier.outcome.text == row["token"]

    def teardown(self) -> None:
        for state in self.states.values():
            owners_of(state)._held = 0
            owners_of(state).release()
            self.await_(state.aclose())
        self.loop.run_until_complete(asyncio.sleep(0))
        self.loop.close()
        self.folder.cleanup()


TestAgainstAModel = AgainstAModel.TestCase
TestAgainstAModel.settings = settings(
    max_examples=25,
    stateful_step_count=20,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)


async def test_callers_whose_names_no_database_takes_do_not_share_their_keys(
    state_url: str,
) -> None:
    scopes = ("caller:a?", "caller:a\ud800", "caller:a\0", "caller:a\N{REPLACEMENT CHARACTER}")
    async with open_state(state_url, key=KEY) as state:
        begun = [
            await ledger_of(state).begin(intent(f"t{number}", scope=scope))
            for number, scope in enumerate(scopes)
        ]

    assert [each.earlier for each in begun] == [None] * len(scopes)


async def test_under_another_key_a_call_that_was_made_is_no_conflict_but_unreadable(
    state_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, KEY.hex())  # so that no file is made beside
    async with open_state(state_url, key=KEY) as state:
        await ledger_of(state).begin(intent("t", digest="of the old key"))
        await ledger_of(state).settle(settled("t", outcome=ToolResult.of_text("paid")))
    async with open_state(state_url, key=OTHER_KEY) as state:
        begun = await ledger_of(state).begin(intent("u", digest="of the new key"))

    assert begun.earlier is not None
    assert (begun.conflict, begun.earlier.state) == (False, EffectState.DONE)
    assert "not among ours" in begun.earlier.unreadable


async def audited(state: State) -> list[tuple[str, str]]:
    entries = [json.loads(record.text) async for record in state.audit.records()]
    return [(each["outcome"], each.get("reason", "")) for each in entries]


async def test_an_end_that_was_kept_and_not_said_to_be_is_kept_once(
    state_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_state(state_url, key=KEY) as state:
        ledger, database = ledger_of(state), database_of(state)
        await ledger.begin(intent("t"))
        write = database.write
        fails = iter([True])

        async def kept_but_not_said(work: Any, *more: Any) -> None:
            await write(work, *more)
            if next(fails, False):
                raise StoreUnavailable("there", "gone while it answered")

        with monkeypatch.context() as away:
            away.setattr(database, "write", kept_but_not_said)
            with pytest.raises(StoreUnavailable):
                await ledger.settle(settled("t", EffectState.UNKNOWN, reason="cancelled"))
            await database.quiet()

        assert await audited(state) == [("running", ""), ("unknown", "cancelled")]


async def test_what_cannot_have_been_kept_is_not_taken_back(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or each call while a database is away would leave something to do in memory."""
    clock = FakeClock()
    async with open_state(f"sqlite:///{tmp_path}/state.db", clock=clock) as state:
        ledger, database = ledger_of(state), database_of(state)

        async def away(*_: object) -> None:
            raise StoreUnavailable("there", "away", may_have_written=False)

        monkeypatch.setattr(database, "write", away)
        for number in range(100):
            with pytest.raises(StoreUnavailable):
                await ledger.begin(intent(f"t{number}"))
        await database.quiet()

        assert (ledger._never_ran, ledger._open) == (set(), {})


async def test_who_is_not_waited_for_before_it_began_leaves_nothing_behind(state_url: str) -> None:
    async with open_state(state_url) as state:
        ledger, database = ledger_of(state), database_of(state)
        await ledger.begin(intent("first", key="other"))
        holding, go_on = await all_held(database)
        late = [asyncio.ensure_future(ledger.begin(intent(f"t{number}"))) for number in range(20)]
        await until_idle()
        for each in late:
            each.cancel()
        await asyncio.gather(*late, return_exceptions=True)
        go_on.set()
        await asyncio.gather(*holding)
        await database.quiet()

        assert ledger._never_ran == set()
        assert await audited(state) == [("running", "")]
        assert (await ledger.begin(intent("again"))).earlier is None
