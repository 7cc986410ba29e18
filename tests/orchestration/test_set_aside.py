"""Calls of quarantined tools are in all books, as refusals."""

from __future__ import annotations

from typing import Any

from seawall import Pipeline, Registry, Session, TraceRecorder
from seawall.contract.span import Outcome
from seawall.pipeline.recorder import Finished, ToolRecorder
from seawall.testing import FakeClock, FixedChance, scripted

NONSENSE = {"type": "nonsense"}


class Heard:
    """A recorder that keeps what it was told."""

    def __init__(self) -> None:
        self.calls: list[Finished] = []
        self.forgotten: list[str] = []

    def for_tool(self, tool: str) -> ToolRecorder:
        return ToolRecorder(on_call=self.calls.append)

    def unknown(self) -> None:
        raise AssertionError("the name is registered")

    def forget(self, tool: str) -> None:
        self.forgotten.append(tool)


def desk(*names: str, heard: Heard | None = None) -> Pipeline:
    registry = Registry()
    for name in names:
        register(registry, name)
    return Pipeline(
        registry,
        recorders=[] if heard is None else [heard],
        clock=FakeClock(),
        chance=FixedChance(),
        trace=TraceRecorder(10),
    )


def register(registry: Registry, name: str, schema: Any = None) -> None:
    tool = scripted("x", name=name, input_schema=schema or NONSENSE)
    registry.register(tool, on_invalid="quarantine", on_duplicate="replace")


async def test_it_is_counted_by_name_and_as_refused_by_the_registry() -> None:
    pipeline = desk("broken")

    result = await pipeline.call("broken", {"a": 1})

    text = pipeline.metrics.text().decode()
    labels = 'layer="registry",reason="tool_quarantined",tool="broken"'
    assert f"seawall_refusals_total{{{labels}}} 1.0" in text
    assert 'seawall_calls_total{outcome="denied",tool="broken"} 1.0' in text
    assert 'seawall_calls_total{outcome="denied",tool="_OTHER"} 0.0' in text
    assert pipeline.usage.snapshot()["broken"].refusals == 1
    [span] = pipeline.trace.spans()
    assert (span.call_id, span.attempt, span.outcome) == (result.call_id, 0, Outcome.DENIED)
    assert span.reason == "tool_quarantined"
    assert span.digest is not None
    assert span.digest.length


async def test_who_called_is_told() -> None:
    heard = Heard()
    pipeline = desk("broken", heard=heard)

    result = await pipeline.call("broken", "no json", session=Session(id="s", caller="ada"))

    [finished] = heard.calls
    assert (finished.session_id, finished.caller, finished.attempts) == ("s", "ada", 0)
    assert finished.result is result


async def test_one_that_is_mended_goes_on_with_its_counts() -> None:
    pipeline = desk("broken")
    await pipeline.call("broken", {})

    register(pipeline.registry, "broken", {"type": "object"})
    await pipeline.call("broken", {})

    usage = pipeline.usage.snapshot()["broken"]
    assert (usage.refusals, usage.successes) == (1, 1)


async def test_those_that_went_are_forgotten_when_the_next_is_called() -> None:
    heard = Heard()
    pipeline = desk("gone", "mended", "next", heard=heard)
    await pipeline.call("gone", {})
    await pipeline.call("mended", {})
    pipeline.registry.unregister("gone")
    register(pipeline.registry, "mended", {"type": "object"})

    await pipeline.call("next", {})

    assert heard.forgotten == ["gone"]
    assert set(pipeline.usage.snapshot()) == {"mended", "next"}
    text = pipeline.metrics.text().decode()
    assert 'seawall_calls_total{outcome="denied",tool="gone"} 1.0' in text


async def test_what_is_only_prepared_is_not_counted() -> None:
    heard = Heard()
    pipeline = desk("broken", heard=heard)

    pipeline.prepare("broken", {})

    assert heard.calls == []
