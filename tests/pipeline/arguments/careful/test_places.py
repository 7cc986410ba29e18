from __future__ import annotations

from typing import Any

import pytest

from seawall.pipeline.arguments.careful.places import Place, Places
from seawall.pipeline.arguments.careful.subschemas import Subschemas


def root_of(schema: dict[str, Any]) -> Place:
    return Places(Subschemas(schema, lambda value: True)).place((schema,))


def of(node: Any, **more: Any) -> Place:
    """The place of a field `v`."""
    place = root_of({"properties": {"v": node}, **more}).member("v")
    assert place is not None
    return place


@pytest.mark.parametrize(
    ("node", "wants"),
    [
        ({}, ()),
        ({"type": "integer"}, ("integer",)),
        ({"type": ["null", "string", "thing"]}, ("null", "string")),
        ({"type": 5}, ()),
        ({"type": ["string", "integer"], "allOf": [{"type": "integer"}]}, ("integer",)),
        ({"type": "number", "allOf": [{"type": "integer"}]}, ("integer",)),
        ({"type": "integer", "allOf": [{"type": ["number", "null"]}]}, ("integer",)),
        ({"type": "string", "allOf": [{"type": "integer"}]}, ()),
        ({"$ref": "#/$defs/N"}, ("number",)),
    ],
)
def test_types_of_all_that_is_said_are_taken_together(node: Any, wants: tuple[str, ...]) -> None:
    assert of(node, **{"$defs": {"N": {"type": "number"}}}).wants == wants


@pytest.mark.parametrize(
    ("node", "choices"),
    [
        ({"type": "string"}, None),
        ({"enum": ["a", "b", "a", {"x": 1}, ["y"]]}, ["a", "b"]),
        ({"const": 5}, [5]),
        ({"enum": [1, True, "1"]}, [1, True, "1"]),
        ({"enum": ["a", "b"], "allOf": [{"enum": ["b", "c"]}]}, ["b"]),
        ({"enum": ["a", 5], "type": "integer"}, [5]),
        ({"enum": "a"}, None),
    ],
)
def test_only_listed_values_that_are_valid_can_be_meant(node: Any, choices: Any) -> None:
    assert of(node).choices == choices


def test_members_come_from_properties_patterns_and_the_rest() -> None:
    root = root_of(
        {
            "properties": {"n_a": {"minimum": 1}},
            "patternProperties": {"^n_": {"type": "integer"}},
            "additionalProperties": {"type": "boolean"},
        }
    )

    assert [place and place.roots for place in map(root.member, ("n_a", "n_b", "z"))] == [
        ({"minimum": 1}, {"type": "integer"}),
        ({"type": "integer"},),
        ({"type": "boolean"},),
    ]


def test_members_no_other_keyword_speaks_of_are_unevaluated() -> None:
    root = root_of(
        {
            "allOf": [{"properties": {"a": {"type": "string"}}}],
            "unevaluatedProperties": {"type": "integer"},
        }
    )

    assert root.member("a") is not root.member("b")
    assert (place := root.member("b")) is not None
    assert place.wants == ("integer",)


@pytest.mark.parametrize("rest", [True, False, None, {}])
def test_members_nothing_is_said_of_have_no_place(rest: Any) -> None:
    assert root_of({"properties": {}, "additionalProperties": rest}).member("x") in {
        None,
        root_of({}).member("x"),
    } or isinstance(rest, dict)


def test_invented_member_names_are_not_remembered() -> None:
    root = root_of({"properties": {"a": {}}, "additionalProperties": {"type": "integer"}})

    places = {id(root.member(f"name{n}")) for n in range(100)}

    assert len(places) == 1
    assert root._named == {}


@pytest.mark.parametrize(
    ("schema", "wants"),
    [
        ({"items": {"type": "integer"}}, ["integer", "integer", "integer"]),
        (
            {"prefixItems": [{"type": "string"}], "items": {"type": "integer"}},
            ["string"] + 2 * ["integer"],
        ),
        (
            {"items": [{"type": "string"}], "additionalItems": {"type": "null"}},
            ["string"] + 2 * ["null"],
        ),
        ({"prefixItems": [{"type": "string"}], "items": False}, ["string", None, None]),
        ({}, [None, None, None]),
    ],
)
def test_items_go_by_position_and_then_by_the_rest(schema: Any, wants: list[str | None]) -> None:
    places = [of(schema).item(index) for index in range(3)]

    assert [place and place.wants[0] for place in places] == wants
    assert of(schema).is_tuple is ("string" in wants)


def test_a_place_is_made_once() -> None:
    root = root_of({"properties": {"a": {"$ref": "#"}, "b": {"$ref": "#"}}})
    first = root.member("a")

    assert first is not None
    assert first.member("a") is first


def test_what_is_kept_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seawall.pipeline.arguments.careful.places._PLACES_AT_MOST", 1)
    root = root_of({"additionalProperties": {"type": "integer"}})

    assert root.member("a") is not root.member("b")


def test_an_optional_field_is_declared_and_required_nowhere() -> None:
    root = root_of(
        {
            "properties": {"a": {}, "b": {}, "c": False},
            "required": ["b"],
            "allOf": [{"required": ["d"], "properties": {"d": {}, "e": {}}}],
            "patternProperties": {"^f": {}},
        }
    )

    assert [name for name in "abcdefg" if root.is_optional(name)] == ["a", "e"]


def test_a_chosen_alternative_is_no_longer_open() -> None:
    place = of({"type": "number", "anyOf": [{"type": "integer"}, {"minimum": 1}]})
    union = place.unions[0]

    chosen = place.choose(union, union.branches[0])

    assert chosen.wants == ("integer",)
    assert chosen.unions == []
    assert chosen.is_simple
    assert not place.is_simple


def test_a_condition_adds_what_it_says_for_this_value() -> None:
    place = of(
        {
            "if": {"required": ["x"]},
            "then": {"properties": {"n": {"type": "integer"}}},
            "else": {"properties": {"n": {"type": "boolean"}}},
            "dependentSchemas": {"y": {"required": ["z"]}},
        }
    )

    then, otherwise = place.under_conditions({"x": 1}), place.under_conditions({"y": 1})

    assert [p and p.wants for p in (then.member("n"), otherwise.member("n"))] == [
        ("integer",),
        ("boolean",),
    ]
    assert otherwise.required == {"z"}
    assert then.is_simple
    assert place.without_conditions().is_simple


def test_a_condition_that_adds_nothing_changes_nothing() -> None:
    place = of({"if": {"type": "object"}, "else": {}, "dependentSchemas": {"y": {}}})

    assert place.under_conditions({"a": 1}) is place
    assert of({"dependentSchemas": {"y": {}}}).under_conditions("y") is not None
