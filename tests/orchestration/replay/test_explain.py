"""What a replay makes otherwise is told with the boundary that it is near to."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from tests.orchestration.replay.test_simulate import DOWN, a_trace

from seawall.contract.policy import BreakerPolicy, RunPolicy
from seawall.orchestration.replay.explain import Difference, differences
from seawall.orchestration.replay.simulate import Simulation
from seawall.policy.model import Policies

if TYPE_CHECKING:
    from pathlib import Path


async def explained(
    folder: Path, policy: RunPolicy, *spans: dict[str, Any], gap_s: float = 1.0
) -> list[Difference]:
    trace = a_trace(folder, *spans, gap_s=gap_s)
    policies = Policies(policy)
    replay = Simulation(trace, policies)
    ended = await asyncio.to_thread(replay.run)
    return differences(trace, ended, replay)


BREAKER = BreakerPolicy(threshold=3, cooldown_s=5)
OPEN = {
    "outcome": "denied",
    "reason": "circuit_open",
    "attempt": 0,
    "duration_ms": 0.0,
    "instants": {"short_ms": 0.25},
}


@pytest.mark.parametrize(
    ("policy", "spans", "boundary", "distance_ms"),
    [
        (RunPolicy(rate="1 per 2 seconds"), [{}, {"offset_s": 1.9995}], "rate", 0.5),
        (RunPolicy(timeout_s=1), [{"duration_ms": 1000.4}], "timeout", 0.4),
        (RunPolicy(deadline_s=1), [{"duration_ms": 1000.4}], "deadline", 0.4),
        (
            RunPolicy(breaker=BREAKER),
            [*[{**DOWN, "offset_s": 0.0}] * 3, {"offset_s": 5.0997}],
            "circuit",
            0.3,
        ),
        (RunPolicy(breaker=BREAKER), [OPEN], "circuit", 0.25),
    ],
)
async def test_a_difference_names_its_boundary_and_how_near_it_is(
    tmp_path: Path,
    policy: RunPolicy,
    spans: list[dict[str, Any]],
    boundary: str,
    distance_ms: float,
) -> None:
    (one,) = await explained(tmp_path, policy, *spans)

    assert one.boundary == boundary
    assert one.distance_ms == pytest.approx(distance_ms, abs=0.01)
    assert one.follows == ""


async def test_what_is_far_from_every_boundary_is_told_as_that(tmp_path: Path) -> None:
    (one,) = await explained(tmp_path, RunPolicy(timeout_s=1), {"duration_ms": 1600.0})

    assert one.distance_ms == pytest.approx(600)
    assert (one.was, one.would_be) == ("success after 1", "attempt_timeout after 1")


async def test_later_differences_of_the_tool_follow_from_the_first(tmp_path: Path) -> None:
    first, second = await explained(tmp_path, RunPolicy(breaker=BREAKER), OPEN, OPEN)

    assert (first.follows, second.follows) == ("", first.call_id)


async def test_a_minute_later_a_difference_stands_for_itself(tmp_path: Path) -> None:
    limited = {"duration_ms": 1001.0}

    first, second = await explained(tmp_path, RunPolicy(timeout_s=1), limited, limited, gap_s=61)

    assert (first.follows, second.follows) == ("", "")


async def test_a_replay_that_is_what_happened_has_nothing_to_explain(tmp_path: Path) -> None:
    assert await explained(tmp_path, RunPolicy(timeout_s=1), {}, {}) == []
