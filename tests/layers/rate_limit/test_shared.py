"""The limiter over a store that can be gone: what a call costs there, and what happens without."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from seawall.contract.errors import ConfigurationError
from seawall.contract.failure import FailureCode
from seawall.contract.policy import RunPolicy
from seawall.layers.rate_limit import RateLimit
from seawall.layers.rate_limit.bucket import MemoryBuckets, TokenBucket
from seawall.layers.rate_limit.shared import BucketStore, SharedRateLimit
from seawall.layers.rate_limit.strategies import parse_rate
from seawall.pipeline.layer import compose
from seawall.pipeline.session import Session
from seawall.testing import FakeClock, LayerBench, scripted

if TYPE_CHECKING:
    from seawall.contract.result import ToolResult
    from seawall.contract.taken import Taken


class Store:
    """Exact buckets, that can be out of reach."""

    def __init__(self, clock: FakeClock, replicas: int = 1) -> None:
        self.replicas = replicas
        self.is_gone = False
        self.keys: set[str] = set()
        self.given_back = 0
        self.later = 0
        self._buckets = TokenBucket(MemoryBuckets(), clock.now)

    async def take(self, key: str, capacity: int, period_s: int, cost: int) -> Taken | None:
        await asyncio.sleep(0)
        if self.is_gone:
            return None
        self.keys.add(key)
        item = parse_rate(f"{capacity} per {period_s} seconds")
        return self._buckets.take(item, key, cost=cost)

    async def give_back(self, key: str, capacity: int, period_s: int, cost: int) -> None:
        self.given_back += cost
        item = parse_rate(f"{capacity} per {period_s} seconds")
        self._buckets.give_back(item, key, cost=cost)

    def give_back_later(self, key: str, capacity: int, period_s: int, cost: int) -> None:
        self.later += cost


class Trial:
    """The shared limiter around a tool."""

    def __init__(
        self, *answers: Any, replicas: int = 1, store: Store | None = None, **policy: Any
    ) -> None:
        self.clock = FakeClock()
        self.store = store or Store(self.clock, replicas)
        self.bench = LayerBench(
            RunPolicy(**{"rate": "4/minute", **policy}),
            tool=scripted(*(answers or ("well",)), clock=self.clock, name="t"),
            clock=self.clock,
            parts={BucketStore: self.store},
        )
        layer = RateLimit.for_tool(self.bench.context)
        assert isinstance(layer, SharedRateLimit)
        self.handler = compose([layer], self.bench.execute())

    async def call(self, session: Session | None = None) -> ToolResult:
        fields: dict[str, Any] = {} if session is None else {"session": session}
        return await self.bench.call(self.handler, **fields)

    async def granted(self, times: int) -> int:
        return sum([not (await self.call()).is_error for _ in range(times)])

    @property
    def left(self) -> float:
        level: float = self.bench.context.slots.find("tokens_left")()
        return level


async def test_a_rate_is_counted_in_the_store() -> None:
    trial = Trial()

    assert await trial.granted(6) == 4
    failure = (await trial.call()).failure
    assert failure is not None
    assert (failure.reason, failure.retry_after_s) == ("rate_limited", 15)
    assert trial.bench.events == []


async def test_nothing_is_asked_of_a_store_for_a_tool_without_a_rate() -> None:
    bench = LayerBench(RunPolicy(), parts={BucketStore: Store(FakeClock())})

    assert RateLimit.for_tool(bench.context) is None


async def test_without_the_store_a_process_goes_on_with_its_part_of_what_was_left() -> None:
    trial = Trial(rate="8/minute", replicas=2)
    await trial.granted(4)
    trial.store.is_gone = True

    assert await trial.granted(8) == 2
    assert trial.bench.events == [("rate_limit", "store_local")] * 8


async def test_a_store_that_said_nothing_is_left_leaves_nothing_without_it() -> None:
    trial = Trial()
    await trial.granted(5)
    trial.store.is_gone = True

    assert await trial.granted(5) == 0


async def test_without_the_store_a_part_fills_as_fast_as_its_share() -> None:
    trial = Trial(rate="8/minute", replicas=2)
    await trial.granted(9)
    trial.store.is_gone = True
    await trial.granted(1)

    failure = (await trial.call()).failure
    assert failure is not None
    assert failure.retry_after_s == 15
    await trial.clock.advance(60)
    assert await trial.granted(8) == 4


async def test_without_a_word_from_the_store_a_process_begins_with_its_whole_part() -> None:
    trial = Trial(rate="8/minute", replicas=2)
    trial.store.is_gone = True

    assert await trial.granted(8) == 4


async def test_a_part_is_never_too_small_for_one_call_but_fills_no_faster() -> None:
    trial = Trial(rate="6/minute", replicas=3, cost=3)
    trial.store.is_gone = True

    assert await trial.granted(2) == 1
    failure = (await trial.call()).failure
    assert failure is not None
    assert failure.retry_after_s == 90


async def test_a_store_that_comes_and_goes_gives_no_new_part_each_time() -> None:
    trial = Trial(rate="8/minute", replicas=2)
    granted = 0
    for _ in range(10):
        trial.store.is_gone = not trial.store.is_gone
        granted += await trial.granted(2)

    assert granted <= 8 + 4


async def test_the_store_counts_again_when_it_is_back() -> None:
    trial = Trial()
    trial.store.is_gone = True
    await trial.granted(4)
    trial.store.is_gone = False

    assert await trial.granted(5) == 4


async def test_a_policy_that_fails_closed_lets_nothing_through() -> None:
    trial = Trial(on_store_down="fail-closed")
    trial.store.is_gone = True

    failure = (await trial.call()).failure

    assert failure is not None
    assert (failure.code, failure.reason) == (
        FailureCode.RATE_LIMITED,
        "limiter_unavailable",
    )
    assert failure.layer == "rate_limit"
    assert failure.retry_after_s == 1
    assert failure.may_have_run is False
    assert trial.bench.events == [("rate_limit", "store_closed")]


@pytest.mark.parametrize(
    ("policy", "verdict"),
    [
        ({}, "rate_limit:would_refuse:rate_limited"),
        ({"on_store_down": "fail-closed"}, "rate_limit:would_refuse:limiter_unavailable"),
    ],
)
async def test_in_shadow_mode_nothing_is_refused_without_the_store_either(
    policy: dict[str, Any], verdict: str
) -> None:
    trial = Trial(rate="1/day", rate_mode="shadow", **policy)
    trial.store.is_gone = True
    await trial.call()

    call = trial.bench.invocation()
    result = await trial.clock.run(trial.handler(call))

    assert not result.is_error
    assert verdict in call.verdicts


@pytest.mark.parametrize(("is_gone", "events"), [(False, 0), (True, 2)])
async def test_what_was_taken_is_given_back_where_it_was_taken_if_nothing_ran(
    is_gone: bool, events: int
) -> None:
    trial = Trial(rate="1/day")
    trial.store.is_gone = is_gone

    async def refusing(call: Any) -> ToolResult:
        refused: ToolResult = call.refuse(FailureCode.PERMISSION_DENIED, "no")
        return refused

    handler = compose([RateLimit.for_tool(trial.bench.context)], refusing)  # type: ignore[list-item]  # it has a rate
    await trial.bench.call(handler)

    assert (await trial.call()).text == "well"
    assert trial.store.given_back == (0 if is_gone else 1)
    assert len(trial.bench.events) == events


async def test_a_call_cancelled_before_it_ran_gives_back_without_waiting() -> None:
    trial = Trial()
    stuck = asyncio.Event()

    async def waiting(call: Any) -> ToolResult:
        await stuck.wait()
        raise AssertionError("nobody sets it")

    handler = compose([RateLimit.for_tool(trial.bench.context)], waiting)  # type: ignore[list-item]  # it has a rate
    task = asyncio.ensure_future(handler(trial.bench.invocation()))
    await trial.bench.clock.settle()
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert trial.store.later == 1


async def test_keys_in_the_store_show_no_caller_and_are_those_of_all_processes() -> None:
    store = Store(FakeClock())
    sessions = [Session("s1", caller="ada@example.com"), Session("s2", caller="x" * 10_000)]
    for _ in range(2):
        trial = Trial(rate_key=("tool", "caller"), store=store)
        for session in sessions:
            await trial.call(session)

    assert len(store.keys) == 2
    assert all("ada" not in key and len(key) < 100 for key in store.keys)


async def test_the_gauge_shows_what_the_store_last_said_and_fills_since() -> None:
    trial = Trial(replicas=2)
    await trial.granted(3)
    assert trial.left == 1

    await trial.clock.advance(15)
    assert trial.left == 2

    trial.store.is_gone = True
    await trial.granted(1)
    assert trial.left == 0


def test_a_window_is_not_shared_and_says_so() -> None:
    with pytest.raises(ConfigurationError, match="one process only"):
        Trial(rate_strategy="moving-window")


async def test_without_the_store_a_key_that_shares_a_budget_is_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(MemoryBuckets.__init__, "__defaults__", (1,))
    trial = Trial(rate_key=("session",))
    trial.store.is_gone = True

    for name in ("a", "b"):
        await trial.call(Session(name))

    assert trial.bench.events == [
        *[("rate_limit", "store_local")] * 2,
        ("rate_limit", "keys_full"),
    ]
