"""The circuit: vectors, the faults of other breakers, and a model."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pybreaker
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    multiple,
    rule,
)

from seawall.contract.errors import ConfigurationError
from seawall.contract.policy import BreakerPolicy
from seawall.layers.breaker.circuit import FIRST_PERMIT, Circuit, FailureReported

TESTS = Path(__file__).parents[2]
VECTORS = json.loads((TESTS / "vectors" / "circuit_breaker.json").read_text())["cases"]

NOT_THE_CIRCUIT = {
    "br-18": "retries within one call",
    "br-19": "retries within one call",
}


class Hands:
    """A clock moved by hand."""

    def __init__(self, at: float = 0.0) -> None:
        self.at = at

    def __call__(self) -> float:
        return self.at


def circuit_of(**policy: Any) -> tuple[Circuit, Hands]:
    hands = Hands()
    return Circuit(BreakerPolicy(**{"threshold": 1, "cooldown_s": 10.0, **policy}), hands), hands


def permit_of(circuit: Circuit) -> int:
    permit = circuit.acquire()
    assert permit is not None
    return permit


def fail(circuit: Circuit, kind: str = "OSError") -> None:
    circuit.failure(permit_of(circuit), kind)


def half_open(**policy: Any) -> tuple[Circuit, Hands, int]:
    """A circuit whose first probe is out."""
    circuit, hands = circuit_of(**policy)
    while circuit.state == "closed":
        fail(circuit)
    hands.at = circuit.cooldown_s
    return circuit, hands, permit_of(circuit)


# Vectors.


class VectorRun:
    """Plays the steps of one vector: a circuit per tool, and the last permit of each."""

    def __init__(self, given: dict[str, Any]) -> None:
        self.policy = BreakerPolicy(
            threshold=given.get("threshold", 1),
            cooldown_s=given.get("cooldown_ms", 10_000) / 1000,
            max_cooldown_s=given.get("max_cooldown_ms", 120_000) / 1000,
        )
        self.hands = Hands()
        self.circuits: dict[str, Circuit] = {}
        self.permits: dict[str, int] = {}
        self.started: dict[str, int] = {}
        self.found: dict[str, Any] = {"verdicts": [], "tool_runs": 0}
        if given.get("state") == "open, cooldown over":
            fail(self.circuit("t"))
            self.hands.at = self.circuit("t").cooldown_s
        if "after" in given:
            self.on_fail_every_probe({"fail_every_probe": 4})

    def circuit(self, tool: str) -> Circuit:
        if tool not in self.circuits:
            self.circuits[tool] = Circuit(self.policy, self.hands)
        return self.circuits[tool]

    def permit(self, tool: str) -> int:
        """What is in hand, or a new one; while open, the one of a call still running."""
        if tool in self.started:
            return self.started.pop(tool)
        permit = self.circuit(tool).acquire() or self.permits[tool]
        self.permits[tool] = permit
        return permit

    def play(self, step: dict[str, Any]) -> None:
        self.hands.at = step.get("at_ms", self.hands.at * 1000) / 1000
        for verb in step:
            if hasattr(self, "on_" + verb):
                getattr(self, "on_" + verb)(step)
                return
        raise AssertionError(f"no such step: {step}")

    def on_start(self, step: dict[str, Any]) -> None:
        self.started[step["start"]] = self.permit("t")

    def on_fail(self, step: dict[str, Any]) -> None:
        tool = step["fail"]
        for _ in range(step.get("times", 1)):
            circuit = self.circuit("t" if tool in self.started else tool)
            circuit.failure(self.permit(tool), step.get("error", "E"))

    def on_success(self, step: dict[str, Any]) -> None:
        tool = step["success"]
        self.circuit("t" if tool in self.started else tool).success(self.permit(tool))

    def on_reset(self, step: dict[str, Any]) -> None:
        self.circuit(step["reset"]).reset()

    def on_call(self, step: dict[str, Any]) -> None:
        assert step["tool_returns"]["code"] == "not_found"
        for _ in range(step.get("times", 1)):
            permit = self.circuit("t").acquire()
            if permit is not None:
                self.found["tool_runs"] += 1
                self.circuit("t").answered(permit)

    def on_check(self, step: dict[str, Any]) -> None:
        tool = step["check"]
        circuit = self.circuit(tool)
        seconds = circuit.seconds_to_probe()
        permit = circuit.acquire()
        seen = {
            "verdict": "deny" if permit is None else "allow",
            "probe": permit is not None and circuit.state == "half_open",
            "retry_in_ms": round(seconds * 1000, 6),
        }
        if permit is not None and circuit.state == "half_open":
            self.started[tool] = permit
        assert {key: value for key, value in step.items() if key in seen} == {
            key: seen[key] for key in seen if key in step
        }
        if "verdict" not in step:
            self.found["verdicts"].append(seen["verdict"])
        self.found |= seen
        self.found[tool] = self.found[f"{tool}_after_reset"] = seen["verdict"]

    def on_probe_cancelled_at_ms(self, step: dict[str, Any]) -> None:
        self.hands.at = step["probe_cancelled_at_ms"] / 1000
        before = self.circuit("t").failures
        self.circuit("t").give_back(self.started.pop("t"))
        self.found["failures_added"] = self.circuit("t").failures - before

    def on_fail_every_probe(self, step: dict[str, Any]) -> None:
        fail(self.circuit("t"))
        waits = [self.circuit("t").seconds_to_probe()]
        for _ in range(step["fail_every_probe"]):
            self.hands.at += waits[-1]
            fail(self.circuit("t"))
            waits.append(self.circuit("t").seconds_to_probe())
        self.found["cooldowns_ms"] = [wait * 1000 for wait in waits]

    def on_probe_succeeds(self, step: dict[str, Any]) -> None:
        self.hands.at += self.circuit("t").seconds_to_probe()
        self.circuit("t").success(permit_of(self.circuit("t")))

    def end(self) -> dict[str, Any]:
        circuit = self.circuit("t")
        if "a" in self.circuits:
            self.found["state_a"] = self.circuit("a").state
        return self.found | {
            "state": circuit.state,
            "failures": circuit.failures,
            "cooldown_ms": circuit.cooldown_s * 1000,
            "last_error": circuit.last_error,
        }


@pytest.mark.parametrize(
    "vector",
    [
        pytest.param(one, id=one["id"])
        for one in VECTORS
        if one["id"] not in NOT_THE_CIRCUIT and "errors" not in one["expect"]
    ],
)
def test_the_circuit_does_what_the_vector_says(vector: dict[str, Any]) -> None:
    run = VectorRun(vector["given"])

    for step in vector["steps"]:
        run.play(step)

    found = run.end()
    assert {name: found[name] for name in vector["expect"]} == vector["expect"]


def test_settings_that_make_no_sense_are_refused_as_the_vector_says() -> None:
    [vector] = [one for one in VECTORS if "errors" in one["expect"]]
    names = {"threshold": 1, "cooldown_ms": 1000, "max_cooldown_ms": 1000}

    for step in vector["steps"]:
        numbers = {
            name.replace("_ms", "_s"): value / names[name] for name, value in step["build"].items()
        }
        with pytest.raises(ConfigurationError):
            BreakerPolicy(**numbers)


# Faults of other breakers.


async def test_of_fifty_that_ask_at_once_in_half_open_exactly_one_gets_leave() -> None:
    circuit, hands = circuit_of()
    fail(circuit)
    hands.at = 10.0

    async def ask() -> bool:
        permit = circuit.acquire()
        await asyncio.sleep(0)
        if permit is None:
            return False
        circuit.success(permit)
        return True

    leaves = await asyncio.gather(*(ask() for _ in range(50)))

    assert leaves.count(True) == 1
    assert circuit.counts.refused == 49


def test_a_cancelled_call_is_neither_failure_nor_success() -> None:
    circuit, _ = circuit_of(threshold=3)
    fail(circuit)
    fail(circuit)

    circuit.give_back(permit_of(circuit))

    assert (circuit.state, circuit.failures) == ("closed", 2)


def test_an_ignored_error_while_closed_does_not_reset_the_streak() -> None:
    circuit, _ = circuit_of(threshold=3)

    for kind in ("OSError", None, "OSError", None, "OSError"):
        permit = permit_of(circuit)
        if kind is None:
            circuit.neutral(permit)
        else:
            circuit.failure(permit, kind)

    assert circuit.state == "open"


def test_an_answer_of_the_tool_while_closed_does_not_reset_the_streak() -> None:
    circuit, _ = circuit_of(threshold=3)
    fail(circuit)
    fail(circuit)

    circuit.answered(permit_of(circuit))

    assert (circuit.state, circuit.failures) == ("closed", 2)


@pytest.mark.parametrize("settle", ["give_back", "neutral"])
def test_a_probe_that_was_cancelled_or_ignored_is_handed_back(settle: str) -> None:
    circuit, _, probe = half_open()

    getattr(circuit, settle)(probe)

    assert (circuit.state, circuit.cooldown_s, circuit.failures) == ("half_open", 10.0, 1)
    assert circuit.seconds_to_probe() == 0.0
    assert circuit.acquire() is not None
    assert circuit.acquire() is None


@pytest.mark.parametrize("settle", ["success", "answered"])
def test_a_probe_that_the_tool_answers_closes_even_by_an_error_answer(settle: str) -> None:
    circuit, _, probe = half_open()

    getattr(circuit, settle)(probe)

    assert (circuit.state, circuit.failures, circuit.last_error) == ("closed", 0, "")


def test_a_slow_success_begun_before_it_opened_does_not_close_it() -> None:
    circuit, _ = circuit_of()
    slow = permit_of(circuit)
    fail(circuit)

    circuit.success(slow)

    assert circuit.state == "open"
    assert circuit.counts.stale == 1


@pytest.mark.parametrize("settle", ["success", "answered", "neutral", "give_back"])
def test_a_call_begun_before_it_opened_is_not_taken_for_the_probe(settle: str) -> None:
    circuit, hands = circuit_of()
    slow = permit_of(circuit)
    fail(circuit)
    hands.at = 10.0
    permit_of(circuit)

    getattr(circuit, settle)(slow)

    assert circuit.state == "half_open"
    assert circuit.acquire() is None


def test_a_failure_begun_before_it_opened_does_not_reopen_it() -> None:
    circuit, hands = circuit_of()
    slow = permit_of(circuit)
    fail(circuit)
    hands.at = 10.0
    probe = permit_of(circuit)

    circuit.failure(slow, "OSError")
    assert circuit.state == "half_open"
    circuit.success(probe)
    circuit.failure(slow, "OSError")

    assert (circuit.state, circuit.failures) == ("closed", 0)


def test_a_late_failure_while_open_does_not_extend_the_cooldown() -> None:
    circuit, hands = circuit_of()
    slow = permit_of(circuit)
    fail(circuit, "first")

    hands.at = 5.0
    circuit.failure(slow, "late")

    assert circuit.seconds_to_probe() == 5.0
    assert circuit.last_error == "first"


def test_the_failure_that_opens_it_raises_nothing() -> None:
    circuit, _ = circuit_of(threshold=2)

    fail(circuit)
    fail(circuit)

    assert circuit.state == "open"


def test_it_opens_without_a_call_that_is_gated_closing_it_first() -> None:
    circuit, hands = circuit_of()
    fail(circuit)

    hands.at = 10.0
    permit_of(circuit)

    # Only the outcome of the probe closes it, not that it was let through.
    assert circuit.state == "half_open"


def test_the_wall_clock_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    class Stopped(pybreaker.datetime):  # type: ignore[name-defined,misc]  # not a public name
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return cls(2000, 1, 1, tzinfo=tz)

    monkeypatch.setattr(pybreaker, "datetime", Stopped)
    circuit, _, probe = half_open()
    circuit.success(probe)

    assert circuit.state == "closed"


def test_importing_the_circuit_does_not_import_pybreaker() -> None:
    program = (
        "import sys, seawall.layers.breaker.circuit; raise SystemExit('pybreaker' in sys.modules)"
    )

    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


# Closed.


def test_any_success_ends_the_streak() -> None:
    circuit, _ = circuit_of(threshold=2)
    fail(circuit)

    circuit.success(permit_of(circuit))
    fail(circuit)

    assert (circuit.state, circuit.failures) == ("closed", 1)


def test_failures_that_overlap_count_each() -> None:
    circuit, _ = circuit_of(threshold=3)
    permits = [permit_of(circuit) for _ in range(3)]

    for permit in permits:
        circuit.failure(permit, "OSError")

    assert circuit.state == "open"


def test_a_closed_circuit_asks_for_no_wait() -> None:
    circuit, _ = circuit_of()

    assert circuit.seconds_to_probe() == 0.0
    assert circuit.acquire() == circuit.acquire()


def test_a_new_circuit_hands_out_the_first_permit_so_that_it_can_be_made_late() -> None:
    circuit, _ = circuit_of()

    assert circuit.acquire() == FIRST_PERMIT == 1


@pytest.mark.parametrize("permit", [0, -2, 99, None])
def test_a_permit_it_never_gave_settles_nothing(permit: Any) -> None:
    circuit, _, _ = half_open(permits=2)
    circuit.force_open()

    circuit.success(permit)
    circuit.failure(permit, "OSError")

    assert (circuit.state, circuit.counts.stale, circuit.last_error) == ("open", 2, "OSError")


def test_the_last_error_is_kept_bounded_and_not_lost_by_one_without_a_name() -> None:
    circuit, _ = circuit_of(threshold=5)

    fail(circuit, "x" * 1000)
    fail(circuit, "")

    assert circuit.last_error == "x" * 160
    circuit.success(permit_of(circuit))
    assert circuit.last_error == ""


# Open and half-open.


def test_it_stays_open_until_somebody_asks_after_the_cooldown() -> None:
    circuit, hands = circuit_of()
    fail(circuit)

    hands.at = 1000.0
    assert (circuit.state, circuit.seconds_to_probe()) == ("open", 0.0)
    permit_of(circuit)

    assert circuit.state == "half_open"


def test_while_the_probe_is_out_the_others_get_a_hint_of_one_second() -> None:
    circuit, _, _ = half_open()

    assert circuit.seconds_to_probe() == 1.0


def test_a_wait_that_floats_round_down_is_still_long_enough() -> None:
    circuit, hands = circuit_of(cooldown_s=15.0)
    hands.at = 0.1
    fail(circuit)

    hands.at = 6.331657985854432
    assert hands.at + (15.1 - hands.at) < 15.1
    hands.at += circuit.seconds_to_probe()

    assert circuit.acquire() is not None


@given(at=st.floats(0, 1e9), cooldown_s=st.floats(0.001, 1e4), share=st.floats(0, 1))
@settings(deadline=None)
def test_who_asks_exactly_when_told_is_the_probe(
    at: float, cooldown_s: float, share: float
) -> None:
    circuit, hands = circuit_of(cooldown_s=cooldown_s, max_cooldown_s=1e5)
    hands.at = at
    fail(circuit)

    hands.at += share * cooldown_s
    hands.at += circuit.seconds_to_probe()

    assert circuit.acquire() is not None


def test_a_failed_probe_doubles_the_cooldown_from_when_it_failed() -> None:
    circuit, hands, probe = half_open()

    hands.at = 13.0
    circuit.failure(probe, "OSError")

    assert (circuit.state, circuit.cooldown_s) == ("open", 20.0)
    assert circuit.seconds_to_probe() == 20.0


def test_widening_ends_at_the_ceiling_and_recovery_forgets_it() -> None:
    circuit, hands = circuit_of(cooldown_s=30.0, max_cooldown_s=100.0)
    fail(circuit)

    waits = []
    for _ in range(4):
        hands.at += circuit.seconds_to_probe()
        fail(circuit)
        waits.append(circuit.seconds_to_probe())
    hands.at += waits[-1]
    circuit.success(permit_of(circuit))

    assert waits == [60.0, 100.0, 100.0, 100.0]
    assert circuit.cooldown_s == 30.0


def test_a_probe_whose_holder_is_gone_lapses_after_twice_the_cooldown_and_ten_seconds() -> None:
    circuit, hands, _ = half_open()

    hands.at = 10.0 + 29.9
    assert (circuit.acquire(), circuit.seconds_to_probe()) == (None, 1.0)
    hands.at = 10.0 + 30.0

    assert circuit.seconds_to_probe() == 0.0
    assert circuit.acquire() is not None
    assert (circuit.counts.lapsed, circuit.cooldown_s) == (1, 10.0)


def test_a_probe_lapses_by_the_cooldown_it_had_to_wait_for() -> None:
    circuit, hands, probe = half_open()
    circuit.failure(probe, "OSError")
    hands.at = 30.0
    permit_of(circuit)

    hands.at = 30.0 + 49.9
    assert circuit.acquire() is None
    hands.at = 30.0 + 50.0

    assert circuit.acquire() is not None


@pytest.mark.parametrize("settle", ["success", "answered", "neutral", "give_back", "failure"])
def test_a_slow_probe_that_returns_after_it_lapsed_is_stale(settle: str) -> None:
    circuit, hands, probe = half_open()

    hands.at = 40.0
    arguments = (probe, "OSError") if settle == "failure" else (probe,)
    getattr(circuit, settle)(*arguments)

    assert (circuit.state, circuit.counts.stale) == ("half_open", 1)
    assert circuit.acquire() is not None


def test_a_slow_probe_that_returns_before_it_lapses_counts() -> None:
    circuit, hands, probe = half_open()

    hands.at = 39.9
    circuit.success(probe)

    assert circuit.state == "closed"


def test_a_probe_settled_twice_counts_once() -> None:
    circuit, _, probe = half_open(permits=2)

    circuit.success(probe)
    circuit.success(probe)

    assert (circuit.state, circuit.successes) == ("half_open", 1)


# Several probes at once.


def test_as_many_probes_are_out_at_once_as_there_are_permits() -> None:
    circuit, hands = circuit_of(permits=3)
    fail(circuit)
    hands.at = 10.0

    permits = [circuit.acquire() for _ in range(50)]

    assert sum(permit is not None for permit in permits) == 3
    assert len(set(permits)) == 4


def test_with_several_permits_so_many_probes_have_to_succeed() -> None:
    circuit, _, first = half_open(permits=2)
    second = permit_of(circuit)

    circuit.success(first)
    assert circuit.state == "half_open"
    circuit.success(second)

    assert circuit.state == "closed"


def test_probes_may_follow_one_another_too() -> None:
    circuit, _, probe = half_open(permits=2)

    circuit.success(probe)
    circuit.success(permit_of(circuit))

    assert circuit.state == "closed"


def test_one_failed_probe_opens_it_and_the_others_no_longer_count() -> None:
    circuit, _, first = half_open(permits=3)
    second, third = permit_of(circuit), permit_of(circuit)

    circuit.success(first)
    circuit.failure(second, "OSError")
    circuit.failure(third, "OSError")

    assert (circuit.state, circuit.cooldown_s) == ("open", 20.0)
    assert circuit.counts.stale == 1


def test_a_probe_still_out_when_others_closed_it_no_longer_counts() -> None:
    circuit, _, first = half_open(permits=2)
    slow = permit_of(circuit)
    circuit.success(first)
    circuit.success(permit_of(circuit))

    circuit.failure(slow, "OSError")

    assert (circuit.state, circuit.failures, circuit.counts.stale) == ("closed", 0, 1)


def test_successes_of_an_earlier_round_of_probes_do_not_count_in_the_next() -> None:
    circuit, hands, first = half_open(permits=2)
    circuit.success(first)
    circuit.failure(permit_of(circuit), "OSError")

    hands.at += 20.0
    circuit.success(permit_of(circuit))

    assert circuit.state == "half_open"


# By hand.


def test_held_open_it_lets_no_probe_through_however_long() -> None:
    circuit, hands = circuit_of()

    circuit.force_open()
    hands.at = 1e6

    assert (circuit.state, circuit.held_open, circuit.acquire()) == ("open", True, None)
    assert circuit.seconds_to_probe() == 120.0


def test_an_open_circuit_can_be_held_open() -> None:
    circuit, hands = circuit_of()
    fail(circuit)

    circuit.force_open()
    hands.at = 10.0

    assert circuit.acquire() is None
    assert circuit.counts.opened == 1


def test_holding_open_a_half_open_circuit_makes_its_probe_stale() -> None:
    circuit, _, probe = half_open()

    circuit.force_open()
    circuit.success(probe)

    assert (circuit.state, circuit.cooldown_s) == ("open", 10.0)


def test_calls_running_when_it_was_forced_open_no_longer_count() -> None:
    circuit, _ = circuit_of()
    running = permit_of(circuit)

    circuit.force_open()
    circuit.success(running)

    assert (circuit.state, circuit.counts.stale) == ("open", 1)


@pytest.mark.parametrize("verb", ["force_close", "reset"])
def test_it_is_closed_by_hand_with_the_first_cooldown(verb: str) -> None:
    circuit, _, probe = half_open()
    circuit.failure(probe, "OSError")

    getattr(circuit, verb)()

    assert (circuit.state, circuit.cooldown_s, circuit.failures) == ("closed", 10.0, 0)
    assert (circuit.last_error, circuit.held_open) == ("", False)
    assert circuit.acquire() is not None


def test_closing_a_closed_circuit_ends_the_streak_and_keeps_running_calls() -> None:
    circuit, _ = circuit_of(threshold=2)
    running = permit_of(circuit)
    fail(circuit)

    circuit.force_close()
    assert (circuit.failures, circuit.last_error) == (0, "")
    circuit.failure(running, "OSError")

    assert circuit.failures == 1


def test_a_reset_forgets_counts_and_running_calls() -> None:
    circuit, hands, _ = half_open()
    hands.at = 100.0
    permit_of(circuit)
    circuit.force_close()
    running = permit_of(circuit)

    circuit.reset()
    circuit.failure(running, "OSError")

    assert circuit.state == "closed"
    counts = circuit.counts
    assert (counts.failures, counts.opened, counts.lapsed, counts.stale) == (0, 0, 0, 1)


# What is told.


def test_each_change_of_state_is_told_once_with_the_state_before() -> None:
    changes: list[tuple[str, str]] = []
    hands = Hands()
    circuit = Circuit(
        BreakerPolicy(threshold=1, cooldown_s=10.0),
        hands,
        lambda old, new: changes.append((old, new)),
    )

    fail(circuit)
    hands.at = 10.0
    fail(circuit)
    hands.at = 30.0
    circuit.success(permit_of(circuit))
    circuit.reset()
    circuit.force_close()
    circuit.force_open()
    circuit.force_open()
    circuit.force_close()

    assert changes == [
        ("closed", "open"),
        ("open", "half_open"),
        ("half_open", "open"),
        ("open", "half_open"),
        ("half_open", "closed"),
        ("closed", "open"),
        ("open", "closed"),
    ]


def test_the_new_state_holds_when_it_is_told() -> None:
    seen: list[tuple[str, int | None]] = []
    hands = Hands()
    circuit = Circuit(
        BreakerPolicy(threshold=1, cooldown_s=10.0),
        hands,
        lambda _, new: seen.append((circuit.state, circuit.acquire() if new == "open" else None)),
    )

    fail(circuit)
    hands.at = 10.0
    circuit.answered(permit_of(circuit))

    assert seen == [("open", None), ("half_open", None), ("closed", None)]


def test_what_happened_is_counted() -> None:
    circuit, hands = circuit_of(threshold=2)
    circuit.success(permit_of(circuit))
    circuit.neutral(permit_of(circuit))
    circuit.answered(permit_of(circuit))
    circuit.give_back(permit_of(circuit))
    slow = permit_of(circuit)
    fail(circuit)
    fail(circuit)
    circuit.acquire()
    circuit.success(slow)
    hands.at = 10.0
    circuit.success(permit_of(circuit))

    counts = circuit.counts

    assert (counts.successes, counts.failures, counts.neutral, counts.given_back) == (2, 2, 2, 1)
    assert (counts.stale, counts.refused, counts.opened, counts.lapsed) == (1, 1, 1, 0)


def test_counts_once_read_do_not_change() -> None:
    circuit, _ = circuit_of()
    before = circuit.counts

    circuit.success(permit_of(circuit))

    assert before.successes == 0


class Listener(pybreaker.CircuitBreakerListener):
    """Writes down what pybreaker tells."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    def failure(self, cb: pybreaker.CircuitBreaker, exc: BaseException) -> None:
        self.heard.append(repr(exc))

    def state_change(self, cb: Any, old_state: Any, new_state: Any) -> None:
        self.heard.append(f"{old_state.name} to {new_state.name}")


def test_listeners_of_pybreaker_hear_what_happens() -> None:
    circuit, hands = circuit_of()
    listener = Listener()
    circuit.machine.add_listener(listener)

    fail(circuit, "OSError")
    hands.at = 10.0
    circuit.success(permit_of(circuit))

    assert listener.heard == [
        repr(FailureReported("OSError")),
        "closed to open",
        "open to half-open",
        "half-open to closed",
    ]


class Unwell(pybreaker.CircuitBreakerListener):
    """Raises after a success was told."""

    def success(self, cb: pybreaker.CircuitBreaker) -> None:
        raise LookupError("listener")


def test_a_listener_that_raises_does_not_part_the_circuit_from_its_machine() -> None:
    circuit, _, probe = half_open()
    circuit.machine.add_listener(Unwell())

    with pytest.raises(LookupError):
        circuit.success(probe)

    assert circuit.state == "closed"
    assert circuit.acquire() is not None


def test_pybreakers_lock_is_free_while_a_tool_runs() -> None:
    circuit, _, _ = half_open()
    other = threading.Thread(target=circuit.machine.add_listener, args=(Listener(),), daemon=True)

    other.start()
    other.join(timeout=5)

    assert len(circuit.machine.listeners) == 1


# A model: the rules once more, in plain lists.


class PlainCircuit:
    """What a circuit should do, as simply as it can be said."""

    def __init__(self, policy: BreakerPolicy) -> None:
        self.policy = policy
        self.state = "closed"
        self.streak = 0
        self.good_probes = 0
        self.cooldown = policy.cooldown_s
        self.opened_at = 0.0
        self.held = False
        self.current: list[int] = []
        self.probes: list[tuple[int, float]] = []

    def live(self, now: float) -> list[int]:
        return [permit for permit, until in self.probes if now < until]

    def may_begin(self, now: float) -> bool:
        if self.state == "closed":
            return True
        if self.held:
            return False
        if self.state == "open":
            return now >= self.opened_at + self.cooldown
        return len(self.live(now)) < self.policy.permits

    def begun(self, permit: int, now: float) -> None:
        if self.state == "closed":
            self.current.append(permit)
            return
        if self.state == "open":
            self.state, self.good_probes = "half_open", 0
        self.probes.append((permit, now + 2 * self.cooldown + 10))

    def counts(self, permit: int, now: float) -> bool:
        return permit in (self.current if self.state == "closed" else self.live(now))

    def good(self, permit: int, now: float, *, clears: bool) -> None:
        if not self.counts(permit, now):
            return
        if self.state == "closed":
            self.streak = 0 if clears else self.streak
            return
        self.put_back(permit)
        self.good_probes += 1
        if self.good_probes >= self.policy.permits:
            self.close()

    def bad(self, permit: int, now: float) -> None:
        if not self.counts(permit, now):
            return
        self.streak += 1
        if self.state == "half_open":
            self.cooldown = min(2 * self.cooldown, self.policy.max_cooldown_s)
            self.open(now)
        elif self.streak >= self.policy.threshold:
            self.open(now)

    def put_back(self, permit: int) -> None:
        self.probes = [one for one in self.probes if one[0] != permit]

    def open(self, now: float) -> None:
        self.state, self.opened_at, self.current, self.probes = "open", now, [], []

    def close(self) -> None:
        if self.state != "closed":
            self.current = []
        self.state, self.streak, self.probes = "closed", 0, []
        self.cooldown, self.held = self.policy.cooldown_s, False


class LikeThePlainOne(RuleBasedStateMachine):
    """Whatever happens in whatever order, the circuit agrees with the plain rules."""

    permits = Bundle("permits")

    @initialize(threshold=st.integers(1, 3), at_once=st.integers(1, 3))
    def begin(self, threshold: int, at_once: int) -> None:
        policy = BreakerPolicy(
            threshold=threshold, permits=at_once, cooldown_s=8.0, max_cooldown_s=20.0
        )
        self.hands = Hands(100.0)
        self.circuit = Circuit(policy, self.hands)
        self.plain = PlainCircuit(policy)

    @rule(step=st.sampled_from([0.5, 4.0, 8.0, 16.0, 25.5, 26.0, 50.0]))
    def time_passes(self, step: float) -> None:
        self.hands.at += step

    @rule()
    def the_cooldown_passes(self) -> None:
        self.hands.at += self.circuit.seconds_to_probe()

    @rule(target=permits)
    def acquire(self) -> Any:
        expected = self.plain.may_begin(self.hands.at)
        permit = self.circuit.acquire()
        assert (permit is not None) == expected
        if permit is None:
            return multiple()
        self.plain.begun(permit, self.hands.at)
        return permit

    @rule(permit=permits)
    def success(self, permit: int) -> None:
        self.circuit.success(permit)
        self.plain.good(permit, self.hands.at, clears=True)

    @rule(permit=permits)
    def answered(self, permit: int) -> None:
        self.circuit.answered(permit)
        self.plain.good(permit, self.hands.at, clears=False)

    @rule(permit=permits)
    def failure(self, permit: int) -> None:
        self.circuit.failure(permit, "OSError")
        self.plain.bad(permit, self.hands.at)

    @rule(permit=permits, verb=st.sampled_from(["neutral", "give_back"]))
    def put_back(self, permit: int, verb: str) -> None:
        getattr(self.circuit, verb)(permit)
        self.plain.put_back(permit)

    @rule()
    def force_open(self) -> None:
        self.circuit.force_open()
        self.plain.held = True
        if self.plain.state != "open":
            self.plain.open(self.hands.at)

    @rule()
    def force_close(self) -> None:
        self.circuit.force_close()
        self.plain.close()

    @rule()
    def reset(self) -> None:
        self.circuit.reset()
        self.plain.close()
        self.plain.current = []

    @invariant()
    def both_agree(self) -> None:
        circuit, plain, now = self.circuit, self.plain, self.hands.at
        assert (circuit.state, circuit.cooldown_s) == (plain.state, plain.cooldown)
        assert circuit.held_open == plain.held
        if plain.state == "closed":
            assert circuit.failures == plain.streak
        if plain.held or plain.state == "closed":
            return
        left = max(0.0, plain.opened_at + plain.cooldown - now) if plain.state == "open" else None
        hint = 0.0 if plain.may_begin(now) else 1.0
        assert circuit.seconds_to_probe() == (hint if left is None else left)


TestLikeThePlainOne = LikeThePlainOne.TestCase
TestLikeThePlainOne.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)


def test_other_numbers_leave_the_probe_that_is_out_the_only_one() -> None:
    hands = [0.0]
    circuit = Circuit(BreakerPolicy(threshold=1, cooldown_s=10), lambda: hands[0])
    circuit.failure(circuit.acquire() or 0, "down")
    hands[0] = 10.0
    probe = circuit.acquire()

    circuit.retune(BreakerPolicy(threshold=3, cooldown_s=20))

    assert probe is not None
    assert circuit.acquire() is None
    circuit.success(probe)
    assert circuit.state == "closed"


def test_other_numbers_keep_the_streak_and_the_widened_cooldown() -> None:
    hands = [0.0]
    circuit = Circuit(BreakerPolicy(threshold=3, cooldown_s=10), lambda: hands[0])
    circuit.failure(circuit.acquire() or 0, "down")
    circuit.failure(circuit.acquire() or 0, "down")
    circuit.retune(BreakerPolicy(threshold=3, cooldown_s=11))
    assert circuit.failures == 2
    circuit.failure(circuit.acquire() or 0, "down")
    hands[0] = 11.0
    circuit.failure(circuit.acquire() or 0, "down")
    assert circuit.cooldown_s == 22

    circuit.retune(BreakerPolicy(threshold=3, cooldown_s=5, max_cooldown_s=60))

    assert circuit.cooldown_s == 22


class Heard(pybreaker.CircuitBreakerListener):
    def __init__(self) -> None:
        self.said: list[str] = []

    def failure(self, cb: Any, exc: BaseException) -> None:
        self.said.append("failure")

    def success(self, cb: Any) -> None:
        self.said.append("success")


@pytest.mark.parametrize("is_heard", [True, False])
def test_a_row_of_failures_is_the_same_whether_somebody_listens_to_the_machine(
    is_heard: bool,
) -> None:
    circuit, heard = Circuit(BreakerPolicy(threshold=3), Hands()), Heard()
    if is_heard:
        circuit.machine.add_listener(heard)
    rows = []

    for well in (False, False, True, False, False, False):
        permit = circuit.acquire()
        assert permit is not None
        if well:
            circuit.success(permit)
        else:
            circuit.failure(permit, "OSError")
        rows.append((circuit.state, circuit.failures))

    assert [state for state, _ in rows] == ["closed"] * 5 + ["open"]
    assert [failures for _, failures in rows[:5]] == [1, 2, 0, 1, 2]
    assert heard.said == (
        ["failure", "failure", "success", "failure", "failure", "failure"] if is_heard else []
    )
