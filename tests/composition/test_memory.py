"""However many calls were made, what they leave behind does not grow."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING, Any

from seawall import (
    Annotations,
    BreakerPolicy,
    Failure,
    FailureCode,
    Pipeline,
    Policies,
    RunPolicy,
    Session,
    Tool,
    ToolFailed,
)
from seawall.testing import FakeClock, FixedChance

if TYPE_CHECKING:
    import pytest

TOOLS = 50
ROUND = 2_000

POLICY = RunPolicy(
    timeout_s=5,
    max_retries=1,
    rate="30/minute",
    rate_key=("caller",),
    breaker=BreakerPolicy(threshold=3),
    max_concurrency=2,
)


class Town:
    """Many tools, and calls of every kind that come in turn."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.made = 0
        schema = {
            "type": "object",
            "properties": {"kind": {"type": "integer"}, "path": {"type": "string"}},
            "required": ["kind"],
        }
        tools = [
            Tool(
                name=f"tool_{number}",
                description="",
                input_schema=schema,
                executor=self._execute,
                annotations=Annotations(read_only=number % 2 == 0),
                exclusive="$path" if number % 3 == 0 else None,
            )
            for number in range(TOOLS)
        ]
        self.pipeline = Pipeline(
            tools, policies=Policies(default=POLICY), clock=self.clock, chance=FixedChance()
        )

    async def _execute(self, arguments: dict[str, Any], context: Any) -> Any:
        kind = arguments["kind"]
        if kind == 1:
            raise OSError("down")
        if kind == 2:
            raise ToolFailed(Failure(code=FailureCode.NOT_FOUND, message="no"))
        if kind == 3:
            await self.clock.sleep(9)
        return {"kind": kind}

    async def calls(self, number: int) -> None:
        arguments = [
            *({"kind": kind, "path": "p"} for kind in (0, 1, 2, 3)),
            *({"kind": "x"}, {}, "{", None),
        ]
        for _ in range(number):
            self.made += 1
            session = Session(f"s{self.made}", caller=f"c{self.made % 7}")
            name = f"tool_{self.made % (TOOLS + 3)}"  # some of them unknown
            given = arguments[self.made % len(arguments)]
            await self.pipeline.call(name, given, session=session)


async def test_after_warming_up_calls_leave_nothing_behind(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("CRITICAL", logger="seawall")  # what is captured is kept
    town = Town()
    await town.clock.run(town.calls(2 * ROUND))
    gc.collect()
    before = len(gc.get_objects())

    await town.clock.run(town.calls(ROUND))
    gc.collect()

    # A leak of one object in twenty calls would show.
    assert len(gc.get_objects()) - before < ROUND / 20
