"""A registry of whatever the user already has."""

from __future__ import annotations

import subprocess
import sys
import types
from typing import Any

import msgspec
import pytest

from seawall.contract.annotations import Annotations
from seawall.contract.errors import ConfigurationError
from seawall.contract.tool import Tool
from seawall.registry.registry import Registry
from seawall.registry.wrapping import ADAPTERS, EXTRAS, wrap

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


def test_what_a_framework_does_not_say_can_be_said_by_name() -> None:
    hints = Annotations.for_reading()

    registry = wrap([add, TOOL], annotations={"add": hints})

    assert [tool.annotations for tool in registry] == [hints, TOOL.annotations]
    assert wrap(registry, annotations={"t": hints}).names() == ("add", "t")


def test_annotations_for_a_name_that_is_not_there_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="is no tool here") as error:
        wrap([add], annotations={"ad": Annotations()})

    assert [fault.key for fault in error.value.faults] == ["annotations.ad"]


def test_a_dictionary_in_a_list_is_told_what_it_lacks() -> None:
    with pytest.raises(ConfigurationError, match="give `dispatch`"):
        wrap([{"name": "add", "input_schema": {}}])


def test_faults_of_several_tools_are_told_together() -> None:
    other = msgspec.structs.replace(TOOL, name="")

    with pytest.raises(ConfigurationError) as error:
        wrap([TOOL, TOOL, other])

    assert len(error.value.faults) == 2


def test_an_imported_tool_whose_schema_is_no_good_is_quarantined() -> None:
    broken = {"name": "broken", "input_schema": {"type": 5}}

    registry = wrap([broken], dispatch=lambda name, arguments: name)

    assert registry.quarantine_reason("broken")


SEEN = """
import sys
import seawall
{code}
found = [name for name in sys.modules if name.startswith("seawall.edges.adapters.")]
names = sorted(name.rpartition(".")[2] for name in found)
print(*(name for name in names if not name.startswith("_")))
"""


@pytest.mark.parametrize(
    ("code", "adapters"),
    [
        ("seawall.wrap([one])", ""),
        ("from langchain_core.tools import tool\nseawall.wrap(tool(one))", "langchain"),
        ("from pydantic_ai import FunctionToolset as F\nseawall.wrap(F())", "pydantic_ai"),
        ("from agents import function_tool as f\nseawall.wrap(f(one))", "openai_agents"),
        ("from fastmcp import FastMCP\nseawall.wrap(FastMCP('a'))", "fastmcp"),
    ],
)
def test_only_the_adapter_of_what_is_wrapped_is_imported(code: str, adapters: str) -> None:
    code = f"def one() -> int:\n    'One.'\n    return 1\n{code}"

    done = subprocess.run(
        [sys.executable, "-c", SEEN.format(code=code)],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )

    assert done.stdout.split() == adapters.split()


def test_servers_are_said_to_need_a_connection() -> None:
    with pytest.raises(ConfigurationError, match="have to be connected: servers = await connect"):
        wrap({"mcpServers": {"time": {"command": "mcp-server-time"}}})


def test_a_package_of_somebodys_own_may_be_called_like_a_framework(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Greeter:
        """Greets."""

        def __call__(self, name: str) -> str:
            return f"hello {name}"

    Greeter.__module__ = "agents.greeting"
    monkeypatch.setitem(ADAPTERS, "agents", "seawall.no_such_adapter")
    monkeypatch.setitem(EXTRAS, "agents", "no-such-framework")

    with pytest.raises(ConfigurationError, match="cannot make a registry of Holder"):
        wrap(type("Holder", (), {"__module__": "agents.greeting"})())
    assert len(wrap({"greet": Greeter()})) == 1


def test_a_framework_that_does_not_fit_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ADAPTERS, "agents", "seawall.no_such_adapter")
    monkeypatch.setitem(EXTRAS, "agents", "pytest")

    with pytest.raises(ConfigurationError, match=r"pytest .* does not fit"):
        wrap(type("Holder", (), {"__module__": "agents.greeting"})())
