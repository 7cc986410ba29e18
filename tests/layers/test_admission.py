"""Admission: the place in a chain where a call of a turn waits for the others."""

from __future__ import annotations

import pytest

from seawall import Annotations, Pipeline, Policies, RunPolicy, Tool, ToolResult
from seawall.layers.admission import Admission
from seawall.pipeline.layer import compose
from seawall.testing import FakeClock, LayerBench, scripted


class Gatekeeper:
    """A turnstile that says what it is told to, and counts."""

    def __init__(self, refusal: ToolResult | None = None) -> None:
        self.refusal = refusal
        self.log: list[str] = []

    async def enter(self) -> ToolResult | None:
        self.log.append("enter")
        return self.refusal

    def leave(self) -> None:
        self.log.append("leave")


async def test_a_call_without_a_turnstile_goes_straight_on() -> None:
    bench = LayerBench()

    result = await bench.call(compose([Admission()], bench.answering("done")))

    assert result.text == "done"


async def test_a_call_enters_runs_and_leaves() -> None:
    bench, gatekeeper = LayerBench(), Gatekeeper()
    call = bench.invocation()
    call.beside().turnstile = gatekeeper

    result = await bench.clock.run(compose([Admission()], bench.answering("done"))(call))

    assert result.text == "done"
    assert gatekeeper.log == ["enter", "leave"]


async def test_a_call_that_is_not_let_in_does_not_run_and_does_not_leave() -> None:
    bench = LayerBench()
    gatekeeper = Gatekeeper(ToolResult.of_text("over"))
    call = bench.invocation()
    call.beside().turnstile = gatekeeper

    result = await bench.clock.run(compose([Admission()], bench.answering("done"))(call))

    assert result.text == "over"
    assert gatekeeper.log == ["enter"]
    assert call.attempt == 0


async def test_a_call_leaves_whatever_happens() -> None:
    bench, gatekeeper = LayerBench(), Gatekeeper()
    call = bench.invocation()
    call.beside().turnstile = gatekeeper

    async def broken(_: object) -> ToolResult:
        raise LookupError("a defect")

    with pytest.raises(LookupError):
        await compose([Admission()], broken)(call)

    assert gatekeeper.log == ["enter", "leave"]


@pytest.mark.parametrize("layers", [None, [], ["retry", "timeout"], ["timeout", "risk_gate"]])
async def test_a_call_waits_once_however_often_it_is_tried(layers: list[str] | None) -> None:
    clock = FakeClock()
    flaky = scripted(
        OSError("down"), "up", clock=clock, name="flaky", annotations=Annotations.for_reading()
    )
    policies = Policies(default=RunPolicy(max_retries=1, timeout_s=9))
    pipeline = Pipeline(
        [flaky, scripted(("sleep", 1, "x"), clock=clock, name="other")],
        clock=clock,
        policies=policies,
        layers=layers,
        max_turn_width=1,
    )

    outcome = await clock.run(pipeline.turn([("flaky", {}), ("other", {})]))

    retries = layers is None or "retry" in layers
    assert [result.is_error for result in outcome.results] == [not retries, False]
    assert outcome.results[0].attempts == (2 if retries else 1)


async def test_a_quota_is_not_spent_by_a_call_whose_turn_ends_at_the_gates() -> None:
    clock = FakeClock()
    tool = Tool("t", "", {"type": "object"}, _answer)

    class Stops:
        def before(self, context: object) -> object:
            from seawall import Stop  # noqa: PLC0415  # named where it is used

            return Stop("enough") if getattr(context, "call_id", "") == "2" else None

    policies = Policies(default=RunPolicy(rate="1/minute"))
    pipeline = Pipeline([tool], clock=clock, policies=policies, hooks=[Stops()])  # type: ignore[list-item]  # a hook in all but its type

    await clock.run(pipeline.turn([("t", {"n": 1}, "1"), ("t", {"n": 2}, "2")]))
    result = await clock.run(pipeline.call("t", {}))

    assert result.text == "answer"


async def _answer(arguments: object, context: object) -> str:
    return "answer"
