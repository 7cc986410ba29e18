from __future__ import annotations

import copy
import json
import math
import sys
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seawall.contract.errors import ConfigurationError
from seawall.contract.failure import Issue
from seawall.pipeline.arguments.lenient import lenient as lenient_module
from seawall.pipeline.arguments.lenient.check import Work
from seawall.pipeline.arguments.lenient.lenient import Lenient, validation_text

VECTORS = Path(__file__).parents[3] / "vectors"
MEASURED = json.loads((VECTORS / "lenient-coercion.json").read_text("utf-8"))
RECORDED = json.loads((VECTORS / "lenient-recorded.json").read_text("utf-8"))

EXACT: dict[str, Any] = {
    # Integers in text keep all their digits, where JavaScript rounds to 53 bits.
    "number.str_big53": {"v": 9007199254740993},
    "integer.str_big53": {"v": 9007199254740993},
    "integer.str_big20": {"v": 99999999999999999999},
}
REFUSED = {
    # A pattern nobody can compile is told when the tool is registered, not at every call.
    "message.schema_bad_regex": "the pattern '(' is no regular expression",
}

COERCIONS = [vector for vector in MEASURED if vector["group"] != "message"]
MESSAGES = [vector for vector in MEASURED if vector["group"] == "message"]


def named(vectors: list[dict[str, Any]]) -> list[Any]:
    return [pytest.param(vector, id=vector["id"]) for vector in vectors]


def is_same(left: Any, right: Any) -> bool:
    """Compare numbers by value, but keep booleans apart from them."""
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(is_same(left[k], right[k]) for k in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(is_same, left, right))
    return isinstance(left, bool) == isinstance(right, bool) and left == right


def told(issues: tuple[Issue, ...]) -> list[dict[str, str]]:
    return [{"path": i.path, "keyword": i.keyword, "message": i.message} for i in issues]


@pytest.mark.parametrize("vector", named(COERCIONS))
def test_values_and_issues_are_those_that_were_measured(vector: dict[str, Any]) -> None:
    lenient = Lenient(vector["schema"])
    expect = vector["expect"]

    coerced, changed = lenient.coerce(vector["input"])
    issues = lenient.faults(coerced)

    if expect["ok"]:
        assert issues == ()
        assert is_same(coerced, EXACT.get(vector["id"], expect["value"]))
    else:
        wanted = [{**issue, "keyword": issue.get("keyword", "type")} for issue in expect["errors"]]
        wanted = [{**w, "keyword": "required"} if w["message"] == "missing" else w for w in wanted]
        assert told(issues) == wanted
        assert is_same(coerced, vector.get("checked_value", vector["input"]))
    if "changed_by" in vector:
        assert bool(changed) == bool(vector["changed_by"])


@pytest.mark.parametrize("vector", named(RECORDED))
def test_values_and_issues_are_those_that_were_recorded(vector: dict[str, Any]) -> None:
    lenient = Lenient(vector["schema"])

    coerced, _ = lenient.coerce(vector["input"])

    assert is_same(coerced, vector["value"])
    assert [[i.path, i.keyword, i.message] for i in lenient.faults(coerced)] == vector["errors"]


@pytest.mark.parametrize("vector", named([v for v in MESSAGES if v["id"] not in REFUSED]))
def test_the_model_is_told_what_was_measured(vector: dict[str, Any]) -> None:
    lenient = Lenient(vector["schema"])

    issues = lenient.faults(lenient.coerce(vector["arguments"])[0])

    assert validation_text(vector["tool"], issues, vector["arguments"]) == vector["expect"]["text"]


@pytest.mark.parametrize("vector", named([v for v in MESSAGES if v["id"] in REFUSED]))
def test_what_would_fail_every_call_is_refused_at_once(vector: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match="no regular expression") as caught:
        Lenient(vector["schema"])

    assert caught.value.faults[0].message == REFUSED[vector["id"]]


def test_a_valid_value_comes_back_as_the_same_object() -> None:
    value = {"limit": 3.0, "names": ["a"]}
    schema = {"properties": {"limit": {"type": "integer"}, "names": {"type": "array"}}}

    assert Lenient(schema).coerce(value) == (value, ())
    assert Lenient(schema).coerce(value)[0] is value


def test_a_valid_value_is_still_wrapped_where_items_stand_without_a_type() -> None:
    lenient = Lenient({"items": {"type": "integer"}})

    assert lenient.faults("5") == ()
    assert lenient.coerce("5") == ([5], ("text to list",))


def test_what_did_not_change_is_shared_with_the_input() -> None:
    value = {"kept": {"x": [1]}, "limit": "5"}

    coerced, changed = Lenient({"properties": {"limit": {"type": "integer"}}}).coerce(value)

    assert coerced == {"kept": {"x": [1]}, "limit": 5}
    assert coerced["kept"] is value["kept"]
    assert value["limit"] == "5"
    assert changed == ("/limit text to integer",)


def test_a_value_that_ends_up_as_it_was_counts_as_unchanged() -> None:
    both = [{"type": "integer"}, {"type": "string"}]
    value = {"a": "1"}

    coerced, changed = Lenient(
        {"allOf": [{"properties": {"a": schema}} for schema in both]}
    ).coerce(value)

    assert (coerced is value, changed) == (True, ())


def test_a_list_of_itself_is_wrapped_until_it_repeats() -> None:
    schema: dict[str, Any] = {"type": "array"}
    schema["items"] = schema

    assert Lenient(schema).coerce("x") == ([["x"]], ("text to list",))


def test_equal_scalars_that_are_wrapped_do_not_share_their_list() -> None:
    item = {"$ref": "#/$defs/many"}
    many = {"type": "array", "items": {"type": "integer"}}
    schema = {"properties": {"a": item, "b": item}, "$defs": {"many": many}}

    coerced, _ = Lenient(schema).coerce({"a": "5", "b": "5"})

    assert coerced == {"a": [5], "b": [5]}
    assert coerced["a"] is not coerced["b"]


def test_text_with_half_a_surrogate_pair_is_coerced_and_checked() -> None:
    schema = {"properties": {"n": {"type": "integer"}, "t": {"maxLength": 1, "pattern": "^.$"}}}
    lenient = Lenient(schema)

    coerced, _ = lenient.coerce({"n": "5", "t": "\ud800"})

    assert coerced == {"n": 5, "t": "\ud800"}
    assert lenient.faults(coerced) == ()
    assert told(lenient.faults({"n": "\ud800"}))[0]["message"] == "expected integer, got string"


@pytest.mark.parametrize(
    ("value", "kind"), [(math.inf, "Infinity"), (-math.inf, "-Infinity"), (math.nan, "NaN")]
)
def test_a_number_that_is_not_finite_is_no_number(value: float, kind: str) -> None:
    lenient = Lenient({"type": "number"})

    coerced, changed = lenient.coerce(value)

    assert (coerced is value, changed) == (True, ())
    assert told(lenient.faults(value))[0]["message"] == f"expected number, got {kind}"


@pytest.mark.parametrize("schema", [{"maximum": 2}, {"type": "null"}, {"enum": [None]}])
def test_an_infinity_is_neither_null_nor_small(schema: dict[str, Any]) -> None:
    lenient = Lenient({"properties": {"a": {"items": schema}}})

    assert lenient.faults({"a": [None]}) == ()
    assert [issue.path for issue in lenient.faults({"a": [math.inf]})] == ["/a/0"]


def test_an_infinity_becomes_text_only_by_the_weak_rules() -> None:
    assert Lenient({"anyOf": [{"type": "null"}, {"type": "string"}]}).coerce(math.inf) == (
        "Infinity",
        ("number to text",),
    )


STRANGE = [
    math.inf,
    math.nan,
    10**400,
    -(10**5000),
    "\ud800",
    {1: 2, "a": "5"},
    {"a": object()},
    {"a": b"x"},
    {"a": {1, 2}},
    (1, "2"),
    {"a": {"$ref": ("x",)}},
]
SCHEMAS: list[dict[str, Any]] = [
    {"type": "string"},
    {"type": ["string", "null"]},
    {"type": "number", "multipleOf": 0.1},
    {"type": "integer"},
    {"type": "boolean"},
    {"type": "array", "items": {"type": "integer"}, "uniqueItems": True},
    {"enum": [1, "a", None, [1]]},
    {"minimum": 5, "pattern": "a", "minProperties": 1},
    {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/s"}},
        "additionalProperties": {"type": "string"},
        "$defs": {"s": {"anyOf": [{"type": "integer"}, {"enum": ["x"]}]}},
    },
    {"patternProperties": {"^a": {"type": "string"}}, "unevaluatedProperties": False},
]


@pytest.mark.parametrize("schema", SCHEMAS)
@pytest.mark.parametrize("value", STRANGE, ids=range(len(STRANGE)))
def test_values_that_are_no_json_do_no_harm(value: Any, schema: dict[str, Any]) -> None:
    lenient = Lenient(schema)

    coerced, _ = lenient.coerce(value)
    text = validation_text("t", lenient.faults(coerced), value)

    assert text.startswith('Validation failed for tool "t":')


def nested(levels: int, leaf: Any) -> Any:
    value = leaf
    for _ in range(levels):
        value = {"c": value}
    return value


AMBIGUOUS = {
    "$ref": "#/$defs/t",
    "$defs": {
        "t": {
            "anyOf": [
                {"type": "object", "properties": {"c": {"$ref": "#/$defs/t"}}, "required": ["c"]},
                {
                    "type": "object",
                    "properties": {"c": {"$ref": "#/$defs/t"}, "d": {}},
                    "required": ["c"],
                },
                {"type": "array", "items": {"$ref": "#/$defs/t"}, "maxItems": 0},
                {"type": "array", "items": {"$ref": "#/$defs/t"}, "minItems": 5},
                {"type": "integer"},
            ]
        }
    },
}


class Counted(Work):
    """A budget that remembers how much of it was used."""

    used = 0

    def spend(self) -> None:
        type(self).used += 1
        super().spend()


@pytest.mark.parametrize("leaf", ["bad", "5"])
def test_an_ambiguous_recursive_union_costs_only_as_much_as_the_value_is_deep(
    leaf: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lenient_module, "Work", Counted)
    lenient = Lenient(AMBIGUOUS)
    spent = []

    for levels in (25, 50):
        Counted.used = 0
        lenient.faults(lenient.coerce(nested(levels, leaf))[0])
        spent.append(Counted.used)

    assert spent[1] < 2.5 * spent[0]


def test_a_deep_recursive_value_is_still_coerced() -> None:
    coerced, changed = Lenient(AMBIGUOUS).coerce(nested(128, "5"))

    assert coerced == nested(128, 5)
    assert changed == (f"{'/c' * 128} text to integer",)


@pytest.mark.parametrize("levels", [1_000, 50_000])
def test_a_value_that_is_too_deep_is_left_and_refused(levels: int) -> None:
    lenient = Lenient(AMBIGUOUS)
    value = nested(levels, "5")

    coerced, changed = lenient.coerce(value)

    assert (coerced is value, changed) == (True, ())
    assert told(lenient.faults(value)) == [
        {
            "path": "",
            "keyword": "schema",
            "message": "too deeply nested or too ambiguous to be checked",
        }
    ]


def test_a_deep_value_is_no_matter_where_the_schema_does_not_look() -> None:
    value = nested(50_000, "5")

    assert Lenient({"type": "object"}).faults(value) == ()


def test_work_without_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lenient_module, "_STEPS", 10)
    monkeypatch.setattr(lenient_module, "_STEPS_TO_EXPLAIN", 10)
    lenient = Lenient({"type": "array", "items": {"type": "integer"}})
    value = ["5"] * 50

    assert lenient.coerce(value) == (value, ())
    assert 0 < len(lenient.faults(value)) < 50


def test_a_verdict_that_cannot_be_explained_is_still_a_fault(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lenient = Lenient({"type": "integer"})
    never = jsonschema_rs.Draft202012Validator({"not": {}})
    monkeypatch.setattr(lenient, "_validator", never)

    assert lenient.faults(5) == (Issue("", "invalid", "schema"),)


def test_nothing_is_fetched_for_a_schema() -> None:
    with pytest.raises(ValueError, match="is not fetched"):
        lenient_module._refuse("https://example.com/schema")


def test_recursion_near_the_limit_of_the_caller_does_no_harm() -> None:
    lenient = Lenient(AMBIGUOUS)
    value = nested(60, "5")

    def from_deep(frames: int) -> tuple[Any, tuple[Issue, ...]]:
        if frames:
            return from_deep(frames - 1)
        coerced, _ = lenient.coerce(value)
        return coerced, lenient.faults(coerced)

    coerced, issues = from_deep(sys.getrecursionlimit() - 250)

    assert (coerced == nested(60, 5), issues != ()) in {(True, False), (False, True)}


KEYS = st.sampled_from(["a", "b", "n_a", "1"])
TYPES = ["string", "number", "integer", "boolean", "null", "array", "object"]
SCALARS = st.sampled_from(
    [None, True, False, 0, 1, -3.9, 3.5, 1e21, "", "5", "3.5", "TRUE", "null", " 7 ", "x", "0x10"]
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=12,
)


def grown(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    branches = st.lists(inner, min_size=1, max_size=3)
    members = st.dictionaries(KEYS, inner, max_size=3)
    return st.one_of(
        st.fixed_dictionaries(
            {"type": st.just("object"), "properties": members},
            optional={
                "required": st.lists(KEYS, max_size=2),
                "additionalProperties": inner,
                "patternProperties": st.dictionaries(st.just("^n_"), inner, max_size=1),
                "minProperties": st.integers(0, 2),
            },
        ),
        st.fixed_dictionaries(
            {"type": st.just("array"), "items": inner}, optional={"minItems": st.integers(0, 2)}
        ),
        st.fixed_dictionaries({"type": st.just("array"), "prefixItems": branches}),
        st.fixed_dictionaries({"anyOf": branches}),
        st.fixed_dictionaries({"oneOf": branches}),
        st.fixed_dictionaries({"allOf": branches}, optional={"type": st.sampled_from(TYPES)}),
        st.fixed_dictionaries({"not": inner}),
        st.fixed_dictionaries({"if": inner, "then": inner, "else": inner}),
    )


LEAVES = st.one_of(
    st.fixed_dictionaries({"type": st.sampled_from(TYPES)}),
    st.fixed_dictionaries({"type": st.lists(st.sampled_from(TYPES), min_size=1, max_size=3)}),
    st.fixed_dictionaries({"enum": st.lists(SCALARS, min_size=1, max_size=3)}),
    st.fixed_dictionaries({"const": SCALARS}),
    st.fixed_dictionaries({"type": st.just("integer"), "minimum": st.integers(0, 5)}),
    st.fixed_dictionaries({"type": st.just("string"), "minLength": st.integers(0, 3)}),
    st.just({"$ref": "#/$defs/node"}),
    st.just({}),
)
NODE = {
    "type": "object",
    "properties": {"a": {"$ref": "#/$defs/node"}, "b": {"type": "integer"}},
    "required": ["b"],
}
RANDOM_SCHEMAS = st.recursive(LEAVES, grown, max_leaves=8).map(
    lambda schema: {**schema, "$defs": {"node": NODE}}
)


@settings(max_examples=150, deadline=None)
@given(RANDOM_SCHEMAS, VALUES)
def test_coercion_never_changes_its_input_and_always_tells_what_it_did(
    schema: dict[str, Any], value: Any
) -> None:
    before = copy.deepcopy(value)
    lenient = Lenient(schema)

    coerced, changed = lenient.coerce(value)
    text = validation_text("t", lenient.faults(coerced), value)

    assert is_same(value, before)
    assert (coerced is value) == (changed == ())
    assert text.endswith(validation_text("t", (), value).split("\n\n", 1)[1])


@settings(max_examples=150, deadline=None)
@given(RANDOM_SCHEMAS, VALUES)
def test_what_became_valid_is_not_coerced_again(schema: dict[str, Any], value: Any) -> None:
    lenient = Lenient(schema)

    coerced, _ = lenient.coerce(value)

    if not lenient.faults(coerced):
        assert lenient.coerce(coerced)[0] is coerced


@settings(max_examples=150, deadline=None)
@given(RANDOM_SCHEMAS, VALUES)
def test_the_fast_verdict_and_the_slow_one_agree(schema: dict[str, Any], value: Any) -> None:
    lenient = Lenient(schema)
    slow = Lenient(schema)
    slow._validator = None

    assert lenient._validator is not None
    assert lenient.faults(value) == slow.faults(value)
    assert lenient.coerce(value) == slow.coerce(value)
    assert (lenient.faults(value) == ()) == lenient._validator.is_valid(value)
