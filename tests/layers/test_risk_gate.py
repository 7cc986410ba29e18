"""Who is asked, when, and what the answers mean."""

from __future__ import annotations

import asyncio
import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from seawall.contract.annotations import Annotations, Risk
from seawall.contract.decision import Action, Decision, Prepared
from seawall.contract.errors import ConfigurationError
from seawall.contract.failure import FailureCode
from seawall.contract.policy import RunPolicy
from seawall.layers.retry import Retry
from seawall.layers.risk_gate import APPROVED, Gate, RiskGate, verdict
from seawall.layers.risk_policies import AllowlistPolicy, RiskPolicy
from seawall.layers.risk_questions import Answer
from seawall.pipeline.layer import compose
from seawall.testing import FakeClock, LayerBench, scripted

if TYPE_CHECKING:
    from seawall.pipeline.invocation import Handler, Invocation

TESTS = Path(__file__).parents[1]
VECTORS = {
    case["id"]: case
    for case in json.loads((TESTS / "vectors" / "risk_gate.json").read_text())["cases"]
}


class Odd(BaseException):
    """What no handler of `Exception` catches."""


class Person:
    """Gives one answer a question, the last one for ever; an exception is raised."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[Prepared, Decision]] = []

    def __call__(self, prepared: Prepared, decision: Decision) -> Any:
        answer = self.answers[min(len(self.asked), len(self.answers) - 1)]
        self.asked.append((prepared, decision))
        if isinstance(answer, BaseException):
            raise answer
        return answer


class Own:
    """A policy that decides as it is told."""

    def __init__(self, said: Any) -> None:
        self.said = said
        self.seen: list[Prepared] = []

    def decide(self, prepared: Prepared) -> Decision:
        self.seen.append(prepared)
        if isinstance(self.said, BaseException):
            raise self.said
        said: Decision = self.said
        return said


def bench_of(
    confirm: Any = None,
    *,
    policy: Any = None,
    mode: Any = "on",
    risk: Risk = Risk.HIGH,
    **tool: Any,
) -> LayerBench:
    clock = FakeClock()
    return LayerBench(
        RunPolicy(gate_mode=mode),
        tool=scripted("done", clock=clock, name="tool", risk=risk, **tool),
        clock=clock,
        parts={Gate: Gate(policy or RiskPolicy(), confirm)},
    )


def gated(bench: LayerBench) -> Handler:
    gate = RiskGate.for_tool(bench.context)
    assert gate is not None
    return compose([gate], bench.execute())


async def reason_of(bench: LayerBench, call: Invocation | None = None) -> str:
    """Why the call was refused; empty if it ran."""
    result = await bench.clock.run(gated(bench)(call or bench.invocation()))
    if result.failure is None:
        assert result.text == "done"
        return ""
    assert result.failure.layer == "risk_gate"
    return result.failure.reason


def invalid(bench: LayerBench) -> Invocation:
    call = bench.invocation()
    call.prepare = lambda call: call.refuse(FailureCode.INVALID_ARGUMENT, "no good")
    return call


# Vectors.


async def test_vector_rk_02_a_refusal_sticks_for_the_session() -> None:
    expected = VECTORS["rk-02"]["expect"]
    person = Person(Answer.DENY)
    bench = bench_of(person)
    handler = gated(bench)

    results = await bench.calls(handler, [{}, {}])

    assert [r.failure and r.failure.code for r in results] == [FailureCode.PERMISSION_DENIED] * 2
    assert [r.failure and r.failure.reason for r in results] == ["approval_denied"] * 2
    assert len(person.asked) == expected["prompts"]


@pytest.mark.parametrize(
    ("risk", "strict", "self_gated", "prompts"),
    [
        (Risk.LOW, False, False, VECTORS["rk-03"]["expect"]["prompts"][0]),
        (Risk.MEDIUM, False, False, VECTORS["rk-03"]["expect"]["prompts"][1]),
        (Risk.MEDIUM, True, False, VECTORS["rk-03"]["expect"]["prompts"][2]),
        (Risk.HIGH, False, True, VECTORS["rk-03"]["expect"]["prompts"][3]),
    ],
)
async def test_vector_rk_03_who_is_asked_follows_risk_and_strictness(
    risk: Risk, *, strict: bool, self_gated: bool, prompts: int
) -> None:
    person = Person(Answer.ALLOW_ONCE)
    bench = bench_of(person, policy=RiskPolicy(strict=strict), risk=risk, self_gated=self_gated)

    assert await reason_of(bench) == ""
    assert len(person.asked) == prompts


async def test_vector_rk_04_settings_force_either_way_and_a_reset_forgets() -> None:
    person = Person(Answer.DENY)
    bench = bench_of(person)
    permissions = bench.session.permissions

    permissions.allow("tool")
    assert await reason_of(bench) == ""
    permissions.deny("tool")
    assert await reason_of(bench) == "approval_denied"
    permissions.reset()
    assert permissions.decision("tool") is None

    assert len(person.asked) == VECTORS["rk-04"]["expect"]["prompts"]


async def test_vector_rk_07_consent_belongs_to_the_call_and_not_to_an_attempt() -> None:
    person = Person(Answer.ALLOW_ONCE)
    bench = bench_of(person, annotations=Annotations.for_reading())
    bench.policy = RunPolicy(max_retries=2, base_delay_s=1)
    execute = bench.answering(OSError("late"), OSError("late"), "value")
    bench.tool = msgspec.structs.replace(bench.tool, risk=Risk.HIGH)
    gate, retry = RiskGate.for_tool(bench.context), Retry.for_tool(bench.context)
    assert gate is not None
    assert retry is not None

    result = await bench.call(compose([gate, retry], execute))

    expected = VECTORS["rk-07"]["expect"]
    assert result.text == "value"
    assert result.attempts == expected["tool_runs"]
    assert len(person.asked) == expected["prompts"]


# What the session was told.


async def test_the_session_may_deny_a_harmless_tool() -> None:
    bench = bench_of(risk=Risk.LOW)
    bench.session.permissions.deny("tool", "not today")

    failure = (await bench.call(gated(bench))).failure

    assert failure is not None
    assert failure.reason == "approval_denied"
    assert failure.message == "tool was not run: not today"


async def test_the_session_may_deny_a_tool_that_asks_by_itself() -> None:
    bench = bench_of(self_gated=True)
    bench.session.permissions.deny("tool")

    assert await reason_of(bench) == "approval_denied"


async def test_an_allowance_of_the_session_lifts_no_denial_by_the_policy() -> None:
    bench = bench_of(policy=AllowlistPolicy(deny=["tool"]))
    bench.session.permissions.allow("tool")

    assert await reason_of(bench) == "denied_by_policy"


async def test_an_allowance_of_the_session_spares_the_question_of_a_policy_of_ones_own() -> None:
    policy = Own(Decision(Action.ASK, "why not"))
    bench = bench_of(policy=policy)
    bench.session.permissions.allow("tool")

    assert await reason_of(bench) == ""
    assert len(policy.seen) == 1


async def test_a_denial_by_the_session_asks_nobody_and_looks_at_no_arguments() -> None:
    policy = Own(Decision(Action.ALLOW, "fine"))
    bench = bench_of(policy=policy)
    bench.session.permissions.deny("tool")
    call = bench.invocation()

    assert await reason_of(bench, call) == "approval_denied"
    assert policy.seen == []
    assert call.unprepared


# What the policy says.


@pytest.mark.parametrize(
    ("action", "reason"),
    [
        (Action.ALLOW, ""),
        ("allow", ""),
        (Action.DENY, "denied_by_policy"),
        ("deny", "denied_by_policy"),
    ],
)
async def test_a_policy_of_ones_own_allows_or_denies(action: Any, reason: str) -> None:
    assert await reason_of(bench_of(policy=Own(Decision(action, "because")))) == reason


async def test_a_policy_sees_the_prepared_arguments() -> None:
    policy = Own(Decision(Action.ALLOW, "fine"))
    bench = bench_of(policy=policy)

    await bench.call(gated(bench), {"path": "/a"})

    (seen,) = policy.seen
    assert seen.arguments == {"path": "/a"}
    assert (seen.tool.name, seen.session_id, seen.caller) == ("tool", "s1", "c1")


async def test_a_subclass_of_a_policy_is_asked_for_each_call() -> None:
    class Careful(RiskPolicy, frozen=True):
        def decide(self, prepared: Prepared) -> Decision:
            return Decision(Action.DENY, f"not {prepared.arguments['path']}")

    bench = bench_of(policy=Careful(), risk=Risk.LOW)

    failure = (await bench.call(gated(bench), {"path": "/a"})).failure

    assert failure is not None
    assert failure.message == "tool was not run: not /a"


@pytest.mark.parametrize(
    "said",
    [
        ValueError("broken"),
        Odd(),
        SystemExit(1),
        GeneratorExit(),
        None,
        True,
        "allow",
        Decision("maybe", "who knows"),  # type: ignore[arg-type]  # the mistake under test
    ],
)
async def test_a_policy_that_fails_refuses_the_call(said: Any) -> None:
    person = Person(Answer.ALLOW_ONCE)
    bench = bench_of(person, policy=Own(said))

    assert await reason_of(bench) == "gate_failed"
    assert person.asked == []


async def test_what_a_policy_raises_does_not_reach_the_model() -> None:
    bench = bench_of(policy=Own(ValueError("password=hunter2")))

    result = await bench.call(gated(bench))

    assert "hunter2" not in result.render()


async def test_a_long_reason_is_cut() -> None:
    bench = bench_of(policy=Own(Decision(Action.DENY, "x" * 100_000)))

    result = await bench.call(gated(bench))

    assert len(result.render()) < 1_000


# Asking.


async def test_nobody_is_asked_about_arguments_that_cannot_run() -> None:
    person = Person(Answer.ALLOW_ONCE)
    for policy in (RiskPolicy(), Own(Decision(Action.ASK, "why"))):
        bench = bench_of(person, policy=policy)
        call = invalid(bench)

        result = await gated(bench)(call)

        assert result is call.refusal
    assert person.asked == []


async def test_whoever_is_asked_sees_the_call_and_why() -> None:
    person = Person(Answer.ALLOW_ONCE)
    bench = bench_of(person)

    await bench.call(gated(bench), {"path": "/a"})

    ((prepared, decision),) = person.asked
    assert prepared.arguments == {"path": "/a"}
    assert prepared.call_id == "1"
    assert decision == Decision(Action.ASK, "high risk")
    assert bench.events == [("risk_gate", "asked")]


async def test_without_anybody_to_ask_the_call_is_refused_with_a_way_on() -> None:
    bench = bench_of()

    failure = (await bench.call(gated(bench))).failure

    assert failure is not None
    assert failure.code is FailureCode.PERMISSION_DENIED
    assert failure.reason == "approval_required"
    assert "high risk" in failure.message
    assert failure.guidance.startswith("Do not repeat this call. Tell the user")
    assert failure.may_have_run is False


@pytest.mark.parametrize(
    ("answer", "reason", "standing"),
    [
        (Answer.ALLOW_ONCE, "", None),
        (Answer.ALLOW_SESSION, "", Action.ALLOW),
        (Answer.DENY, "approval_denied", Action.DENY),
        (Answer.DENY_ONCE, "approval_denied", None),
        (ValueError("broken"), "gate_failed", None),
        (Odd(), "gate_failed", None),
        (GeneratorExit(), "gate_failed", None),
        ("nonsense", "gate_failed", None),
    ],
)
async def test_an_answer_counts_for_the_call_and_is_remembered_if_it_says_so(
    answer: Any, reason: str, standing: Action | None
) -> None:
    bench = bench_of(Person(answer))

    assert await reason_of(bench) == reason

    remembered = bench.session.permissions.decision("tool")
    assert (remembered and remembered.action) == standing


async def test_an_answer_that_does_not_come_refuses_this_call_alone() -> None:
    bench = bench_of()

    async def nobody(prepared: Prepared, decision: Decision) -> None:
        await asyncio.get_running_loop().create_future()

    bench.parts[Gate] = Gate(RiskPolicy(), nobody, answer_within_s=300)

    assert await reason_of(bench) == "approval_expired"
    assert bench.clock.now() == 300
    assert bench.session.permissions.decision("tool") is None


async def test_the_deadline_of_a_call_may_end_the_question_earlier() -> None:
    bench = bench_of()

    async def nobody(prepared: Prepared, decision: Decision) -> None:
        await asyncio.get_running_loop().create_future()

    bench.parts[Gate] = Gate(RiskPolicy(), nobody)
    call = bench.invocation(deadline=10.0)

    result = await bench.clock.run(gated(bench)(call))

    assert result.failure is not None
    assert result.failure.code is FailureCode.TIMEOUT
    assert result.failure.reason == "deadline_exceeded"
    assert bench.clock.now() == 10


async def test_nobody_is_asked_when_the_deadline_is_over() -> None:
    person = Person(Answer.ALLOW_ONCE)
    bench = bench_of(person)

    assert await reason_of(bench, bench.invocation(deadline=0.0)) == "deadline_exceeded"
    assert person.asked == []


async def test_a_call_that_was_approved_before_is_not_asked_about_again() -> None:
    person = Person(Answer.DENY)
    bench = bench_of(person)
    call = bench.invocation()
    call.note(APPROVED)

    assert await reason_of(bench, call) == ""
    assert person.asked == []


async def test_a_call_that_was_approved_before_is_still_denied_by_session_and_policy() -> None:
    bench = bench_of(policy=AllowlistPolicy())
    call = bench.invocation()
    call.note(APPROVED)
    assert await reason_of(bench, call) == "denied_by_policy"

    bench.session.permissions.deny("tool")
    assert await reason_of(bench, call) == "approval_denied"


# Modes.


@pytest.mark.parametrize(
    ("fields", "deny", "reason"),
    [
        ({}, False, "approval_required"),
        ({"confirm": Person(Answer.DENY)}, False, "approval_required"),
        ({"policy": AllowlistPolicy()}, False, "denied_by_policy"),
        ({"policy": Own(ValueError())}, False, "gate_failed"),
        ({"risk": Risk.LOW}, True, "approval_denied"),
    ],
)
async def test_shadow_asks_nobody_notes_the_refusal_and_lets_the_call_through(
    fields: dict[str, Any], *, deny: bool, reason: str
) -> None:
    bench = bench_of(mode="shadow", **fields)
    if deny:
        bench.session.permissions.deny("tool")
    call = bench.invocation()

    assert await reason_of(bench, call) == ""
    assert call.verdicts == (f"risk_gate:would_refuse:{reason}",)
    assert bench.events == [("risk_gate", "shadow_refused")]
    assert not fields.get("confirm") or fields["confirm"].asked == []


async def test_shadow_leaves_arguments_that_cannot_run_to_the_check() -> None:
    bench = bench_of(mode="shadow")
    reached = []

    async def proceed(call: Invocation) -> Any:
        reached.append(call)
        return call.prepared()

    gate = RiskGate.for_tool(bench.context)
    assert gate is not None
    call = invalid(bench)

    result = await gate(call, proceed)

    assert reached == [call]
    assert result is call.refusal
    assert call.verdicts == ()


async def test_shadow_notes_nothing_about_a_call_that_would_run() -> None:
    bench = bench_of(mode="shadow", risk=Risk.LOW)
    call = bench.invocation()

    assert await reason_of(bench, call) == ""
    assert call.verdicts == ()


def test_the_gate_is_there_for_every_tool_unless_switched_off() -> None:
    assert RiskGate.for_tool(LayerBench().context) is not None
    assert RiskGate.for_tool(LayerBench(RunPolicy(gate_mode="off")).context) is None


async def test_a_high_risk_needs_approval_where_nothing_was_set_up() -> None:
    bench = LayerBench(tool=scripted(name="tool", risk=Risk.HIGH))

    assert await reason_of(bench) == "approval_required"


# Settings.


async def async_decide(prepared: Prepared) -> Decision:
    return Decision(Action.ALLOW, "fine")


def test_a_gate_that_cannot_work_is_refused_with_all_that_is_wrong() -> None:
    policy = Own(None)
    policy.decide = async_decide  # type: ignore[method-assign, assignment]  # the mistake under test

    with pytest.raises(ConfigurationError) as error:
        Gate(policy, "ask", 0)  # type: ignore[arg-type]  # the mistake under test

    assert [fault.key for fault in error.value.faults] == ["policy", "confirm", "answer_within_s"]


@pytest.mark.parametrize("within_s", [0, -1, math.nan, math.inf])
def test_a_time_to_answer_that_means_nothing_is_refused(within_s: float) -> None:
    with pytest.raises(ConfigurationError, match="answer_within_s: must be above 0"):
        Gate(answer_within_s=within_s)


# What the gate would make of a call.


@pytest.mark.parametrize(
    ("policy", "standing", "self_gated", "action"),
    [
        (RiskPolicy(), None, False, Action.ASK),
        (RiskPolicy(), None, True, Action.ALLOW),
        (RiskPolicy(), "allow", False, Action.ALLOW),
        (RiskPolicy(), "deny", False, Action.DENY),
        (AllowlistPolicy(), "allow", False, Action.DENY),
        (AllowlistPolicy(allow=["tool"]), None, False, Action.ALLOW),
        (Own(ValueError()), None, False, None),
    ],
)
def test_the_verdict_before_asking(
    policy: Any, standing: str | None, action: Action | None, *, self_gated: bool
) -> None:
    bench = bench_of(self_gated=self_gated)
    if standing is not None:
        getattr(bench.session.permissions, standing)("tool")
    prepared = Prepared(tool=bench.tool, arguments={})

    said = verdict(Gate(policy), prepared, bench.session.permissions)

    assert (said and said.action) == action


# A tool that took another's name.

OTHERS: list[dict[str, Any]] = [
    {"description": "something else"},
    {"input_schema": {"type": "object", "required": ["path"]}},
    {"annotations": Annotations.for_destroying()},
    {"annotations": Annotations(sensitive=True)},
    {"risk": None, "annotations": Annotations(destructive=True)},
]


@pytest.mark.parametrize("changed", OTHERS)
async def test_an_answer_for_the_session_does_not_hold_for_another_definition(
    changed: dict[str, Any],
) -> None:
    person = Person(Answer.ALLOW_SESSION)
    bench = bench_of(person)
    first = bench.tool
    assert await reason_of(bench) == ""

    bench.tool = other = msgspec.structs.replace(first, **changed)
    assert await reason_of(bench) == ""
    assert len(person.asked) == 2

    for tool in (first, other):
        bench.tool = tool
        assert await reason_of(bench) == ""
    assert len(person.asked) == 2


async def test_an_answer_for_the_session_holds_for_the_same_definition_made_anew() -> None:
    person = Person(Answer.ALLOW_SESSION)
    bench = bench_of(person)
    assert await reason_of(bench) == ""

    bench.tool = scripted("done", clock=bench.clock, name="tool", risk=Risk.HIGH)

    assert await reason_of(bench) == ""
    assert len(person.asked) == 1


async def test_a_definition_that_is_no_json_is_equal_to_itself_alone() -> None:
    person = Person(Answer.ALLOW_SESSION)
    bench = bench_of(person)
    bench.tool = msgspec.structs.replace(bench.tool, input_schema={"default": object()})
    for _ in range(2):
        assert await reason_of(bench) == ""
    assert len(person.asked) == 1

    bench.tool = msgspec.structs.replace(bench.tool)

    assert await reason_of(bench) == ""
    assert len(person.asked) == 2


@pytest.mark.parametrize("asked_before", [False, True])
async def test_what_the_program_allows_holds_for_the_name(*, asked_before: bool) -> None:
    person = Person(Answer.ALLOW_SESSION)
    bench = bench_of(person)
    if asked_before:
        assert await reason_of(bench) == ""
    bench.session.permissions.allow("tool")

    bench.tool = msgspec.structs.replace(bench.tool, description="something else")

    assert await reason_of(bench) == ""
    assert len(person.asked) == asked_before


async def test_a_reset_forgets_an_answer_for_all_definitions() -> None:
    person = Person(Answer.ALLOW_SESSION)
    bench = bench_of(person)
    first = bench.tool
    other = msgspec.structs.replace(first, description="something else")
    assert await reason_of(bench) == ""

    bench.session.permissions.reset()
    bench.tool = other
    assert await reason_of(bench) == ""
    bench.tool = first
    assert await reason_of(bench) == ""

    assert len(person.asked) == 3


async def test_the_verdict_before_asking_looks_at_the_definition() -> None:
    bench = bench_of(Person(Answer.ALLOW_SESSION))
    assert await reason_of(bench) == ""
    other = msgspec.structs.replace(bench.tool, description="something else")
    session = bench.session

    said = [
        verdict(Gate(), Prepared(tool=tool, arguments={}), session.permissions, session.memory)
        for tool in (bench.tool, other)
    ]

    assert [one and one.action for one in said] == [Action.ALLOW, Action.ASK]
