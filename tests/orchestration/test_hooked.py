"""Hooks around calls: their order, what each answer does, and what happens when one fails."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from seawall import (
    Abort,
    Annotations,
    Answer,
    CachePolicy,
    ConfigurationError,
    Decision,
    Defer,
    Deny,
    FallbackPolicy,
    Hook,
    HookContext,
    LoopPolicy,
    Pipeline,
    Policies,
    Replace,
    Rewrite,
    Risk,
    RunPolicy,
    Session,
    Stop,
    TextContent,
    Tool,
    ToolFailed,
    ToolResult,
    TurnStatus,
)
from seawall.contract.decision import Action
from seawall.contract.span import Outcome
from seawall.testing import FakeClock, scripted

VECTORS = {
    one["id"]: one
    for one in json.loads((Path(__file__).parents[1] / "vectors" / "hooks.json").read_text())[
        "cases"
    ]
}

NUMBER = {
    "type": "object",
    "properties": {"n": {"type": "integer"}},
    "required": ["n"],
    "additionalProperties": False,
}


class Says(Hook):
    """A hook that gives the same answers for ever, and keeps what it was asked."""

    def __init__(self, before: Any = None, after: Any = None, name: str = "") -> None:
        self.answers = {"before": before, "after": after}
        self.name = name
        self.log: list[str] = []
        self.contexts: list[HookContext] = []

    def answer(self, when: str, context: HookContext) -> Any:
        self.contexts.append(context)
        self.log.append(f"{when} {context.call_id}")
        answer = self.answers[when]
        if isinstance(answer, BaseException):
            raise answer
        return answer(context) if callable(answer) else answer

    def before(self, context: HookContext) -> Any:
        return self.answer("before", context)

    async def after(self, context: HookContext) -> Any:
        return self.answer("after", context)


def echo(name: str = "echo", **fields: Any) -> Tool:
    async def execute(arguments: dict[str, Any], context: Any) -> dict[str, Any]:
        return arguments

    return Tool(name, "Gives what it is given.", NUMBER, execute, **fields)


def pipeline_of(*hooks: Any, tools: list[Tool] | None = None, **options: Any) -> Pipeline:
    return Pipeline(tools or [echo()], hooks=hooks, **options)


def reason(result: ToolResult) -> str:
    return result.failure.reason if result.failure else "ok"


async def test_a_hook_sees_a_call_before_and_after_it() -> None:
    hook = Says()

    result = await pipeline_of(hook).call("echo", '{"n": "5"}', call_id="1")

    assert hook.log == ["before 1", "after 1"]
    [before, after] = hook.contexts
    assert before is after
    assert (after.given, after.arguments, after.tool.name) == ('{"n": "5"}', {"n": 5}, "echo")
    assert after.result is not None
    assert after.result.text == result.text == '{"n":5}'
    assert (after.result.call_id, after.result.attempts) == ("1", 1)


@pytest.mark.parametrize(
    ("name", "given"), [("nope", {}), ("echo", {"n": "many"}), ("echo", "{"), ("echo", {})]
)
async def test_unknown_and_invalid_calls_reach_no_hook(name: str, given: Any) -> None:
    hook = Says()

    result = await pipeline_of(hook).call(name, given)

    assert result.is_error
    assert hook.log == []


async def test_a_call_that_was_cut_off_reaches_no_hook() -> None:
    hook = Says()

    await pipeline_of(hook).call("echo", '{"n": 1}', truncated=True)

    assert hook.log == []


async def test_hooks_are_asked_and_told_in_the_order_in_which_they_were_given() -> None:
    order: list[str] = []
    hooks = [
        Says(
            before=lambda _, name=name: order.append(f"before {name}"),
            after=lambda _, name=name: order.append(f"after {name}"),
        )
        for name in "ab"
    ]

    await pipeline_of(*hooks).call("echo", {"n": 1})

    assert order == ["before a", "before b", "after a", "after b"]


class OnlyBefore:
    def __init__(self) -> None:
        self.calls = 0

    def before(self, context: HookContext) -> None:
        self.calls += 1


class OnlyAfter:
    def __init__(self) -> None:
        self.calls = 0

    async def after(self, context: HookContext) -> None:
        self.calls += 1


async def test_either_half_of_a_hook_may_be_missing() -> None:
    before, after = OnlyBefore(), OnlyAfter()

    await pipeline_of(before, after).call("echo", {"n": 1})

    assert (before.calls, after.calls) == (1, 1)


class Nothing(Hook):
    """Overrides neither half."""


async def test_a_hook_that_does_nothing_changes_nothing() -> None:
    assert (await pipeline_of(Nothing()).call("echo", {"n": 1})).text == '{"n":1}'


@pytest.mark.parametrize("hook", [object(), None, Says, "before", lambda context: None])
def test_what_is_no_hook_is_told_with_its_place(hook: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"hooks\[1\]"):
        pipeline_of(Says(), hook)


def test_all_that_are_no_hooks_are_told_together() -> None:
    with pytest.raises(ConfigurationError) as raised:
        pipeline_of(object(), object())

    assert [fault.key for fault in raised.value.faults] == ["hooks[0]", "hooks[1]"]


# What a hook answers before.


async def test_a_denial_is_a_refusal_and_nothing_runs() -> None:
    hook = Says(before=Deny("not on Sundays"))
    pipeline = pipeline_of(hook)

    result = await pipeline.call("echo", {"n": 1})

    assert result.failure is not None
    assert (result.failure.code, result.failure.reason) == ("permission_denied", "denied_by_policy")
    assert result.failure.message == "echo was not run: not on Sundays"
    assert result.failure.layer == "hooks"
    assert hook.log == [f"before {result.call_id}"]
    [span] = pipeline.trace.spans()
    assert (span.attempt, span.outcome, span.reason) == (0, Outcome.DENIED, "denied_by_policy")
    assert span.verdicts == ("hooks:denied",)


async def test_a_denial_without_a_reason_says_so_much() -> None:
    result = await pipeline_of(Says(before=Deny())).call("echo", {"n": 1})

    assert "a rule of this system does not allow it" in result.text
    assert not result.terminate


async def test_a_denial_may_bring_an_answer() -> None:
    stored = ToolResult(content=(TextContent(text="stored"),), call_id="old", attempts=3)
    hook = Says(before=Deny(result=stored, terminate=True))

    result = await pipeline_of(hook).call("echo", {"n": 1}, call_id="1")

    assert (result.text, result.is_error, result.call_id, result.tool) == (
        "stored",
        False,
        "1",
        "echo",
    )
    assert (result.attempts, result.duration_ms, result.terminate) == (0, None, True)
    assert hook.log == ["before 1"]


async def test_a_denial_may_bring_an_error_of_its_own() -> None:
    answer = ToolResult(content=(TextContent(text="sold out\nsince noon"),), is_error=True)

    result = await pipeline_of(Says(before=Deny(result=answer))).call("echo", {"n": 1})

    assert result.failure is not None
    assert (result.failure.reason, result.failure.message) == ("denied_by_policy", "sold out")
    assert result.text == "sold out\nsince noon"


async def test_rewrites_chain_and_are_prepared_again() -> None:
    first = Says(before=Rewrite({"n": "7"}))
    second = Says(before=lambda context: Rewrite({"n": context.arguments["n"] + 1}))
    pipeline = pipeline_of(first, second)

    result = await pipeline.call("echo", {"n": 1}, call_id="1")

    assert result.text == '{"n":8}'
    assert result.call_id == "1"
    assert second.contexts[0].given == {"n": 1}
    [span] = pipeline.trace.spans()
    assert span.verdicts == ("hooks:rewritten", "hooks:rewritten")
    assert span.digest == pipeline.digester.of("echo", {"n": 8})


@pytest.mark.parametrize("arguments", [{"n": "many"}, {}, {"n": 1, "x": 2}])
async def test_an_invalid_rewrite_is_refused_like_invalid_arguments(arguments: Any) -> None:
    hook, later = Says(before=Rewrite(arguments)), Says()

    result = await pipeline_of(hook, later).call("echo", {"n": 1})

    assert result.failure is not None
    assert result.failure.code == "invalid_argument"
    assert result.failure.issues
    assert later.log == []
    assert hook.log == [f"before {result.call_id}"]


@pytest.mark.parametrize("arguments", [None, "n=1", [1]])
async def test_a_rewrite_to_what_is_no_object_fails_closed(arguments: Any) -> None:
    result = await pipeline_of(Says(before=Rewrite(arguments))).call("echo", {"n": 1})

    assert reason(result) == "gate_failed"


async def test_what_a_hook_does_to_the_arguments_it_is_shown_changes_nothing() -> None:
    def meddle(context: HookContext) -> None:
        context.arguments["n"] = "not a number"
        context.prepared.arguments.clear()

    rewritten = {"n": 3}
    hooks = [Says(before=meddle), Says(before=Rewrite(rewritten)), Says(before=meddle)]

    result = await pipeline_of(*hooks).call("echo", {"n": 1})

    assert result.text == '{"n":3}'
    assert rewritten == {"n": 3}


@pytest.mark.parametrize(
    "answer",
    [Deny("no"), Defer("ask"), Abort("no"), Stop("no"), RuntimeError("broken"), object(), True],
)
async def test_the_first_that_has_more_to_say_than_a_rewrite_ends_it(answer: Any) -> None:
    later = Says()

    result = await pipeline_of(Says(before=answer), later).call("echo", {"n": 1})

    assert result.is_error
    assert result.attempts == 0
    assert later.log == []


@pytest.mark.parametrize(
    "answer",
    [RuntimeError("the vault is at 10.0.0.1"), True, "no", Replace(content="x"), SystemExit(3)],
)
async def test_a_before_hook_that_fails_refuses_the_call(
    answer: Any, caplog: pytest.LogCaptureFixture
) -> None:
    result = await pipeline_of(Says(before=answer)).call("echo", {"n": 1})

    assert result.failure is not None
    assert (result.failure.code, result.failure.reason) == ("permission_denied", "gate_failed")
    assert "vault" not in result.text
    assert "Says" in caplog.text


async def test_a_hook_whose_own_work_was_cancelled_has_failed() -> None:
    async def before(context: HookContext) -> None:
        raise asyncio.CancelledError

    class Quits:
        pass

    hook = Quits()
    hook.before = before  # type: ignore[attr-defined]  # an instance may bring it as well

    assert reason(await pipeline_of(hook).call("echo", {"n": 1})) == "gate_failed"


async def test_the_callers_cancel_passes_through_a_hook() -> None:
    clock = FakeClock()

    class Slow:
        async def before(self, context: HookContext) -> None:
            await clock.sleep(60)

    pipeline = pipeline_of(Slow(), clock=clock)
    task = asyncio.create_task(pipeline.call("echo", {"n": 1}))
    await clock.settle()
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_hook_is_cut_short_too_after_an_attempt_that_outlived_the_deadline() -> None:
    clock = FakeClock()

    class Hangs:
        async def after(self, context: HookContext) -> None:
            await clock.sleep(100)

    async def lingering(arguments: dict[str, Any], context: Any) -> None:
        try:
            await clock.sleep(50)
        finally:
            await clock.sleep(0.5)

    tool = Tool(name="t", description="", input_schema={}, executor=lingering)
    policies = Policies(default=RunPolicy(deadline_s=5, grace_s=1))
    pipeline = pipeline_of(Hangs(), tools=[tool], clock=clock, policies=policies)

    result = await clock.run(pipeline.call("t"))

    assert (reason(result), clock.now()) == ("deadline_exceeded", 6)


async def test_the_deadline_of_a_call_cuts_a_hook_short() -> None:
    clock = FakeClock()

    class Slow:
        async def before(self, context: HookContext) -> None:
            await clock.sleep(60)

    pipeline = pipeline_of(Slow(), clock=clock)

    result = await clock.run(pipeline.call("echo", {"n": 1}, deadline_s=2))

    assert reason(result) == "deadline_exceeded"
    assert clock.now() == pytest.approx(2)


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("returns", [True, False])
async def test_a_hook_that_ignores_the_end_of_its_calls_time_is_ended(
    when: str, returns: bool
) -> None:
    clock, ran = FakeClock(), list[Any]()

    class Deaf(Hook):
        async def hears_nothing(self, _: HookContext) -> None:
            while True:
                try:
                    await clock.sleep(60)
                except asyncio.CancelledError:
                    if returns:
                        return

    async def runs(arguments: dict[str, Any], context: Any) -> str:
        ran.append(arguments)
        return "done"

    setattr(Deaf, when, Deaf.hears_nothing)
    pipeline = pipeline_of(Deaf(), tools=[Tool("echo", "", NUMBER, runs)], clock=clock)

    result = await clock.run(pipeline.call("echo", {"n": 1}, deadline_s=2))

    assert reason(result) == "deadline_exceeded"
    assert clock.now() == (2 if returns else 3)
    assert len(ran) == (when == "after")
    assert result.failure is not None
    assert result.failure.may_have_run is (when == "after")


@pytest.mark.parametrize("swallowed_by", ["a return", "an error"])
async def test_a_cancel_that_a_hook_swallows_still_keeps_the_tool_from_running(
    swallowed_by: str,
) -> None:
    clock, tool = FakeClock(), scripted("done", name="t")

    class Swallows(Hook):
        async def before(self, context: HookContext) -> None:
            try:
                await clock.sleep(60)
            except asyncio.CancelledError:
                if swallowed_by == "an error":
                    raise ValueError("its own") from None

    pipeline = pipeline_of(Swallows(), tools=[tool], clock=clock)
    task = asyncio.create_task(pipeline.call("t"))
    await clock.settle()
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert tool.executor.calls == []  # type: ignore[attr-defined]  # of scripted tools


# Deferring to a person.


class Person:
    """Answers, and keeps what they were asked."""

    def __init__(self, answer: Any = True) -> None:
        self.answer = answer
        self.asked: list[str] = []

    async def __call__(self, prepared: Any, decision: Decision) -> Any:
        self.asked.append(f"{prepared.tool.name} {prepared.arguments} {decision.reason}")
        return self.answer


async def test_a_deferred_call_runs_if_a_person_allows_it() -> None:
    person = Person()
    hooks = [Says(before=Rewrite({"n": 9})), Says(before=Defer("an odd amount"))]

    result = await pipeline_of(*hooks, confirm=person).call("echo", {"n": 1})

    assert result.text == '{"n":9}'
    assert person.asked == ["echo {'n': 9} an odd amount"]


@pytest.mark.parametrize(
    ("answer", "expected"), [(False, "approval_denied"), ("perhaps", "gate_failed")]
)
async def test_a_deferred_call_does_not_run_otherwise(answer: Any, expected: str) -> None:
    result = await pipeline_of(Says(before=Defer()), confirm=Person(answer)).call("echo", {"n": 1})

    assert reason(result) == expected


async def test_a_deferred_call_needs_an_approval_where_nobody_can_be_asked() -> None:
    result = await pipeline_of(Says(before=Defer("an odd amount"))).call("echo", {"n": 1})

    assert reason(result) == "approval_required"
    assert "an odd amount" in result.text


async def test_a_person_is_asked_once_even_if_the_risk_gate_would_ask_too() -> None:
    person = Person()
    tools = [echo(risk=Risk.HIGH)]

    result = await pipeline_of(Says(before=Defer()), confirm=person, tools=tools).call(
        "echo", {"n": 1}
    )

    assert reason(result) == "ok"
    assert len(person.asked) == 1


@pytest.mark.parametrize("mode", ["on", "off", "shadow"])
async def test_a_deferral_holds_whatever_the_mode_of_the_gate(mode: Any) -> None:
    person = Person(answer=False)
    policies = Policies(default=RunPolicy(gate_mode=mode))

    result = await pipeline_of(Says(before=Defer()), confirm=person, policies=policies).call(
        "echo", {"n": 1}
    )

    assert reason(result) == "approval_denied"


async def test_what_a_person_allowed_for_the_session_is_not_asked_again() -> None:
    person = Person(Answer.ALLOW_SESSION)
    pipeline = pipeline_of(Says(before=Defer()), confirm=person)
    session = Session("s")

    for n in range(3):
        await pipeline.call("echo", {"n": n}, session=session)

    assert len(person.asked) == 1
    decision = session.permissions.decision("echo")
    assert decision is not None
    assert decision.action is Action.ALLOW


# Ending a turn.


async def test_an_abort_at_the_gates_runs_nothing_of_the_turn() -> None:
    pipeline = pipeline_of(
        Says(before=lambda context: Abort("fire") if context.call_id == "2" else None)
    )
    told: list[Any] = []

    outcome = await pipeline.turn(
        [("echo", {"n": n}, str(n)) for n in (1, 2, 3)] + [("nope", {}, "4")], on_event=told.append
    )

    assert [reason(result) for result in outcome.results] == ["aborted"] * 4
    assert (outcome.status, outcome.reason) == (TurnStatus.ABORTED, "fire")
    assert [event.call_id for event in told if event.kind == "end"] == ["2", "1", "3", "4"]
    assert "fire" in outcome.results[0].text


async def test_a_stop_at_the_gates_runs_nothing_of_the_turn_and_ends_it_in_good_order() -> None:
    hook = Says(before=lambda context: Stop("enough") if context.call_id == "2" else None)

    outcome = await pipeline_of(hook).turn([("echo", {"n": n}, str(n)) for n in (1, 2)])

    assert [reason(result) for result in outcome.results] == ["not_executed"] * 2
    assert (outcome.status, outcome.reason) == (TurnStatus.TERMINATED, "enough")
    assert [result.terminate for result in outcome.results] == [False, True]


@pytest.mark.parametrize(
    ("answer", "status", "rest"),
    [
        (Stop("found"), TurnStatus.TERMINATED, "not_executed"),
        (Abort("found"), TurnStatus.ABORTED, "aborted"),
    ],
)
@pytest.mark.parametrize("execution", ["sequential", "parallel"])
async def test_after_a_tool_a_hook_ends_the_turn_for_what_has_not_begun(
    answer: Any, status: TurnStatus, rest: str, execution: Any
) -> None:
    clock = FakeClock()
    tools = [scripted(("sleep", 1, "done"), clock=clock, name="t")]
    hook = Says(after=lambda context: answer if context.call_id == "1" else None)
    pipeline = pipeline_of(hook, tools=tools, clock=clock, max_turn_width=1)

    outcome = await clock.run(
        pipeline.turn([("t", {"n": n}, str(n)) for n in range(4)], execution=execution)
    )

    assert [reason(result) for result in outcome.results][:2] == ["ok", "ok"]
    assert {reason(result) for result in outcome.results[3:]} == {rest}
    assert (outcome.status, outcome.reason) == (status, "found")


async def test_what_runs_when_a_turn_is_ended_is_waited_for_and_kept() -> None:
    clock = FakeClock()
    tools = [
        scripted(("sleep", 1, "quick"), clock=clock, name="quick"),
        scripted(("sleep", 5, "slow"), clock=clock, name="slow"),
    ]
    hook = Says(after=lambda context: Abort("over") if context.tool.name == "quick" else None)

    outcome = await clock.run(
        pipeline_of(hook, tools=tools, clock=clock).turn([("slow", {}), ("quick", {})])
    )

    assert [result.text for result in outcome.results] == ["slow", "quick"]
    assert outcome.status is TurnStatus.ABORTED


async def test_the_first_who_ends_a_turn_gives_the_reason() -> None:
    hooks = [Says(after=Stop("first")), Says(after=Abort("second"))]

    outcome = await pipeline_of(*hooks).turn([("echo", {"n": 1})])

    assert (outcome.status, outcome.reason) == (TurnStatus.TERMINATED, "first")


async def test_a_stop_asks_the_caller_of_a_single_call_to_end() -> None:
    before = await pipeline_of(Says(before=Stop("enough"))).call("echo", {"n": 1})
    after = await pipeline_of(Says(after=Stop("enough"))).call("echo", {"n": 1})

    assert (reason(before), before.terminate) == ("not_executed", True)
    assert (reason(after), after.terminate) == ("ok", True)


async def test_a_stop_after_one_tool_ends_the_turn_although_others_do_not_ask_for_it() -> None:
    hook = Says(after=lambda context: Stop("found") if context.tool.name == "find" else None)

    outcome = await pipeline_of(hook, tools=[echo("find"), echo("look")]).turn(
        [("find", {"n": 1}), ("look", {"n": 2})]
    )

    assert outcome.status is TurnStatus.TERMINATED


# What a hook answers after.


async def test_a_hook_that_stops_keeps_none_from_redacting() -> None:
    hooks = [
        Says(after=Stop("found", replace=Replace(details={"by": 1}))),
        Says(after=Replace(content="redacted")),
    ]

    result = await pipeline_of(*hooks).call("echo", {"n": 1})

    assert (result.text, result.details, result.terminate) == ("redacted", {"by": 1}, True)
    assert result.structured_content is None


async def test_the_next_hook_sees_what_the_one_before_made_of_the_result() -> None:
    last = Says()

    await pipeline_of(Says(after=Replace(content="changed")), last).call("echo", {"n": 1})

    assert last.contexts[-1].result is not None
    assert last.contexts[-1].result.text == "changed"


@pytest.mark.parametrize(
    "answer",
    [
        RuntimeError("redactor down"),
        True,
        Deny("late"),
        Replace(content=[{"type": "nonsense"}]),
        Replace(content=[7]),  # type: ignore[list-item]  # what a hook may get wrong
        Replace(metadata="text"),  # type: ignore[arg-type]  # as above
        Stop(replace=Replace(usage=3)),  # type: ignore[arg-type]  # as above
    ],
)
async def test_an_after_hook_that_fails_withholds_the_result(answer: Any) -> None:
    async def execute(arguments: dict[str, Any], context: Any) -> ToolResult:
        return ToolResult(
            content=(TextContent(text="the secret"),),
            structured_content={"s": 1},
            details={"s": 1},
            terminate=True,
        )

    tools = [Tool("t", "", {"type": "object"}, execute)]

    result = await pipeline_of(Says(after=answer), tools=tools).call("t")

    assert result.failure is not None
    assert (result.failure.code, result.failure.reason) == ("permission_denied", "gate_failed")
    assert result.failure.may_have_run
    assert "secret" not in result.render()
    assert "redactor" not in result.render()
    assert result.structured_content is result.details is None
    assert not result.terminate
    assert result.duration_ms is not None


async def test_after_hooks_are_told_of_failures_of_what_ran_and_of_nothing_else() -> None:
    clock = FakeClock()
    hook = Says()
    tools = [
        scripted(ValueError("no"), clock=clock, name="boom"),
        scripted(("sleep", 60), clock=clock, name="slow"),
        scripted("x", clock=clock, name="wild", risk=Risk.HIGH),
    ]
    pipeline = pipeline_of(
        hook, tools=tools, clock=clock, policies=Policies(default=RunPolicy(timeout_s=1))
    )

    for tool in tools:
        await clock.run(pipeline.call(tool.name, call_id=tool.name))

    assert hook.log == [
        "before boom",
        "after boom",
        "before slow",
        "after slow",
        "before wild",
    ]


async def test_a_recovered_failure_is_a_success_for_the_caller_and_an_attempt_that_failed() -> None:
    hook = Says(after=Replace(is_error=False, content="recovered"))
    tools = [scripted(ValueError("no"), clock=FakeClock(), name="t")]
    pipeline = pipeline_of(hook, tools=tools)

    result = await pipeline.call("t")

    assert (result.is_error, result.text, result.render()) == (False, "recovered", "recovered")
    [span] = pipeline.trace.spans()
    assert span.outcome is Outcome.FAILED
    assert pipeline.usage.snapshot()["t"].successes == 1


async def test_hooks_are_no_part_of_the_time_of_the_tool() -> None:
    clock = FakeClock()

    class Slow:
        async def before(self, context: HookContext) -> None:
            await clock.sleep(5)

        async def after(self, context: HookContext) -> None:
            await clock.sleep(7)

    tools = [scripted(("sleep", 1, "done"), clock=clock, name="t")]
    pipeline = pipeline_of(Slow(), tools=tools, clock=clock)

    result = await clock.run(pipeline.call("t"))

    assert result.duration_ms == pytest.approx(1000)
    [span] = pipeline.trace.spans()
    assert span.duration_ms == pytest.approx(1000)
    assert clock.now() == pytest.approx(13)


async def test_a_result_is_bounded_after_the_hooks() -> None:
    policies = Policies(default=RunPolicy(max_result_bytes=1024))
    hook = Says(after=Replace(content="x" * 9_000))

    result = await pipeline_of(hook, policies=policies).call("echo", {"n": 1})

    assert 0 < len(result.text) <= 1024


# Messages, and what is shared.


async def test_messages_come_out_of_a_turn_in_the_order_of_its_calls() -> None:
    clock = FakeClock()
    tools = [
        scripted(("sleep", 3, "slow"), clock=clock, name="slow"),
        scripted(("sleep", 1, "fast"), clock=clock, name="fast"),
    ]

    def inject(context: HookContext) -> None:
        context.inject(f"after {context.tool.name}")

    pipeline = pipeline_of(Says(after=inject), tools=tools, clock=clock)

    outcome = await clock.run(pipeline.turn([("slow", {}), ("nope", {}), ("fast", {})]))

    assert outcome.messages == ("after slow", "after fast")
    assert all(not result.metadata for result in outcome.results)


async def test_messages_of_a_single_call_are_in_its_metadata() -> None:
    hooks = [Says(before=lambda context: context.inject({"role": "user"})), Says()]

    result = await pipeline_of(*hooks).call("echo", {"n": 1})

    assert result.metadata == {"messages": ({"role": "user"},)}


async def test_messages_about_what_a_tool_calls_come_out_with_its_call() -> None:
    async def outer(arguments: dict[str, Any], context: Any) -> str:
        inner = await context.call_tool("echo", {"n": 1})
        assert inner.metadata is None
        return "done"

    def inject(context: HookContext) -> None:
        context.inject(f"{context.tool.name} {context.depth}")

    tools = [echo(), Tool("outer", "", {"type": "object"}, outer)]
    pipeline = pipeline_of(Says(before=inject), tools=tools)

    result = await pipeline.call("outer")
    outcome = await pipeline.turn([("outer", {})])

    assert result.metadata == {"messages": ("outer 0", "echo 1")}
    assert outcome.messages == ("outer 0", "echo 1")


async def test_a_hook_ends_the_turn_from_within_a_tool_that_calls_another() -> None:
    async def outer(arguments: dict[str, Any], context: Any) -> str:
        return (await context.call_tool("echo", {"n": 1})).render()  # type: ignore[no-any-return]  # text

    tools = [echo(), Tool("outer", "", {"type": "object"}, outer)]
    hook = Says(before=lambda context: Abort("deep") if context.depth else None)

    outcome = await pipeline_of(hook, tools=tools).turn(
        [("outer", {}), ("echo", {"n": 2})], execution="sequential"
    )

    assert "aborted" in outcome.results[0].text
    assert reason(outcome.results[1]) == "aborted"
    assert outcome.status is TurnStatus.ABORTED


async def test_each_hook_has_a_memory_of_its_own_for_each_call() -> None:
    seen: list[Any] = []

    def keep(context: HookContext) -> None:
        context.memory["n"] = context.arguments["n"]

    def tell(context: HookContext) -> None:
        seen.append(dict(context.memory))

    hooks = [Says(before=keep, after=tell), Says(after=tell)]

    await pipeline_of(*hooks).turn([("echo", {"n": n}) for n in range(2)])

    assert seen == [{"n": 0}, {}, {"n": 1}, {}]


async def test_a_loop_is_refused_before_any_hook_and_a_rewrite_hides_none() -> None:
    numbers = iter(range(100))
    hook = Says(before=lambda _: Rewrite({"n": next(numbers)}), after=Replace(content="same"))
    pipeline = pipeline_of(hook, loop=LoopPolicy(threshold=3))

    results = [await pipeline.call("echo", {"n": 1}) for _ in range(5)]

    assert [reason(result) for result in results] == ["ok"] * 3 + ["loop_detected"] * 2
    assert len(hook.log) == 6


async def test_without_hooks_a_chain_is_what_it_was() -> None:
    plain, hooked = Pipeline([echo()]), pipeline_of(Says())

    assert plain._routes["echo"].handle.__qualname__ != hooked._routes["echo"].handle.__qualname__
    assert "_Hooked" not in plain._routes["echo"].handle.__qualname__


# Vectors.


async def test_hooks_are_counted_once_per_call_and_spans_once_per_attempt() -> None:
    vector = VECTORS["rt-17"]
    clock, hook = FakeClock(), Says()
    expected = vector["expect"]
    policy = RunPolicy(
        timeout_s=1,
        max_retries=vector["given"]["policy"]["retries"],
        rate=f"{vector['given']['policy']['quota']}/minute",
    )
    tools = [
        scripted(
            ("sleep", 5), "value", clock=clock, name="t", annotations=Annotations.for_reading()
        )
    ]
    pipeline = pipeline_of(hook, tools=tools, clock=clock, policies=Policies(default=policy))

    await clock.run(pipeline.call("t", call_id="1"))

    per_call, per_attempt = expected["per_call"], expected["per_attempt"]
    assert hook.log.count("before 1") == per_call["before_hooks"]
    assert hook.log.count("after 1") == per_call["after_hooks"]
    usage = pipeline.usage.snapshot()["t"]
    assert (usage.invocations, usage.successes, usage.failures) == (
        per_call["usage_invocations"],
        per_call["usage_successes"],
        per_call["usage_failures"],
    )
    spans = sorted(pipeline.trace.spans(), key=lambda span: span.attempt)
    assert [span.attempt for span in spans] == per_attempt["span_attempts"]
    assert [span.outcome.value for span in spans] == per_attempt["span_outcomes"]


async def test_a_rewrite_is_checked_and_a_blocked_call_is_not_run() -> None:
    vector = VECTORS["pl-05"]
    schema = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
    answers = {"hook_drops": Rewrite({}), "hook_blocks": Deny("no"), "gate_denies": None}
    results, befores, afters = [], [], []

    for step in vector["steps"]:
        [word] = step
        hook = Says(before=answers[word])
        tool = scripted("x", clock=FakeClock(), name="t", input_schema=schema)
        session = Session("s")
        if word == "gate_denies":
            session.permissions.deny("t")
        pipeline = pipeline_of(hook, tools=[tool])
        result = await pipeline.call("t", {"path": "a"}, session=session, call_id="1")
        assert result.failure is not None
        results.append(result.failure.code.value)
        befores.append(hook.log.count("before 1"))
        afters.append(hook.log.count("after 1"))

    assert results == vector["expect"]["results"]
    # The third differs: hooks stand outside of the gates, and may spare them the call.
    assert befores == [*vector["expect"]["hook_calls"][:2], 1]
    assert afters == vector["expect"]["after_hook_calls"]


async def test_an_approval_does_not_cover_what_a_hook_makes_of_the_arguments() -> None:
    person = Person(answer=False)
    approving = Says(before=lambda context: context._call.note("risk_gate:approved"))
    pipeline = pipeline_of(
        approving, Says(before=Rewrite({"n": 2})), confirm=person, tools=[echo(risk=Risk.HIGH)]
    )

    result = await pipeline.call("echo", {"n": 1})

    assert reason(result) == "approval_denied"
    assert len(person.asked) == 1


CARD = "card 4111 1111 1111 1111"


class Redacts(Hook):
    """Keeps card numbers from all but the session `office`."""

    def after(self, context: HookContext) -> Replace | None:
        if context.session.id == "office":
            return None
        said = "" if context.result is None else context.result.text
        return Replace(content=said.replace("4111 1111 1111 1111", "…"))


def card(answer: Any = CARD, **fields: Any) -> Tool:
    async def execute(arguments: dict[str, Any], context: Any) -> Any:
        await asyncio.sleep(0)
        if isinstance(answer, BaseException):
            raise answer
        return answer

    return Tool("card", "", {"type": "object"}, execute, **fields)


def cached(scope: Any = "session") -> Policies:
    return Policies(RunPolicy(cache=CachePolicy(scope=scope)))


@pytest.mark.parametrize("answer", [CARD, ToolFailed(f"no money on {CARD}")])
async def test_what_the_ledger_gives_again_passes_the_after_hooks(
    answer: Any, tmp_path: Path
) -> None:
    address = f"sqlite:///{tmp_path}/state.db"
    async with pipeline_of(Redacts(), tools=[card(answer)], state=address) as pipeline:
        results = [await pipeline.call("card", idempotency_key="k") for _ in range(2)]

    assert [result.attempts for result in results] == [1, 0]
    assert results[0].text == results[1].text
    for result in results:
        assert "card …" in result.render()
        assert "4111" not in repr(result)


async def test_what_the_cache_gives_again_passes_the_after_hooks_of_each_call() -> None:
    tools = [card(annotations=Annotations.for_reading())]
    pipeline = pipeline_of(Redacts(), tools=tools, policies=cached("all"))

    results = [
        await pipeline.call("card", session=Session(name)) for name in ("office", "shop", "office")
    ]

    assert [result.text for result in results] == [CARD, "card …", CARD]
    assert [result.attempts for result in results] == [1, 0, 0]


async def test_what_an_equal_call_beside_it_brings_passes_the_after_hooks() -> None:
    tools = [card(annotations=Annotations.for_reading())]
    pipeline = pipeline_of(Redacts(), tools=tools, policies=cached())

    results = await asyncio.gather(*(pipeline.call("card") for _ in range(2)))

    assert [result.text for result in results] == ["card …", "card …"]
    assert sum(result.attempts for result in results) == 1


async def test_what_a_fallback_answers_passes_the_after_hooks() -> None:
    hook = Says(after=Replace(content="redacted"))
    policy = RunPolicy(rate="1/hour", fallback=FallbackPolicy(text=CARD))
    pipeline = pipeline_of(hook, tools=[card()], policies=Policies(policy))

    results = [await pipeline.call("card") for _ in range(2)]

    assert [result.text for result in results] == ["redacted", "redacted"]
    assert [result.attempts for result in results] == [1, 0]


async def test_a_hooks_own_answer_is_shown_to_no_after_hook() -> None:
    hook = Says(before=Deny("", result=ToolResult.of_text("instead")))

    result = await pipeline_of(hook).call("echo", {"n": 1}, call_id="c")

    assert result.text == "instead"
    assert hook.log == ["before c"]


async def test_an_answer_given_again_that_is_withheld_says_that_the_tool_was_run(
    tmp_path: Path,
) -> None:
    address = f"sqlite:///{tmp_path}/state.db"
    hook = Says(after=ValueError("x"))
    async with pipeline_of(hook, tools=[card()], state=address) as pipeline:
        results = [await pipeline.call("card", idempotency_key="k") for _ in range(2)]

    assert [result.failure and result.failure.may_have_run for result in results] == [True, True]
    assert results[0].text == results[1].text


async def test_a_fixed_answer_that_is_withheld_says_that_nothing_was_run() -> None:
    hook = Says(after=ValueError("x"))
    policy = RunPolicy(rate="1/hour", fallback=FallbackPolicy(text="none"))
    pipeline = pipeline_of(hook, tools=[card()], policies=Policies(policy))

    await pipeline.call("card")
    result = await pipeline.call("card")

    assert result.failure is not None
    assert result.failure.may_have_run is False
    assert "was answered" in result.failure.message


@pytest.mark.parametrize("deadline_s", [None, 60])
@pytest.mark.parametrize("half", ["before", "after"])
async def test_a_hook_that_raises_generator_exit_has_failed(
    half: str, deadline_s: float | None
) -> None:
    def exits(self: Any, context: HookContext) -> None:
        raise GeneratorExit

    hook = type("Exits", (Hook,), {half: exits})()

    result = await pipeline_of(hook).call("echo", {"n": 1}, deadline_s=deadline_s)

    assert reason(result) == "gate_failed"
