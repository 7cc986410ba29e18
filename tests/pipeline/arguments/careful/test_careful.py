from __future__ import annotations

import copy
import json
import sys
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from seawall.pipeline.arguments.careful.careful import Careful
from seawall.pipeline.arguments.reading.bounds import out_of_bounds
from seawall.pipeline.arguments.reading.reader import ArgumentTextFault
from seawall.pipeline.arguments.reading.text import parse_arguments

CASES = json.loads(
    (Path(__file__).parents[3] / "cases" / "arguments.json").read_text(encoding="utf-8")
)


def refuse(uri: str) -> Any:
    raise ValueError(uri)


def validator(schema: dict[str, Any]) -> Any:
    return jsonschema_rs.validator_for(schema, retriever=refuse, validate_formats=True)


def careful_of(schema: dict[str, Any]) -> Careful:
    return Careful(schema, validator(schema).is_valid)


def same(first: Any, second: Any) -> bool:
    """Equal, and of the same types throughout: 1, 1.0 and True are three values."""
    return bool(json.dumps(first, sort_keys=True) == json.dumps(second, sort_keys=True))


def field(schema: Any, value: Any, *, required: bool = False) -> Any:
    """What becomes of one field `v`; `...` if the outcome is not valid, None left out."""
    whole = {"type": "object", "properties": {"v": schema}, "$defs": {"N": INTEGER}}
    if required:
        whole["required"] = ["v"]
    mended, _ = careful_of(whole).mend({"v": value})
    if not validator(whole).is_valid(mended):
        return ...
    return mended.get("v", "dropped")


# -- the cases


def outcome(case: dict[str, Any]) -> tuple[str, Any, tuple[str, ...]]:
    """Take one call as far as the check: what came of it, the arguments, where the fault is."""
    call = case["call"]
    tools = case["given"].get("tools") or [case["given"]["tool"]]
    schema = next(tool["schema"] for tool in tools if tool["name"] == call["name"])
    try:
        check = validator(schema)
    except ValueError:
        return "quarantined", None, ()
    try:
        arguments = decoded(call)
    except ArgumentTextFault:
        return "invalid_arguments", None, ("",)
    if not isinstance(arguments, dict):
        return "invalid_arguments", None, ("",)
    if (fault := out_of_bounds(arguments)) is not None:
        return "invalid_arguments", None, (fault[1],)
    mended, _ = Careful(schema, check.is_valid).mend(arguments)
    paths = ["".join(f"/{p}" for p in error.instance_path) for error in check.iter_errors(mended)]
    return ("invalid_arguments" if paths else "ok"), mended, tuple(paths)


def decoded(call: dict[str, Any]) -> Any:
    made = call.get("arguments_text_gen")
    if made:
        text = made["open"] * made["times"] + made["core"] + made["close"] * made["times"]
        return parse_arguments(text, repair=True)[0]
    if "arguments_text" in call:
        return parse_arguments(call["arguments_text"], repair=True)[0]
    return call.get("arguments") or {}


def meets(expected: dict[str, Any], came: tuple[str, Any, tuple[str, ...]]) -> bool:
    what, arguments, paths = came
    if "quarantined" in expected and "outcome" not in expected:
        return what == "quarantined"
    return (
        expected.get("outcome", what) == what
        and ("args" not in expected or arguments == expected["args"])
        and ("at" not in expected or expected["at"] in paths)
        and all(arguments != never for never in expected.get("never_args", ()) if what == "ok")
    )


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_a_call_comes_out_as_its_case_says(case: dict[str, Any]) -> None:
    came = outcome(case)

    assert meets({**case["expect"], "any_of": None}, came)
    assert any(meets(one, came) for one in case["expect"].get("any_of", [{}]))


# -- what is mended, and what never


INTEGER = {"type": "integer"}
TEXTS = {"type": "array", "items": {"type": "string"}}
INTEGERS = {"type": "array", "items": INTEGER}
OBJECT = {"type": "object", "properties": {"n": INTEGER}, "required": ["n"]}


@pytest.mark.parametrize(
    ("schema", "value", "mended"),
    [
        (INTEGER, "50", 50),
        (INTEGER, 3.0, 3),
        (INTEGER, 9007199254740991.0, 9007199254740991),
        ({"type": "number"}, "2.5", 2.5),
        ({"type": "boolean"}, "TRUE", True),
        ({"type": "string"}, 4821, "4821"),
        ({"type": "string", "pattern": "^[0-9]{4}$"}, 4821, "4821"),
        ({"enum": ["markdown", "json"]}, "MARKDOWN", "markdown"),
        ({"type": "integer", "enum": [1, 2]}, "2", 2),
        ({"type": "integer", "enum": [1, 2]}, 2.0, 2),
        ({"const": "x"}, "X ", "x"),
        (TEXTS, '["a", "b"]', ["a", "b"]),
        (TEXTS, "['a', 'b',]", ["a", "b"]),
        (TEXTS, "urgent", ["urgent"]),
        (TEXTS, "a, b", ["a, b"]),
        (TEXTS, 5, ["5"]),
        (INTEGERS, "5", [5]),
        (INTEGERS, ["4", 5.0], [4, 5]),
        (INTEGERS, "[4, 5.0]", [4, 5]),
        (INTEGERS, ("4",), [4]),
        ({"type": "array"}, {"a": 1}, [{"a": 1}]),
        ({"type": "array", "items": OBJECT}, {"n": "1"}, [{"n": 1}]),
        ({"type": "array", "items": OBJECT}, '{"n": "1"}', [{"n": 1}]),
        ({"type": "array", "items": OBJECT}, '[{"n": "1"}]', [{"n": 1}]),
        ({"type": "array", "items": OBJECT}, ['{"n": "1"}'], [{"n": 1}]),
        (OBJECT, '{"n": "1"}', {"n": 1}),
        (OBJECT, "{'n': 1}", {"n": 1}),
        (OBJECT, '```json\n{"n": 1}\n```', {"n": 1}),
        (OBJECT, r'"{\"n\": 1}"', {"n": 1}),
        (
            {"type": "array", "prefixItems": [INTEGER, {"type": "boolean"}]},
            ["1", "true"],
            [1, True],
        ),
        ({"type": "object", "additionalProperties": INTEGER}, {"x": "1"}, {"x": 1}),
        (
            {"type": "object", "patternProperties": {"^n": INTEGER}},
            {"n1": "1", "m": "1"},
            {"n1": 1, "m": "1"},
        ),
        ({"allOf": [{"type": "integer"}, {"minimum": 5}]}, "7", 7),
        ({"type": ["integer", "boolean"]}, "true", True),
        ({"type": ["integer", "null"]}, "7", 7),
        ({"anyOf": [INTEGER, {"type": "null"}]}, "7", 7),
        ({"anyOf": [OBJECT, {"type": "null"}]}, '{"n": "7"}', {"n": 7}),
        ({"anyOf": [{"type": "boolean"}, INTEGER]}, "7", 7),
        ({"anyOf": [{"type": "string"}, INTEGER]}, 7.0, 7),
        ({"oneOf": [{"type": "null"}, {"allOf": [INTEGER]}]}, 7.0, 7),
        ({"type": "string", "if": {"type": "string"}, "then": {"enum": ["a"]}}, "A", "a"),
    ],
)
def test_what_a_person_would_read_without_doubt_is_mended(
    schema: Any, value: Any, mended: Any
) -> None:
    found = field(schema, value, required=True)

    assert same(found, mended)


@pytest.mark.parametrize("value", [9007199254740993.0, -9007199254740993.0, 1e300])
def test_a_float_that_stands_for_several_integers_is_none_of_them(value: float) -> None:
    found, notes = Careful({"type": "object", "properties": {"n": INTEGER}}, lambda _: True).mend(
        {"n": value}
    )

    assert type(found["n"]) is float
    assert notes == ()


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (INTEGER, 0.5),
        (INTEGER, "3.0"),
        (INTEGER, "1,000"),
        (INTEGER, True),
        (INTEGER, ""),
        (INTEGER, None),
        (INTEGER, [5]),
        ({"type": "integer", "maximum": 100}, "150"),
        ({"type": "number"}, "NaN"),
        ({"type": "number"}, "1e400"),
        ({"type": "boolean"}, "no"),
        ({"type": "boolean"}, 1),
        ({"type": "string"}, True),
        ({"type": "string"}, 1.0),
        ({"type": "string"}, ["Oslo"]),
        ({"type": "string"}, {"a": 1}),
        ({"type": "string", "maxLength": 3}, 4821),
        ({"type": "string", "minLength": 1}, ""),
        ({"enum": ["a", "A", "b"]}, "a b"),
        ({"enum": ["red", "green"]}, "blue"),
        ({"type": "array", "items": {"type": "string"}, "minItems": 2}, "urgent"),
        (TEXTS, None),
        (TEXTS, ""),
        (TEXTS, " "),
        (TEXTS, "null"),
        (TEXTS, {"a": "b"}),
        (TEXTS, '["a", "b'),
        (TEXTS, '["a", "b"'),
        (TEXTS, "[draft] title"),
        (TEXTS, '"[\\"a\\", '),
        (TEXTS, ["a", None]),
        (INTEGERS, "1, 2"),
        (INTEGERS, "[1, x]"),
        ({"type": "array", "items": INTEGERS}, [1, 2]),
        ({"type": "array", "items": INTEGERS}, 1),
        ({"type": "array", "prefixItems": [INTEGER, INTEGER], "minItems": 1}, 1),
        (OBJECT, '{"n": 1, "m":'),
        (OBJECT, '{"n": 1}{"n": 2}'),
        (OBJECT, '{"n": 1, "n": 2}'),
        (OBJECT, "[1]"),
        (OBJECT, [{"n": 1}]),
        (OBJECT, ""),
        (OBJECT, "null"),
        (OBJECT, '""'),
        ({"type": "object", "additionalProperties": False}, '{"x": 1}'),
        ({"type": "object", "additionalProperties": {"type": "string"}}, {"x": None}),
        ({"type": ["string", "null"]}, [1]),
        ({"anyOf": [INTEGER, {"type": "boolean"}]}, "x"),
        ({"oneOf": [INTEGER, {"type": "number"}]}, "7"),
        ({"not": {"type": "string"}}, "7"),
        (False, None),
        ({"$ref": "#/$defs/Gone"}, None),
    ],
)
def test_what_would_be_a_guess_is_left_to_be_refused(schema: Any, value: Any) -> None:
    whole = {"type": "object", "properties": {"v": schema}, "required": ["v"]}
    if schema == {"$ref": "#/$defs/Gone"}:
        careful = Careful(whole, lambda value: False)
        assert careful.mend({"v": value}) == ({"v": value}, ())
    else:
        assert field(schema, value, required=True) is ...


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "string"}, "12345"),
        ({"type": "string"}, '{"a": 1}'),
        ({"type": "string"}, "null"),
        ({"type": "string"}, ""),
        ({}, "5"),
        ({"type": ["string", "integer"]}, "42"),
        ({"type": ["number", "string"]}, 1),
        ({"type": ["number", "integer"]}, 1.0),
        ({"anyOf": [{"type": "number"}, INTEGER]}, 1.0),
        ({"anyOf": [INTEGER, {"type": "string"}]}, "7"),
        ({"anyOf": [{"type": "string"}, TEXTS]}, '["a"]'),
        ({"anyOf": [OBJECT, {"type": "object"}]}, {"n": "7"}),
        ({"type": "number"}, 3.0),
        ({"enum": ["a", "A"]}, "A"),
        ({"enum": ["1", 1]}, "1"),
        ({"type": ["integer", "null"]}, None),
        ({"type": "array", "items": {}}, ["1", None]),
    ],
)
def test_what_is_valid_by_itself_is_not_touched(schema: Any, value: Any) -> None:
    whole = {"type": "object", "properties": {"v": schema, "n": INTEGER}}
    careful = careful_of(whole)

    assert same(careful.mend({"v": value})[0], {"v": value})
    assert same(careful.mend({"v": value, "n": "1"})[0], {"v": value, "n": 1})


@pytest.mark.parametrize(
    ("schema", "value", "left"),
    [
        ({"type": "string"}, None, "dropped"),
        (INTEGER, None, "dropped"),
        (INTEGER, "", "dropped"),
        (INTEGER, "null", "dropped"),
        (TEXTS, "", "dropped"),
        (TEXTS, "null", "dropped"),
        (OBJECT, "", "dropped"),
        ({"enum": ["a"]}, "", "dropped"),
        ({"type": "string", "pattern": "=", "minLength": 1}, "", "dropped"),
        ({"type": "string", "format": "date"}, "", "dropped"),
        ({"$ref": "#/$defs/N"}, None, "dropped"),
        ({"anyOf": [INTEGER, {"type": "boolean"}]}, None, "dropped"),
        ({"not": {}}, None, ...),
        (False, "", ...),
        ({"type": ["integer", "null"]}, None, None),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, None, None),
        ({"type": "string"}, "", ""),
        ({"type": "string"}, "null", "null"),
        ({"enum": ["Null", "a"]}, "null", "Null"),
        (INTEGER, " ", ...),
        (INTEGER, "none", ...),
        (INTEGER, [], ...),
    ],
)
def test_an_optional_field_that_says_nothing_is_dropped(schema: Any, value: Any, left: Any) -> None:
    found = field(schema, value)

    assert found is left if left is ... else same(found, left)


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"anyOf": [INTEGER, {"type": "null"}]}, "null"),
        ({"type": ["integer", "null"]}, "null"),
        ({"enum": ["a", None]}, "null"),
    ],
)
def test_a_required_field_that_may_be_null_reads_the_text_null(schema: Any, value: Any) -> None:
    assert field(schema, value, required=True) is None


def test_a_field_required_elsewhere_is_not_dropped() -> None:
    whole = {
        "type": "object",
        "properties": {"a": INTEGER, "b": INTEGER},
        "allOf": [{"$ref": "#/$defs/R"}],
        "$defs": {"R": {"required": ["a"]}},
    }

    assert careful_of(whole).mend({"a": None, "b": None})[0] == {"a": None}


def test_each_alternative_says_itself_what_is_required() -> None:
    whole = {
        "type": "object",
        "properties": {"a": INTEGER, "b": INTEGER},
        "anyOf": [{"required": ["a"]}, {"required": ["b"]}],
    }

    assert careful_of(whole).mend({"a": None, "b": "1"})[0] == {"b": 1}


def test_unknown_keys_are_kept_whatever_they_hold() -> None:
    whole = {"type": "object", "properties": {"n": INTEGER}, "additionalProperties": False}

    mended, _ = careful_of(whole).mend({"n": "1", "unknown": None})

    assert mended == {"n": 1, "unknown": None}


def test_mending_reaches_every_depth_and_goes_through_references() -> None:
    whole = {
        "type": "object",
        "properties": {"tree": {"$ref": "#/$defs/T"}},
        "$defs": {
            "T": {"allOf": [{"$ref": "#/$defs/Base"}, {"properties": {"n": INTEGER}}]},
            "Base": {
                "type": "object",
                "properties": {
                    "on": {"$ref": "#flag"},
                    "below": {"type": "array", "items": {"$ref": "#/$defs/T"}},
                },
            },
            "F": {"$anchor": "flag", "type": "boolean"},
        },
    }
    given_ = {"tree": {"n": "1", "below": [{"on": "true"}, '{"below": {"n": 2.0}}']}}

    mended, notes = careful_of(whole).mend(given_)

    assert same(mended, {"tree": {"n": 1, "below": [{"on": True}, {"below": [{"n": 2}]}]}})
    assert notes == (
        "/tree/n text to integer",
        "/tree/below/0/on text to boolean",
        "/tree/below/1 text to object",
        "/tree/below/1/below wrapped in a list",
        "/tree/below/1/below/0/n number to integer",
    )


SHAPES = {
    "oneOf": [
        {
            "properties": {"kind": {"const": "circle"}, "r": {"type": "number"}},
            "required": ["kind", "r"],
        },
        {
            "properties": {"kind": {"const": "rect"}, "w": INTEGER, "h": INTEGER},
            "required": ["kind", "w"],
        },
    ],
    "type": "object",
}


@pytest.mark.parametrize(
    ("value", "mended"),
    [
        ({"kind": "rect", "w": "4", "h": None}, {"kind": "rect", "w": 4}),
        ({"kind": "Rect", "w": "4"}, {"kind": "rect", "w": 4}),
        ('{"kind": "rect", "w": 4.0}', {"kind": "rect", "w": 4}),
        ({"kind": "circle", "r": "4"}, {"kind": "circle", "r": 4}),
        ({"kind": "rect", "w": "x"}, ...),
        ({"kind": "line", "w": "4"}, ...),
    ],
)
def test_of_tagged_alternatives_the_one_that_works_is_taken(value: Any, mended: Any) -> None:
    found = field(SHAPES, value, required=True)

    assert found is mended if mended is ... else same(found, mended)


def test_an_alternative_that_accepts_the_value_as_it_is_comes_before_one_that_would_convert() -> (
    None
):
    whole = {
        "type": "object",
        "properties": {"n": INTEGER},
        "anyOf": [
            {"properties": {"v": INTEGER}, "required": ["v"]},
            {"properties": {"v": {"type": "string"}}},
        ],
    }

    assert careful_of(whole).mend({"v": "5", "n": "3"})[0] == {"v": "5", "n": 3}


def test_several_unions_at_one_place_are_met_together() -> None:
    whole = {
        "type": "object",
        "anyOf": [{"properties": {"a": INTEGER}, "required": ["a"]}, {"required": ["b"]}],
        "oneOf": [
            {"properties": {"c": INTEGER, "k": {"const": 1}}, "required": ["c"]},
            {"properties": {"k": {"const": 2}, "c": {"type": "boolean"}}, "required": ["c"]},
        ],
    }

    mended, _ = careful_of(whole).mend({"a": "1", "c": "true", "k": "2"})

    assert same(mended, {"a": 1, "c": True, "k": 2})


def test_the_one_alternative_that_can_be_meant_shows_what_is_still_wrong() -> None:
    nullable = {"anyOf": [{"type": "integer", "maximum": 100}, {"type": "null"}]}
    whole = {"type": "object", "properties": {"v": nullable}}

    assert careful_of(whole).mend({"v": "150"}) == ({"v": 150}, ("/v text to integer",))


def test_conditions_are_followed_by_what_holds_for_the_value() -> None:
    whole = {
        "type": "object",
        "properties": {"kind": {"type": "string"}, "o": {"type": "object"}},
        "if": {"properties": {"kind": {"const": "x"}}},
        "then": {"properties": {"v": INTEGER}},
        "else": {"properties": {"v": {"type": "boolean"}}},
        "dependentSchemas": {"o": {"properties": {"w": INTEGER}}},
    }
    careful = careful_of(whole)

    assert careful.mend({"kind": "x", "v": "5"})[0] == {"kind": "x", "v": 5}
    assert careful.mend({"kind": "y", "v": "true"})[0] == {"kind": "y", "v": True}
    assert careful.mend({"o": "{}", "w": "5", "kind": "x"})[0] == {"o": {}, "w": 5, "kind": "x"}
    assert same(careful.mend({"kind": "x", "v": 5.0})[0], {"kind": "x", "v": 5})
    assert careful.mend({"kind": "x", "v": "y"})[0] == {"kind": "x", "v": "y"}


def test_whole_numbers_become_integers_deep_inside_what_is_valid() -> None:
    whole = {
        "type": "object",
        "properties": {
            "rows": {"type": "array", "items": {"prefixItems": [INTEGER, {"type": "number"}]}},
            "any": {},
            "either": {"anyOf": [SHAPES, {"type": "array", "items": INTEGER}]},
        },
        "if": {"required": ["any"]},
    }
    given_ = {"rows": [[1.0, 1.0]], "any": [1.0], "either": {"kind": "rect", "w": 2.0}, "x": 1.0}
    careful = careful_of(whole)

    assert same(
        careful.mend(given_)[0],
        {"rows": [[1, 1.0]], "any": [1.0], "either": {"kind": "rect", "w": 2}, "x": 1.0},
    )
    assert same(careful.mend({"either": [2.0, 3]})[0], {"either": [2, 3]})


def test_what_is_valid_comes_back_as_the_same_object() -> None:
    careful = careful_of({"type": "object", "properties": {"a": INTEGER, "o": OBJECT}})

    for value in ({"a": 1}, {"a": 1, "o": {"n": 2}}, {"a": 1, "x": 1.5}, {"x": None}, {}):
        mended, notes = careful.mend(value)
        assert mended is value
        assert notes == ()


def test_a_fraction_stays_a_fraction() -> None:
    careful = careful_of({"type": "object", "properties": {"a": INTEGER, "b": {"type": "number"}}})

    assert same(careful.mend({"a": 1.0, "b": 2.5})[0], {"a": 1, "b": 2.5})


def test_without_integers_floats_need_no_second_look() -> None:
    value = {"a": 1.0}

    assert (
        careful_of({"type": "object", "properties": {"a": {"type": "number"}}}).mend(value)[0]
        is value
    )


def test_what_is_not_to_be_mended_comes_back_as_the_same_object() -> None:
    value = {"a": "x", "o": {"n": [1, 2]}, "t": (1, 2)}
    careful = careful_of({"type": "object", "properties": {"a": INTEGER, "o": OBJECT}})

    assert careful.mend(value)[0] is value


def test_only_what_is_mended_is_copied() -> None:
    value = {"o": {"n": "1"}, "untouched": {"x": [1]}}
    before = copy.deepcopy(value)

    mended, _ = careful_of({"type": "object", "properties": {"o": OBJECT}}).mend(value)

    assert value == before
    assert mended["untouched"] is value["untouched"]


def test_notes_name_places_and_kinds_but_never_values() -> None:
    whole = {
        "type": "object",
        "properties": {
            "a/b": {"type": "string"},
            "list": TEXTS,
            "pick": {"enum": ["s3cret"]},
            "o": OBJECT,
            "gone": INTEGER,
            "null": {"type": "null"},
        },
        "required": ["null"],
    }
    given_ = {"a/b": 77777, "list": "s3cret", "pick": "S3CRET", "o": '{"n": "88888"}', "gone": None}

    _, notes = careful_of(whole).mend({**given_, "null": "null"})

    assert notes == (
        "/a~1b integer to text",
        "/list wrapped in a list",
        "/pick matched to a listed value",
        "/o text to object",
        "/o/n text to integer",
        "/gone dropped",
        "/null text to null",
    )


def test_many_notes_and_long_pointers_are_cut() -> None:
    whole = {"type": "object", "additionalProperties": INTEGERS}

    _, notes = careful_of(whole).mend({"k" * 5000: ["1"] * 5000})

    assert len(notes) == 65
    assert notes[-1] == "and more"
    assert max(map(len, notes)) < 250


# -- schemas as they come


def test_a_dangling_reference_harms_only_its_own_place() -> None:
    whole = {
        "type": "object",
        "properties": {
            "o": {"$ref": "#/$defs/Gone"},
            "n": {"anyOf": [INTEGER, {"minimum": 1, "type": "number"}]},
        },
    }
    careful = Careful(whole, lambda value: False)

    mended, _ = careful.mend({"o": None, "n": "7"})

    assert mended == {"o": None, "n": 7}


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#/$defs/A"},
        {"$ref": "#"},
        {"$dynamicRef": "#"},
        {"allOf": [{"$ref": "#/properties/v"}]},
        {"anyOf": [{"$ref": "#/properties/v"}, INTEGER]},
        {"type": "strange"},
        {"pattern": "("},
        {"type": "integer", "enum": "x", "required": True, "properties": [], "items": 5},
        {"anyOf": []},
        {"anyOf": {}},
        {"if": 5, "then": 6},
        {"dependencies": {"a": ["b"]}, "dependentSchemas": 5},
        {"patternProperties": {"(": INTEGER}},
        {"$id": 5, "$anchor": 6, "$ref": "#/%"},
    ],
)
@pytest.mark.parametrize("value", [1, "1", {"v": "{}"}, ["1"], None, 1.0])
def test_no_schema_makes_it_raise(schema: dict[str, Any], value: Any) -> None:
    whole = {
        "type": "object",
        "properties": {"v": schema, "n": INTEGER},
        "$defs": {"A": {"allOf": [{"$ref": "#/$defs/A"}]}},
    }

    mended, _ = Careful(whole, lambda value: False).mend({"v": value, "n": "1"})

    assert mended["n"] == 1


def test_an_old_draft_is_read_as_it_was_meant() -> None:
    whole = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": {
            "pair": {
                "type": "array",
                "items": [{"type": "string"}, INTEGER],
                "additionalItems": INTEGER,
            },
            "r": {"$ref": "#/definitions/P", "type": "string"},
        },
        "definitions": {"P": {"$id": "#p", "type": "integer"}},
        "dependencies": {"r": {"properties": {"s": {"$ref": "#p"}}}},
    }

    mended, _ = careful_of(whole).mend({"pair": [1, "2", "3"], "r": "4", "s": "5"})

    assert mended == {"pair": ["1", 2, 3], "r": 4, "s": 5}


def test_formats_can_be_left_out_as_in_the_check() -> None:
    whole = {
        "type": "object",
        "properties": {"d": {"type": "string", "format": "date"}, "n": INTEGER},
    }
    check = jsonschema_rs.validator_for(whole, validate_formats=False).is_valid

    mended, _ = Careful(whole, check, validate_formats=False).mend({"d": "", "n": "1"})

    assert mended == {"d": "", "n": 1}


def test_where_nothing_can_be_known_nothing_is_changed() -> None:
    unknown = {"pattern": "(", "anyOf": [INTEGER, {"type": "string"}]}
    whole = {"type": "object", "properties": {"v": unknown, "n": INTEGER}}

    mended, _ = Careful(whole, lambda value: False).mend({"v": {"x": 2.0}, "n": "1"})

    assert mended == {"v": {"x": 2.0}, "n": 1}


@pytest.mark.parametrize("schema", [True, False])
def test_a_schema_may_be_true_or_false(schema: bool) -> None:
    value = {"a": "1"}

    assert Careful(schema, lambda value: schema).mend(value) == (value, ())


# -- bounded work


RECURSIVE_UNION = {
    "anyOf": [
        {"type": "object", "properties": {"next": {"$ref": "#/$defs/N"}}, "required": ["next"]},
        {
            "type": "object",
            "properties": {"next": {"$ref": "#/$defs/N"}, "z": INTEGER},
            "required": ["next"],
        },
        INTEGER,
    ]
}


@pytest.mark.parametrize(("leaf", "mended"), [("7", 7), (7.0, 7), ("x", "x")])
def test_ambiguous_recursive_unions_take_linear_time(leaf: Any, mended: Any) -> None:
    whole = {
        "type": "object",
        "properties": {"v": {"$ref": "#/$defs/N"}},
        "$defs": {"N": RECURSIVE_UNION},
    }
    value: Any = leaf
    for _ in range(100):
        value = {"next": value}

    found = careful_of(whole).mend({"v": value})[0]["v"]

    for _ in range(100):
        found = found["next"]
    assert same(found, mended)


def test_work_on_alternatives_ends_and_leaves_the_rest_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("seawall.pipeline.arguments.careful.careful._WORK", 1_000)
    either = {"anyOf": [INTEGER, {"type": "null"}]}
    whole = {"type": "object", "properties": {"v": {"type": "array", "items": either}}}
    careful = careful_of(whole)

    mended = careful.mend({"v": [str(number) for number in range(1000)]})[0]["v"]
    narrowed = careful.mend({"v": [float(number) for number in range(1000)]})[0]["v"]

    assert mended[0] == 0
    assert mended[-1] == "999"
    assert type(narrowed[0]) is int
    assert type(narrowed[-1]) is float


def test_as_many_values_as_a_call_may_hold_are_mended() -> None:
    whole = {"type": "object", "properties": {"v": {"type": "array", "items": INTEGER}}}
    given_ = {"v": [str(number) for number in range(19_000)]}

    assert careful_of(whole).mend(given_)[0] == {"v": list(range(19_000))}


def test_unions_that_contradict_each_other_do_not_multiply(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("seawall.pipeline.arguments.careful.careful._WORK", 50_000)
    unions = [
        {
            "anyOf": [
                {"properties": {f"k{n}{m}": INTEGER}, "required": [f"k{n}{m}"]} for m in range(6)
            ]
        }
        for n in range(12)
    ]
    whole = {"type": "object", "allOf": unions, "required": ["missing"]}
    given_ = {f"k{n}{m}": "5" for n in range(12) for m in range(6)}

    assert careful_of(whole).mend(given_)[0] is given_


def test_a_stack_that_is_nearly_used_up_leaves_the_arguments_as_they_are() -> None:
    whole = {"type": "object", "properties": {"next": {"$ref": "#"}, "n": INTEGER}}
    careful = careful_of(whole)
    value: dict[str, Any] = {"n": "1"}
    for _ in range(100):
        value = {"next": value}

    def deeper(frames: int) -> Any:
        return deeper(frames - 1) if frames else careful.mend(value)

    frame, used = sys._getframe(), 0
    while frame.f_back is not None:
        frame, used = frame.f_back, used + 1

    assert deeper(sys.getrecursionlimit() - used - 60) == (value, ())


def test_text_inside_text_cannot_go_deeper_than_the_bound() -> None:
    whole = {"type": "object", "properties": {"next": {"$ref": "#"}}}
    value: Any = "[" * 126 + "]" * 126
    for _ in range(100):
        value = {"next": value}

    mended, _ = careful_of(whole).mend(value)

    assert mended is value


# -- properties

NAMES = st.sampled_from(["a", "b", "c"])
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-3, 12)
    | st.sampled_from([0.0, 2.0, 2.5, 1e20, "", "null", "2", "2.5", "true", "A", "a", "x", "[1]"])
    | st.sampled_from(['{"a": "2"}', "['2', True]", '{"a": 2.0}', '["a"', "[[1.0]]", " 7 "])
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)
TYPES = ("integer", "number", "boolean", "string", "null", "array", "object")
LEAVES: st.SearchStrategy[Any] = st.one_of(
    st.sampled_from([{"type": name} for name in TYPES]),
    st.lists(st.sampled_from(TYPES), min_size=1, max_size=3, unique=True).map(
        lambda t: {"type": t}
    ),
    st.lists(st.sampled_from(["a", "A", "x", 2, "2", None, True]), min_size=1, max_size=3).map(
        lambda values: {"enum": [v for n, v in enumerate(values) if v not in values[:n]]}
    ),
    st.sampled_from(
        [
            True,
            False,
            {},
            {"const": "a"},
            {"const": 2},
            {"type": "integer", "minimum": 2},
            {"type": "string", "minLength": 1},
            {"type": "string", "pattern": "^[a-z]+$"},
            {"not": {"type": "string"}},
            {"$ref": "#/$defs/d0"},
            {"$ref": "#/$defs/d1"},
            {"$ref": "#d1"},
        ]
    ),
)


def objects(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.fixed_dictionaries(
        {"type": st.just("object"), "properties": st.dictionaries(NAMES, inner, max_size=3)},
        optional={
            "required": st.lists(NAMES, max_size=2, unique=True),
            "additionalProperties": inner,
            "unevaluatedProperties": inner,
            "patternProperties": st.dictionaries(st.just("^[ab]"), inner, max_size=1),
            "minProperties": st.integers(0, 2),
            "if": inner,
            "then": inner,
            "else": inner,
            "dependentSchemas": st.dictionaries(NAMES, inner, max_size=1),
        },
    )


def arrays(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.fixed_dictionaries(
        {"type": st.just("array")},
        optional={
            "items": inner,
            "prefixItems": st.lists(inner, min_size=1, max_size=2),
            "minItems": st.integers(0, 2),
            "uniqueItems": st.booleans(),
            "contains": inner,
        },
    )


SCHEMAS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        objects(inner),
        arrays(inner),
        st.dictionaries(
            st.sampled_from(["anyOf", "oneOf", "allOf"]),
            st.lists(inner, min_size=1, max_size=3),
            min_size=1,
            max_size=1,
        ),
        st.tuples(objects(inner), st.lists(inner, min_size=1, max_size=2)).map(
            lambda pair: {**pair[0], "anyOf": pair[1]}
        ),
    ),
    max_leaves=8,
)


@st.composite
def tools(draw: st.DrawFn) -> dict[str, Any]:
    schema = draw(objects(SCHEMAS))
    first, second = draw(SCHEMAS), draw(SCHEMAS)
    anchored = {"$anchor": "d1", "allOf": [second]}
    return {**schema, "$defs": {"d0": first, "d1": anchored}}


ARGUMENTS = st.dictionaries(NAMES, VALUES, max_size=3)
THOROUGH = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))


def without_whole_floats(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_whole_floats(item) for key, item in value.items()}
    if isinstance(value, list):
        return [without_whole_floats(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


@THOROUGH
@given(tools(), ARGUMENTS)
def test_valid_arguments_stay_apart_from_whole_floats(schema: Any, value: dict[str, Any]) -> None:
    check = validator(schema)
    mended, notes = Careful(schema, check.is_valid).mend(value)

    if check.is_valid(value):
        assert same(without_whole_floats(mended), without_whole_floats(value))
        assert check.is_valid(mended)
        assert bool(notes) is not same(mended, value)


@THOROUGH
@given(tools(), ARGUMENTS)
def test_the_arguments_given_are_never_changed(schema: Any, value: dict[str, Any]) -> None:
    before, schema_before = copy.deepcopy(value), copy.deepcopy(schema)

    mended, notes = careful_of(schema).mend(value)

    assert same(value, before)
    assert schema == schema_before
    assert out_of_bounds(mended) is None
    assert same(mended, value) is not bool(notes)


@THOROUGH
@given(tools(), ARGUMENTS)
def test_mending_what_was_mended_changes_nothing(schema: Any, value: dict[str, Any]) -> None:
    careful = careful_of(schema)
    mended, _ = careful.mend(value)

    if validator(schema).is_valid(mended):
        assert careful.mend(mended) == (mended, ())


@THOROUGH
@given(SCHEMAS, VALUES)
def test_a_field_that_is_valid_stays_whatever_is_wrong_beside_it(schema: Any, value: Any) -> None:
    whole = {
        "type": "object",
        "properties": {"v": schema, "n": INTEGER},
        "$defs": {"d0": INTEGER, "d1": {"$anchor": "d1", "type": "string"}},
    }
    alone = {**whole, "properties": {"v": schema}}

    if validator(alone).is_valid({"v": value}):
        mended, _ = careful_of(whole).mend({"v": value, "n": "1"})
        assert same(without_whole_floats(mended["v"]), without_whole_floats(value))
        assert mended["n"] == 1


@THOROUGH
@given(tools(), ARGUMENTS)
def test_the_json_text_of_an_object_is_mended_like_the_object(
    schema: Any, value: dict[str, Any]
) -> None:
    defs = {"$defs": schema.pop("$defs")}
    whole = {"type": "object", "properties": {"v": schema}, "required": ["v"], **defs}
    careful, check = careful_of(whole), validator(whole)

    as_object, _ = careful.mend({"v": value})
    as_text, _ = careful.mend({"v": json.dumps(value)})

    if check.is_valid(as_object):
        assert same(as_object, as_text)
