"""What answers in place of a tool that failed, and what never does."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from tests.waiting import until

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
    State,
    Tool,
    ToolContext,
    ToolFailed,
    ToolResult,
    open_state,
)
from seawall.contract.errors import ConfigurationError
from seawall.contract.optional_policies import FallbackPolicy
from seawall.testing import FakeClock, scripted

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

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


CLOSED = Failure(code=FailureCode.EXECUTION_FAILED, message="closed", may_have_run=False)
CHANGING = Annotations.for_changing()
REPEATABLE = Annotations(read_only=False, destructive=False, idempotent=True)


class Banks:
    """Two tools that pay, the second in place of the first, and what was paid by them."""

    def __init__(self, *first: Any, second: Any = None, **policy: Any) -> None:
        self.clock = FakeClock()
        self.first = list(first) or [CLOSED]
        self.second = second
        self.paid: list[str] = []
        self.keys: list[str] = []
        self.policy = policy

    async def _first(self, arguments: dict[str, Any], context: ToolContext) -> str:
        answer = self.first.pop(0) if len(self.first) > 1 else self.first[0]
        if isinstance(answer, Failure):
            raise ToolFailed(answer)
        self.paid.append("first")
        if isinstance(answer, BaseException):
            raise answer
        return "paid by first"

    async def _second(self, arguments: dict[str, Any], context: ToolContext) -> str:
        if isinstance(self.second, Failure):
            raise ToolFailed(self.second)
        self.paid.append("second")
        self.keys.append(context.idempotency_key)
        if self.second == "hangs":
            await self.clock.sleep(3600)
        if isinstance(self.second, BaseException):
            raise self.second
        return "paid by second"

    def pipeline(self, state: State, annotations: Annotations = CHANGING) -> Pipeline:
        schema = {"type": "object"}
        tools = [
            Tool("first", "", schema, self._first, annotations=annotations),
            Tool("second", "", schema, self._second, annotations=CHANGING),
        ]
        changes = Changes(fallback={"tool": "second"}, **self.policy)
        policies = Policies(RunPolicy(timeout_s=60), tools={"first": changes})
        return Pipeline(tools, policies=policies, state=state, clock=self.clock)

    async def call(self, pipeline: Pipeline, **fields: Any) -> ToolResult:
        fields.setdefault("idempotency_key", "invoice-7")
        return await self.clock.run(pipeline.call("first", **fields))


@pytest.fixture
async def state(tmp_path: Path) -> AsyncIterator[State]:
    async with open_state(f"sqlite:///{tmp_path}/state.db") as state:
        yield state


@pytest.mark.parametrize("annotations", [CHANGING, REPEATABLE])
@pytest.mark.parametrize("then", [CLOSED, "open again"])
async def test_under_one_key_a_call_and_its_fallback_are_one_effect(
    state: State, annotations: Annotations, then: Any
) -> None:
    banks = Banks(CLOSED, then)

    results = [await banks.call(banks.pipeline(state, annotations)) for _ in range(3)]

    assert banks.paid == ["second"]
    assert {result.text for result in results} == {results[0].text}
    assert "this is the answer of second" in results[0].text


async def test_without_a_key_each_call_is_an_effect(state: State) -> None:
    banks = Banks()
    pipeline = banks.pipeline(state)

    for _ in range(2):
        await banks.call(pipeline, idempotency_key=None)

    assert banks.paid == ["second", "second"]


async def test_a_call_refused_before_it_ran_shares_its_key_with_the_fallback(state: State) -> None:
    banks = Banks("open", rate="1/hour")
    pipeline = banks.pipeline(state)

    keys = ("a", "b", "b", "a")
    results = [await banks.call(pipeline, idempotency_key=key) for key in keys]

    assert banks.paid == ["first", "second"]
    assert [result.text.split("\n")[0] for result in results] == [
        "paid by first",
        "paid by second",
        "paid by second",
        "paid by first",
    ]


async def test_the_other_tools_key_follows_from_the_calls(state: State) -> None:
    banks = Banks(ledger="off")

    for key in ("a", "a", "b"):
        await banks.call(banks.pipeline(state), idempotency_key=key)

    assert len(set(banks.keys)) == len(banks.keys) == 2
    assert banks.paid == ["second", "second"]


@pytest.mark.parametrize("second", ["hangs", ConnectionResetError("reset")])
async def test_a_fallback_that_may_have_done_something_is_told_and_not_tried_again(
    state: State, second: Any
) -> None:
    banks = Banks(second=second)

    results = [await banks.call(banks.pipeline(state)) for _ in range(2)]

    assert banks.paid == ["second"]
    for result in results:
        assert result.failure is not None
        assert result.failure.may_have_run is True
        assert "closed" in result.render()
        assert "may have taken effect" in result.render()
        assert "Nothing was run" not in result.render()


async def test_if_neither_tool_did_anything_the_key_is_free(state: State) -> None:
    banks = Banks(CLOSED, "open again", second=CLOSED)
    pipeline = banks.pipeline(state)

    results = [await banks.call(pipeline) for _ in range(2)]

    assert "Nothing was run." in results[0].render()
    assert results[1].text == "paid by first"


async def test_a_cancel_while_the_fallback_runs_leaves_the_outcome_unknown(state: State) -> None:
    banks = Banks(second="hangs")
    pipeline = banks.pipeline(state)
    running = asyncio.ensure_future(pipeline.call("first", idempotency_key="k"))
    await until(lambda: bool(banks.paid))

    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    banks.first = ["open again"]
    result = await banks.call(pipeline, idempotency_key="k")

    assert result.failure is not None
    assert result.failure.reason in ("outcome_unknown", "still_running")
    assert banks.paid == ["second"]


async def test_what_an_earlier_attempt_may_have_done_keeps_a_fallback_away(state: State) -> None:
    banks = Banks(ConnectionResetError("reset"), CLOSED, max_retries=1)

    result = await banks.call(banks.pipeline(state, REPEATABLE))

    assert banks.paid == ["first"]
    assert result.failure is not None
    assert result.failure.may_have_run is None
    assert "closed" in result.render()
