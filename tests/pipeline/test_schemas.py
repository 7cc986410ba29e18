"""A tool's schemas are compiled once, and whoever needs them gets the same."""

from __future__ import annotations

from typing import Any

import pytest

from seawall import ConfigurationError, Pipeline, Policies, Registry, RunPolicy, Tool
from seawall.pipeline.arguments.compiled import compile_schema
from seawall.pipeline.schemas import schemas_of

WHOLE = {"type": "object", "properties": {"n": {"type": "integer"}}}


async def give(arguments: dict[str, Any], context: Any) -> dict[str, Any]:
    return arguments


def a_tool(name: str = "give", arguments: Any = WHOLE, output: Any = None) -> Tool:
    return Tool(name, "Gives.", arguments, give, output_schema=output)


class Counted:
    """Counts what is compiled."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.places: list[str] = []

        def counted(schema: Any, **options: Any) -> Any:
            self.places.append(options["where"])
            return compile_schema(schema, **options)

        monkeypatch.setattr("seawall.pipeline.schemas.compile_schema", counted)
        monkeypatch.setattr("seawall.pipeline.arguments.prepare.compile_schema", counted)


def test_both_schemas_are_compiled() -> None:
    found = schemas_of(a_tool(output=WHOLE))

    assert found.arguments.is_valid({"n": 1})
    assert found.output is not None
    assert not found.output.is_valid({"n": "x"})
    assert schemas_of(a_tool()).output is None


def test_the_faults_of_both_are_told_at_once() -> None:
    with pytest.raises(ConfigurationError) as caught:
        schemas_of(a_tool(arguments={"type": "objct"}, output={"minimum": "x"}))

    assert {fault.key.split("/")[0] for fault in caught.value.faults} == {
        "give.input_schema",
        "give.output_schema",
    }


def test_an_output_need_not_be_an_object() -> None:
    assert schemas_of(a_tool(output={"type": "array"})).output is not None
    with pytest.raises(ConfigurationError):
        schemas_of(a_tool(arguments={"type": "array"}))


def test_a_pipeline_compiles_nothing_that_its_registry_has(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counted = Counted(monkeypatch)

    pipeline = Pipeline(Registry([a_tool(output=WHOLE)]))
    pipeline.replace_policies(Policies(default=RunPolicy(coercion="off")))
    Pipeline(pipeline.registry)

    assert counted.places == ["give.input_schema", "give.output_schema"]


def test_a_tool_that_comes_in_later_is_compiled_once_too(monkeypatch: pytest.MonkeyPatch) -> None:
    pipeline = Pipeline(Registry())
    counted = Counted(monkeypatch)

    pipeline.registry.register(a_tool())

    assert counted.places == ["give.input_schema"]


def test_a_registry_knows_the_schemas_of_its_own_tools_alone() -> None:
    mine, other = a_tool(), a_tool()
    registry = Registry([mine])

    assert registry.schemas(mine) is registry.schemas(mine)
    assert registry.schemas(mine) is not None
    assert registry.schemas(other) is None


def test_what_is_replaced_or_gone_is_forgotten() -> None:
    first, second = a_tool(), a_tool()
    registry = Registry([first])

    registry.register(second, on_duplicate="replace")
    assert registry.schemas(first) is None
    assert registry.schemas(second) is not None

    registry.unregister("give")
    assert registry.schemas(second) is None


def test_a_tool_that_is_kept_out_leaves_the_one_before_it_as_it_was() -> None:
    first = a_tool()
    registry = Registry([first])

    class Refusing:
        def tool_added(self, tool: Tool) -> None:
            raise ConfigurationError("no")

        def tool_removed(self, name: str) -> None: ...

    watcher = Refusing()
    registry.watch(watcher)
    for tool in (a_tool(), a_tool("another")):
        with pytest.raises(ConfigurationError):
            registry.register(tool, on_duplicate="replace")
        assert registry.schemas(tool) is None

    assert registry.schemas(first) is not None


def test_a_tool_that_is_set_aside_has_none() -> None:
    registry = Registry([a_tool()])
    broken = a_tool(arguments={"type": "objct"})

    registry.register(broken, on_duplicate="replace", on_invalid="quarantine")

    assert registry.schemas(broken) is None
