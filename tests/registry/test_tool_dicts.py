"""Tools declared as dictionaries."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from seawall.contract.annotations import Risk
from seawall.contract.errors import ConfigurationError
from seawall.orchestration.pipeline import Pipeline
from seawall.registry.wrapping import wrap

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}

SHAPES: list[dict[str, Any]] = [
    {
        "type": "function",
        "function": {"name": "double", "description": "Doubles.", "parameters": SCHEMA},
    },
    {"type": "function", "name": "double", "description": "Doubles.", "parameters": SCHEMA},
    {"name": "double", "description": "Doubles.", "input_schema": SCHEMA},
    {"type": "custom", "name": "double", "description": "Doubles.", "input_schema": SCHEMA},
    {"name": "double", "description": "Doubles.", "inputSchema": SCHEMA},
]


async def double(n: int) -> int:
    return 2 * n


@pytest.mark.parametrize("declared", SHAPES)
async def test_each_shape_becomes_a_tool(declared: dict[str, Any]) -> None:
    registry = wrap([declared], dispatch={"double": double})

    (tool,) = registry
    assert (tool.name, tool.description, tool.input_schema) == ("double", "Doubles.", SCHEMA)
    assert tool.effective_risk is Risk.MEDIUM
    assert (await Pipeline(registry).call("double", {"n": "4"})).text == "8"


def test_a_single_dictionary_will_do() -> None:
    assert wrap(SHAPES[2], dispatch={"double": double}).names() == ("double",)


async def test_a_dispatcher_gets_name_and_arguments() -> None:
    async def dispatch(name: str, arguments: dict[str, Any]) -> list[Any]:
        return [name, arguments]

    result = await Pipeline(wrap(SHAPES[:1], dispatch=dispatch)).call("double", {"n": 4})

    assert result.structured_content == ["double", {"n": 4}]


@pytest.mark.parametrize("kind", ["function", "mapping"])
async def test_a_dispatcher_that_is_not_async_runs_in_a_thread(kind: str) -> None:
    def plain(*_: Any, **__: Any) -> str:
        return threading.current_thread().name

    dispatch: Any = plain if kind == "function" else {"double": plain}

    result = await Pipeline(wrap(SHAPES[:1], dispatch=dispatch)).call("double", {"n": 4})

    assert result.text.startswith("seawall-tool-")


async def test_an_object_with_an_async_call_is_awaited() -> None:
    class Dispatch:
        async def __call__(self, name: str, arguments: dict[str, Any]) -> str:
            return name

    result = await Pipeline(wrap(SHAPES[:1], dispatch=Dispatch())).call("double", {"n": 4})

    assert result.text == "double"


def test_hints_and_examples_are_read() -> None:
    declared = SHAPES[2] | {
        "annotations": {"readOnlyHint": True},
        "input_examples": [{"n": 1}],
    }

    (tool,) = wrap([declared], dispatch={"double": double})

    assert tool.annotations.read_only
    assert tool.examples == (({"n": 1}, None),)


def test_a_declaration_without_a_schema_takes_nothing() -> None:
    (tool,) = wrap([{"type": "function", "name": "now"}], dispatch={"now": double})

    assert tool.input_schema == {"type": "object", "properties": {}}


@pytest.mark.parametrize(
    ("declared", "said"),
    [
        ({"type": "web_search_20260209", "name": "web_search"}, "its provider runs it"),
        ({"type": "function", "function": {"description": "x"}}, "has no `name`"),
        ("double", "is str, no dictionary"),
        ({"name": "triple", "input_schema": SCHEMA}, "`dispatch` has no function"),
    ],
)
def test_what_cannot_be_run_is_told_with_its_place(declared: Any, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said) as error:
        wrap([SHAPES[0], declared], dispatch={"double": double})

    assert [fault.key for fault in error.value.faults] == ["[1]"]


@pytest.mark.parametrize("source", [5, "double", b""])
def test_what_holds_no_dictionaries_is_refused(source: Any) -> None:
    with pytest.raises(ConfigurationError, match="wants dictionaries"):
        wrap(source, dispatch={"double": double})
