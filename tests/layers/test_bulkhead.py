"""How many calls of a tool are under way at once, and what becomes of the others."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from seawall import Pipeline, Policies, Tool, ToolContext
from seawall.contract.failure import FailureCode
from seawall.contract.policy import RunPolicy
from seawall.layers.bulkhead import Bulkhead
from seawall.pipeline.layer import compose
from seawall.testing import LayerBench, scripted

if TYPE_CHECKING:
    from seawall.contract.result import ToolResult
    from seawall.pipeline.invocation import Handler, Invocation


class Works:
    """A tool whose calls take so long, behind a bulkhead."""

    def __init__(self, seconds: float = 10, **policy: Any) -> None:
        self.bench = LayerBench(RunPolicy(**policy))
        self.execute = self.bench.slow_tool(seconds)
        self.handler = self.made()
        self.tasks: list[asyncio.Task[ToolResult]] = []

    def made(self) -> Handler:
        layer = Bulkhead.for_tool(self.bench.context)
        return compose([] if layer is None else [layer], self.execute)

    async def call(self, times: int = 1, **fields: Any) -> list[Invocation]:
        calls = [self.bench.invocation(**fields) for _ in range(times)]
        self.tasks += [asyncio.ensure_future(self.handler(call)) for call in calls]
        await self.bench.clock.settle()
        return calls

    @property
    def stands(self) -> tuple[int, int]:
        room = self.bench.states.of_tool("tool").find("bulkhead")
        return room.in_flight, room.waiting

    @property
    def ends(self) -> list[str]:
        """How the calls that are over ended."""
        ended = [task.result() for task in self.tasks if task.done() and not task.cancelled()]
        return ["done" if r.failure is None else r.failure.reason for r in ended]


async def test_calls_beyond_the_bound_wait_and_run_in_their_order() -> None:
    works = Works(max_concurrency=2)
    await works.call(5)
    assert works.stands == (2, 3)

    await works.bench.clock.advance(10)
    assert (works.ends, works.stands) == (["done"] * 2, (2, 1))
    await works.bench.clock.advance(20)

    assert (works.ends, works.stands) == (["done"] * 5, (0, 0))
    assert works.bench.events == [("bulkhead", "waited")] * 3


async def test_a_call_that_finds_the_line_full_is_refused_at_once() -> None:
    works = Works(max_concurrency=2)
    await works.call(11)

    assert works.ends == ["overloaded"]
    failure = works.tasks[10].result().failure
    assert failure is not None
    assert failure.code is FailureCode.RATE_LIMITED
    assert failure.layer == "bulkhead"
    assert failure.may_have_run is False
    assert failure.message == "tool is busy: calls of it under way: 2, and 8 more wait already"
    assert "then try again" in failure.guidance


async def test_a_call_waits_no_longer_than_one_attempt_may_take() -> None:
    works = Works(max_concurrency=1, timeout_s=4)
    await works.call(2)

    await works.bench.clock.advance(4)

    assert works.ends == ["overloaded"]
    failure = works.tasks[1].result().failure
    assert failure is not None
    assert "no place within 4 s" in failure.message


async def test_the_callers_own_limit_bounds_the_wait_instead_of_the_policys() -> None:
    works = Works(max_concurrency=1, timeout_s=4)
    await works.call()
    await works.call(timeout_s=2.0)

    await works.bench.clock.advance(2)

    assert works.ends == ["overloaded"]


async def test_a_call_waits_no_longer_than_its_deadline() -> None:
    works = Works(max_concurrency=1, timeout_s=4)
    await works.call()
    await works.call(deadline=3.0)

    await works.bench.clock.advance(3)

    failure = works.tasks[1].result().failure
    assert failure is not None
    assert (failure.code, failure.reason) == (FailureCode.TIMEOUT, "deadline_exceeded")


async def test_a_call_whose_deadline_is_over_does_not_stand_in_line() -> None:
    works = Works(max_concurrency=1)
    await works.call()
    await works.call(deadline=0.0)

    assert works.ends == ["deadline_exceeded"]
    assert works.stands == (1, 0)


async def test_without_any_limit_of_time_a_call_waits_until_it_is_its_turn() -> None:
    works = Works(seconds=1_000_000, max_concurrency=1)
    await works.call(2)

    await works.bench.clock.advance(2_000_000)

    assert works.ends == ["done", "done"]


async def test_cancelled_calls_give_back_their_place_in_the_room_and_in_line() -> None:
    works = Works(max_concurrency=1)
    await works.call(3)

    works.tasks[1].cancel()
    await works.bench.clock.settle()
    assert works.stands == (1, 1)
    works.tasks[0].cancel()
    await works.bench.clock.settle()

    assert works.stands == (1, 0)
    assert [task.cancelled() for task in works.tasks[:2]] == [True, True]
    await works.bench.clock.advance(10)
    assert works.ends == ["done"]


async def test_a_defect_inside_gives_the_place_back() -> None:
    works = Works(max_concurrency=1)
    layer = Bulkhead.for_tool(works.bench.context)
    assert layer is not None

    async def broken(call: Invocation) -> ToolResult:
        raise RuntimeError("a defect")

    with pytest.raises(RuntimeError, match="a defect"):
        await layer(works.bench.invocation(), broken)

    assert works.stands == (0, 0)


@pytest.mark.parametrize(
    "policy",
    [
        RunPolicy(max_concurrency=3),
        RunPolicy(max_concurrency=3, max_concurrency_mode="shadow"),
        RunPolicy(max_concurrency=1, max_concurrency_mode="off"),
        RunPolicy(),
    ],
)
async def test_a_looser_policy_counts_at_once_for_the_calls_in_line(policy: RunPolicy) -> None:
    works = Works(max_concurrency=1)
    await works.call(3)

    works.bench.policy = policy
    works.made()
    await works.bench.clock.settle()

    assert works.stands == (3, 0)


async def test_a_tighter_policy_counts_the_calls_that_are_under_way() -> None:
    works = Works(max_concurrency=3)
    await works.call(3)
    works.bench.policy = RunPolicy(max_concurrency=1)
    works.handler = works.made()

    await works.call()

    assert works.stands == (3, 1)
    await works.bench.clock.advance(10)
    assert works.stands == (1, 0)


async def test_shadow_holds_nobody_up_and_notes_what_would_have_happened() -> None:
    works = Works(max_concurrency=1, max_concurrency_mode="shadow")

    calls = await works.call(6)

    assert works.stands == (6, 0)
    assert [call.verdicts for call in calls] == [
        (),
        *[("bulkhead:would_wait",)] * 4,
        ("bulkhead:would_refuse:overloaded",),
    ]
    assert works.bench.events == [("bulkhead", "shadow_refused")]
    await works.bench.clock.advance(10)
    assert works.ends == ["done"] * 6


def test_there_is_no_bulkhead_without_a_bound() -> None:
    assert Bulkhead.for_tool(LayerBench().context) is None
    off = RunPolicy(max_concurrency=1, max_concurrency_mode="off")
    assert Bulkhead.for_tool(LayerBench(off).context) is None


async def test_tools_do_not_take_each_others_places() -> None:
    works = Works(max_concurrency=1)
    await works.call()
    works.bench.tool = scripted("done", name="other")
    other = Bulkhead.for_tool(works.bench.context)
    assert other is not None

    result = await works.bench.call(compose([other], works.bench.execute()))

    assert result.text == "done"


# --- tools that call themselves


def calling_itself(limit: int) -> Pipeline:
    async def again(arguments: dict[str, Any], context: ToolContext) -> str:
        await asyncio.sleep(0)
        if not arguments["n"]:
            return "end"
        return (await context.call_tool("again", {"n": arguments["n"] - 1})).render()

    tool = Tool(name="again", description="", input_schema={}, executor=again)
    return Pipeline([tool], policies=Policies(default=RunPolicy(max_concurrency=limit)))


@pytest.mark.parametrize(("limit", "depth", "fits"), [(3, 2, True), (3, 3, False), (1, 1, False)])
async def test_a_tool_whose_places_all_wait_for_it_is_refused_at_once(
    limit: int, depth: int, *, fits: bool
) -> None:
    result = await calling_itself(limit).call("again", {"n": depth})

    assert (result.text == "end") is fits
    assert fits or "all of them wait for calls like this one" in result.text


async def test_of_chains_that_would_wait_for_each_other_some_go_on() -> None:
    pipeline = calling_itself(2)

    results = await asyncio.gather(*(pipeline.call("again", {"n": 1}) for _ in range(6)))

    assert any(result.text == "end" for result in results)
    assert all(result.text for result in results)
