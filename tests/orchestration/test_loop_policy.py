"""The numbers of the loop detector, and its words."""

from __future__ import annotations

from typing import Any

import pytest

from seawall import ConfigurationError, LoopPolicy, Pipeline, ToolResult
from seawall.orchestration.loop_policy import LoopFinding, cycle, repeat, warned
from seawall.testing import FakeClock, scripted


def policy(**fields: Any) -> LoopPolicy:
    return LoopPolicy(**fields)


@pytest.mark.parametrize(
    ("fields", "key"),
    [
        ({"threshold": 1}, "threshold"),
        ({"threshold": 6, "window": 5}, "threshold"),
        ({"threshold": 1_001}, "threshold"),
        ({"window": 1_001}, "window"),
        ({"cycle_rounds": 1}, "cycle_rounds"),
        ({"cycle_rounds": 101}, "cycle_rounds"),
        ({"pause_s": 0}, "pause_s"),
        ({"scope": "some"}, "scope"),
        ({"judge_after": -1}, "judge_after"),
        ({"judge_every": 0}, "judge_every"),
        ({"judge_confidence": 1.1}, "judge_confidence"),
        ({"judge_confidence": float("nan")}, "judge_confidence"),
        ({"judge_within_s": 0}, "judge_within_s"),
        ({"judge_within_s": float("inf")}, "judge_within_s"),
    ],
)
def test_numbers_that_cannot_work_are_told(fields: dict[str, Any], key: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        policy(**fields)

    assert [fault.key for fault in raised.value.faults] == [f"loop.{key}"]


def test_all_faults_are_told_together() -> None:
    with pytest.raises(ConfigurationError) as raised:
        policy(threshold=0, judge_every=0)

    assert len(raised.value.faults) == 2


@pytest.mark.parametrize(
    "fields",
    [{"threshold": 2}, {"window": 1_000}, {"cycle_rounds": None}, {"pause_s": None}],
)
def test_bounds_themselves_are_fine(fields: dict[str, Any]) -> None:
    assert policy(**fields) == policy(**fields)


@pytest.mark.parametrize(
    ("finding", "detector", "said"),
    [
        (repeat(5), "repeat", "the same call was made 5 times with the same result"),
        (cycle(2, 3), "cycle_2", "the same 2 calls were made 3 times in turn"),
        (cycle(3, 4), "cycle_3", "the same 3 calls were made 4 times in turn"),
    ],
)
def test_a_finding_says_which_detector_fired_and_how_often(
    finding: LoopFinding, detector: str, said: str
) -> None:
    assert finding.metadata == {"loop": {"detector": detector, "count": finding.count}}
    assert said in finding.said


def test_a_warning_adds_to_a_result_and_takes_nothing_away() -> None:
    result = warned(
        ToolResult(content=ToolResult.of_text("same").content, metadata={"m": 1}), repeat(5)
    )

    assert result.text.startswith("same\n[Loop: the same call was made 5 times")
    assert result.metadata == {"m": 1, "loop": {"detector": "repeat", "count": 5}}
    assert not result.is_error


def test_without_a_policy_there_is_no_detector() -> None:
    pipeline = Pipeline([scripted("x", clock=FakeClock())], loop=None)

    assert pipeline.loop_detector is None
