"""What goes wrong in other libraries when things fail, and does not here; one test a fault."""

from __future__ import annotations

import asyncio
import threading
import time
import tracemalloc
from typing import Any

import pytest
from tests.waiting import until

from seawall import (
    Annotations,
    BreakerPolicy,
    ConfigurationError,
    Failure,
    FailureCode,
    Pipeline,
    Policies,
    RunPolicy,
    Session,
    Tool,
    ToolFailed,
    ToolResult,
)
from seawall.testing import FakeClock, FixedChance, scripted

READS = Annotations.for_reading()
DESTROYS = Annotations.for_destroying()
ONE_STRIKE = BreakerPolicy(threshold=1, cooldown_s=10)


class Place:
    """One tool behind a whole pipeline, on a clock moved by hand."""

    def __init__(self, *answers: Any, policy: RunPolicy | None = None, **fields: Any) -> None:
        self.clock = FakeClock()
        self.tool = scripted(*answers, clock=self.clock, name="t", **fields)
        self.pipeline = self.of(self.tool, policy=policy)

    def of(self, *tools: Tool, policy: RunPolicy | None = None) -> Pipeline:
        policies = Policies(default=policy or RunPolicy())
        return Pipeline(tools, policies=policies, clock=self.clock, chance=FixedChance())

    async def call(self, name: str = "t", arguments: Any = None, **options: Any) -> ToolResult:
        return await self.clock.run(self.pipeline.call(name, arguments, **options))

    async def at_once(self, times: int) -> list[ToolResult]:
        calls = [self.pipeline.call("t") for _ in range(times)]
        return await self.clock.run(asyncio.gather(*calls))

    async def started(self) -> asyncio.Task[ToolResult]:
        task = asyncio.ensure_future(self.pipeline.call("t"))
        await self.clock.settle()
        return task

    async def cancelled(self, task: asyncio.Task[ToolResult]) -> None:
        task.cancel()
        await self.clock.settle()
        assert task.cancelled()

    @property
    def runs(self) -> int:
        executor: Any = self.tool.executor
        return len(executor.calls)

    @property
    def circuit(self) -> Any:
        return self.pipeline.breakers.circuit("t")


def sync_tool(work: Any, **fields: Any) -> Tool:
    """A tool that runs in a thread."""

    def executor(arguments: dict[str, Any], context: Any) -> Any:
        return work()

    return Tool(name="t", description="", input_schema={}, executor=executor, **fields)


def real(tool: Tool, **policy: Any) -> Pipeline:
    """A pipeline in real time, for what happens in threads."""
    return Pipeline([tool], policies=Policies(default=RunPolicy(**policy)))


def reason(result: ToolResult) -> str:
    return "" if result.failure is None else result.failure.reason


# --- the breaker


@pytest.mark.parametrize("probe", [("sleep", 1, "well"), ("sleep", 1, OSError("still down"))])
async def test_of_fifty_calls_at_a_half_open_circuit_one_reaches_the_tool(probe: Any) -> None:
    place = Place(OSError("down"), probe, "well", policy=RunPolicy(breaker=ONE_STRIKE))
    await place.call()
    await place.clock.advance(10)

    results = await place.at_once(50)

    assert place.runs == 2
    assert [reason(result) for result in results].count("circuit_open") == 49


async def test_a_cancelled_call_is_neither_failure_nor_success() -> None:
    place = Place(OSError("down"), ("sleep", 9), policy=RunPolicy(breaker=BreakerPolicy()))
    await place.call()

    await place.cancelled(await place.started())

    assert (place.circuit.failures, place.circuit.state) == (1, "closed")
    assert place.circuit.counts.given_back == 1


async def test_an_ignored_error_is_no_success_that_resets_the_count() -> None:
    breaker = BreakerPolicy(threshold=2, ignore=("ValueError",))
    answers = [OSError("1"), ValueError("ignored"), OSError("2")]
    place = Place(*answers, policy=RunPolicy(breaker=breaker))

    for _ in answers:
        await place.call()

    assert place.circuit.state == "open"


async def test_a_cancelled_probe_leaves_the_circuit_half_open_for_the_next() -> None:
    place = Place(OSError("down"), ("sleep", 9), "well", policy=RunPolicy(breaker=ONE_STRIKE))
    await place.call()
    await place.clock.advance(10)

    await place.cancelled(await place.started())

    assert place.circuit.state == "half_open"
    assert (await place.call()).text == "well"
    assert place.circuit.state == "closed"


async def test_a_probe_with_an_ignored_error_leaves_the_circuit_half_open() -> None:
    breaker = BreakerPolicy(threshold=1, cooldown_s=10, ignore=("ValueError",))
    place = Place(OSError("down"), ValueError("ignored"), policy=RunPolicy(breaker=breaker))
    await place.call()
    await place.clock.advance(10)

    await place.call()

    assert place.circuit.state == "half_open"


async def test_a_slow_success_from_before_it_opened_does_not_close_the_circuit() -> None:
    answers = [("sleep", 5, "late"), OSError("down")]
    place = Place(*answers, policy=RunPolicy(breaker=ONE_STRIKE))
    slow = await place.started()
    await place.call()

    await place.clock.advance(5)

    assert (await slow).text == "late"
    assert place.circuit.state == "open"


async def test_the_call_that_opens_the_circuit_gets_the_error_itself() -> None:
    place = Place(OSError("disk on fire"), policy=RunPolicy(breaker=ONE_STRIKE))

    result = await place.call()

    assert place.circuit.state == "open"
    assert "disk on fire" in result.text


async def test_failures_of_async_tools_count() -> None:
    place = Place(OSError("down"), policy=RunPolicy(breaker=BreakerPolicy(threshold=2)))

    for _ in range(5):
        await place.call()

    assert (place.runs, place.circuit.state) == (2, "open")


async def test_the_circuit_is_not_closed_before_the_probe_has_run() -> None:
    place = Place(OSError("down"), ("sleep", 1, "well"), policy=RunPolicy(breaker=ONE_STRIKE))
    await place.call()
    await place.clock.advance(10)

    probe = await place.started()

    assert place.circuit.state == "half_open"
    assert reason(await place.pipeline.call("t")) == "circuit_open"
    await place.clock.advance(1)
    assert (await probe).text == "well"
    assert place.circuit.state == "closed"


@pytest.mark.parametrize("zone_s", [-8 * 3600, 9 * 3600])
async def test_the_time_left_is_right_whatever_the_wall_clock_says(zone_s: float) -> None:
    place = Place(OSError("down"), policy=RunPolicy(breaker=ONE_STRIKE))
    await place.call()

    place.clock.step_wall(zone_s)
    await place.clock.advance(4)

    refused = (await place.call()).failure
    assert refused is not None
    assert refused.retry_after_s == 6


async def test_refusals_by_an_open_circuit_hold_nothing() -> None:
    place = Place(OSError("down"), policy=RunPolicy(breaker=ONE_STRIKE))

    async def refused(times: int) -> None:
        for _ in range(times):
            await place.pipeline.call("t")

    await refused(400)  # the trace is full
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    await refused(1000)
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()

    assert grown < 200_000


async def test_the_real_error_is_kept_when_a_retry_meets_the_circuit_it_opened() -> None:
    policy = RunPolicy(max_retries=5, breaker=BreakerPolicy(threshold=2))
    place = Place(OSError("disk on fire"), policy=policy, annotations=READS)

    result = await place.call()

    assert place.runs == 2
    assert "disk on fire" in result.text
    assert reason(result) == "tool_failed"


async def test_sync_calls_under_one_breaker_run_side_by_side() -> None:
    together = threading.Barrier(4, timeout=5)
    pipeline = real(sync_tool(together.wait), breaker=BreakerPolicy())

    results = await asyncio.gather(*(pipeline.call("t") for _ in range(4)))

    assert [result.is_error for result in results] == [False] * 4
    await pipeline.aclose()


# --- retry


async def test_after_the_last_try_the_error_is_the_tools_own() -> None:
    place = Place(OSError("1"), OSError("2"), policy=RunPolicy(max_retries=1), annotations=READS)

    result = await place.call()

    assert result.failure is not None
    assert (result.failure.cause, result.attempts) == (("OSError",), 2)
    assert "2" in result.failure.message


async def test_a_defect_of_a_tool_that_nobody_called_safe_is_met_once() -> None:
    place = Place(TypeError("defect"), policy=RunPolicy(max_retries=3))

    await place.call()

    assert place.runs == 1


async def test_the_callers_own_timeout_ends_the_call_and_is_not_tried_again() -> None:
    place = Place(("sleep", 0.25, "late"), policy=RunPolicy(max_retries=3), annotations=READS)
    place.pipeline.clock = place.clock

    async def caller() -> str:
        with place.clock.limit(0.05) as limit:
            await place.pipeline.call("t")
        return "timed out" if limit.expired else "answered"

    assert await place.clock.run(caller()) == "timed out"
    assert (place.runs, place.clock.now()) == (1, 0.05)


async def test_two_failing_calls_at_once_count_their_own_attempts() -> None:
    policy = RunPolicy(max_retries=2, base_delay_s=1)
    place = Place(OSError("down"), policy=policy, annotations=READS)

    await place.at_once(2)

    spans = place.pipeline.trace.spans()[::-1]
    by_call: dict[str, list[int]] = {span.call_id: [] for span in spans}
    for span in spans:
        by_call[span.call_id].append(span.attempt)
    assert list(by_call.values()) == [[1, 2, 3], [1, 2, 3]]


@pytest.mark.parametrize("error", [OSError("down"), TimeoutError(), ("sleep", 99, "late")])
async def test_a_tool_that_destroys_runs_once_whatever_the_policy_says(error: Any) -> None:
    policy = RunPolicy(max_retries=3, timeout_s=5)
    place = Place(error, policy=policy, annotations=DESTROYS, risk=None, self_gated=True)

    assert (await place.call()).is_error
    assert place.runs == 1


async def test_however_deep_an_error_is_wrapped_the_call_is_tried_again() -> None:
    wrapped = RuntimeError("outer")
    wrapped.__cause__ = RuntimeError("middle")
    wrapped.__cause__.__cause__ = OSError("inner")
    place = Place(wrapped, "well", policy=RunPolicy(max_retries=1), annotations=READS)

    assert (await place.call()).text == "well"


async def test_the_model_is_told_no_key_and_to_look_before_it_tries_again() -> None:
    place = Place(OSError("503 from https://x.test/?key=sk-live-abcdef123456"))

    said = (await place.call()).render()

    assert "503" in said
    assert "abcdef" not in said
    assert "Whether it took effect is not known: check before you do it again" in said


async def test_a_call_that_times_out_starts_one_side_effect_under_one_token() -> None:
    policy = RunPolicy(timeout_s=1, max_retries=2, rate="1/minute")
    place = Place(("sleep", 9), policy=policy)

    first, second = await place.call(), await place.call()

    assert [reason(first), reason(second)] == ["attempt_timeout", "rate_limited"]
    assert place.runs == 1


# --- timeouts


async def test_a_sync_tool_past_its_limit_is_told_of_as_what_it_is() -> None:
    effects: list[str] = []
    finish = threading.Event()

    def work() -> None:
        finish.wait(5)
        effects.append("done")

    pipeline = real(sync_tool(work), timeout_s=0.02)

    result = await pipeline.call("t")

    assert result.failure is not None
    assert result.failure.may_have_run is True
    assert not effects  # told at its limit, not when the thread ended
    assert "cannot be stopped" in result.text
    assert "again" not in result.failure.guidance.lower()
    assert "seawall_abandoned_threads 1.0" in pipeline.metrics.text().decode()
    finish.set()
    await until(lambda: pipeline._equipment.threads.abandoned == 0)
    await pipeline.aclose()


async def test_no_exception_is_thrown_into_a_sync_tool() -> None:
    caught: list[BaseException] = []
    ended = threading.Event()

    def work() -> None:
        try:
            ended.wait(0.1)
        except BaseException as error:  # noqa: BLE001  # what a careless tool does
            caught.append(error)
        ended.set()

    pipeline = real(sync_tool(work), timeout_s=0.02)
    await pipeline.call("t")
    await asyncio.to_thread(ended.wait, 5)

    assert not caught
    await pipeline.aclose()


async def test_of_eight_calls_with_four_threads_none_runs_after_it_was_answered() -> None:
    finish, starts = threading.Event(), []

    def work() -> None:
        starts.append(1)
        finish.wait(5)

    pipeline = real(sync_tool(work), timeout_s=0.05, max_threads=4)

    results = await asyncio.gather(*(pipeline.call("t") for _ in range(8)))
    finish.set()
    await until(lambda: pipeline._equipment.threads.abandoned == 0)

    ran = [result.failure and result.failure.may_have_run for result in results]
    assert sorted(map(bool, ran)) == [False] * 4 + [True] * 4
    assert ran.count(False) == 4
    assert len(starts) == 4
    assert not (await pipeline.call("t")).is_error
    await pipeline.aclose()


async def test_a_tools_own_timeout_error_is_not_reported_as_ours() -> None:
    place = Place(TimeoutError("connect"), policy=RunPolicy(timeout_s=30))

    result = await place.call()

    assert result.failure is not None
    assert (result.failure.code, reason(result)) == (FailureCode.EXECUTION_FAILED, "tool_timeout")
    assert "30" not in result.text


@pytest.mark.parametrize("policy", [{}, {"timeout_s": 30}])
async def test_a_timeout_inside_a_tool_is_not_taken_for_a_cancel_of_the_call(policy: Any) -> None:
    async def gives_up(arguments: dict[str, Any], context: Any) -> str:
        try:
            async with asyncio.timeout(0.01):
                await asyncio.sleep(30)
        except TimeoutError:
            return "gave up by itself"
        return "never"

    async def fails(arguments: dict[str, Any], context: Any) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(asyncio.to_thread(int, "no number"))
            await asyncio.sleep(30)

    async def fails_at_its_end(arguments: dict[str, Any], context: Any) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(asyncio.to_thread(int, "no number"))

    tools = [
        Tool(name=executor.__name__, description="", input_schema={}, executor=executor)
        for executor in (gives_up, fails, fails_at_its_end)
    ]
    pipeline = Pipeline(tools, policies=Policies(default=RunPolicy(**policy)))

    results = [await pipeline.call(tool.name) for tool in tools]

    assert results[0].text == "gave up by itself"
    assert [reason(result) for result in results] == ["", "tool_failed", "tool_failed"]
    assert all("ValueError" in result.text for result in results[1:])


async def test_a_tool_that_swallows_its_cancellation_is_ended_after_its_grace() -> None:
    place = Place()
    finished: list[float] = []

    async def deaf(arguments: dict[str, Any], context: Any) -> str:
        end = place.clock.now() + 60
        while place.clock.now() < end:
            try:
                await place.clock.sleep(end - place.clock.now())
            except asyncio.CancelledError:
                continue
        finished.append(place.clock.now())
        return "late"

    tool = Tool(name="t", description="", input_schema={}, executor=deaf)
    place.pipeline = place.of(tool, policy=RunPolicy(timeout_s=2, grace_s=1))

    result = await place.call()

    assert (reason(result), place.clock.now()) == ("attempt_timeout", 3)
    assert "was ended" in result.text
    await place.clock.advance(60)
    assert finished == []


# --- rate limits


async def test_the_limiter_does_not_wait_for_busy_threads() -> None:
    place = Place("well", policy=RunPolicy(rate="100/minute"))
    loop, free = asyncio.get_running_loop(), threading.Event()
    busy = [loop.run_in_executor(None, free.wait, 5) for _ in range(64)]

    begun = time.perf_counter()
    for _ in range(50):
        assert not (await place.call()).is_error
    took_s = time.perf_counter() - begun

    free.set()
    await asyncio.gather(*busy)
    assert took_s < 4


async def test_the_limiter_keeps_one_bucket_however_often_it_is_asked() -> None:
    place = Place("well", policy=RunPolicy(rate="100000/minute"))

    for _ in range(500):
        await place.pipeline.call("t")

    limiter = place.pipeline.states.shared("limiter:token-bucket").find("limiter")
    assert limiter.tracked == 1


@pytest.mark.parametrize("strategy", ["token-bucket", "fixed-window", "moving-window"])
async def test_a_wall_clock_set_back_lengthens_no_refusal(strategy: str) -> None:
    place = Place("well", policy=RunPolicy(rate="2/second", rate_strategy=strategy))
    for _ in range(2):
        await place.call()

    place.clock.step_wall(-3600)
    refused = await place.call()
    await place.clock.advance(1)

    assert reason(refused) == "rate_limited"
    assert refused.failure is not None
    assert 0 < (refused.failure.retry_after_s or 0) <= 1
    assert not (await place.call()).is_error


def test_a_cost_above_the_limit_is_told_when_it_is_set_up() -> None:
    with pytest.raises(ConfigurationError, match="more than 10/minute can ever grant"):
        Place("well", policy=RunPolicy(rate="10/minute", cost=100))


async def test_a_refused_call_takes_nothing_from_the_window() -> None:
    place = Place()
    dear, cheap = (scripted("well", clock=place.clock, name=name) for name in ("dear", "cheap"))
    shared: dict[str, Any] = {
        "rate": "10/minute",
        "rate_strategy": "fixed-window",
        "rate_key": ("global",),
    }
    policies = Policies(tools={"dear": RunPolicy(**shared, cost=8), "cheap": RunPolicy(**shared)})
    place.pipeline = Pipeline([dear, cheap], policies=policies, clock=place.clock)

    asked = ["dear", "dear", "cheap", "cheap", "cheap"]
    results = [await place.call(name) for name in asked]

    assert [result.is_error for result in results] == [False, True, False, False, True]


async def test_no_thread_is_started_for_a_call() -> None:
    place = Place("well", policy=RunPolicy(rate="1000/second"))
    before = threading.active_count()

    for _ in range(50):
        await place.call()
        await place.clock.advance(0.005)

    assert threading.active_count() == before


async def test_fractions_of_a_token_are_kept() -> None:
    place = Place("well", policy=RunPolicy(rate="30/minute"))
    for _ in range(30):
        await place.call()

    granted = 0
    for _ in range(10):
        await place.clock.advance(1)
        granted += not (await place.call()).is_error

    assert granted == 5


async def test_other_callers_do_not_refill_the_bucket_of_one_that_drained_it() -> None:
    place = Place("well", policy=RunPolicy(rate="1/hour", rate_key=("caller",)))
    alice = Session("1", caller="alice")
    await place.call(session=alice)

    for number in range(2000):
        await place.pipeline.call("t", session=Session("s", caller=f"caller {number}"))

    assert reason(await place.call(session=alice)) == "rate_limited"


async def test_one_caller_is_not_refused_for_the_calls_of_another() -> None:
    place = Place("well", policy=RunPolicy(rate="1/minute", rate_key=("caller",)))

    results = [
        await place.call(session=Session("s", caller=name)) for name in ("alice", "bob", "alice")
    ]

    assert [result.is_error for result in results] == [False, False, True]


async def test_a_refusal_does_not_stand_in_line_behind_calls_that_run() -> None:
    place = Place(("sleep", 60, "late"), policy=RunPolicy(rate="1/minute"))
    running = await place.started()

    refused = await place.pipeline.call("t")

    assert reason(refused) == "rate_limited"
    assert place.clock.now() == 0
    await place.cancelled(running)


async def test_only_calls_of_the_tool_itself_count_against_its_rate() -> None:
    place = Place("well", policy=RunPolicy(rate="1/minute"))

    place.pipeline.registry.declarations()
    place.pipeline.prepare("t")
    await place.call("unknown")

    assert not (await place.call()).is_error


# --- validation and metrics


@pytest.mark.parametrize(
    ("given", "received"), [("7", {"n": 7}), (7.0, {"n": 7}), (True, None), (7.5, None)]
)
async def test_an_integer_is_what_says_so_without_loss(given: Any, received: Any) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    place = Place("well", input_schema=schema)

    result = await place.call(arguments={"n": given})

    executor: Any = place.tool.executor
    assert executor.calls == ([] if received is None else [received])
    assert result.is_error is (received is None)
    assert all(type(call["n"]) is int for call in executor.calls)


async def test_the_callers_arguments_are_never_written_to() -> None:
    schema = {
        "type": "object",
        "properties": {"n": {"type": "integer"}, "m": {"type": "integer", "default": 5}},
    }
    place = Place("well", input_schema=schema)
    arguments = {"n": "7"}

    await place.call(arguments=arguments)

    assert arguments == {"n": "7"}


async def test_ten_thousand_invented_names_leave_a_small_scrape() -> None:
    place = Place("well")

    for number in range(10_000):
        await place.pipeline.call(f"invented_{number}")
    begun = time.process_time()
    scrape = place.pipeline.metrics.text().decode()
    took_s = time.process_time() - begun

    assert 'tool="_OTHER"' in scrape
    assert "invented" not in scrape
    assert len(scrape) < 20_000
    assert took_s < 1


async def test_a_failure_tells_the_model_what_the_tool_said() -> None:
    """Neither an exception that ends the run nor a fixed sentence that helps nobody."""
    own = ToolFailed(Failure(code=FailureCode.NOT_FOUND, message="no file a.txt; there is b.txt"))
    place = Place(own, ValueError("the day must be 1 to 31"))

    first, second = await place.call(), await place.call()

    assert "there is b.txt" in first.text
    assert "the day must be 1 to 31" in second.text
