"""A tool is held to the output schema that it declares."""

from __future__ import annotations

from datetime import datetime
from typing import Any, TypedDict

import pytest
from pydantic import BaseModel, Field

from seawall import (
    Annotations,
    BreakerPolicy,
    Failure,
    FailureCode,
    Pipeline,
    Policies,
    RunPolicy,
    Tool,
    ToolFailed,
    ToolResult,
    tool,
)
from seawall.contract.content import TextContent
from seawall.pipeline.output import MAX_VALUES, told_as_promised
from seawall.recording.trace import TraceRecorder

PROMISE = {
    "type": "object",
    "properties": {
        "rows": {"type": "array", "items": {"type": "object", "properties": {"price": {}}}},
        "total": {"type": "integer"},
    },
    "required": ["total"],
}
ROWS = {
    **PROMISE,
    "properties": {
        "rows": {"type": "array", "items": {"additionalProperties": {"type": "number"}}},
        "total": {"type": "integer"},
    },
}


class Given:
    """A tool that gives what it is told to, and counts how often."""

    def __init__(self, *values: Any, promise: Any = PROMISE, **fields: Any) -> None:
        self.calls = 0
        self._values = values
        self.tool = Tool("give", "Gives.", {}, self._give, output_schema=promise, **fields)

    async def _give(self, arguments: dict[str, Any], context: Any) -> Any:
        value = self._values[min(self.calls, len(self._values) - 1)]
        self.calls += 1
        if isinstance(value, Exception):
            raise value
        return value

    async def called(self, **policy: Any) -> ToolResult:
        policies = Policies(default=RunPolicy(**policy))
        async with Pipeline([self.tool], policies=policies) as pipeline:
            return await pipeline.call("give", {})


def failure_of(result: ToolResult) -> Failure:
    assert result.is_error
    assert result.failure is not None
    return result.failure


@pytest.mark.parametrize(
    "value",
    [
        {"total": 1},
        {"total": 1, "rows": [], "more": None},
        ToolResult(structured_content={"total": 1}, content=(TextContent(text="one"),)),
    ],
)
async def test_a_result_that_is_as_promised_comes_back_as_it_is(value: Any) -> None:
    result = await Given(value).called()

    assert not result.is_error
    assert result.structured_content["total"] == 1
    assert result.metadata is None


@pytest.mark.parametrize(
    ("value", "place"),
    [
        ({"total": "1"}, "total (type)"),
        ({}, "total (required)"),
        ({"total": 1, "rows": [{}, 5]}, "rows.1 (type)"),
        ([1], "root (type)"),
        (ToolResult(structured_content={"total": None}), "total (type)"),
    ],
)
async def test_a_broken_promise_is_a_failure_that_names_the_place(value: Any, place: str) -> None:
    failure = failure_of(await Given(value).called())

    assert (failure.code, failure.reason) == (FailureCode.EXECUTION_FAILED, "output_invalid")
    assert failure.retryable is False
    assert failure.may_have_run is True
    assert place in failure.message


@pytest.mark.parametrize(
    "value", ["done", None, ToolResult.of_text("done"), ToolResult(content=())], ids=repr
)
async def test_a_result_without_structured_content_breaks_the_promise_too(value: Any) -> None:
    failure = failure_of(await Given(value).called())

    assert failure.reason == "output_invalid"
    assert "no structured content" in failure.message


async def test_nothing_is_as_promised_if_the_promise_says_so() -> None:
    result = await Given(None, promise={"type": ["object", "null"]}).called()

    assert not result.is_error


def test_a_reader_that_was_promised_structure_is_told_that_the_call_ran_and_what_is_left() -> None:
    cut = ToolResult(call_id="1", tool="t", content=(TextContent(text="a part"),), attempts=2)

    told = told_as_promised(cut, "t")

    failure = failure_of(told)
    assert (failure.reason, failure.may_have_run) == ("output_invalid", True)
    assert failure.retryable is False
    assert told.text == f"{failure.render()}\na part"
    assert (told.call_id, told.tool, told.attempts) == ("1", "t", 2)


@pytest.mark.parametrize(
    "result",
    [ToolResult(structured_content={}), ToolResult.failed(FailureCode.TIMEOUT, "late")],
)
def test_a_result_that_keeps_its_promise_or_failed_is_told_as_it_is(result: ToolResult) -> None:
    assert told_as_promised(result, "t") is result


async def test_what_the_tool_said_is_kept_from_the_model_and_for_the_operator() -> None:
    secret = {"total": "s3cret", "rows": [{"s3cret": "s3cret"}]}
    given = ToolResult(
        content=(TextContent(text="s3cret"),), structured_content=secret, details="more"
    )

    result = await Given(given, promise=ROWS).called()

    assert "s3cret" not in result.render()
    assert "s3cret" not in failure_of(result).message
    assert "rows.0.*" in failure_of(result).message
    assert result.structured_content is None
    assert result.details["structured_content"] == secret
    assert result.details["content"] == given.content
    assert result.details["details"] == "more"
    assert {issue["path"] for issue in result.details["issues"]} == {"/total", "/rows/0/s3cret"}


async def test_many_faults_make_no_long_message() -> None:
    rows = [{"price": "x"} for _ in range(50)]

    failure = failure_of(await Given({"total": 1, "rows": rows}, promise=ROWS).called())

    assert len(failure.message) < 400
    assert "more" in failure.message


async def test_a_warning_leaves_the_result_and_notes_what_is_wrong() -> None:
    trace = TraceRecorder()
    policies = Policies(default=RunPolicy(output="warn"))
    given = ToolResult(structured_content={"total": "x"}, metadata={"own": 1})
    async with Pipeline([Given(given).tool], policies=policies, trace=trace) as pipeline:
        result = await pipeline.call("give", {})

    assert not result.is_error
    assert result.structured_content == {"total": "x"}
    assert result.metadata == {"own": 1, "output_invalid": ["total (type)"]}
    assert "output:invalid" in trace.spans()[-1].verdicts


async def test_off_is_off() -> None:
    result = await Given({"total": "x"}).called(output="off")

    assert not result.is_error
    assert result.metadata is None


async def test_without_layers_nothing_is_checked() -> None:
    async with Pipeline([Given({"total": "x"}).tool], layers=[]) as pipeline:
        assert not (await pipeline.call("give", {})).is_error


async def test_results_are_checked_even_where_arguments_are_not() -> None:
    failure = failure_of(await Given({"total": "x"}).called(check_mode="off"))

    assert failure.reason == "output_invalid"


async def test_a_failure_need_not_be_as_promised() -> None:
    own = ToolFailed(Failure(code=FailureCode.NOT_FOUND, message="no such thing"))

    assert failure_of(await Given(own).called()).code is FailureCode.NOT_FOUND


async def test_a_broken_promise_is_not_tried_again() -> None:
    given = Given({}, annotations=Annotations.for_reading())

    failure_of(await given.called(max_retries=3))

    assert given.calls == 1


async def test_a_broken_promise_opens_no_circuit() -> None:
    given = Given({})
    policies = Policies(default=RunPolicy(breaker=BreakerPolicy(threshold=1)))
    async with Pipeline([given.tool], policies=policies) as pipeline:
        for _ in range(3):
            assert failure_of(await pipeline.call("give", {})).reason == "output_invalid"

    assert given.calls == 3


async def test_the_attempt_is_recorded_as_failed() -> None:
    trace = TraceRecorder()
    async with Pipeline([Given({}).tool], trace=trace) as pipeline:
        await pipeline.call("give", {})

    (span,) = trace.spans()
    assert (span.outcome, span.reason, span.attempt) == ("failed", "output_invalid", 1)


async def test_formats_are_not_held_against_a_result() -> None:
    class Made(TypedDict):
        at: datetime

    @tool
    async def make() -> Made:
        """Make something."""
        return {"at": datetime(2024, 1, 1)}  # noqa: DTZ001  # a date without a zone is the point

    async with Pipeline([make]) as pipeline:
        result = await pipeline.call("make")

    assert result.structured_content == {"at": "2024-01-01T00:00:00"}


async def test_a_model_is_said_in_the_names_that_its_schema_has() -> None:
    class Made(BaseModel):
        the_size: int = Field(alias="theSize")

    @tool
    async def make() -> Made:
        """Make something."""
        return Made(theSize=5)

    async with Pipeline([make]) as pipeline:
        result = await pipeline.call("make")

    assert result.structured_content == {"theSize": 5}


async def test_a_large_result_is_checked_and_a_larger_one_is_none() -> None:
    promise = {"type": "object", "properties": {"n": {"items": {"type": "integer"}}}}

    fits = await Given({"n": [1] * 100_000}, promise=promise).called()
    broken = await Given({"n": [1] * 100_000 + ["x"]}, promise=promise).called()
    huge = await Given({"n": [1] * MAX_VALUES}, promise=promise).called()

    assert not fits.is_error
    assert failure_of(broken).reason == "output_invalid"
    assert failure_of(huge).reason == "output_invalid"


async def test_a_pattern_of_the_tools_own_cannot_take_long_over_its_own_text() -> None:
    looking = {"properties": {"t": {"pattern": "(?=.*[A-Z])(?=.*[0-9]).{8,}"}}}

    failure = failure_of(await Given({"t": "a" * 1_000_000}, promise=looking).called())

    assert failure.reason == "output_invalid"


def test_a_promise_that_is_no_schema_is_refused_when_the_tool_comes_in() -> None:
    from seawall import ConfigurationError  # noqa: PLC0415  # only this test refuses

    with pytest.raises(ConfigurationError, match="output_schema"):
        Pipeline([Given({}, promise={"type": "objct"}).tool])


@pytest.mark.parametrize("output", ["check", "warn"])
async def test_a_broken_promise_is_counted_whatever_becomes_of_the_result(output: Any) -> None:
    given = Given({"total": "many"}, {"total": 3})
    pipeline = Pipeline([given.tool], policies=Policies(RunPolicy(output=output)))

    for _ in range(2):
        await pipeline.call("give", {})

    assert 'seawall_output_failures_total{tool="give"} 1.0' in pipeline.metrics.text().decode()
