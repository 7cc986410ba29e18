"""What recorded attempts show."""

from __future__ import annotations

import random
from typing import Any

import pytest

from seawall.contract.span import Outcome, Span
from seawall.orchestration.replay.evidence import (
    Arrivals,
    Most,
    arrivals_of,
    most_of,
    percentile,
    runs_of,
    tail_of,
    width_of,
)
from seawall.recording.trace_file import Recorded

Attempts = list[tuple[float, Span]]


def an_attempt(at: float, seconds: float = 0.1, reason: str = "", **fields: Any) -> Span:
    known = {"health": "infrastructure" if reason else ""}
    return Span(
        call_id=f"{at}",
        tool="tool",
        attempt=1,
        started=at,
        duration_ms=seconds * 1000,
        outcome=Outcome.FAILED if reason else Outcome.SUCCESS,
        reason=reason,
        **{**known, **fields},
    )


def attempts(*reasons: str) -> Attempts:
    return [(float(at), an_attempt(at, reason=reason)) for at, reason in enumerate(reasons)]


@pytest.mark.parametrize(("share", "expected"), [(0.5, 50), (0.99, 99), (0.999, 100), (0, 1)])
def test_a_percentile_is_one_of_the_values(share: float, expected: float) -> None:
    assert percentile(range(1, 101), share) == expected


def test_a_tail_leaves_out_what_hangs_or_was_cut_off_or_failed() -> None:
    made = [(float(n), an_attempt(n, 1 + n / 1000)) for n in range(500)]
    made += [(1000.0, an_attempt(1000, 90, "attempt_timeout"))]
    made += [(1001.0, an_attempt(1001, 80)), (1002.0, an_attempt(1002, 60, "transport"))]

    tail = tail_of(made)

    assert tail is not None
    assert tail.tail_s == pytest.approx(1.499)
    assert tail.hung == 2


def test_of_too_few_attempts_there_is_no_tail() -> None:
    assert tail_of([(0.0, an_attempt(0))] * 199) is None


def test_arrivals_tell_the_busiest_minute_and_the_mean() -> None:
    times = [minute * 70 + n * 0.1 for minute in range(10) for n in range(20 if minute else 50)]

    found = arrivals_of(times)

    assert found == Arrivals(230, 50, 23.0)


@pytest.mark.parametrize(
    ("per_second", "times", "expected"),
    [
        (1.0, [0, 0, 0, 10, 10], 3),
        (1.0, [0, 1, 2, 3], 1),
        (0.5, [0, 1, 2, 3], 3),
        (1.0, [], 0),
    ],
)
def test_a_burst_is_what_the_bucket_must_hold(
    per_second: float, times: list[float], expected: int
) -> None:
    assert Arrivals(len(times), 0, 0).bursts(per_second, times).most == expected


def test_of_few_calls_no_rate_is_told() -> None:
    assert arrivals_of([float(n) for n in range(99)]) is None


def test_runs_part_strays_from_outages() -> None:
    down = ["transport"]

    found = runs_of(attempts(*[*down, "", *down * 2, "", *down * 20, "", *down, ""]))

    assert found is not None
    assert (found.failures, found.stray, found.outages, found.outage_s) == (24, 2, 1, 19.0)


def test_an_answer_is_no_failure_and_ends_no_run() -> None:
    made = [(float(n), an_attempt(n, reason="transport")) for n in range(6)]
    made.append((6.0, an_attempt(6, reason="tool_failed", health="answer")))
    made += [(float(n), an_attempt(n, reason="transport")) for n in range(7, 13)]

    found = runs_of(made)

    assert found is not None
    assert (found.failures, found.outages) == (12, 1)


def test_of_few_failures_no_runs_are_told() -> None:
    assert runs_of(attempts(*["transport"] * 9)) is None


def test_width_counts_what_is_under_way_at_once() -> None:
    calls = [
        Recorded(tool="tool", call_id=str(at), arrival_s=at, spans=[an_attempt(at, 2.5)])
        for at in (0.0, 1.0, 2.0, 3.0, 10.0)
    ]

    assert width_of(calls).most == 3


@pytest.mark.parametrize(
    ("most", "usual", "headroom", "expected"),
    [(8, 8, 1.5, 17), (100, 100, 1.5, 150), (40, 15, 1.5, 140), (2, 1, 2.0, 7), (0, 0, 2.0, 0)],
)
def test_room_is_left_by_how_large_a_number_is_and_how_much_it_varies(
    most: int, usual: int, headroom: float, expected: int
) -> None:
    assert Most(most, usual).spare(headroom) == expected


def test_the_usual_most_is_that_of_the_middle_part_of_the_time() -> None:
    levels = [(float(at), 2) for at in range(120)] + [(120.0, 9)]

    assert most_of(levels) == Most(9, 2)
    assert most_of([(5.0, 3)]) == Most(3, 3)
    assert most_of([]) == Most(0, 0)


@pytest.mark.parametrize(("kind", "heavy"), [("expovariate", False), ("paretovariate", True)])
def test_a_heavy_tail_is_known_by_how_it_goes_on(kind: str, heavy: bool) -> None:  # a column
    draw = getattr(random.Random(3), kind)

    tail = tail_of([(float(at), an_attempt(at, draw(1.0))) for at in range(5_000)])

    assert tail is not None
    assert (tail.growth > 4) is heavy
