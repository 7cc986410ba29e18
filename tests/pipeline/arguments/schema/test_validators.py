"""Validators that reach nothing outside and stop in time."""

from __future__ import annotations

import jsonschema_rs
import pytest

from seawall.pipeline.arguments.schema.dialects import DRAFT_2020
from seawall.pipeline.arguments.schema.documents import HOME
from seawall.pipeline.arguments.schema.validators import (
    FEW_PATTERNS,
    CompileErrors,
    Validators,
    pattern_limits,
    readable,
)


def validators(root: object, **resources: object) -> Validators:
    return Validators(root, DRAFT_2020, resources, assert_formats=True)


@pytest.mark.parametrize("address", ["http://x.org/a", "file:///etc/hostname", "urn:x"])
def test_what_is_not_at_hand_is_not_fetched(address: str) -> None:
    with pytest.raises(CompileErrors, match="not at hand, and nothing is fetched"):
        validators({"$ref": address}).whole()


def test_a_known_document_stands_in_for_the_network() -> None:
    made = validators({"$ref": "urn:a"}, **{"urn:a": {"type": "integer"}}).whole()
    assert [made.is_valid(1), made.is_valid("x")] == [True, False]


def test_a_place_can_be_checked_where_it_stands() -> None:
    root = {"properties": {"a": {"$ref": "#/$defs/n"}}, "$defs": {"n": {"type": "integer"}}}
    made = validators(root).around({"items": {"$ref": f"{HOME}#/properties/a"}})
    assert [made.is_valid([1, 2]), made.is_valid([1, "x"])] == [True, False]


def test_of_many_patterns_each_must_be_smaller() -> None:
    pattern = r"^(\p{L}{1,20} ){1,10}$"
    assert readable(pattern, pattern_limits(FEW_PATTERNS)) == pattern
    assert readable(pattern, pattern_limits(FEW_PATTERNS + 1)) is None


@pytest.mark.parametrize(
    ("pattern", "said"),
    [("^a$", "^a$"), ("((", None), ("(a{1000}){1000}", None), (r"^\p{L}{1,200}$", True)],
)
def test_a_pattern_is_readable_as_it_is_or_not_at_all(pattern: str, said: object) -> None:
    assert readable(pattern) == (pattern if said is True else said)


def test_a_pattern_of_plain_javascript_is_said_otherwise() -> None:
    said = readable(r"^[\w-.]+$")
    assert said is not None
    assert jsonschema_rs.Draft202012Validator({"pattern": said}).is_valid("a-b.c")
