"""A policy that is taken anew again and again under load."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

import pytest

from seawall.contract.annotations import Annotations
from seawall.contract.tool import Tool
from seawall.orchestration.pipeline import Pipeline
from seawall.orchestration.policy_watch import watched
from seawall.policy.model import Policies

if TYPE_CHECKING:
    from pathlib import Path


def write(path: Path, timeout_s: str, more: str) -> None:
    path.write_text(f"[tools.tool]\ntimeout_s = {timeout_s}\n{more}")


@pytest.mark.parametrize(
    "seconds", [2, pytest.param(60, marks=pytest.mark.long)], ids=["short", "long"]
)
async def test_no_call_fails_because_of_a_reload_every_100_ms(
    tmp_path: Path, seconds: float
) -> None:
    """A breaker, a rate, a bulkhead and a timeout are at work, each changed at every reload."""
    path = tmp_path / "x.toml"

    def policy(turn: int) -> str:
        return (
            f'rate = "{10_000_000 + turn % 2}/minute"\nmax_concurrency = {50 + turn % 2}\n'
            f"max_retries = {1 + turn % 2}\nbreaker.threshold = {5 + turn % 2}\n"
        )

    write(path, "30", policy(0))

    async def work(arguments: dict[str, Any], context: Any) -> str:
        await asyncio.sleep(0.003)
        return "done"

    tool = Tool("tool", "", {"type": "object"}, work, annotations=Annotations.for_reading())
    pipeline = Pipeline([tool], policies=Policies.load(path))
    watch = watched(path, pipeline)
    end = time.monotonic() + seconds
    calls = 0
    failed = []

    async def caller() -> None:
        nonlocal calls
        while time.monotonic() < end:
            result = await pipeline.call("tool", {})
            calls += 1
            if result.is_error:
                failed.append(result.text)

    async def reloader() -> None:
        turn = 0
        while time.monotonic() < end:
            await asyncio.sleep(0.1)
            turn += 1
            write(path, "30" if turn % 2 else "29", policy(turn))
            assert watch.reload()

    await asyncio.gather(*(caller() for _ in range(20)), reloader())

    assert failed == []
    assert watch.reloads >= seconds * 5
    assert calls > 200 * seconds
    assert pipeline.trace.outcomes()["failed"] == 0
    assert [gauge.value for gauge in pipeline._gauges() if "in_flight" in gauge.name] == [0]
