"""Ten thousand calls that end in every way there is: all books say the same of them.

Usage, metrics, the trace and OpenTelemetry's spans count on their own, by different news of the
same calls; a call that one of them misses, or counts twice, is seen here.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from prometheus_client.parser import text_string_to_metric_families

from seawall import (
    Annotations,
    BatchRunner,
    BreakerPolicy,
    Deny,
    FailureCode,
    Hook,
    Outcome,
    Pipeline,
    Policies,
    Registry,
    Risk,
    RunPolicy,
    Session,
    Tool,
    ToolFailed,
    ToolResult,
    TraceRecorder,
)
from seawall.recording.otel import OpenTelemetry
from seawall.testing import FakeClock, FixedChance

if TYPE_CHECKING:
    from collections.abc import Callable

    from seawall import HookContext

CALLS = 10_000
READS = Annotations.for_reading()
ONE = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


class World:
    """A pipeline with tools for every end, and all four books."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.chance = random.Random(11)
        self.numbers = iter(range(10**9))
        self.spans = InMemorySpanExporter()
        traces = TracerProvider(shutdown_on_exit=False)
        traces.add_span_processor(SimpleSpanProcessor(self.spans))
        self.reader = InMemoryMetricReader()
        meters = MeterProvider([self.reader], shutdown_on_exit=False)
        self.trace = TraceRecorder(1_000_000, clock=self.clock)
        self.pipeline = Pipeline(
            self.registry(),
            policies=POLICIES,
            hooks=[Doorkeeper()],
            clock=self.clock,
            chance=FixedChance(),
            trace=self.trace,
            recorders=[
                OpenTelemetry(tracer_provider=traces, meter_provider=meters, clock=self.clock)
            ],
        )

    def registry(self) -> Registry:
        tools = [
            self.tool("fine", self.fine, ONE),
            self.tool("flaky", self.flaky),
            self.tool("broken", self.broken),
            self.tool("slow", self.slow),
            self.tool("endless", self.slow),
            self.tool("fails", self.fails),
            self.tool("lies", self.lies, output_schema={"type": "object", "required": ["a"]}),
            self.tool("asked", self.fine, risk=Risk.HIGH),
            self.tool("limited", self.fine),
            self.tool("narrow", self.slow),
            self.tool("guarded", self.fine),
            self.tool("nested", self.nested),
            self.tool("same", self.same),
        ]
        registry = Registry(tools)
        broken = self.tool("set_aside", self.fine, {"type": "nonsense"})
        registry.register(broken, on_invalid="quarantine")
        return registry

    def tool(
        self, name: str, run: Callable[..., Any], schema: dict[str, Any] | None = None, **more: Any
    ) -> Tool:
        return Tool(name, name, schema or {"type": "object"}, run, annotations=READS, **more)

    async def fine(self, _: Any, __: Any) -> str:
        return f"{next(self.numbers)}"

    async def same(self, _: Any, __: Any) -> str:
        return "the same"

    async def flaky(self, _: Any, __: Any) -> str:
        if self.chance.random() < 0.4:
            raise ConnectionError("reset")
        return f"{next(self.numbers)}"

    async def broken(self, _: Any, __: Any) -> str:
        raise ConnectionError("down")

    async def slow(self, _: Any, __: Any) -> str:
        await self.clock.sleep(0.5 + self.chance.random())
        return f"{next(self.numbers)}"

    async def fails(self, _: Any, __: Any) -> ToolResult:
        if self.chance.random() < 0.5:
            raise ToolFailed("own words")
        return ToolResult.failed(FailureCode.NOT_FOUND, "no such row", reason="row_missing")

    async def lies(self, _: Any, __: Any) -> dict[str, Any]:
        return {"a": 1} if self.chance.random() < 0.5 else {"b": 1}

    async def nested(self, _: Any, context: Any) -> str:
        inner = self.chance.choice(["fine", "flaky", "limited", "set_aside", "nobody"])
        result = await context.call_tool(inner, {"n": 1})
        return f"{next(self.numbers)} {result.is_error}"

    async def one(self, name: str) -> None:
        """Make one call, in a way that fits its kind."""
        session = Session()
        if name == "cancelled":
            task = asyncio.ensure_future(self.pipeline.call("endless", {}, session=session))
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        elif name == "late":
            await self.pipeline.call("endless", {}, session=session, deadline_s=0.2)
        elif name == "loop":
            for _ in range(8):
                await self.pipeline.call("same", {}, session=session)
        elif name == "turn":
            calls = [("fine", {"n": 1}), ("slow", {}), ("fine", {}), ("nobody", {})]
            await self.pipeline.turn(calls, session=session)
        elif name == "batch":
            steps: list[dict[str, Any]] = [
                {"tool": "fine", "arguments": {"n": 1}},
                {"tool": "broken"},
                {"tool": "same"},
            ]
            await BatchRunner(self.pipeline).run(steps)
        else:
            await self.pipeline.call(name, {"n": "x" if name == "bad" else 1}, session=session)


class Doorkeeper(Hook):
    """Lets every third call of one tool in, and fails at another third."""

    def __init__(self) -> None:
        self.seen = 0

    def before(self, context: HookContext) -> Deny | None:
        if context.tool.name != "guarded":
            return None
        self.seen += 1
        if self.seen % 3 == 1:
            raise RuntimeError("lost the list")
        return Deny("not today") if self.seen % 3 == 2 else None


POLICIES = Policies(
    default=RunPolicy(max_retries=2, base_delay_s=0.1),
    tools={
        "broken": RunPolicy(max_retries=1, breaker=BreakerPolicy(threshold=4, cooldown_s=5)),
        "slow": RunPolicy(timeout_s=1.0, max_retries=1),
        "limited": RunPolicy(rate="1/second"),
        "narrow": RunPolicy(max_concurrency=1),
        "lies": RunPolicy(output="check"),
    },
)
KINDS = [
    *("fine", "flaky", "broken", "slow", "fails", "lies", "asked", "limited", "narrow", "guarded"),
    *("nested", "set_aside", "nobody", "fime", "cancelled", "late", "loop", "turn", "batch"),
]
ENDS = {
    *("success", "attempt_timeout", "tool_failed", "row_missing", "output_invalid"),
    *("approval_required", "rate_limited", "overloaded", "gate_failed", "denied_by_policy"),
    *("tool_quarantined", "cancelled", "deadline_exceeded", "loop_detected", "circuit_open"),
    "argument_missing",
}


async def played() -> World:
    world = World()
    made = 0
    while made < CALLS:
        kinds = [world.chance.choice(KINDS) for _ in range(50)]
        made += len(kinds)
        running = asyncio.ensure_future(asyncio.gather(*map(world.one, kinds)))
        await world.clock.run(running)
        await world.clock.advance(0.2)
    return world


async def test_all_books_agree_on_ten_thousand_calls_of_every_kind() -> None:
    world = await played()
    finals, attempts, reasons = of_trace(world)

    assert set(reasons) >= ENDS
    assert sum(finals.values()) >= CALLS
    assert of_metrics(world) == finals
    assert of_usage(world) == finals
    assert of_spans(world) == finals
    assert attempts_of_metrics(world) == attempts == attempts_of_spans(world)
    assert durations_of_spans(world) == calls_per_tool(finals)


async def test_reasons_agree_and_nothing_waits_or_runs_in_the_end() -> None:
    world = await played()
    _, _, reasons = of_trace(world)
    families = scraped(world)

    refused = sum_by(families, "seawall_refusals_total", "reason")
    failed = sum_by(families, "seawall_failures_total", "reason")
    # What is no reason of ours counts as `other`, and unknown names have no span.
    known = Counter({reason: count for reason, count in reasons.items() if reason != "success"})
    known["other"] += known.pop("row_missing")
    del refused["tool_not_found"]

    assert refused + failed == known
    assert sum(sum_by(families, "seawall_in_flight", "tool").values()) == 0
    stops = sum_by(families, "seawall_loop_stops_total", "detector")
    assert stops["repeat"] == known["loop_detected"]
    broken = sum_by(families, "seawall_output_failures_total", "tool")
    assert broken["lies"] == known["output_invalid"]


def of_trace(world: World) -> tuple[Counter[Any], Counter[Any], Counter[str]]:
    """Ends of calls by tool and outcome, attempts likewise, and reasons, by spans alone."""
    last: dict[tuple[str, str], Any] = {}
    attempts: Counter[Any] = Counter()
    for span in reversed(world.trace.spans()):
        if span.outcome is Outcome.SKIPPED:
            continue  # a step that is left out is no call
        last[span.tool, span.call_id] = span
        if span.attempt:
            attempts[span.tool, span.outcome.value] += 1
    finals = Counter((span.tool, span.outcome.value) for span in last.values())
    return finals, attempts, Counter(span.reason or "success" for span in last.values())


def scraped(world: World) -> dict[str, list[Any]]:
    text = world.pipeline.metrics.text().decode()
    found: dict[str, list[Any]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found.setdefault(sample.name, []).append(sample)
    return found


def sum_by(families: dict[str, list[Any]], name: str, label: str) -> Counter[str]:
    found: Counter[str] = Counter()
    for sample in families[name]:
        if sample.value:
            found[sample.labels[label]] += int(sample.value)
    return found


def by_outcome(families: dict[str, list[Any]], name: str) -> Counter[Any]:
    return Counter(
        {
            (sample.labels["tool"], sample.labels["outcome"]): int(sample.value)
            for sample in families[name]
            if sample.value and sample.labels["tool"] != "_OTHER"
        }
    )


def of_metrics(world: World) -> Counter[Any]:
    return by_outcome(scraped(world), "seawall_calls_total")


def attempts_of_metrics(world: World) -> Counter[Any]:
    return by_outcome(scraped(world), "seawall_attempts_total")


def of_usage(world: World) -> Counter[Any]:
    found: Counter[Any] = Counter()
    for tool, usage in world.pipeline.usage.snapshot().items():
        found[tool, "success"] += usage.successes
        found[tool, "failed"] += usage.failures
        found[tool, "denied"] += usage.refusals
    return +found


def of_spans(world: World) -> Counter[Any]:
    found: Counter[Any] = Counter()
    for span in world.spans.get_finished_spans():
        assert span.attributes is not None
        tool = str(span.attributes["gen_ai.tool.name"])
        assert span.name == f"execute_tool {tool}"
        found[tool, span.attributes["seawall.outcome"]] += 1
    return found


def attempts_of_spans(world: World) -> Counter[Any]:
    found: Counter[Any] = Counter()
    for span in world.spans.get_finished_spans():
        assert span.attributes is not None
        for event in span.events:
            assert event.attributes is not None
            outcome = event.attributes["seawall.outcome"]
            found[span.attributes["gen_ai.tool.name"], outcome] += 1
    return found


def durations_of_spans(world: World) -> Counter[str]:
    data = world.reader.get_metrics_data()
    assert data is not None
    [metric] = data.resource_metrics[0].scope_metrics[0].metrics
    found: Counter[str] = Counter()
    for point in metric.data.data_points:
        assert point.attributes is not None
        found[str(point.attributes["gen_ai.tool.name"])] += point.count  # type: ignore[union-attr]  # the points of a histogram
    return found


def calls_per_tool(finals: Counter[Any]) -> Counter[str]:
    found: Counter[str] = Counter()
    for (tool, _), count in finals.items():
        found[tool] += count
    return found
