"""Steps in a row: order, references, what is found out beforehand, time, and the model's tool."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from seawall.contract.annotations import Annotations, Risk
from seawall.contract.content import ImageContent
from seawall.contract.failure import Failure, FailureCode, ToolFailed
from seawall.contract.hook import Abort, Stop
from seawall.contract.policy import RunPolicy
from seawall.contract.result import ToolResult
from seawall.contract.span import Outcome
from seawall.contract.turn import TurnStatus
from seawall.layers.risk_policies import AllowlistPolicy
from seawall.layers.risk_questions import Answer
from seawall.orchestration.batch import MAX_STEPS, NOT_EXECUTED, BatchOutcome, BatchRunner
from seawall.orchestration.pipeline import Pipeline
from seawall.pipeline.session import Session
from seawall.policy.model import Policies
from seawall.policy.settings import RiskSettings
from seawall.testing import FakeClock, scripted

if TYPE_CHECKING:
    from seawall.contract.decision import Decision, Prepared
    from seawall.contract.tool import Tool
    from seawall.orchestration.hooks import HookContext
    from seawall.pipeline.context import ToolContext

TESTS = Path(__file__).parents[1]
VECTORS = {
    one["id"]: one for one in json.loads((TESTS / "vectors" / "batch.json").read_text())["cases"]
}


class Person:
    """Answers as told, and remembers what was asked."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers) or [True]
        self.asked: list[tuple[str, dict[str, Any], str]] = []

    def __call__(self, prepared: Prepared, decision: Decision) -> Any:
        self.asked.append((prepared.tool.name, prepared.arguments, decision.reason))
        return self.answers[min(len(self.asked), len(self.answers)) - 1]


class Bench:
    """A pipeline on a fake clock with some tools, and its batches."""

    def __init__(self, *tools: Tool, **options: Any) -> None:
        self.clock: FakeClock = options.pop("clock", None) or FakeClock()
        options.setdefault("policies", Policies(default=RunPolicy(timeout_s=900)))
        self.pipeline = Pipeline(list(tools), clock=self.clock, **options)
        self.runner = BatchRunner(self.pipeline)
        self.pipeline.registry.register(self.runner.tool)

    async def run(self, steps: Any, **options: Any) -> BatchOutcome:
        return await self.clock.run(self.runner.run(steps, **options))

    async def call(self, **arguments: Any) -> ToolResult:
        return await self.clock.run(self.pipeline.call("tool_batch_run", arguments))

    def spans(self) -> list[tuple[str, str, str]]:
        """Tool, outcome and reason, oldest first."""
        spans = reversed(self.pipeline.trace.spans())
        return [(span.tool, span.outcome.value, span.reason) for span in spans]


def tool_of(name: str, *answers: Any, **fields: Any) -> Tool:
    return scripted(*(answers or (name.upper(),)), name=name, **fields)


def seen_by(tool: Tool) -> list[dict[str, Any]]:
    executor: Any = tool.executor
    calls: list[dict[str, Any]] = executor.calls
    return calls


# Vectors.


def test_every_vector_is_played() -> None:
    assert set(VECTORS) == {
        "bt-01", "bt-03", "bt-06", "bt-07", "bt-08", "bt-10", "bt-12"
    }  # fmt: skip


async def test_steps_run_one_after_another_as_the_vector_says() -> None:
    vector = VECTORS["bt-01"]
    (names,) = (step["run"] for step in vector["steps"])
    answers = vector["given"]["tool_results"]
    bench = Bench(*(tool_of(name, said) for name, said in zip(names, answers, strict=True)))

    outcome = await bench.run([{"tool": name} for name in names])

    assert list(outcome.statuses) == vector["expect"]["statuses"]
    assert outcome.halted_at is vector["expect"]["halted_at"]
    assert outcome.complete is vector["expect"]["complete"]
    assert [span[0] for span in bench.spans()] == names


async def test_a_reference_inside_a_template_is_filled_in_as_the_vector_says() -> None:
    vector = VECTORS["bt-03"]
    _, inside = vector["steps"]
    b = tool_of("b")
    bench = Bench(tool_of("a", vector["given"]["tool_results"][0]), b)

    await bench.run(inside["run"])

    assert seen_by(b) == [json.loads(vector["expect"]["args_seen_by_b"][1])]


async def test_what_a_step_gave_cannot_be_all_the_arguments_against_the_vector() -> None:
    # The vector lets a step's text be the whole arguments; then it would choose them.
    whole, _ = VECTORS["bt-03"]["steps"]
    bench = Bench(tool_of("a"), tool_of("b"))

    outcome = await bench.run(whole["run"])

    assert outcome.at_step == 1
    assert "would choose them" in outcome.report()
    assert bench.spans() == []


async def test_a_reference_forward_is_refused_before_anything_runs_as_the_vector_says() -> None:
    vector = VECTORS["bt-06"]
    (step,) = vector["steps"]
    steps = [step["run"][0], {"tool": "b", "args": '{"x": {5}}'}]
    bench = Bench(tool_of("a"), tool_of("b"))

    for given in (step["run"], steps):
        outcome = await bench.run(given)

        assert outcome.refusal is not None
        assert outcome.refusal.code == vector["expect"]["error"]
        assert outcome.at_step == vector["expect"]["at_step"]
        assert len(bench.spans()) == vector["expect"]["tool_runs"]


async def test_what_a_step_gave_cannot_add_an_argument_as_the_vector_says() -> None:
    vector = VECTORS["bt-07"]
    w = tool_of("w")
    bench = Bench(tool_of("a", vector["given"]["tool_results"][0]), w)

    await bench.run(vector["steps"][0]["run"])

    assert seen_by(w) == [vector["expect"]["args_parsed_by_w"]]


async def test_braces_that_are_text_are_doubled_as_the_vector_asks_for() -> None:
    first, second = VECTORS["bt-08"]["steps"][0]["run"]
    r = tool_of("r")
    bench = Bench(tool_of("a"), r)

    refused = await bench.run([first, {"tool": "r", "args": second["args"]}])
    await bench.run([first, {"tool": "r", "args": second["args"].replace("{3}", "{{3}}")}])

    assert "write {{3}}" in refused.report()
    assert seen_by(r) == [{"pattern": "a{3}"}]


async def test_a_plan_is_bounded_as_the_vector_says() -> None:
    expect = VECTORS["bt-10"]["expect"]
    bench = Bench(tool_of("a"))

    too_many = await bench.run([{"tool": "a"}] * (expect["max_steps"] + 1))
    assert too_many.refusal is not None
    assert bench.spans() == []
    most = await bench.run([{"tool": "a"}] * expect["max_steps"])
    none = await bench.call(steps=[])

    assert most.complete
    assert "call that tool directly" in none.text
    assert none.is_error
    budget = bench.runner.tool.input_schema["properties"]["budget_s"]
    assert [budget["minimum"] * 1000, budget["maximum"] * 1000] == expect["budget_range_ms"]
    assert budget["default"] * 1000 == expect["default_budget_ms"]


async def test_a_shorter_limit_of_its_class_does_not_cut_the_budget_as_the_vector_says() -> None:
    vector = VECTORS["bt-12"]["given"]
    limit_s = vector["policy_for_batch_tool"]["timeout_ms"] / 1000
    slow = tool_of("slow", ("sleep", 50, "late"))
    policies = Policies(default=RunPolicy(timeout_s=limit_s))
    bench = Bench(slow, policies=policies)

    result = await bench.call(
        steps=[{"tool": "slow"}, {"tool": "slow"}], budget_s=vector["budget_ms"] / 1000
    )

    assert not result.is_error
    assert bench.clock.now() == 100


# The first error ends it.


async def test_after_an_error_steps_are_left_out_with_the_fixed_words_and_a_span_each() -> None:
    bench = Bench(tool_of("a"), tool_of("f", ValueError("boom")), tool_of("c"))

    outcome = await bench.run([{"tool": name} for name in "afcc"])

    assert outcome.statuses == ("executed", "failed", "not_executed", "not_executed")
    assert (outcome.halted_at, outcome.complete, outcome.timed_out) == (1, False, False)
    for result in outcome.results[2:]:
        assert result.text == NOT_EXECUTED
        assert result.text == "Not executed: an earlier action in this turn failed."
        assert result.failure is not None
        assert (result.failure.reason, result.failure.may_have_run) == ("not_executed", False)
        assert (result.is_error, result.attempts) == (True, 0)
    assert bench.spans() == [
        ("a", "success", ""),
        ("f", "failed", "tool_failed"),
        ("c", "skipped", "not_executed"),
        ("c", "skipped", "not_executed"),
    ]


async def test_steps_that_are_left_out_are_no_calls() -> None:
    bench = Bench(tool_of("f", ValueError("boom")), tool_of("c"))

    await bench.run([{"tool": "f"}, {"tool": "c"}])

    used = bench.pipeline.usage.snapshot()
    assert (used["f"].invocations, used["c"].invocations) == (1, 0)
    assert bench.pipeline.trace.histogram()["skipped"] == 1


async def test_a_step_goes_through_all_layers() -> None:
    policies = Policies(default=RunPolicy(rate="1/minute"))
    bench = Bench(tool_of("a"), policies=policies)

    outcome = await bench.run([{"tool": "a"}, {"tool": "a"}])

    assert outcome.statuses == ("executed", "failed")
    assert outcome.results[1].failure is not None
    assert outcome.results[1].failure.code is FailureCode.RATE_LIMITED


async def test_steps_share_the_session_and_a_batch_id() -> None:
    seen: list[tuple[str, str | None, int]] = []

    async def look(arguments: dict[str, Any], context: ToolContext) -> str:
        seen.append((context.session_id, context.batch_id, context.attempt))
        return "x"

    bench = Bench(scripted(name="x"), look_tool(look))

    for _ in range(2):
        await bench.run([{"tool": "look"}, {"tool": "look"}], session=Session("s7"))

    assert [one[0] for one in seen] == ["s7"] * 4
    ids = [one[1] for one in seen]
    assert ids[0] == ids[1] != ids[2] == ids[3]


def look_tool(executor: Any, name: str = "look") -> Tool:
    return msgspec.structs.replace(scripted(name=name), executor=executor)


# What is found out before anything runs.

WHOLE = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


async def test_all_that_is_wrong_with_the_steps_is_told_together_before_anything_runs() -> None:
    bench = Bench(tool_of("read"), tool_of("put", input_schema=WHOLE))

    outcome = await bench.run(
        [
            {"tool": "read"},
            {"tool": "put", "arguments": {"n": "many"}},
            {"tool": "reed"},
            {"tool": "tool_batch_run", "arguments": {"steps": []}},
            {"tool": "put", "arguments": {"n": "{0}"}},
        ]
    )

    assert bench.spans() == []
    assert outcome.results == ()
    assert outcome.halted_at is None
    assert outcome.refusal is not None
    assert outcome.at_step == 1
    assert outcome.refusal.may_have_run is False
    assert outcome.refusal.issues[0].path == "/steps/1/arguments/n"
    for said in ("Step 1 (put)", "step 2 (reed)", "step 3 (tool_batch_run): a batch cannot be"):
        assert said in outcome.refusal.message


async def test_an_unknown_tool_is_answered_with_near_names() -> None:
    bench = Bench(tool_of("read_file"))

    outcome = await bench.run([{"tool": "read_fil"}])

    assert outcome.refusal is not None
    assert outcome.refusal.code is FailureCode.NOT_FOUND
    assert outcome.refusal.hints == ("read_file",)


async def test_arguments_that_depend_on_a_step_are_checked_when_it_has_run() -> None:
    put = tool_of("put", input_schema=WHOLE)
    bench = Bench(tool_of("a", "many"), tool_of("b", 5), put)

    bad = await bench.run([{"tool": "a"}, {"tool": "put", "arguments": {"n": "{0}"}}])
    good = await bench.run([{"tool": "b"}, {"tool": "put", "arguments": '{"n": {0}}'}])

    assert bad.statuses == ("executed", "failed")
    assert bad.results[1].failure is not None
    assert bad.results[1].failure.code is FailureCode.INVALID_ARGUMENT
    assert good.complete
    assert seen_by(put) == [{"n": 5}]


async def test_a_value_too_large_to_stand_bare_fails_its_step_unrun() -> None:
    put = tool_of("put")
    bench = Bench(tool_of("a", list(range(5000))), put)

    outcome = await bench.run([{"tool": "a"}, {"tool": "put", "arguments": '{"n": {0}}'}])

    assert outcome.halted_at == 1
    assert "cannot be inserted whole" in outcome.results[1].render()
    assert seen_by(put) == []
    assert bench.spans()[-1] == ("put", "denied", "argument_invalid")


async def test_a_tool_that_is_gone_when_its_step_comes_is_not_found() -> None:
    bench = Bench(tool_of("b"))

    async def drop(arguments: dict[str, Any], context: ToolContext) -> str:
        bench.pipeline.registry.unregister("b")
        return "dropped"

    bench.pipeline.registry.register(look_tool(drop, "drop"))

    outcome = await bench.run([{"tool": "drop"}, {"tool": "b"}, {"tool": "b"}])

    assert outcome.statuses == ("executed", "failed", "not_executed")
    assert outcome.results[1].failure is not None
    assert outcome.results[1].failure.code is FailureCode.NOT_FOUND


@pytest.mark.parametrize("budget_s", [0, 0.5, 601, -1, True, float("nan"), float("inf"), "60"])
async def test_a_budget_out_of_range_is_refused(budget_s: Any) -> None:
    bench = Bench(tool_of("a"))

    outcome = await bench.run([{"tool": "a"}], budget_s=budget_s)

    assert outcome.refusal is not None
    assert outcome.refusal.issues[0].path == "/budget_s"
    assert bench.spans() == []


@pytest.mark.parametrize("given", [None, "", "[]", {}, []])
async def test_no_steps_are_refused_with_advice(given: Any) -> None:
    outcome = await Bench(tool_of("a")).run(given)

    assert outcome.refusal is not None
    assert "call that tool directly" in outcome.refusal.message


@pytest.mark.parametrize(
    "given", ['[{"tool": "a"}]', '{"steps": [{"tool": "a"}]}', {"steps": [{"tool": "a"}]}]
)
async def test_steps_may_be_json_text_or_stand_under_their_name(given: Any) -> None:
    assert (await Bench(tool_of("a")).run(given)).complete


# Time.


async def test_when_time_is_over_the_running_step_is_a_timeout_and_the_rest_is_left_out() -> None:
    bench = Bench(tool_of("slow", ("sleep", 50, "late")), tool_of("c"))

    outcome = await bench.run([{"tool": "slow"}, {"tool": "slow"}, {"tool": "c"}], budget_s=70)

    assert outcome.statuses == ("executed", "timed_out", "not_executed")
    assert outcome.timed_out
    failure = outcome.results[1].failure
    assert failure is not None
    assert (failure.code, failure.reason) == (FailureCode.TIMEOUT, "deadline_exceeded")
    assert bench.clock.now() == 70
    assert bench.spans()[1:] == [
        ("slow", "failed", "deadline_exceeded"),
        ("c", "skipped", "not_executed"),
    ]


async def test_the_budget_is_120_seconds_unless_said_otherwise() -> None:
    bench = Bench(tool_of("slow", ("sleep", 500, "late")))

    outcome = await bench.run([{"tool": "slow"}])

    assert outcome.timed_out
    assert bench.clock.now() == 120


async def test_a_step_that_cannot_begin_in_time_is_not_begun() -> None:
    slow = tool_of("slow", ("sleep", 10, "late"))
    bench = Bench(slow)

    async def turn_back(arguments: dict[str, Any], context: ToolContext) -> str:
        bench.clock._now += 20
        return "x"

    bench.pipeline.registry.register(look_tool(turn_back, "jump"))
    outcome = await bench.run([{"tool": "jump"}, {"tool": "slow"}], budget_s=10)

    assert outcome.statuses == ("executed", "timed_out")
    assert seen_by(slow) == []
    failure = outcome.results[1].failure
    assert failure is not None
    assert failure.may_have_run is False


async def test_a_shorter_limit_of_the_tool_is_its_own_and_not_the_budgets() -> None:
    policies = Policies(default=RunPolicy(timeout_s=900, deadline_s=5))
    bench = Bench(tool_of("slow", ("sleep", 50, "late")), policies=policies)

    outcome = await bench.run([{"tool": "slow"}], budget_s=70)

    assert outcome.statuses == ("failed",)
    assert not outcome.timed_out
    assert bench.clock.now() == 5


async def test_a_caller_in_more_of_a_hurry_ends_the_batch_earlier() -> None:
    bench = Bench(tool_of("slow", ("sleep", 50, "late")))

    result = await bench.clock.run(
        bench.pipeline.call("tool_batch_run", {"steps": [{"tool": "slow"}]}, deadline_s=3)
    )

    assert result.is_error
    assert bench.clock.now() <= 4


# Questions.


def danger(name: str = "danger", **fields: Any) -> Tool:
    return tool_of(name, risk=Risk.HIGH, **fields)


async def test_all_steps_are_asked_about_before_the_first_runs() -> None:
    person = Person(True)

    def confirm(prepared: Prepared, decision: Decision) -> Any:
        assert bench.spans() == []
        return person(prepared, decision)

    bench = Bench(tool_of("a"), danger(), confirm=confirm)
    outcome = await bench.run(
        [
            {"tool": "a"},
            {"tool": "danger", "arguments": {"x": 1}},
            {"tool": "danger", "arguments": {"x": "<{0}>"}},
        ]
    )

    assert outcome.complete
    assert [(one[0], one[1]) for one in person.asked] == [
        ("danger", {"x": 1}),
        ("danger", {"x": "<{0}>"}),
    ]
    assert "step 2 of a batch" in person.asked[1][2]
    assert "filled in later" in person.asked[1][2]
    assert "filled in later" not in person.asked[0][2]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"confirm": Person(False)}, "approval_denied"),
        ({}, "approval_required"),
        ({"risk": AllowlistPolicy(allow=["a", "tool_batch_run"])}, "denied_by_policy"),
    ],
)
async def test_one_step_that_may_not_run_keeps_all_from_running(options: Any, reason: str) -> None:
    bench = Bench(tool_of("a"), danger(), **options)

    outcome = await bench.run([{"tool": "a"}, {"tool": "danger"}])

    assert outcome.refusal is not None
    assert (outcome.refusal.reason, outcome.at_step) == (reason, 1)
    assert "Step 1 (danger)" in outcome.refusal.message
    assert bench.spans() == []


async def test_an_answer_for_the_session_holds_for_the_steps_after_it() -> None:
    person = Person(Answer.ALLOW_SESSION)
    bench = Bench(danger(), confirm=person)

    outcome = await bench.run([{"tool": "danger"}] * 3)

    assert outcome.complete
    assert len(person.asked) == 1


async def test_nobody_is_asked_about_a_batch_that_is_faulty() -> None:
    person = Person()
    bench = Bench(danger(), tool_of("put", input_schema=WHOLE), confirm=person)

    outcome = await bench.run([{"tool": "danger"}, {"tool": "put"}])

    assert outcome.refusal is not None
    assert person.asked == []


async def test_what_was_allowed_does_not_hold_for_another_tool_of_that_name() -> None:
    person = Person(True, False)
    bench = Bench(danger(), confirm=person)
    other = danger()

    async def swap(arguments: dict[str, Any], context: ToolContext) -> str:
        bench.pipeline.registry.register(other, on_duplicate="replace")
        return "swapped"

    bench.pipeline.registry.register(look_tool(swap, "swap"))
    outcome = await bench.run([{"tool": "swap"}, {"tool": "danger"}])

    assert outcome.statuses == ("executed", "failed")
    assert len(person.asked) == 2
    assert seen_by(other) == []


async def test_time_for_answers_is_no_time_of_the_steps() -> None:
    clock = FakeClock()

    async def confirm(prepared: Prepared, decision: Decision) -> bool:
        await clock.sleep(200)
        return True

    bench = Bench(
        danger("danger"), tool_of("slow", ("sleep", 50, "late")), confirm=confirm, clock=clock
    )
    result = await bench.call(steps=[{"tool": "danger"}, {"tool": "slow"}], budget_s=60)

    assert not result.is_error
    assert clock.now() == 250


async def test_without_a_risk_gate_nobody_is_asked() -> None:
    person = Person()
    bench = Bench(danger(), layers=[], confirm=person)

    assert (await bench.run([{"tool": "danger"}])).complete
    assert person.asked == []


# The model's tool.


async def test_the_tool_gives_a_numbered_report() -> None:
    bench = Bench(tool_of("a"), tool_of("b"))

    result = await bench.call(steps=json.dumps([{"tool": "a"}, {"tool": "b"}]))

    assert result.text == "2 of 2 steps succeeded.\n\n[0] a: done\nA\n\n[1] b: done\nB"
    assert result.structured_content == {"statuses": ["executed"] * 2, "halted_at": None}
    assert (result.is_error, result.failure) == (False, None)


async def test_a_halted_batch_is_an_error_that_keeps_what_the_steps_gave() -> None:
    bench = Bench(tool_of("a"), tool_of("f", ValueError("boom")), tool_of("c"))

    result = await bench.call(steps=[{"tool": name} for name in "afc"])

    assert result.is_error
    assert result.failure is not None
    assert result.failure.code is FailureCode.EXECUTION_FAILED
    assert result.failure.retryable is False
    assert result.failure.may_have_run is True
    assert result.render() == result.text
    assert result.text.startswith(
        "Error: tool failed: step 1 (f) of the batch failed: tool failed."
    )
    assert "1 of 3 steps succeeded; step 1 (f) failed, so 1 after it was not run." in result.text
    assert "[0] a: done\nA\n" in result.text
    assert "[1] f: failed\nError: tool failed: ValueError: boom." in result.text
    assert f"[2] c: not executed\n{NOT_EXECUTED}" in result.text
    assert bench.pipeline.trace.spans(tool="tool_batch_run")[0].outcome is Outcome.FAILED


async def test_what_is_no_text_is_handed_on_below_the_report() -> None:
    picture = ImageContent(data="eA==", mime_type="image/png")
    bench = Bench(tool_of("a", ToolResult(content=(picture,))))

    result = await bench.call(steps=[{"tool": "a"}])

    assert "[0] a: done\n(image, below)" in result.text
    assert result.content[1:] == (picture,)


async def test_a_step_that_times_out_fails_the_step_and_not_the_batch_around_it() -> None:
    policies = Policies(default=RunPolicy(timeout_s=30))
    bench = Bench(tool_of("slow", ("sleep", 50, "late")), policies=policies)

    result = await bench.call(steps=[{"tool": "slow"}])
    out_of_time = await bench.call(steps=[{"tool": "slow"}], budget_s=20)

    assert result.is_error
    assert "[0] slow: failed\nError: attempt timeout" in result.text
    assert "[0] slow: out of time\nError: deadline exceeded" in out_of_time.text


async def test_failing_steps_do_not_open_the_circuit_of_the_batch() -> None:
    timed_out = ToolFailed(Failure(code=FailureCode.TIMEOUT, message="late"))
    bench = Bench(tool_of("f", timed_out), policies=Policies.default())

    for _ in range(6):
        await bench.call(steps=[{"tool": "f"}])

    assert bench.pipeline.breakers.state("f") == "open"
    assert bench.pipeline.breakers.state("tool_batch_run") == "closed"


async def test_a_batch_cannot_be_run_by_a_step_of_a_batch() -> None:
    async def sly(arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        return await context.call_tool("tool_batch_run", {"steps": [{"tool": "a"}]})

    bench = Bench(tool_of("a"), look_tool(sly, "sly"))
    alone = await bench.clock.run(bench.pipeline.call("sly"))
    inside = await bench.call(steps=[{"tool": "sly"}])

    assert not alone.is_error
    assert inside.is_error
    assert "a batch cannot be run by a step of a batch" in inside.text


async def test_the_tool_says_before_each_step_how_far_it_is() -> None:
    told: list[Any] = []
    bench = Bench(tool_of("a"), tool_of("b"))

    await bench.clock.run(
        bench.pipeline.call(
            "tool_batch_run",
            {"steps": [{"tool": "a"}, {"tool": "b"}]},
            on_progress=lambda report, done, total: told.append((report, done)),
        )
    )

    assert told == [("step 0: a", 0), ("step 1: b", 1)]


def test_the_tool_is_taken_for_the_worst_it_could_do_and_asks_by_itself() -> None:
    tool = Bench().runner.tool

    assert tool.effective_risk is Risk.HIGH
    assert tool.annotations == Annotations(
        read_only=False, destructive=True, idempotent=False, open_world=True
    )
    assert not tool.retry_safe
    assert tool.self_gated
    assert str(MAX_STEPS) in tool.description


async def test_a_cancelled_batch_is_cancelled() -> None:
    bench = Bench(tool_of("slow", ("sleep", 50, "late")), tool_of("b"))
    task = asyncio.ensure_future(bench.runner.run([{"tool": "slow"}, {"tool": "b"}]))
    await bench.clock.advance(1)

    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert bench.spans() == [("slow", "failed", "cancelled")]


# --- hooks that end what is under way


class Ends:
    """Ends the turn at a tool, before or after it, and says something at each call."""

    def __init__(self, when: str, answer: Stop | Abort) -> None:
        self.when = when
        self.answer = answer

    def before(self, context: HookContext) -> Stop | Abort | None:
        if not context.tool.name.startswith("tool_"):
            context.inject(f"{context.tool.name} at {context.depth}")
        return self.answer if (self.when, context.tool.name) == ("before", "b") else None

    def after(self, context: HookContext) -> Stop | Abort | None:
        return self.answer if (self.when, context.tool.name) == ("after", "b") else None


STEPS: list[dict[str, Any]] = [{"tool": name, "arguments": {}} for name in ("a", "b", "c", "a")]
ENDINGS = [
    (when, answer, ["a"] if when == "before" else ["a", "b"])
    for when in ("before", "after")
    for answer in (Stop("enough"), Abort("enough"))
]


def ran(bench: Bench) -> list[str]:
    return [tool for tool, outcome, _ in bench.spans() if outcome == "success"]


@pytest.mark.parametrize(("when", "answer", "expected"), ENDINGS)
async def test_a_hook_at_a_step_ends_the_turn_around_the_batch(
    when: str, answer: Stop | Abort, expected: list[str]
) -> None:
    bench = Bench(*map(tool_of, "abc"), hooks=[Ends(when, answer)], confirm=Person())

    outcome = await bench.clock.run(
        bench.pipeline.turn(
            [("tool_batch_run", {"steps": STEPS}), ("c", {})], execution="sequential"
        )
    )

    aborted = isinstance(answer, Abort)
    assert ran(bench) == expected
    assert outcome.status is (TurnStatus.ABORTED if aborted else TurnStatus.TERMINATED)
    assert outcome.messages == ("a at 1", "b at 1")
    assert outcome.reason == "enough"


@pytest.mark.parametrize(("when", "answer", "expected"), ENDINGS)
async def test_a_hook_at_a_step_ends_a_batch_that_belongs_to_no_turn(
    when: str, answer: Stop | Abort, expected: list[str]
) -> None:
    bench = Bench(*map(tool_of, "abc"), hooks=[Ends(when, answer)], confirm=Person())

    result = await bench.call(steps=STEPS)

    assert ran(bench) == expected
    assert result.is_error
    assert result.terminate is isinstance(answer, Stop)
    assert result.metadata == {"messages": ("a at 1", "b at 1")}


@pytest.mark.parametrize(("when", "answer", "expected"), ENDINGS)
async def test_a_hook_at_a_step_ends_a_batch_of_the_program(
    when: str, answer: Stop | Abort, expected: list[str]
) -> None:
    bench = Bench(*map(tool_of, "abc"), hooks=[Ends(when, answer)])

    outcome = await bench.run(STEPS)

    assert ran(bench) == expected
    assert outcome.halted_at == len(expected)
    assert [result.metadata for result in outcome.results[:1]] == [{"messages": ("a at 0",)}]
    assert ran(bench) == expected
    assert (await bench.run(STEPS[:1])).complete


async def test_a_batch_asks_by_the_policies_of_now() -> None:
    person = Person()
    bench = Bench(tool_of("a", risk=Risk.MEDIUM), confirm=person)
    await bench.run(STEPS[:1])
    before = len(person.asked)

    bench.pipeline.replace_policies(Policies(risk=RiskSettings(ask_from=Risk.MEDIUM)))
    await bench.run(STEPS[:1])

    assert (before, len(person.asked)) == (0, 1)
