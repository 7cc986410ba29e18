"""What another policy would change."""

from __future__ import annotations

from typing import Any

from seawall.contract.annotations import Annotations, Risk
from seawall.contract.policy import RunPolicy
from seawall.contract.tool import Tool
from seawall.policy.changes import Changes
from seawall.policy.differences import Difference, differences
from seawall.policy.model import Policies
from seawall.policy.settings import RiskSettings


async def answer(arguments: dict[str, Any], context: Any) -> str:
    return "done"


TOOLS = [
    Tool(name, "", {}, answer, annotations=Annotations.for_reading()) for name in ("read", "look")
]


def test_equal_policies_have_no_difference() -> None:
    assert differences(Policies(), Policies(), TOOLS) == []


def test_a_value_that_differs_is_told_with_both_rules() -> None:
    found = differences(Policies(), Policies(tools={"read": Changes(timeout_s=5)}), TOOLS)

    assert found == [
        Difference(
            "read",
            "timeout_s",
            30,
            5,
            "annotations: retry-safe -> preset quick_read",
            "tools.read",
        )
    ]


def test_the_same_value_by_another_rule_is_no_difference() -> None:
    after = Policies(tools={"read": Changes(timeout_s=30)})

    assert differences(Policies(), after, TOOLS) == []


def test_a_breaker_that_goes_is_one_difference() -> None:
    after = Policies(tools={"read": Changes(breaker=None)})

    (found,) = differences(Policies(), after, TOOLS)

    assert (found.tool, found.key, found.before, found.after) == ("read", "breaker", True, False)


def test_a_breaker_that_comes_is_one_difference() -> None:
    before = Policies(tools={"read": RunPolicy(), "look": RunPolicy()})
    after = Policies(tools={"read": Changes(preset="legacy", breaker={}), "look": RunPolicy()})

    (found,) = differences(before, after, TOOLS)

    assert (found.key, found.before, found.after) == ("breaker", False, True)


def test_sections_that_hold_for_all_tools_are_compared() -> None:
    after = Policies(risk=RiskSettings(ask_from=Risk.LOW), loop=None)

    found = differences(Policies(), after, TOOLS)

    assert [(one.tool, one.key) for one in found] == [("", "risk.ask_from"), ("", "loop")]
