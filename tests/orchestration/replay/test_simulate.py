"""A replay under the same policy is what happened; under another it is what would have."""

from __future__ import annotations

import asyncio
import json
import random
import time
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from seawall.contract.annotations import Annotations
from seawall.contract.optional_policies import (
    AdaptiveLimitPolicy,
    CachePolicy,
    FallbackPolicy,
    HedgePolicy,
    RetryBudgetPolicy,
)
from seawall.contract.policy import BreakerPolicy, RunPolicy
from seawall.contract.tool import Tool
from seawall.orchestration.pipeline import Pipeline
from seawall.orchestration.replay.explain import differences
from seawall.orchestration.replay.simulate import (
    Ended,
    Simulation,
    is_played,
    recorded_end,
)
from seawall.pipeline.chance import SystemChance
from seawall.pipeline.clock import SystemClock
from seawall.pipeline.session import Session
from seawall.policy.model import Policies
from seawall.recording.trace_file import Trace, TraceFile, read_trace
from seawall.registry.registry import Registry
from seawall.testing import FakeClock

if TYPE_CHECKING:
    from collections.abc import Awaitable
    from pathlib import Path

    from seawall.pipeline.clock import Clock

POLICY = RunPolicy(
    timeout_s=2.0,
    max_retries=2,
    base_delay_s=0.5,
    rate="20/minute",
    rate_key=("tool", "caller"),
    max_concurrency=3,
    breaker=BreakerPolicy(threshold=4, cooldown_s=5),
)
MORE = {
    "fetch": POLICY,
    "slow": RunPolicy(timeout_s=1.5, deadline_s=4, max_retries=3, delays_s=(0.5, 1.0)),
    "sick": RunPolicy(
        timeout_s=1, max_retries=1, base_delay_s=0.2, breaker=BreakerPolicy(threshold=3)
    ),
}
POLICIES = Policies(tools=MORE)


def a_tool(
    name: str,
    clock: Clock,
    chance: random.Random,
    scale: float = 1.0,
    exclusive: str | None = None,
) -> Tool:
    async def run(arguments: dict[str, Any], context: Any) -> str:
        draw = chance.random()
        await clock.sleep(scale * chance.expovariate(1.2))
        if draw < 0.1 or (name == "sick" and int(clock.now() / (20 * scale)) % 2):
            raise ConnectionError("down")
        if draw < 0.15:
            raise ValueError("bad")
        if draw < 0.2:
            raise FileNotFoundError("no such thing")
        if draw < 0.25:
            await clock.sleep(100 * scale)
        return "done"

    reading = Annotations.for_reading()
    return Tool(name, "", {"type": "object"}, run, annotations=reading, exclusive=exclusive)


async def a_run(
    path: Path,
    clock: Clock,
    count: int,
    seed: int,
    *,
    policies: Policies = POLICIES,
    scale: float = 1.0,
    per_second: float = 3.0,
    exclusive: str | None = None,
) -> Trace:
    chance = random.Random(seed)
    registry = Registry([a_tool(name, clock, chance, scale, exclusive) for name in MORE])
    file = TraceFile(path, tools=registry, clock=clock)
    pipeline = Pipeline(
        registry,
        policies=policies,
        recorders=[file],
        clock=clock,
        chance=SystemChance(seed),
        loop=None,
    )

    async def all_calls() -> None:
        tasks = []
        for _ in range(count):
            await clock.sleep(chance.expovariate(per_second))
            session = Session("s", caller=chance.choice("ab"))
            name = chance.choice(list(MORE))
            given = {"n": int(chance.expovariate(0.2))}
            tasks.append(asyncio.ensure_future(pipeline.call(name, given, session=session)))
        await asyncio.gather(*tasks)

    if isinstance(clock, FakeClock):
        await clock.run(all_calls())
    else:
        await all_calls()
    file.close()
    return read_trace(path)


def differing(trace: Trace, ended: list[Ended | None]) -> list[tuple[str, Ended, Ended | None]]:
    found = []
    for call, after in zip(trace.calls, ended, strict=True):
        before = recorded_end(call)
        if is_played(call) and (after is None or not before.same(after)):
            found.append((call.tool, before, after))
    return found


@pytest.mark.parametrize("seed", range(3))
async def test_a_run_on_a_fake_clock_is_reproduced_exactly(tmp_path: Path, seed: int) -> None:
    trace = await a_run(tmp_path / "x.jsonl", FakeClock(), 1_500, seed)

    ended = await asyncio.to_thread(Simulation(trace, POLICIES).run)

    reasons = {call.reason for call in trace.calls}
    assert {"", "rate_limited", "circuit_open", "attempt_timeout", "tool_failed"} <= reasons
    assert differing(trace, ended) == []
    for call, after in zip(trace.calls, ended, strict=True):
        assert after is not None
        assert after.elapsed_s == pytest.approx(recorded_end(call).elapsed_s, abs=1e-6)


SHORT = RunPolicy(timeout_s=2.0, max_retries=1, base_delay_s=0.5, breaker=BreakerPolicy())


@pytest.mark.parametrize(
    ("layer", "policy"),
    [
        ("cache", replace(SHORT, cache=CachePolicy(ttl_s=5, scope="all"))),
        ("fallback", replace(SHORT, fallback=FallbackPolicy(text="none today"))),
        ("hedge", replace(SHORT, hedge=HedgePolicy(delay_s=0.7))),
        ("hedge", replace(SHORT, hedge=HedgePolicy(quantile=0.6, max_extra=2))),
        ("retry", replace(SHORT, retry_budget=RetryBudgetPolicy(share=0.1))),
        ("adaptive_limit", replace(SHORT, adaptive_limit=AdaptiveLimitPolicy(initial=1))),
        ("bulkhead", replace(SHORT, max_concurrency=1)),
        ("exclusive", SHORT),
    ],
)
async def test_what_each_layer_decided_on_a_fake_clock_is_decided_again(
    tmp_path: Path, layer: str, policy: RunPolicy
) -> None:
    policies = Policies(tools=dict.fromkeys(MORE, policy))
    key = "disk" if layer == "exclusive" else None
    trace = await a_run(tmp_path / "x.jsonl", FakeClock(), 600, 5, policies=policies, exclusive=key)

    replay = Simulation(trace, policies, live=policies)
    ended = await asyncio.to_thread(replay.run)

    assert len(trace.calls) == 600
    assert differing(trace, ended) == []
    for call, after in zip(trace.calls, ended, strict=True):
        assert after is not None
        assert after.elapsed_s == pytest.approx(recorded_end(call).elapsed_s, abs=1e-6)


LIVE = Policies(
    tools={
        "fetch": RunPolicy(
            timeout_s=0.1,
            max_retries=2,
            base_delay_s=0.05,
            rate="60/second",
            rate_key=("tool", "caller"),
            max_concurrency=20,
            breaker=BreakerPolicy(threshold=4, cooldown_s=0.4),
        ),
        "slow": RunPolicy(timeout_s=0.08, deadline_s=0.25, max_retries=3, delays_s=(0.02, 0.05)),
        "sick": RunPolicy(
            timeout_s=0.1,
            max_retries=1,
            base_delay_s=0.02,
            breaker=BreakerPolicy(threshold=3, cooldown_s=0.3),
        ),
    }
)


SHORTEST_S = 0.05
"""A halt of the whole process by so much says nothing of calls whose limits are not much longer."""


async def beside_a_watch(run: Awaitable[Trace]) -> tuple[Trace, float]:
    """Give what was recorded, and for how long the process stood still at worst meanwhile."""
    worst_s = 0.0

    async def watch() -> None:
        nonlocal worst_s
        while True:
            before = time.monotonic()
            await asyncio.sleep(0.01)
            worst_s = max(worst_s, time.monotonic() - before - 0.01)

    watching = asyncio.ensure_future(watch())
    try:
        return await run, worst_s
    finally:
        watching.cancel()


@pytest.mark.parametrize(
    ("count", "share"),
    [(2_000, 0.999), pytest.param(10_000, 0.999, marks=pytest.mark.long)],
    ids=["short", "long"],
)
async def test_a_live_run_is_reproduced_but_for_what_was_at_a_boundary(
    tmp_path: Path, count: int, share: float, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("CRITICAL", "seawall")
    for number in range(3):
        path = tmp_path / f"{number}.jsonl"
        run = a_run(path, SystemClock(), count, 7, policies=LIVE, scale=0.02, per_second=300)
        trace, halted_s = await beside_a_watch(run)
        if halted_s < SHORTEST_S:
            break

    replay = Simulation(trace, LIVE, live=LIVE)
    ended = await asyncio.to_thread(replay.run)

    found = differing(trace, ended)
    told = differences(trace, ended, replay)
    assert {"", "circuit_open", "attempt_timeout", "tool_failed"} <= {c.reason for c in trace.calls}
    assert len(told) == len(found) <= (1 - share) * count, told
    for one in told:
        assert one.follows or (one.distance_ms is not None and one.distance_ms < 1), one


def replay(trace: Trace, policies: Policies, **options: Any) -> list[Ended]:
    found = Simulation(trace, policies, **options).run()
    return [one for one in found if one is not None]


def a_trace(folder: Path, *spans: dict[str, Any], gap_s: float = 1.0) -> Trace:
    """One call a span, a second apart, of a tool that reads."""
    lines = [{"trace": 1, "started": 0.0}, {"about": "tool", "hints": {"read_only": True}}]
    for number, span in enumerate(spans):
        known = {
            "call_id": f"c{number}",
            "tool": "tool",
            "attempt": 1,
            "started": 0.0,
            "duration_ms": 100.0,
            "outcome": "success",
            "offset_s": number * gap_s,
        }
        lines.append({**known, **span})
    path = folder / "made.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return read_trace(path)


OUT = {"outcome": "failed", "reason": "attempt_timeout", "duration_ms": 5000.0}
DOWN = {"outcome": "failed", "reason": "tool_failed", "health": "infrastructure"}
LIMITED = {"outcome": "denied", "reason": "rate_limited", "attempt": 0, "duration_ms": 0.0}


async def test_a_shorter_timeout_ends_what_took_longer(tmp_path: Path) -> None:
    trace = a_trace(tmp_path, {"duration_ms": 900.0}, {"duration_ms": 1100.0})

    first, second = await asyncio.to_thread(replay, trace, Policies(RunPolicy(timeout_s=1)))

    assert first.good
    assert (second.timed_out, second.elapsed_s) == (True, 1)


async def test_what_was_cut_off_hangs_unless_others_took_longer(tmp_path: Path) -> None:
    trace = a_trace(tmp_path, OUT, {"duration_ms": 100.0})

    first, _ = await asyncio.to_thread(replay, trace, Policies(RunPolicy(timeout_s=60)))

    assert (first.timed_out, first.elapsed_s) == (True, 60)


async def test_a_call_that_was_refused_is_answered_as_others_at_that_time(tmp_path: Path) -> None:
    trace = a_trace(tmp_path, {"duration_ms": 300.0}, LIMITED)

    _, second = await asyncio.to_thread(replay, trace, Policies(RunPolicy()))

    assert second.good
    assert second.elapsed_s == pytest.approx(0.3)


async def test_a_rate_refuses_what_it_would_have_refused(tmp_path: Path) -> None:
    trace = a_trace(tmp_path, *[{}] * 10)

    ended = await asyncio.to_thread(replay, trace, Policies(RunPolicy(rate="4/minute")))

    assert [one.refused for one in ended] == [False] * 4 + [True] * 6


async def test_a_rate_that_is_only_watched_refuses_nothing_and_is_counted(tmp_path: Path) -> None:
    trace = a_trace(tmp_path, *[{}] * 10)
    policies = Policies(RunPolicy(rate="4/minute", rate_mode="shadow"))

    ended = await asyncio.to_thread(replay, trace, policies)

    assert sum(one.refused for one in ended) == 0
    assert sum(one.shadowed for one in ended) == 6


async def test_a_timeout_that_is_only_watched_ends_nothing_and_is_counted(tmp_path: Path) -> None:
    trace = a_trace(tmp_path, {"duration_ms": 900.0}, {"duration_ms": 1100.0})
    policies = Policies(RunPolicy(timeout_s=1, timeout_mode="shadow"))

    ended = await asyncio.to_thread(replay, trace, policies)

    assert [(one.good, one.shadowed) for one in ended] == [(True, 0), (True, 1)]


async def test_a_breaker_short_circuits_a_run_of_failures(tmp_path: Path) -> None:
    trace = a_trace(tmp_path, *[DOWN] * 10)
    policies = Policies(RunPolicy(breaker=BreakerPolicy(threshold=3, cooldown_s=60)))

    ended = await asyncio.to_thread(replay, trace, policies)

    assert [one.reason for one in ended] == ["tool_failed"] * 3 + ["circuit_open"] * 7


async def test_answers_of_the_tool_open_no_circuit(tmp_path: Path) -> None:
    answer = {**DOWN, "health": "answer", "retryable": False}
    policies = Policies(RunPolicy(breaker=BreakerPolicy(threshold=3, cooldown_s=60)))

    ended = await asyncio.to_thread(replay, a_trace(tmp_path, *[answer] * 10), policies)

    assert {one.reason for one in ended} == {"tool_failed"}


async def test_what_a_gate_refused_is_not_played(tmp_path: Path) -> None:
    gate = {"outcome": "denied", "reason": "approval_denied", "attempt": 0}
    trace = a_trace(tmp_path, gate, {})

    ended = await asyncio.to_thread(Simulation(trace, Policies(RunPolicy())).run)

    assert ended[0] is None
    assert ended[1] is not None


async def test_a_call_that_its_caller_cancelled_is_cancelled_again(tmp_path: Path) -> None:
    trace = a_trace(tmp_path, {"outcome": "failed", "reason": "cancelled", "duration_ms": 700.0})

    (ended,) = await asyncio.to_thread(replay, trace, Policies(RunPolicy()))

    assert (ended.reason, ended.attempts) == ("cancelled", 1)


async def test_the_same_seed_gives_the_same_and_another_one_another(tmp_path: Path) -> None:
    mixed = [DOWN if number % 3 else {} for number in range(60)]
    trace = a_trace(tmp_path, *mixed)
    policies = Policies(RunPolicy(max_retries=3, base_delay_s=1))

    found = [await asyncio.to_thread(replay, trace, policies, seed=seed) for seed in (1, 1, 2)]

    assert found[0] == found[1] != found[2]
