"""What was probably not meant."""

from __future__ import annotations

from typing import Any

import pytest

from seawall.contract.decision import Action
from seawall.contract.policy import RunPolicy
from seawall.contract.tool import Tool
from seawall.layers.risk_rules import ArgumentRule
from seawall.policy.changes import Changes
from seawall.policy.explain import Given
from seawall.policy.notes import default_note, duration_note, idle_note, rule_note


async def answer(arguments: dict[str, Any], context: Any) -> str:
    return "done"


def a_tool(duration: float | str | None) -> Tool:
    return Tool("slow", "", {}, answer, duration=duration)


@pytest.mark.parametrize(
    ("duration", "timeout_s"), [(None, 1), (5, None), (5, 10), (0.5, 5.5), ("seconds", None)]
)
def test_a_timeout_with_room_for_the_duration_is_not_worth_a_word(
    duration: float | str | None, timeout_s: float | None
) -> None:
    assert duration_note(a_tool(duration), Given(timeout_s, "tools.slow")) is None


@pytest.mark.parametrize(
    ("duration", "note"),
    [
        (300, "tools.slow (x.toml:3) gives slow 5 s, although it takes 300 s by its own word"),
        (0.5, "tools.slow (x.toml:3) gives slow 5 s, although it takes 500 ms by its own word"),
        (
            "wait_s",
            (
                "tools.slow (x.toml:3) gives slow 5 s;"
                " its argument 'wait_s', which holds its duration, widens nothing"
            ),
        ),
    ],
)
def test_a_timeout_that_a_tools_duration_would_widen_is_told(
    duration: float | str, note: str
) -> None:
    assert duration_note(a_tool(duration), Given(5, "tools.slow (x.toml:3)")) == note


def test_a_default_of_single_values_without_a_timeout_is_told() -> None:
    note = default_note(Changes(rate="5/minute"), "default (x.toml:1)")

    assert note is not None
    assert note.startswith("default (x.toml:1) gives neither preset nor timeout_s")


@pytest.mark.parametrize(
    "default", [None, RunPolicy(), Changes(timeout_s=None), Changes(preset="legacy")]
)
def test_a_default_that_says_what_it_means_is_not_worth_a_word(
    default: RunPolicy | Changes | None,
) -> None:
    assert default_note(default, "default") is None


@pytest.mark.parametrize("is_own", [True, False])
def test_a_rule_for_a_tool_of_nearly_that_name_is_told(*, is_own: bool) -> None:
    tools = ["calculate", "http_check"]

    note = idle_note("tools.htp_check (x.toml:3)", "htp_check", tools, is_own=is_own)

    assert note == "tools.htp_check (x.toml:3) fits no tool; did you mean http_check?"


@pytest.mark.parametrize("tools", [[], ["calculate"], ["ask_user"]])
def test_a_rule_of_others_for_a_tool_that_is_not_there_is_no_mistake(tools: list[str]) -> None:
    where = "tools.ask_user_choice"

    assert idle_note(where, "ask_user_choice", tools, is_own=False) is None


@pytest.mark.parametrize(
    ("name", "note"),
    [
        ("files", "families.files (x.toml:1) fits no tool"),
        (None, "families.files (x.toml:1) fits no tool"),
        ("old_*", "families.files (x.toml:1) 'old_*' fits no tool"),
    ],
)
def test_what_fits_no_tool_in_a_file_of_ones_own_is_told(name: str | None, note: str) -> None:
    assert idle_note("families.files (x.toml:1)", name, ["calculate"], is_own=True) == note


PATH: dict[str, Any] = {"properties": {"path": {"type": "string"}}}


def noted(tool: str, argument: str, schema: dict[str, Any], place: str = "x.toml:1") -> str | None:
    rule = ArgumentRule(tool=tool, argument=argument, equals=(1,), decide=Action.DENY, place=place)
    return rule_note(rule, {"write": Tool("write", "", schema, answer)})


@pytest.mark.parametrize(
    ("tool", "argument", "said"),
    [
        ("drop", "/path", "risk.rules (x.toml:1) 'drop' fits no tool"),
        ("wirte", "/path", "risk.rules (x.toml:1) 'wirte' fits no tool; did you mean write?"),
        (
            "write",
            "/paths",
            (
                "risk.rules (x.toml:1) looks at /paths, but write has no argument 'paths';"
                " did you mean path?"
            ),
        ),
        ("w*", "/a~1b", "risk.rules (x.toml:1) looks at /a~1b, but w* has no argument 'a/b'"),
    ],
)
def test_a_rule_that_looks_at_nothing_is_told(tool: str, argument: str, said: str) -> None:
    assert noted(tool, argument, PATH) == said


@pytest.mark.parametrize(
    ("argument", "schema"),
    [
        ("/path", PATH),
        ("/path/*/name", PATH),
        ("/*", PATH),
        ("/size", {}),
        ("/size", {**PATH, "allOf": [{"properties": {"size": {}}}]}),
    ],
)
def test_a_rule_that_may_look_at_something_is_not_worth_a_word(
    argument: str, schema: dict[str, Any]
) -> None:
    assert noted("write", argument, schema) is None


@pytest.mark.parametrize("place", ["", "policies/gateway.toml:3"])
def test_a_rule_of_others_for_a_tool_that_is_far_is_no_mistake(place: str) -> None:
    assert noted("drop", "/path", PATH, place) is None
