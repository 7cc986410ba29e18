"""The collector waits, and goes on as it was."""

from __future__ import annotations

import gc

import pytest

from seawall import Pipeline, Tool
from seawall.pipeline.collecting import uncollected


@pytest.mark.parametrize("enabled", [True, False])
def test_the_collector_is_afterwards_as_it_was(enabled: bool) -> None:
    def fails() -> None:
        with uncollected():
            assert not gc.isenabled()
            raise OSError("on the way")

    was_enabled = gc.isenabled()
    (gc.enable if enabled else gc.disable)()
    try:
        with pytest.raises(OSError, match="on the way"):
            fails()
        assert gc.isenabled() is enabled
    finally:
        (gc.enable if was_enabled else gc.disable)()


def test_tools_are_taken_without_collections() -> None:
    async def well(arguments: object, context: object) -> str:
        return "well"

    tools = [Tool(f"tool_{number}", "", {}, well) for number in range(1_000)]
    begun: list[str] = []

    def note(phase: str, _: object) -> None:
        begun.append(phase)

    gc.callbacks.append(note)
    try:
        Pipeline(tools)
    finally:
        gc.callbacks.remove(note)

    assert begun.count("start") < 10  # else hundreds
