"""A registry of whatever the user already has."""

from __future__ import annotations

import types
from typing import Any

import pytest

from seawall.contract.errors import ConfigurationError
from seawall.contract.tool import Tool
from seawall.registry.registry import Registry
from seawall.registry.wrapping import wrap

TOOL = Tool(name="t", description="", input_schema={}, executor=print)


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


class Adder:
    """Adds to what it holds."""

    def __init__(self, held: int) -> None:
        self.held = held

    def add_to(self, a: int) -> int:
        """Add a number."""
        return self.held + a


def module() -> types.ModuleType:
    made = types.ModuleType("tools")
    made.__dict__.update(t=TOOL, add=add, other=5)
    return made


@pytest.mark.parametrize(
    ("source", "names"),
    [
        (TOOL, ("t",)),
        (add, ("add",)),
        (Adder(1).add_to, ("add_to",)),
        ([TOOL, add], ("t", "add")),
        ((one for one in (TOOL,)), ("t",)),
        ({"t": TOOL, "plus": add, "other": TOOL}, ("t", "plus", "other")),
        (module(), ("t",)),
        ([], ()),
        ({}, ()),
    ],
    ids=lambda value: type(value).__name__,
)
def test_tools_and_functions_in_any_shape_become_a_registry(source: Any, names: Any) -> None:
    assert wrap(source).names() == names


def test_a_registry_stays_the_same() -> None:
    registry = Registry([TOOL])

    assert wrap(registry) is registry


def test_a_tool_under_another_name_is_a_copy() -> None:
    found = wrap({"other": TOOL}).get("other")

    assert found is not None
    assert found.executor is TOOL.executor
    assert TOOL.name == "t"


@pytest.mark.parametrize("source", [5, None, "read_file", b"x", object(), Adder])
def test_anything_else_is_told_what_may_be_given(source: Any) -> None:
    with pytest.raises(ConfigurationError, match="cannot make a registry of"):
        wrap(source)


@pytest.mark.parametrize(
    ("source", "keys"),
    [([TOOL, 5, "x"], ["[1]", "[2]"]), ({"a": 5, "t": TOOL, 3: None}, ["a", "3"])],
)
def test_what_is_no_tool_in_a_collection_is_named_by_its_place(source: Any, keys: Any) -> None:
    with pytest.raises(ConfigurationError) as error:
        wrap(source)

    assert [fault.key for fault in error.value.faults] == keys
    assert all("no tool or function" in fault.message for fault in error.value.faults)
