"""What a replay cannot do is told for each tool that asks for it."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.orchestration.replay.test_simulate import a_trace, replay

from seawall.contract.optional_policies import FallbackPolicy
from seawall.contract.policy import BreakerPolicy, RunPolicy
from seawall.contract.span import Outcome
from seawall.orchestration.replay.report import simulate
from seawall.orchestration.replay.simulate import LAYERS
from seawall.policy.build import BY_NAME
from seawall.policy.model import Policies
from seawall.recording.trace_file import CallLine

PLAIN = RunPolicy(timeout_s=10)


@pytest.mark.parametrize(
    ("policy", "said"),
    [
        (replace(PLAIN, idle_timeout_s=5), "idle_timeout_s"),
        (replace(PLAIN, breaker=BreakerPolicy(ignore=("KeyError",))), "breaker.ignore"),
        (replace(PLAIN, fallback=FallbackPolicy(tool="other")), "fallback.tool"),
    ],
)
async def test_what_is_not_played_is_told(tmp_path: Path, policy: RunPolicy, said: str) -> None:
    report = await asyncio.to_thread(simulate, a_trace(tmp_path, {}), Policies(policy))

    assert [one.partition(":")[0] for one in report.unplayed["tool"]] == [said]


async def test_of_a_tool_whose_policy_is_played_nothing_is_told(tmp_path: Path) -> None:
    policy = replace(PLAIN, max_retries=1, rate="9/minute", fallback=FallbackPolicy(text="none"))

    report = await asyncio.to_thread(simulate, a_trace(tmp_path, {}), Policies(policy))

    assert report.unplayed == {}


async def test_an_exclusive_key_in_an_argument_is_told(tmp_path: Path) -> None:
    trace = a_trace(tmp_path, {})
    trace.tools["tool"] = replace(trace.tools["tool"], exclusive="$path")

    report = await asyncio.to_thread(simulate, trace, Policies(PLAIN))

    assert report.unplayed["tool"] == ("exclusive: the argument path is not in a trace",)


async def test_a_changed_gate_is_told_where_the_recorded_policy_is_known(tmp_path: Path) -> None:
    candidate = Policies(replace(PLAIN, gate_mode="off"))
    trace = a_trace(tmp_path, {})

    report = await asyncio.to_thread(lambda: simulate(trace, candidate, baseline=Policies(PLAIN)))

    assert [one.partition(":")[0] for one in report.unplayed["tool"]] == ["gate_mode"]


async def test_refusals_of_the_ledger_are_told(tmp_path: Path) -> None:
    trace = a_trace(tmp_path, {"attempt": 0, "outcome": "denied", "reason": "outcome_unknown"}, {})
    trace.calls[0].end = CallLine("c0", "tool", Outcome.DENIED, "outcome_unknown", "ledger")

    report = await asyncio.to_thread(simulate, trace, Policies(PLAIN))

    assert [one.partition(":")[0] for one in report.unplayed["tool"]] == ["ledger"]


async def test_another_tool_answers_in_place_of_one_that_failed(tmp_path: Path) -> None:
    down = {"outcome": "failed", "reason": "tool_failed", "health": "infrastructure"}
    trace = a_trace(tmp_path, down, {"tool": "other", "duration_ms": 250.0})
    policies = Policies(
        tools={"tool": replace(PLAIN, fallback=FallbackPolicy(tool="other")), "other": PLAIN}
    )

    first, _ = await asyncio.to_thread(replay, trace, policies)

    assert first.good
    assert first.elapsed_s == pytest.approx(0.35)


async def test_one_that_is_not_in_the_trace_answers_nothing(tmp_path: Path) -> None:
    down = {"outcome": "failed", "reason": "tool_failed", "health": "infrastructure"}
    policies = Policies(replace(PLAIN, fallback=FallbackPolicy(tool="other")))

    (ended,) = await asyncio.to_thread(replay, a_trace(tmp_path, down), policies)

    assert not ended.good


def test_the_docs_say_of_every_layer_whether_it_is_played() -> None:
    page = Path(__file__).parents[3] / "docs" / "tuning.md"
    rows = re.findall(r"^\| (`.*`) \| (yes|no) \|", page.read_text(), re.MULTILINE)

    said = {name: played == "yes" for names, played in rows for name in re.findall(r"\w+", names)}

    assert said == {name: name in LAYERS for name in BY_NAME}
