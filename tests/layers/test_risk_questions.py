"""One question for calls that the same answer covers, whoever comes, goes or is cancelled."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seawall.contract.annotations import Risk
from seawall.layers.risk_gate import Gate, RiskGate
from seawall.layers.risk_policies import RiskPolicy
from seawall.layers.risk_questions import Answer, NoAnswer, answer_of
from seawall.pipeline.layer import compose
from seawall.testing import FakeClock, LayerBench, scripted

if TYPE_CHECKING:
    from seawall.contract.decision import Decision, Prepared
    from seawall.contract.result import ToolResult

TESTS = Path(__file__).parents[1]
VECTORS = {
    case["id"]: case
    for case in json.loads((TESTS / "vectors" / "risk_gate.json").read_text())["cases"]
}


class Desk:
    """A person who answers when the test says so."""

    def __init__(self, within_s: float | None = 300.0) -> None:
        self.questions: list[tuple[dict[str, Any], asyncio.Future[Any]]] = []
        self.clock = FakeClock()
        self.bench = LayerBench(
            tool=scripted("done", clock=self.clock, name="tool", risk=Risk.HIGH),
            clock=self.clock,
            parts={Gate: Gate(RiskPolicy(), self.confirm, within_s)},
        )
        gate = RiskGate.for_tool(self.bench.context)
        assert gate is not None
        self.handler = compose([gate], self.bench.execute())

    def gate_with(self, confirm: Any, within_s: float | None = 300.0) -> None:
        """Let somebody else be asked, or ask about another tool."""
        self.bench.parts[Gate] = Gate(RiskPolicy(), confirm, within_s)
        gate = RiskGate.for_tool(self.bench.context)
        assert gate is not None
        self.handler = compose([gate], self.bench.execute())

    async def confirm(self, prepared: Prepared, decision: Decision) -> Any:
        future = asyncio.get_running_loop().create_future()
        self.questions.append((dict(prepared.arguments), future))
        return await future

    async def call(self, arguments: dict[str, Any], **fields: Any) -> asyncio.Task[ToolResult]:
        """Begin a call and let it come to the question."""
        work = self.handler(self.bench.invocation(arguments, **fields))
        task = asyncio.ensure_future(work)
        await self.clock.settle()
        return task

    @property
    def open(self) -> list[dict[str, Any]]:
        return [arguments for arguments, future in self.questions if not future.done()]

    async def answer(self, said: Any) -> None:
        (future,) = (future for _, future in self.questions if not future.done())
        future.set_result(said)
        await self.clock.settle()

    @property
    def runs(self) -> int:
        executor: Any = self.bench.tool.executor
        return len(executor.calls)

    @property
    def remembers(self) -> bool:
        """Whether anything is left of questions that are over."""
        return bool(self.bench.session.memory.get("risk_gate"))


def said(task: asyncio.Task[ToolResult]) -> str:
    failure = task.result().failure
    return "" if failure is None else failure.reason


async def test_vector_rk_05_concurrent_calls_share_one_question_answered_for_the_session() -> None:
    case = VECTORS["rk-05"]
    desk = Desk()
    tasks = [await desk.call({"a": 1}) for _ in range(case["steps"][0]["concurrently"])]

    await desk.answer(Answer.ALLOW_SESSION)

    assert [said(task) for task in tasks] == [""] * 5
    assert len(desk.questions) == case["expect"]["prompts"]
    assert desk.runs == 5
    assert not desk.remembers


@pytest.mark.parametrize("answer", [Answer.ALLOW_ONCE, True, "yes"])
async def test_a_yes_for_this_once_runs_one_call_and_equal_ones_are_asked_about_in_line(
    answer: Any,
) -> None:
    desk = Desk()
    tasks = [await desk.call({"a": 1}) for _ in range(3)]

    for done in (1, 2, 3):
        assert desk.open == [{"a": 1}]
        await desk.answer(answer)
        assert (desk.runs, len(desk.questions)) == (done, min(done + 1, 3))

    assert [said(task) for task in tasks] == [""] * 3
    assert not desk.remembers


async def test_what_is_said_after_a_yes_for_this_once_counts_for_those_that_still_wait() -> None:
    desk = Desk()
    tasks = [await desk.call({"a": 1}) for _ in range(4)]

    await desk.answer(Answer.ALLOW_ONCE)
    await desk.answer(Answer.DENY)

    assert [said(task) for task in tasks] == ["", *["approval_denied"] * 3]
    assert (desk.runs, len(desk.questions)) == (1, 2)


async def test_equal_arguments_are_equal_in_any_order_and_spelling() -> None:
    desk = Desk()
    first = await desk.call({"a": 1, "b": [2.0]})
    second = await desk.call({"b": [2], "a": 1.0})

    await desk.answer(Answer.DENY_ONCE)

    assert (said(first), said(second)) == ("approval_denied", "approval_denied")


@pytest.mark.parametrize(
    ("answer", "reason"), [(Answer.ALLOW_SESSION, ""), (Answer.DENY, "approval_denied")]
)
async def test_an_answer_for_the_session_covers_calls_with_other_arguments(
    answer: Answer, reason: str
) -> None:
    desk = Desk()
    tasks = [await desk.call({"a": n}) for n in range(3)]

    await desk.answer(answer)

    assert [said(task) for task in tasks] == [reason] * 3
    assert len(desk.questions) == 1


async def test_a_no_for_this_once_leaves_other_arguments_to_be_asked_about() -> None:
    desk = Desk()
    first = await desk.call({"a": 1})
    other = await desk.call({"a": 2})
    equal = await desk.call({"a": 1})
    assert desk.open == [{"a": 1}]

    await desk.answer(Answer.DENY_ONCE)

    assert (said(first), said(equal)) == ("approval_denied", "approval_denied")
    assert desk.open == [{"a": 2}]
    await desk.answer(Answer.ALLOW_ONCE)
    assert said(other) == ""


async def test_an_answer_for_one_call_does_not_cover_a_later_equal_one() -> None:
    desk = Desk()
    await desk.call({"a": 1})
    await desk.answer(Answer.ALLOW_ONCE)

    await desk.call({"a": 1})

    assert desk.open == [{"a": 1}]
    await desk.answer(Answer.DENY_ONCE)


async def test_questions_of_different_tools_are_open_together() -> None:
    desk, other = Desk(), Desk()
    other.bench.session = desk.bench.session
    other.bench.tool = scripted("done", name="other", risk=Risk.HIGH)
    gate = RiskGate.for_tool(other.bench.context)
    assert gate is not None
    other.handler = compose([gate], other.bench.execute())
    first, second = await desk.call({}), await other.call({})
    assert desk.open == other.open == [{}]

    await desk.answer(Answer.ALLOW_SESSION)
    await other.answer(Answer.DENY)

    assert (said(first), said(second)) == ("", "approval_denied")


async def test_when_whoever_asked_is_cancelled_the_next_asks() -> None:
    desk = Desk()
    asker = await desk.call({"a": 1})
    others = [await desk.call({"a": 1}) for _ in range(2)]

    asker.cancel()
    await desk.clock.settle()

    assert asker.cancelled()
    assert desk.questions[0][1].cancelled()
    assert len(desk.open) == 1
    await desk.answer(Answer.ALLOW_SESSION)
    assert [said(task) for task in others] == ["", ""]
    assert not desk.remembers


async def test_cancelling_one_that_waits_disturbs_nobody() -> None:
    desk = Desk()
    asker, waiting = await desk.call({}), await desk.call({})

    waiting.cancel()
    await desk.clock.settle()
    await desk.answer(Answer.ALLOW_ONCE)

    assert waiting.cancelled()
    assert said(asker) == ""
    assert len(desk.questions) == 1


async def test_a_cancel_that_confirm_swallows_still_ends_the_call() -> None:
    desk = Desk()

    async def stubborn(prepared: Prepared, decision: Decision) -> Answer:
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            return Answer.ALLOW_SESSION
        raise AssertionError("nothing else ends the wait")

    desk.bench.parts[Gate] = Gate(RiskPolicy(), stubborn, answer_within_s=5)
    gate = RiskGate.for_tool(desk.bench.context)
    assert gate is not None
    desk.handler = compose([gate], desk.bench.execute())
    task = await desk.call({})

    await desk.clock.advance(5)

    assert said(task) == "approval_expired"
    assert desk.bench.session.permissions.decision("tool") is None


@pytest.mark.parametrize("answer", [Answer.ALLOW_ONCE, Answer.ALLOW_SESSION, Answer.DENY])
async def test_a_cancel_of_the_caller_that_confirm_answers_runs_and_remembers_nothing(
    answer: Answer,
) -> None:
    desk = Desk()

    async def stubborn(prepared: Prepared, decision: Decision) -> Answer:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.get_running_loop().create_future()
        return answer

    desk.gate_with(stubborn)
    task = await desk.call({})

    task.cancel()
    await desk.clock.settle()

    assert task.cancelled()
    assert desk.runs == 0
    assert desk.bench.session.permissions.decision("tool") is None
    assert not desk.remembers


async def test_a_plain_confirm_that_answers_after_it_cancelled_the_call_is_not_obeyed() -> None:
    desk = Desk()

    def cancelling(prepared: Prepared, decision: Decision) -> Answer:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        return Answer.ALLOW_SESSION

    desk.gate_with(cancelling)
    task = await desk.call({})

    assert task.cancelled()
    assert desk.runs == 0
    assert desk.bench.session.permissions.decision("tool") is None


class Deaf:
    """Asks on, however often it is cancelled, until the test lets it end."""

    def __init__(self) -> None:
        self.asking: list[asyncio.Future[Any]] = []
        self.cancels = 0
        self.ended = 0

    async def __call__(self, prepared: Prepared, decision: Decision) -> bool:
        self.asking.append(asyncio.get_running_loop().create_future())
        future = self.asking[-1]
        while not future.done():
            try:
                await asyncio.wait({future})
            except asyncio.CancelledError:
                self.cancels += 1
        self.ended += 1
        return bool(future.result())


@pytest.mark.parametrize(
    ("fields", "until_s", "reason"),
    [
        ({}, 6.0, "approval_expired"),
        ({"deadline": 5.5}, 5.5, "approval_expired"),
        ({"deadline": 3.0}, 3.0, "deadline_exceeded"),
    ],
)
async def test_a_confirm_that_does_not_end_holds_the_call_for_a_bounded_time(
    fields: dict[str, Any], until_s: float, reason: str
) -> None:
    desk, deaf = Desk(), Deaf()
    desk.gate_with(deaf, within_s=5.0)
    task = await desk.call({}, **fields)

    await desk.clock.advance(until_s - 0.01)
    assert not task.done()
    await desk.clock.advance(0.01)

    assert said(task) == reason
    assert (deaf.cancels, deaf.ended) == (1, 0)
    assert not desk.remembers
    deaf.asking[0].set_result(True)
    await desk.clock.settle()
    assert deaf.ended == 1
    assert desk.runs == 0


async def test_a_confirm_that_does_not_end_does_not_hold_a_caller_who_cancels() -> None:
    desk, deaf = Desk(), Deaf()
    desk.gate_with(deaf)
    task = await desk.call({})

    task.cancel()
    await desk.clock.settle()

    assert task.cancelled()
    assert (deaf.cancels, deaf.ended) == (1, 0)
    deaf.asking[0].set_result(True)


async def test_a_confirm_that_was_left_is_kept_until_it_ends_and_what_it_raises_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    desk, deaf = Desk(), Deaf()
    complaints: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, what: complaints.append(what))
    desk.gate_with(deaf, within_s=5.0)
    task = await desk.call({})
    await desk.clock.advance(6)
    assert said(task) == "approval_expired"
    left = desk.bench.states.of_tool("tool").find("risk_gate:left")
    assert len(left) == 1

    deaf.asking[0].set_exception(RuntimeError("broken"))
    await desk.clock.settle()
    gc.collect()

    assert not left
    assert not complaints
    assert "RuntimeError" in caplog.text


async def test_a_question_that_was_left_does_not_hold_the_next() -> None:
    desk, deaf = Desk(), Deaf()
    desk.gate_with(deaf, within_s=5.0)
    await desk.call({})
    await desk.clock.advance(6)

    second = await desk.call({})
    deaf.asking[1].set_result(True)
    await desk.clock.settle()

    assert said(second) == ""
    deaf.asking[0].set_result(True)


async def test_what_no_handler_of_exceptions_catches_is_a_failure_of_the_gate() -> None:
    class Odd(BaseException):
        pass

    desk = Desk()
    first, equal = await desk.call({}), await desk.call({})

    desk.questions[0][1].set_exception(Odd())
    await desk.clock.settle()

    assert (said(first), said(equal)) == ("gate_failed", "gate_failed")


@pytest.mark.parametrize("answer", [Answer.ALLOW_ONCE, Answer.ALLOW_SESSION])
async def test_a_tool_that_took_the_name_is_asked_about_by_itself(answer: Answer) -> None:
    desk, other = Desk(), Desk()
    other.bench.session = desk.bench.session
    other.bench.tool = msgspec.structs.replace(other.bench.tool, description="something else")
    other.gate_with(other.confirm)
    first, second = await desk.call({}), await other.call({})
    assert desk.open == other.open == [{}]

    await desk.answer(answer)

    assert said(first) == ""
    assert not second.done()
    assert other.runs == 0
    await other.answer(Answer.DENY_ONCE)
    assert said(second) == "approval_denied"


async def test_an_equal_tool_of_another_gate_is_asked_about_by_itself() -> None:
    desk, other = Desk(), Desk()
    other.bench.session, other.bench.tool = desk.bench.session, desk.bench.tool
    other.gate_with(other.confirm)
    first, second = await desk.call({}), await other.call({})

    await desk.answer(Answer.ALLOW_ONCE)

    assert said(first) == ""
    assert other.open == [{}]
    await other.answer(Answer.DENY_ONCE)
    assert said(second) == "approval_denied"


async def test_nobody_there_for_one_question_is_nobody_there_for_those_behind_it() -> None:
    desk = Desk(within_s=300)
    tasks = [await desk.call({"a": n}) for n in range(3)]

    await desk.clock.advance(300)

    assert [said(task) for task in tasks] == ["approval_expired"] * 3
    assert len(desk.questions) == 1
    assert not desk.remembers


async def test_each_question_has_its_own_time() -> None:
    desk = Desk(within_s=300)
    first, second = await desk.call({"a": 1}), await desk.call({"a": 2})
    await desk.clock.advance(299)
    await desk.answer(Answer.ALLOW_ONCE)

    await desk.clock.advance(299)
    await desk.answer(Answer.ALLOW_ONCE)

    assert (said(first), said(second)) == ("", "")


async def test_without_a_time_to_answer_a_question_stays_open() -> None:
    desk = Desk(within_s=None)
    task = await desk.call({})

    await desk.clock.advance(1_000_000)
    await desk.answer(Answer.ALLOW_ONCE)

    assert said(task) == ""


async def test_one_that_waits_leaves_at_its_own_deadline() -> None:
    desk = Desk()
    asker, waiting = await desk.call({}), await desk.call({}, deadline=10.0)

    await desk.clock.advance(10)

    assert said(waiting) == "deadline_exceeded"
    await desk.answer(Answer.ALLOW_ONCE)
    assert said(asker) == ""


async def test_when_the_deadline_of_whoever_asked_is_over_the_next_asks() -> None:
    desk = Desk()
    asker, waiting = await desk.call({}, deadline=10.0), await desk.call({})

    await desk.clock.advance(10)

    assert said(asker) == "deadline_exceeded"
    assert len(desk.questions) == 2
    await desk.answer(Answer.ALLOW_ONCE)
    assert said(waiting) == ""


async def test_a_denial_made_meanwhile_is_stronger_than_the_answer() -> None:
    desk = Desk()
    asker, waiting = await desk.call({}), await desk.call({})
    desk.bench.session.permissions.deny("tool", "the operator said no")

    await desk.answer(Answer.ALLOW_SESSION)

    assert (said(asker), said(waiting)) == ("approval_denied", "approval_denied")
    standing = desk.bench.session.permissions.decision("tool")
    assert standing is not None
    assert standing.reason == "the operator said no"


async def test_an_allowance_made_meanwhile_lets_those_that_wait_through() -> None:
    desk = Desk()
    asker, waiting = await desk.call({"a": 1}), await desk.call({"a": 2})
    desk.bench.session.permissions.allow("tool")

    await desk.answer(Answer.DENY_ONCE)

    assert (said(asker), said(waiting)) == ("approval_denied", "")


async def test_arguments_that_change_while_they_are_asked_about_do_not_run() -> None:
    desk = Desk()
    call = desk.bench.invocation({"path": "/a"})
    task = asyncio.ensure_future(desk.handler(call))
    await desk.clock.settle()

    call.arguments["path"] = "/etc"
    await desk.answer(Answer.ALLOW_SESSION)

    assert said(task) == "gate_failed"
    assert desk.runs == 0


async def test_something_cancelled_inside_of_confirm_is_a_failure_of_the_gate() -> None:
    desk = Desk()
    task = await desk.call({})

    desk.questions[0][1].cancel()
    await desk.clock.settle()

    assert said(task) == "gate_failed"


@pytest.mark.parametrize("answer", [RuntimeError("broken"), 7])
async def test_a_question_that_failed_fails_equal_calls_and_others_ask(answer: Any) -> None:
    desk = Desk()
    first, equal, other = [await desk.call({"a": n}) for n in (1, 1, 2)]

    if isinstance(answer, Exception):
        desk.questions[0][1].set_exception(answer)
        await desk.clock.settle()
    else:
        await desk.answer(answer)

    assert (said(first), said(equal)) == ("gate_failed", "gate_failed")
    await desk.answer(Answer.ALLOW_ONCE)
    assert said(other) == ""


def test_a_session_may_be_asked_about_in_two_loops() -> None:
    desk = Desk()

    async def ask(answer: Answer | None) -> str:
        task = await desk.call({})
        if answer is None:
            return "left open"
        await desk.answer(answer)
        return said(task)

    assert asyncio.run(ask(None)) == "left open"
    desk.questions.clear()
    assert asyncio.run(ask(Answer.ALLOW_ONCE)) == ""


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        (Answer.DENY_ONCE, Answer.DENY_ONCE),
        ("allow_session", Answer.ALLOW_SESSION),
        (" Allow-Once ", Answer.ALLOW_ONCE),
        ("allow session", Answer.ALLOW_SESSION),
        ("allow", Answer.ALLOW_ONCE),
        ("YES", Answer.ALLOW_ONCE),
        ("no", Answer.DENY),
        (True, Answer.ALLOW_ONCE),
        (False, Answer.DENY),
        (None, NoAnswer.FAILED),
        (1, NoAnswer.FAILED),
        (0, NoAnswer.FAILED),
        ("", NoAnswer.FAILED),
        ("approval_expired", NoAnswer.FAILED),
        ("yes" + " " * 100, NoAnswer.FAILED),
        (["allow"], NoAnswer.FAILED),
    ],
)
def test_an_answer_is_read_by_its_name(said: Any, answer: Answer | NoAnswer) -> None:
    assert answer_of(said) is answer


# A model: any order of calls, answers and cancels.

EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("call"), st.integers(0, 1)),
        st.tuples(st.just("cancel"), st.integers(0, 7)),
        st.tuples(st.just("answer"), st.sampled_from([*Answer, "nonsense"])),
        st.tuples(st.just("reset"), st.just(0)),
    ),
    max_size=20,
)


@settings(max_examples=150)
@given(events=EVENTS)
def test_in_any_order_a_call_runs_only_on_an_answer_that_covers_it(events: Any) -> None:
    asyncio.run(_play(events))


async def _play(events: list[tuple[str, Any]]) -> None:
    desk = Desk()
    calls: list[tuple[int, asyncio.Task[ToolResult]]] = []
    for kind, value in events:
        waiting = [(about, task) for about, task in calls if not task.done()]
        before = desk.runs
        standing = desk.bench.session.permissions.decision("tool")
        if kind == "call":
            calls.append((value, await desk.call({"a": value})))
            assert desk.runs - before == (standing is not None and standing.action == "allow")
        elif kind == "cancel" and value < len(calls):
            calls[value][1].cancel()
            await desk.clock.settle()
            assert desk.runs == before
        elif kind == "answer" and desk.open:
            about = desk.open[0]["a"]
            await desk.answer(value)
            assert about in [one for one, _ in waiting]
            runs = {Answer.ALLOW_ONCE: 1, Answer.ALLOW_SESSION: len(waiting)}
            assert desk.runs - before == runs.get(value, 0)
        elif kind == "reset":
            desk.bench.session.permissions.reset()
        assert len(desk.open) == any(not task.done() for _, task in calls)
        assert desk.remembers == bool(desk.open)
    for _, task in calls:
        task.cancel()
    await desk.clock.settle()
    assert not desk.remembers
