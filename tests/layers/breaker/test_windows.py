"""Windows beside plain models, and circuits that decide by shares."""

from __future__ import annotations

import asyncio
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seawall.contract.errors import ConfigurationError
from seawall.contract.failure import Failure, FailureCode, ToolFailed
from seawall.contract.policy import MAX_WINDOW_CALLS, BreakerPolicy, RunPolicy
from seawall.layers.breaker import Breaker
from seawall.layers.breaker.circuit import Circuit
from seawall.layers.breaker.windows import PARTS, CountWindow, TimeWindow
from seawall.layers.timeout import Timeout
from seawall.pipeline.layer import compose
from seawall.testing import FakeClock, LayerBench, scripted

CALLS = st.lists(
    st.tuples(st.floats(0, 7, allow_nan=False), st.booleans(), st.booleans()), max_size=60
)


def counted(calls: list[tuple[Any, bool, bool]]) -> tuple[int, int, int]:
    return len(calls), sum(failed for _, failed, _ in calls), sum(slow for _, _, slow in calls)


@given(st.integers(1, 12), CALLS)
def test_a_window_of_calls_counts_the_last_ones(size: int, calls: Any) -> None:
    window = CountWindow(size)

    for number, (_, failed, slow) in enumerate(calls, 1):
        window.add(0.0, failed=failed, slow=slow)

        assert (window.calls, window.failed, window.slow) == counted(calls[:number][-size:])


@given(st.sampled_from([0.7, 1.0, 10.0, 60.0]), CALLS)
def test_a_window_of_seconds_counts_the_calls_of_its_last_parts(seconds: float, steps: Any) -> None:
    window, at = TimeWindow(seconds), 0.0
    seen: list[tuple[Any, bool, bool]] = []

    for wait_s, failed, slow in steps:
        at += wait_s
        seen.append((math.floor(at / (seconds / PARTS)), failed, slow))
        window.add(at, failed=failed, slow=slow)

        kept = [call for call in seen if call[0] > seen[-1][0] - PARTS]
        assert (window.calls, window.failed, window.slow) == counted(kept)
        assert len(window._parts) <= PARTS


class Circuits:
    """A circuit that decides by shares, on a clock moved by hand."""

    def __init__(self, **policy: Any) -> None:
        self.at = 0.0
        policy = {"cooldown_s": 10.0, "failure_rate": 0.5, "min_calls": 4, **policy}
        self.circuit = Circuit(BreakerPolicy(**policy), lambda: self.at)

    def end(self, how: str, *, slow: bool = False) -> str:
        permit = self.circuit.acquire()
        if permit is None:
            return "refused"
        self.settle(permit, how, slow=slow)
        return self.circuit.state

    def settle(self, permit: int, how: str, *, slow: bool = False) -> None:
        if how == "failed":
            self.circuit.failure(permit, "OSError", slow=slow)
        elif how == "answered":
            self.circuit.answered(permit, slow=slow)
        else:
            self.circuit.success(permit, slow=slow)

    def half_open(self) -> None:
        while self.circuit.state == "closed":
            self.end("failed")
        self.at += self.circuit.cooldown_s


def test_below_the_least_number_of_calls_nothing_opens_it() -> None:
    circuits = Circuits(min_calls=4)

    assert [circuits.end("failed") for _ in range(4)] == ["closed"] * 3 + ["open"]


def test_it_opens_at_the_rate_and_not_above_it() -> None:
    circuits = Circuits(failure_rate=0.5, min_calls=4)

    assert [circuits.end(how) for how in ("ok", "failed", "ok", "failed")][-1] == "open"


def test_many_failures_in_a_row_do_not_open_it_while_their_share_is_small() -> None:
    circuits = Circuits(failure_rate=0.5, window_calls=100, threshold=2)
    for _ in range(20):
        circuits.end("ok")

    assert {circuits.end("failed") for _ in range(15)} == {"closed"}


def test_a_window_smaller_than_the_least_number_is_reckoned_when_full() -> None:
    circuits = Circuits(window_calls=2, min_calls=50)

    assert [circuits.end("failed") for _ in range(2)] == ["closed", "open"]


def test_slow_calls_open_it_although_they_succeed() -> None:
    circuits = Circuits(failure_rate=None, slow_rate=0.5, slow_call_s=2, min_calls=2)

    assert [circuits.end("ok", slow=slow) for slow in (False, True)] == ["closed", "open"]
    assert circuits.circuit.last_error == "slow calls"


def test_an_answer_of_the_tool_is_a_call_that_did_not_fail() -> None:
    circuits = Circuits(failure_rate=0.5, min_calls=3)

    assert [circuits.end(how) for how in ("failed", "answered", "answered")] == ["closed"] * 3


def test_old_calls_of_a_time_window_are_forgotten() -> None:
    circuits = Circuits(window_s=10, min_calls=2)
    circuits.end("failed")
    circuits.at = 10

    assert circuits.end("failed") == "closed"
    assert circuits.end("failed") == "open"


@pytest.mark.parametrize(
    ("ends", "after"),
    [
        (("ok", "ok", "ok", "ok"), "closed"),
        (("ok", "failed", "ok", "ok"), "closed"),
        (("failed", "ok", "ok", "failed"), "open"),
        (("ok", "ok"), "half_open"),
        (("failed", "failed", "failed"), "half_open"),
    ],
)
def test_half_open_is_decided_by_the_share_of_all_probes(ends: tuple[str, ...], after: str) -> None:
    circuits = Circuits(permits=4, failure_rate=0.5)
    circuits.half_open()

    for how in ends:
        circuits.end(how)

    assert circuits.circuit.state == after


def test_no_more_probes_are_let_out_than_are_to_be_judged() -> None:
    circuits = Circuits(permits=3)
    circuits.half_open()
    circuits.end("ok")

    permits = [circuits.circuit.acquire() for _ in range(4)]

    assert [permit is None for permit in permits] == [False, False, True, True]


def test_an_ignored_probe_makes_room_for_another() -> None:
    circuits = Circuits(permits=1)
    circuits.half_open()
    permit = circuits.circuit.acquire()
    assert permit is not None
    assert circuits.circuit.acquire() is None

    circuits.circuit.neutral(permit)

    assert circuits.circuit.acquire() is not None
    assert circuits.circuit.state == "half_open"


def test_a_slow_probe_opens_it_again_with_twice_the_cooldown() -> None:
    circuits = Circuits(failure_rate=None, slow_rate=1.0, slow_call_s=1, min_calls=1)
    circuits.end("ok", slow=True)
    circuits.at = 10

    assert circuits.end("ok", slow=True) == "open"
    assert circuits.circuit.cooldown_s == 20


def test_after_recovery_the_window_begins_anew() -> None:
    circuits = Circuits(min_calls=4)
    circuits.half_open()
    circuits.end("ok")

    assert [circuits.end("failed") for _ in range(3)] == ["closed"] * 3


def test_a_late_result_of_before_the_trip_counts_nowhere() -> None:
    circuits = Circuits(min_calls=2)
    late = circuits.circuit.acquire()
    assert late is not None
    circuits.half_open()
    probe = circuits.circuit.acquire()
    assert probe is not None

    circuits.settle(late, "ok")
    assert circuits.circuit.state == "half_open"
    circuits.settle(probe, "ok")
    circuits.settle(late, "failed")

    assert circuits.circuit.state == "closed"
    assert circuits.circuit.failures == 0
    assert circuits.circuit.counts.stale == 2


def test_closing_by_hand_empties_the_window() -> None:
    circuits = Circuits(min_calls=3)
    for _ in range(2):
        circuits.end("failed")

    circuits.circuit.force_close()

    assert circuits.end("failed") == "closed"


def test_other_numbers_go_on_with_the_same_window_and_another_window_begins_anew() -> None:
    circuits = Circuits(min_calls=10)
    for _ in range(3):
        circuits.end("failed")

    circuits.circuit.retune(BreakerPolicy(failure_rate=0.9, min_calls=4))
    assert circuits.circuit.failures == 3
    circuits.circuit.retune(BreakerPolicy(failure_rate=0.9, min_calls=4, window_s=10))
    assert circuits.circuit.failures == 0
    circuits.circuit.retune(BreakerPolicy(threshold=1))
    assert circuits.end("failed") == "open"


def test_a_step_of_the_wall_clock_does_not_hold_it_open() -> None:
    clock = FakeClock()
    circuit = Circuit(BreakerPolicy(failure_rate=1, min_calls=1, cooldown_s=10), clock.now)
    circuit.failure(circuit.acquire() or 0, "OSError")

    clock.step_wall(-3600)

    assert circuit.seconds_to_probe() == 10


@pytest.mark.parametrize(("hint_s", "wait_s"), [(None, 10), (3, 10), (25, 25), (500, 60)], ids=str)
@pytest.mark.parametrize("rate", [None, 1.0])
def test_a_hint_keeps_it_open_for_longer_within_the_ceiling(
    hint_s: float | None, wait_s: float, rate: float | None
) -> None:
    policy = BreakerPolicy(
        threshold=1, failure_rate=rate, min_calls=1, cooldown_s=10, max_cooldown_s=60
    )
    circuit = Circuit(policy, lambda: 0.0)

    circuit.failure(circuit.acquire() or 0, "OSError", retry_after_s=hint_s)

    assert circuit.seconds_to_probe() == wait_s


# The layer.


class BusyError(ConnectionError):
    retry_after = 40


def bench(*answers: Any, timeout_s: float | None = None, **breaker: Any) -> LayerBench:
    clock = FakeClock()
    tool = scripted(*answers, clock=clock, name="t")
    policy = RunPolicy(timeout_s=timeout_s, breaker=BreakerPolicy(**breaker))
    return LayerBench(policy, tool=tool, clock=clock)


async def reasons(bench: LayerBench, times: int) -> list[str]:
    layers = [Breaker.for_tool(bench.context), Timeout.for_tool(bench.context)]
    handler = compose([layer for layer in layers if layer], bench.execute())
    results = [await bench.call(handler) for _ in range(times)]
    return ["" if r.failure is None else r.failure.reason for r in results]


async def test_the_layer_measures_how_long_a_call_took() -> None:
    slow = bench(("sleep", 3, "ok"), slow_rate=1, slow_call_s=2, min_calls=2)

    assert await reasons(slow, 3) == ["", "", "circuit_open"]


async def test_a_call_of_exactly_that_length_is_not_slow() -> None:
    even = bench(("sleep", 2, "ok"), slow_rate=1, slow_call_s=2, min_calls=2)

    assert await reasons(even, 4) == [""] * 4


async def test_timeouts_count_as_failures_and_as_slow() -> None:
    hanging = bench(("sleep", 9, ""), timeout_s=3, slow_rate=1, slow_call_s=2, min_calls=2)

    assert await reasons(hanging, 3) == ["attempt_timeout"] * 2 + ["circuit_open"]


async def test_shadow_measures_and_never_refuses() -> None:
    shadow = bench(OSError("down"), mode="shadow", failure_rate=0.5, min_calls=2)

    assert await reasons(shadow, 4) == ["tool_failed"] * 4
    assert shadow.events == [("breaker", "open"), *[("breaker", "shadow_refused")] * 2]


async def test_a_cancelled_call_is_in_no_window_and_hands_its_probe_back() -> None:
    trial = bench(OSError("x"), ("sleep", 5, "ok"), "ok", failure_rate=1, min_calls=1, cooldown_s=1)
    layer = Breaker.for_tool(trial.context)
    assert layer is not None
    handler = compose([layer], trial.execute())
    await trial.call(handler)
    await trial.clock.advance(1)
    probing = asyncio.ensure_future(handler(trial.invocation()))
    await trial.clock.settle()

    probing.cancel()
    await asyncio.gather(probing, return_exceptions=True)

    circuit = _slot(trial).made()
    assert circuit.state == "half_open"
    assert (await trial.call(handler)).text == "ok"
    assert circuit.state == "closed"
    assert circuit.counts.given_back == 1


def _slot(bench: LayerBench) -> Any:
    return bench.context.slots.find("circuit")


async def test_the_tools_hint_is_honoured_only_where_the_policy_says_so() -> None:
    for honoured, wait_s in ((True, 40), (False, 15)):
        trial = bench(BusyError("later"), threshold=1, honour_retry_after=honoured)

        await reasons(trial, 1)

        assert _slot(trial).made().seconds_to_probe() == wait_s


async def test_a_tool_that_says_it_is_limited_does_not_open_the_circuit() -> None:
    limited = ToolFailed(Failure(code=FailureCode.RATE_LIMITED, message="x", retry_after_s=9))
    trial = bench(limited, failure_rate=0.1, min_calls=1, honour_retry_after=True)

    assert await reasons(trial, 3) == ["rate_limited"] * 3


# Settings.


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"failure_rate": 0}, "breaker.failure_rate: must be above 0 and at most 1 (got 0)"),
        ({"failure_rate": 50}, "breaker.failure_rate: must be above 0 and at most 1 (got 50)"),
        ({"slow_rate": 0.5}, "breaker.slow_rate: needs slow_call_s, beyond which a call is slow"),
        ({"window_s": 0}, "breaker.window_s: must be above 0; leave it out for no limit (got 0)"),
        ({"min_calls": 0}, "breaker.min_calls: must be at least 1 (got 0)"),
        (
            {"window_calls": MAX_WINDOW_CALLS + 1},
            "breaker.window_calls: is above 10,000; give window_s for a time",
        ),
        ({"honour_retry_after": 1}, "breaker.honour_retry_after: must be true or false, not 1"),
    ],
)
def test_settings_that_cannot_be_are_refused(values: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        BreakerPolicy(**values)

    assert str(caught.value) == said
