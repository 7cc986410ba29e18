"""What can be seen of circuits, tokens and calls from outside, and changed by hand."""

from __future__ import annotations

import asyncio
import gc
import weakref
from typing import Any

import pytest

from seawall import (
    BreakerPolicy,
    ConfigurationError,
    Metrics,
    Pipeline,
    Policies,
    RunPolicy,
    ToolResult,
)
from seawall.testing import FakeClock, scripted


class Desk:
    """Tools with and without breakers behind one pipeline."""

    def __init__(self, **tools: RunPolicy) -> None:
        self.clock = FakeClock()
        made = [scripted(OSError("down"), clock=self.clock, name=name) for name in tools]
        self.pipeline = Pipeline(made, policies=Policies(tools=tools), clock=self.clock)

    async def call(self, name: str) -> ToolResult:
        return await self.clock.run(self.pipeline.call(name))

    def gauges(self) -> dict[str, float]:
        lines = self.pipeline.metrics.text().decode().splitlines()
        pairs = (line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
        return {name: float(value) for name, value in pairs}


ONE = RunPolicy(breaker=BreakerPolicy(threshold=1))


async def test_circuits_are_seen_by_tool() -> None:
    desk = Desk(a=ONE, b=ONE, plain=RunPolicy())

    await desk.call("a")

    breakers = desk.pipeline.breakers
    assert breakers.snapshot() == {"a": "open", "b": "closed"}
    assert (breakers.state("a"), breakers.state("b")) == ("open", "closed")
    assert breakers.circuit("a").last_error == "OSError"
    await desk.clock.advance(15)
    await desk.call("a")
    assert breakers.circuit("a").cooldown_s == 30


async def test_a_circuit_is_opened_and_closed_by_hand() -> None:
    desk = Desk(a=RunPolicy(breaker=BreakerPolicy()))
    breakers = desk.pipeline.breakers

    breakers.open("a")
    await desk.clock.advance(10_000)
    refused = (await desk.call("a")).failure
    breakers.close("a")
    failed = (await desk.call("a")).failure

    assert refused is not None
    assert failed is not None
    assert (refused.reason, failed.reason) == ("circuit_open", "tool_failed")


async def test_a_reset_forgets_what_was_learnt_about_one_or_all() -> None:
    desk = Desk(a=ONE, b=ONE, c=RunPolicy())
    breakers = desk.pipeline.breakers
    for name in "ab":
        await desk.call(name)

    breakers.reset("a")
    assert breakers.snapshot() == {"a": "closed", "b": "open"}
    breakers.reset()
    assert breakers.snapshot() == {"a": "closed", "b": "closed"}
    breakers.reset("c")
    breakers.reset("nobody")


@pytest.mark.parametrize("name", ["plain", "nobody", "off"])
def test_where_there_is_no_breaker_that_is_told(name: str) -> None:
    desk = Desk(plain=RunPolicy(), off=RunPolicy(breaker=BreakerPolicy(mode="off")))

    with pytest.raises(ConfigurationError, match="has no breaker"):
        desk.pipeline.breakers.state(name)
    assert desk.pipeline.breakers.snapshot() == {}


async def test_a_shared_circuit_is_seen_at_each_of_its_tools() -> None:
    shared = RunPolicy(breaker=BreakerPolicy(threshold=1, shared="api"))
    desk = Desk(a=shared, b=shared)

    await desk.call("a")

    assert desk.pipeline.breakers.snapshot() == {"a": "open", "b": "open"}
    assert desk.gauges()['seawall_breaker_state{state="open",tool="b"}'] == 1


async def test_a_scrape_has_circuits_tokens_and_what_runs() -> None:
    policy = RunPolicy(rate="5/minute", timeout_s=9, breaker=BreakerPolicy(threshold=1))
    desk = Desk(a=policy, plain=RunPolicy())
    desk.pipeline.registry.register(scripted(("sleep", 5), clock=desk.clock, name="slow"))
    running = asyncio.ensure_future(desk.pipeline.call("slow"))
    await desk.clock.settle()

    before = desk.gauges()
    await desk.call("a")
    after = desk.gauges()

    assert before['seawall_in_flight{tool="slow"}'] == 1
    assert before['seawall_limiter_tokens{tool="a"}'] == 5
    assert before['seawall_breaker_state{state="closed",tool="a"}'] == 1
    assert before["seawall_abandoned_threads"] == 0
    assert after['seawall_breaker_state{state="open",tool="a"}'] == 1
    assert after['seawall_breaker_state{state="closed",tool="a"}'] == 0
    assert before['seawall_limiter_tokens_ratio{tool="a"}'] == 1
    assert after['seawall_limiter_tokens_ratio{tool="a"}'] == 0.8
    assert before['seawall_tool_info{family="none",tool="a"}'] == 1
    kinds = ("breaker_state", "tokens")
    assert not any("plain" in name for name in after if any(kind in name for kind in kinds))
    await desk.clock.run(running)
    assert desk.gauges()['seawall_in_flight{tool="slow"}'] == 0


def test_tools_that_went_are_seen_no_longer() -> None:
    desk = Desk(a=ONE)
    state: Any = desk.pipeline.breakers

    desk.pipeline.registry.unregister("a")

    assert state.snapshot() == {}
    assert not any("in_flight" in name for name in desk.gauges())


def in_flight(metrics: Metrics) -> list[str]:
    return [
        line for line in metrics.text().decode().splitlines() if line.startswith("seawall_in_fl")
    ]


async def test_a_closed_pipeline_gives_no_gauges_any_more() -> None:
    metrics = Metrics()
    pipeline = Pipeline([scripted("x", name="t")], metrics=metrics)
    assert in_flight(metrics) == ['seawall_in_flight{tool="t"} 0.0']

    await pipeline.aclose()
    await pipeline.aclose()

    assert in_flight(metrics) == []
    assert metrics.sources == ()


def test_metrics_do_not_keep_a_pipeline_that_was_dropped() -> None:
    metrics = Metrics()
    pipeline = Pipeline([scripted("x", name="t")], metrics=metrics)
    dropped = weakref.ref(pipeline)

    del pipeline
    gc.collect()

    assert dropped() is None
    assert metrics.sources == ()


def test_tools_beyond_the_bound_of_labels_are_read_together() -> None:
    clock = FakeClock()
    policies = Policies(
        tools={
            "b": RunPolicy(rate="10/minute", breaker=BreakerPolicy()),
            "c": RunPolicy(rate="20/minute", breaker=BreakerPolicy()),
        }
    )
    tools = [scripted("x", name=name, family="letters") for name in "abc"]
    pipeline = Pipeline(tools, policies=policies, metrics=Metrics(max_tools=1), clock=clock)
    pipeline.breakers.open("b")

    text = pipeline.metrics.text().decode()

    assert 'seawall_tool_info{family="letters",tool="a"} 1.0' in text
    assert 'seawall_tool_info{family="none",tool="_OTHER"} 1.0' in text
    assert 'seawall_breaker_state{state="open",tool="_OTHER"} 1.0' in text
    assert 'seawall_breaker_state{state="closed",tool="_OTHER"} 1.0' in text
    assert 'seawall_limiter_tokens{tool="_OTHER"} 10.0' in text
    assert 'seawall_in_flight{tool="_OTHER"} 0.0' in text
    assert 'tool="b"' not in text
