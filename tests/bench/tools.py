"""The tools that are called, and the policy under which Seawall calls them."""

from __future__ import annotations

from typing import Any

from seawall import Annotations, BreakerPolicy, RunPolicy, Tool

POLICY = RunPolicy(
    timeout_s=30,
    max_retries=1,
    base_delay_s=0.4,
    rate="1000000000/minute",  # nothing is refused
    breaker=BreakerPolicy(),
)

FLAT = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
    "required": ["a", "b"],
}

NESTED = {
    "type": "object",
    "properties": {
        **{f"text_{n}": {"type": "string", "maxLength": 100} for n in range(4)},
        **{f"number_{n}": {"type": "integer", "minimum": 0} for n in range(4)},
        "kind": {"enum": ["fast", "deep"]},
        "flags": {"type": "array", "items": {"type": "string"}, "maxItems": 8},
        "inside": {
            "type": "object",
            "properties": {"x": {"type": "number"}, "y": {"type": "number"}},
            "required": ["x", "y"],
        },
        "all": {"type": "boolean"},
    },
    "required": ["text_0", "number_0", "inside"],
}

FLAT_GIVEN: dict[str, Any] = {"a": 1, "b": 2}
NESTED_GIVEN: dict[str, Any] = {
    **{f"text_{n}": "some words" for n in range(4)},
    **{f"number_{n}": n for n in range(4)},
    "kind": "fast",
    "flags": ["one", "two"],
    "inside": {"x": 1.5, "y": 2.5},
    "all": True,
}


async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def add_sync(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def adding(arguments: dict[str, Any], context: Any) -> int:
    """The same for a `Tool` made by hand."""
    total: int = arguments["a"] + arguments["b"]
    return total


async def answer(arguments: dict[str, Any], context: Any) -> str:
    return "ok"


def answer_sync(arguments: dict[str, Any], context: Any) -> str:
    return "ok"


def a_tool(name: str, schema: dict[str, Any] = FLAT, executor: Any = answer) -> Tool:
    return Tool(name, "Answers.", schema, executor, annotations=Annotations.for_reading())
