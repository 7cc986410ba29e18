"""Tools that come and go are told inside the conversation."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seawall.registry.announcements import (
    announce_declarations,
    declaration_changes,
    replay_declarations,
)
from seawall.registry.registry import Registry
from seawall.testing import scripted

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "declarations.json").read_text())


def vectors(group: str) -> pytest.MarkDecorator:
    chosen = [one for one in VECTORS if one["group"] == group]
    return pytest.mark.parametrize("vector", chosen, ids=lambda one: one["id"])


def tool(short: str) -> dict[str, Any]:
    """Make the declaration that the vectors write as `name/description`."""
    name, _, description = short.partition("/")
    schema = {"type": "object", "properties": {}}
    return {"name": name, "description": description, "parameters": schema}


def short(declared: Any) -> list[str]:
    return [f"{one['name']}/{one['description']}" for one in declared]


def message(told: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {key: told[key] for key in ("role", "content") if key in told}
    if "toolsAdded" in told:
        found["toolsAdded"] = [tool(one) for one in told["toolsAdded"]]
    if "toolsRemoved" in told:
        found["toolsRemoved"] = [{"name": name} for name in told["toolsRemoved"]]
    return found


# Vectors. None deviates.


def test_the_vectors_are_those_that_were_copied() -> None:
    groups = [one["group"] for one in VECTORS]

    assert {group: groups.count(group) for group in set(groups)} == {
        "declare": 8,
        "replay": 8,
        "announce": 6,
    }


@vectors("declare")
@pytest.mark.parametrize("by", ["value", "text"])
def test_declare(vector: dict[str, Any], by: Any) -> None:
    changes = declaration_changes(vector["previous"], vector["current"], by=by)

    assert {
        "toolsAdded": list(changes.added),
        "toolsRemoved": [{"name": name} for name in changes.removed],
    } == vector["expect"]
    assert bool(changes) is any(vector["expect"].values())


@vectors("replay")
def test_replay(vector: dict[str, Any]) -> None:
    expect = vector["expect"]

    found = replay_declarations(vector["messages"])

    assert short(found.current) == expect["current"]
    assert short(found.declared) == expect["declared"]
    assert found.redefinitions is expect["redefinitions"]
    assert found.non_additive is expect["non_additive"]
    for transport in ("none", "additions", "changes"):
        told: Any = transport
        assert short(found.top_level(told)) == expect[transport]["top_level"]
        folded = found.folded_messages(told)
        assert folded == expect[transport]["folded_system_messages"]


@vectors("announce")
def test_announce(vector: dict[str, Any]) -> None:
    history = [message(told) for told in vector["history"]]
    pending = [message(told) for told in vector["prompts"]]
    before = copy.deepcopy([history, pending])

    found = announce_declarations(history, pending, [tool(one) for one in vector["tools"]])

    # The last message of the vectors is the model's answer.
    assert found == [message(told) for told in vector["expect"]["new_messages"][:-1]]
    assert [history, pending] == before


# Beyond the vectors.


@pytest.mark.parametrize(("by", "is_change"), [("value", False), ("text", True)])
def test_the_order_of_keys_is_a_change_only_by_text(by: Any, is_change: bool) -> None:
    one = [{"name": "a", "parameters": {"x": 1, "y": 2.0}}]
    other = [{"name": "a", "parameters": {"y": 2.0, "x": 1}}]

    assert bool(declaration_changes(one, other, by=by)) is is_change


def test_a_boolean_is_not_the_number_it_equals() -> None:
    assert declaration_changes([{"name": "a", "x": True}], [{"name": "a", "x": 1}])


def test_declarations_of_any_shape_are_compared() -> None:
    registry = Registry([scripted(name="a.b"), scripted(name="c")])
    for shape in ("mcp", "openai", "openai-responses", "anthropic"):
        wanted: Any = shape
        before = registry.declarations(wanted)
        changes = declaration_changes(before, before[1:])
        assert changes.removed == (("a.b",) if shape == "mcp" else ("a_b",))


def test_a_pending_message_that_says_it_already_is_left_as_it_is() -> None:
    pending = [{"role": "system", "content": "", "toolsAdded": [tool("a/a")]}]

    assert announce_declarations([], pending, [tool("a/a")]) == pending


def test_false_claims_of_the_message_that_is_used_are_dropped() -> None:
    pending = [
        {
            "role": "system",
            "content": "x",
            "toolsAdded": [tool("b/b")],
            "toolsRemoved": [{"name": "c"}],
        }
    ]

    (found,) = announce_declarations([], pending, [tool("a/a")])

    assert found == {"role": "system", "content": "x", "toolsAdded": [tool("a/a")]}


def test_without_anything_pending_a_message_is_made() -> None:
    (found,) = announce_declarations([], [], [tool("a/a")])

    assert found == {"role": "system", "content": "", "toolsAdded": [tool("a/a")]}


def test_leading_messages_after_the_first_are_later_additions() -> None:
    told = [{"role": "system", "toolsAdded": [tool(one)]} for one in ("a/a", "b/b")]

    found = replay_declarations(told)

    assert short(found.top_level("additions")) == ["a/a"]
    assert found.folded_messages("additions") == 1


TOOLS = st.lists(
    st.sampled_from([tool(f"{name}/{said}") for name in "abc" for said in "xy"]),
    max_size=4,
    unique_by=lambda one: str(one["name"]),
)


@given(TOOLS, st.lists(TOOLS, max_size=4))
def test_after_every_announcement_exactly_the_tools_there_are_are_declared(
    first: list[dict[str, Any]], later: list[list[dict[str, Any]]]
) -> None:
    history: list[dict[str, Any]] = []
    for tools in [first, *later]:
        history += announce_declarations(history, [{"role": "user", "content": "x"}], tools)
        declared = replay_declarations(history)
        assert sorted(short(declared.current)) == sorted(short(tools))

        quiet = announce_declarations(history, [{"role": "user"}], tools)
        assert quiet == [{"role": "user"}]


@given(TOOLS, st.lists(TOOLS, max_size=6))
def test_what_was_sent_before_stays_the_beginning_of_what_is_sent(
    first: list[dict[str, Any]], later: list[list[dict[str, Any]]]
) -> None:
    history: list[dict[str, Any]] = []
    before, known = replay_declarations(history), ""
    for tools in [first, *later]:
        history += announce_declarations(history, [{"role": "user", "content": "x"}], tools)
        now, text = replay_declarations(history), json.dumps(history)

        assert text.startswith(known)
        assert now.top_level("changes") == ()
        declared = short(now.declared)
        assert [name for name in short(before.declared) if name in declared] == [
            name for name in declared if name in short(before.declared)
        ]
        if before.messages and not now.non_additive:
            assert now.top_level("additions") == before.top_level("additions")
            assert now.folded_messages("additions") == before.folded_messages("additions")
        before, known = now, text.removesuffix("]")


@given(TOOLS, st.lists(TOOLS, max_size=6), st.sampled_from(["none", "additions", "changes"]))
def test_the_top_and_the_messages_that_follow_it_declare_exactly_the_tools_there_are(
    first: list[dict[str, Any]], later: list[list[dict[str, Any]]], transport: Any
) -> None:
    history: list[dict[str, Any]] = []
    for tools in [first, *later]:
        history += announce_declarations(history, [{"role": "user", "content": "x"}], tools)
        found = replay_declarations(history)
        told = [one for one in history if one["role"] == "system"]
        rest = told[found.folded_messages(transport) :]
        top = {"role": "system", "toolsAdded": list(found.top_level(transport))}

        assert sorted(short(replay_declarations([top, *rest]).current)) == sorted(short(tools))
        if transport == "additions":
            assert not any("toolsRemoved" in one for one in rest)
