"""Sections become rules; presets are resolved."""

from __future__ import annotations

from typing import Any

import pytest

from seawall.contract.policy import PRESETS, RunPolicy
from seawall.policy.changes import Changes
from seawall.policy.explain import Given, Rule, policy_from, settle
from seawall.policy.origins import KeyPath, Origins, Place
from seawall.policy.rules import MAX_DEPTH, Rules

TOOL = ("tools", "a")


def rules(sections: dict[KeyPath, Any], origins: Origins | None = None) -> Rules:
    return Rules(sections, origins or Origins())


def policy_of(rule: Rule) -> RunPolicy:
    return policy_from(settle([rule]))


def test_single_values_do_not_make_a_whole_rule() -> None:
    rule = rules({TOOL: Changes(timeout_s=5)}).rule(TOOL)

    assert not rule.whole
    assert rule.values == {"timeout_s": Given(5, "tools.a")}


def test_a_rule_with_a_preset_starts_from_it() -> None:
    rule = rules({TOOL: Changes(preset="quick_read", max_retries=4)}).rule(TOOL)

    assert rule.whole
    assert policy_of(rule).max_retries == 4
    assert policy_of(rule).rate == "120/minute"


def test_a_whole_policy_is_taken_as_it_is() -> None:
    policy = RunPolicy(timeout_s=3)

    assert policy_of(rules({TOOL: policy}).rule(TOOL)) == policy


def test_a_default_of_single_values_starts_without_limits() -> None:
    rule = rules({("default",): Changes(timeout_s=5)}).default()

    assert rule.whole
    assert policy_of(rule) == RunPolicy(timeout_s=5)


def test_a_default_may_start_from_a_preset() -> None:
    rule = rules({("default",): Changes(preset="network")}).default()

    assert policy_of(rule) == PRESETS["network"]


def test_a_preset_may_be_changed() -> None:
    found = rules(
        {("presets", "network"): Changes(rate="5/minute"), TOOL: Changes(preset="network")}
    )

    assert policy_of(found.rule(TOOL)).rate == "5/minute"
    assert policy_of(found.rule(TOOL)).max_retries == 2
    assert policy_of(found.by_annotations("open world", "network")).rate == "5/minute"


def test_a_preset_of_ones_own_starts_without_limits() -> None:
    found = rules({("presets", "mine"): Changes(timeout_s=3), TOOL: Changes(preset="mine")})

    assert policy_of(found.rule(TOOL)) == RunPolicy(timeout_s=3)


def test_a_preset_may_be_replaced_by_a_whole_policy() -> None:
    policy = RunPolicy(timeout_s=3)

    found = rules({("presets", "network"): policy})

    assert policy_of(found.by_annotations("open world", "network")) == policy


def test_a_preset_may_start_from_another_that_is_changed() -> None:
    found = rules(
        {
            ("presets", "mine"): Changes(preset="network", cost=2),
            ("presets", "network"): Changes(rate="5/minute"),
            TOOL: Changes(preset="mine"),
        }
    )

    assert policy_of(found.rule(TOOL)).rate == "5/minute"
    assert policy_of(found.rule(TOOL)).cost == 2


def test_a_ready_made_preset_that_names_itself_starts_from_what_it_was() -> None:
    found = rules({("presets", "network"): Changes(preset="network", cost=2)})

    assert policy_of(found.by_annotations("", "network")).max_retries == 2


@pytest.mark.parametrize(
    ("sections", "fault"),
    [
        (
            {TOOL: Changes(preset="netwrk")},
            "tools.a.preset: 'netwrk' is unknown; did you mean network?",
        ),
        (
            {("presets", "b"): Changes(), TOOL: Changes(preset="zzz")},
            (
                "tools.a.preset: 'zzz' is unknown;"
                " known are quick_read, network, mutating, ladder, legacy, b"
            ),
        ),
        (
            {("presets", "a"): Changes(preset="a")},
            "presets.a.preset: 'a' starts from this preset in turn; take one of the two out",
        ),
        (
            {("presets", "a"): Changes(preset="b"), ("presets", "b"): Changes(preset="a")},
            "presets.b.preset: 'a' starts from this preset in turn; take one of the two out",
        ),
    ],
)
def test_a_preset_that_cannot_be_is_noted_once(sections: dict[KeyPath, Any], fault: str) -> None:
    origins = Origins()

    found = rules(sections, origins)
    if TOOL in sections:
        found.rule(TOOL)

    assert list(map(str, origins.faults)) == [fault]


def test_a_chain_of_presets_has_an_end() -> None:
    def chain(length: int) -> dict[KeyPath, Any]:
        last: dict[KeyPath, Any] = {("presets", f"p{length}"): Changes(cost=2)}
        return {
            ("presets", f"p{number}"): Changes(preset=f"p{number + 1}")
            for number in range(1, length)
        } | last

    origins = Origins()

    rules(chain(MAX_DEPTH), origins)
    assert origins.faults == []
    rules(chain(MAX_DEPTH + 1), origins)
    assert "more than 16 presets start from one another" in str(origins.faults[0])


def test_a_value_says_through_which_presets_it_came_and_from_which_line() -> None:
    places = {
        TOOL: Place("x.toml", 8),
        (*TOOL, "preset"): Place("x.toml", 9),
        ("presets", "mine"): Place("x.toml", 1),
        ("presets", "mine", "preset"): Place("x.toml", 2),
        ("presets", "mine", "cost"): Place("x.toml", 3),
    }
    sections: dict[KeyPath, Any] = {
        TOOL: Changes(preset="mine", timeout_s=1),
        ("presets", "mine"): Changes(preset="network", cost=2),
    }

    values = rules(sections, Origins(places)).rule(TOOL).values

    assert values["timeout_s"].rule == "tools.a (x.toml:8)"
    assert values["cost"].rule == "tools.a (x.toml:9) -> preset mine (x.toml:3)"
    assert values["rate"].rule == ("tools.a (x.toml:9) -> preset mine (x.toml:2) -> preset network")


def test_the_rule_by_annotations_names_hint_and_preset() -> None:
    values = rules({}).by_annotations("open world", "network").values

    assert values["rate"] == Given("30/minute", "annotations: open world -> preset network")
