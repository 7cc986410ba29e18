"""Circuits of several processes in step: each has its own breaker, all have one store."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from seawall.contract.circuit_news import CircuitNews, CircuitSeen
from seawall.contract.policy import BreakerPolicy, RunPolicy
from seawall.layers.breaker import Breaker
from seawall.layers.breaker.fleet import MAX_NEWS, POLL_S, CircuitStore
from seawall.layers.breaker.shared import SharedBreaker, close_fleet, start_fleet
from seawall.pipeline.layer import compose
from seawall.testing import FakeClock, FixedChance, LayerBench, scripted

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from seawall.contract.result import ToolResult


class Store:
    """What the script in Redis does, in memory; it can be out of reach, and it counts askings."""

    def __init__(self, clock: FakeClock) -> None:
        self._clock = clock
        self.is_gone = False
        self.answers_after_s = 0.0
        self.is_too_late = False
        self.asked = 0
        self.held: dict[str, dict[str, Any]] = {}
        self._changes = 0

    def _set(self, name: str, *, is_open: bool, news: CircuitNews | None = None) -> None:
        self._changes += 1
        self.held[name] = {
            "changed": str(self._changes),
            "is_open": is_open,
            "due": self._clock.now() + (news.left_s if news else 0),
            "cooldown_s": news.cooldown_s if news else 0,
            "kind": news.kind if news else "",
            "holder": "",
            "is_held": False,
        }

    async def ask(self, name: str, process: str, cooldown_s: float) -> float | None:
        await asyncio.sleep(0)
        self.asked += 1
        if self.is_gone:
            return None
        if name not in self.held:
            self._set(name, is_open=True)
        one = self.held[name]
        if not one["is_open"]:
            return -1
        if one["is_held"]:
            return 0.5
        if one["due"] > self._clock.now():
            return float(one["due"] - self._clock.now())
        if one["holder"] not in ("", process):
            return 0.5
        one["holder"] = process
        if self.answers_after_s:
            await self._clock.sleep(self.answers_after_s)
        return None if self.is_too_late else 0

    async def tell(self, news: CircuitNews) -> bool:
        await asyncio.sleep(0)
        if self.is_gone:
            return False
        one = self.held.get(news.name)
        if news.what == "held":
            if one is None or not one["is_held"]:
                self._set(news.name, is_open=True, news=news)
                self.held[news.name]["is_held"] = True
        elif news.what == "closed" and one is None:
            self._set(news.name, is_open=False)
        elif news.what == "tripped":
            if one is None or not one["is_open"]:
                self._set(news.name, is_open=True, news=news)
        elif one and one["is_open"] and (news.what == "closed" or one["holder"] == news.process):
            if news.what == "failed":
                self._set(news.name, is_open=True, news=news)
            elif news.what == "released":
                one["holder"] = ""
            else:
                self._set(news.name, is_open=False)
        return True

    async def read(self) -> Mapping[str, CircuitSeen] | None:
        await asyncio.sleep(0)
        if self.is_gone:
            return None
        return {
            name: CircuitSeen(
                one["changed"],
                one["is_open"],
                max(one["due"] - self._clock.now(), 0),
                one["cooldown_s"],
                one["kind"],
                one["is_held"],
            )
            for name, one in self.held.items()
        }


class Chance(FixedChance):
    """Each process draws another name."""

    drawn = 0

    def token(self, n: int) -> str:
        Chance.drawn += 1
        return f"process {Chance.drawn}"


class Process:
    """One breaker around a tool that does as it is told."""

    def __init__(self, clock: FakeClock, store: Store, **policy: Any) -> None:
        self.answer: Any = "well"
        self.ran = 0
        settings = {"threshold": 2, "cooldown_s": 10, "max_cooldown_s": 40, **policy}
        self.bench = LayerBench(
            RunPolicy(breaker=BreakerPolicy(**settings)),
            tool=scripted("well", clock=clock, name="t"),
            clock=clock,
            chance=Chance(),
            parts={CircuitStore: store},
        )
        layer = Breaker.for_tool(self.bench.context)
        assert isinstance(layer, SharedBreaker)
        self.handler = compose([layer], self._run)

    async def _run(self, call: Any) -> ToolResult:
        self.ran += 1
        answer = self.answer
        tool = scripted(answer, clock=self.bench.clock, name="t")
        return await self.bench.execute(tool)(call)

    async def call(self, answer: Any = "well") -> str:
        self.answer = answer
        result = await self.bench.call(self.handler)
        return result.failure.code.name if result.failure else "ok"

    def begin(self, answer: Any) -> asyncio.Future[ToolResult]:
        """Begin a call that ends when the clock is moved."""
        self.answer = answer
        return asyncio.ensure_future(self.handler(self.bench.invocation()))

    async def trip(self) -> None:
        for _ in range(2):
            await self.call(OSError("down"))

    @property
    def state(self) -> str:
        circuit = self.bench.context.slots.find("circuit").circuit
        return "closed" if circuit is None else str(circuit.state)

    @property
    def slot(self) -> Any:
        return self.bench.context.slots.find("circuit")

    @property
    def circuit(self) -> Any:
        return self.bench.context.slots.find("circuit").made()


class World:
    """Three processes and their store."""

    def __init__(self, **policy: Any) -> None:
        self.clock = FakeClock()
        self.store = Store(self.clock)
        self.all = [Process(self.clock, self.store, **policy) for _ in range(3)]

    async def begin(self) -> None:
        for process in self.all:
            await process.call()
        await self.clock.advance(0)

    async def later(self, seconds: float) -> None:
        await self.clock.advance(seconds)
        await self.clock.settle()

    @property
    def states(self) -> list[str]:
        return [process.state for process in self.all]

    async def end(self) -> None:
        for process in self.all:
            await close_fleet(process.bench.states)


@pytest.fixture
async def world() -> AsyncIterator[World]:
    found = World()
    await found.begin()
    yield found
    await found.end()


async def test_a_circuit_that_opens_in_one_process_opens_in_all_within_a_second(
    world: World,
) -> None:
    one, *others = world.all
    await one.trip()

    await world.later(POLL_S)

    assert world.states == ["open"] * 3
    for process in others:
        ran = process.ran
        assert await process.call() == "CIRCUIT_OPEN"
        assert process.ran == ran
    assert POLL_S < 1


async def test_nothing_is_asked_while_a_circuit_is_closed_or_cools_down(world: World) -> None:
    one, two, _ = world.all
    for _ in range(20):
        await one.call()
    await one.trip()
    await world.later(POLL_S)
    for _ in range(20):
        await two.call()

    assert world.store.asked == 0


async def test_one_process_probes_for_all(world: World) -> None:
    await world.all[0].trip()
    await world.later(POLL_S)
    await world.later(10)
    ran = sum(process.ran for process in world.all)

    tasks = [process.begin(("sleep", 3, "well")) for process in world.all * 5]
    await world.clock.settle()
    assert sum(process.ran for process in world.all) - ran == 1

    await world.later(3)
    failures = [(await task).failure for task in tasks]
    assert [failure and failure.code for failure in failures].count(None) == 1
    assert {failure.reason for failure in failures if failure} == {"circuit_open"}


async def test_a_call_that_goes_while_the_store_is_asked_keeps_no_other_process_from_probing(
    world: World,
) -> None:
    await world.all[0].trip()
    await world.later(POLL_S)
    await world.later(10)
    world.store.answers_after_s = 1
    asking = world.all[0].begin("well")
    await world.clock.settle()
    assert world.store.held["tool/t"]["holder"]

    asking.cancel()
    await asyncio.wait([asking])
    await world.clock.settle()
    world.store.answers_after_s = 0

    assert await world.all[1].call() == "ok"


async def test_leave_that_came_too_late_is_handed_back(world: World) -> None:
    await world.all[0].trip()
    await world.later(POLL_S)
    await world.later(10)
    world.store.is_too_late = True
    probing = world.all[0].begin(("sleep", 3, "well"))
    await world.clock.settle()
    assert world.store.held["tool/t"]["holder"]

    probing.cancel()
    await asyncio.wait([probing])
    await world.clock.settle()
    world.store.is_too_late = False

    assert await world.all[1].call() == "ok"


async def test_a_probe_that_succeeds_closes_the_circuit_of_all(world: World) -> None:
    await world.all[0].trip()
    await world.later(POLL_S)
    await world.later(10)

    assert await world.all[1].call() == "ok"
    await world.later(POLL_S)

    assert world.states == ["closed"] * 3
    assert [await process.call() for process in world.all] == ["ok"] * 3


async def test_a_probe_that_fails_keeps_the_circuit_of_all_open_for_twice_as_long(
    world: World,
) -> None:
    await world.all[0].trip()
    await world.later(POLL_S)
    await world.later(10)
    await world.all[1].call(OSError("still down"))
    await world.later(POLL_S)

    assert world.states == ["open"] * 3
    assert {process.circuit.cooldown_s for process in world.all} == {20}
    assert world.all[2].circuit.seconds_to_probe() == pytest.approx(20, abs=1)
    await world.later(20)
    assert await world.all[2].call() == "ok"


async def test_a_probe_that_came_to_nothing_is_handed_back_for_others_to_make(
    world: World,
) -> None:
    await world.all[0].trip()
    await world.later(POLL_S)
    await world.later(10)
    stuck = world.all[0].begin(("sleep", 60, "well"))
    await world.clock.settle()
    stuck.cancel()
    await asyncio.gather(stuck, return_exceptions=True)
    await world.clock.settle()

    assert await world.all[1].call() == "ok"


async def test_who_asks_while_another_probes_is_told_to_wait_and_asks_no_more(
    world: World,
) -> None:
    await world.all[0].trip()
    await world.later(POLL_S)
    await world.later(10)
    probing = world.all[0].begin(("sleep", 5, "well"))
    await world.clock.settle()
    asked = world.store.asked

    outcomes = [await world.all[1].call() for _ in range(5)]

    assert outcomes == ["CIRCUIT_OPEN"] * 5
    assert world.store.asked == asked + 1
    await world.later(5)
    assert not (await probing).is_error


async def test_without_the_store_each_process_goes_by_its_own_circuit(world: World) -> None:
    world.store.is_gone = True
    await world.all[0].trip()
    await world.later(2 * POLL_S)

    assert world.states == ["open", "closed", "closed"]
    await world.later(10)
    assert await world.all[0].call() == "ok"
    assert world.states == ["closed"] * 3
    assert ("breaker", "store_local") in world.all[0].bench.events


async def test_what_opened_without_the_store_is_told_when_it_is_back(world: World) -> None:
    world.store.is_gone = True
    await world.all[0].trip()
    await world.later(2)
    world.store.is_gone = False
    await world.later(POLL_S)
    await world.later(POLL_S)
    await world.later(POLL_S)

    assert world.states == ["open"] * 3
    assert world.all[1].circuit.seconds_to_probe() < 9


async def test_a_store_that_lost_everything_keeps_nobody_from_probing(world: World) -> None:
    await world.all[0].trip()
    await world.later(POLL_S)
    world.store.held.clear()
    await world.later(10)

    assert await world.all[0].call() == "ok"
    await world.later(POLL_S)
    assert world.states == ["closed"] * 3


async def test_a_circuit_opened_by_hand_is_open_in_all_until_one_closes_it_by_hand(
    world: World,
) -> None:
    world.all[0].slot.hold_open()
    await world.later(POLL_S)
    assert world.states == ["open"] * 3

    await world.later(100)  # whatever its cooldown is
    assert [await one.call() for one in world.all] == ["CIRCUIT_OPEN"] * 3
    assert world.states == ["open"] * 3

    world.all[2].circuit.force_close()
    await world.later(POLL_S)
    assert world.states == ["closed"] * 3
    await world.later(10 * POLL_S)
    assert [await one.call() for one in world.all] == ["ok"] * 3


async def test_what_opened_by_itself_may_be_held_open_then(world: World) -> None:
    await world.all[0].trip()
    await world.later(POLL_S)
    world.all[1].slot.hold_open()
    await world.later(POLL_S)
    await world.later(20)

    assert [await one.call() for one in world.all] == ["CIRCUIT_OPEN"] * 3


async def test_a_process_knows_what_is_held_open_before_its_first_call(world: World) -> None:
    world.all[0].slot.hold_open()
    await world.later(POLL_S)

    late = Process(world.clock, world.store)
    await start_fleet(late.bench.states)
    assert await late.call() == "CIRCUIT_OPEN"
    await close_fleet(late.bench.states)


async def test_what_is_held_open_is_told_again_to_a_store_that_was_gone_or_has_forgotten(
    world: World,
) -> None:
    world.store.is_gone = True
    world.all[0].slot.hold_open()
    await world.later(POLL_S)
    assert world.states == ["open", "closed", "closed"]

    world.store.is_gone = False
    await world.later(POLL_S)
    await world.later(POLL_S)
    assert world.states == ["open"] * 3

    world.store.held.clear()
    await world.later(POLL_S)
    assert world.store.held["tool/t"]["is_held"]
    assert world.states == ["open"] * 3


async def test_opened_by_hand_outside_of_the_loop_it_is_told_a_moment_later(world: World) -> None:
    await asyncio.to_thread(world.all[0].slot.hold_open)
    await world.later(POLL_S)
    await world.later(POLL_S)

    assert world.states == ["open"] * 3


async def test_a_policy_taken_anew_leaves_what_is_held_open_as_it_is(world: World) -> None:
    world.all[0].slot.hold_open()
    await world.later(POLL_S)

    layer = Breaker.for_tool(world.all[1].bench.context)
    assert isinstance(layer, SharedBreaker)
    await world.later(10 * POLL_S)

    assert world.states == ["open"] * 3


async def test_several_permits_are_those_of_the_process_that_probes() -> None:
    world = World(permits=2)
    await world.begin()
    await world.all[0].trip()
    await world.later(POLL_S)
    await world.later(10)

    assert await world.all[1].call() == "ok"
    assert await world.all[2].call() == "CIRCUIT_OPEN"
    assert await world.all[1].call() == "ok"
    await world.later(POLL_S)
    assert world.states == ["closed"] * 3
    await world.end()


async def test_a_breaker_by_rate_is_shared_too() -> None:
    world = World(failure_rate=0.5, window_calls=4, min_calls=2)
    await world.begin()
    await world.all[0].trip()
    await world.later(POLL_S)
    assert world.states == ["open"] * 3

    await world.later(10)
    assert await world.all[2].call() == "ok"
    await world.later(POLL_S)
    assert world.states == ["closed"] * 3
    await world.end()


async def test_after_the_end_nothing_runs_and_calls_go_by_their_own_circuit(world: World) -> None:
    await world.end()
    before = asyncio.all_tasks()

    await world.all[0].trip()

    assert world.all[0].state == "open"
    assert asyncio.all_tasks() == before == {asyncio.current_task()}


async def test_news_are_bounded_however_silent_the_store_is(world: World) -> None:
    one = world.all[0]
    fleet = one.bench.states.shared("breaker/fleet").find("fleet")
    for _ in range(3 * MAX_NEWS):
        fleet._tell(lambda: CircuitNews(name="tool/t", what="closed", process="p"))

    assert len(fleet._tasks) <= MAX_NEWS + 2
    await world.clock.settle()


async def test_a_circuit_learns_the_kind_of_failure_too(world: World) -> None:
    await world.all[0].trip()
    await world.later(POLL_S)

    assert world.all[1].circuit.last_error == "OSError"


async def test_a_reading_that_fails_is_not_the_last(world: World) -> None:
    read = world.store.read

    async def fails() -> Any:
        raise ValueError("of another version")

    world.store.read = fails  # type: ignore[method-assign]  # for a while
    await world.later(3 * POLL_S)
    world.store.read = read  # type: ignore[method-assign]  # as it was

    await world.all[0].trip()
    await world.later(2 * POLL_S)

    assert world.states == ["open", "open", "open"]
