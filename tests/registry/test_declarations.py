"""A tool in the shapes of MCP, OpenAI and Anthropic."""

from __future__ import annotations

from typing import Any

import pytest

from seawall.contract.annotations import Annotations
from seawall.contract.errors import ConfigurationError
from seawall.registry.declarations import SHAPES, declaration, name_of
from seawall.registry.registry import Registry
from seawall.testing import scripted

SCHEMA = {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}


def search(**fields: Any) -> Any:
    return scripted(name="web.search", input_schema=SCHEMA, **fields)


def test_a_tool_is_declared_in_every_shape() -> None:
    tool = search(title="Search", annotations=Annotations.for_reading())
    said = {"description": tool.description}

    assert declaration(tool) == {
        "name": "web.search",
        "title": "Search",
        **said,
        "inputSchema": SCHEMA,
        "annotations": {
            "readOnlyHint": True,
            "destructiveHint": False,
            "idempotentHint": True,
            "openWorldHint": False,
        },
    }
    assert declaration(tool, "openai", "web_search") == {
        "type": "function",
        "function": {"name": "web_search", **said, "parameters": SCHEMA},
    }
    assert declaration(tool, "openai-responses", "web_search") == {
        "type": "function",
        "name": "web_search",
        **said,
        "parameters": SCHEMA,
    }
    assert declaration(tool, "anthropic", "web_search") == {
        "name": "web_search",
        **said,
        "input_schema": SCHEMA,
    }


@pytest.mark.parametrize("shape", SHAPES)
def test_the_name_is_found_in_every_shape(shape: Any) -> None:
    assert name_of(declaration(search(), shape, "exported")) == "exported"


def test_a_schema_always_says_that_it_is_of_an_object() -> None:
    tool = scripted(name="a", input_schema={})

    assert declaration(tool)["inputSchema"] == {"type": "object"}
    assert declaration(tool, "anthropic")["input_schema"] == {"type": "object"}
    parameters = declaration(tool, "openai")["function"]["parameters"]
    assert parameters == {"type": "object", "properties": {}}


@pytest.mark.parametrize(("constrained", "strict"), [(True, True), (False, False)])
def test_whether_sampling_is_constrained_is_handed_on_if_it_was_said(
    constrained: bool, strict: bool
) -> None:
    tool = search(constrained_sampling=constrained)

    assert declaration(tool, "openai")["function"]["strict"] is strict
    assert declaration(tool, "anthropic")["strict"] is strict
    assert "strict" not in declaration(search(), "anthropic")
    assert "strict" not in declaration(tool)


def test_a_schema_of_the_output_is_declared_in_the_shape_of_mcp() -> None:
    assert declaration(search(output_schema=SCHEMA))["outputSchema"] == SCHEMA


def test_the_schema_of_the_tool_is_not_changed_by_declaring_it() -> None:
    tool = scripted(name="a", input_schema={"type": "object"})

    declaration(tool, "openai")["function"]["parameters"]["x"] = 1

    assert tool.input_schema == {"type": "object"}


def test_a_registry_declares_its_tools_under_names_that_lead_back() -> None:
    registry = Registry([search(), scripted(name="plain")])

    declared = registry.declarations("anthropic")
    names = [name_of(one) for one in declared]

    assert names == ["web_search", "plain"]
    assert [registry.provider_names.original(name) for name in names] == ["web.search", "plain"]
    assert [one["name"] for one in registry.declarations()] == ["web.search", "plain"]


def test_names_stay_the_same_in_all_shapes_and_when_tools_are_added() -> None:
    registry = Registry([search()])
    before = registry.declarations("openai-responses")

    registry.register(scripted(name="web/search"))
    registry.register(scripted(name="web search"))

    after = registry.declarations("openai-responses")
    assert after[0] == before[0]
    assert len({one["name"] for one in after}) == 3
    assert [name_of(one) for one in registry.declarations("openai")] == [
        one["name"] for one in after
    ]


def test_a_tool_that_is_set_aside_is_not_declared() -> None:
    registry = Registry([search()])
    registry.register(scripted(name="odd", input_schema={"type": "odd"}), on_invalid="quarantine")

    assert [name_of(one) for one in registry.declarations("openai")] == ["web_search"]


def test_an_unknown_shape_is_refused_with_those_there_are() -> None:
    wrong: Any = "gemini"

    with pytest.raises(ConfigurationError, match="use mcp, openai, openai-responses, anthropic"):
        Registry([]).declarations(wrong)
