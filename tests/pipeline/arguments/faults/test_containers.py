"""Faults inside of objects and lists."""

from __future__ import annotations

from typing import Any

import pytest

from seawall.pipeline.arguments.compiled import compile_schema


def faults(schema: Any, value: Any, **options: Any) -> list[tuple[str, str, str]]:
    found = compile_schema(schema, root_object=False, **options).faults(value)
    return [(issue.path, issue.keyword, issue.message) for issue in found]


AB = {"a": {"type": "integer"}, "b": {}}


@pytest.mark.parametrize(
    ("schema", "value", "found"),
    [
        ({"properties": AB, "required": ["a", "c"]}, {},
         [("/a", "required", "missing; expected integer"), ("/c", "required", "missing")]),
        ({"required": ["m"], "properties": {"m": {"enum": [1, 2]}}}, {},
         [("/m", "required", "missing; expected one of [1, 2]")]),
        ({"required": ["m"], "properties": {"m": {"const": "x"}}}, {},
         [("/m", "required", 'missing; expected "x"')]),
        ({"properties": {"limit": {}, "path": {}}, "additionalProperties": False}, {"limt": 1},
         [("/limt", "additionalProperties",
           'unknown argument "limt"; did you mean "limit"? (allowed: "limit", "path")')]),
        ({"additionalProperties": False}, {"x": 1},
         [("/x", "additionalProperties", 'unknown argument "x" (allowed: none)')]),
        ({"patternProperties": {"^k": {}}, "additionalProperties": False}, {"x": 1, "k1": 1},
         [("/x", "additionalProperties",
           'unknown argument "x" (allowed: what matches "^k")')]),
        ({"patternProperties": {"^k": {"type": "null"}}}, {"k1": 1},
         [("/k1", "type", "expected null, got integer")]),
        ({"additionalProperties": {"type": "null"}, "properties": {"a": {}}}, {"a": 1, "b": 1},
         [("/b", "type", "expected null, got integer")]),
        ({"propertyNames": {"pattern": "^[a-z]+$"}}, {"A": 1, "b": 1},
         [("/A", "propertyNames",
           'the name "A" is not allowed: expected to match ^[a-z]+$, got "A"')]),
        ({"dependentRequired": {"a": ["b", "c"], "z": ["y"]}}, {"a": 1, "b": 1},
         [("/c", "dependentRequired", 'missing; required when "a" is given')]),
        ({"dependencies": {"a": ["b"]}}, {"a": 1},
         [("/b", "dependentRequired", 'missing; required when "a" is given')]),
        ({"dependentSchemas": {"a": {"properties": {"b": {"type": "null"}}}}}, {"a": 1, "b": 1},
         [("/b", "type", "expected null, got integer")]),
    ],
)  # fmt: skip
def test_faults_of_members(schema: Any, value: Any, found: list[Any]) -> None:
    assert faults(schema, value) == found


@pytest.mark.parametrize(
    ("schema", "value", "found"),
    [
        ({"items": {"type": "integer"}}, [1, "x", 2, None],
         [("/1", "type", "expected integer, got string"),
          ("/3", "type", "expected integer, got null")]),
        ({"prefixItems": [{"type": "integer"}], "items": {"type": "null"}}, ["x", None, 5],
         [("/0", "type", "expected integer, got string"),
          ("/2", "type", "expected null, got integer")]),
        ({"prefixItems": [True], "items": False}, [1, 2, 3],
         [("/1", "items", "unexpected item; expected at most 1 item")]),
        ({"prefixItems": [True, False]}, [1, 2],
         [("/1", "not", "no value is allowed here; leave it out")]),
        ({"items": True, "minItems": 1}, [],
         [("", "minItems", "expected at least 1 item, got 0")]),
        ({"contains": {"type": "integer"}}, ["x"],
         [("", "contains", "expected at least 1 matching item (integer), got 0")]),
        ({"contains": {"minimum": 3}, "minContains": 2}, [1, 4],
         [("", "contains", "expected at least 2 matching items, got 1")]),
        ({"contains": {"const": 1}, "maxContains": 1}, [1, 1],
         [("", "contains", "expected at most 1 matching item (1), got 2")]),
    ],
)  # fmt: skip
def test_faults_of_items(schema: Any, value: Any, found: list[Any]) -> None:
    assert faults(schema, value) == found


def test_a_list_of_items_of_an_old_draft_is_looked_into() -> None:
    schema = {"items": [{"type": "integer"}], "additionalItems": {"type": "null"}}
    assert faults(schema, ["x", 1], draft="draft-07") == [
        ("/0", "type", "expected integer, got string"),
        ("/1", "type", "expected null, got integer"),
    ]


def test_an_old_draft_counts_one_contained_item_whatever_it_says() -> None:
    schema = {"contains": {"type": "null"}, "minContains": 5}
    found = faults(schema, [1], draft="draft-07", unknown_keywords="ignore")
    assert found == [("", "contains", "expected at least 1 matching item (null), got 0")]


@pytest.mark.parametrize(
    ("schema", "value", "found"),
    [
        ({"allOf": [{"properties": {"a": {}}}], "properties": {"b": {}},
          "unevaluatedProperties": False}, {"a": 1, "b": 2, "bb": 3},
         [("/bb", "unevaluatedProperties", 'unknown argument "bb" (allowed: "b", "a")')]),
        ({"properties": {"a": {}}, "unevaluatedProperties": {"type": "null"}}, {"a": 1, "c": 1},
         [("/c", "type", "expected null, got integer")]),
        ({"oneOf": [{"properties": {"a": {}}, "required": ["a"]},
                    {"properties": {"b": {}}, "required": ["x"]}],
          "unevaluatedProperties": False}, {"a": 1, "b": 1},
         [("/b", "unevaluatedProperties", '"b" is not allowed together with the others')]),
        ({"prefixItems": [True], "unevaluatedItems": False}, [1, 2, 3],
         [("/1", "unevaluatedItems", "unexpected item")]),
    ],
)  # fmt: skip
def test_faults_of_what_no_part_speaks_of(schema: Any, value: Any, found: list[Any]) -> None:
    assert faults(schema, value) == found


def test_what_is_unevaluated_is_told_only_when_all_else_is_content() -> None:
    schema = {"properties": {"a": {"type": "null"}}, "unevaluatedProperties": False}
    assert [path for path, _, _ in faults(schema, {"a": 1, "b": 1})] == ["/a"]


def test_a_very_long_name_is_blamed_on_what_encloses_it_and_cut() -> None:
    ((path, _, said),) = faults({"additionalProperties": False}, {"x" * 5000: 1})
    assert path == ""
    assert len(said) < 200


def test_of_many_allowed_names_the_first_are_listed() -> None:
    schema = {"properties": {f"p{n}": {} for n in range(50)}, "additionalProperties": False}
    ((_, _, said),) = faults(schema, {"zzz": 1})
    assert '"p19" and 30 more)' in said


def test_an_unevaluated_item_far_back_is_blamed_on_the_list() -> None:
    schema = {"contains": {"type": "integer"}, "unevaluatedItems": False}
    found = faults(schema, [1] * 300 + ["x"])
    assert found == [("", "", "does not fit the schema")]
