"""OpenTelemetry, against the real SDK: what spans say, what they never say, who is below whom."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from opentelemetry import baggage, trace
from opentelemetry import context as otel_context
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from opentelemetry.trace import SpanKind, StatusCode

from seawall import (
    Annotations,
    ConfigurationError,
    Failure,
    FailureCode,
    Pipeline,
    Policies,
    Registry,
    Risk,
    RunPolicy,
    Session,
    Tool,
    ToolFailed,
    ToolResult,
)
from seawall.contract.failure import REASONS
from seawall.contract.span import Outcome
from seawall.recording import otel as module
from seawall.recording.counts import BOUNDS_S
from seawall.recording.otel import MAX_TEXT, OpenTelemetry, error_type, extracted, inject
from seawall.testing import FakeClock, FixedChance, scripted

if TYPE_CHECKING:
    from collections.abc import Callable

READS = Annotations.for_reading()
SECRET = {
    "type": "object",
    "properties": {"user": {"type": "string"}, "pin": {"type": "string", "format": "password"}},
}


class Desk:
    """A pipeline whose spans are kept."""

    def __init__(
        self,
        *tools: Any,
        policy: RunPolicy | None = None,
        sampler: Any = None,
        hooks: Any = (),
        **options: Any,
    ) -> None:
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider(sampler=sampler, shutdown_on_exit=False)
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.reader = InMemoryMetricReader()
        meters = MeterProvider([self.reader], shutdown_on_exit=False)
        self.clock = FakeClock()
        self.recorder = OpenTelemetry(
            tracer_provider=self.provider, meter_provider=meters, clock=self.clock, **options
        )
        self.pipeline = Pipeline(
            tools[0] if len(tools) == 1 and isinstance(tools[0], Registry) else list(tools),
            policies=Policies(policy or RunPolicy()),
            recorders=[self.recorder],
            clock=self.clock,
            chance=FixedChance(),
            hooks=hooks,
        )
        self.tracer = self.provider.get_tracer("test")

    async def call(self, name: str = "t", arguments: Any = None, **options: Any) -> ToolResult:
        return await self.clock.run(
            asyncio.ensure_future(self.pipeline.call(name, arguments or {}, **options))
        )

    def spans(self) -> list[Any]:
        return list(self.exporter.get_finished_spans())

    def span(self) -> Any:
        [found] = self.spans()
        return found

    def points(self) -> list[Any]:
        data = self.reader.get_metrics_data()
        if data is None:
            return []
        return [
            point
            for metric in data.resource_metrics[0].scope_metrics[0].metrics
            for point in metric.data.data_points
        ]


def t(*answers: Any, **fields: Any) -> Tool:
    return scripted(*(answers or ("well",)), **{"name": "t", "annotations": READS, **fields})


# What a span says.


async def test_a_call_is_a_span_by_the_conventions() -> None:
    desk = Desk(t())

    await desk.call(call_id="call-1")

    span = desk.span()
    assert span.name == "execute_tool t"
    assert span.kind is SpanKind.INTERNAL
    assert span.status.status_code is StatusCode.UNSET
    assert dict(span.attributes) == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "t",
        "gen_ai.tool.type": "function",
        "gen_ai.tool.description": "Gives scripted answers (1).",
        "gen_ai.tool.call.id": "call-1",
        "seawall.outcome": "success",
        "seawall.attempts": 1,
    }


async def test_a_call_that_failed_says_why_in_a_word_and_not_in_its_own() -> None:
    desk = Desk(t(RuntimeError("the password is hunter2")))

    await desk.call()

    span = desk.span()
    assert span.attributes["error.type"] == "tool_failed"
    assert span.attributes["seawall.outcome"] == "failed"
    assert span.status.status_code is StatusCode.ERROR
    assert span.status.description == "tool_failed"
    assert "hunter2" not in span.to_json()
    assert {event.name for event in span.events} == {"seawall.attempt"}


async def test_each_attempt_is_an_event() -> None:
    desk = Desk(t(ConnectionError(), "well"), policy=RunPolicy(max_retries=1, base_delay_s=2))

    await desk.call()

    first, second = desk.span().events
    assert first.attributes["seawall.attempt"] == 1
    assert first.attributes["seawall.outcome"] == "failed"
    assert first.attributes["error.type"] in REASONS
    assert second.attributes["seawall.attempt"] == 2
    assert second.attributes["seawall.outcome"] == "success"
    assert second.attributes["seawall.queue_s"] == 2
    assert "error.type" not in second.attributes
    assert desk.span().attributes["seawall.attempts"] == 2


async def test_a_refused_call_says_who_refused_it() -> None:
    desk = Desk(t(risk=Risk.HIGH))

    await desk.call()

    span = desk.span()
    assert span.attributes["seawall.layer"] == "risk_gate"
    assert span.attributes["error.type"] == "approval_required"
    assert span.attributes["seawall.outcome"] == "denied"
    assert span.events == ()


async def test_a_call_that_reaches_no_layer_has_a_span_too() -> None:
    desk = Desk(t("same"))
    session = Session()
    for _ in range(6):
        await desk.call(session=session)

    *_, last = desk.spans()

    assert last.attributes["error.type"] == "loop_detected"
    assert last.attributes["gen_ai.tool.description"]
    assert len(desk.spans()) == 6


async def test_a_quarantined_tool_has_a_span_and_an_unknown_name_has_none() -> None:
    registry = Registry()
    broken = scripted(name="broken", input_schema={"type": "nonsense"})
    registry.register(broken, on_invalid="quarantine")
    desk = Desk(registry)

    await desk.call("broken")
    await desk.call("nobody")

    assert desk.span().attributes["error.type"] == "tool_quarantined"
    assert [point.attributes["gen_ai.tool.name"] for point in desk.points()] == ["broken"]


async def test_a_call_that_is_cut_off_by_its_deadline_says_so() -> None:
    desk = Desk(t(("sleep", 9)))

    await desk.call(deadline_s=1)

    assert desk.span().attributes["error.type"] == "deadline_exceeded"
    assert desk.points()[0].sum == 1


async def test_a_cancelled_call_ends_its_span() -> None:
    desk = Desk(t(("sleep", 9)))
    running = asyncio.ensure_future(desk.pipeline.call("t", {}))
    await desk.clock.settle()

    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running

    assert desk.span().attributes["error.type"] == "cancelled"


@pytest.mark.parametrize(
    ("reason", "outcome", "said"),
    [
        ("", Outcome.SUCCESS, ""),
        ("attempt_timeout", Outcome.FAILED, "attempt_timeout"),
        ("quota_of_customer_4711", Outcome.FAILED, "tool_error"),
        ("", Outcome.DENIED, "tool_error"),
    ],
)
def test_types_of_errors_are_few(reason: str, outcome: Outcome, said: str) -> None:
    assert error_type(reason, outcome) == said


async def test_a_tools_own_reason_is_on_the_span_and_not_a_type() -> None:
    failure = Failure(code=FailureCode.NOT_FOUND, message="no row", reason="row_missing")
    desk = Desk(t(ToolFailed(failure)))

    await desk.call()

    assert desk.span().attributes["error.type"] == "tool_error"
    assert desk.span().attributes["seawall.reason"] == "row_missing"


# Contexts.


async def test_the_span_is_the_current_one_while_the_tool_runs() -> None:
    seen = []

    async def works(_: Any, __: Any) -> str:
        seen.append(trace.get_current_span().get_span_context())
        return "well"

    desk = Desk(Tool("t", "Works.", {"type": "object"}, works))
    with desk.tracer.start_as_current_span("agent") as outer:
        await desk.call()
        assert trace.get_current_span() is outer

    inner, _ = desk.spans()
    assert seen == [inner.context]
    assert inner.parent.span_id == outer.get_span_context().span_id


async def test_it_is_in_a_thread_too() -> None:
    seen = []

    def works(_: Any, __: Any) -> str:
        seen.append(trace.get_current_span().get_span_context())
        return "well"

    desk = Desk(Tool("t", "Works.", {"type": "object"}, works))
    await desk.call()

    assert seen == [desk.span().context]


async def test_calls_that_a_tool_makes_are_below_its_own() -> None:
    async def outer(_: Any, context: Any) -> str:
        await asyncio.gather(*(context.call_tool("t") for _ in range(3)))
        await context.call_tool("asked")
        return "well"

    asked = scripted(name="asked", risk=Risk.HIGH)
    desk = Desk(t(), asked, Tool("outer", "Calls.", {"type": "object"}, outer))
    await desk.call("outer")

    *inner, whole = desk.spans()
    assert whole.name == "execute_tool outer"
    assert len(inner) == 4
    assert {span.parent.span_id for span in inner} == {whole.context.span_id}
    assert whole.attributes["seawall.outcome"] == "success"


async def test_calls_at_once_with_one_id_each_have_their_own_span() -> None:
    desk = Desk(t(("sleep", 1)))

    await desk.clock.run(
        asyncio.gather(*(desk.pipeline.call("t", {}, call_id="same") for _ in range(5)))
    )

    assert len({span.context.span_id for span in desk.spans()}) == 5
    assert all(len(span.events) == 1 for span in desk.spans())


async def test_a_call_that_goes_on_in_another_task_leaves_contexts_alone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def inner(_: Any) -> str:
        await asyncio.sleep(0)
        return "at last"

    desk = Desk(t())
    around: Any = desk.recorder.around
    running = around(t(), inner)(SimpleNamespace(call_id="1"))

    async def finish() -> None:
        with pytest.raises(StopIteration, match="at last"):
            running.send(None)

    with caplog.at_level(logging.WARNING, logger="opentelemetry"):
        token = otel_context.attach(otel_context.Context())
        running.send(None)
        await asyncio.create_task(finish())
        otel_context.detach(token)

    assert caplog.records == []


# What is recorded only if asked for.


async def test_arguments_and_results_are_not_recorded() -> None:
    desk = Desk(t("the answer is forty-two"))

    await desk.call(arguments={"question": "of life"})

    said = desk.span().to_json()
    assert "of life" not in said
    assert "forty-two" not in said


async def test_they_are_if_asked_for_but_for_secrets() -> None:
    tool = t("seen with api_key=abcdefgh12345678", input_schema=SECRET)
    desk = Desk(tool, capture_arguments=True, capture_results=True)

    await desk.call(arguments={"user": "ada", "pin": "7351-9982"})

    attributes = desk.span().attributes
    assert attributes["gen_ai.tool.call.arguments"] == '{"pin":"…","user":"ada"}'
    assert attributes["gen_ai.tool.call.result"] == "seen with api_key=…"


async def test_a_sensitive_tool_records_neither() -> None:
    annotations = Annotations(read_only=True, sensitive=True)
    desk = Desk(
        t("balance 42", annotations=annotations, risk=Risk.LOW),
        policy=RunPolicy(),
        capture_arguments=True,
        capture_results=True,
    )

    await desk.call(arguments={"account": "4711"})

    assert "4711" not in desk.span().to_json()
    assert "balance" not in desk.span().to_json()


async def test_what_is_recorded_is_cut() -> None:
    desk = Desk(t("x" * 9_000), capture_arguments=True, capture_results=True)

    await desk.call(arguments={"long": "y" * 9_000})

    attributes = desk.span().attributes
    assert len(attributes["gen_ai.tool.call.arguments"]) == MAX_TEXT
    assert len(attributes["gen_ai.tool.call.result"]) == MAX_TEXT


async def test_what_utf8_cannot_say_spoils_nothing() -> None:
    desk = Desk(t("half \ud800"), capture_arguments=True, capture_results=True)

    result = await desk.call(arguments={"a": "\udfff"}, call_id="id \ud800")

    assert desk.span().to_json().encode()
    assert result.call_id == "id \ud800"


# Durations.


async def test_durations_are_those_of_the_calls() -> None:
    desk = Desk(t(("sleep", 2), ToolFailed("no")))

    await desk.call()
    await desk.call()

    fine, failed = sorted(desk.points(), key=lambda point: "error.type" in point.attributes)
    assert dict(fine.attributes) == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "t",
    }
    assert (fine.count, fine.sum) == (1, 2)
    assert tuple(fine.explicit_bounds) == BOUNDS_S
    assert failed.attributes["error.type"] == "tool_failed"


async def test_tools_beyond_the_bound_share_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_TOOLS", 2)
    desk = Desk(*(scripted("x", name=f"t{n}") for n in range(4)))

    for n in range(4):
        await desk.call(f"t{n}")

    names = [point.attributes["gen_ai.tool.name"] for point in desk.points()]
    assert sorted(names) == ["_OTHER", "t0", "t1"]
    assert {span.name for span in desk.spans()} == {f"execute_tool t{n}" for n in range(4)}


# Nothing is harmed.


async def test_what_is_not_sampled_is_measured_all_the_same() -> None:
    desk = Desk(t(), sampler=ALWAYS_OFF, capture_arguments=True)

    assert (await desk.call()).text == "well"

    assert desk.spans() == []
    assert desk.points()[0].count == 1


async def test_a_tracer_that_fails_harms_no_call(monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk(t())

    def fails(*_: Any, **__: Any) -> None:
        raise RuntimeError("no tracer today")

    monkeypatch.setattr(desk.recorder._tracer, "start_span", fails)

    assert (await desk.call()).text == "well"
    assert desk.points()[0].count == 1


async def test_a_tool_that_went_is_forgotten() -> None:
    desk = Desk(t())

    desk.recorder.forget("t")

    assert desk.recorder._tools == {}


async def test_without_the_recorder_nothing_stands_around_a_call() -> None:
    code = (
        "import asyncio, sys\n"
        "from seawall import Pipeline\n"
        "from seawall.testing import scripted\n"
        "asyncio.run(Pipeline([scripted('x', name='t')]).call('t', {}))\n"
        "print([name for name in sys.modules if name.startswith('opentelemetry')])\n"
    )
    told = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )

    assert told.stdout.strip() == "[]"


def test_without_the_extra_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry", None)

    with pytest.raises(ConfigurationError, match=r"pip install 'seawall\[otel\]'"):
        OpenTelemetry()


# Through MCP.


def test_a_context_goes_into_meta_and_comes_out_of_it() -> None:
    tracer = TracerProvider(shutdown_on_exit=False).get_tracer("test")
    given = {"progressToken": 7}

    token = otel_context.attach(baggage.set_baggage("tenant", "a"))
    with tracer.start_as_current_span("client") as span:
        meta = inject(given)
    otel_context.detach(token)

    assert given == {"progressToken": 7}
    assert meta["progressToken"] == 7
    assert set(meta) == {"progressToken", "traceparent", "baggage"}
    with extracted(meta):
        found = trace.get_current_span().get_span_context()
        assert found.span_id == span.get_span_context().span_id
        assert baggage.get_baggage("tenant") == "a"
    assert trace.get_current_span().get_span_context().span_id == 0


def test_without_a_span_nothing_is_injected() -> None:
    assert inject() == {}
    assert inject({"a": 1}) == {"a": 1}


@pytest.mark.parametrize(
    "meta",
    [
        None,
        {},
        [],
        {"traceparent": 7},
        {"traceparent": "nonsense"},
        {"traceparent": "00-" + "0" * 32 + "-" + "0" * 16 + "-01"},
        {"traceparent": "ü" * 55},
        {"traceparent": "0" * 10_000},
        {"tracestate": "a=b", "other": object()},
    ],
)
def test_what_a_client_makes_up_is_no_context(meta: Any) -> None:
    with extracted(meta):
        assert trace.get_current_span().get_span_context().trace_id == 0


@pytest.mark.parametrize("work", [lambda: inject({"a": 1}), lambda: inject(None)])
def test_without_opentelemetry_meta_stays_what_it_is(
    work: Callable[[], dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry", None)

    assert work() in ({"a": 1}, {})
    with extracted({"traceparent": "00-" + "1" * 32 + "-" + "2" * 16 + "-01"}):
        pass
