"""Whether rules can work, before there is a tool."""

from __future__ import annotations

from typing import Any

import pytest

from seawall.contract.errors import ConfigurationError
from seawall.contract.policy import PRESETS, BreakerPolicy, RunPolicy
from seawall.policy.changes import Changes, Family
from seawall.policy.checks import sound_sections
from seawall.policy.origins import Origins


def faults(tools: Any = None, **given: Any) -> list[str]:
    origins = Origins()
    sections: dict[str, Any] = {"default": None, "families": {}, "presets": {}, **given}
    sound_sections(tools=tools or {}, origins=origins, **sections)
    return list(map(str, origins.faults))


@pytest.mark.parametrize("name", PRESETS)
def test_the_presets_are_sound(name: str) -> None:
    assert faults({"a": PRESETS[name]}) == []


def test_sections_are_given_by_their_path() -> None:
    default, tool, family, preset = (Changes(cost=number) for number in range(1, 5))

    found = sound_sections(
        default, {"a": tool}, {"b": Family(policy=family)}, {"c": preset}, Origins()
    )

    assert found == {
        ("default",): default,
        ("tools", "a"): tool,
        ("families", "b"): family,
        ("presets", "c"): preset,
    }


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"timeout_s": 0}, "tools.a.timeout_s: must be above 0"),
        ({"max_retries": -1}, "tools.a.max_retries: must be at least 0"),
        ({"delays_s": [1, -1]}, "tools.a.delays_s: must not be negative"),
        ({"grace_s": None}, "tools.a.grace_s: needs a value"),
        ({"breaker": {"cooldown_s": None}}, "tools.a.breaker.cooldown_s: needs a value"),
        ({"breaker": {"threshold": 0}}, "tools.a.breaker.threshold: must be at least 1"),
        ({"breaker": {"mode": "of"}}, "tools.a.breaker.mode: is 'of'; use one of on, shadow, off"),
        ({"coercion": "kind"}, "tools.a.coercion: is 'kind'; use one of careful, lenient, off"),
        ({"rate": "0/minute"}, "tools.a.rate: is '0/minute'; it must be above 0"),
        ({"rate": "-5/minute"}, "tools.a.rate: is '-5/minute'; give one rate"),
        ({"rate": "often"}, "tools.a.rate: is 'often'; give one rate"),
        ({"rate": 5}, "tools.a.rate: is 5; give one rate"),
        ({"rate_strategy": "leaky"}, "tools.a.rate_strategy: is 'leaky'; use one of token-bucket"),
        ({"rate": "5/minute", "cost": 6}, "tools.a.cost: is 6, more than 5/minute can ever grant"),
    ],
)
def test_a_value_that_cannot_work_is_told_at_its_key(values: dict[str, Any], message: str) -> None:
    found = faults({"a": Changes(**values)})

    assert len(found) == 1
    assert found[0].startswith(message)


def test_the_rate_of_a_whole_policy_is_read_too() -> None:
    found = faults({"a": RunPolicy(rate="0/minute", rate_strategy="leaky")})

    assert len(found) == 2


def test_everything_wrong_is_told_at_once() -> None:
    bad = Changes(timeout_s=-1, rate="x", breaker={"threshold": 0})

    found = faults({"a": bad}, default=bad, families={"b": Family(policy=bad)}, presets={"c": bad})

    assert len(found) == 12


@pytest.mark.parametrize("elsewhere", ["families", "presets"])
def test_a_long_cooldown_is_sound_where_another_rule_may_raise_the_ceiling(elsewhere: str) -> None:
    raised = Changes(breaker={"max_cooldown_s": 600})
    other = {"families": {"b": Family(policy=raised)}, "presets": {"b": raised}}[elsewhere]
    long = {"a": Changes(breaker={"cooldown_s": 300})}

    assert faults(long, **{elsewhere: other}) == []
    assert faults(long) == ["tools.a.breaker.max_cooldown_s: is below cooldown_s (300)"]


def test_a_whole_policy_raises_the_ceiling_as_well() -> None:
    breaker = BreakerPolicy(max_cooldown_s=600)

    assert (
        faults({"a": Changes(breaker={"cooldown_s": 300})}, default=RunPolicy(breaker=breaker))
        == []
    )


def test_what_is_no_rule_is_refused_by_name() -> None:
    found = faults({"a": {"timeout_s": 5}}, families={"b": Family(policy=5)})  # type: ignore[arg-type]  # wrong on purpose

    assert found == [
        "tools.a: is a dict; give a RunPolicy or Changes",
        "families.b: is a int; give a RunPolicy or Changes",
    ]


def test_a_hint_that_is_unknown_is_told_with_what_was_meant() -> None:
    found = faults(families={"b": Family(annotations={"readonly": True})})

    assert found == ["families.b.annotations.readonly: is unknown; did you mean read_only?"]


def test_a_rule_refused_raises_when_it_is_asked_for() -> None:
    origins = Origins()
    sound_sections(Changes(timeout_s=0), {}, {}, {}, origins)

    with pytest.raises(ConfigurationError, match=r"default\.timeout_s"):
        origins.check()
