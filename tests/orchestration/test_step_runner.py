"""The one runner of a pipeline, and how deep steps may be called."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from seawall.contract.failure import FailureCode
from seawall.orchestration.batch import BatchRunner
from seawall.orchestration.pipeline import Pipeline
from seawall.orchestration.shortcuts import Shortcuts
from seawall.orchestration.step_runner import StepRunner
from seawall.pipeline.context import MAX_DEPTH
from seawall.testing import FakeClock, scripted

if TYPE_CHECKING:
    from seawall.contract.result import ToolResult
    from seawall.pipeline.context import ToolContext


def test_batches_and_shortcuts_of_a_pipeline_share_a_runner() -> None:
    one, other = Pipeline([]), Pipeline([])

    assert StepRunner.of(one) is StepRunner.of(one)
    assert StepRunner.of(one) is not StepRunner.of(other)


async def test_steps_that_would_be_too_deep_are_refused_before_the_first_runs() -> None:
    clock = FakeClock()
    leaf = scripted("leaf", name="leaf")
    results: list[ToolResult] = []

    async def down(arguments: dict[str, Any], context: ToolContext) -> str:
        depth = int(arguments["depth"])
        if depth > 1:
            await context.call_tool("down", {"depth": depth - 1})
        else:
            results.append(await context.call_tool("shortcut.leaf"))
            results.append(await context.call_tool("tool_batch_run", {"steps": [{"tool": "leaf"}]}))
        return "done"

    pipeline = Pipeline(
        [leaf, msgspec.structs.replace(scripted(name="down"), executor=down)], clock=clock
    )
    shortcuts = Shortcuts(pipeline)
    pipeline.registry.register(BatchRunner(pipeline).tool)
    await shortcuts.define({"id": "shortcut.leaf", "name": "x", "steps": [{"tool": "leaf"}]})

    await clock.run(pipeline.call("down", {"depth": MAX_DEPTH - 2}))
    assert not any(result.is_error for result in results)
    results.clear()
    await clock.run(pipeline.call("down", {"depth": MAX_DEPTH - 1}))

    assert [result.failure.code for result in results if result.failure is not None] == [
        FailureCode.PERMISSION_DENIED
    ] * 2
    executor: Any = leaf.executor
    assert len(executor.calls) == 2
