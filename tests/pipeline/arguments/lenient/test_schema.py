from __future__ import annotations

from types import MappingProxyType
from typing import Any

import pytest

from seawall.contract.errors import ConfigurationError
from seawall.pipeline.arguments.lenient.lenient import Lenient
from seawall.pipeline.arguments.lenient.schema import read_schema


def faults(schema: dict[str, Any]) -> list[tuple[str, str]]:
    with pytest.raises(ConfigurationError) as caught:
        read_schema(schema)
    return [(fault.key, fault.message) for fault in caught.value.faults]


def test_every_fault_of_a_schema_is_told_with_its_place() -> None:
    schema = {
        "properties": {"a": 5, "b": {"pattern": "("}},
        "patternProperties": {"[": {}},
        "allOf": [None],
        "$ref": "#/$defs/x",
        "$defs": {"x": [], "unused": 7},
    }

    assert sorted(faults(schema)) == [
        ("", "the pattern '[' is no regular expression"),
        ("/$ref", "expected a schema: an object, true or false"),
        ("/allOf/0", "expected a schema: an object, true or false"),
        ("/properties/a", "expected a schema: an object, true or false"),
        ("/properties/b", "the pattern '(' is no regular expression"),
    ]


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"anyOf": [{"type": "string"}, {"$ref": "#"}]},
        {"not": {"$ref": "#"}},
        {"dependentSchemas": {"a": {"$ref": "#"}}},
        {"if": {"$ref": "#"}, "then": {}},
        {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}},
    ],
)
def test_a_schema_that_leads_back_to_itself_is_refused(schema: dict[str, Any]) -> None:
    assert [message for _, message in faults(schema)] == [
        "leads back to itself without going into a member or an item"
    ]


def test_recursion_through_members_and_items_is_fine() -> None:
    schema = {"properties": {"a": {"$ref": "#"}}, "items": {"$ref": "#"}}

    assert Lenient(schema).faults({"a": [{"a": 1}]}) == ()


def test_a_literal_without_end_is_refused() -> None:
    literal: Any = 1
    for _ in range(5_000):
        literal = [literal]

    assert faults({"const": literal}) == [("", "a literal in the schema is nested too deeply")]


def test_a_schema_may_be_nested_as_deeply_as_it_likes() -> None:
    schema: dict[str, Any] = {"type": "integer"}
    for _ in range(3_000):
        schema = {"properties": {"a": schema}}

    assert Lenient(schema).faults({"a": {"a": 1}}) == ()


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": [], "patternProperties": 1, "required": True, "dependencies": []},
        {"dependentRequired": {"a": 5}, "dependentSchemas": 5},
        {"minLength": "3", "maximum": True, "multipleOf": None, "pattern": 5, "format": 5},
        {"enum": "abc", "anyOf": {}, "allOf": "x", "uniqueItems": 1},
        {"$ref": 5, "$dynamicRef": 6, "$id": 7, "$anchor": 8, "minContains": "2"},
    ],
)
def test_keywords_of_the_wrong_shape_say_nothing(schema: dict[str, Any]) -> None:
    lenient = Lenient(schema)

    for value in ("x", 5, {"a": None}, [1, 1]):
        assert lenient.faults(value) == ()
        assert lenient.coerce(value)[0] is value


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({"minLength": 1.5, "maxLength": 2.5}, "ab", "a"),
        ({"minLength": -3}, "", None),
        ({"minLength": float("inf")}, 5, "x"),
        ({"maxLength": -1}, 5, ""),
        ({"multipleOf": -2}, 4, 3),
        ({"multipleOf": 0}, "x", 4),
        ({"maximum": float("inf")}, 4, None),
        ({"type": []}, None, 4),
        ({"type": 5}, None, 4),
        ({"type": ["any", "integer"]}, 4, "x"),
        ({"anyOf": []}, None, 4),
        ({"oneOf": []}, None, 4),
        ({"allOf": []}, 4, None),
        ({"enum": []}, None, 4),
        ({"required": ["a", 5, "a"]}, {"a": 1}, {}),
        ({"enum": ["\ud800"]}, "\ud800", "x"),
        (
            {"dependencies": {"a": {"minProperties": 2}}, "dependentSchemas": {"a": {}}},
            {},
            {"a": 1},
        ),
        (
            {"patternProperties": {r"\d": {"minimum": 1}, "[0-9]": {"maximum": 5}}},
            {"1": 3},
            {"1": 9},
        ),
    ],
)
def test_odd_keywords_are_enforced_all_the_same(schema: Any, good: Any, bad: Any) -> None:
    lenient = Lenient(schema)

    assert good is None or lenient.faults(good) == ()
    assert bad is None or lenient.faults(bad) != ()


def test_the_same_object_in_several_places_is_one_subschema() -> None:
    inner = {"type": "integer"}
    schema = MappingProxyType({"properties": {"a": inner, "b": inner}})

    root = read_schema(schema).root

    assert root.properties["a"] is root.properties["b"]
    assert Lenient(schema).coerce({"a": "1", "b": "2"})[0] == {"a": 1, "b": 2}


def test_a_schema_that_contains_itself_as_an_object_can_be_read() -> None:
    schema: dict[str, Any] = {"type": "object", "properties": {"n": {"type": "integer"}}}
    schema["properties"]["next"] = schema

    assert Lenient(schema).coerce({"next": {"n": "1"}})[0] == {"next": {"n": 1}}
