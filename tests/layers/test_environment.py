"""Flags of the environment: vectors, sources, summary, bounds, and a model."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from seawall.contract.errors import ConfigurationError
from seawall.layers.environment import (
    MAX_REPAIR,
    NOTHING_KNOWN,
    STANDARD_FLAGS,
    STANDARD_REPAIRS,
    Environment,
)

TESTS = Path(__file__).parents[1]
VECTORS = {
    case["id"]: case
    for case in json.loads((TESTS / "vectors" / "environment.json").read_text())["cases"]
}


class Hands:
    """A clock moved by hand."""

    def __init__(self) -> None:
        self.at = 0.0

    def __call__(self) -> float:
        return self.at


def environment(**settings: Any) -> tuple[Environment, Hands]:
    hands = Hands()
    return Environment(hands, **settings), hands


@pytest.mark.parametrize("vector", ["en-01", "en-02", "en-06"])
def test_a_vector_reads_what_it_expects(vector: str) -> None:
    case = VECTORS[vector]
    known, hands = environment()
    reads = []

    for step in case["steps"]:
        hands.at = step.get("at_ms", 0) / 1000
        if "set" in step:
            ttl_ms = step.get("ttl_ms")
            known.set(step["set"], step["value"], ttl_s=ttl_ms and ttl_ms / 1000)
        else:
            reads.append(known.get(step["get"]))

    expected = case["expect"]
    assert reads == expected.get("reads", [expected.get("read")])


def test_vector_en_05_the_summary_has_the_standard_order_then_names_and_no_expired_flag() -> None:
    known, hands = environment()
    assert known.summary() == NOTHING_KNOWN
    names = {"access": "accessibility", "net": "network"}
    for flag, value in VECTORS["en-05"]["given"]["flags"].items():
        known.set(names.get(flag, flag), value)
    known.set("alpha", value=True, ttl_s=1)
    known.set("terminal_session", value=True, ttl_s=5)
    hands.at = 1.0

    assert known.summary() == (
        "Environment: accessibility on, network off, terminal_session on, power on, zeta on."
    )


def test_the_nine_standard_flags_stand_in_their_order() -> None:
    known, _ = environment()
    for flag in reversed(STANDARD_FLAGS):
        known.set(flag, value=True)

    assert tuple(known.flags()) == (
        "accessibility",
        "keyboard",
        "network",
        "root",
        "shizuku",
        "ubuntu",
        "terminal_session",
        "browser",
        "power",
    )


@pytest.mark.parametrize("flag", STANDARD_FLAGS)
def test_each_standard_flag_has_a_repair_of_its_own(flag: str) -> None:
    known, _ = environment()

    assert known.repair(flag) == STANDARD_REPAIRS[flag]


def test_any_other_flag_has_the_general_repair() -> None:
    known, _ = environment()

    assert "printer" in known.repair("printer")


def test_a_repair_stays_through_later_settings_and_goes_with_the_flag() -> None:
    known, _ = environment()
    known.set("printer", value=False, repair="  Load paper.  ")
    known.set("printer", value=True)
    assert known.repair("printer") == "Load paper."

    known.set("printer", value=None)

    assert known.repair("printer") != "Load paper."


def test_a_repair_is_cut_to_its_bound() -> None:
    known, _ = environment()

    known.set("printer", value=False, repair="x" * 10_000)

    assert known.repair("printer") == "x" * MAX_REPAIR


# Sources.


def test_a_source_is_asked_only_when_somebody_reads() -> None:
    known, _ = environment()
    asked = []

    def ask() -> bool:
        asked.append(1)
        return True

    known.source("network", ask)
    assert asked == []

    assert known.get("network") is True
    assert known.get("network") is True
    assert len(asked) == 2


def test_a_source_is_not_asked_again_while_its_answer_is_fresh() -> None:
    known, hands = environment()
    answers = [True, False]
    known.source("network", lambda: answers.pop(0), fresh_s=10)

    reads = []
    for hands.at in (0.0, 9.9, 10.0, 19.9):
        reads.append(known.get("network"))

    assert reads == [True, True, False, False]


def test_what_was_set_is_believed_until_it_expires_and_then_the_source_is_asked() -> None:
    known, hands = environment()
    known.source("network", lambda: True)
    known.set("network", value=False, ttl_s=5)
    assert known.get("network") is False

    hands.at = 5.0

    assert known.get("network") is True


def test_taking_a_flag_back_gives_it_back_to_its_source() -> None:
    known, _ = environment()
    known.source("network", lambda: False, repair="Plug it in.")
    known.set("network", value=True)

    known.set("network", value=None)

    assert known.get("network") is False
    assert known.repair("network") == "Plug it in."


def raising() -> bool:
    raise OSError("no such device")


def recursing() -> bool:
    return recursing()


@pytest.mark.parametrize("ask", [raising, recursing])
def test_a_source_that_raises_leaves_its_flag_unknown(ask: Any) -> None:
    known, _ = environment()
    known.source("network", ask)

    assert known.get("network") is None
    assert known.summary() == NOTHING_KNOWN


def test_a_source_that_raises_is_left_alone_while_its_answer_would_be_fresh() -> None:
    known, hands = environment()
    asked = []

    def ask() -> bool:
        asked.append(1)
        raise OSError("no such device")

    known.source("network", ask, fresh_s=10)
    for hands.at in (0.0, 5.0, 10.0):
        assert known.get("network") is None

    assert len(asked) == 2


@pytest.mark.parametrize("said", [None, 0, 1, "false", "", []])
def test_a_source_that_gives_no_boolean_leaves_its_flag_unknown(said: Any) -> None:
    known, _ = environment()
    known.source("network", lambda: said)

    assert known.get("network") is None


def test_a_source_must_be_a_plain_function() -> None:
    known, _ = environment()

    async def ask() -> bool:
        return True

    for wrong in (ask, True):
        with pytest.raises(ConfigurationError, match="'network' must be a function"):
            known.source("network", wrong)  # type: ignore[arg-type]  # the mistake under test


# What is refused.


@pytest.mark.parametrize("name", ["", " network", "a\nb", "x" * 65, 7, None])
def test_a_name_that_would_spoil_a_prompt_is_refused(name: Any) -> None:
    known, _ = environment()

    with pytest.raises(ConfigurationError, match="no name for an environment flag"):
        known.set(name, value=True)


@pytest.mark.parametrize("ttl_s", [0, -1, math.nan, math.inf, True])
def test_a_time_to_live_that_means_nothing_is_refused(ttl_s: float) -> None:
    known, _ = environment()

    with pytest.raises(ConfigurationError, match="ttl_s of environment flag 'network'"):
        known.set("network", value=True, ttl_s=ttl_s)
    with pytest.raises(ConfigurationError, match="fresh_s of environment flag 'network'"):
        known.source("network", lambda: True, fresh_s=ttl_s)
    assert known.flags() == {}


@pytest.mark.parametrize("value", [0, 1, "off"])
def test_a_value_that_is_no_boolean_is_refused(value: Any) -> None:
    known, _ = environment()

    with pytest.raises(ConfigurationError, match="True, False or None"):
        known.set("network", value)


def test_one_flag_too_many_is_refused_and_known_ones_can_still_be_changed() -> None:
    known, _ = environment(max_flags=2)
    known.set("a", value=True)
    known.source("b", lambda: True)

    with pytest.raises(ConfigurationError, match="one too many"):
        known.set("c", value=True)
    known.set("a", value=False)
    known.set("b", value=False)

    assert known.flags() == {"a": False, "b": False}


def test_expired_flags_make_room_for_new_ones() -> None:
    known, hands = environment(max_flags=1)
    known.set("a", value=True, ttl_s=1, repair="Wait.")
    hands.at = 1.0

    known.set("b", value=True)

    assert known.flags() == {"b": True}
    assert known.repair("a") != "Wait."


class EnvironmentModel(RuleBasedStateMachine):
    """A dictionary of what was said and until when tells the same as the environment."""

    flags = st.sampled_from(["network", "power", "b", "a"])

    def __init__(self) -> None:
        super().__init__()
        self.known, self.hands = environment()
        self.model: dict[str, tuple[bool, float]] = {}

    @rule(flag=flags, value=st.none() | st.booleans(), ttl_s=st.none() | st.integers(1, 5))
    def say(self, flag: str, value: bool | None, ttl_s: int | None) -> None:
        self.known.set(flag, value, ttl_s)
        self.model.pop(flag, None)
        if value is not None:
            self.model[flag] = (value, math.inf if ttl_s is None else self.hands.at + ttl_s)

    @rule(seconds=st.integers(0, 4))
    def wait(self, seconds: int) -> None:
        self.hands.at += seconds

    @invariant()
    def they_agree(self) -> None:
        expected = {f: v for f, (v, until) in self.model.items() if self.hands.at < until}
        assert self.known.flags() == expected
        for flag in ("network", "power", "b", "a", "never"):
            assert self.known.get(flag) is expected.get(flag)


TestEnvironmentModel = EnvironmentModel.TestCase
