"""Faults on purpose look like real ones, and fall the same way for the same seed."""

from __future__ import annotations

from typing import Any

import pytest

from seawall import Annotations, BreakerPolicy, Pipeline, Policies, RunPolicy, Tool
from seawall.contract.errors import ConfigurationError
from seawall.policy.build import LAYERS
from seawall.testing import Chaos, FakeClock, FixedChance

READING = Annotations.for_reading()


class Scene:
    """A tool that always works, but for the chaos around it."""

    def __init__(self, chaos: Chaos, **policy: Any) -> None:
        self.clock = FakeClock()
        self.chaos = chaos
        self.runs = 0
        tools = [
            Tool(name, "", {"type": "object"}, self.run, annotations=READING)
            for name in ("read", "other")
        ]
        self.pipeline = Pipeline(
            tools,
            policies=Policies(RunPolicy(**{"timeout_s": 5, **policy})),
            layers=[*LAYERS, chaos],
            clock=self.clock,
            chance=FixedChance(0.0),
        )

    async def run(self, arguments: Any, context: Any) -> str:
        self.runs += 1
        return "done"

    async def reasons(self, times: int, tool: str = "read") -> list[str]:
        results = [await self.clock.run(self.pipeline.call(tool)) for _ in range(times)]
        return ["" if r.failure is None else r.failure.reason for r in results]


async def test_an_error_is_an_attempt_in_which_nothing_was_done() -> None:
    scene = Scene(Chaos(errors=1))

    assert await scene.reasons(1) == ["tool_failed"]
    assert scene.runs == 0
    (span,) = scene.pipeline.trace.spans()
    assert (span.attempt, span.verdicts) == (1, ("chaos:errors",))


async def test_a_crash_loses_the_answer_of_what_was_done() -> None:
    scene = Scene(Chaos(crashes=1), breaker=BreakerPolicy(threshold=2))

    assert await scene.reasons(3) == ["tool_failed", "tool_failed", "circuit_open"]
    assert scene.runs == 2


async def test_a_hang_is_ended_by_the_timeout() -> None:
    scene = Scene(Chaos(hangs=1))

    assert await scene.reasons(1) == ["attempt_timeout"]
    assert (scene.runs, scene.clock.now()) == (0, 5)


async def test_a_late_answer_comes_late() -> None:
    scene = Scene(Chaos(latency=1, latency_s=(2, 3)))

    assert await scene.reasons(1) == [""]
    assert 2 <= scene.clock.now() <= 3


async def test_an_answer_that_is_too_late_may_have_been_done() -> None:
    scene = Scene(Chaos(latency=1, latency_s=(9, 9)))

    assert await scene.reasons(1) == ["attempt_timeout"]
    assert scene.runs == 1


async def test_retry_makes_good_what_chaos_breaks() -> None:
    scene = Scene(Chaos(3, errors=0.3), max_retries=5)

    assert set(await scene.reasons(100)) == {""}
    assert scene.chaos.injected["errors"] > 10


async def test_the_same_seed_gives_each_tool_the_same_faults_whatever_others_do() -> None:
    faults: dict[str, Any] = {"errors": 0.3, "crashes": 0.2, "hangs": 0.1}
    alone, among, another = (
        Scene(Chaos(1, **faults)),
        Scene(Chaos(1, **faults)),
        Scene(Chaos(2, **faults)),
    )
    expected = await alone.reasons(40)

    found: list[str] = []
    for _ in range(40):
        await among.reasons(1, "other")
        found += await among.reasons(1)

    assert found == expected
    assert await another.reasons(40) != expected


async def test_the_shares_are_kept() -> None:
    chaos = Chaos(5, errors=0.2, crashes=0.1, latency=0.3)
    scene = Scene(chaos)

    await scene.reasons(1000)

    shares = {kind: count / 1000 for kind, count in chaos.injected.items()}
    assert shares == pytest.approx({"errors": 0.2, "crashes": 0.1, "latency": 0.3}, abs=0.05)


async def test_only_the_tools_that_are_named_are_broken() -> None:
    scene = Scene(Chaos(errors=1, tools=["oth*"]))

    assert await scene.reasons(1) == [""]
    assert await scene.reasons(1, "other") == ["tool_failed"]


class Store:
    """Something that keeps a number."""

    kind = "memory"

    def __init__(self) -> None:
        self.number = 0

    def add(self, more: int) -> int:
        self.number += more
        return self.number

    async def read(self) -> int:
        return self.number


async def test_a_store_fails_while_it_is_down_and_by_chance() -> None:
    chaos, store = Chaos(), Store()
    flaky = chaos.store(store)
    assert (flaky.add(2), await flaky.read(), flaky.kind) == (2, 2, "memory")

    chaos.store_is_down = True
    with pytest.raises(ConnectionError, match="store is down"):
        flaky.add(1)
    with pytest.raises(ConnectionError):
        await flaky.read()
    chaos.store_is_down = False

    assert store.number == 2
    assert chaos.injected["store"] == 2
    often = Chaos(1, store_outages=0.5).store(store)
    failed = 0
    for _ in range(200):
        try:
            often.add(1)
        except ConnectionError:
            failed += 1
    assert 70 < failed < 130


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"errors": 2}, "errors: must be a share from 0 to 1 (got 2)"),
        ({"store_outages": -1}, "store_outages: must be a share from 0 to 1 (got -1)"),
        (
            {"errors": 0.6, "hangs": 0.6},
            "errors: errors, crashes, hangs, latency are more than 1 together",
        ),
        ({"latency_s": (2, 1)}, "must be two numbers of seconds (got 2, 1)"),
    ],
)
def test_shares_that_cannot_be_are_refused(values: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        Chaos(**values)

    assert str(caught.value) == said
