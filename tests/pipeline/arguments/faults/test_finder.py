"""Faults in words that a model can act on: where, what was expected, what came."""

from __future__ import annotations

import inspect
import sys
from typing import Any

import pytest

from seawall.pipeline.arguments.compiled import compile_schema
from seawall.pipeline.arguments.faults.finder import ISSUES_AT_MOST, Finder
from seawall.pipeline.arguments.faults.survey import Survey
from seawall.pipeline.arguments.schema.dialects import DRAFT_2020
from seawall.pipeline.arguments.schema.documents import Documents
from seawall.pipeline.arguments.schema.validators import Validators


def members(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def faults(schema: Any, value: Any) -> list[tuple[str, str]]:
    """Give path and message of each fault."""
    return [(i.path, i.message) for i in compile_schema(schema, root_object=False).faults(value)]


def message(schema: Any, value: Any) -> str:
    ((path, said),) = faults(schema, value)
    assert path == ""
    return said


@pytest.mark.parametrize(
    ("schema", "value", "said"),
    [
        ({"type": "integer"}, "x", "expected integer, got string"),
        ({"type": "integer"}, 0.5, "expected integer, got number"),
        ({"type": "integer"}, True, "expected integer, got boolean"),
        ({"type": ["integer", "null"]}, [], "expected integer or null, got array"),
        ({"type": "string", "minLength": 3}, 7, "expected string, got integer"),
        ({"type": "string", "enum": ["a"]}, 7, 'expected "a", got 7'),
        ({"enum": ["fast", "deep"]}, "x", 'expected one of ["fast", "deep"], got "x"'),
        (
            {"enum": ["fast", "deep"]},
            "Fats",
            'expected one of ["fast", "deep"], got "Fats"; did you mean "fast"?',
        ),
        ({"const": {"a": 1}}, 5, 'expected {"a":1}, got 5'),
        ({"minimum": 1}, 0, "expected >= 1, got 0"),
        ({"maximum": 1}, 2.5, "expected <= 1, got 2.5"),
        ({"exclusiveMinimum": 1}, 1, "expected > 1, got 1"),
        ({"exclusiveMaximum": 1}, 1, "expected < 1, got 1"),
        ({"multipleOf": 5}, 7, "expected a multiple of 5, got 7"),
        ({"minLength": 3}, "ab", "expected at least 3 characters, got 2"),
        ({"maxLength": 1}, "ab", "expected at most 1 character, got 2"),
        ({"pattern": "^a"}, "b", 'expected to match ^a, got "b"'),
        (
            {"format": "date"},
            "today",
            'expected format date (such as 2024-01-31), got "today"',
        ),
        ({"format": "idn-email"}, "x", 'expected format idn-email, got "x"'),
        ({"minItems": 2}, [1], "expected at least 2 items, got 1"),
        ({"uniqueItems": True}, [1, 1], "expected unique items"),
        ({"minProperties": 1}, {}, "expected at least 1 property, got 0"),
        ({"maxProperties": 0}, {"a": 1}, "expected at most 0 properties, got 1"),
        (False, 1, "no value is allowed here; leave it out"),
        ({"not": {"type": "string"}}, "x", "must not be string"),
        ({"not": {"enum": ["a", "b"]}}, "a", 'must not be one of ["a", "b"]'),
        ({"not": {"required": ["a", "b"]}}, {"a": 1, "b": 1}, 'must not have "a" and "b" together'),
        ({"not": {"required": ["a"]}}, {"a": 1}, 'must not have "a"'),
        ({"not": {"minimum": 1, "type": "integer"}}, 3, "has a form that is ruled out (not)"),
        ({"if": {"type": "string"}, "then": {"minLength": 2}}, "a",
         "expected at least 2 characters, got 1"),
        ({"if": {"type": "string"}, "else": {"minimum": 2}}, 1, "expected >= 2, got 1"),
        ({"allOf": [{"minimum": 5}, {"type": "integer"}]}, 3, "expected >= 5, got 3"),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"minimum": 5}}}, 3,
         "expected >= 5, got 3"),
        ({"pattern": "^(?:(?=a)a|a)+$"}, "a" * 40 + "!",
         "could not be matched in time; send a shorter text"),
        ({"oneOf": [{"title": "Whole", "type": "integer"}, {"$ref": "#/$defs/Small"}],
          "$defs": {"Small": {"maximum": 9}}}, 3,
         'fits more than one of the alternatives ("Whole", "Small") but must fit exactly one'),
    ],
)  # fmt: skip
def test_a_fault_says_what_was_expected_and_what_came(schema: Any, value: Any, said: str) -> None:
    assert message(schema, value) == said


@pytest.mark.parametrize(
    ("schema", "value", "said"),
    [
        ({"minimum": 0, "exclusiveMinimum": True}, 0, "expected > 0, got 0"),
        ({"minimum": 0, "exclusiveMinimum": True}, -1, "expected > 0, got -1"),
        ({"maximum": 0, "exclusiveMaximum": True}, 0, "expected < 0, got 0"),
        ({"maximum": 0}, 1, "expected <= 0, got 1"),
    ],
)
def test_the_bounds_of_draft_4_are_told_rightly(schema: Any, value: Any, said: str) -> None:
    declared = {"$schema": "http://json-schema.org/draft-04/schema#", **schema}
    assert message(declared, value) == said


def test_the_encodings_of_draft_7_are_told() -> None:
    schema = {"$schema": "http://json-schema.org/draft-07/schema#", "contentEncoding": "base64"}
    assert message(schema, "%") == "expected text encoded as base64"
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "contentMediaType": "application/json",
    }
    assert message(schema, "{") == "expected text of type application/json"


def test_a_wrong_type_hides_what_means_values_of_the_right_one() -> None:
    schema = {"type": "string", "minLength": 2, "minimum": 5, "allOf": [{"type": "integer"}]}
    assert message(schema, 3) == "expected string, got integer"


def test_all_broken_assertions_of_a_value_are_told() -> None:
    found = faults({"type": "string", "minLength": 9, "pattern": "^b"}, "a")
    assert [path for path, _ in found] == ["", ""]


def test_faults_come_in_the_order_in_which_arguments_are_declared() -> None:
    schema = {
        **members(b={"type": "integer"}, a={"type": "integer"}, c={"type": "string"}),
        "allOf": [{"required": ["c"]}, members(d={"type": "null"})],
        "required": ["z", "a"],
        "additionalProperties": True,
    }
    found = faults(schema, {"d": 1, "b": "x"})
    assert [path for path, _ in found] == ["/b", "/a", "/c", "/d", "/z"]


def test_what_several_parts_miss_is_missing_once() -> None:
    schema = {**members(a={"type": "string"}), "required": ["a"], "allOf": [{"required": ["a"]}]}
    assert faults(schema, {}) == [("/a", "missing; expected string")]


def test_paths_are_json_pointers() -> None:
    schema = members(**{"a/b": {"type": "integer"}, "c~d": {"items": {"type": "integer"}}})
    found = faults(schema, {"a/b": "x", "c~d": [1, "x"]})
    assert [path for path, _ in found] == ["/a~1b", "/c~0d/1"]


def test_a_value_without_a_place_for_it_says_what_the_schema_refers_to() -> None:
    found = faults(members(a={"$ref": "#/$defs/Gone"}), {"a": 1})
    assert found == [
        (
            "/a",
            (
                'no value can be taken: the schema refers to "#/$defs/Gone", which is not there;'
                " leave it out"
            ),
        )
    ]


def test_where_references_are_dynamic_only_the_whole_is_blamed() -> None:
    schema = {
        "$id": "https://x.org/strict",
        "$dynamicAnchor": "node",
        "$ref": "tree",
        "unevaluatedProperties": False,
        "$defs": {
            "tree": {
                "$id": "https://x.org/tree",
                "$dynamicAnchor": "node",
                "properties": {"children": {"items": {"$dynamicRef": "#node"}}},
            }
        },
    }
    assert faults(schema, {"children": [{"daat": 1}]}) == [("", "does not fit the schema")]


@pytest.mark.parametrize(
    "schema",
    [
        {"$dynamicAnchor": "node", **members(a={"$dynamicRef": "#node"})},
        {
            "$schema": "https://json-schema.org/draft/2019-09/schema",
            "$recursiveAnchor": True,
            **members(a={"$recursiveRef": "#"}),
        },
    ],
)
def test_a_dynamic_reference_with_one_meaning_is_followed(schema: Any) -> None:
    assert faults(schema, {"a": {"a": 1}}) == [("/a/a", "expected object, got integer")]


def test_a_reference_to_a_metaschema_is_checked_but_not_looked_into() -> None:
    schema = members(a={"$ref": "https://json-schema.org/draft/2020-12/schema"})
    assert faults(schema, {"a": {"type": "wrong"}}) == [("/a", "does not fit the schema")]


def test_a_hundred_faults_are_enough() -> None:
    schema = members(a={"items": {"type": "integer"}})
    found = faults(schema, {"a": ["x"] * 5000})
    assert len(found) == ISSUES_AT_MOST
    assert found[-1][0] == "/a/99"


def nested(levels: int, leaf: Any, key: str = "a") -> Any:
    value = leaf
    for _ in range(levels):
        value = {key: value}
    return value


def test_a_fault_deep_inside_is_found() -> None:
    schema = {**members(a={"$ref": "#"}, b={"type": "integer"})}
    ((path, said),) = faults(schema, nested(40, {"b": "x"}))
    assert path == "/a" * 40 + "/b"
    assert said == "expected integer, got string"


def test_a_fault_too_deep_to_reach_is_told_for_the_place_reached() -> None:
    schema = {"allOf": [{"properties": {"a": {"$ref": "#"}}, "type": "object"}]}
    ((path, said),) = faults(schema, nested(110, 1))
    assert path.startswith("/a/a/a")
    assert said == "does not fit the schema"


def test_branches_that_double_with_each_level_do_not_double_the_work() -> None:
    part = {"properties": {"a": {"$ref": "#"}}}
    schema = {"type": "object", "allOf": [part, dict(part)]}
    assert faults(schema, nested(60, 1))


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"additionalProperties": {"type": "integer"}}, {f"k{n}": 1 for n in range(19_900)}),
        ({"propertyNames": {"maxLength": 6}}, {f"k{n:05}": 1 for n in range(19_900)}),
        (members(a={"contains": {"type": "string"}}), {"a": [1] * 19_900}),
    ],
    ids=["members", "names", "contains"],
)
def test_looking_ends_in_time_and_then_the_place_reached_is_blamed(schema: Any, value: Any) -> None:
    broken = {**value, "k": "x", "k" * 9: 1} if "a" not in value else value
    found = faults(schema, broken)
    assert found[-1][1] == "does not fit the schema"


def test_one_bad_item_among_very_many_is_found() -> None:
    found = faults({"items": {"type": "integer"}}, [1] * 19_000 + ["x"])
    assert found == [("/19000", "expected integer, got string")]


def test_a_caller_deep_inside_of_something_still_gets_an_answer() -> None:
    compiled = compile_schema(members(a={"$ref": "#"}, b={"type": "integer"}))
    value = nested(60, {"b": "x"})

    def deep_inside(levels: int) -> Any:
        return deep_inside(levels - 1) if levels else compiled.faults(value)

    limit = sys.getrecursionlimit()
    depth = len(inspect.stack(0))
    (issue,) = deep_inside(limit - depth - 120)
    assert issue.message == "does not fit the schema"


def test_of_very_many_missing_members_a_hundred_are_told() -> None:
    assert len(faults({"required": [f"p{number}" for number in range(300)]}, {})) == ISSUES_AT_MOST


def test_a_document_of_another_draft_is_blamed_for_the_place_only() -> None:
    known = {
        "https://x.org/old": {
            "$id": "https://x.org/old",
            "$schema": "http://json-schema.org/draft-04/schema#",
            "minimum": 0,
            "exclusiveMinimum": True,
        }
    }
    compiled = compile_schema(members(a={"$ref": "https://x.org/old"}), resources=known)
    assert [(i.path, i.message) for i in compiled.faults({"a": -1})] == [
        ("/a", "does not fit the schema")
    ]


def test_a_part_that_cannot_be_checked_by_itself_is_not_blamed() -> None:
    class Unable(Validators):
        def around(self, schema: Any) -> Any:
            raise ValueError(schema)

    schema = members(a={"type": "array", "items": {"type": "integer"}})
    survey = Survey(
        Documents(schema, DRAFT_2020, {}),
        DRAFT_2020,
        Unable(schema, DRAFT_2020, {}, assert_formats=True),
    )
    assert [issue.path for issue in Finder(survey).find({"a": "x"})] == [""]


def test_looking_for_what_no_part_speaks_of_ends_in_time() -> None:
    schema = {
        "patternProperties": {f"^k{number}$": {} for number in range(300)},
        "unevaluatedProperties": False,
    }
    found = faults(schema, {f"x{number}": 1 for number in range(2000)})
    assert found == [("", "does not fit the schema")]
