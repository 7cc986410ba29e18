"""Usage per tool: vectors, then what counts as what, and what is forgotten."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seawall.contract.span import Outcome
from seawall.pipeline.recorder import Finished
from seawall.recording.usage import Usage, UsageTracker
from seawall.testing import FakeClock

if TYPE_CHECKING:
    from collections.abc import Callable

TESTS = Path(__file__).parents[1]
VECTORS = {
    one["id"]: one for one in json.loads((TESTS / "vectors" / "usage.json").read_text())["cases"]
}


def finished(
    outcome: Outcome = Outcome.SUCCESS,
    reason: str = "",
    *,
    tool: str = "t",
    executed_s: float | None = 0.5,
) -> Finished:
    return Finished(
        call_id="1",
        tool=tool,
        outcome=outcome,
        reason=reason,
        layer="",
        elapsed_s=1.0,
        executed_s=executed_s,
        attempts=1,
        session_id="s",
        caller="c",
        result=None,
    )


def counter(usage: UsageTracker, tool: str = "t") -> Callable[[Finished], None]:
    count = usage.for_tool(tool).on_call
    assert count is not None
    return count


# Vectors.


def test_every_vector_is_played_here() -> None:
    assert set(VECTORS) == {"us-02", "us-03"}


def test_the_last_error_is_the_newest_as_the_vector_says() -> None:
    step = VECTORS["us-02"]["steps"][0]
    usage = UsageTracker()
    count = counter(usage, step["fail"])

    for error in step["errors"]:
        count(finished(Outcome.FAILED, error))

    assert usage.snapshot()["t"].last_error == VECTORS["us-02"]["expect"]["last_error"]


def test_a_handle_settles_once_as_the_vector_says() -> None:
    expected = VECTORS["us-03"]["expect"]
    usage = UsageTracker()
    usage.for_tool("t")

    handle = usage.begin(VECTORS["us-03"]["steps"][0]["begin"])
    told = [handle.success(), handle.failure("tool_failed"), handle.refusal("rate_limited")]

    found = usage.snapshot()["t"]
    assert told == [True, False, False]
    assert {name: getattr(found, name) for name in expected} == expected
    assert found.last_error == ""


# Counting.


async def test_each_way_to_end_is_counted_as_what_it_is() -> None:
    clock = FakeClock(wall=1_700_000_000.0)
    usage = UsageTracker(clock)
    count = counter(usage)

    count(finished())
    count(finished(executed_s=1.5))
    count(finished(Outcome.FAILED, "attempt_timeout", executed_s=4.0))
    await clock.advance(10)
    count(finished(Outcome.DENIED, "rate_limited", executed_s=None))
    count(finished(Outcome.SKIPPED, "not_executed", executed_s=None))

    found = usage.snapshot()["t"]
    assert found == Usage(
        tool="t",
        successes=2,
        failures=1,
        refusals=1,
        skipped=1,
        runs=3,
        total_s=6.0,
        last_error="attempt_timeout",
        last_used=1_700_000_010.0,
    )
    assert (found.invocations, found.success_rate, found.mean_s) == (5, 2 / 3, 2.0)


def test_a_refusal_is_no_error_of_the_tool() -> None:
    usage = UsageTracker()

    counter(usage)(finished(Outcome.DENIED, "approval_denied", executed_s=None))

    found = usage.snapshot()["t"]
    assert (found.last_error, found.success_rate, found.mean_s) == ("", None, None)


def test_a_success_does_not_clear_the_last_error() -> None:
    usage = UsageTracker()

    counter(usage)(finished(Outcome.FAILED, "transport"))
    counter(usage)(finished())

    assert usage.snapshot()["t"].last_error == "transport"


def test_free_text_that_a_tool_gave_as_its_reason_is_not_kept() -> None:
    usage = UsageTracker()

    counter(usage)(finished(Outcome.FAILED, "Error: sk-live-1234"))

    assert usage.snapshot()["t"].last_error == "other"


@given(st.lists(st.sampled_from(Outcome), max_size=40))
def test_every_call_is_counted_exactly_once(outcomes: list[Outcome]) -> None:
    usage = UsageTracker()
    count = counter(usage)

    for outcome in outcomes:
        count(finished(outcome, "tool_failed"))

    assert usage.snapshot()["t"].invocations == len(outcomes)


async def test_a_handle_measures_from_its_beginning() -> None:
    clock = FakeClock()
    usage = UsageTracker(clock)
    usage.for_tool("t")

    handle = usage.begin("t")
    await clock.advance(3)
    handle.failure("transport")

    found = usage.snapshot()["t"]
    assert (found.failures, found.total_s, found.last_error) == (1, 3.0, "transport")


async def test_a_handle_that_is_refused_ran_nothing() -> None:
    clock = FakeClock()
    usage = UsageTracker(clock)
    usage.for_tool("t")

    handle = usage.begin("t")
    await clock.advance(3)
    handle.refusal("approval_denied")

    found = usage.snapshot()["t"]
    assert (found.refusals, found.runs, found.total_s) == (1, 0, 0.0)


# Which tools there are.


def test_an_unknown_name_leaves_nothing() -> None:
    usage = UsageTracker()

    usage.unknown()
    counted = usage.begin("never registered").success()

    assert not counted
    assert usage.snapshot() == {}


def test_a_tool_whose_chain_is_composed_anew_goes_on_with_its_numbers() -> None:
    usage = UsageTracker()

    counter(usage)(finished())
    counter(usage)(finished())

    assert usage.snapshot()["t"].successes == 2


def test_a_forgotten_tool_is_dropped_and_begins_anew() -> None:
    usage = UsageTracker()
    old = counter(usage)
    old(finished())
    handle = usage.begin("t")

    usage.forget("t")
    usage.forget("t")
    old(finished())
    handle.success()

    assert usage.snapshot() == {}
    usage.for_tool("t")
    assert usage.snapshot()["t"].invocations == 0


# Reports.


def test_the_most_called_tools_come_first_then_by_name() -> None:
    usage = UsageTracker()
    for tool, calls in [("b", 1), ("never", 0), ("most", 3), ("a", 1)]:
        usage.for_tool(tool)
        for _ in range(calls):
            counter(usage, tool)(finished())

    assert list(usage.snapshot()) == ["most", "a", "b", "never"]


def test_a_report_has_a_line_for_each_tool_that_was_called() -> None:
    usage = UsageTracker(FakeClock(wall=1_700_000_000.0))
    counter(usage, "search")(finished())
    counter(usage, "search")(finished(Outcome.FAILED, "transport", executed_s=1.0))
    counter(usage, "pay\nment")(finished(Outcome.DENIED, "rate_limited", executed_s=None))
    usage.for_tool("never")

    used = "last used 2023-11-14T22:13:20.000+00:00"
    numbers = "2 calls  success 1, failed 1, denied 0  50% success  mean 0.750 s"
    assert usage.report().splitlines() == [
        f"search  {numbers}  last error transport  {used}",
        f"'pay\\nment'  1 calls  success 0, failed 0, denied 1  {used}",
        "0 more; 1 never called",
    ]


@pytest.mark.parametrize(
    ("limit", "last"), [(1, "2 more; 0 never called"), (-1, "3 more; 0 never called")]
)
def test_a_report_says_how_much_it_leaves_out(limit: int, last: str) -> None:
    usage = UsageTracker()
    for tool in "abc":
        counter(usage, tool)(finished())

    assert usage.report(limit).splitlines()[-1] == last


def test_a_tool_that_never_ran_has_no_share_of_successes_in_the_report() -> None:
    usage = UsageTracker(FakeClock())
    handle = usage.for_tool("t")
    assert handle.on_call is not None

    handle.on_call(finished(executed_s=None))

    assert "success " in usage.report()
    assert "% ok" not in usage.report()
