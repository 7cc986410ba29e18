"""Recorded behaviours that take a whole pipeline, and what holds here where they disagree."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from seawall import (
    Annotations,
    BreakerPolicy,
    ConfigurationError,
    Decision,
    Failure,
    FailureCode,
    Outcome,
    Pipeline,
    Policies,
    Prepared,
    Risk,
    RiskPolicy,
    RunPolicy,
    Session,
    Tool,
    ToolFailed,
    ToolResult,
)
from seawall.layers.retry import Waits
from seawall.testing import FakeClock, FixedChance, scripted
from seawall.toolkit.bundle import bundled

if TYPE_CHECKING:
    from collections.abc import Coroutine

VECTORS = {
    vector["id"]: vector
    for vector in json.loads(
        (Path(__file__).parents[1] / "vectors" / "pipeline.json").read_text("utf-8")
    )["cases"]
}

ANNOTATIONS = {
    "read_only": Annotations.for_reading(),
    "idempotent_write": Annotations.for_overwriting(),
    "mutating": Annotations.for_changing(),
    "destructive": Annotations.for_destroying(),
    "open_world_read": Annotations.for_reading(open_world=True),
}

CODES = {
    **{code.value: code for code in FailureCode},
    "invalid_json": FailureCode.INVALID_ARGUMENT,
    "missing_argument": FailureCode.INVALID_ARGUMENT,
    "sandbox_violation": FailureCode.PERMISSION_DENIED,
    "breaker_open": FailureCode.CIRCUIT_OPEN,
}


def answer(returned: Any) -> Any:
    """What a scripted tool does for a vector's word: a code is raised, a value is given."""
    said: dict[str, Any] = returned if isinstance(returned, dict) else {"code": returned}
    if said["code"] not in CODES:
        return returned
    text = said.get("text", said["code"])
    return ToolFailed(Failure(code=CODES[said["code"]], message=text))


class Scene:
    """A pipeline with one tool `t`, set up as a vector says, on a clock moved by hand."""

    def __init__(self, name: str, *answers: Any, **fields: Any) -> None:
        self.vector = VECTORS[name]
        self.expect: dict[str, Any] = self.vector["expect"]
        given = {**self.vector["given"], **self.vector["given"].get("policy", {})}
        self.clock = FakeClock()
        self.prompts = 0
        self.answer_with: Any = "allow_once"
        policy = fields.pop("policy", {})
        annotations = ANNOTATIONS.get(given.get("annotations", ""), Annotations())
        returned = answers or self._returned()
        self.tool = scripted(
            *returned,
            clock=self.clock,
            name="t",
            **{"annotations": annotations, "risk": Risk.LOW, **fields},
        )
        self.pipeline = self.of([self.tool], RunPolicy(**{**_settings(given), **policy}))

    def of(self, tools: Any, policy: RunPolicy | None = None, **options: Any) -> Pipeline:
        policies = Policies.default() if policy is None else Policies(default=policy)
        options = {"policies": policies, "confirm": self._confirm, **options}
        return Pipeline(tools, clock=self.clock, chance=FixedChance(), **options)

    def _returned(self) -> list[Any]:
        calls = [step for step in self.vector["steps"] if "tool_returns" in step]
        said = calls[0]["tool_returns"] if calls else "value"
        return [answer(one) for one in (said if isinstance(said, list) else [said])]

    async def _confirm(self, prepared: Prepared, decision: Decision) -> Any:
        self.prompts += 1
        await self.clock.sleep(1)
        return self.answer_with

    async def call(self, arguments: Any = None, **options: Any) -> ToolResult:
        return await self.clock.run(self.pipeline.call("t", arguments, **options))

    async def calls(self, times: int) -> list[ToolResult]:
        async def one_by_one() -> list[ToolResult]:
            return [await self.pipeline.call("t") for _ in range(times)]

        return await self.clock.run(one_by_one())

    def start(self, call: Coroutine[Any, Any, ToolResult] | None = None) -> Any:
        return asyncio.ensure_future(call or self.pipeline.call("t"))

    @property
    def runs(self) -> int:
        executor: Any = self.tool.executor
        return len(executor.calls)

    @property
    def usage(self) -> Any:
        return self.pipeline.usage.snapshot()["t"]

    @property
    def spans(self) -> list[Any]:
        return self.pipeline.trace.spans()[::-1]

    @property
    def failures(self) -> int:
        return self.pipeline.breakers.circuit("t").failures

    async def cooled_down(self) -> None:
        """Open the circuit, and let its cooldown pass."""
        circuit = self.pipeline.breakers.circuit("t")
        circuit.failure(circuit.acquire() or 0, "OSError")
        assert circuit.state == "open"
        await self.clock.advance(circuit.cooldown_s)


def _settings(given: dict[str, Any]) -> dict[str, Any]:
    """The run policy of a vector's settings: milliseconds become seconds, zero no limit."""
    found: dict[str, Any] = {"breaker": BreakerPolicy(threshold=given.get("threshold", 5))}
    if given.get("timeout_ms"):
        found["timeout_s"] = given["timeout_ms"] / 1000
    if "retries" in given:
        found["max_retries"] = given["retries"]
    if "base_ms" in given:
        found |= {"base_delay_s": given["base_ms"] / 1000, "max_delay_s": 60}
    quota = given.get("limit_per_minute", given.get("quota"))
    if quota:
        found["rate"] = f"{quota}/minute"
    return found


def code_of(result: ToolResult) -> str:
    return "ok" if result.failure is None else result.failure.code.value


# --- repeating


def test_rt_01_waits_have_full_jitter_between_zero_and_a_ceiling_that_doubles() -> None:
    vector = VECTORS["rt-01"]
    policy = RunPolicy(base_delay_s=vector["given"]["base_ms"] / 1000)

    ranges = [
        [round(Waits(policy, FixedChance(share)).draw(step["delay"]) * 1000) for share in (0, 1)]
        for step in vector["steps"]
    ]

    assert ranges == vector["expect"]["range_ms"]


@pytest.mark.parametrize("name", ["rt-02", "rt-04"])
def test_rt_02_04_a_wait_needs_a_base_and_has_a_ceiling(name: str) -> None:
    given, steps = VECTORS[name]["given"], VECTORS[name]["steps"]
    policy = RunPolicy(
        base_delay_s=given["base_ms"] / 1000, max_delay_s=given.get("max_delay_ms", 30_000) / 1000
    )

    waits = [Waits(policy, FixedChance(1)).draw(step["delay"]) * 1000 for step in steps]

    expected = VECTORS[name]["expect"]["ms"]
    assert waits == (expected if isinstance(expected, list) else [expected])


@pytest.mark.parametrize(
    "code", [s["classify"] for s in VECTORS["rt-05"]["steps"] if s["classify"] != "cancelled"]
)
async def test_rt_05_failures_that_the_same_call_cannot_mend_are_not_repeated(code: str) -> None:
    scene = Scene("rt-05", answer(code), annotations=Annotations.for_reading())
    scene.pipeline = scene.of([scene.tool], RunPolicy(max_retries=3))

    result = await scene.call()

    assert code_of(result) == CODES[code].value
    assert scene.runs == 1


@pytest.mark.parametrize("name", ["rt-08", "rt-09"])
async def test_rt_08_09_unsafe_tools_and_refusals_are_never_repeated(name: str) -> None:
    scene = Scene(name)

    result = await scene.call()

    assert scene.runs == scene.expect["tool_runs"]
    assert code_of(result) == scene.expect.get("error", "permission_denied")


async def test_rt_11_a_ladder_is_exact_and_ends() -> None:
    vector = VECTORS["rt-11"]
    ladder = tuple(ms / 1000 for ms in vector["given"]["ladder_ms"])
    scene = Scene("rt-11", answer("timeout"), annotations=Annotations.for_reading())
    policy = RunPolicy(delays_s=ladder, max_delay_s=vector["given"]["ladder_cap_ms"] / 1000)
    scene.pipeline = scene.of([scene.tool], policy)

    await scene.call()

    assert scene.runs == vector["expect"]["attempts"] == policy.attempts
    assert scene.clock.now() * 1000 == vector["expect"]["total_wait_ms"]
    # The seventh wait is the last; what an eighth would be is never asked.
    drawn = [Waits(policy, FixedChance()).draw(step["delay"]) for step in vector["steps"][:4]]
    assert [wait * 1000 for wait in drawn] == vector["expect"]["ms"][:4]


async def test_rt_12_the_limit_is_per_attempt_and_the_message_names_it() -> None:
    scene = Scene("rt-12", ("sleep", 60, "late"))

    result = await scene.call()
    await scene.clock.advance(120)

    assert code_of(result) == scene.expect["error"]
    assert scene.expect["text_contains"] in result.text
    assert scene.runs == scene.expect["tool_runs"]
    assert [span.outcome for span in scene.spans] == [Outcome.FAILED]  # the late one left none


async def test_rt_13_no_limit_is_none_and_zero_is_refused() -> None:
    # The vector says that zero switches the limit off; zero is taken for a mistake here.
    with pytest.raises(ConfigurationError, match="leave it out for no limit"):
        RunPolicy(timeout_s=VECTORS["rt-13"]["given"]["timeout_ms"])
    scene = Scene("rt-13", ("sleep", 60, "value"))

    assert (await scene.call()).text == scene.expect["result"]


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (OSError("io"), VECTORS["rt-14"]["expect"]["codes"][0]),
        (PermissionError("no"), VECTORS["rt-14"]["expect"]["codes"][1]),
        (KeyError("other"), VECTORS["rt-14"]["expect"]["codes"][2]),
    ],
)
async def test_rt_14_what_a_tool_raises_becomes_a_result(error: Exception, code: str) -> None:
    result = await Scene("rt-14", error).call()

    assert code_of(result) == code
    assert result.failure is not None
    assert result.failure.cause == (type(error).__name__,)


async def test_rt_15_success_is_no_matter_of_words() -> None:
    scene = Scene("rt-15", VECTORS["rt-15"]["steps"][0]["tool_returns_text"])

    result = await scene.call()

    assert result.text == scene.expect["result"]
    assert not result.is_error
    assert (scene.runs, scene.failures) == (1, scene.expect["breaker_failures"])


async def test_rt_16_a_failure_is_classified_by_its_code() -> None:
    scene = Scene("rt-16")

    assert code_of(await scene.call()) == "not_found"
    assert scene.runs == scene.expect["tool_runs"]


async def test_rt_17_what_counts_once_per_call_and_what_per_attempt() -> None:
    gate = CountingPolicy()
    checks: list[Any] = []

    def prepare(arguments: Any) -> Any:
        checks.append(arguments)
        return arguments

    scene = Scene("rt-17", prepare_arguments=prepare)
    scene.pipeline = scene.of([scene.tool], scene.pipeline.policy_of("t"), risk=gate)
    level = scene.pipeline.states.of_tool("t").find("tokens_left")
    reports = Reports(scene.pipeline)

    result = await scene.call({})

    per_call, per_attempt = scene.expect["per_call"], scene.expect["per_attempt"]
    assert result.text == "value"
    assert 10 - level() == pytest.approx(per_call["quota_tokens"], abs=0.5)
    usage = scene.usage
    assert usage.invocations == per_call["usage_invocations"]
    assert (usage.successes, usage.failures) == (1, per_call["usage_failures"])
    assert [span.attempt for span in scene.spans] == per_attempt["span_attempts"]
    assert [span.outcome.value for span in scene.spans] == per_attempt["span_outcomes"]
    assert reports.made == per_attempt["breaker_reports"]
    # The vector has gates and checks run per attempt; here they belong to the call.
    assert (gate.asked, len(checks)) == (1, 1)


class CountingPolicy:
    """Allows everything, and counts how often it was asked."""

    def __init__(self) -> None:
        self.asked = 0

    def decide(self, prepared: Prepared) -> Decision:
        self.asked += 1
        return RiskPolicy().decide(prepared)


class Reports:
    """What a circuit is told about attempts."""

    is_closed = True
    decided = 0.0

    def __init__(self, pipeline: Pipeline) -> None:
        self.made: list[str] = []
        slot: Any = pipeline.breakers._slot("t")
        slot.circuit = self

    def acquire(self) -> int:
        return 1

    def success(self, permit: int) -> None:
        self.made.append("success")

    def failure(self, permit: int, kind: str, *, retry_after_s: float | None = None) -> None:
        self.made.append("failure")


async def test_rt_18_a_cancelled_call_is_recorded_and_held_against_nobody() -> None:
    scene = Scene("rt-18", ("sleep", 3600, "late"))
    call = scene.start()
    await scene.clock.advance(1)

    call.cancel()
    await scene.clock.settle()

    assert call.cancelled()
    span = scene.expect["span"]
    assert [(s.outcome.value, s.reason) for s in scene.spans] == [(span["outcome"], span["slug"])]
    assert scene.usage.failures == scene.expect["usage_failures"]
    assert (scene.failures, scene.runs) == (0, scene.expect["attempts"])


async def test_rt_19_a_cancel_between_attempts_settles_the_books() -> None:
    scene = Scene("rt-19")
    call = scene.start()
    await scene.clock.advance(1)

    call.cancel()
    await scene.clock.advance(1000)

    assert call.cancelled()
    assert scene.runs == scene.expect["tool_runs"]
    usage = scene.expect["usage"]
    assert (scene.usage.invocations, scene.usage.failures) == (
        usage["invocations"],
        usage["failures"],
    )
    assert scene.pipeline._routes["t"].in_flight == usage["open"]


async def test_rt_20_a_limit_of_the_callers_own_is_not_the_tools_timeout() -> None:
    scene = Scene("rt-20", ("sleep", 10, "late"), policy={"timeout_s": 5})

    async def caller() -> ToolResult | None:
        with scene.clock.limit(scene.vector["given"]["outer_deadline_ms"] / 1000):
            return await scene.pipeline.call("t")
        return None

    assert await scene.clock.run(caller()) is None
    assert (scene.runs, scene.failures) == (1, scene.expect["breaker_failures"])
    assert scene.spans[0].reason == "cancelled"


# --- the breaker


async def test_br_15_what_a_tool_answers_never_opens_its_circuit() -> None:
    scene = Scene("br-15")

    await scene.calls(scene.vector["steps"][0]["times"])

    assert scene.runs == scene.expect["tool_runs"]
    assert scene.pipeline.breakers.state("t") == scene.expect["state"]


async def test_br_16_a_probe_that_is_answered_at_all_closes_the_circuit() -> None:
    scene = Scene("br-16")
    await scene.cooled_down()

    assert code_of(await scene.call()) == "not_found"

    assert scene.pipeline.breakers.state("t") == scene.expect["state"]
    assert code_of(await scene.call()) == "not_found"


async def test_br_18_a_call_stops_when_its_circuit_opens_on_the_way() -> None:
    scene = Scene("br-18")

    result = await scene.call()

    assert scene.runs == scene.expect["tool_runs"]
    assert scene.pipeline.breakers.state("t") == "open"
    # The vector hands on the refusal; here the call ends with its own last failure.
    assert code_of(result) == "timeout"


async def test_br_19_a_probe_is_one_attempt() -> None:
    scene = Scene("br-19")
    await scene.cooled_down()

    await scene.call()

    assert scene.runs == scene.expect["tool_runs"]
    assert scene.pipeline.breakers.state("t") == scene.expect["state"]


# --- rate limit


async def test_tb_06_without_a_rate_nothing_is_counted() -> None:
    scene = Scene("tb-06")

    results = await scene.calls(scene.vector["steps"][0]["times"])

    assert {code_of(result) for result in results} == {"ok"}
    assert scene.pipeline.states.of_tool("t").find("tokens_left") is None
    assert scene.pipeline.states.shared("limiter:token-bucket").find("limiter") is None


async def test_tb_13_beyond_the_rate_a_call_is_refused_at_once_and_told_when() -> None:
    scene = Scene("tb-13", "ok", annotations=Annotations.for_reading(), policy={"max_retries": 3})

    results = await scene.calls(3)

    assert [code_of(result) for result in results] == ["ok", "ok", "rate_limited"]
    assert scene.runs == scene.expect["tool_runs"]
    refused = results[2].failure
    assert refused is not None
    assert refused.retry_after_s == 30
    assert "30 s" in refused.message
    assert scene.clock.now() == 0


# --- order, gates, codes


async def test_pl_02_a_malformed_call_does_not_use_up_the_minute() -> None:
    schema = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
    scene = Scene("pl-02", "value", input_schema=schema)

    results = [await scene.call(step["args"]) for step in scene.vector["steps"]]

    assert [code_of(results[0]), results[1].text] == scene.expect["results"]


async def test_pl_04_a_broken_gate_refuses_and_is_recorded() -> None:
    class Broken:
        def decide(self, prepared: Prepared) -> Decision:
            raise RuntimeError("boom")

    scene = Scene("pl-04", "value")
    scene.pipeline = scene.of([scene.tool], RunPolicy(), risk=Broken())

    result = await scene.call()

    assert code_of(result) == "permission_denied"
    assert [span.reason for span in scene.spans] == ["gate_failed"]
    assert scene.runs == scene.expect["tool_runs"]


async def test_er_03_bad_input_and_crashes_are_typed_and_name_the_field() -> None:
    schema = {
        "type": "object",
        "properties": {"text": {"type": "string"}, "n": {"type": "integer"}},
        "required": ["text"],
    }
    scene = Scene("er-03", RuntimeError("boom"), input_schema=schema)
    texts = ["not json", "{}", '{"text": "a", "n": "x"}', '{"text": "a"}']

    failures = [(await scene.call(text)).failure for text in texts]

    assert [failure and failure.reason for failure in failures] == [
        "arguments_not_json",
        "argument_missing",
        "argument_type",
        "tool_failed",
    ]
    fields = [failure.fields[0] if failure and failure.fields else None for failure in failures]
    assert fields == scene.expect["field"]


async def test_en_04_an_unmet_need_is_refused_with_its_repair_before_anybody_is_asked() -> None:
    scene = Scene("en-04", "value", needs=("a", "b"), risk=Risk.HIGH)
    for flag, value in scene.vector["given"]["flags"].items():
        scene.pipeline.environment.set(flag, value)

    result = await scene.call()

    assert result.failure is not None
    assert code_of(result) == scene.expect["error"]
    assert result.failure.reason == "environment_unmet"
    assert "b" in result.failure.message
    assert "not" in result.failure.guidance.lower()
    assert (scene.runs, scene.prompts) == (0, scene.expect["user_prompts"])


# --- the risk gate


async def test_rk_02_a_denial_holds_for_the_session() -> None:
    scene = Scene("rk-02", "value", risk=Risk.HIGH)
    scene.answer_with = "deny"

    results = await scene.calls(2)

    assert {code_of(result) for result in results} == {scene.expect["error"]}
    assert scene.prompts == scene.expect["prompts"]


@pytest.mark.parametrize(
    ("fields", "strict", "prompts"),
    [
        ({"risk": Risk.LOW}, False, VECTORS["rk-03"]["expect"]["prompts"][0]),
        ({"risk": Risk.MEDIUM}, False, VECTORS["rk-03"]["expect"]["prompts"][1]),
        ({"risk": Risk.MEDIUM}, True, VECTORS["rk-03"]["expect"]["prompts"][2]),
        (
            {"risk": Risk.HIGH, "self_gated": True},
            False,
            VECTORS["rk-03"]["expect"]["prompts"][3],
        ),
    ],
)
async def test_rk_03_who_is_asked_depends_on_the_risk(
    fields: dict[str, Any], strict: bool, prompts: int
) -> None:
    scene = Scene("rk-03", "value", **fields)
    scene.pipeline = scene.of([scene.tool], RunPolicy(), risk=RiskPolicy(strict=strict))

    assert (await scene.call()).text == "value"
    assert scene.prompts == prompts


async def test_rk_04_a_setting_decides_without_a_question_and_can_be_forgotten() -> None:
    scene = Scene("rk-04", "value", risk=Risk.HIGH)
    session = Session("s")

    session.permissions.allow("t")
    allowed = await scene.call(session=session)
    session.permissions.deny("t")
    denied = await scene.call(session=session)
    session.permissions.reset()

    assert [code_of(allowed), code_of(denied)] == ["ok", "permission_denied"]
    assert session.permissions.decision("t") is None
    assert scene.prompts == scene.expect["prompts"]


async def test_rk_05_first_calls_at_once_share_one_question() -> None:
    scene = Scene("rk-05", "value", risk=Risk.HIGH)
    scene.answer_with = "allow_session"
    calls = [scene.start() for _ in range(scene.vector["steps"][0]["concurrently"])]

    await scene.clock.advance(2)

    assert {code_of(call.result()) for call in calls} == {"ok"}
    assert scene.prompts == scene.expect["prompts"]


async def test_rk_07_consent_belongs_to_the_call_not_to_an_attempt() -> None:
    scene = Scene("rk-07", risk=Risk.HIGH)

    assert (await scene.call()).text == "value"
    assert (scene.prompts, scene.runs) == (scene.expect["prompts"], scene.expect["tool_runs"])


# --- trace and usage


async def test_tr_05_a_slug_is_never_taken_from_free_text() -> None:
    secret = "sk-live-1234"
    named = ToolFailed(Failure(code=FailureCode.NOT_FOUND, message="x", reason=secret))
    scene = Scene("tr-05", RuntimeError(f"Error: {secret}"), named)

    await scene.calls(2)

    assert [span.reason for span in scene.spans] == ["tool_failed", "not_found"]
    assert secret not in scene.pipeline.trace.export_json()


async def test_tr_07_an_observer_may_not_break_the_call() -> None:
    scene = Scene("tr-07")

    def broken(span: Any) -> None:
        raise RuntimeError("boom")

    scene.pipeline.trace.listen(broken)

    assert (await scene.call()).text == scene.expect["result"]
    assert len(scene.spans) == 1


async def test_tr_08_refusals_by_gate_quota_and_breaker_have_one_outcome() -> None:
    scene = Scene("tr-08", "value", risk=Risk.HIGH, policy={"rate": "1/minute"})
    scene.answer_with = "deny_once"
    await scene.call()
    scene.answer_with = "allow_session"
    scene.pipeline.breakers.open("t")
    await scene.call()
    scene.pipeline.breakers.close("t")
    await scene.calls(2)

    outcomes = [(span.reason, span.outcome.value, span.attempt) for span in scene.spans]

    denied = scene.expect["outcome"]
    assert outcomes == [
        ("approval_denied", denied, 0),
        ("circuit_open", denied, 0),
        ("", "success", 1),
        ("rate_limited", denied, 0),
    ]
    assert (scene.usage.refusals, scene.usage.successes) == (3, 1)


async def test_tr_09_attempts_of_one_call_have_one_call_id() -> None:
    scene = Scene("tr-09")

    result = await scene.call()

    assert {span.call_id for span in scene.spans} == {result.call_id}
    assert [span.attempt for span in scene.spans] == scene.expect["attempts"]


async def test_us_02_the_last_error_is_the_newest() -> None:
    errors = VECTORS["us-02"]["steps"][0]["errors"]
    failures = [Failure(code=FailureCode.NOT_FOUND, message="x", reason=name) for name in errors]
    scene = Scene("us-02", *map(ToolFailed, failures))

    await scene.calls(len(errors))

    assert scene.usage.last_error == scene.expect["last_error"]


async def test_us_03_a_handle_settles_once() -> None:
    scene = Scene("us-03")
    handle = scene.pipeline.usage.begin("t")
    handle.success()
    handle.failure("late")

    usage = scene.usage
    assert (usage.invocations, usage.successes, usage.failures) == tuple(scene.expect.values())


# --- annotations


def test_an_01_the_five_named_combinations() -> None:
    found = {
        flag: [
            getattr(ANNOTATIONS[step["factory"]], {"retry_safe": flag}.get(flag, f"is_{flag}"))
            for step in VECTORS["an-01"]["steps"]
        ]
        for flag in VECTORS["an-01"]["expect"]
    }

    assert found == VECTORS["an-01"]["expect"]


async def test_an_08_a_tool_that_declares_nothing_is_not_repeated() -> None:
    scene = Scene("an-08", answer("timeout"), risk=None, policy={"max_retries": 3})

    await scene.call()

    assert scene.runs == 1
    assert scene.tool.retry_safe is VECTORS["an-08"]["expect"]["retry_safe"]
    # From outside, where nobody vouches for it, its risk is not low either.
    imported = Tool(
        name="send_email", description="", input_schema={}, executor=print, imported=True
    )
    assert imported.effective_risk is not Risk.LOW


async def test_wt_03_a_tools_own_duration_widens_its_limit() -> None:
    scene = Scene("wt-03")
    tools = bundled(clock=scene.clock)
    scene.pipeline = scene.of(tools, RunPolicy(timeout_s=30, max_retries=1))

    wait_ms = scene.vector["steps"][0]["wait_ms"]
    result = await scene.clock.run(scene.pipeline.call("wait", {"duration_ms": wait_ms}))

    assert result.structured_content["waited_ms"] == wait_ms
    assert result.attempts == scene.expect["tool_runs"]
