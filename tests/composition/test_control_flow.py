"""What a tool raises to hand control back passes through all layers, and is no failure."""

import threading
from collections.abc import Callable
from typing import Any

import pytest

from seawall import (
    Annotations,
    BreakerPolicy,
    Outcome,
    Pipeline,
    Policies,
    RunPolicy,
    Tool,
    ToolContext,
    ToolResult,
)
from seawall.pipeline.invocation import Handler, Invocation
from seawall.policy.build import BY_NAME
from seawall.testing import FakeClock, FixedChance


class Interrupt(Exception):  # noqa: N818  # named as frameworks name theirs
    pass


class Pause(Interrupt):
    pass


class Leave(BaseException):
    pass


class Interrupted:
    """A tool that hands control back."""

    def __init__(self, error: BaseException) -> None:
        self.error = error
        self.runs = 0
        self.threads: list[str] = []

    async def run(self, arguments: dict[str, Any], context: ToolContext) -> Any:
        return self.run_sync(arguments, context)

    def run_sync(self, arguments: dict[str, Any], context: ToolContext) -> Any:
        self.runs += 1
        self.threads.append(threading.current_thread().name)
        raise self.error

    def pipeline(self, executor: Callable[..., Any] | None = None, **options: Any) -> Pipeline:
        tool = Tool(
            "t",
            "",
            {},
            executor or self.run,
            annotations=Annotations.for_reading(),
            control_flow=(Interrupt, Leave),
        )
        policy = RunPolicy(
            max_retries=3, timeout_s=5, breaker=BreakerPolicy(threshold=1), rate="9/minute"
        )
        policies = Policies(default=policy)
        return Pipeline([tool], policies=policies, chance=FixedChance(0.0), **options)


async def own_layer(call: Invocation, proceed: Handler) -> ToolResult:
    return await proceed(call)


LAYERS: list[Any] = [None, [], [own_layer, *BY_NAME.values()]]


@pytest.mark.parametrize("layers", LAYERS, ids=["default", "none", "own"])
@pytest.mark.parametrize("error", [Interrupt("i"), Pause("p"), Leave("l")])
async def test_it_is_raised_as_it_is_and_nothing_is_tried_again(
    error: BaseException, layers: Any
) -> None:
    tool = Interrupted(error)
    pipeline = tool.pipeline(layers=layers)

    with pytest.raises(type(error)) as raised:
        await pipeline.call("t")

    assert raised.value is error
    assert tool.runs == 1
    assert layers == [] or pipeline.breakers.state("t") == "closed"
    spans = [(span.outcome, span.reason) for span in pipeline.trace.spans()]
    assert spans == [(Outcome.SKIPPED, "handed_back")]


async def test_it_leaves_its_thread() -> None:
    tool = Interrupted(Interrupt("i"))

    with pytest.raises(Interrupt):
        await tool.pipeline(tool.run_sync).call("t")

    assert tool.threads[0].startswith("seawall-tool-")


async def test_it_gives_back_the_probe_of_a_circuit() -> None:
    clock = FakeClock()
    tool = Interrupted(ConnectionError("reset"))
    pipeline = tool.pipeline(clock=clock)
    await clock.run(pipeline.call("t"))
    await clock.advance(60)
    tool.error = Interrupt("i")

    for _ in range(2):
        with pytest.raises(Interrupt):
            await clock.run(pipeline.call("t"))

    assert pipeline.breakers.state("t") == "half_open"


def test_it_reaches_code_that_is_not_async() -> None:
    pipeline = Interrupted(Interrupt("i")).pipeline()

    with pytest.raises(Interrupt):
        pipeline.call_sync("t")
    pipeline._home.close()


async def test_what_is_not_named_is_a_failure_as_ever() -> None:
    pipeline = Interrupted(ValueError("v")).pipeline()

    result = await pipeline.call("t")

    assert result.failure is not None
    assert result.failure.cause == ("ValueError",)
    assert pipeline.breakers.state("t") == "open"
