from __future__ import annotations

from typing import Any

import pytest

from seawall.pipeline.arguments.lenient.lenient import Lenient

INTEGER = {"type": "integer"}


def told(schema: dict[str, Any], value: Any) -> list[tuple[str, str, str]]:
    return [(i.path, i.keyword, i.message) for i in Lenient(schema).faults(value)]


@pytest.mark.parametrize(
    ("schema", "value", "message"),
    [
        ({"type": ["string", "any"]}, {}, "expected string or any, got object"),
        ({"type": "string"}, 1.5, "expected string, got number"),
        ({"enum": [0] * 22}, "x", f"expected one of [{'0,' * 19}0, ... and 2 more]"),
        ({"const": {"a": 1.0}}, 1, 'expected {"a":1}'),
        ({"minimum": 1.0}, 0, "expected >= 1"),
        ({"maximum": 1e21}, 1e22, "expected <= 1e+21"),
        ({"exclusiveMinimum": 1}, 1, "expected > 1"),
        ({"exclusiveMaximum": 0.5}, 1, "expected < 0.5"),
        ({"multipleOf": 0.3}, 1, "expected a multiple of 0.3"),
        ({"minLength": 1}, "", "expected at least 1 characters"),
        ({"maxItems": 1}, [1, 2], "expected at most 1 items"),
        ({"maxProperties": 0}, {"a": 1}, "expected at most 0 properties"),
        ({"uniqueItems": True}, [1, 1], "expected unique items"),
        ({"contains": INTEGER}, ["a"], "expected at least 1 matching item"),
        ({"contains": INTEGER, "minContains": 2}, [1], "expected at least 2 matching items"),
        (
            {"contains": INTEGER, "minContains": 0, "maxContains": 1},
            [1, 2],
            "expected at most 1 matching item",
        ),
        (
            {"contains": INTEGER, "maxContains": 2},
            [1, 2, 3],
            "expected between 1 and 2 matching items",
        ),
        ({"not": {}}, 1, "must not match the schema in not"),
        ({"anyOf": []}, 1, "matches no alternative"),
        ({"oneOf": [{}, {}]}, 1, "matches more than one alternative"),
        ({"allOf": [False]}, 1, "no value is allowed here"),
        ({"$ref": "#/none"}, 1, "unresolved reference #/none"),
    ],
)
def test_each_keyword_has_its_words(schema: dict[str, Any], value: Any, message: str) -> None:
    assert [text for _, _, text in told(schema, value)] == [message]


def test_a_wrong_type_hides_everything_else() -> None:
    schema = {"type": "string", "minLength": 3, "enum": ["abc"], "not": {}}

    assert told(schema, 5) == [("", "type", "expected string, got integer")]


def test_issues_come_in_the_order_of_required_properties_keys_counts_dependencies() -> None:
    schema = {
        "required": ["z", "a"],
        "properties": {"b": INTEGER, "2": INTEGER, "a": INTEGER},
        "patternProperties": {"^p": {"type": "null"}},
        "additionalProperties": False,
        "propertyNames": {"maxLength": 2},
        "minProperties": 9,
        "dependentRequired": {"b": ["q"]},
        "not": {"required": ["b"]},
    }

    assert [(path, keyword) for path, keyword, _ in told(schema, {"xxx": 1, "p": 1, "b": "x"})] == [
        ("/z", "required"),
        ("/a", "required"),
        ("/b", "type"),
        ("/xxx", "additionalProperties"),
        ("/xxx", "propertyNames"),
        ("/p", "type"),
        ("", "minProperties"),
        ("/q", "dependentRequired"),
        ("", "not"),
    ]


def tagged(*tags: Any) -> dict[str, Any]:
    return {
        "oneOf": [
            {"properties": {"k": {"const": tag}, "n": INTEGER}, "required": ["k"]} for tag in tags
        ]
    }


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        ({"k": "b", "n": "x"}, ("/n", "type", "expected integer, got string")),
        ({"k": "c"}, ("/k", "oneOf", 'expected one of ["a","b"]')),
        ({"n": 1}, ("/k", "oneOf", 'expected one of ["a","b"]')),
    ],
)
def test_a_tag_decides_which_branch_is_blamed(value: Any, wanted: tuple[str, str, str]) -> None:
    assert told(tagged("a", "b"), value) == [wanted]


@pytest.mark.parametrize("tags", [("a", "a"), ([1], [2]), ({}, "a")])
def test_constants_that_are_no_distinct_scalars_are_no_tags(tags: Any) -> None:
    assert told(tagged(*tags), {"k": "zzz"})[0][1] == "const"


def test_a_tag_is_found_through_references() -> None:
    schema = {
        "anyOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/b"}],
        "$defs": {
            "a": {"properties": {"k": {"const": 1}}, "required": ["k"]},
            "b": {"properties": {"k": {"const": 2}}, "required": ["k"]},
        },
    }

    assert told(schema, {"k": 3}) == [("/k", "anyOf", "expected one of [1,2]")]


def test_a_reference_to_nothing_declares_nothing() -> None:
    schema = {
        "anyOf": [
            {"$ref": "#/none", "properties": {"a": INTEGER, "b": INTEGER}},
            {"properties": {"a": INTEGER}},
        ]
    }

    assert told(schema, {"a": "x", "b": 1}) == [("/a", "type", "expected integer, got string")]


def test_without_a_tag_the_branch_that_declares_most_keys_is_blamed() -> None:
    schema = {
        "anyOf": [
            {"properties": {"a": INTEGER}, "required": ["far"]},
            {"properties": {"a": INTEGER, "b": INTEGER}, "required": ["c"]},
        ]
    }

    assert told(schema, {"a": 1, "b": 2}) == [("/c", "required", "missing")]


def test_then_the_branch_whose_first_issue_has_the_longest_path_is_blamed() -> None:
    schema = {"anyOf": [{"type": "object"}, {"items": {"type": "null"}}, {"type": "string"}]}

    assert told(schema, [1]) == [("/0", "type", "expected null, got integer")]


def test_a_shared_subschema_tells_its_issues_wherever_it_is_used() -> None:
    schema = {
        "properties": {"a": {"$ref": "#/$defs/n"}, "b": {"$ref": "#/$defs/n"}},
        "allOf": [{"properties": {"a": {"$ref": "#/$defs/n"}}}],
        "$defs": {"n": {"minimum": 5}},
    }

    assert [path for path, _, _ in told(schema, {"a": 1, "b": 1})] == ["/a", "/b", "/a"]


def test_unevaluated_members_are_told_only_when_nothing_else_is_wrong() -> None:
    schema = {"unevaluatedProperties": False, "properties": {"a": INTEGER}}

    assert told(schema, {"a": "x", "b": 1}) == [("/a", "type", "expected integer, got string")]
    assert told(schema, {"a": 1, "b": 1, "1": 2}) == [
        ("/1", "unevaluatedProperties", "unknown field"),
        ("/b", "unevaluatedProperties", "unknown field"),
    ]


def test_unevaluated_items_are_told_by_position() -> None:
    schema = {"unevaluatedItems": False, "prefixItems": [True]}

    assert told(schema, [1, 2]) == [("/1", "unevaluatedItems", "unexpected item")]
    assert told({"unevaluatedItems": INTEGER}, ["x"]) == [
        ("/0", "type", "expected integer, got string")
    ]
