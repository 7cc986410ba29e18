"""What other drafts and OpenAPI write, said in one draft."""

from __future__ import annotations

from typing import Any

import pytest

from seawall.pipeline.arguments.schema.dialects import DRAFT_4, DRAFT_2019, DRAFT_2020, Dialect
from seawall.pipeline.arguments.schema.translations import require_members, translate


@pytest.mark.parametrize(
    ("node", "dialect", "said"),
    [
        ({"minimum": 1, "exclusiveMinimum": True}, DRAFT_2020, {"exclusiveMinimum": 1}),
        ({"minimum": 1, "exclusiveMinimum": False}, DRAFT_2020, {"minimum": 1}),
        ({"exclusiveMinimum": True}, DRAFT_2020, {"exclusiveMinimum": True}),
        ({"maximum": 1, "exclusiveMaximum": 0}, DRAFT_2020, {"maximum": 1, "exclusiveMaximum": 0}),
        ({"minimum": 1, "exclusiveMinimum": True}, DRAFT_4,
         {"minimum": 1, "exclusiveMinimum": True}),
        ({"items": [True], "additionalItems": False}, DRAFT_2019,
         {"items": [True], "additionalItems": False}),
        ({"items": [True], "additionalItems": False}, DRAFT_2020,
         {"prefixItems": [True], "items": False}),
        ({"items": [True], "prefixItems": [True]}, DRAFT_2020,
         {"items": [True], "prefixItems": [True]}),
        ({"additionalItems": False}, DRAFT_2020, {}),
        ({"required": True}, DRAFT_2020, {}),
        ({"nullable": True}, DRAFT_2020, {}),
        ({"nullable": True, "type": ["null"]}, DRAFT_2020, {"type": ["null"]}),
        ({"nullable": True, "enum": [None]}, DRAFT_2020, {"enum": [None]}),
        ({"nullable": True, "anyOf": 5}, DRAFT_2020, {"anyOf": [{"anyOf": 5}, {"type": "null"}]}),
        ({"nullable": True, "title": "t", "$ref": "#"}, DRAFT_2020,
         {"title": "t", "anyOf": [{"$ref": "#"}, {"type": "null"}]}),
        ({"nullable": True, "writeOnly": True, "not": {}}, DRAFT_2020,
         {"writeOnly": True, "anyOf": [{"not": {}}, {"type": "null"}]}),
        ({"examples": 1, "title": None, "description": 5}, DRAFT_2020, {"description": 5}),
    ],
)  # fmt: skip
def test_a_node_is_said_in_the_words_of_a_draft(
    node: dict[str, Any], dialect: Dialect, said: dict[str, Any]
) -> None:
    translate(node, dialect)
    assert node == said


@pytest.mark.parametrize(
    ("node", "required"),
    [
        ({"properties": {"a": {"required": True}, "b": {}}}, ["a"]),
        ({"properties": {"a": {"required": True}}, "required": ["a", "z"]}, ["a", "z"]),
        ({"properties": {"a": {"required": True}}, "required": ["z"]}, ["z", "a"]),
        ({"properties": {"a": {"required": ["x"]}, "b": True}}, None),
        ({"properties": {"a": {"required": True}}, "required": 5}, 5),
        ({"properties": 5}, None),
    ],
)
def test_what_members_say_of_themselves_is_said_by_what_encloses_them(
    node: dict[str, Any], required: Any
) -> None:
    said = dict(node)
    require_members(said, node)
    assert said.get("required") == required
