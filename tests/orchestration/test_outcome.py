"""What is said of steps that ran, and of steps that did not."""

from __future__ import annotations

import msgspec
import pytest

from seawall.contract.failure import Failure, FailureCode
from seawall.contract.result import ToolResult
from seawall.orchestration.outcome import NOT_EXECUTED, BatchOutcome, not_executed

GOOD = ToolResult.of_text("fine")
BAD = ToolResult.failed(FailureCode.TIMEOUT, "too slow", reason="attempt_timeout")


def outcome_of(
    *results: ToolResult, at: int | None = None, timed_out: bool = False
) -> BatchOutcome:
    tools = tuple(f"t{place}" for place in range(len(results)))
    return BatchOutcome(tools=tools, results=results, at_step=at, timed_out=timed_out)


def test_what_is_left_out_carries_the_fixed_words_and_nothing_else() -> None:
    result = not_executed("t")

    assert result.text == NOT_EXECUTED
    assert result.is_error
    assert NOT_EXECUTED in result.render()


@pytest.mark.parametrize(
    ("outcome", "headline"),
    [
        (outcome_of(GOOD), "1 of 1 steps succeeded."),
        (outcome_of(GOOD, BAD, at=1), "1 of 2 steps succeeded; step 1 (t1) failed."),
        (
            outcome_of(BAD, not_executed("t"), not_executed("t"), at=0, timed_out=True),
            "0 of 3 steps succeeded; step 0 (t0) was out of time, so 2 after it were not run.",
        ),
    ],
)
def test_a_report_begins_with_the_whole(outcome: BatchOutcome, headline: str) -> None:
    assert outcome.report().split("\n\n")[0] == headline


def test_a_refused_plan_has_no_results_and_is_not_halted() -> None:
    refusal = Failure(code=FailureCode.INVALID_ARGUMENT, message="bad")
    outcome = BatchOutcome(tools=("a", "b"), refusal=refusal, at_step=1)

    assert (outcome.halted_at, outcome.statuses, outcome.complete) == (None, (), False)
    assert outcome.report() == refusal.render()
    failure = outcome.result("the batch").failure
    assert failure == msgspec.structs.replace(refusal, layer="executor")


def test_the_whole_never_has_the_code_of_a_step() -> None:
    result = outcome_of(GOOD, BAD, at=1).result("the batch")

    assert result.failure is not None
    assert result.failure.code is FailureCode.EXECUTION_FAILED
    assert "attempt timeout" in result.failure.message
    assert not result.failure.retryable


def test_whether_anything_may_have_run_is_known_from_the_attempts() -> None:
    ran = ToolResult(attempts=1)
    unrun = ToolResult.failed(FailureCode.RATE_LIMITED, "wait")

    first = outcome_of(unrun, at=0).result("x").failure
    second = outcome_of(ran, unrun, at=1).result("x").failure

    assert first is not None
    assert second is not None
    assert (first.may_have_run, second.may_have_run) == (False, True)


def test_the_end_of_a_turn_is_asked_for_only_by_all_steps_together() -> None:
    wants, does_not = ToolResult(terminate=True), ToolResult()

    assert outcome_of(wants, wants).result("x").terminate
    assert not outcome_of(wants, does_not).result("x").terminate
