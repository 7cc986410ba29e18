"""Every limit can be tried in shadow: it decides, counts and tells, and lets calls pass."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from seawall import Pipeline, Policies, Registry, Risk, RunPolicy, Tool
from seawall.contract.annotations import Annotations
from seawall.contract.optional_policies import AdaptiveLimitPolicy, HedgePolicy, RetryBudgetPolicy
from seawall.contract.policy import BreakerPolicy
from seawall.orchestration.loop_policy import LoopPolicy
from seawall.orchestration.replay.report import Bound, simulate
from seawall.pipeline.session import Session
from seawall.recording.trace_file import TraceFile, read_trace
from seawall.testing import FakeClock

if TYPE_CHECKING:
    from pathlib import Path

    from seawall.contract.result import ToolResult

BREAKER = BreakerPolicy(threshold=2, cooldown_s=60)
NONE_EXTRA = RetryBudgetPolicy(share=1e-9, min_retries=0)
PLAIN = RunPolicy(timeout_s=60)


def shadowed(policy: RunPolicy, section: str) -> RunPolicy:
    """Put one limit of a policy into shadow."""
    if hasattr(policy, f"{section}_mode"):
        return replace(policy, **{f"{section}_mode": "shadow"})
    return replace(policy, **{section: replace(getattr(policy, section), mode="shadow")})


PLAYED = [
    ("rate", "rate_limit", replace(PLAIN, rate="2/minute")),
    ("max_concurrency", "bulkhead", replace(PLAIN, max_concurrency=1)),
    (
        "adaptive_limit",
        "adaptive_limit",
        replace(PLAIN, adaptive_limit=AdaptiveLimitPolicy(initial=1, max_limit=1)),
    ),
    ("breaker", "breaker", replace(PLAIN, breaker=BREAKER)),
    ("timeout", "timeout", replace(PLAIN, timeout_s=2)),
    ("retry_budget", "retry", replace(PLAIN, max_retries=1, retry_budget=NONE_EXTRA)),
    (
        "retry_budget",
        "hedge",
        replace(PLAIN, hedge=HedgePolicy(delay_s=1), retry_budget=NONE_EXTRA),
    ),
]


async def run(
    policy: RunPolicy, path: Path, *, fails: bool, count: int = 12
) -> tuple[Pipeline, list[ToolResult]]:
    clock = FakeClock()

    async def work(_: dict[str, Any], __: Any) -> str:
        await clock.sleep(3)
        if fails:
            raise ConnectionError("down")
        return "done"

    tool = Tool("t", "", {"type": "object"}, work, annotations=Annotations.for_reading())
    registry = Registry([tool])
    with TraceFile(path, tools=registry, clock=clock) as recorder:
        pipeline = Pipeline(
            registry, policies=Policies(policy), recorders=[recorder], clock=clock, loop=None
        )

        async def calls() -> list[ToolResult]:
            tasks = []
            for _ in range(count):
                tasks.append(asyncio.ensure_future(pipeline.call("t")))
                await clock.sleep(0.5)
            return await asyncio.gather(*tasks)

        results = await clock.run(calls())
    return pipeline, results


def ends(results: list[ToolResult]) -> list[tuple[str, int]]:
    return [(one.failure.reason if one.failure else "", one.attempts) for one in results]


@pytest.mark.parametrize(("section", "layer", "policy"), PLAYED, ids=lambda one: str(one)[:14])
async def test_a_limit_in_shadow_changes_no_end_and_is_counted_told_and_simulated(
    tmp_path: Path, section: str, layer: str, policy: RunPolicy
) -> None:
    fails = section == "breaker" or layer == "retry"
    off = (
        replace(policy, **{f"{section}_mode": "off"})
        if hasattr(policy, f"{section}_mode")
        else replace(policy, **{section: replace(getattr(policy, section), mode="off")})
    )
    watching = shadowed(policy, section)

    _, on = await run(policy, tmp_path / "on.jsonl", fails=fails)
    _, without = await run(off, tmp_path / "off.jsonl", fails=fails)
    pipeline, results = await run(watching, tmp_path / "shadow.jsonl", fails=fails)
    report = await asyncio.to_thread(
        simulate, read_trace(tmp_path / "off.jsonl"), Policies(watching)
    )

    assert ends(on) != ends(results)
    if layer != "hedge":
        assert ends(without) == ends(results)
    verdicts = {verdict for span in pipeline.trace.spans() for verdict in span.verdicts}
    assert [one for one in verdicts if one.startswith(f"{layer}:would_refuse:")]
    assert f'event="shadow_refused",layer="{layer}",tool="t"' in pipeline.metrics.text().decode()
    assert report.total.after.shadow_refused > 0
    assert Bound.parse("shadow_refused", "0").exceeded(report) is not None
    assert report.total.after.refused == 0


async def test_a_gate_in_shadow_asks_nobody_and_is_counted_and_told() -> None:
    tool = Tool("t", "", {"type": "object"}, lambda *_: answer(), risk=Risk.HIGH)
    pipeline = Pipeline([tool], policies=Policies(RunPolicy(gate_mode="shadow")))

    result = await pipeline.call("t")

    assert result.text == "done"
    (span,) = pipeline.trace.spans()
    assert [one for one in span.verdicts if one.startswith("risk_gate:would_refuse:")]
    said = pipeline.metrics.text().decode()
    assert 'event="shadow_refused",layer="risk_gate",tool="t"' in said


async def answer() -> str:
    return "done"


async def test_a_loop_in_shadow_is_neither_warned_of_nor_stopped_but_told() -> None:
    tool = Tool("t", "", {"type": "object"}, lambda *_: answer())
    pipeline = Pipeline([tool], loop=LoopPolicy(threshold=2, mode="shadow"))
    session = Session("s")

    results = [await pipeline.call("t", session=session) for _ in range(4)]

    assert {result.text for result in results} == {"done"}
    told = [span.verdicts for span in reversed(pipeline.trace.spans())]
    assert told == [(), (), *[("loop_detector:would_refuse:loop_detected",)] * 2]
    said = pipeline.metrics.text().decode()
    assert 'event="shadow_refused",layer="loop_detector",tool="t"} 2' in said
