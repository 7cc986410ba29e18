"""What answers in place of a tool that failed, and what never does."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from seawall import (
    Annotations,
    BreakerPolicy,
    Changes,
    Failure,
    FailureCode,
    Pipeline,
    Policies,
    Risk,
    RunPolicy,
    Session,
    Tool,
    ToolFailed,
    ToolResult,
)
from seawall.contract.errors import ConfigurationError
from seawall.contract.optional_policies import FallbackPolicy
from seawall.testing import FakeClock, scripted

READING = Annotations.for_reading()
DOWN = ConnectionError("down")


class Shop:
    """A tool `first` with a fallback, and others that may stand in."""

    def __init__(self, *answers: Any, annotations: Annotations = READING, **policy: Any) -> None:
        self.clock = FakeClock()
        self.fallback: dict[str, Any] = {"tool": "second"}
        self.first = scripted(
            *(answers or (DOWN,)), clock=self.clock, name="first", annotations=annotations
        )
        self.others: list[Tool] = [scripted("from second", name="second", annotations=READING)]
        self.policy = policy
        self.risk: Any = None

    def pipeline(self, **fields: Any) -> Pipeline:
        changes = Changes(fallback=self.fallback, **self.policy)
        return Pipeline(
            [self.first, *self.others],
            policies=Policies(RunPolicy(), tools={"first": changes}),
            clock=self.clock,
            **fields,
        )

    async def result(self, **fields: Any) -> ToolResult:
        self.made = self.pipeline(**fields)
        return await self.clock.run(self.made.call("first", {"q": 1}, call_id="c1"))

    def runs(self, tool: Tool) -> list[Any]:
        executor: Any = tool.executor
        return list(executor.calls)


async def test_another_tool_answers_with_the_same_arguments() -> None:
    shop = Shop()

    result = await shop.result()

    assert not result.is_error
    assert result.text.split("\n") == [
        "from second",
        "[first failed (tool failed); this is the answer of second.]",
    ]
    assert (result.call_id, result.tool) == ("c1", "first")
    assert result.metadata == {
        "fallback": {"for": "first", "by": "second", "reason": "tool_failed"}
    }
    assert shop.runs(shop.others[0]) == [{"q": 1}]


async def test_the_attempt_that_failed_is_a_failed_attempt_in_the_trace() -> None:
    shop = Shop()

    await shop.result()

    spans = [(s.tool, s.attempt, s.outcome.value, s.reason) for s in shop.made.trace.spans()]
    assert spans == [
        ("second", 1, "success", ""),
        ("first", 1, "failed", "tool_failed"),
    ]


async def test_a_call_that_was_refused_before_it_ran_is_seen_as_served() -> None:
    shop = Shop(breaker=BreakerPolicy(threshold=1))
    await shop.result()

    result = await shop.clock.run(shop.made.call("first"))

    assert not result.is_error
    span = shop.made.trace.spans()[0]
    assert (span.tool, span.attempt, span.outcome.value) == ("first", 0, "success")
    assert span.verdicts == ("fallback:served",)


@pytest.mark.parametrize(
    ("fixed", "text", "structured"),
    [
        ({"text": "unknown"}, "unknown", None),
        ({"structured_content": {"a": [1]}}, '{"a":[1]}', {"a": [1]}),
        ({"text": "none", "structured_content": {"a": 1}}, "none", {"a": 1}),
    ],
)
async def test_a_fixed_answer_is_given(fixed: dict[str, Any], text: str, structured: Any) -> None:
    shop = Shop()
    shop.fallback = {**fixed, "tell": False}

    result = await shop.result()

    assert (result.text, result.structured_content) == (text, structured)
    assert result.metadata is not None
    assert result.metadata["fallback"]["by"] == "fixed"


async def test_nobody_can_change_the_fixed_answer_of_the_next() -> None:
    shop = Shop()
    shop.fallback = {"structured_content": {"a": [1]}}

    for _ in range(2):
        result = await shop.result()
        assert result.structured_content == {"a": [1]}
        result.structured_content["a"].append(2)


async def test_the_model_is_told_unless_the_policy_says_no() -> None:
    shop = Shop()
    shop.fallback = {"tool": "second", "tell": False}

    assert (await shop.result()).text == "from second"


@pytest.mark.parametrize(
    ("answer", "on", "served"),
    [
        (DOWN, ["execution_failed"], True),
        (DOWN, ["tool_failed"], True),
        (DOWN, ["timeout"], False),
        (TimeoutError(), ["tool_timeout"], True),
        (ToolFailed(Failure(code=FailureCode.NOT_FOUND, message="no")), ["not_found"], True),
        (ToolFailed(Failure(code=FailureCode.NOT_FOUND, message="no")), None, False),
        (PermissionError("no"), None, False),
        (ToolFailed(Failure(code=FailureCode.UNKNOWN, message="?")), None, False),
    ],
)
async def test_it_is_for_the_kinds_of_failure_that_the_policy_lists(
    answer: Any, on: list[str] | None, served: bool
) -> None:
    shop = Shop(answer)
    if on is not None:
        shop.fallback["on"] = on

    assert (await shop.result()).is_error is not served


async def deny(prepared: Any, decision: Any) -> bool:
    return False


async def test_a_persons_no_is_the_answer() -> None:
    shop = Shop("done", annotations=Annotations.for_destroying())
    shop.fallback["on"] = ["execution_failed", "timeout"]

    for confirm in (None, deny):
        result = await shop.result(confirm=confirm)

        assert result.failure is not None
        assert result.failure.code is FailureCode.PERMISSION_DENIED
    assert shop.runs(shop.others[0]) == []


@pytest.mark.parametrize(
    "kind", ["permission_denied", "approval_denied", "loop_detected", "invalid_argument", "unknown"]
)
def test_a_policy_cannot_name_refusals_that_are_the_answer(kind: str) -> None:
    with pytest.raises(ConfigurationError, match="such a refusal is the answer"):
        FallbackPolicy(tool="second", on=("timeout", kind))


async def test_a_tool_that_changes_something_is_not_replaced_once_it_may_have_run() -> None:
    pays = Annotations.for_changing()
    ran = Shop(("sleep", 9, "paid"), annotations=pays, timeout_s=5)
    refused = Shop(DOWN, annotations=pays, breaker=BreakerPolicy(threshold=1))

    assert (await ran.result()).is_error
    assert (await refused.result()).is_error
    again = await refused.clock.run(refused.made.call("first"))

    assert again.failure is None  # nothing was run: the circuit was open
    assert ran.runs(ran.others[0]) == []
    assert len(refused.runs(refused.others[0])) == 1


async def test_the_risk_of_the_other_tool_is_asked_for() -> None:
    asked = []

    async def confirm(prepared: Any, decision: Any) -> bool:
        asked.append(prepared.tool.name)
        return False

    shop = Shop()
    shop.others = [scripted("dangerous", name="second", risk=Risk.HIGH)]

    result = await shop.result(confirm=confirm)

    assert asked == ["second"]
    assert result.failure is not None
    assert result.failure.message.startswith("ConnectionError")
    assert shop.runs(shop.others[0]) == []


async def test_what_a_session_has_denied_does_not_stand_in() -> None:
    shop = Shop()
    pipeline = shop.pipeline()
    session = Session("s")
    session.permissions.deny("second")

    result = await shop.clock.run(pipeline.call("first", session=session))

    assert result.is_error
    assert pipeline.trace.spans()[0].verdicts == ()
    assert shop.runs(shop.others[0]) == []


@pytest.mark.parametrize("other", [[], [scripted(DOWN, name="second")]])
async def test_if_there_is_no_other_answer_the_tools_own_failure_is_told(other: list[Tool]) -> None:
    shop = Shop(ConnectionError("my own"))
    shop.others = other

    result = await shop.result()

    assert result.failure is not None
    assert "my own" in result.failure.message
    assert b'event="failed",layer="fallback",tool="first"} 1' in shop.made.metrics.text()


async def test_two_tools_that_stand_in_for_each_other_do_not_go_round() -> None:
    one, two = (scripted(DOWN, name=name, annotations=READING) for name in ("one", "two"))
    policies = Policies(
        RunPolicy(),
        tools={
            "one": Changes(fallback={"tool": "two"}),
            "two": Changes(fallback={"tool": "one"}),
        },
    )
    clock = FakeClock()

    result = await clock.run(Pipeline([one, two], policies=policies, clock=clock).call("one"))

    calls: Any = [one.executor, two.executor]
    assert result.is_error
    # `one` once more, as the fallback of `two`, and then it is over.
    assert [len(script.calls) for script in calls] == [2, 1]


async def test_a_rule_for_many_tools_is_none_for_the_one_that_it_names() -> None:
    down = scripted(DOWN, name="second", annotations=READING)
    policies = Policies(RunPolicy(), tools={"*": Changes(fallback={"tool": "second"})})

    assert (await Pipeline([down], policies=policies).call("second")).attempts == 1


async def test_a_cancel_is_no_failure() -> None:
    shop = Shop(("sleep", 9, "late"))
    pipeline = shop.pipeline()
    task = asyncio.ensure_future(pipeline.call("first"))
    await shop.clock.advance(1)

    task.cancel()
    await asyncio.gather(task, return_exceptions=True)

    assert task.cancelled()
    assert shop.runs(shop.others[0]) == []


async def test_the_other_tool_has_what_is_left_of_the_deadline() -> None:
    shop = Shop(("sleep", 9, "late"), timeout_s=4, deadline_s=6)
    shop.others = [scripted(("sleep", 5, "late too"), clock=shop.clock, name="second")]

    result = await shop.result()

    assert result.failure is not None
    assert shop.clock.now() == 6


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({}, "fallback.tool: give either a tool, or a fixed text or structured_content"),
        (
            {"tool": "a", "text": "b"},
            "fallback.tool: give either a tool, or a fixed text or structured_content",
        ),
        ({"tool": " "}, "fallback.tool: must be a text, not ' '"),
        ({"text": "x", "on": ()}, "fallback.on: is empty; leave it out for the usual kinds of"),
        ({"text": "x", "on": ("slow",)}, "fallback.on: 'slow' is neither a code nor a reason of"),
        ({"structured_content": "x"}, "fallback.structured_content: must be a table, not 'x'"),
    ],
)
def test_settings_that_cannot_be_are_refused(values: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        FallbackPolicy(**values)

    assert str(caught.value).startswith(said)
