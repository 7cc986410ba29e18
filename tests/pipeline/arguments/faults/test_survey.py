"""What is known of a schema is found once, whatever values it is asked about, and goes in time."""

from __future__ import annotations

import gc
import json
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seawall.pipeline.arguments import compiled as module
from seawall.pipeline.arguments.compiled import CompiledSchema, compile_schema
from seawall.pipeline.arguments.faults.survey import Spot, Survey
from seawall.pipeline.arguments.latest import Latest
from seawall.pipeline.arguments.schema.dialects import DRAFT_2020
from seawall.pipeline.arguments.schema.documents import Documents
from seawall.pipeline.arguments.schema.redaction import Secrecy
from seawall.pipeline.arguments.schema.validators import Validators

if TYPE_CHECKING:
    from seawall.contract.failure import Issue

TREE: dict[str, Any] = {
    "$ref": "#/$defs/node",
    "$defs": {
        "node": {
            "type": "object",
            "properties": {
                "left": {"$ref": "#/$defs/node"},
                "right": {"$ref": "#/$defs/node"},
                "size": {"type": "integer", "minimum": 0},
                "key": {"type": "string", "maxLength": 3, "writeOnly": True},
            },
            "additionalProperties": False,
        }
    },
}
KINDS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "count": {"type": "integer"},
        "kind": {"enum": ["fast", "deep"]},
        "password": {"type": "string", "format": "password", "minLength": 20},
        "where": {
            "oneOf": [
                {"properties": {"on": {"const": "disk"}, "path": {"type": "string"}}},
                {"properties": {"on": {"const": "net"}, "port": {"maximum": 9}}},
            ],
            "required": ["on"],
        },
        "list": {"type": "array", "items": {"type": "string", "pattern": "^[a-z]+$"}},
    },
    "patternProperties": {"^x_": {"type": "boolean"}},
    "required": ["count"],
    "additionalProperties": False,
}


def a_survey(schema: dict[str, Any]) -> Survey:
    validators = Validators(schema, DRAFT_2020, {}, assert_formats=True)
    return Survey(Documents(schema, DRAFT_2020, {}), DRAFT_2020, validators)


def alive(kind: type) -> int:
    gc.collect()
    return sum(type(one) is kind for one in gc.get_objects())


def texts(compiled: CompiledSchema, value: Any) -> tuple[tuple[Issue, ...], str]:
    return compiled.faults(value), compiled.redaction.show(value)


def grown(way: str, leaf: dict[str, Any]) -> dict[str, Any]:
    for step in way:
        leaf = {{"l": "left", "r": "right"}[step]: leaf}
    return leaf


def test_a_place_is_one_object_whatever_the_way_there() -> None:
    (root,) = a_survey(TREE).root.targets
    assert root.part("properties", "left").final is root
    assert root.part("properties", "right").final.part("properties", "size") is root.part(
        "properties", "size"
    )


def test_what_is_kept_does_not_grow_with_the_depth_of_values() -> None:
    compiled = compile_schema(TREE)
    texts(compiled, grown("lr", {"size": -1, "key": "long", "odd": 1}))
    before = alive(Spot), alive(Secrecy)

    for way in ("l" * 40, "r" * 40, "lr" * 20, "llrr" * 10):
        issues, shown = texts(compiled, grown(way, {"size": -1, "key": "long", "odd": 1}))
        assert len(issues) == 3
        assert "long" not in shown

    assert (alive(Spot), alive(Secrecy)) == before


def test_names_that_no_schema_has_are_not_kept() -> None:
    compiled = compile_schema(KINDS)
    texts(compiled, {"odd": 1, "x_odd": "no", "list": [1]})
    before = alive(Spot), alive(Secrecy)

    for number in range(100):
        texts(compiled, {f"odd{number}": 1, f"x_{number}": "no", "list": [1] * number})

    assert (alive(Spot), alive(Secrecy)) == before


def test_nothing_of_a_value_stays() -> None:
    compiled = compile_schema(KINDS)
    secret, name = f"hunter{len(KINDS)}", f"passwrd{len(KINDS)}"
    value = {"count": "x", "password": secret, name: secret, "list": [secret]}
    before = [sys.getrefcount(one) for one in (secret, name, value)]

    texts(compiled, value)

    assert [sys.getrefcount(one) for one in (secret, name, value)] == before


def test_it_goes_with_its_schema() -> None:
    before = alive(Survey)
    compiled = compile_schema(KINDS)
    compiled.faults({})
    assert alive(Survey) == before + 1
    del compiled
    assert alive(Survey) == before


def test_only_so_many_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    most = alive(Survey) + 5
    monkeypatch.setattr(module, "_SURVEYED", Latest(most))
    many = [compile_schema({**KINDS, "title": str(number)}) for number in range(40)]

    said = [compiled.faults({"count": "x"}) for compiled in [*many, *many]]

    assert len(set(said)) == 1
    assert alive(Survey) <= most


def test_schemas_of_which_nothing_is_asked_cost_nothing() -> None:
    before = alive(Survey), alive(Spot)
    compiled = compile_schema(KINDS)
    assert compiled.faults({"count": 1}) == ()
    assert (alive(Survey), alive(Spot)) == before


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 12) | st.sampled_from(["", "fast", "abc", "1x"]),
    lambda inside: (
        st.lists(inside, max_size=3)
        | st.dictionaries(
            st.sampled_from(["count", "kind", "where", "on", "path", "port", "x_a", "odd"]), inside
        )
    ),
    max_leaves=8,
)
NAMED = st.fixed_dictionaries(
    {},
    optional=dict.fromkeys([*KINDS["properties"], "x_a", "pasword", "left", "size"], JSON),
)


@settings(deadline=None, max_examples=60)
@given(values=st.lists(NAMED | JSON, min_size=2, max_size=5), schema=st.sampled_from([KINDS, TREE]))
def test_what_is_said_of_a_value_does_not_depend_on_those_before(
    values: list[Any], schema: dict[str, Any]
) -> None:
    alone = [texts(compile_schema(schema), value) for value in values]
    one = compile_schema(schema)
    assert [texts(one, value) for value in values] == alone
    assert [texts(one, value) for value in reversed(values)] == alone[::-1]


def test_threads_that_are_the_first_to_ask_are_told_the_same() -> None:
    values = [
        {"count": "x", "where": {"on": "net", "port": 10}},
        {"kind": "dep", "list": ["A", "b", "C"], "x_a": 1},
        {"count": 1, "password": "short", "odd": 1},
    ]
    alone = json.dumps([texts(compile_schema(KINDS), value)[1] for value in values])
    faults = [compile_schema(KINDS).faults(value) for value in values]
    with ThreadPoolExecutor(8) as pool:
        for _ in range(20):
            compiled, start = compile_schema(KINDS), Barrier(8)

            def ask(compiled: CompiledSchema = compiled, start: Barrier = start) -> list[Any]:
                start.wait()
                return [texts(compiled, value) for value in values]

            for asked in [pool.submit(ask) for _ in range(8)]:
                found = asked.result()
                assert [issues for issues, _ in found] == faults
                assert json.dumps([shown for _, shown in found]) == alone


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "integer"}, 1.5),
        ({"type": "integer", "title": "n", "default": 1}, "x"),
        ({"enum": [1, "a"]}, True),
        ({"format": "date"}, "1"),
        ({"pattern": "^a"}, "b"),
        ({"type": ["string", "null"], "minLength": 2}, "x"),
    ],
)
def test_a_place_that_only_asserts_is_checked_without_the_rest(
    schema: dict[str, Any], value: Any
) -> None:
    class Alone(Validators):
        def around(self, schema: Any) -> Any:
            raise AssertionError(schema)

    whole = {"properties": {"a": schema}}
    validators = Alone(whole, DRAFT_2020, {}, assert_formats=True)
    spot = Survey(Documents(whole, DRAFT_2020, {}), DRAFT_2020, validators).root.part(
        "properties", "a"
    )

    assert not spot.accepts(value)
    assert len(spot.broken(value)) == 1


def test_parts_of_other_drafts_are_not_checked_by_themselves() -> None:
    old = {
        "$id": "urn:old",
        "$schema": "http://json-schema.org/draft-04/schema#",
        "properties": {"n": {"minimum": 3, "exclusiveMinimum": True}},
    }
    compiled = compile_schema({"properties": {"a": old}}, unknown_keywords="ignore")
    assert not a_survey(compiled.schema).is_uniform
    assert compiled.faults({"a": {"n": 3}})
    assert compiled.faults({"a": {"n": 4}}) == ()
