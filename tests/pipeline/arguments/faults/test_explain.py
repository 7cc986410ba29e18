"""The text a model reads: one line per fault, then what was received, without secrets."""

from __future__ import annotations

import json
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seawall.contract.failure import Issue
from seawall.pipeline.arguments.compiled import compile_schema
from seawall.pipeline.arguments.faults.explain import Redaction, explain, show

SECRET = "hunter2"


def members(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def test_it_names_the_tool_and_each_fault_and_shows_what_was_received() -> None:
    schema = {**members(a={"type": "string"}, n={"type": "integer"}), "required": ["a"]}
    received = {"n": "x"}
    assert explain(
        "echo", compile_schema(schema).faults(received), received, Redaction(schema)
    ) == (
        'Validation failed for tool "echo":\n'
        "  - a: missing; expected string\n"
        "  - n: expected integer, got string\n"
        "\n"
        "Received arguments:\n"
        '{\n  "n": "x"\n}'
    )


def test_a_fault_of_the_whole_is_called_root_and_paths_are_dotted() -> None:
    issues = [Issue("", "expected object, got string"), Issue("/a/0/b~1c", "missing")]
    lines = explain("t", issues, "x", Redaction({})).splitlines()
    assert lines[1:3] == ["  - root: expected object, got string", "  - a.0.b/c: missing"]
    assert lines[-1] == '"x"'


@pytest.mark.parametrize(("count", "rest"), [(20, None), (21, 1), (100, 80)])
def test_at_most_twenty_faults_are_shown_and_the_others_counted(
    count: int, rest: int | None
) -> None:
    issues = [Issue(f"/p{number}", "missing") for number in range(count)]
    text = explain("t", issues, {}, Redaction({}))
    assert text.count("missing") == 20
    assert ("more" in text) == (rest is not None)
    if rest:
        assert f"  … and {rest} more\n" in text


def test_a_line_stays_one_line_and_short() -> None:
    issues = [Issue("/a\nb\x1b[31m", "first\nsecond\ud800" + "x" * 5000)]
    line = explain("t" * 500, issues, {}, Redaction({})).splitlines()[1]
    assert line.startswith("  - a b [31m: first second ")
    assert len(line) < 850


@pytest.mark.parametrize(
    "value",
    [
        {},
        [],
        {"a": [1, 2.5, None, True, {"b": []}], "é": {"😀": {}}},
        "text",
        None,
        7,
    ],
)
def test_json_is_shown_as_json_with_two_blanks_of_indent(value: Any) -> None:
    assert show(value, {}) == json.dumps(value, indent=2, ensure_ascii=False)


@given(
    value=st.recursive(
        st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
        max_leaves=20,
    )
)
def test_whatever_is_short_is_shown_as_it_is(value: Any) -> None:
    whole = json.dumps(value, indent=2, ensure_ascii=False)
    if len(whole) <= 2000:
        assert show(value, {}) == whole
    else:
        assert show(value, {}).startswith(whole[:2000])


def test_a_long_text_is_cut_so_that_the_other_arguments_are_seen() -> None:
    shown = json.loads(show({"a": "x" * 5000, "b": 1}, {}))
    assert shown["b"] == 1
    assert shown["a"].endswith("… (4,500 more characters)")


def test_what_does_not_fit_is_cut_and_the_rest_named() -> None:
    received = {f"p{number}": "x" * 400 for number in range(30)}
    shown = show(received, {})
    assert len(shown) < 2300
    assert '\n… cut after 2,000 characters; not shown: "p5", "p6"' in shown
    assert shown.endswith("and 15 more")


@pytest.mark.parametrize(
    ("received", "end"),
    [
        ({"a": list(range(5000))}, '… cut after 2,000 characters, inside of "a"'),
        (list(range(5000)), "… cut after 2,000 characters"),
    ],
)
def test_the_end_says_what_was_cut(received: Any, end: str) -> None:
    assert show(received, {}).endswith(end)


def test_very_large_and_deep_arguments_are_shown_in_part() -> None:
    deep: Any = 1
    for _ in range(3000):
        deep = {"a": [deep]}
    assert "…" in show(deep, {})
    assert len(show({f"k{number}": "v" for number in range(200_000)}, {})) < 2500


def test_what_is_no_json_is_shown_by_its_type() -> None:
    assert json.loads(show({"a": {1}, 2: "\ud800", "n": b""}, {})) == {
        "a": "(set)",
        "2": "\ud800",
        "n": "(bytes)",
    }
    show({"a": "\ud800"}, {}).encode()


# --- secrets

MARKED = {"type": "string", "writeOnly": True}
NESTED = members(login=members(user={"type": "string"}, pin={"format": "password"}))
HIDES: dict[str, tuple[Any, Any]] = {
    "write only": (members(key=MARKED), {"key": SECRET}),
    "password": (members(key={"format": "password"}), {"key": SECRET}),
    "all inside of it": (members(key={**members(), "writeOnly": True}), {"key": {"a": [SECRET]}}),
    "nested": (NESTED, {"login": {"pin": SECRET}}),
    "through a reference": (
        {**members(key={"$ref": "#/$defs/k"}), "$defs": {"k": {"$ref": "#/$defs/m"}, "m": MARKED}},
        {"key": SECRET},
    ),
    "in any branch": (members(key={"anyOf": [{"type": "null"}, MARKED]}), {"key": SECRET}),
    "in another part": (
        {**members(key={"type": "string"}), "allOf": [members(key={"writeOnly": True})]},
        {"key": SECRET},
    ),
    "under a condition": ({"if": {}, "then": members(key=MARKED)}, {"key": SECRET}),
    "of items": (members(keys={"items": MARKED}), {"keys": [SECRET]}),
    "of listed items": (members(keys={"prefixItems": [True, MARKED]}), {"keys": [1, SECRET]}),
    "by pattern": ({"patternProperties": {"^k": MARKED}}, {"key": SECRET, "k2": SECRET}),
    "by an unreadable pattern": ({"patternProperties": {"((": MARKED}}, {"key": SECRET}),
    "of all others": ({"additionalProperties": MARKED}, {"key": SECRET}),
    "misspelt": (members(password=MARKED), {"pasword": SECRET}),
    "shortened": (members(api_key=MARKED), {"apikey2": SECRET, "KEY": SECRET}),
    "text for a structure": (NESTED, {"login": json.dumps({"pin": SECRET})}),
    "list for a structure": (NESTED, {"login": ["me", SECRET]}),
    "text for all": (NESTED, json.dumps({"login": {"pin": SECRET}})),
    "recursive": (
        members(pin=MARKED, next={"$ref": "#"}),
        {"next": {"next": {"pin": SECRET}}},
    ),
    "draft 4 beside a reference": (
        {
            "$schema": "http://json-schema.org/draft-04/schema#",
            **members(key={"$ref": "#/definitions/k"}),
            "definitions": {"k": MARKED},
        },
        {"key": SECRET},
    ),
    "other mappings": (MappingProxyType({"properties": MappingProxyType({"key": MARKED})}),
                       {"key": SECRET}),
    "a schema nobody can read": ({"properties": {"key": {1: 2}}}, {"key": SECRET}),
}  # fmt: skip


@pytest.mark.parametrize("name", HIDES)
def test_secrets_of_the_schema_are_never_shown(name: str) -> None:
    schema, received = HIDES[name]
    shown = show(received, schema)
    assert SECRET not in shown
    assert "(not shown)" in shown


def test_what_is_no_secret_is_shown_beside_one() -> None:
    received = {"login": {"user": "me", "pin": SECRET}, "more": [1]}
    assert json.loads(show(received, NESTED)) == {
        "login": {"user": "me", "pin": "(not shown)"},
        "more": [1],
    }


@pytest.mark.parametrize(
    ("marked", "value"),
    [
        ({"type": "string", "minLength": 20}, SECRET),
        ({"type": "string", "pattern": "^a"}, SECRET),
        ({"enum": ["a", "b"]}, SECRET),
        ({"const": "a"}, SECRET),
        ({"format": "date"}, SECRET),
        ({"type": "integer"}, SECRET),
        ({"minimum": 10**12}, 8675309),
        ({"anyOf": [{"const": "a"}, {"const": "b"}]}, SECRET),
        ({"oneOf": [{"type": "string", "maxLength": 1}, {"type": "null"}]}, SECRET),
    ],
)
def test_messages_do_not_repeat_secrets_either(marked: dict[str, Any], value: Any) -> None:
    schema = members(a=members(key={**marked, "writeOnly": True}))
    (issue,) = compile_schema(schema).faults({"a": {"key": value}})
    assert str(value) not in issue.message


def test_messages_do_not_repeat_long_values() -> None:
    schema = members(a={"enum": ["x"]}, b={"type": "string", "maxLength": 5})
    value = "y" * 5000
    for issue in compile_schema(schema).faults({"a": value, "b": value}):
        assert "yyy" not in issue.message


MARKED = {
    "type": "object",
    "properties": {
        "password": {"type": "string", "format": "password"},
        "login": {"type": "object", "writeOnly": True},
        "pins": {"type": "array", "items": {"type": "integer", "writeOnly": True}},
        "name": {"type": "string"},
    },
}


def test_secret_values_are_those_that_the_schema_marks() -> None:
    given = {
        "password": "one",
        "login": {"a": ["two", {"b": "three"}]},
        "pins": [1234, 5678],
        "name": "plain",
        "pasword": "four",
    }

    found = Redaction(MARKED).secrets(given)
    assert set(found) == {"one", "two", "three", "1234", "5678", "four"}
    assert Redaction({"type": "object"}).secrets(given) == ()
