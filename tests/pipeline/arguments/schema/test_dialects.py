"""What the drafts enforce, and what is tolerated in all of them."""

from __future__ import annotations

import pytest

from seawall.pipeline.arguments.schema.dialects import (
    ANNOTATIONS,
    DIALECTS,
    DRAFT_4,
    DRAFT_7,
    DRAFT_2019,
    DRAFT_2020,
    ENFORCED,
    dialect_named,
    is_tolerated,
    subschemas,
)


def test_a_keyword_is_enforced_or_an_annotation_but_not_both() -> None:
    assert not ENFORCED & ANNOTATIONS


@pytest.mark.parametrize(
    ("keyword", "first"),
    [("type", DRAFT_4), ("if", DRAFT_7), ("unevaluatedItems", DRAFT_2019),
     ("prefixItems", DRAFT_2020)],
)  # fmt: skip
def test_a_draft_enforces_what_it_or_an_earlier_one_brought(keyword: str, first: object) -> None:
    having = [dialect for dialect in DIALECTS.values() if keyword in dialect.enforced]
    assert having[0] is first
    assert having == list(DIALECTS.values())[-len(having) :]


@pytest.mark.parametrize("keyword", ["x-mine", "_meta", "@type", "ui:order", "title", "example"])
def test_annotations_are_tolerated(keyword: str) -> None:
    assert is_tolerated(keyword)


@pytest.mark.parametrize("keyword", ["minLenght", "divisibleBy", "formatMinimum", "X-mine", ""])
def test_what_could_be_meant_to_be_enforced_is_not_tolerated(keyword: str) -> None:
    assert not is_tolerated(keyword)


@pytest.mark.parametrize(
    ("uri", "dialect"),
    [
        ("http://json-schema.org/draft-04/schema#", DRAFT_4),
        ("https://json-schema.org/draft-07/schema", DRAFT_7),
        ("http://json-schema.org/schema#", DRAFT_2020),
        (" https://json-schema.org/draft/2020-12/schema/ ", DRAFT_2020),
        ("http://json-schema.org/draft-03/schema#", None),
        ("draft-07", None),
        (7, None),
    ],
)
def test_a_draft_is_known_by_its_address(uri: object, dialect: object) -> None:
    assert dialect_named(uri) is dialect


def test_subschemas_are_what_stands_where_a_schema_belongs() -> None:
    node = {
        "properties": {"a": True, "b": {}},
        "items": [{}, {}],
        "not": {},
        "dependencies": {"a": ["b"], "c": {}},
        "enum": [{}],
        "default": {},
        "patternProperties": [],
        "allOf": {},
    }
    assert ["/".join(steps) for steps, _ in subschemas(node)] == [
        "properties/a",
        "properties/b",
        "items/0",
        "items/1",
        "not",
        "dependencies/c",
    ]
