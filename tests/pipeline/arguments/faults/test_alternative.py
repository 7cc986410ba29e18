"""What one alternative says for certain."""

from __future__ import annotations

from typing import Any

import pytest

from seawall.pipeline.arguments.faults.alternative import Alternative, is_same, label
from seawall.pipeline.arguments.schema.dialects import DRAFT_2020
from seawall.pipeline.arguments.schema.documents import Documents, Place


def place(schema: Any, **rest: Any) -> tuple[Documents, Place]:
    documents = Documents({"anyOf": [{}, schema], **rest}, DRAFT_2020, {})
    return documents, documents.child(documents.root, "anyOf", "1")


def alternative(schema: Any, **rest: Any) -> Alternative:
    return Alternative(*place(schema, **rest))


@pytest.mark.parametrize(
    ("schema", "name"),
    [
        ({"title": "A circle"}, '"A circle"'),
        ({"$ref": "#/$defs/circle"}, '"circle"'),
        ({"title": ""}, "alternative 2"),
        (True, "alternative 2"),
    ],
)
def test_it_is_called_by_title_definition_or_number(schema: Any, name: str) -> None:
    assert label(place(schema)[1]) == name


def test_what_it_refers_to_and_is_made_of_holds_too() -> None:
    found = alternative(
        {"allOf": [{"$ref": "#/$defs/base"}], "properties": {"kind": {"const": "x"}}},
        **{"$defs": {"base": {"type": "object", "properties": {"a": {"enum": [1, 2]}}}}},
    )
    assert found.types == ["object"]
    assert found.tags == {"kind": ["x"], "a": [1, 2]}
    assert found.declared({"kind": 1, "a": 1, "b": 1}) == 2
    assert not found.suits([])


def test_a_tag_of_another_one_contradicts() -> None:
    found = alternative({"properties": {"kind": {"const": "x"}}})
    assert found.contradicts({"kind": "y"})
    assert not found.contradicts({"kind": "x"})
    assert not found.contradicts({})


@pytest.mark.parametrize("schema", [False, {"x-dangling-ref": "#/no", "not": {}}])
def test_what_no_value_meets_is_hopeless(schema: Any) -> None:
    assert alternative(schema).is_hopeless


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [(1, 1.0, True), (1, True, False), (0, False, False), ("a", "a", True), (None, False, False)],
)
def test_scalars_are_the_same_as_in_json(one: Any, other: Any, same: bool) -> None:
    assert is_same(one, other) is same
