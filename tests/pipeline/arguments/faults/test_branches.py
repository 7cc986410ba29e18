"""Faults of unions are those of the alternative that was meant."""

from __future__ import annotations

from typing import Any

import pytest

from seawall.pipeline.arguments.compiled import compile_schema


def faults(schema: Any, value: Any) -> list[tuple[str, str]]:
    found = compile_schema(schema, root_object=False).faults(value)
    return [(issue.path, issue.message) for issue in found]


def shape(kind: Any, **properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {"kind": {"const": kind}, **properties},
        "required": ["kind", *properties],
    }


CIRCLE = shape("circle", radius={"type": "number"})
SQUARE = shape("square", side={"type": "number"})


@pytest.mark.parametrize("keyword", ["anyOf", "oneOf"])
def test_a_tag_names_the_alternative(keyword: str) -> None:
    schema = {keyword: [CIRCLE, SQUARE]}
    assert faults(schema, {"kind": "square", "radius": 1}) == [
        ("/side", "missing; expected number (read as alternative 2)")
    ]
    assert faults(schema, {"kind": "sqare", "side": 1}) == [
        ("/kind", 'expected one of ["circle", "square"], got "sqare"; did you mean "square"?')
    ]
    assert faults(schema, {"side": 1}) == [
        ("/kind", 'missing; expected one of ["circle", "square"]')
    ]


def test_a_tag_may_be_an_enum_behind_references() -> None:
    schema = {
        "anyOf": [{"$ref": "#/$defs/Circle"}, {"allOf": [{"$ref": "#/$defs/Square"}]}],
        "$defs": {
            "Circle": shape("c", r={"type": "number"}),
            "Square": {
                "properties": {"kind": {"$ref": "#/$defs/Kind"}, "s": {"type": "number"}},
                "required": ["s"],
            },
            "Kind": {"enum": ["s", "q"]},
        },
    }
    assert faults(schema, {"kind": "q"}) == [
        ("/s", "missing; expected number (read as alternative 2)")
    ]
    assert faults(schema, {"kind": "c", "r": "x"}) == [
        ("/r", 'expected number, got string (read as "Circle")')
    ]


def test_true_is_not_the_tag_1() -> None:
    schema = {"anyOf": [shape(1, a={}), shape(True, b={})]}
    assert [path for path, _ in faults(schema, {"kind": True})] == ["/b"]
    assert [path for path, _ in faults(schema, {"kind": 1})] == ["/a"]


def test_a_discriminator_says_which_member_is_the_tag() -> None:
    one = {"properties": {"a": {"const": 1}, "t": {"const": "x"}}, "required": ["t"]}
    two = {"properties": {"a": {"const": 2}, "t": {"const": "y"}}, "required": ["t"]}
    schema = {"anyOf": [one, two], "discriminator": {"propertyName": "t"}}
    assert faults(schema, {"a": 1, "t": "z"}) == [("/t", 'expected one of ["x", "y"], got "z"')]


def test_an_alternative_that_a_tag_contradicts_was_not_meant() -> None:
    other = {"type": "object", "properties": {"kind": {}, "radius": {}, "x": {}}, "required": ["x"]}
    assert faults({"anyOf": [SQUARE, other]}, {"kind": "disc", "radius": 1}) == [
        ("/x", "missing (read as alternative 2)")
    ]


def test_an_alternative_that_is_tagged_alone_may_be_the_only_one_left() -> None:
    other = {"type": "object", "properties": {"x": {}}, "required": ["x"]}
    assert faults({"anyOf": [SQUARE, other]}, {"kind": "square", "side": "1"}) == [
        ("/side", "expected number, got string (read as alternative 1)")
    ]


def test_without_tags_the_alternative_that_declares_most_members_was_meant() -> None:
    one = {"properties": {"a": {"type": "integer"}}, "required": ["a", "q"]}
    two = {"properties": {"a": {"type": "integer"}, "b": {}}, "required": ["a", "b", "c"]}
    assert faults({"anyOf": [one, two]}, {"a": 1, "b": 2}) == [
        ("/c", "missing (read as alternative 2)")
    ]


def test_of_equal_alternatives_the_one_in_which_the_value_gets_furthest_was_meant() -> None:
    one = {"properties": {"k": {"type": "string"}}}
    two = {"properties": {"k": {"type": "object", "properties": {"n": {"type": "integer"}}}}}
    found = faults({"anyOf": [one, two]}, {"k": {"n": "x"}})
    assert found == [("/k/n", "expected integer, got string (read as alternative 2)")]


def test_of_those_the_one_with_the_fewest_faults_was_meant() -> None:
    one = {"properties": {"a": {"type": "null"}, "b": {"type": "null"}}}
    two = {"properties": {"a": {"type": "null"}, "b": {"type": "integer"}}}
    found = faults({"anyOf": [one, two]}, {"a": 1, "b": 1})
    assert found == [("/a", "expected null, got integer (read as alternative 2)")]


@pytest.mark.parametrize(
    ("schema", "value", "said"),
    [
        ({"anyOf": [{"type": "integer"}, {"type": "boolean"}]}, "x",
         "expected integer or boolean, got string"),
        ({"anyOf": [{"type": "string", "maxLength": 1}, {"type": "null"}]}, "xy",
         "expected at most 1 character, got 2"),
        ({"anyOf": [{"type": "string", "maxLength": 1}, {"type": "integer"}]}, "xy",
         "expected at most 1 character, got 2 (read as alternative 1)"),
        ({"anyOf": [{"const": "fast"}, {"const": "deep"}]}, "x",
         'expected one of ["fast", "deep"], got "x"'),
        ({"anyOf": [{"enum": ["fast", "deep"]}, {"type": "null"}]}, 5,
         'expected one of ["fast", "deep", null], got 5'),
        ({"anyOf": [{"type": "string", "const": "a"}, {"type": "string", "const": "b"}]}, 5,
         "expected string, got integer"),
        ({"anyOf": [False, {"type": "integer"}]}, "x", "expected integer, got string"),
        ({"anyOf": [{"$ref": "#/gone"}, {"type": "integer"}]}, "x",
         "expected integer, got string"),
        ({"anyOf": [False, False]}, "x",
         "no value is allowed here; leave it out (read as alternative 1)"),
        ({"anyOf": [{"minimum": 5}, {"multipleOf": 7}]}, 3,
         "expected >= 5, got 3 (read as alternative 1)"),
        ({"anyOf": [{"title": "Small", "maximum": 1}, {"title": "Big", "minimum": 9}]}, 3,
         'expected <= 1, got 3 (read as "Small")'),
    ],
)  # fmt: skip
def test_of_scalars_all_that_would_do_is_told(schema: Any, value: Any, said: str) -> None:
    ((path, message),) = faults(schema, value)
    assert (path, message) == ("", said)


def test_alternatives_of_types_inside_of_alternatives_are_all_told() -> None:
    schema = {"anyOf": [{"$ref": "#/$defs/n"}, {"type": "array"}], "$defs": {"n": {"type": "null"}}}
    assert faults(schema, 5) == [("", "expected null or array, got integer")]


def test_in_unions_inside_of_unions_only_the_innermost_is_named() -> None:
    inner = {"anyOf": [CIRCLE, SQUARE]}
    schema = {
        "anyOf": [
            {"type": "object", "properties": {"a": inner}, "required": ["a"]},
            {"type": "object", "properties": {"b": {}}, "required": ["b"]},
        ]
    }
    assert faults(schema, {"a": {"kind": "circle"}}) == [
        ("/a/radius", "missing; expected number (read as alternative 1)")
    ]


EXPRESSION = {
    "$ref": "#/$defs/E",
    "$defs": {
        "E": {"anyOf": [{"$ref": f"#/$defs/{name}"} for name in ("And", "Or", "Leaf")]},
        "And": shape("and", args={"type": "array", "items": {"$ref": "#/$defs/E"}}),
        "Or": shape("or", args={"type": "array", "items": {"$ref": "#/$defs/E"}}),
        "Leaf": shape("leaf", field={"type": "string"}),
    },
}


@pytest.mark.parametrize("levels", [1, 5, 25])
def test_in_a_recursive_union_the_one_fault_is_found(levels: int) -> None:
    value: Any = {"kind": "leaf", "field": 5}
    for _ in range(levels):
        value = {"kind": "or", "args": [{"kind": "leaf", "field": "x"}, value]}
    assert faults(EXPRESSION, value) == [
        ("/args/1" * levels + "/field", 'expected string, got integer (read as "Leaf")')
    ]


def test_an_untagged_recursive_union_does_not_double_the_work_with_each_level() -> None:
    node = {"x": {"$ref": "#"}, "y": {"type": "integer"}}
    schema = {
        "anyOf": [
            {"type": "object", "properties": node, "required": ["y"]},
            {"type": "object", "properties": dict(node), "required": ["z"]},
        ]
    }
    value: Any = {"y": "bad"}
    for _ in range(60):
        value = {"x": value, "y": 1}
    assert len(faults(schema, value)) == 1


def test_a_member_with_the_same_value_in_several_alternatives_is_no_tag() -> None:
    one = shape("x", form={"const": "a"})
    two = shape("x", form={"const": "b"})
    assert faults({"anyOf": [one, two]}, {"kind": "x", "form": "c"}) == [
        ("/form", 'expected one of ["a", "b"], got "c"')
    ]
