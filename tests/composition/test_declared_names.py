"""What a model calls under the names that providers know reaches the tools that it means."""

from __future__ import annotations

from typing import Any

import pytest

from seawall import (
    BatchRunner,
    ConfigurationError,
    Names,
    Pipeline,
    Registry,
    ToolContext,
    ToolResult,
    TurnOutcome,
    tool,
)
from seawall.testing import scripted

LONG = "a" * 70 + ".x"


def registry_of(*names: str) -> Registry:
    return Registry([scripted(f"ran {name}", name=name) for name in names])


def declared(registry: Registry, shape: Any = "openai-responses") -> list[str]:
    return [one["name"] for one in registry.declarations(shape)]


@pytest.mark.parametrize("shape", ["openai-responses", "anthropic"])
async def test_a_call_under_a_declared_name_runs_the_tool_that_was_declared_so(shape: Any) -> None:
    names = ("pay.all", "pay/all", "pay_all", LONG)
    registry = registry_of(*names)
    pipeline = Pipeline(registry)

    results = [await pipeline.call(name) for name in declared(registry, shape)]

    assert [result.text for result in results] == [f"ran {name}" for name in names]
    assert tuple(result.tool for result in results) == names
    assert {span.tool for span in pipeline.trace.spans()} == set(names)


async def test_a_name_that_was_not_declared_is_not_there() -> None:
    result = await Pipeline(registry_of("pay.all")).call("pay_all")

    assert result.failure is not None
    assert result.failure.reason == "tool_not_found"


async def test_a_turn_takes_declared_names_and_has_the_tools_own_in_what_it_tells() -> None:
    registry = registry_of("pay.all", "look")
    declared(registry)
    told: list[str] = []

    outcome = await Pipeline(registry).turn(
        [{"name": "pay_all", "arguments": {}, "id": "1"}, ("look", {}), ("pay.all", {}, "1")],
        on_event=lambda event: told.append(event.tool),
    )

    assert isinstance(outcome, TurnOutcome)
    assert [result.tool for result in outcome.results] == ["pay.all", "look", "pay.all"]
    assert set(told) == {"pay.all", "look"}


async def test_prepare_and_nested_calls_take_declared_names() -> None:
    registry = registry_of("pay.all")

    @registry.tool
    async def outer(context: ToolContext) -> str:
        """Call another."""
        return (await context.call_tool("pay_all")).text

    declared(registry)
    pipeline = Pipeline(registry)

    prepared = pipeline.prepare("pay_all", {})
    assert not isinstance(prepared, ToolResult)
    assert prepared.tool.name == "pay.all"
    assert (await pipeline.call("outer")).text == "ran pay.all"


async def test_steps_of_a_batch_take_declared_names() -> None:
    registry = registry_of("pay.all")
    runner = BatchRunner(Pipeline(registry))
    declared(registry)

    outcome = await runner.run([{"tool": "pay_all", "arguments": {}}])

    assert outcome.tools == ("pay.all",)
    assert [result.text for result in outcome.results] == ["ran pay.all"]


@pytest.mark.parametrize("gone", [False, True])
async def test_no_other_tool_can_be_registered_under_a_declared_name(gone: bool) -> None:
    registry = registry_of("pay.all")
    declared(registry)
    if gone:
        registry.unregister("pay.all")

    with pytest.raises(ConfigurationError, match=r"as the name of 'pay\.all'"):
        registry.register(scripted(name="pay_all"))

    result = await Pipeline(registry).call("pay_all")
    assert result.text == "ran pay.all" if not gone else result.failure is not None


async def test_tools_that_come_later_leave_declared_names_where_they_are() -> None:
    registry = registry_of("pay.all")
    before = declared(registry)
    registry.register(scripted("ran pay/all", name="pay/all"))
    after = declared(registry)
    pipeline = Pipeline(registry)

    assert after[:1] == before == ["pay_all"]
    assert [(await pipeline.call(name)).text for name in after] == ["ran pay.all", "ran pay/all"]


def test_a_tool_may_be_replaced_under_its_own_name() -> None:
    registry = registry_of("pay.all", "look")
    declared(registry)

    for name in ("pay.all", "look"):
        registry.register(scripted(name=name), on_duplicate="replace")

    assert registry.own_name("look") == "look"
    assert registry.own_name("nothing") is None


def test_names_of_an_earlier_run_may_be_put_in_place_unless_they_mean_another_tool() -> None:
    registry = registry_of("pay.all", "pay_all")

    with pytest.raises(ConfigurationError, match="pay_all"):
        registry.provider_names = Names(known={"pay.all": "pay_all"})
    registry.provider_names = Names(known={"pay.all": "earlier"})

    assert declared(registry) == ["earlier", "pay_all"]
    assert registry.own_name("earlier") == "pay.all"


@tool(name="files.read")
def read_file(path: str) -> str:
    """Read."""
    return path


def test_what_is_set_aside_under_a_declared_name_is_not_run() -> None:
    registry = Registry([read_file])
    declared(registry)
    pipeline = Pipeline(registry)
    registry.register(read_file, on_duplicate="replace", aside="not now")

    result = pipeline.call_sync("files_read", {"path": "a"})

    assert result.failure is not None
