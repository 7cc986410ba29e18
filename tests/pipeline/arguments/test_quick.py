"""What goes through at a glance is what the longer way would have let through unchanged."""

from __future__ import annotations

import enum
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seawall import RunPolicy, Session, Tool, ToolResult
from seawall.contract.failure import Issue
from seawall.pipeline.arguments.compiled import compile_schema
from seawall.pipeline.arguments.prepare import Preparing, preparing
from seawall.pipeline.arguments.quick import plain_check
from seawall.pipeline.invocation import Invocation

FLAT: dict[str, Any] = {
    "type": "object",
    "properties": {
        "text": {"type": "string", "description": "A text."},
        "count": {"type": "integer", "minimum": 0},
        "share": {"type": "number"},
        "deep": {"type": "boolean"},
    },
    "required": ["text"],
}


class Colour(enum.StrEnum):
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 3


async def give(arguments: dict[str, Any], context: Any) -> dict[str, Any]:
    return arguments


def call_of(prepare: Any, given_: Any, tool: Tool) -> tuple[Invocation, ToolResult | None]:
    call = Invocation(tool, RunPolicy(), prepare, given_, "c", Session(), 0.0)
    return call, call.prepared()


def outcome(prepare: Any, given_: Any, tool: Tool) -> Any:
    call, refusal = call_of(prepare, given_, tool)
    if refusal is not None:
        assert refusal.failure is not None
        return refusal.failure.reason, refusal.failure.issues
    return repr(call.arguments), call.mended


def warm(tool: Tool) -> Any:
    """Make what prepares, past its first call, when the quick check is there."""
    prepare = preparing(tool, RunPolicy())
    call_of(prepare, {"text": "x"}, tool)
    return prepare


@pytest.mark.parametrize(
    "schema",
    [
        FLAT,
        {**FLAT, "additionalProperties": False, "title": "T", "$schema": "https://json-schema.org/draft/2020-12/schema"},
        {"type": "object", "properties": {"a": {"type": "string", "enum": ["x", "y"]}}},
        {"type": "object", "properties": {}},
    ],
)  # fmt: skip
def test_schemas_of_named_scalars_are_of_the_kind(schema: Any) -> None:
    assert plain_check(compile_schema(schema)) is not None


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"type": "object"},
        {"type": "object", "properties": {"a": {"type": "array"}}},
        {"type": "object", "properties": {"a": {"type": ["string", "null"]}}},
        {"type": "object", "properties": {"a": {"type": "string", "pattern": "x"}}},
        {"type": "object", "properties": {"a": {}}},
        {"type": "object", "properties": {"a": True}},
        {"type": "object", "properties": {"a": {"type": "string"}}, "minProperties": 1},
        {"type": "object", "properties": {f"a{n}": {"type": "string"} for n in range(50)}},
        {**FLAT, "$schema": "http://json-schema.org/draft-07/schema#"},
    ],
)
def test_all_others_are_not(schema: Any) -> None:
    assert plain_check(compile_schema(schema)) is None


def test_own_bounds_hold_beside_those_of_arguments() -> None:
    narrow = {"a": {"type": "string", "maxLength": 3}, "b": {"type": "integer", "maximum": 10**30}}
    check = plain_check(compile_schema({"type": "object", "properties": narrow}))

    assert check is not None
    assert check({"a": "abc", "b": 5})
    assert not check({"a": "abcd"})
    assert not check({"b": 10**25})


@pytest.mark.parametrize(
    "value",
    [
        {"text": "x"},
        {"text": "x", "count": 3, "deep": True},
        {"text": "x", "share": 5},
        {"text": "x", "more": 1},
        {"text": "x", "count": "3"},
        {"text": "x", "count": 3.0},
        {"text": "x", "share": 3.0},
        {"text": "x", "share": float("nan")},
        {"text": "x", "count": 10**30},
        {"text": "x", "count": True},
        {"text": "x", "count": -1},
        {"text": "x", "count": None},
        {"text": "é"},
        {"text": "\ud800"},
        {"text": "x" * 10_000},
        {"text": Colour.RED},
        {"text": "x", "count": Level.HIGH},
        {"text": 5},
        {1: 2},
        {"text": "x", "\ud800": 1},
        {},
        {"text": ["x"]},
    ],
    ids=repr,
)
def test_the_outcome_is_that_of_the_longer_way(value: Any) -> None:
    tool = Tool("t", "d", FLAT, give)

    assert outcome(warm(tool), value, tool) == outcome(Preparing(tool, RunPolicy()), value, tool)


scalars = (
    st.integers()
    | st.text(max_size=5)
    | st.booleans()
    | st.floats()
    | st.none()
    | st.sampled_from(["5", "true", " 3 ", "", "null", 3.0, 2**63, -(2**63) - 1])
)


@given(st.dictionaries(st.sampled_from([*FLAT["properties"], "more"]), scalars, max_size=4))
def test_the_outcome_is_that_of_the_longer_way_for_anything(value: dict[str, Any]) -> None:
    tool = Tool("t", "d", FLAT, give)

    assert outcome(warm(tool), value, tool) == outcome(Preparing(tool, RunPolicy()), value, tool)


@pytest.mark.parametrize(
    "text",
    [
        '{"text": "x", "count": 3}',
        '{"text": "a: b", "count": 3}',
        '{"text": "x", "text": "y"}',
        '{"text": "x", "count": 3.0}',
        '{"text": "x", "count": 1e400}',
        '{"text": "x", "count": 123456789012345678901234567890}',
        '{"text": "\\ud800"}',
        '{"text": "\u00e9"}',
        '{"text": ["x"]}',
        '{"text": "x", "more": {"a": 1}}',
        '{"text": "x",}',
        '```json\n{"text": "x"}\n```',
        '"{\\"text\\": 5}"',
        '{"text": "x"',
        "[1]",
        "null",
        " ",
        "",
        '{"text": "' + "x" * 5_000 + '"}',
    ],
    ids=lambda text: text[:40],
)
def test_the_outcome_of_a_text_is_that_of_the_longer_way(text: str) -> None:
    tool = Tool("t", "d", FLAT, give)

    assert outcome(warm(tool), text, tool) == outcome(Preparing(tool, RunPolicy()), text, tool)


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from([*FLAT["properties"], "more"]), scalars, max_size=4))
def test_the_outcome_of_any_object_as_a_text_is_that_of_the_longer_way(
    value: dict[str, Any],
) -> None:
    tool, text = Tool("t", "d", FLAT, give), json.dumps(value)

    assert outcome(warm(tool), text, tool) == outcome(Preparing(tool, RunPolicy()), text, tool)


@pytest.mark.parametrize("first", [True, False])
def test_the_arguments_are_a_copy(first: bool) -> None:
    tool = Tool("t", "d", FLAT, give)
    given_ = {"text": "x", "count": 1}
    prepare = preparing(tool, RunPolicy()) if first else warm(tool)

    call, _ = call_of(prepare, given_, tool)

    assert call.arguments == given_
    assert call.arguments is not given_


def test_a_call_that_was_cut_off_is_refused_all_the_same() -> None:
    tool = Tool("t", "d", FLAT, give)
    call = Invocation(tool, RunPolicy(), warm(tool), {"text": "x"}, "c", Session(), 0.0)
    call.given_truncated = True

    refusal = call.prepared()

    assert refusal is not None
    assert refusal.failure is not None
    assert refusal.failure.reason == "arguments_truncated"


def test_a_tools_own_check_has_its_say() -> None:
    asked: list[Any] = []

    def check(value: dict[str, Any]) -> tuple[Any, tuple[Issue, ...]]:
        asked.append(value)
        return None, (Issue("/text", "not that one"),)

    tool = Tool("t", "d", FLAT, give, check=check)

    _, refusal = call_of(warm(tool), {"text": "y"}, tool)

    assert refusal is not None
    assert "not that one" in refusal.render()
    assert asked == [{"text": "x"}, {"text": "y"}]


def test_a_shim_sees_all_calls() -> None:
    tool = Tool("t", "d", FLAT, give, prepare_arguments=lambda value: {**value, "count": 7})

    call, _ = call_of(warm(tool), {"text": "y"}, tool)

    assert call.arguments == {"text": "y", "count": 7}
