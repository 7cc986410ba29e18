"""What a policy changes, added up per tool and family, and bounds for it."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from seawall.contract.policy import RunPolicy
from seawall.contract.span import Outcome
from seawall.orchestration.replay.report import Bound, Report, simulate
from seawall.policy.changes import Changes, Family
from seawall.policy.model import Policies
from seawall.recording.trace_file import Trace, read_trace

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(name="trace")
def trace_fixture(tmp_path: Path) -> Trace:
    """Ten calls of `read` and ten of `write`, a second apart; every fifth takes 3 s."""
    lines: list[dict[str, Any]] = [
        {"trace": 1, "started": 0.0},
        {"about": "read", "hints": {"read_only": True}, "family": "reading"},
        {"about": "write"},
    ]
    lines += [
        {
            "call_id": f"c{number}",
            "tool": "write" if number % 2 else "read",
            "attempt": 1,
            "started": 0.0,
            "duration_ms": 3000.0 if number % 5 == 0 else 100.0,
            "outcome": "success",
            "offset_s": float(number),
        }
        for number in range(20)
    ]
    lines.append({**lines[-1], "call_id": "d", "outcome": "denied", "reason": "approval_denied"})
    lines[-1]["attempt"] = 0
    (tmp_path / "x.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return read_trace(tmp_path / "x.jsonl")


FREE = Policies(RunPolicy())


async def made(trace: Trace, candidate: Policies, **options: Any) -> Report:
    return await asyncio.to_thread(simulate, trace, candidate, **options)


async def test_what_happened_is_compared_with_what_would(trace: Trace) -> None:
    report = await made(trace, Policies(RunPolicy(timeout_s=1)))

    assert report.against == "what happened"
    assert (report.total.after.calls, report.not_played) == (20, 1)
    assert (report.total.lost, report.total.newly_timed_out) == (4, 4)
    assert report.tools["read"].lost == report.tools["write"].lost == 2


async def test_refusals_are_counted_by_the_layer_that_makes_them(trace: Trace) -> None:
    policy = Policies(
        RunPolicy(),
        tools={"read": Changes(rate="4/hour"), "write": Changes(max_concurrency=1)},
    )

    for call in trace.calls:
        call.spans[:] = [msgspec.structs.replace(span, duration_ms=60_000.0) for span in call.spans]

    report = await made(trace, policy)

    assert report.tools["read"].after.refused_by == {"rate_limit": 6}
    assert report.tools["write"].after.refused_by == {"bulkhead": 5}
    assert report.total.after.refused_by == {"rate_limit": 6, "bulkhead": 5}
    assert report.total.before.refused_by == {}
    assert report.export()["total"]["after"]["refused_by"] == {"rate_limit": 6, "bulkhead": 5}


@pytest.mark.parametrize(
    ("reason", "layer"),
    [("rate_limited", "rate_limit"), ("circuit_open", "breaker"), ("overloaded", "bulkhead")],
)
async def test_where_a_trace_has_spans_alone_the_layer_is_told_by_the_reason(
    trace: Trace, reason: str, layer: str
) -> None:
    span = trace.calls[0].spans[0]
    denied = msgspec.structs.replace(span, outcome=Outcome.DENIED, reason=reason, attempt=0)
    trace.calls[0].spans[:] = [denied]

    report = await made(trace, FREE)

    assert report.total.before.refused_by == {layer: 1}


async def test_families_are_added_up_too(trace: Trace) -> None:
    policies = Policies(
        RunPolicy(),
        families={
            "reading": Changes(timeout_s=1),
            "all": Family(match=("*",), policy=Changes()),
        },
    )

    report = await made(trace, policies)

    assert report.families["reading"].lost == 2
    assert report.families["all"].after.calls == 20


async def test_a_baseline_is_simulated_too_and_held_against_what_happened(trace: Trace) -> None:
    report = await made(trace, FREE, baseline=Policies(RunPolicy(timeout_s=1)))

    assert report.against == "the baseline"
    assert report.total.before.timed_out == 0  # what was answered in time was in time
    assert report.unlike == 0


async def test_added_time_counts_what_is_answered_both_times(trace: Trace) -> None:
    report = await made(trace, Policies(RunPolicy(max_concurrency=1)))

    assert report.total.added_s == pytest.approx(4)
    assert report.total.longest_added_s == pytest.approx(1)


@pytest.mark.parametrize(
    ("name", "text", "exceeded"),
    [
        ("lost", "4", False),
        ("lost", "3", True),
        ("lost", "20%", False),
        ("timed_out", "19.9%", True),
        ("failed", "0", True),
        ("refused", "0%", False),
        ("newly_refused", "0", False),
        ("shadow_refused", "0", False),
    ],
)
async def test_bounds_are_numbers_or_shares(
    trace: Trace, name: str, text: str, exceeded: bool
) -> None:
    report = await made(trace, Policies(RunPolicy(timeout_s=1)))

    said = Bound.parse(name, text).exceeded(report)

    assert (said is not None) == exceeded


@pytest.mark.parametrize("text", ["", "x", "-1", "101%", "nan", "1e99"])
def test_what_is_no_bound_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"no share|could not convert"):
        Bound.parse("lost", text)
