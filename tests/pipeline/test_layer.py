"""How layers become one handler."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from seawall.pipeline.layer import Fitted, Layer, LayerRecipe, compose
from seawall.testing import LayerBench

if TYPE_CHECKING:
    from seawall.contract.result import ToolResult
    from seawall.pipeline.invocation import Handler, Invocation
    from seawall.pipeline.layer import LayerContext


class Named:
    """Writes its name on the way in and on the way out."""

    def __init__(self, name: str, log: list[str]) -> None:
        self.name = name
        self.log = log

    async def __call__(self, call: Invocation, proceed: Handler) -> ToolResult:
        self.log.append(f"into {self.name}")
        result = await proceed(call)
        self.log.append(f"out of {self.name}")
        return result


class Recipe:
    """Makes nothing for any tool."""

    def for_tool(self, context: LayerContext) -> Layer | None:
        return None


async def test_the_first_layer_is_outermost() -> None:
    bench, log = LayerBench(), list[str]()
    handler = compose([Named("a", log), Named("b", log)], bench.answering("x"))

    result = await bench.call(handler)

    assert result.text == "x"
    assert log == ["into a", "into b", "out of b", "out of a"]


async def test_without_layers_there_is_the_executor_alone() -> None:
    bench = LayerBench()
    execute = bench.answering("x")

    assert compose([], execute) is execute


def test_layers_and_recipes_are_told_apart() -> None:
    assert isinstance(Named("a", []), Layer)
    assert isinstance(Recipe(), LayerRecipe)
    assert not isinstance(Named("a", []), LayerRecipe)


def test_a_collaborator_is_found_by_its_type() -> None:
    bench = LayerBench(parts={int: 5})

    assert bench.context.part(int) == 5
    assert bench.context.part(str) is None


def test_what_a_layer_keeps_outlives_the_chain() -> None:
    bench = LayerBench()

    bench.context.slots.slot("mine", lambda: "kept")

    assert bench.context.slots.find("mine") == "kept"


async def test_a_layers_cancel_is_not_swallowed_on_the_way() -> None:
    bench = LayerBench()

    async def cancelled(call: Invocation) -> ToolResult:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        await compose([Named("a", [])], cancelled)(bench.invocation())


class Counting(Fitted):
    """Counts how often its handler is made."""

    def __init__(self, log: list[str]) -> None:
        self.log = log

    def fitted(self, proceed: Handler) -> Handler:
        self.log.append("made")

        async def handler(call: Invocation) -> ToolResult:
            self.log.append("asked")
            return await proceed(call)

        return handler


async def test_a_fitted_layer_makes_its_handler_once_whatever_stands_around_it() -> None:
    bench, log = LayerBench(), list[str]()
    handler = compose([Named("a", log), Counting(log)], bench.answering("x", "y"))

    await bench.call(handler)
    await bench.call(handler)

    assert log == ["made", *["into a", "asked", "out of a"] * 2]


async def test_a_fitted_layer_alone_is_a_layer_as_any_other() -> None:
    bench, log = LayerBench(), list[str]()
    layer = Counting(log)

    result = await layer(bench.invocation(), bench.answering("x"))

    assert isinstance(layer, Layer)
    assert result.text == "x"
    assert log == ["made", "asked"]
