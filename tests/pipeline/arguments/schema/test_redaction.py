"""Which values are secrets."""

from __future__ import annotations

import re
from typing import Any

import pytest

from seawall.pipeline.arguments.schema.dialects import DRAFT_2020
from seawall.pipeline.arguments.schema.documents import Documents
from seawall.pipeline.arguments.schema.redaction import Secrecy

SECRET = {"writeOnly": True}


def secrecy(schema: Any) -> Secrecy:
    documents = Documents(schema, DRAFT_2020, {})
    return Secrecy(documents, lambda p, name: bool(re.search(p, name)), [documents.root])


def test_what_is_inside_of_a_secret_is_secret() -> None:
    found = secrecy({"properties": {"a": {**SECRET, "properties": {"b": {}}}}})
    assert found.of("a").of("b").of(0).is_secret


def test_what_is_beside_a_secret_is_not() -> None:
    found = secrecy({"properties": {"a": SECRET, "b": {}}})
    assert not found.is_secret
    assert not found.of("b").hides("text")


@pytest.mark.parametrize("mark", [{"writeOnly": False}, {"format": "date"}, {"readOnly": True}])
def test_other_marks_hide_nothing(mark: dict[str, Any]) -> None:
    assert not secrecy({"properties": {"a": mark}}).of("a").hides("text")


def test_items_are_secret_by_position_or_all() -> None:
    found = secrecy({"prefixItems": [{}, SECRET], "items": {"format": "password"}})
    # An item before the last listed one could still be one of the others: it is hidden too.
    assert [found.of(index).is_secret for index in (1, 2, 50)] == [True, True, True]
    listed = secrecy({"prefixItems": [{}, SECRET]})
    assert [listed.of(index).is_secret for index in (0, 1, 2)] == [False, True, False]


def test_a_definition_hides_nothing_until_it_is_referred_to() -> None:
    schema: dict[str, Any] = {"$defs": {"k": SECRET}, "properties": {"a": {}}}
    assert not secrecy(schema).has_inside
    schema["properties"]["a"] = {"$ref": "#/$defs/k"}
    assert secrecy(schema).has_inside


def test_a_recursive_schema_is_searched_once() -> None:
    found = secrecy({"properties": {"a": {"$ref": "#"}, "b": {"items": {"$ref": "#"}}}})
    assert not found.has_inside
    assert not found.of("a").of("b").of(3).of("a").is_secret


@pytest.mark.parametrize(
    ("name", "hidden"),
    [("password", True), ("pasword", True), ("PASS_WORD", True), ("passwd", True), ("pw", False),
     ("user", False), ("path", False)],
)  # fmt: skip
def test_a_name_near_a_secret_one_is_in_doubt(name: str, hidden: bool) -> None:
    assert secrecy({"properties": {"password": SECRET}}).hides_member(name) is hidden


def test_shapes_that_are_no_schema_are_passed_over() -> None:
    found = secrecy({"properties": [], "patternProperties": 5, "items": "x", "anyOf": [1, None]})
    assert found.names == []
    assert not found.of("a").is_secret
    assert not found.of(0).is_secret
