"""A schema said in one draft: copies, notes and bounds."""

from __future__ import annotations

from enum import IntEnum, StrEnum
from types import MappingProxyType
from typing import Any

import pytest

from seawall.pipeline.arguments.schema.dialects import DRAFT_7, DRAFT_2020
from seawall.pipeline.arguments.schema.normal_form import (
    MAX_LEVELS,
    NotUsable,
    copied,
    normal_form,
    owner_of,
    pointer,
    steps_elsewhere,
)


class Colour(StrEnum):
    RED = "red"


class Size(IntEnum):
    BIG = 9


def test_values_of_python_become_plain_json() -> None:
    said = copied(MappingProxyType({Colour.RED: (Size.BIG, Colour.RED, 1.5, None, True)}))
    assert said == {"red": [9, "red", 1.5, None, True]}
    assert [type(value) for value in said["red"][:2]] == [int, str]
    assert [type(key) for key in said] == [str]


def test_only_in_2020_12_is_a_list_of_items_a_prefix() -> None:
    schema = {"items": [{"type": "string"}], "additionalItems": False}
    assert normal_form(schema, DRAFT_7).schema == schema
    assert normal_form(schema, DRAFT_2020).schema == {
        "prefixItems": [{"type": "string"}],
        "items": False,
    }


def test_an_embedded_schema_is_said_in_its_own_draft() -> None:
    inner = {
        "$id": "https://x.org/inner",
        "$schema": DRAFT_7.uri,
        "items": [True],
        "additionalItems": False,
    }
    outer = {"properties": {"a": inner}, "items": [True]}
    said = normal_form(outer, DRAFT_2020)
    assert said.schema == {"properties": {"a": inner}, "prefixItems": [True]}
    assert said.enforceable


@pytest.mark.parametrize(
    ("schema", "enforceable"),
    [
        ({"prefixItems": [True]}, False),
        ({"unknown": 1}, False),
        ({"x-a": 1, "title": "t", "$defs": {}}, True),
        ({"properties": {"a": {"unknown": 1}}}, False),
        ({"enum": [{"unknown": 1}]}, True),
        ({"nullable": "yes"}, False),
    ],
)
def test_keywords_that_a_draft_does_not_enforce_are_noted(schema: Any, enforceable: bool) -> None:
    assert normal_form(schema, DRAFT_7).enforceable is enforceable


def test_references_are_counted() -> None:
    schema = {"$ref": "#", "allOf": [{"$ref": "#/x"}, {"$dynamicRef": "#a"}], "const": {"$ref": ""}}
    assert normal_form(schema, DRAFT_2020).references == 3


def test_what_a_reference_leads_to_is_said_in_the_draft_wherever_it_stands() -> None:
    schema = {
        "$ref": "#/parts/0",
        "parts": [{"nullable": True, "type": "string", "$ref": "#/more/a~1b"}],
        "more": {"a/b": {"items": [True, {"$ref": "#/parts/0"}]}, "flag": True},
        "not": {"$ref": "#/more/flag"},
        "if": {"$ref": "#/parts/9"},
    }
    said = normal_form(schema, DRAFT_2020).schema
    assert said["more"]["a/b"] == {"prefixItems": [True, {"$ref": "#/parts/0"}]}
    assert said["parts"][0]["anyOf"][1] == {"type": "null"}


@pytest.mark.parametrize(
    ("reference", "steps"),
    [
        ("#/components/a~1b/c%25d", ["components", "a/b", "c%d"]),
        ("#/properties/a", None),
        ("#/$defs/a", None),
        ("#", None),
        ("other#/components/a", None),
    ],
)
def test_a_local_reference_that_leads_to_no_schemas_place_is_recognised(
    reference: str, steps: list[str] | None
) -> None:
    assert steps_elsewhere(reference) == steps


@pytest.mark.parametrize("steps", [["b"], ["a", "2"], ["a", "x"], ["a", "-1"], ["a", "0", "z"]])
def test_steps_that_lead_nowhere_have_no_owner(steps: list[str]) -> None:
    assert owner_of({"a": [1, 2]}, steps) == (None, None)


def test_steps_may_lead_through_lists() -> None:
    root = {"a": [1, {"b": 2}]}
    assert owner_of(root, ["a", "1"]) == (root["a"], 1)
    assert owner_of(root, ["a", "1", "b"]) == ({"b": 2}, "b")


def test_the_place_of_a_fault_is_told_up_to_a_length() -> None:
    schema: Any = {1: 2}
    for _ in range(MAX_LEVELS // 4):
        schema = {"properties": {"a/b": schema}}
    with pytest.raises(NotUsable) as caught:
        normal_form(schema, DRAFT_2020)
    said = pointer(caught.value.way)
    assert said.startswith("/properties/a~1b/properties")
    assert len(said) <= 300
