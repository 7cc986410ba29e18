"""Recorders that stand around calls as well."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from seawall import Pipeline
from seawall.pipeline.recorder import ToolRecorder
from seawall.testing import scripted

if TYPE_CHECKING:
    from seawall import Handler, Tool


class Standing:
    """Notes when calls pass it, on their way in and out."""

    def __init__(self, name: str, notes: list[str]) -> None:
        self.name = name
        self.notes = notes

    def for_tool(self, tool: str) -> ToolRecorder:
        return ToolRecorder(on_call=lambda _: self.notes.append(f"{self.name} told"))

    def unknown(self) -> None:
        self.notes.append("unknown")

    def around(self, tool: Tool, handler: Handler) -> Handler:
        self.notes.append(f"{self.name} around {tool.name}")

        async def standing(call: Any) -> Any:
            self.notes.append(f"{self.name} in")
            result = await handler(call)
            self.notes.append(f"{self.name} out")
            return result

        return standing


async def test_the_first_is_innermost_and_asked_once_for_each_chain() -> None:
    notes: list[str] = []
    pipeline = Pipeline(
        [scripted("well", name="t")], recorders=[Standing("a", notes), Standing("b", notes)]
    )
    assert notes == ["a around t", "b around t"]
    notes.clear()

    assert (await pipeline.call("t", {})).text == "well"
    assert notes == ["b in", "a in", "a out", "b out", "a told", "b told"]

    notes.clear()
    await pipeline.call("t", {}, timeout_s=5)
    await pipeline.call("t", {}, timeout_s=5)
    assert notes.count("a around t") == 1
    assert notes.count("a in") == 2
