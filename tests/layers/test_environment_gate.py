"""The gate before tools that need something of their environment."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from seawall.contract.failure import FailureCode
from seawall.contract.policy import RunPolicy
from seawall.layers.environment import Environment
from seawall.layers.environment_gate import EnvironmentGate
from seawall.pipeline.layer import compose
from seawall.testing import FakeClock, LayerBench, scripted

TESTS = Path(__file__).parents[1]
VECTORS = {
    case["id"]: case
    for case in json.loads((TESTS / "vectors" / "environment.json").read_text())["cases"]
}


class Bench(LayerBench):
    """A bench with an environment and a tool that needs the given flags."""

    def __init__(self, *needs: str, mode: Any = "on") -> None:
        clock = FakeClock()
        self.environment = Environment(clock.now)
        super().__init__(
            RunPolicy(gate_mode=mode),
            tool=scripted("done", clock=clock, name="tool", needs=needs),
            clock=clock,
            parts={Environment: self.environment},
        )

    async def refused(self) -> bool:
        gate = EnvironmentGate.for_tool(self.context)
        handler = compose([] if gate is None else [gate], self.execute())
        return (await self.call(handler)).is_error


async def test_vector_en_03_only_an_explicit_live_false_refuses() -> None:
    bench, idle = Bench("net"), Bench()
    refused = []

    refused.append(await bench.refused())
    for value, ttl_s, wait_s in ((False, None, 0), (True, None, 0), (False, 40, 40)):
        bench.environment.set("net", value, ttl_s)
        await bench.clock.advance(wait_s)
        refused.append(await bench.refused())
    idle.environment.set("net", value=False)
    refused.append(await idle.refused())

    decisions = ["deny" if answer else "allow" for answer in refused]
    assert decisions == VECTORS["en-03"]["expect"]["decisions"]


async def test_vector_en_04_a_refusal_names_flag_state_and_repair_and_forbids_repeating() -> None:
    given = VECTORS["en-04"]["given"]
    bench = Bench(*given["tool_requires"])
    for flag, value in given["flags"].items():
        bench.environment.set(flag, value, repair=f"Turn {flag} on.")
    gate = EnvironmentGate.for_tool(bench.context)
    assert gate is not None

    call = bench.invocation()
    result = await gate(call, bench.execute())

    failure = result.failure
    assert failure is not None
    assert failure.code is FailureCode.PERMISSION_DENIED
    assert failure.reason == "environment_unmet"
    assert failure.layer == "environment_gate"
    assert failure.may_have_run is False
    assert failure.message == "tool needs b, which is off"
    assert "Turn b on." in failure.guidance
    assert "Turn a on." not in failure.guidance
    assert "Environment: a on, b off." in failure.guidance
    assert "Do not call this tool again until that has changed." in failure.guidance
    assert call.attempt == 0
    assert call.unprepared


async def test_vector_en_08_needs_count_for_a_tool_whose_executor_is_wrapped() -> None:
    bench = Bench("net")
    bench.environment.set("net", value=False)
    inner = bench.tool.executor

    async def wrapped(arguments: dict[str, Any], context: Any) -> Any:
        return await inner(arguments, context)

    bench.tool = msgspec.structs.replace(bench.tool, executor=wrapped)

    assert await bench.refused()


async def test_every_unmet_flag_is_named_with_its_repair() -> None:
    bench = Bench("network", "browser", "power", "network")
    for flag, value in (("network", False), ("browser", False), ("power", True)):
        bench.environment.set(flag, value)
    gate = EnvironmentGate.for_tool(bench.context)
    assert gate is not None

    failure = (await bench.call(compose([gate], bench.execute()))).failure

    assert failure is not None
    assert failure.message == "tool needs network and browser, which are off"
    assert "network: Ask the user to connect to the internet." in failure.guidance
    assert "browser: Open a page in the browser first." in failure.guidance
    assert "power: " not in failure.guidance


async def test_a_source_that_changes_its_mind_still_leaves_a_flag_to_name() -> None:
    bench = Bench("network")
    answers = [False]
    bench.environment.source("network", lambda: answers.pop() if answers else True)
    gate = EnvironmentGate.for_tool(bench.context)
    assert gate is not None

    failure = (await bench.call(compose([gate], bench.execute()))).failure

    assert failure is not None
    assert failure.message == "tool needs network, which is off"


async def test_shadow_notes_the_refusal_and_lets_the_call_through() -> None:
    bench = Bench("network", mode="shadow")
    bench.environment.set("network", value=False)
    gate = EnvironmentGate.for_tool(bench.context)
    assert gate is not None
    call = bench.invocation()

    result = await gate(call, bench.execute())

    assert result.text == "done"
    assert call.verdicts == ("environment_gate:would_refuse:environment_unmet",)
    assert bench.events == [("environment_gate", "shadow_refused")]


def test_there_is_no_gate_where_there_is_nothing_to_do() -> None:
    without_environment = LayerBench(tool=scripted(needs=("network",)))

    assert EnvironmentGate.for_tool(without_environment.context) is None
    assert EnvironmentGate.for_tool(Bench().context) is None
    assert EnvironmentGate.for_tool(Bench("network", mode="off").context) is None


@given(
    needs=st.lists(st.sampled_from("abcd"), max_size=4),
    flags=st.dictionaries(st.sampled_from("abcd"), st.booleans()),
)
def test_a_call_is_refused_exactly_if_a_need_is_known_to_be_off(
    needs: list[str], flags: dict[str, bool]
) -> None:
    bench = Bench(*needs)
    for flag, value in flags.items():
        bench.environment.set(flag, value)

    refused = [*_run(bench)]

    unmet = [flag for flag in dict.fromkeys(needs) if flags.get(flag) is False]
    assert refused == ([f"tool needs {' and '.join(unmet)}"] if unmet else [])


def _run(bench: Bench) -> list[str]:
    """The refusal's message up to the comma, without a loop: a refusal never suspends."""
    gate = EnvironmentGate.for_tool(bench.context)
    if gate is None:
        return []
    went_on: list[str] = []

    async def proceed(call: Any) -> Any:
        went_on.append("ran")

    steps = gate(bench.invocation(), proceed)
    try:
        steps.send(None)
    except StopIteration as stop:
        return [] if went_on else [stop.value.failure.message.split(",")[0]]
    raise AssertionError("the gate waited")
