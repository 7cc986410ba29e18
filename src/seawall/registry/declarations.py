"""What a model API is told of a tool, in the shape that it reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from seawall.contract.tool import Tool

Shape = Literal["mcp", "openai", "openai-responses", "anthropic"]
"""MCP's `tools/list`; OpenAI's chat completions, and its responses; Anthropic's messages."""


def declaration(tool: Tool, shape: Shape = "mcp", name: str | None = None) -> dict[str, Any]:
    """One tool in a shape, under another name if one is given."""
    return SHAPES[shape](tool, tool.name if name is None else name)


def name_of(declared: Mapping[str, Any]) -> str:
    """The name in a declaration of any shape."""
    function = declared.get("function")
    holder = function if isinstance(function, Mapping) else declared
    return str(holder.get("name", ""))


def _mcp(tool: Tool, name: str) -> dict[str, Any]:
    shape: dict[str, Any] = {"name": name}
    if tool.title is not None:
        shape["title"] = tool.title
    shape["description"] = tool.description
    shape["inputSchema"] = _root(tool.input_schema)
    if tool.output_schema is not None:
        shape["outputSchema"] = dict(tool.output_schema)
    hints = tool.annotations.to_mcp()
    if hints:
        shape["annotations"] = hints
    return shape


def _openai(tool: Tool, name: str) -> dict[str, Any]:
    return {"type": "function", "function": _function(tool, name)}


def _openai_responses(tool: Tool, name: str) -> dict[str, Any]:
    return {"type": "function", **_function(tool, name)}


def _function(tool: Tool, name: str) -> dict[str, Any]:
    # Without `properties` some of the servers that speak this shape refuse the schema.
    parameters = {**_root(tool.input_schema)}
    parameters.setdefault("properties", {})
    found = {"name": name, "description": tool.description, "parameters": parameters}
    return found | _strictness(tool)


def _anthropic(tool: Tool, name: str) -> dict[str, Any]:
    found = {
        "name": name,
        "description": tool.description,
        "input_schema": _root(tool.input_schema),
    }
    return found | _strictness(tool)


def _strictness(tool: Tool) -> dict[str, Any]:
    """Absent and false differ: one leaves it to the provider, the other turns it off."""
    constrained = tool.constrained_sampling
    return {"strict": constrained} if isinstance(constrained, bool) else {}


def _root(schema: Mapping[str, Any]) -> dict[str, Any]:
    return dict(schema) if "type" in schema else {"type": "object", **schema}


SHAPES: Mapping[str, Callable[[Tool, str], dict[str, Any]]] = {
    "mcp": _mcp,
    "openai": _openai,
    "openai-responses": _openai_responses,
    "anthropic": _anthropic,
}
"""How each shape is written."""
