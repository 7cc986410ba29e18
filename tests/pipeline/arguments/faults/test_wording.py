"""The words of faults."""

from __future__ import annotations

from typing import Any

import pytest

from seawall.pipeline.arguments.faults import wording


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (None, "null"),
        (True, "boolean"),
        (1, "integer"),
        (1.0, "integer"),
        (1.5, "number"),
        ("", "string"),
        ({}, "object"),
        ([], "array"),
        ((), "array"),
    ],
)
def test_kinds_are_those_of_json_schema(value: Any, kind: str) -> None:
    assert wording.kind(value) == kind
    assert wording.has_kind(value, kind)
    assert wording.has_kind(value, "number") is (kind in {"integer", "number"})


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("a", '"a"'),
        ("x" * 80, f'"{"x" * 80}"'),
        ("x" * 5000, "string of 5,000 characters"),
        ({"a": 1}, "object"),
        ([1], "array of 1 item"),
        ([1, 2], "array of 2 items"),
        (10**100, "integer"),
        (None, "null"),
        (1.5, "1.5"),
    ],
)
def test_a_value_is_quoted_if_it_is_short(value: Any, said: str) -> None:
    assert wording.got(value) == said


@pytest.mark.parametrize("value", ["a", 1, None, ["a"]])
def test_a_secret_is_told_by_its_kind(value: Any) -> None:
    assert wording.got(value, secret=True) == f"{wording.kind(value)} (not shown)"


def test_quotes_are_one_line_short_and_printable_as_utf_8() -> None:
    assert wording.quoted("a\nb") == r'"a\nb"'
    assert len(wording.quoted(["x" * 50] * 50)) == 81
    wording.quoted("\ud800").encode()
    assert len(wording.name("x" * 500)) < 70


def test_a_list_is_cut_after_twenty_or_when_it_gets_long() -> None:
    assert wording.listed([1, 2]) == "1, 2"
    assert wording.listed(list(range(25))).endswith("19 and 5 more")
    assert wording.listed(["x" * 70] * 9).endswith("and 6 more")
    assert wording.listed(["x" * 700]).startswith('"xxx')


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        (True, ""),
        ({}, ""),
        ({"enum": []}, ""),
        ({"type": ["string", "null"]}, "expected string or null"),
        ({"const": None}, "expected null"),
        ({"enum": [1, 2], "type": "integer"}, "expected one of [1, 2]"),
    ],
)
def test_what_a_schema_wants_is_said_briefly(schema: Any, said: str) -> None:
    assert wording.expected(schema) == said


@pytest.mark.parametrize(
    "schema", [True, {}, {"minimum": 1}, {"required": []}, {"type": "null", "title": ""}]
)
def test_what_is_ruled_out_in_a_longer_way_is_not_repeated(schema: Any) -> None:
    assert wording.negation(schema) == "has a form that is ruled out (not)"


def test_an_assertion_without_a_sentence_is_named() -> None:
    assert wording.broken("other", {"other": 1}, 5, secret=False) == "does not meet other 1"


def test_a_long_pattern_is_cut() -> None:
    said = wording.broken("pattern", {"pattern": "a" * 5000}, "b", secret=False)
    assert len(said) < 250
