"""Arguments are refused where it costs nothing."""

from __future__ import annotations

from typing import Any

import pytest

from seawall.contract.failure import FailureCode
from seawall.contract.policy import RunPolicy
from seawall.layers.argument_check import ArgumentCheck
from seawall.pipeline.layer import compose
from seawall.testing import LayerBench


@pytest.mark.parametrize(("mode", "there"), [("on", True), ("shadow", True), ("off", False)])
def test_the_layer_is_there_unless_it_is_switched_off(mode: Any, there: bool) -> None:
    bench = LayerBench(RunPolicy(check_mode=mode))

    assert (ArgumentCheck.for_tool(bench.context) is not None) is there


@pytest.mark.parametrize("asked_before", [False, True])
async def test_a_refusal_is_handed_on_and_nothing_runs(asked_before: bool) -> None:
    bench = LayerBench()
    layer = ArgumentCheck.for_tool(bench.context)
    assert layer is not None
    call = bench.invocation()
    asked: list[int] = []

    def prepare(call: Any) -> Any:
        asked.append(1)
        return call.refuse(FailureCode.INVALID_ARGUMENT, "no good")

    call.prepare = prepare
    if asked_before:
        call.prepared()

    result = await bench.clock.run(compose([layer], bench.answering("never"))(call))

    assert result.failure is not None
    assert (result.failure.code, result.failure.may_have_run) == (
        FailureCode.INVALID_ARGUMENT,
        False,
    )
    assert (asked, call.attempt) == ([1], 0)


async def test_arguments_that_are_in_order_go_on() -> None:
    bench = LayerBench()
    layer = ArgumentCheck.for_tool(bench.context)
    assert layer is not None

    assert (await bench.call(compose([layer], bench.answering("well")), {"a": 1})).text == "well"
