"""A policy and its changes in short: what is alike stands once, and nothing else is left out."""

from __future__ import annotations

import io

import pytest

from seawall import Policies, Tool
from seawall.contract.annotations import Annotations
from seawall.contract.policy import BreakerPolicy, RunPolicy
from seawall.edges.cli.brief import alike, brief, plain, write_alike, write_brief
from seawall.edges.cli.paper import Paper
from seawall.policy.changes import Changes
from seawall.policy.differences import Difference
from seawall.policy.explain import Given

NETWORK = "annotations: open world -> preset network"
BREAKER = ", ".join(
    (
        *("threshold 5", "window_calls 100", "min_calls 10", "cooldown_s 15"),
        *("max_cooldown_s 120", "permits 1", "mode on"),
    )
)


async def _nothing(_: object, __: object) -> None: ...


def tool(name: str) -> Tool:
    hints = Annotations(read_only=True, open_world=True)
    return Tool(name, "", {"type": "object"}, _nothing, annotations=hints)


def said(policies: Policies, name: str = "find") -> str:
    stream = io.StringIO()
    write_brief(policies.explain(tool(name)), lambda _, value: plain(value), Paper(stream))
    return stream.getvalue()


def test_a_policy_is_what_its_rule_changes_and_the_number_of_the_rest() -> None:
    assert said(Policies.default()).splitlines() == [
        f"by {NETWORK}",
        "  timeout_s     90",
        "  max_retries   2",
        "  base_delay_s  0.8",
        "  rate          30/minute",
        f"  breaker       {BREAKER}",
        "37 other settings are as they are without any rule.",
    ]


def test_what_is_shown_and_what_is_counted_are_all_there_is() -> None:
    found = Policies.default().explain(tool("find"))

    short = brief(found, lambda _, value: plain(value))

    shown = sum(line.value.count(", ") + 1 for lines in short.rules.values() for line in lines)
    assert shown + short.left_out == len(found)


def test_what_everybody_wants_to_know_is_shown_where_nothing_is_said_of_it() -> None:
    lines = said(Policies(default=RunPolicy())).splitlines()[1:5]

    assert [line.split() for line in lines] == [
        ["timeout_s", "none"],
        ["max_retries", "0"],
        ["rate", "none"],
        ["breaker", "none"],
    ]


def test_what_a_rule_of_its_own_says_is_shown_even_if_it_is_the_usual() -> None:
    policies = Policies(default=RunPolicy(rate="5/minute"), tools={"find": Changes(rate=None)})

    assert "by tools.find\n  rate         none\n" in said(policies)


def test_the_places_of_one_table_stand_once() -> None:
    given = {
        "breaker.threshold": Given(3, "tools.find (a.toml:1)"),
        "breaker.cooldown_s": Given(2.0, "tools.find (a.toml:2)"),
        "breaker.mode": Given("on", "tools.find (a.toml:2)"),
    }

    (line,) = brief(given, lambda _, value: plain(value)).rules["tools.find"]

    assert (line.value, line.place) == ("threshold 3, cooldown_s 2, mode on", "a.toml:1, 2")


def test_places_of_several_files_and_variables_are_all_named() -> None:
    given = {
        "breaker.threshold": Given(3, "tools.find (a.toml:1)"),
        "breaker.cooldown_s": Given(2.0, "tools.find (b.toml:2)"),
        "breaker.mode": Given("on", "tools.find (SEAWALL_POLICY__X)"),
        "breaker.permits": Given(2, "tools.find (b.toml:9)"),
    }

    (line,) = brief(given, lambda _, value: plain(value)).rules["tools.find"]

    assert line.place == "a.toml:1, b.toml:2, 9, SEAWALL_POLICY__X"


def test_a_breaker_of_a_tools_own_is_told_apart_from_that_of_the_preset() -> None:
    default = RunPolicy(breaker=BreakerPolicy())
    policies = Policies(default=default, tools={"find": Changes(breaker=None)})

    assert "by tools.find\n  breaker      none\n" in said(policies)


CHANGES = [
    Difference("", "trace.capacity", None, 10),
    Difference("a", "rate", None, "5/minute", "", "families.x (f:1)"),
    Difference("a", "cost", 1, 2, "", "tools.a (f:2)"),
    Difference("b", "rate", None, "5/minute", "old", "families.x (f:1)"),
    Difference("c", "rate", "1/minute", "5/minute", "", "families.x (f:1)"),
]


def test_a_change_that_tools_have_in_common_stands_once() -> None:
    groups = {names: [one.key for one in same] for names, same in alike(CHANGES).items()}

    assert groups == {
        ("",): ["trace.capacity"],
        ("a", "b"): ["rate"],
        ("a",): ["cost"],
        ("c",): ["rate"],
    }
    assert list(groups)[:2] == [("",), ("a", "b")]


@pytest.mark.parametrize(("tools", "title"), [(2, "All 2 tools"), (9, "2 of 9 tools: a, b")])
def test_whom_a_change_is_for_is_said(tools: int, title: str) -> None:
    stream = io.StringIO()

    write_alike(CHANGES[:4], tools, Paper(stream))

    assert stream.getvalue().splitlines() == [
        "All calls",
        "setting         before  after",
        "trace.capacity  none    10",
        "",
        title,
        "setting  before  after     by the rule",
        "rate     none    5/minute  families.x (f:1)",
        "",
        "a",
        "setting  before  after  by the rule",
        "cost     1       2      tools.a (f:2)",
    ]
