"""OpenTelemetry: a span for each call, a histogram of durations, and contexts that go through MCP.

    pipeline = Pipeline(registry, recorders=[OpenTelemetry()])

Names and attributes are those of the GenAI conventions: a span `execute_tool {tool}` covers a call
with all its attempts, each of which is an event on it, and is the current span while the tool
runs, so that what the tool does is below it. What the SDK does not record costs next to nothing.
Arguments and results are never recorded unless that is asked for, exceptions' texts never.
Needs `pip install 'seawall[otel]'`.
"""

from __future__ import annotations

from asyncio import current_task
from collections.abc import Mapping, MutableMapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from seawall.contract.errors import ConfigurationError
from seawall.contract.failure import REASONS
from seawall.contract.span import Outcome
from seawall.pipeline.arguments.faults.explain import Redaction
from seawall.pipeline.clock import SystemClock
from seawall.pipeline.digest import canonical_text
from seawall.pipeline.foreign import attempted, guarded, masked, without
from seawall.pipeline.recorder import Finished, ToolRecorder
from seawall.recording.counts import BOUNDS_S
from seawall.recording.gauges import encodable
from seawall.recording.shown import current_version

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import Span as OtelSpan
    from opentelemetry.trace import TracerProvider

    from seawall.contract.result import ToolResult
    from seawall.contract.span import Span
    from seawall.contract.tool import Tool
    from seawall.pipeline.clock import Clock
    from seawall.pipeline.invocation import Handler, Invocation

MAX_TOOLS = 1_000
"""Tools with a name of their own in the histogram; those beyond are `_OTHER`."""

MAX_TEXT = 4_096
"""Characters of arguments or of a result, if they are asked for."""

_TOOL_ERROR = "tool_error"
_KEYS = ("traceparent", "tracestate", "baggage")
_ATTEMPT = "seawall.attempt"


class _Open:
    """A span that was begun and that the end of its call will close."""

    __slots__ = ("before", "call_id", "span", "tool")

    def __init__(self, call_id: str, tool: str, span: OtelSpan, before: _Open | None) -> None:
        self.call_id = call_id
        self.tool = tool
        self.span = span
        self.before = before


# Follows a call into the tool, so that a call made by it finds its own and not this one.
_open: ContextVar[_Open | None] = ContextVar("seawall_open_span", default=None)


class OpenTelemetry:
    """A recorder for `Pipeline(recorders=…)`.

    Without providers the global ones are used. `capture_arguments` and `capture_results` record
    what the conventions call sensitive: values that the schema marks as secret are left out, and
    tools that are annotated as sensitive altogether.
    """

    def __init__(
        self,
        *,
        tracer_provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
        capture_arguments: bool = False,
        capture_results: bool = False,
        clock: Clock | None = None,
    ) -> None:
        api = _api()
        version = current_version()
        self._trace = api.trace
        self._context = api.context
        self._tracer = api.trace.get_tracer("seawall", version, tracer_provider)
        meter = api.metrics.get_meter("seawall", version, meter_provider)
        self._durations = meter.create_histogram(
            "gen_ai.execute_tool.duration",
            unit="s",
            description="From a tool call's arrival to its answer.",
            explicit_bucket_boundaries_advisory=BOUNDS_S,
        )
        self._arguments = capture_arguments
        self._results = capture_results
        self._wall = (SystemClock() if clock is None else clock).wall
        self._tools: dict[str, Tool] = {}
        self._labels: set[str] = set()

    def for_tool(self, tool: str) -> ToolRecorder:
        """Give the functions that record a tool's attempts and calls."""
        if len(self._labels) < MAX_TOOLS:
            self._labels.add(tool)
        label = encodable(tool) if tool in self._labels else "_OTHER"

        def on_call(finished: Finished) -> None:
            self._ended(finished, label)

        return ToolRecorder(_attempted, on_call)

    def unknown(self) -> None:
        """Record nothing: a name that is not registered has no span."""

    def forget(self, tool: str) -> None:
        """Drop what is known of a tool that was unregistered."""
        self._tools.pop(tool, None)

    def around(self, tool: Tool, handler: Handler) -> Handler:
        """Begin a span before the first layer, and make it the current one for all inside."""
        self._tools[tool.name] = tool
        name = f"execute_tool {encodable(tool.name)}"
        fixed = _fixed(tool)
        context, trace = self._context, self._trace
        redaction = Redaction(tool.input_schema)

        async def traced(call: Invocation) -> ToolResult:
            span = self._begun(name, {**fixed, "gen_ai.tool.call.id": encodable(call.call_id)})
            if span is None:
                return await handler(call)
            _open.set(_Open(call.call_id, tool.name, span, _open.get()))
            task = current_task()
            token = context.attach(trace.set_span_in_context(span))
            try:
                return await handler(call)
            finally:
                # Not if a tool that was let go took it along: a task's context ends with the task.
                if current_task() is task:
                    context.detach(token)
                if self._arguments and span.is_recording() and not tool.annotations.sensitive:
                    shown = _shown_arguments(call, redaction)
                    span.set_attribute("gen_ai.tool.call.arguments", shown)

        return traced

    def _begun(
        self, name: str, attributes: dict[str, Any], start_ns: int | None = None
    ) -> OtelSpan | None:
        def start() -> OtelSpan | None:
            span: OtelSpan = self._tracer.start_span(
                name, attributes=attributes, start_time=start_ns
            )
            return span

        return guarded("OpenTelemetry could not begin a span", start, lambda _: None)

    def _ended(self, finished: Finished, label: str) -> None:
        """End the call's span; of a call that reached no layer, begin it too."""
        opened = _open.get()
        now_ns = int(self._wall() * 1e9)
        if opened is not None and _is_of(opened, finished.call_id, finished.tool):
            _open.set(opened.before)
            span: OtelSpan | None = opened.span
        else:
            span = self._of_refused(finished, now_ns)
        error = error_type(finished.reason, finished.outcome)
        attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": label}
        if error:
            attributes["error.type"] = error
        if span is None:
            self._durations.record(finished.elapsed_s, attributes)
            return
        within = self._trace.set_span_in_context(span)
        self._durations.record(finished.elapsed_s, attributes, within)
        if span.is_recording():
            self._describe(span, finished, error)
        span.end()

    def _of_refused(self, finished: Finished, now_ns: int) -> OtelSpan | None:
        tool = self._tools.get(finished.tool)
        fixed = _named(finished.tool) if tool is None else _fixed(tool)
        attributes = {**fixed, "gen_ai.tool.call.id": encodable(finished.call_id)}
        name = f"execute_tool {encodable(finished.tool)}"
        return self._begun(name, attributes, now_ns - int(finished.elapsed_s * 1e9))

    def _describe(self, span: OtelSpan, finished: Finished, error: str) -> None:
        said: dict[str, Any] = {
            "seawall.outcome": finished.outcome.value,
            "seawall.attempts": finished.attempts,
        }
        if error:
            said["error.type"] = error
            said["seawall.reason"] = encodable(finished.reason)
            status = self._trace.StatusCode.ERROR
            span.set_status(self._trace.Status(status, encodable(finished.reason)))
        if finished.layer:
            said["seawall.layer"] = encodable(finished.layer)
        tool = self._tools.get(finished.tool)
        sensitive = tool is None or tool.annotations.sensitive
        if self._results and finished.result is not None and not sensitive:
            said["gen_ai.tool.call.result"] = _cut(masked(finished.result.text))
        span.set_attributes(said)


def error_type(reason: str, outcome: Outcome) -> str:
    """Name an error in few words: our reasons, `tool_error` for those of tools; empty if none."""
    if outcome is Outcome.SUCCESS:
        return ""
    return reason if reason in REASONS else _TOOL_ERROR


def inject(meta: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Give `_meta` of an MCP request with the current trace context in it.

    Without OpenTelemetry, or without a current span, it is what it was. What was in it stays.
    """
    found: dict[str, Any] = dict(meta or {})
    propagate = _propagate()
    if propagate is not None:
        carrier: dict[str, str] = {}
        guarded(
            "OpenTelemetry could not inject a context",
            lambda: propagate.inject(carrier),
            lambda _: None,
        )
        found.update((key, carrier[key]) for key in _KEYS if key in carrier)
    return found


@contextmanager
def extracted(meta: Mapping[str, Any] | None) -> Iterator[None]:
    """Go on, inside of the block, in the trace that `_meta` of an MCP request names.

    Nothing happens without OpenTelemetry, or if it names none. What a client sends is not trusted
    with more than that: other keys, and values that are no short text, are not looked at.
    """
    propagate = _propagate()
    carrier = {} if propagate is None else _carrier(meta)
    if propagate is None or not carrier:
        yield
        return
    from opentelemetry import context  # noqa: PLC0415  # an extra

    found = guarded(
        "OpenTelemetry could not read a context",
        lambda: propagate.extract(carrier),
        lambda _: context.get_current(),
    )
    token = context.attach(found)
    try:
        yield
    finally:
        context.detach(token)


def _carrier(meta: Mapping[str, Any] | None) -> MutableMapping[str, str]:
    if not isinstance(meta, Mapping):
        return {}
    found = {key: meta[key] for key in _KEYS if key in meta}
    return {
        key: value
        for key, value in found.items()
        if isinstance(value, str) and len(value) <= 8_192 and value.isascii()
    }


def _propagate() -> Any:
    """The module that reads and writes contexts; None without OpenTelemetry."""
    try:
        from opentelemetry import propagate  # noqa: PLC0415  # an extra
    except ImportError:
        return None
    return propagate


def _api() -> Any:
    try:
        from opentelemetry import context, metrics, trace  # noqa: PLC0415  # an extra
    except ImportError as error:
        raise ConfigurationError(
            "spans of OpenTelemetry need its API: pip install 'seawall[otel]'"
        ) from error

    class Api:
        """The three modules that are used."""

    found: Any = Api()
    found.context, found.metrics, found.trace = context, metrics, trace
    return found


def _attempted(span: Span) -> None:
    """Put an attempt as an event onto the span of its call."""
    opened = _open.get()
    if opened is None or span.attempt == 0 or not _is_of(opened, span.call_id, span.tool):
        return
    if not opened.span.is_recording():
        return
    attributes: dict[str, Any] = {
        "seawall.attempt": span.attempt,
        "seawall.outcome": span.outcome.value,
        "seawall.duration_s": span.duration_ms / 1000,
        "seawall.queue_s": span.queue_ms / 1000,
    }
    error = error_type(span.reason, span.outcome)
    if error:
        attributes["error.type"] = error
    opened.span.add_event(_ATTEMPT, attributes)


def _is_of(opened: _Open, call_id: str, tool: str) -> bool:
    return opened.call_id == call_id and opened.tool == tool


def _named(tool: str) -> dict[str, Any]:
    return {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": encodable(tool),
        "gen_ai.tool.type": "function",
    }


def _fixed(tool: Tool) -> dict[str, Any]:
    said = _named(tool.name)
    if tool.description:
        said["gen_ai.tool.description"] = _cut(tool.description)
    return said


def _shown_arguments(call: Invocation, redaction: Redaction) -> str:
    secrets = redaction.secrets(call.known_arguments())
    text = attempted(lambda: canonical_text(call.known_arguments()), "")
    return _cut(without(text, secrets))


def _cut(text: str) -> str:
    text = encodable(text)
    return text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 1] + "…"
