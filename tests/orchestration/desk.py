"""A pipeline for tests of its parts."""

from __future__ import annotations

from typing import Any

from seawall import (
    Pipeline,
    Policies,
    RunPolicy,
    Tool,
    ToolResult,
)
from seawall.testing import FakeClock, FixedChance, scripted


class Desk:
    """A pipeline over scripted tools, on a clock moved by hand."""

    def __init__(self, *tools: Tool, policy: RunPolicy | None = None, **options: Any) -> None:
        self.clock = FakeClock()
        policies = Policies(default=policy or RunPolicy())
        self.pipeline = Pipeline(
            tools or [scripted("well", name="t")],
            **{
                "clock": self.clock,
                "chance": FixedChance(),
                "policies": policies,
                **options,
            },
        )

    async def call(self, name: Any = "t", arguments: Any = None, **options: Any) -> ToolResult:
        return await self.clock.run(self.pipeline.call(name, arguments, **options))


def reason(result: ToolResult) -> str:
    return "" if result.failure is None else result.failure.reason
