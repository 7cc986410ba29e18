"""Pairs of layers whose order matters: each test says what would go wrong the other way round."""

from __future__ import annotations

import asyncio
from typing import Any

from seawall import (
    AdaptiveLimitPolicy,
    Annotations,
    BreakerPolicy,
    CachePolicy,
    FallbackPolicy,
    HedgePolicy,
    Pipeline,
    Policies,
    RetryBudgetPolicy,
    RunPolicy,
    Session,
    Tool,
)
from seawall.testing import FakeClock, FixedChance, scripted

READING = Annotations.for_reading()
NUMBER = {"type": "object", "properties": {"n": {"type": "integer"}}}


class Scene:
    """A tool `t` whose runs go by a script of (seconds, answer), and its pipeline."""

    def __init__(self, *script: tuple[float, Any], **policy: Any) -> None:
        self.clock = FakeClock()
        self.script = script or ((0, "done"),)
        self.runs: list[float] = []
        self.running = self.most = 0
        exclusive = policy.pop("exclusive", None)
        tool = Tool("t", "", NUMBER, self.run, annotations=READING, exclusive=exclusive)
        self.backup = scripted("backup", name="backup", annotations=READING)
        self.pipeline = Pipeline(
            [tool, self.backup],
            policies=Policies(RunPolicy(), tools={"t": RunPolicy(**policy)}),
            clock=self.clock,
            chance=FixedChance(),
        )

    async def run(self, arguments: Any, context: Any) -> Any:
        seconds, answer = self.script[min(len(self.runs), len(self.script) - 1)]
        self.runs.append(self.clock.now())
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            await self.clock.sleep(seconds)
        finally:
            self.running -= 1
        if isinstance(answer, BaseException):
            raise answer
        return answer

    async def call(self, arguments: Any = None, **fields: Any) -> str:
        """The answer, or the reason of the failure."""
        result = await self.clock.run(self.pipeline.call("t", arguments, **fields))
        return result.text.split("\n")[0] if result.failure is None else result.failure.reason

    def start(self, arguments: Any = None, **fields: Any) -> asyncio.Future[Any]:
        return asyncio.ensure_future(self.pipeline.call("t", arguments, **fields))


def down(times: int = 1) -> tuple[tuple[float, Any], ...]:
    return ((0, ConnectionError("down")),) * times


TO_BACKUP = FallbackPolicy(tool="backup")


async def test_check_outside_of_fallback_so_a_models_mistake_is_told_and_not_answered() -> None:
    scene = Scene(fallback=TO_BACKUP)

    assert await scene.call({"n": "many"}) == "argument_type"


async def test_gates_outside_of_cache_so_what_was_denied_is_not_given_from_before() -> None:
    scene = Scene(cache=CachePolicy(scope="all"))
    denied = Session("s")
    denied.permissions.deny("t")
    assert await scene.call() == "done"

    assert await scene.call(session=denied) == "approval_denied"


async def test_check_outside_of_cache_so_arguments_that_mean_the_same_are_the_same() -> None:
    scene = Scene(cache=CachePolicy())

    for arguments in ({"n": 1}, '{"n": "1"}', {"n": 1.0}):
        assert await scene.call(arguments) == "done"

    assert len(scene.runs) == 1


async def test_fallback_outside_of_cache_so_a_stopgap_is_never_kept() -> None:
    scene = Scene(*down(), (0, "own"), fallback=TO_BACKUP, cache=CachePolicy())

    assert [await scene.call() for _ in range(3)] == ["backup", "own", "own"]


async def test_fallback_outside_of_rate_so_it_answers_for_a_limit_that_is_used_up() -> None:
    scene = Scene(rate="1/hour", fallback=TO_BACKUP)

    assert [await scene.call() for _ in range(2)] == ["done", "backup"]


async def test_fallback_outside_of_retry_so_it_waits_for_all_attempts() -> None:
    scene = Scene(*down(), (0, "own"), max_retries=1, base_delay_s=1, fallback=TO_BACKUP)

    assert await scene.call() == "own"


async def test_fallback_outside_of_breaker_so_it_answers_for_an_open_circuit() -> None:
    scene = Scene(*down(), breaker=BreakerPolicy(threshold=1), fallback=TO_BACKUP)

    assert [await scene.call() for _ in range(3)] == ["backup"] * 3
    assert len(scene.runs) == 1


async def test_cache_outside_of_rate_so_an_answer_given_again_costs_no_token() -> None:
    scene = Scene(rate="1/hour", cache=CachePolicy())

    assert [await scene.call({"n": 1}) for _ in range(3)] == ["done"] * 3
    assert await scene.call({"n": 2}) == "rate_limited"


async def test_cache_outside_of_bulkhead_so_an_answer_given_again_needs_no_place() -> None:
    scene = Scene((0, "done"), (50, "slow"), max_concurrency=1, cache=CachePolicy())
    await scene.call({"n": 1})
    busy = scene.start({"n": 2})
    await scene.clock.settle()

    assert await scene.call({"n": 1}) == "done"
    assert scene.clock.now() == 0
    await scene.clock.run(busy)


async def test_cache_outside_of_retry_so_who_waits_sees_what_all_attempts_came_to() -> None:
    scene = Scene(*down(), (0, "done"), max_retries=1, base_delay_s=5, cache=CachePolicy())

    results = await scene.clock.run(asyncio.gather(scene.start(), scene.start()))

    assert [(r.text, r.attempts) for r in results] == [("done", 2), ("done", 0)]


async def test_cache_outside_of_breaker_so_known_answers_are_given_while_it_is_open() -> None:
    scene = Scene((0, "done"), *down(), breaker=BreakerPolicy(threshold=1), cache=CachePolicy())
    await scene.call({"n": 1})
    await scene.call({"n": 2})

    assert await scene.call({"n": 1}) == "done"
    assert await scene.call({"n": 2}) == "circuit_open"


async def test_cache_outside_of_hedge_so_two_attempts_are_one_answer() -> None:
    scene = Scene((30, "slow"), (1, "fast"), hedge=HedgePolicy(delay_s=1), cache=CachePolicy())

    assert [await scene.call() for _ in range(2)] == ["fast", "fast"]
    assert len(scene.runs) == 2


async def test_rate_outside_of_bulkhead_so_a_full_house_gives_the_token_back() -> None:
    scene = Scene((50, "slow"), rate="9/hour", max_concurrency=1)
    calls = [scene.start() for _ in range(6)]
    await scene.clock.settle()
    full = calls[-1].result()

    assert full.failure.reason == "overloaded"
    assert scene.pipeline.states.of_tool("t").find("tokens_left")() == 4  # 9 but for 5 calls
    await scene.clock.run(asyncio.gather(*calls))


async def test_rate_outside_of_retry_so_a_call_costs_one_token_however_often_it_is_tried() -> None:
    scene = Scene(*down(3), (0, "done"), rate="2/hour", max_retries=3, base_delay_s=0.001)

    assert [await scene.call() for _ in range(3)] == ["done", "done", "rate_limited"]


async def test_rate_outside_of_breaker_so_an_open_circuit_burns_no_tokens_and_no_retries() -> None:
    scene = Scene(
        *down(),
        rate="2/hour",
        max_retries=3,
        base_delay_s=0.001,
        breaker=BreakerPolicy(threshold=1),
    )

    assert [await scene.call() for _ in range(9)] == ["tool_failed"] + ["circuit_open"] * 8
    assert len(scene.runs) == 1


async def test_a_refusal_of_an_outer_layer_does_not_count_in_the_breaker() -> None:
    scene = Scene(rate="1/hour", max_concurrency=1, breaker=BreakerPolicy(threshold=1))
    denied = Session("s")
    denied.permissions.deny("t")
    for arguments, session in ((None, denied), ({"n": "x"}, None), (None, None), (None, None)):
        await scene.call(arguments, session=session)

    counts = scene.pipeline.breakers.circuit("t").counts
    assert (counts.failures, counts.refused, counts.opened) == (0, 0, 0)


async def test_bulkhead_outside_of_retry_so_a_call_keeps_its_place_while_it_waits() -> None:
    scene = Scene(*down(), (5, "done"), max_concurrency=1, delays_s=(10,))
    first, second = scene.start(), scene.start()
    await scene.clock.advance(9)

    assert len(scene.runs) == 1
    await scene.clock.run(asyncio.gather(first, second))
    assert scene.most == 1


async def test_adaptive_limit_outside_of_exclusive_so_a_wait_for_a_key_is_no_latency() -> None:
    scene = Scene((5, "done"), exclusive="k", adaptive_limit=AdaptiveLimitPolicy(initial=4))

    await scene.clock.run(asyncio.gather(*(scene.start() for _ in range(4))))

    vegas = scene.pipeline.states.of_tool("t").find("adaptive_limit").vegas
    assert scene.clock.now() == 20
    assert vegas.base_s == 5


async def test_exclusive_outside_of_retry_so_nobody_comes_between_two_attempts() -> None:
    scene = Scene(*down(), (5, "mine"), (5, "yours"), exclusive="k", delays_s=(10,))
    first = scene.start()
    await scene.clock.advance(1)

    second = scene.start()
    await scene.clock.run(asyncio.gather(first, second))

    assert (first.result().text, second.result().text) == ("mine", "yours")


async def test_exclusive_outside_of_hedge_so_attempts_do_not_wait_for_each_other() -> None:
    scene = Scene((30, "slow"), (1, "fast"), exclusive="k", hedge=HedgePolicy(delay_s=2))

    assert await scene.call() == "fast"
    assert scene.clock.now() == 3


async def test_retry_outside_of_hedge_so_a_race_that_failed_is_waited_out_before_another() -> None:
    scene = Scene(
        *((3, ConnectionError("a")), (3, ConnectionError("b")), (0, "done")),
        hedge=HedgePolicy(delay_s=1),
        delays_s=(10,),
        retry_budget=RetryBudgetPolicy(min_retries=9),
    )

    assert await scene.call() == "done"
    assert scene.runs == [0, 1, 14]


async def test_retry_outside_of_breaker_so_it_stops_when_the_circuit_opens_on_the_way() -> None:
    scene = Scene(*down(9), max_retries=8, base_delay_s=0.1, breaker=BreakerPolicy(threshold=3))

    assert await scene.call() == "tool_failed"
    assert len(scene.runs) == 3


async def test_breaker_outside_of_retry_if_the_policy_says_so_and_a_call_counts_once() -> None:
    scene = Scene(
        *down(9),
        max_retries=2,
        base_delay_s=0.1,
        breaker=BreakerPolicy(threshold=2, outside_retry=True),
    )

    assert [await scene.call() for _ in range(3)] == ["tool_failed", "tool_failed", "circuit_open"]
    assert len(scene.runs) == 6


async def test_hedge_outside_of_breaker_so_a_single_probe_stays_a_single_probe() -> None:
    scene = Scene(
        *down(), (9, "slow"), hedge=HedgePolicy(delay_s=1), breaker=BreakerPolicy(threshold=1)
    )
    await scene.call()
    await scene.clock.advance(15)

    assert await scene.call() == "slow"
    assert len(scene.runs) == 2
    assert scene.pipeline.breakers.state("t") == "closed"


async def test_hedge_outside_of_breaker_so_a_loser_hands_its_permit_back_uncounted() -> None:
    scene = Scene(
        (30, "slow"),
        (1, "fast"),
        hedge=HedgePolicy(delay_s=1),
        breaker=BreakerPolicy(failure_rate=0.1, min_calls=1),
    )
    assert await scene.call() == "fast"
    await scene.clock.settle()

    counts = scene.pipeline.breakers.circuit("t").counts
    assert (counts.successes, counts.failures, counts.given_back) == (1, 0, 1)


async def test_breaker_outside_of_timeout_so_an_attempt_that_hangs_counts() -> None:
    scene = Scene((99, "late"), timeout_s=1, breaker=BreakerPolicy(threshold=1))

    assert [await scene.call() for _ in range(2)] == ["attempt_timeout", "circuit_open"]


async def test_retry_outside_of_timeout_so_each_attempt_has_all_of_its_time() -> None:
    scene = Scene((4, ConnectionError("x")), (4, "done"), timeout_s=5, delays_s=(1,))

    assert await scene.call() == "done"
    assert scene.clock.now() == 9


async def test_adaptive_limit_outside_of_retry_so_a_call_that_waits_keeps_its_place() -> None:
    scene = Scene(
        *down(), (1, "done"), delays_s=(10,), adaptive_limit=AdaptiveLimitPolicy(initial=1)
    )
    first, second = scene.start(), scene.start()
    await scene.clock.advance(5)

    assert len(scene.runs) == 1
    await scene.clock.run(asyncio.gather(first, second))
    assert scene.most == 1
