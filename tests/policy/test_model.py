"""Which policy a tool runs under."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from seawall.contract.annotations import Annotations
from seawall.contract.errors import ConfigurationError
from seawall.contract.policy import PRESETS, BreakerPolicy, RunPolicy
from seawall.contract.tool import Tool
from seawall.policy.changes import Changes, Family
from seawall.policy.model import Policies

VECTORS = {
    case["id"]: case
    for case in json.loads(
        (Path(__file__).parents[1] / "vectors" / "policies.json").read_text(encoding="utf-8")
    )["cases"]
}

READING = Annotations.for_reading()
OUTSIDE = Annotations.for_reading(open_world=True)


async def answer(arguments: dict[str, Any], context: Any) -> str:
    return "done"


def a_tool(name: str = "a", annotations: Annotations | None = None, **fields: Any) -> Tool:
    return Tool(name, "", {}, answer, annotations=annotations or Annotations(), **fields)


@pytest.mark.parametrize(
    ("tool", "preset", "reason"),
    [
        (a_tool(annotations=OUTSIDE), "network", "open world"),
        (a_tool(annotations=Annotations(open_world=True)), "network", "open world"),
        (a_tool(annotations=READING), "quick_read", "retry-safe"),
        (a_tool(annotations=Annotations(read_only=True)), "quick_read", "retry-safe"),
        (a_tool(annotations=Annotations.for_overwriting()), "quick_read", "retry-safe"),
        (
            a_tool(annotations=Annotations.for_changing()),
            "mutating",
            "neither open world nor retry-safe",
        ),
        (
            a_tool(annotations=Annotations.for_destroying()),
            "mutating",
            "neither open world nor retry-safe",
        ),
        (a_tool(), "mutating", "none given"),
        (a_tool(annotations=Annotations(sensitive=True)), "mutating", "none given"),
        (a_tool(imported=True), "network", "open world was not denied"),
        (
            a_tool(annotations=Annotations(read_only=True), imported=True),
            "network",
            "open world was not denied",
        ),
        (a_tool(annotations=READING, imported=True), "quick_read", "retry-safe"),
        (
            a_tool(annotations=Annotations(open_world=False), imported=True),
            "mutating",
            "neither open world nor retry-safe",
        ),
    ],
)
def test_without_a_word_the_hints_decide(tool: Tool, preset: str, reason: str) -> None:
    policies = Policies()

    assert policies.for_tool(tool) == PRESETS[preset]
    assert policies.explain(tool)["timeout_s"].rule == f"annotations: {reason} -> preset {preset}"


def test_a_given_default_replaces_the_rule_by_annotations() -> None:
    policies = Policies(default=RunPolicy(timeout_s=5))

    assert policies.for_tool(a_tool(annotations=OUTSIDE)) == RunPolicy(timeout_s=5)


def test_rules_compose_from_the_least_to_the_most_specific() -> None:
    policies = Policies(
        RunPolicy(timeout_s=1, max_threads=1, cost=1, max_retries=1, max_concurrency=1),
        {
            "git_push": Changes(max_concurrency=6),
            "git_p*": Changes(max_retries=5, max_concurrency=5),
            "git_*": Changes(cost=4, max_retries=4, max_concurrency=4),
        },
        {
            "own": Changes(max_threads=3, cost=3, max_retries=3, max_concurrency=3),
            "all": Family(
                match="*",  # type: ignore[arg-type]  # what a user may write
                policy=Changes(
                    timeout_s=2, max_threads=2, cost=2, max_retries=2, max_concurrency=2
                ),
            ),
        },
    )

    found = policies.for_tool(a_tool("git_push", family="own"))

    assert found == RunPolicy(timeout_s=2, max_threads=3, cost=4, max_retries=5, max_concurrency=6)


def test_families_that_choose_a_tool_apply_in_the_order_they_are_written() -> None:
    def family(cost: int) -> Family:
        return Family(tags=("x",), policy=Changes(cost=cost))

    tool = a_tool(tags=("x",))

    assert Policies(families={"a": family(1), "b": family(2)}).for_tool(tool).cost == 2
    assert Policies(families={"b": family(2), "a": family(1)}).for_tool(tool).cost == 1


def test_of_equally_long_patterns_the_later_one_wins() -> None:
    tools = {"a*": Changes(cost=1), "*b": Changes(cost=2)}

    assert Policies(tools=tools).for_tool(a_tool("ab")).cost == 2


def test_a_preset_in_a_rule_forgets_what_less_specific_rules_say() -> None:
    policies = Policies(
        tools={"git_*": Changes(cost=5), "git_log": Changes(preset="quick_read", max_retries=3)}
    )

    found = policies.for_tool(a_tool("git_log"))

    assert (found.cost, found.max_retries, found.rate) == (1, 3, "120/minute")


def test_a_whole_policy_in_a_rule_forgets_what_less_specific_rules_say() -> None:
    policies = Policies(tools={"git_*": Changes(cost=5), "git_log": RunPolicy(timeout_s=3)})

    assert policies.for_tool(a_tool("git_log")) == RunPolicy(timeout_s=3)


def test_the_default_lets_a_person_take_their_time() -> None:
    policies = Policies.default()

    assert policies.for_tool(a_tool("ask_user")) == PRESETS["legacy"]
    assert policies.for_tool(a_tool("ask_user_choice")) == PRESETS["legacy"]
    assert policies.for_tool(a_tool("ask_user_later")) == PRESETS["mutating"]


def test_rules_that_do_not_go_together_are_told_with_tool_and_rules() -> None:
    policies = Policies(
        tools={"a": Changes(breaker={"cooldown_s": 300})},
        families={"f": Changes(breaker={"max_cooldown_s": 600})},
    )

    assert policies.for_tool(a_tool(family="f")).breaker == BreakerPolicy(
        cooldown_s=300, max_cooldown_s=600
    )
    with pytest.raises(ConfigurationError) as caught:
        policies.for_tool(a_tool())
    assert str(caught.value) == (
        "the policy of a: breaker.max_cooldown_s: is below cooldown_s (300);"
        " they are from annotations: none given -> preset mutating and tools.a"
    )


def test_what_cannot_work_is_refused_when_the_policies_are_made() -> None:
    with pytest.raises(ConfigurationError) as caught:
        Policies(
            RunPolicy(rate="0/minute"),
            {"a": Changes(preset="no"), "b*": Changes(timeout_s=-1)},
            {"f": Family(annotations={"x": True})},
        )

    assert [fault.key for fault in caught.value.faults] == [
        "default.rate",
        'tools."b*".timeout_s',
        "families.f.annotations.x",
        "tools.a.preset",
    ]


def test_an_explanation_has_the_rule_of_every_value() -> None:
    policies = Policies(
        tools={"a": Changes(timeout_s=5, breaker={"threshold": 3}), "?": Changes(rate=None)},
        families={"f": Changes(cost=2)},
    )

    given = policies.explain(a_tool(family="f", annotations=OUTSIDE))

    assert {key: given[key].rule for key in ("timeout_s", "breaker.threshold", "rate", "cost")} == {
        "timeout_s": "tools.a",
        "breaker.threshold": "tools.a",
        "rate": 'tools."?"',
        "cost": "families.f",
    }
    assert given["breaker.threshold"].value == 3
    assert given["grace_s"].rule == "annotations: open world -> preset network"


@pytest.mark.parametrize("name", ["a", "git_log", "ask_user", "other"])
def test_an_explanation_has_the_values_that_the_tool_runs_under(name: str) -> None:
    policies = Policies(
        tools={
            "a": Changes(breaker=None),
            "git_*": Changes(timeout_s=3, breaker={"permits": 2}),
            "ask_user": Changes(preset="legacy"),
        }
    )
    policy = policies.for_tool(a_tool(name))

    for key, given in policies.explain(a_tool(name)).items():
        first, _, part = key.partition(".")
        value = getattr(policy, first)
        assert given.value == (getattr(value, part) if part else value)


@pytest.mark.parametrize(
    ("name", "named"), [("a", True), ("b", False), ("c", True), ("d1", False), ("e", False)]
)
def test_a_timeout_is_named_where_the_exact_name_gives_one(name: str, *, named: bool) -> None:
    policies = Policies(
        tools={
            "a": Changes(timeout_s=5),
            "b": Changes(preset="network"),
            "c": RunPolicy(timeout_s=5),
            "d?": Changes(timeout_s=5),
        }
    )

    assert policies.names_timeout(a_tool(name)) is named


def test_notes_tell_all_that_was_probably_not_meant() -> None:
    policies = Policies(
        Changes(rate="5/minute"),
        {"slow": Changes(timeout_s=5), "htp_check": Changes(cost=2), "ask_user": Changes(cost=1)},
    )

    assert policies.notes([a_tool("slow", duration=60), a_tool("http_check", duration=60)]) == (
        (
            "default gives neither preset nor timeout_s: tools of which nothing else is said have"
            " no timeout (write timeout_s = false if that is meant)"
        ),
        "tools.slow gives slow 5 s, although it takes 60 s by its own word",
        "tools.htp_check fits no tool; did you mean http_check?",
    )


def test_a_sound_policy_has_no_notes() -> None:
    assert Policies.default().notes([a_tool("calculate"), a_tool("slow", duration=600)]) == ()


def test_ten_thousand_tools_and_two_hundred_patterns_take_less_than_a_second() -> None:
    patterns = {f"server{n}__*": Changes(timeout_s=n + 1) for n in range(150)}
    policies = Policies(tools={**patterns, **{f"*_x{n}": Changes(cost=n + 1) for n in range(50)}})
    tools = [a_tool(f"server{n % 300}__read_x{n % 97}") for n in range(10_000)]
    started = time.process_time()

    for tool in tools:
        policies.for_tool(tool)

    assert time.process_time() - started < 1


def test_resolved_policies_that_are_remembered_have_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seawall.policy.model._MOST_REMEMBERED", 3)
    policies = Policies(tools={f"t{n}": Changes(cost=n + 1) for n in range(10)})

    for n in range(10):
        assert policies.for_tool(a_tool(f"t{n}")).cost == n + 1

    assert len(policies._composed) <= 3


def test_the_presets_have_the_known_figures() -> None:
    for name, figures in VECTORS["rt-21"]["expect"]["values"].items():
        policy = Policies(tools={"a": Changes(preset=name)}).for_tool(a_tool())
        assert (policy.timeout_s or 0) * 1000 == figures["timeout_ms"]
        assert policy.attempts - 1 == figures["retries"]
        assert policy.base_delay_s * 1000 == figures.get("base_ms", policy.base_delay_s * 1000)
        quota = figures["quota"]
        assert policy.rate == (None if quota is None else f"{quota}/minute")


def test_the_order_of_rules_is_the_known_one() -> None:
    case = VECTORS["rt-22"]
    hints = {
        "open_world_read": OUTSIDE,
        "read_only": READING,
        "idempotent_write": Annotations.for_overwriting(),
        "mutating": Annotations.for_changing(),
    }
    marks = {mark: RunPolicy(cost=number) for number, mark in enumerate(("P1", "P2", "P3"), 10)}
    expected: dict[str, RunPolicy] = {**PRESETS, **marks, "network class": PRESETS["network"]}
    given = case["given"]
    policies = Policies(
        tools={
            **{name: marks[mark] for name, mark in given["overrides"].items()},
            **{f"{name}*": marks[mark] for name, mark in given["prefix_overrides"].items()},
            # The question tools are in the default's table.
            "ask_user": Changes(preset="legacy"),
        }
    )

    for step, policy in zip(case["steps"], case["expect"]["policies"], strict=True):
        asked = step["resolve"]
        found = policies.for_tool(a_tool(asked["id"], hints.get(asked.get("annotations"))))
        name = policy if isinstance(policy, str) else "legacy"
        assert found == expected[name], asked


@pytest.mark.parametrize("rate", [0, -5])
def test_a_rate_of_nothing_is_refused_and_is_no_licence(rate: int) -> None:
    assert VECTORS["tb-07"]["given"] == {"limit_per_minute": 0}

    with pytest.raises(ConfigurationError, match=r"tools\.a\.rate"):
        Policies(tools={"a": RunPolicy(rate=f"{rate}/minute")})


@pytest.mark.parametrize("step", VECTORS["br-22"]["steps"])
def test_a_breaker_that_makes_no_sense_is_refused(step: dict[str, Any]) -> None:
    values = {
        key.replace("_ms", "_s"): value / 1000 if key.endswith("_ms") else value
        for key, value in step["build"].items()
    }

    with pytest.raises(ConfigurationError, match=r"tools\.a\.breaker\."):
        Policies(tools={"a": Changes(breaker=values)})
