from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from seawall.pipeline.arguments.lenient.check import Checker, TooMuchWork, Work
from seawall.pipeline.arguments.lenient.faults import FaultFinder
from seawall.pipeline.arguments.lenient.lenient import Lenient
from seawall.pipeline.arguments.lenient.schema import read_schema

if TYPE_CHECKING:
    from seawall.contract.failure import Issue

INTEGER = {"type": "integer"}
TABLE: list[tuple[dict[str, Any], list[Any], list[Any]]] = [
    ({"enum": [1, "a", None, [1], {"a": 1}]}, [1.0, "a", None, [1], {"a": 1}], [True, [True], 2]),
    ({"minLength": 1, "maxLength": 2, "format": "date"}, [5], ["", "abc", "ab"]),
    ({"minimum": 0, "exclusiveMaximum": 2, "multipleOf": 0.1}, [0, 1.3, "x"], [-1, 2, 0.15]),
    ({"exclusiveMinimum": 1, "maximum": 2}, [1.5, 2], [1, 3]),
    ({"minProperties": 1, "maxProperties": 2}, [{"a": 1}], [{}, {"a": 1, "b": 1, "c": 1}]),
    ({"minItems": 1, "maxItems": 2, "uniqueItems": True}, [[1, True]], [[], [1, 1.0], [1, 2, 3]]),
    ({"required": ["a"]}, [{"a": None}, 5], [{}]),
    ({"properties": {"a": INTEGER}, "additionalProperties": False}, [{"a": 1}], [{"b": 1}]),
    ({"patternProperties": {"^a": INTEGER, "b$": {"minimum": 5}}}, [{"ab": 5}], [{"ab": 4}]),
    ({"propertyNames": {"maxLength": 1}}, [{"a": 1}, {}], [{"ab": 1}, {"a": 1, "": 2, "cd": 1}]),
    ({"dependentRequired": {"a": ["b"]}}, [{"b": 1}, {"a": 1, "b": 1}], [{"a": 1}]),
    ({"dependentSchemas": {"a": {"maxProperties": 1}}}, [{"a": 1}, {}], [{"a": 1, "b": 1}]),
    ({"dependencies": {"a": {"required": ["b"]}}}, [{"a": 1, "b": 1}], [{"a": 1}]),
    ({"prefixItems": [INTEGER], "items": {"type": "string"}}, [[1, "a"], []], [["a"], [1, 2]]),
    ({"items": [INTEGER], "additionalItems": False}, [[1], []], [[1, 2], ["a"]]),
    ({"contains": INTEGER, "minContains": 2, "maxContains": 2}, [[1, 2, "a"]], [[1], [1, 2, 3]]),
    ({"allOf": [INTEGER, {"minimum": 2}]}, [2], [1, "a"]),
    ({"anyOf": [INTEGER, {"type": "null"}]}, [1, None], ["a"]),
    ({"oneOf": [INTEGER, {"type": "number", "minimum": 2}]}, [1, 2.5], [3, 1.5, "a"]),
    ({"not": INTEGER}, ["a"], [1]),
    ({"if": INTEGER, "then": {"minimum": 2}, "else": {"type": "null"}}, [2, None], [1, "a"]),
    ({"if": INTEGER, "else": {"type": "null"}}, [1, None], ["a"]),
    ({"if": INTEGER}, [1, "a"], []),
    ({"$ref": "#/$defs/i", "minimum": 2, "$defs": {"i": INTEGER}}, [2], [1, "a"]),
    ({"$ref": "#/$defs/t", "$defs": {"t": True}}, [1], []),
    ({"$ref": "#/$defs/f", "$defs": {"f": False}}, [], [1]),
    ({"$ref": "#/$defs/none"}, [], [1, {}, None]),
    ({"$dynamicRef": "#i", "$defs": {"i": {"$dynamicAnchor": "i", **INTEGER}}}, [1], ["a"]),
    (
        {
            "unevaluatedProperties": False,
            "properties": {"a": True},
            "patternProperties": {"^p": True},
            "allOf": [{"properties": {"b": True}}],
            "anyOf": [{"properties": {"c": INTEGER}}, {"required": ["zz"]}],
            "if": {"properties": {"d": {"const": 1}}, "required": ["d"]},
            "then": {"properties": {"e": True}},
            "else": {"properties": {"f": True}},
            "dependentSchemas": {"a": {"properties": {"g": True}}},
            "$ref": "#/$defs/r",
            "$defs": {"r": {"properties": {"h": True}}},
        },
        [
            {"a": 1, "pp": 1, "b": 1, "c": 1, "f": 1, "g": 1, "h": 1},
            {"d": 1, "e": 1},
            {},
        ],
        [{"x": 1}, {"g": 1}, {"d": 1, "f": 1}, {"e": 1}, {"zz": 1}],
    ),
    (
        {"unevaluatedProperties": INTEGER, "additionalProperties": {"type": "string"}},
        [{"a": "x"}],
        [{"a": 1}],
    ),
    (
        {"unevaluatedProperties": INTEGER, "oneOf": [{"properties": {"a": True}}]},
        [{"a": "x", "b": 1}, 5],
        [{"b": "x"}],
    ),
    (
        {"unevaluatedItems": INTEGER, "prefixItems": [True], "contains": {"const": "c"}},
        [["a", "c", 1], {}],
        [["a", "c", "d"]],
    ),
    (
        {"unevaluatedItems": False, "allOf": [{"items": True}]},
        [["a", "c", 1]],
        [],
    ),
    (
        {"unevaluatedItems": False, "allOf": [{"unevaluatedItems": INTEGER}]},
        [[1, 2]],
        [["a"]],
    ),
    (
        {"unevaluatedProperties": False, "allOf": [{"unevaluatedProperties": INTEGER}]},
        [{"a": 1}],
        [{"a": "x"}],
    ),
    ({"unevaluatedItems": False, "unevaluatedProperties": False}, [[], {}, 5], [[1], {"a": 1}]),
]


def checked(schema: dict[str, Any], value: Any) -> list[bool]:
    """Ask for one verdict in every way there is."""
    root = read_schema(schema).root
    issues: list[Issue] = []
    FaultFinder(Checker(Work(1000)), Work(1000)).find(root, value, "", issues)
    lenient = Lenient(schema)
    assert lenient._validator is not None
    return [
        Checker(Work(1000)).accepts(root, value),
        not issues,
        lenient.faults(value) == (),
        lenient._validator.is_valid(value),
    ]


@pytest.mark.parametrize(("schema", "good", "bad"), TABLE)
def test_every_keyword_is_checked_the_same_way_everywhere(
    schema: dict[str, Any], good: list[Any], bad: list[Any]
) -> None:
    assert [value for value in good if checked(schema, value) != [True] * 4] == []
    assert [value for value in bad if checked(schema, value) != [False] * 4] == []


def test_answers_for_shared_subschemas_are_remembered() -> None:
    root = read_schema(
        {
            "type": "array",
            "items": {"anyOf": [{"$ref": "#/$defs/big"}, {"$ref": "#/$defs/big"}, True]},
            "$defs": {"big": {"properties": {"a": {"items": {"type": "integer"}}}}},
        }
    ).root
    value = {"a": [1] * 50 + ["x"]}

    assert Checker(Work(70)).accepts(root, [value])


def test_work_beyond_the_budget_is_refused() -> None:
    root = read_schema({"items": {"type": "integer"}}).root

    with pytest.raises(TooMuchWork):
        Checker(Work(10)).accepts(root, [1] * 20)
