"""Rules laid over each other."""

from __future__ import annotations

from typing import Any

import pytest

from seawall.contract.policy import PRESETS, BreakerPolicy, RunPolicy
from seawall.policy.changes import RUN_FIELDS, SECTION_FIELDS, Changes, flattened
from seawall.policy.explain import Given, Rule, explained, policy_from, settle


def whole(policy: RunPolicy, said: str = "base") -> Rule:
    return Rule({key: Given(v, said) for key, v in flattened(policy).items()}, whole=True)


def change(said: str = "over", **values: Any) -> Rule:
    return Rule({key: Given(v, said) for key, v in Changes(**values).values.items()})


@pytest.mark.parametrize("name", PRESETS)
def test_one_whole_rule_gives_its_own_policy(name: str) -> None:
    assert policy_from(settle([whole(PRESETS[name])])) == PRESETS[name]


def test_a_later_rule_changes_only_what_it_names() -> None:
    found = settle([whole(PRESETS["network"]), change(timeout_s=5)])

    assert found["timeout_s"] == Given(5, "over")
    assert found["max_retries"] == Given(2, "base")


def test_a_whole_rule_forgets_what_was_before() -> None:
    rules = [whole(PRESETS["network"]), change(cost=3), whole(RunPolicy(timeout_s=7), "new")]

    assert policy_from(settle(rules)) == RunPolicy(timeout_s=7)
    assert {given.rule for given in settle(rules).values()} == {"new"}


@pytest.mark.parametrize(
    ("changes", "breaker"),
    [
        ([{"breaker": {"threshold": 3}}], BreakerPolicy(threshold=3)),
        ([{"breaker": None}], None),
        ([{"breaker": None}, {"breaker": True}], BreakerPolicy()),
        (
            [{"breaker": {"threshold": 3}}, {"breaker": {"permits": 2}}],
            BreakerPolicy(threshold=3, permits=2),
        ),
        (
            [{"breaker": {"threshold": 3}}, {"breaker": None}, {"breaker": {"permits": 2}}],
            BreakerPolicy(permits=2),
        ),
        ([{"breaker": BreakerPolicy(permits=4)}, {"breaker": True}], BreakerPolicy(permits=4)),
    ],
)
@pytest.mark.parametrize("base", ["network", "legacy"])
def test_breakers_are_changed_taken_away_and_given(
    base: str, changes: list[dict[str, Any]], breaker: BreakerPolicy | None
) -> None:
    rules = [whole(PRESETS[base]), *(change(**values) for values in changes)]

    assert policy_from(settle(rules)).breaker == breaker


def test_settled_values_may_be_laid_out_again() -> None:
    once = Rule(settle([whole(PRESETS["legacy"]), change(breaker={"threshold": 3})]), whole=True)

    assert policy_from(settle([whole(PRESETS["network"]), once])).breaker == BreakerPolicy(
        threshold=3
    )


def test_a_breaker_that_a_rule_brings_in_is_all_from_that_rule() -> None:
    found = settle([whole(PRESETS["legacy"]), change(breaker={"threshold": 3})])

    assert found["breaker.threshold"] == Given(3, "over")
    assert found["breaker.cooldown_s"] == Given(15.0, "over")


def test_an_explanation_has_every_field_in_order_with_a_dotted_breaker() -> None:
    table = explained(settle([whole(PRESETS["network"])]))

    position = RUN_FIELDS.index("breaker")
    assert list(table) == [
        *RUN_FIELDS[:position],
        *(f"breaker.{name}" for name in SECTION_FIELDS["breaker"]),
        *RUN_FIELDS[position + 1 :],
    ]


def test_an_explanation_says_that_there_is_no_breaker() -> None:
    table = explained(settle([whole(PRESETS["network"]), change(breaker=None)]))

    assert table["breaker"] == Given(None, "over")
    assert list(table) == list(RUN_FIELDS)
