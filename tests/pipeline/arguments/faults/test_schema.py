"""What is wrong with a schema: every keyword's value, patterns, drafts, unknown words."""

from __future__ import annotations

from typing import Any

import pytest

from seawall.pipeline.arguments.faults.schema import schema_faults
from seawall.pipeline.arguments.schema.validators import pattern_limits


def faults(schema: Any, **options: Any) -> dict[str, str]:
    options = {"where": "", "refuse_unknown": True, "limits": pattern_limits(1), **options}
    return {fault.key: fault.message for fault in schema_faults(schema, **options)}


@pytest.mark.parametrize(
    ("keyword", "right", "wrong", "said"),
    [
        ("type", "string", "text", "must be one of array, boolean"),
        ("type", ["string", "null"], ["string", "string"], "must be one of"),
        ("enum", [], {}, "must be a list of values"),
        ("minimum", 1.5, True, "must be a number"),
        ("exclusiveMaximum", 1, "1", "must be a number"),
        ("multipleOf", 0.1, 0, "must be a number above 0"),
        ("minLength", 2.0, 1.5, "must be a whole number of at least 0"),
        ("maxItems", 0, -1, "must be a whole number of at least 0"),
        ("minContains", 0, None, "must be a whole number of at least 0"),
        ("pattern", "^a", "((", "is no regular expression"),
        ("pattern", r"[\w-.]", 5, "must be a text"),
        ("format", "anything", 5, "must be a text"),
        ("required", ["a"], ["a", "a"], "must be a list of different names"),
        ("required", True, [1], "must be a list of different names"),
        ("properties", {"a": True}, [], "must be an object of names and schemas"),
        ("allOf", [True], [], "must be a list of at least one schema"),
        ("dependentRequired", {"a": ["b"]}, {"a": True}, "must be an object of names and lists"),
        ("dependencies", {"a": ["b"], "c": {}}, {"a": 1}, "must be an object of names and schem"),
        ("uniqueItems", False, "no", "must be true or false"),
        ("nullable", None, 1, "must be true or false"),
        ("$ref", "#", 1, "must be a text"),
        ("$id", "https://x.org/", 1, "must be a text"),
        ("$id", "relative", "::::", "must be an address without a fragment"),
        ("title", "t", 1, "must be a text"),
    ],
)
def test_a_keyword_with_a_wrong_value_is_told(
    keyword: str, right: Any, wrong: Any, said: str
) -> None:
    assert faults({keyword: right}) == {}
    ((key, message),) = faults({keyword: wrong}).items()
    assert key == f"/{keyword}"
    assert message.startswith(said)


@pytest.mark.parametrize("keyword", ["items", "not", "additionalProperties", "if"])
def test_what_stands_where_a_schema_belongs_must_be_one(keyword: str) -> None:
    assert faults({keyword: True}) == {}
    ((key, message),) = faults({keyword: "x"}).items()
    assert key == f"/{keyword}"
    assert message.startswith("must be a schema")


def test_an_unknown_keyword_is_told_with_the_one_that_was_meant() -> None:
    assert faults({"requird": ["a"], "colour": 1}) == {
        "/requird": (
            "\"requird\" is no keyword, so nothing would enforce it; did you mean 'required'?"
            " (annotations of your own begin with x-)"
        ),
        "/colour": (
            '"colour" is no keyword, so nothing would enforce it'
            " (annotations of your own begin with x-)"
        ),
    }
    assert faults({"requird": ["a"]}, refuse_unknown=False) == {}


def test_only_what_stands_where_a_schema_belongs_is_looked_at() -> None:
    assert faults({"enum": [{"type": 5}], "default": {"type": 5}, "x-a": {"type": 5}}) == {}


def test_a_node_that_stands_in_two_places_is_told_once() -> None:
    schema = {
        "properties": {
            "a": {"$ref": "#/components/0"},
            "b": {"$ref": "#/components/0"},
            "c": {"$ref": "#/components/7"},
        },
        "components": [{"type": 5}],
    }
    assert list(faults(schema)) == ["/components/0/type"]


def test_a_bound_that_excludes_nothing_is_told() -> None:
    assert list(faults({"exclusiveMaximum": True, "exclusiveMinimum": False})) == [
        "/exclusiveMaximum"
    ]


@pytest.mark.parametrize("uri", ["http://json-schema.org/draft-07/schema#", "https://x.org/own"])
def test_a_known_draft_and_an_own_metaschema_are_no_fault(uri: str) -> None:
    assert faults({"$schema": uri}, addresses=frozenset({"https://x.org/own"})) == {}


def test_a_long_value_is_cut() -> None:
    (message,) = faults({"type": "x" * 5000}).values()
    assert len(message) < 300


def test_not_more_than_a_few_unusable_patterns_are_tried() -> None:
    schema = {"patternProperties": {f"(({n}": {"pattern": "(("} for n in range(50)}}
    assert len(faults(schema)) == 50
    schema = {"properties": {f"p{n}": {"pattern": "(("} for n in range(50)}}
    assert len(faults(schema)) == 10


def test_patterns_that_can_be_used_are_no_fault() -> None:
    schema = {"patternProperties": {"^a": {}, "((": {}, r"[\w-.]": {}}, "properties": {"a": 5}}
    assert list(faults(schema)) == ["/patternProperties/((", "/properties/a"]
