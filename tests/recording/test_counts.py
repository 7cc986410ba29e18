"""What is counted of one tool: which bucket, which labels, and how many of them at most."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seawall.contract.failure import REASONS, FailureCode
from seawall.contract.result import ToolResult
from seawall.contract.span import Outcome, Span
from seawall.pipeline.recorder import Finished
from seawall.recording.counts import (
    ALWAYS_KEPT,
    BOUNDS_S,
    MAX_PAIRS,
    OUTCOMES,
    Durations,
    ToolCounts,
)

ODD_MS = st.floats(0, 5) | st.sampled_from([-1.0, 0.0, 1.0, 0.5, 1e9])


def span_of(outcome: Outcome = Outcome.SUCCESS, attempt: int = 1, duration_ms: float = 5) -> Span:
    return Span("1", "t", attempt, 0.0, duration_ms, outcome)


def finished(outcome: Outcome = Outcome.SUCCESS, **fields: Any) -> Finished:
    values: dict[str, Any] = {
        "reason": "",
        "layer": "",
        "elapsed_s": 0.01,
        "executed_s": None,
        "attempts": 0,
        "session_id": "s",
        "caller": "c",
        "result": None,
    }
    return Finished(call_id="1", tool="t", outcome=outcome, **(values | fields))


# Durations.


@given(st.floats(0, 1_000, allow_nan=False) | st.sampled_from(BOUNDS_S))
def test_a_duration_falls_into_the_first_bucket_that_holds_it(seconds: float) -> None:
    durations = Durations()

    durations.observe(seconds)

    holding = [place for place, bound in enumerate((*BOUNDS_S, math.inf)) if seconds <= bound]
    assert durations.buckets.index(1) == holding[0]
    assert sum(durations.buckets) == 1


@pytest.mark.parametrize("odd", [-1.0, math.nan, 0.0])
def test_an_impossible_duration_is_counted_but_never_lowers_the_sum(odd: float) -> None:
    durations = Durations()
    durations.observe(2.0)

    durations.observe(odd)

    assert durations.total_s == 2.0
    assert sum(durations.buckets) == 2


def test_bounds_rise() -> None:
    assert list(BOUNDS_S) == sorted(set(BOUNDS_S))


# Attempts.


def test_an_attempt_counts_by_outcome_with_its_duration_in_seconds() -> None:
    counts = ToolCounts()

    counts.on_attempt(span_of(Outcome.FAILED, duration_ms=1500))

    assert dict(zip(OUTCOMES, counts.attempts, strict=True))[Outcome.FAILED] == 1
    assert counts.attempt_durations.total_s == 1.5


def test_attempts_after_the_first_are_retries() -> None:
    counts = ToolCounts()

    for number in (1, 2, 3):
        counts.on_attempt(span_of(attempt=number))

    assert (counts.retries, sum(counts.attempts)) == (2, 3)


def test_the_span_of_a_call_refused_before_its_first_attempt_is_no_attempt() -> None:
    counts = ToolCounts()

    counts.on_attempt(span_of(Outcome.DENIED, attempt=0))

    assert sum(counts.attempts) == 0
    assert not any(counts.attempt_durations.buckets)


# Calls.


def test_every_call_is_in_the_duration_of_calls() -> None:
    counts = ToolCounts()

    for outcome in Outcome:
        counts.on_call(finished(outcome, elapsed_s=2.0))

    assert counts.calls == [1, 1, 1, 1]
    assert counts.call_durations.total_s == 8.0


@pytest.mark.parametrize(
    ("reason", "label"),
    [*((reason, reason) for reason in REASONS), ("quota_used_up", "other"), ("", "other")],
)
def test_a_refusal_counts_by_layer_and_known_reason(reason: str, label: str) -> None:
    counts = ToolCounts()

    counts.on_call(finished(Outcome.DENIED, layer="rate_limit", reason=reason))

    assert counts.refusals == {("rate_limit", label): 1}
    assert counts.failures == {}


def test_a_failure_counts_by_its_code_and_known_reason() -> None:
    counts = ToolCounts()
    own = ToolResult.failed(FailureCode.NOT_FOUND, "no such page", reason="page_gone")

    counts.on_call(finished(Outcome.FAILED, reason="page_gone", result=own))

    assert counts.failures == {("not_found", "other"): 1}
    assert counts.refusals == {}


@pytest.mark.parametrize(
    ("reason", "pair"),
    [("cancelled", ("execution_failed", "cancelled")), ("whatever", ("unknown", "other"))],
)
def test_a_call_without_a_result_has_the_code_of_its_reason(
    reason: str, pair: tuple[str, str]
) -> None:
    counts = ToolCounts()

    counts.on_call(finished(Outcome.FAILED, reason=reason))

    assert counts.failures == {pair: 1}


@pytest.mark.parametrize("outcome", [Outcome.SUCCESS, Outcome.SKIPPED])
def test_only_failures_and_refusals_say_why(outcome: Outcome) -> None:
    counts = ToolCounts()

    counts.on_call(finished(outcome, reason="not_executed", layer="batch"))

    assert (counts.failures, counts.refusals) == ({}, {})


# Labels that others choose.


def test_pairs_beyond_the_bound_count_as_other() -> None:
    counts = ToolCounts()

    for number in range(10 * MAX_PAIRS):
        counts.on_event("layer", f"event {number}")
        counts.on_call(finished(Outcome.DENIED, layer=f"layer {number}", reason="overloaded"))

    for pairs in (counts.events, counts.refusals):
        assert len(pairs) == MAX_PAIRS + 1
        assert pairs["other", "other"] == 9 * MAX_PAIRS


def test_a_pair_that_was_seen_before_the_bound_keeps_its_count() -> None:
    counts = ToolCounts()
    for number in range(2 * MAX_PAIRS):
        counts.on_event("breaker", f"{number}")

    counts.on_event("breaker", "0")

    assert counts.events["breaker", "0"] == 2


@pytest.mark.parametrize(
    ("given_label", "label"),
    [("opened", "opened"), ("", "other"), ("x" * 65, "x" * 64), ("\ud800", "\\ud800")],
)
def test_a_label_is_short_and_can_be_written(given_label: str, label: str) -> None:
    counts = ToolCounts()

    counts.on_event(given_label, given_label)
    counts.on_event(given_label, given_label)

    assert counts.events == {(label, label): 2}


# Adding up.


def test_what_is_absorbed_is_added_and_the_other_stays() -> None:
    one, other = ToolCounts(), ToolCounts()
    for counts in (one, other):
        counts.on_call(finished(Outcome.DENIED, layer="rate_limit", reason="rate_limited"))
        counts.on_call(finished(Outcome.FAILED, reason="transport"))
        counts.on_attempt(span_of(attempt=2, duration_ms=2000))
        counts.on_event("breaker", "opened")

    one.absorb(other)

    assert one.calls == [0, 2, 2, 0]
    assert one.attempts == [2, 0, 0, 0]
    assert one.retries == 2
    assert one.attempt_durations.total_s == 4.0
    assert one.call_durations.buckets is not None
    assert sum(one.call_durations.buckets) == 4
    assert one.refusals == {("rate_limit", "rate_limited"): 2}
    assert one.failures == {("execution_failed", "transport"): 2}
    assert one.events == {("breaker", "opened"): 2}
    assert other.calls == [0, 1, 1, 0]


def test_absorbing_a_tool_that_was_never_called_makes_no_buckets() -> None:
    one = ToolCounts()

    one.absorb(ToolCounts())

    assert not any(one.call_durations.buckets)


def test_absorbing_keeps_the_bound_of_pairs() -> None:
    one, other = ToolCounts(), ToolCounts()
    for number in range(MAX_PAIRS):
        one.on_event("one", f"{number}")
        other.on_event("other", f"{number}")

    one.absorb(other)

    assert len(one.events) == MAX_PAIRS + 1
    assert sum(one.events.values()) == 2 * MAX_PAIRS


# What goes well at once.


NUMBERS = st.integers(0, 3)
VERDICTS = st.sampled_from([(), ("hedge:extra",), ("breaker:would_refuse:circuit_open",)])


@given(st.lists(st.tuples(ODD_MS, ODD_MS, NUMBERS, VERDICTS)))
def test_a_success_counts_as_its_attempt_and_its_call_would(
    ends: list[tuple[float, float, int, tuple[str, ...]]],
) -> None:
    told, others = ToolCounts(), ToolCounts()

    for number, (queue_ms, took_ms, attempt, verdicts) in enumerate(ends):
        span = Span(
            f"{number}",
            "t",
            attempt,
            0.0,
            took_ms,
            Outcome.SUCCESS,
            queue_ms=queue_ms,
            verdicts=verdicts,
        )
        elapsed_s = (queue_ms + took_ms) / 1000
        told.on_success(span, 0.0)
        others.on_attempt(span)
        others.on_call(msgspec.structs.replace(finished(elapsed_s=elapsed_s), call_id=f"{number}"))

    assert shown(told.settled()) == shown(others.settled())


@given(st.lists(st.tuples(ODD_MS, ODD_MS, NUMBERS)))
def test_a_failed_attempt_counts_however_short_it_was(
    ends: list[tuple[float, float, int]],
) -> None:
    told, took, queued = ToolCounts(), Durations(), Durations()

    for queue_ms, took_ms, attempt in ends:
        told.on_attempt(Span("1", "t", attempt, 0.0, took_ms, Outcome.FAILED, queue_ms=queue_ms))
        if attempt > 0:
            took.observe(took_ms / 1000, "1")
        if attempt == 1:
            queued.observe(queue_ms / 1000, "1")

    counts = told.settled()
    attempts = [attempt for _, _, attempt in ends if attempt > 0]
    assert counts.attempts == [0, len(attempts), 0, 0]
    assert counts.retries == len([attempt for attempt in attempts if attempt > 1])
    for found, wanted in ((counts.attempt_durations, took), (counts.queue_durations, queued)):
        assert found.buckets == wanted.buckets
        assert found.newest == wanted.newest
        assert found.total_s == pytest.approx(wanted.total_s)


def test_what_is_counted_at_once_is_absorbed_too() -> None:
    one, other = ToolCounts(), ToolCounts()
    span = Span("1", "t", 1, 0.0, 0.5, Outcome.SUCCESS, queue_ms=0.25)

    other.on_success(span, 0.0)
    one.on_success(span, 0.0)
    one.absorb(other)

    whole = one.settled()
    assert (whole.calls, whole.attempts) == ([2, 0, 0, 0], [2, 0, 0, 0])
    assert whole.queue_durations.total_s == pytest.approx(0.0005)
    assert whole.call_durations.buckets[0] == 2


def shown(counts: ToolCounts) -> Any:
    durations = (counts.call_durations, counts.attempt_durations, counts.queue_durations)
    return (
        counts.calls,
        counts.attempts,
        counts.retries,
        [(one.buckets, round(one.total_s, 6)) for one in durations],
        [one.newest for one in durations],
    )


# What belongs to one metric.


def test_the_time_before_the_first_attempt_counts_once_for_each_call() -> None:
    counts = ToolCounts()

    counts.on_attempt(Span("1", "t", 1, 0.0, 5, Outcome.FAILED, queue_ms=2_500))
    counts.on_attempt(Span("1", "t", 2, 0.0, 5, Outcome.SUCCESS, queue_ms=9_000))
    counts.on_attempt(Span("2", "t", 1, 0.0, 5, Outcome.SUCCESS, queue_ms=0.5))
    counts.on_attempt(Span("3", "t", 1, 0.0, 5, Outcome.SUCCESS))

    assert sum(counts.queue_durations.buckets) == 3
    assert counts.queue_durations.buckets[0] == 2
    assert counts.queue_durations.total_s == pytest.approx(2.5005)


def test_events_with_a_metric_of_their_own_are_kept_whatever_came_before() -> None:
    counts = ToolCounts()
    for number in range(100):
        counts.on_event(f"layer {number}", "event")

    for pair in ALWAYS_KEPT:
        counts.on_event(*pair)

    assert all(counts.events[pair] == 1 for pair in ALWAYS_KEPT)
    assert len(counts.events) <= MAX_PAIRS + 1 + len(ALWAYS_KEPT)


def test_absorbing_keeps_the_newest_of_both() -> None:
    one, other = Durations(), Durations()
    one.observe(0.5, "old")
    one.observe(5.0, "kept")
    other.observe(0.5, "new")

    one.absorb(other)

    assert {"new", "kept"} == {found[0] for found in one.newest if isinstance(found, tuple)}
    assert (sum(one.buckets), one.total_s) == (3, 6.0)
