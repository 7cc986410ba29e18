"""What goes through at a glance is what the longer way would have let through unchanged."""

from __future__ import annotations

import enum
import json
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seawall import RunPolicy, Session, Tool, ToolResult
from seawall.contract.failure import Issue
from seawall.pipeline.arguments import quick as module
from seawall.pipeline.arguments.compiled import compile_schema
from seawall.pipeline.arguments.prepare import Preparing, preparing
from seawall.pipeline.arguments.quick import Quick
from seawall.pipeline.invocation import Invocation

if TYPE_CHECKING:
    from random import Random

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


NESTED: dict[str, Any] = {
    "type": "object",
    "properties": {
        "text": {"type": "string", "maxLength": 5},
        "count": {"type": "integer"},
        "share": {"type": "number"},
        "kind": {"enum": ["fast", "deep", None]},
        "level": {"type": "integer", "enum": [1, 2]},
        "maybe": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None},
        "either": {"type": ["string", "integer"]},
        "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 3},
        "point": {"$ref": "#/$defs/Point"},
        "labels": {"type": "object", "additionalProperties": {"type": ["integer", "string"]}},
        "points": {
            "anyOf": [{"type": "array", "items": {"$ref": "#/$defs/Point"}}, {"type": "null"}]
        },
    },
    "required": ["text"],
    "$defs": {
        "Point": {
            "type": "object",
            "properties": {
                "x": {"type": "integer"},
                "y": {"type": "number"},
                "names": {"type": "array", "items": {"type": "string"}},
            },
            "required": ["x"],
        }
    },
}  # fmt: skip


class Colour(enum.StrEnum):
    RED = "red"


class Text(enum.StrEnum):
    TEXT = "text"


class Level(enum.IntEnum):
    HIGH = 3


class Tags(list[str]):
    pass


class Point(dict[str, int]):
    pass


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


def quick(schema: Any) -> Quick:
    found = Quick(compile_schema(schema))
    found.make()
    return found


def of(part: Any, *, array: bool = False, **more: Any) -> dict[str, Any]:
    inside = {"type": "array", "items": part} if array else part
    return {"type": "object", "properties": {"a": inside}, **more}


def defs(**parts: Any) -> dict[str, Any]:
    return {"$defs": parts}


@pytest.mark.parametrize(
    "schema",
    [
        FLAT,
        NESTED,
        {**FLAT, "additionalProperties": False, "title": "T", "$schema": "https://json-schema.org/draft/2020-12/schema"},
        {**NESTED, "$schema": "http://json-schema.org/draft-07/schema#"},
        {**NESTED, "$schema": "https://json-schema.org/draft/2019-09/schema"},
        of({"$ref": "#/definitions/A"}, definitions={"A": {"type": "integer"}}),
        of({"type": "string", "enum": ["x", "y"]}),
        of({"const": "x"}),
        of({"type": "object", "additionalProperties": {"type": "string"}}, array=True),
        of({"type": "string", "pattern": "x"}),
        of({"type": ["string", "null"]}),
        of(of({"type": "boolean"}), array=True),
        of({"anyOf": [{"type": "null"}, of({"type": "integer"})]}),
        of({"$ref": "#/$defs/A", "title": "A"}, **defs(A={"type": "string"}, B={"not": {}})),
        {"type": "object", "properties": {}},
    ],
)  # fmt: skip
def test_schemas_that_say_all_there_is_are_of_the_kind(schema: Any) -> None:
    assert quick(schema).is_valid is not None


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"type": "object"},
        of({"type": "array"}),
        of({"type": "object"}),
        of({"type": "object", "additionalProperties": True}),
        of({"type": "object", "additionalProperties": of({"type": "string"})}),
        of({"type": "object", "additionalProperties": {}, "propertyNames": {"pattern": "x"}}),
        of({"type": ["string", "array"]}),
        of({"type": "array", "items": {"type": "string"}, "contains": {"const": "x"}}),
        of({"type": "string", "pattern": "x"}, array=True),
        of({"type": "string", "pattern": "x", "enum": ["x"]}),
        of({"anyOf": [{"type": "string", "pattern": "x"}, {"type": "null"}]}),
        {
            "type": "object",
            "properties": {"a": {"type": "string", "pattern": "x"}, "b": {"$ref": "#/$defs/B"}},
            "$defs": {"B": {"type": "array", "items": {"type": "string"}}},
        },
        of({"type": "number", "enum": [1, 2.5]}),
        of({"enum": [1]}),
        of({"const": [1]}),
        of({"enum": [None, 1], "type": ["integer", "null"]}),
        of({"anyOf": [{"type": "integer"}, {"type": "number"}]}),
        of({"anyOf": [{"type": "null"}]}),
        of({"anyOf": [{"type": "string"}, {"type": "null"}], "maxLength": 1}),
        of({"anyOf": [of({"type": "string"}), {"type": "null"}]}, array=True),
        of({"$ref": "#"}),
        of({"$ref": "#/$defs/A"}, **defs(A=of({"$ref": "#/$defs/A"}))),
        of({"$ref": "#/$defs/A~1"}, **defs(**{"A~1": {"type": "string"}, "A/": {"not": {}}})),
        of({"$ref": "#/$defs/A", "maxLength": 1}, **defs(A={"type": "string"})),
        of({}),
        of(True),
        of({"type": "string"}, minProperties=1),
        {"type": "object", "properties": {f"a{n}": {"type": "string"} for n in range(50)}},
        of(of(of(FLAT, array=True), array=True), array=True),
        of({"enum": ["x" * 300_000, "y"]}),
        {**FLAT, "$schema": "http://json-schema.org/draft-04/schema#"},
        of({"$schema": "http://json-schema.org/draft-04/schema#", "type": "integer"}),
    ],
)  # fmt: skip
def test_all_others_are_not(schema: Any) -> None:
    assert quick(schema).is_valid is None


def test_a_dialect_of_ones_own_is_not_of_the_kind() -> None:
    own = "https://example.com/own"
    resources = {own: {"$id": own, "$schema": "https://json-schema.org/draft/2020-12/schema"}}
    found = Quick(compile_schema({**FLAT, "$schema": own}, resources=resources))
    found.make()

    assert found.is_valid is None


def test_nothing_is_known_by_a_validator_that_does_not_look_at_texts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "_READ", {})
    module._texts_are_read.cache_clear()

    assert quick(FLAT).is_valid is None
    module._texts_are_read.cache_clear()


def test_own_bounds_hold_beside_those_of_arguments() -> None:
    narrow = {"a": {"type": "string", "maxLength": 3}, "b": {"type": "integer", "maximum": 10**30}}
    check = quick({"type": "object", "properties": narrow}).is_valid

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
        {"text": "é" * 65_536},
        {"text": "é" * 70_000},
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


@pytest.mark.parametrize(
    ("value", "is_quick"),
    [
        ({"text": "x", "point": {"x": 1, "y": 2.0, "names": ["a"]}, "tags": ["a", "é"]}, True),
        ({"text": "x", "points": [{"x": 1}, {"x": 2, "names": []}], "maybe": None}, True),
        ({"text": "x", "points": None, "share": 3.0, "kind": None, "either": "a"}, True),
        ({"text": "x", "level": 1, "kind": "fast", "either": 3, "maybe": 5}, True),
        ({"text": "x", "point": {"x": 1.0}}, False),
        ({"text": "x", "labels": {"é": 1, "": "b"}}, True),
        ({"text": "x", "labels": {"a": 1.0}}, False),
        ({"text": "x", "labels": {"a": None}}, False),
        ({"text": "x", "labels": {"a": []}}, False),
        ({"text": "x", "labels": {Colour.RED: 1}}, False),
        ({"text": "x", "labels": {"\ud800": 1}}, False),
        ({"text": "x", "labels": {1: 1}}, False),
        ({"text": "x", "labels": {"a" * 5_000: 1}}, False),
        ({"text": "x", "labels": {str(n): n for n in range(33)}}, False),
        ({"text": "x", "level": 1.0}, False),
        ({"text": "x", "maybe": 1.0}, False),
        ({"text": "x", "either": 1.0}, False),
        ({"text": "x", "points": [{"x": 1.0}]}, False),
        ({"text": "x", "point": {"x": 1, "more": 1}}, False),
        ({"text": "x", "point": {"x": 1, "names": ["\ud800"]}}, False),
        ({"text": "x", "point": {"x": 1, Colour.RED: 1}}, False),
        ({"text": "x", "points": [{"x": Level.HIGH}]}, False),
        ({"text": "x", "points": ({"x": 1},)}, False),
        ({"text": "x", "tags": ("a",)}, False),
        ({"text": "x", "tags": Tags(["a"])}, False),
        ({"text": "x", "point": Point(x=1)}, False),
        ({"text": "x", "tags": [Colour.RED]}, False),
        ({"text": "x", "point": {"x": 1, "names": ["a"] * 40}}, False),
        ({"text": "x", "share": float("inf")}, False),
        ({"text": "x", "share": Decimal(1)}, False),
        ({"text": "x", "kind": []}, False),
        ({Colour.RED: "x", "text": "x"}, False),
        ({Text.TEXT: "x"}, False),
    ],
    ids=repr,
)
def test_what_holds_others_is_known_at_a_glance_too(value: Any, is_quick: bool) -> None:
    tool = Tool("t", "d", NESTED, give)
    prepare = warm(tool)
    call, _ = call_of(prepare, value, tool)

    assert (call.own_of is not None) is is_quick
    assert outcome(prepare, value, tool) == outcome(Preparing(tool, RunPolicy()), value, tool)


@pytest.mark.parametrize(
    ("text", "is_quick"),
    [
        ('{"text": "x", "point": {"x": 1}, "points": [{"x": 1}, {"x": 2}]}', True),
        ('{"text": "a: b", "point": {"x": 1, "names": ["c:d"]}}', True),
        ('{"text": "\\n:", "point": {"x": 1}}', True),
        ('{"text": "\\u00e9", "point": {"x": 1}}', True),
        ('{"text": "\\u003a", "point": {"x": 1}}', False),
        ('{"text": "x", "point": {"x": 1, "x": 1}}', False),
        ('{"text": "x", "point": {"x": 1}, "point": {"x": 1}}', False),
        ('{"text": "\\u003a", "text": "\\u003a"}', False),
        ('{"text": "x", "text": "\\u003a"}', False),
        ('{"text": "x", "points": [{"x": 1, "x": 2, "names": [":"]}]}', False),
        ('{"text": "x", "points": [{"x": 1.0}]}', False),
        ('{"text": "x", "points": [{"x": 1e400}]}', False),
        ('{"text": "x", "tags": [["a"]]}', False),
    ],
)
def test_texts_of_what_holds_others_are_known_too(text: str, is_quick: bool) -> None:
    tool = Tool("t", "d", NESTED, give)
    prepare = warm(tool)
    call, _ = call_of(prepare, text, tool)

    assert (call.own_of is not None) is is_quick
    assert outcome(prepare, text, tool) == outcome(Preparing(tool, RunPolicy()), text, tool)


LOOKING = r"(?=(a+))\1b"
"""A pattern that takes little text."""


@pytest.mark.parametrize(
    ("text", "is_quick"),
    [("ab", True), ("éab", True), ("a" * 99 + "b", True), ("a" * 100 + "b", False), ("b", False)],
)
def test_text_for_patterns_is_bounded_as_ever(text: str, is_quick: bool) -> None:
    tool = Tool("t", "d", of({"type": "string", "pattern": LOOKING}), give)
    prepare, whole = warm(tool), Preparing(tool, RunPolicy())
    call, _ = call_of(prepare, {"a": text}, tool)

    assert (call.own_of is not None) is is_quick
    for given_ in ({"a": text}, {"a": text * 100}, json.dumps({"a": text})):
        assert outcome(prepare, given_, tool) == outcome(whole, given_, tool)


names = st.sampled_from(["a", "b", "c:d", "é"])
words = st.sampled_from(["", "x", ":", "\\", "\n", "é", "\U0001f600", "\ud800", "\0", "5", "null"])
singles = st.one_of(
    st.just({"type": "string", "maxLength": 3}),
    st.just({"type": "integer", "minimum": 0}),
    st.just({"type": "number"}),
    st.just({"type": "boolean"}),
    st.just({"type": ["integer", "null"]}),
    st.just({"type": "integer", "enum": [0, 1]}),
    st.just({"enum": ["x", True, None]}),
)


DRAFTS = st.sampled_from(
    [
        {},
        {"$schema": "http://json-schema.org/draft-07/schema#"},
        {"$schema": "https://json-schema.org/draft/2019-09/schema"},
    ]
)


def holding(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        inner.map(lambda part: {"anyOf": [part, {"type": "null"}]}),
        inner.map(lambda part: {"type": "array", "items": part, "uniqueItems": True}),
        objects(inner),
        singles.map(lambda part: {"type": "object", "additionalProperties": part}),
    )


def objects(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.dictionaries(names, inner, max_size=4).map(
        lambda parts: {"type": "object", "properties": parts, "required": list(parts)[:1]}
    )


FITTING = {
    "string": words,
    "integer": st.sampled_from([0, 1, 2, 1.0]),
    "number": st.sampled_from([0, 0.5, 1.0, -7, 1e300]),
    "boolean": st.booleans(),
}
ODD = st.sampled_from([{}, [], {"a": 1}, [1], 10**30, float("nan"), Colour.RED, ("x",), 1.0, "5"])


def values_for(part: dict[str, Any]) -> st.SearchStrategy[Any]:
    """What fits a part of a schema, mostly."""
    kind = part.get("type")
    if "anyOf" in part:
        found = st.none() | values_for(part["anyOf"][0])
    elif kind == "array":
        found = st.lists(values_for(part["items"]), max_size=3)
    elif "additionalProperties" in part:
        found = st.dictionaries(words, values_for(part["additionalProperties"]), max_size=3)
    elif kind == "object":
        known = {name: values_for(inner) for name, inner in part["properties"].items()}
        needed = {name: known.pop(name) for name in part["required"]}
        found = st.fixed_dictionaries(needed, optional=known)
    else:
        found = st.sampled_from(part["enum"]) if "enum" in part else scalars_for(kind)
    return st.integers(0, 40).flatmap(lambda roll: ODD if roll == 0 else found)


def scalars_for(kind: Any) -> st.SearchStrategy[Any]:
    return FITTING[kind] if isinstance(kind, str) else st.none() | FITTING[kind[0]]


@st.composite
def cases(draw: st.DrawFn) -> tuple[dict[str, Any], Any]:
    schema = draw(objects(st.recursive(singles, holding, max_leaves=6)))
    return schema | draw(DRAFTS), draw(values_for(schema))


def written(value: Any, chance: Random) -> str:
    """Write JSON in which keys may stand twice and characters be escaped."""
    if isinstance(value, dict):
        members = [f"{written(k, chance)}: {written(v, chance)}" for k, v in value.items()]
        members += chance.sample(members, min(len(members), chance.random() < 0.2))
        return f"{{{', '.join(members)}}}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(written(item, chance) for item in value)}]"
    text = json.dumps(value, ensure_ascii=chance.random() < 0.5)
    return text.replace(":", "\\u003a") if chance.random() < 0.2 else text


@settings(deadline=None)
@given(cases(), st.randoms(use_true_random=False))
def test_the_outcome_is_that_of_the_longer_way_for_any_schema_of_the_kind(
    case: tuple[dict[str, Any], Any], chance: Random
) -> None:
    schema, value = case
    tool = Tool("t", "d", schema, give)
    prepare, whole = warm(tool), Preparing(tool, RunPolicy())

    for given_ in (value, written(value, chance)):
        assert outcome(prepare, given_, tool) == outcome(whole, given_, tool)


@settings(deadline=None)
@given(cases())
def test_copies_share_no_container_with_what_was_given(case: tuple[dict[str, Any], Any]) -> None:
    schema, value = case
    tool = Tool("t", "d", schema, give)
    call, refusal = call_of(warm(tool), value, tool)

    if refusal is None and call.own_of is not None:
        own = call.own_of(call.arguments)
        assert repr(own) == repr(call.arguments)
        ours = {id(one) for one in (*containers(own), *containers(call.arguments))}
        assert len(ours) == 2 * len(containers(value))
        assert ours.isdisjoint(map(id, containers(value)))


def containers(value: Any) -> list[Any]:
    if not isinstance(value, (dict, list)):
        return []
    inside = value.values() if isinstance(value, dict) else value
    return [value, *(one for item in inside for one in containers(item))]


def test_a_schema_that_calls_itself_in_many_ways_is_given_up_soon() -> None:
    parts = {f"a{n}": {"$ref": f"#/$defs/D{n + 1}"} for n in range(32)}
    defined = {f"D{n}": {"type": "object", "properties": parts} for n in range(33)}

    assert quick({"type": "object", "properties": parts, "$defs": defined}).is_valid is None
