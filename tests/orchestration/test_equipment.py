"""What a pipeline is made of: what is given is used, and what was opened ends with it."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from tests.orchestration.desk import Desk, reason
from tests.waiting import until

from seawall import (
    Metrics,
    Pipeline,
    Policies,
    RunPolicy,
    Tool,
    TraceRecorder,
    UsageTracker,
)
from seawall.pipeline.recorder import ToolRecorder
from seawall.policy.settings import TraceSettings


async def test_recorders_that_are_given_are_used_though_they_are_empty() -> None:
    trace, usage, metrics = TraceRecorder(5), UsageTracker(), Metrics()
    desk = Desk(trace=trace, usage=usage, metrics=metrics)

    await desk.call()

    assert (desk.pipeline.trace, desk.pipeline.usage) == (trace, usage)
    assert len(trace) == 1
    assert usage.snapshot()["t"].successes == 1
    assert 'tool="t"' in metrics.text().decode()


@pytest.mark.parametrize("of_successes", [True, False])
async def test_a_recorder_of_ones_own_that_fails_harms_no_call(of_successes: bool) -> None:
    class Broken:
        def for_tool(self, tool: str) -> ToolRecorder:
            on_success = self.fail if of_successes else None
            return ToolRecorder(self.fail, self.fail, self.fail, on_success)

        def unknown(self) -> None:
            raise OSError

        def fail(self, *news: Any) -> None:
            raise OSError

    heard: list[Any] = []

    class After(Broken):
        def fail(self, *news: Any) -> None:
            heard.append(news)

    desk = Desk(recorders=[Broken(), After()])

    assert (await desk.call()).text == "well"
    assert heard
    assert reason(await desk.call("nobody")) == "tool_not_found"


async def test_the_policies_say_how_much_is_traced() -> None:
    policies = Policies(default=RunPolicy(), trace=TraceSettings(capacity=2))
    desk = Desk(policies=policies)

    for _ in range(5):
        await desk.call()

    assert len(desk.pipeline.trace) == 2


async def test_digests_compare_between_pipelines_with_the_same_key() -> None:
    desks = [Desk(digest_key=key) for key in (b"k", b"k", None)]
    for desk in desks:
        await desk.call(arguments={"a": 1})

    one, other, without = (desk.pipeline.trace.spans()[0].digest for desk in desks)

    assert one == other != without


async def test_leaving_the_block_ends_idle_threads() -> None:
    def works(arguments: Any, context: Any) -> str:
        return threading.current_thread().name

    tool = Tool(name="t", description="", input_schema={}, executor=works)
    async with Pipeline([tool]) as pipeline:
        name = (await pipeline.call("t")).text

    await until(lambda: name not in [thread.name for thread in threading.enumerate()])
