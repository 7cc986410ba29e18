"""Compiling schemas: drafts, dialects of old generators, faults, bounds, closedness."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seawall.contract.errors import ConfigurationError
from seawall.contract.failure import REASONS, FailureCode, Issue
from seawall.pipeline.arguments.compiled import CompiledSchema, compile_schema
from seawall.pipeline.arguments.faults.explain import explain
from seawall.pipeline.arguments.reading.bounds import out_of_bounds
from seawall.pipeline.arguments.schema.dialects import ANNOTATIONS, DIALECTS, ENFORCED

if TYPE_CHECKING:
    from collections.abc import Iterator

TESTS = Path(__file__).parents[2]
CASES = json.loads((TESTS / "cases" / "schema.json").read_text("utf-8"))
VECTORS = {
    case["id"]: case
    for group in json.loads((TESTS / "vectors" / "schema.json").read_text("utf-8"))["groups"]
    for case in group["cases"]
}
DRAFT_4 = "http://json-schema.org/draft-04/schema#"
DRAFT_7 = "http://json-schema.org/draft-07/schema#"


def members(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def at(compiled: CompiledSchema, value: Any) -> list[str]:
    return [issue.path for issue in compiled.faults(value)]


def refused(schema: Any, **options: Any) -> dict[str, str]:
    """Compile what must be refused; gives messages by key."""
    with pytest.raises(ConfigurationError) as caught:
        compile_schema(schema, **options)
    return {fault.key: fault.message for fault in caught.value.faults}


# --- the cases and vectors


def tools_of(case: dict[str, Any]) -> dict[str, Any]:
    given = case["given"]
    return {tool["name"]: tool["schema"] for tool in given.get("tools", [given.get("tool")])}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_the_cases_about_schemas_hold(case: dict[str, Any]) -> None:
    quarantined, compiled = [], {}
    for name, schema in tools_of(case).items():
        try:
            compiled[name] = compile_schema(schema)
        except ConfigurationError:
            quarantined.append(name)
    expect, call = case["expect"], case["call"]
    assert quarantined == expect.get("quarantined", [])
    outcomes = {wish.get("outcome"): wish for wish in expect.get("any_of", [expect])}
    # Arguments as they are after coercion, which is tested elsewhere.
    mended = outcomes.get("ok", {}).get("args")
    issues = compiled[call["name"]].faults(call["arguments"])
    if issues and mended is not None:
        issues = compiled[call["name"]].faults(mended)
    if "no_exception" in expect:
        return
    assert ("invalid_arguments" if issues else "ok") in outcomes
    if issues:
        assert [issue.path for issue in issues] == [outcomes["invalid_arguments"]["at"]]


WORDS = {
    "string, required": {"type": "string"},
    "integer 1..100": {"type": "integer", "minimum": 1, "maximum": 100},
    "string, one of fast|deep": {"type": "string", "enum": ["fast", "deep"]},
}


def vector_schema(words: dict[str, str]) -> dict[str, Any]:
    return {
        **members(**{name: WORDS.get(said, {"type": said}) for name, said in words.items()}),
        "required": [name for name, said in words.items() if said.endswith("required")],
    }


def violated(compiled: CompiledSchema, value: dict[str, Any]) -> list[str]:
    """Give the fields at fault; an optional null is left out, as coercion does before."""
    required = compiled.schema["required"]
    left = {name: item for name, item in value.items() if item is not None or name in required}
    return [path[1:] for path in at(compiled, left)]


@pytest.mark.parametrize("name", ["sc-02", "sc-03", "sc-04", "sc-07", "sc-09"])
def test_the_vectors_about_schemas_hold(name: str) -> None:
    vector = VECTORS[name]
    compiled = compile_schema(vector_schema(vector["given"]["schema"]))
    found = [violated(compiled, step["validate"]) for step in vector["steps"]]
    expect = vector["expect"]
    if "valid" in expect:
        assert [not fields for fields in found] == expect["valid"]
    else:
        wanted = expect.get("violated_fields", [expect.get("violated_field")])
        assert found == [wanted]


def test_what_cannot_be_understood_is_refused_and_not_left_unchecked() -> None:
    """Vector sc-06 switches validation off; the design refuses instead."""
    steps = [step["import"] for step in VECTORS["sc-06"]["steps"]]
    assert refused(steps[0])
    assert compile_schema(steps[1]).is_valid({})
    assert refused(steps[2]) == {
        "input_schema/properties": "must be an object of names and schemas, not []"
    }
    assert at(compile_schema(steps[3]), {"a": 5}) == ["/a"]


def test_a_missing_and_a_wrong_argument_have_reasons_and_fields_of_their_own() -> None:
    """Vector er-03."""
    steps, expect = VECTORS["er-03"]["steps"], VECTORS["er-03"]["expect"]
    compiled = compile_schema(
        {**members(text={"type": "string"}, n={"type": "integer"}), "required": ["text"]}
    )
    missing = compiled.faults(json.loads(steps[1]["args_text"]))
    assert (compiled.reason(missing), [i.path for i in missing]) == ("argument_missing", ["/text"])
    wrong = compiled.faults({"text": "", **json.loads(steps[2]["args_text"])})
    assert compiled.reason(wrong) == "argument_type"
    assert [issue.path[1:] for issue in wrong] == [expect["field"][2]]


# --- drafts


def test_without_schema_keyword_a_schema_is_2020_12() -> None:
    compiled = compile_schema(members(a={"prefixItems": [{"type": "string"}]}))
    assert compiled.draft == "2020-12"
    assert at(compiled, {"a": [1]}) == ["/a/0"]


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("end", ["", "#"])
@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=DIALECTS)
def test_the_declared_draft_is_honoured_however_it_is_spelt(
    dialect: Any, scheme: str, end: str
) -> None:
    address = dialect.uri.removesuffix("#").partition("://")[2]
    schema = {"$schema": f"{scheme}://{address}{end}", **members(a={"type": "string"})}
    compiled = compile_schema(schema)
    assert compiled.draft == dialect.name
    assert compiled.schema["$schema"] == dialect.uri


def test_beside_a_reference_nothing_counts_in_draft_7_and_everything_in_2020_12() -> None:
    schema = {
        **members(a={"$ref": "#/definitions/n", "minimum": 100}),
        "definitions": {"n": {"type": "integer"}},
    }
    assert compile_schema({"$schema": DRAFT_7, **schema}).is_valid({"a": 1})
    assert at(compile_schema(schema), {"a": 1}) == ["/a"]


def test_the_draft_can_be_chosen_over_the_declared_one() -> None:
    schema = {"$schema": DRAFT_7, **members(a={"$ref": "#/$defs/n", "minimum": 9})}
    schema["$defs"] = {"n": {}}
    compiled = compile_schema(schema, draft="2020-12")
    assert compiled.draft == "2020-12"
    assert at(compiled, {"a": 1}) == ["/a"]


def test_a_draft_that_does_not_exist_cannot_be_chosen() -> None:
    assert "2020-12" in refused({}, draft="draft-99")["input_schema"]


@pytest.mark.parametrize(
    ("schema", "draft", "bad"),
    [
        ({"$schema": DRAFT_4, **members(a={"const": 1})}, "2020-12", {"a": 2}),
        ({"$schema": DRAFT_4, **members(a={"exclusiveMinimum": 5})}, "2020-12", {"a": 5}),
        ({"$schema": DRAFT_7, **members(a={"prefixItems": [False]})}, "2020-12", {"a": [1]}),
        ({"$schema": DRAFT_7, **members(), "unevaluatedProperties": False}, "2020-12", {"a": 1}),
        ({"$recursiveAnchor": True, **members(a={"$recursiveRef": "#"})}, "2019-09", {"a": 1}),
    ],
)
def test_keywords_of_another_draft_are_enforced_by_a_draft_that_has_them(
    schema: dict[str, Any], draft: str, bad: Any
) -> None:
    compiled = compile_schema(schema)
    assert compiled.draft == draft
    assert compiled.faults(bad)


def test_what_only_its_own_draft_refuses_is_read_by_a_later_one() -> None:
    compiled = compile_schema({"$schema": DRAFT_4, **members(a={}), "required": []})
    assert compiled.draft == "2020-12"


@pytest.mark.parametrize(
    "uri", ["http://json-schema.org/draft-03/schema#", "https://example.org/mine", 5, None, []]
)
def test_a_draft_that_nobody_knows_is_refused(uri: Any) -> None:
    (message,) = refused({"$schema": uri, "type": "object"}).values()
    assert "draft" in message or "text" in message


def test_mixed_keywords_that_no_single_draft_enforces_are_refused() -> None:
    faults = refused({"$recursiveRef": "#", "prefixItems": [True]})
    assert list(faults) == ["input_schema/$recursiveRef"]


def test_a_metaschema_of_ones_own_may_be_among_the_resources() -> None:
    address = "http://localhost/metaschema"
    metaschema = {
        "$id": address,
        "$vocabulary": {"https://json-schema.org/draft/2020-12/vocab/core": True},
    }
    schema = {"$schema": address, "properties": {"a": {"minimum": 5}}}
    compiled = compile_schema(schema, resources={address: metaschema})
    assert compiled.is_valid({"a": 1})  # the vocabulary of validation is not in use


# --- what other drafts and generators write


@pytest.mark.parametrize(
    ("property_schema", "good", "bad"),
    [
        ({"type": "integer", "minimum": 0, "exclusiveMinimum": True}, [1], [0, -1]),
        ({"type": "integer", "minimum": 0, "exclusiveMinimum": False}, [0], [-1]),
        ({"type": "integer", "maximum": 9, "exclusiveMaximum": True}, [8], [9, 10]),
        ({"items": [{"type": "string"}, {"type": "integer"}]}, [["a", 1, None]], [["a", "b"]]),
        ({"items": [{"type": "string"}], "additionalItems": False}, [["a"]], [["a", 1]]),
        ({"items": [{}], "additionalItems": {"type": "null"}}, [[1, None]], [[1, 2]]),
        ({"items": [], "additionalItems": False}, [[]], [[1]]),
        ({"items": {"type": "string"}, "additionalItems": False}, [["a", "b"]], [[1]]),
        ({"type": "string", "nullable": True}, ["a", None], [1]),
        ({"type": ["string", "integer"], "nullable": True}, ["a", None], [[]]),
        ({"type": "string", "nullable": False}, ["a"], [None]),
        ({"type": "string", "nullable": None}, ["a"], [None]),
        ({"enum": ["a"], "type": "string", "nullable": True}, ["a", None], ["b"]),
        ({"const": "a", "nullable": True}, ["a", None], ["b"]),
        ({"$ref": "#/$defs/n", "nullable": True}, [1, None], ["b"]),
        ({"allOf": [{"type": "integer"}], "nullable": True}, [1, None], ["b"]),
        ({"anyOf": [{"type": "integer"}], "nullable": True}, [1, None], ["b"]),
        ({"type": "null", "nullable": True}, [None], [1]),
        ({"dependencies": {"a": ["b"]}}, [{"a": 1, "b": 1}, {}], [{"a": 1}]),
        ({"dependencies": {"a": {"required": ["b"]}}}, [{"a": 1, "b": 1}], [{"a": 1}]),
    ],
)
def test_what_other_drafts_write_means_what_they_mean(
    property_schema: dict[str, Any], good: list[Any], bad: list[Any]
) -> None:
    compiled = compile_schema({**members(v=property_schema), "$defs": {"n": {"type": "integer"}}})
    assert [compiled.is_valid({"v": value}) for value in good] == [True] * len(good)
    assert [compiled.is_valid({"v": value}) for value in bad] == [False] * len(bad)


def test_a_property_may_say_itself_that_it_is_required() -> None:
    schema = members(
        a={"type": "string", "required": True},
        b={"type": "string", "required": False},
        c=members(d={"required": True}),
    )
    compiled = compile_schema({**schema, "required": ["c"]})
    assert compiled.schema["required"] == ["c", "a"]
    assert at(compiled, {"c": {}}) == ["/a", "/c/d"]
    assert compiled.is_valid({"a": "x", "c": {"d": 1}})


def test_a_property_may_be_called_like_a_keyword() -> None:
    compiled = compile_schema(
        members(required={"type": "boolean"}, nullable={"type": "string"}, **{"$ref": True})
    )
    assert compiled.is_valid({"required": True, "$ref": 1})
    assert at(compiled, {"nullable": None}) == ["/nullable"]


def test_the_schema_given_is_never_changed_and_changing_it_later_changes_nothing() -> None:
    schema = members(a={"type": "string", "nullable": True, "required": True})
    before = json.dumps(schema)
    compiled = compile_schema(schema)
    assert json.dumps(schema) == before
    schema["properties"]["a"]["type"] = "integer"
    assert compiled.is_valid({"a": "text"})


def test_any_mapping_and_sequence_is_read() -> None:
    schema = MappingProxyType({"properties": MappingProxyType({"a": {"enum": ("x", "y")}})})
    assert at(compile_schema(schema), {"a": "z"}) == ["/a"]


@pytest.mark.parametrize(
    "remark",
    [
        {"example": 1},
        {"examples": [1]},
        {"discriminator": {"propertyName": "a"}},
        {"xml": {}},
        {"externalDocs": {"url": ""}},
        {"deprecated": True},
        {"$comment": "c"},
        {"markdownDescription": "d"},
        {"enumDescriptions": []},
        {"x-mine": {"type": "wrong"}},
        {"ui:widget": "text"},
        {"_meta": {}},
        {"format": "int32"},
        {"default": {"$ref": "#/nowhere"}},
        {"contentEncoding": "base64"},
    ],
)
def test_annotations_are_tolerated_and_kept(remark: dict[str, Any]) -> None:
    compiled = compile_schema(members(a={"type": "string", **remark}))
    assert compiled.schema["properties"]["a"] == {"type": "string", **remark}


@pytest.mark.parametrize(
    "remark",
    [{"examples": "x"}, {"readOnly": "no"}, {"deprecated": "use b"}, {"description": None}],
)
def test_annotations_in_another_form_are_dropped_and_refuse_no_tool(remark: Any) -> None:
    compiled = compile_schema(members(a={"type": "string", **remark}))
    assert compiled.schema["properties"]["a"] == {"type": "string"}


# --- faults


def test_all_faults_are_told_at_once_each_with_its_place() -> None:
    schema = {
        "type": "strin",
        "properties": {
            "a": {"minLength": -1, "pattern": "(("},
            "b": 5,
            "c~/d": {"type": "int"},
            "e": {"minLenght": 4},
            "f": {"allOf": []},
            "g": {"enum": "a", "multipleOf": 0},
            "h": {"exclusiveMinimum": True},
            "i": {"items": [True], "prefixItems": [True]},
        },
        "required": "a",
    }
    faults = refused(schema, where="t")
    assert list(faults) == [
        "t/type",
        "t/required",
        "t/properties/a/minLength",
        "t/properties/a/pattern",
        "t/properties/b",
        "t/properties/c~0~1d/type",
        "t/properties/e/minLenght",
        "t/properties/f/allOf",
        "t/properties/g/enum",
        "t/properties/g/multipleOf",
        "t/properties/h/exclusiveMinimum",
        "t/properties/i/items",
    ]
    assert "did you mean 'minLength'" in faults["t/properties/e/minLenght"]
    assert "did you mean 'string'" in faults["t/type"]


@pytest.mark.parametrize(
    ("keyword", "value"),
    [
        ("required", ["a", "a"]),
        ("required", None),
        ("type", []),
        ("type", ["string", "any"]),
        ("anyOf", {}),
        ("dependentRequired", {"a": "b"}),
        ("dependencies", {"a": "b"}),
        ("uniqueItems", "yes"),
        ("minimum", "1"),
        ("$id", "::::"),
        ("$ref", 5),
        ("nullable", "yes"),
        ("patternProperties", {"((": True}),
        ("pattern", 5),
    ],
)
def test_values_that_no_draft_accepts_are_refused(keyword: str, value: Any) -> None:
    (key,) = refused(members(a={keyword: value}))
    assert key.startswith(f"input_schema/properties/a/{keyword}")


def test_an_unknown_keyword_is_refused_or_by_wish_ignored() -> None:
    schema = members(a={"minimumLength": 3})
    assert list(refused(schema)) == ["input_schema/properties/a/minimumLength"]
    assert compile_schema(schema, unknown_keywords="ignore").is_valid({"a": ""})


def test_unknown_keywords_are_ignored_but_known_ones_must_be_right() -> None:
    assert list(refused({"mistake": 1, "type": "text"}, unknown_keywords="ignore")) == [
        "input_schema/type"
    ]


def test_keywords_are_also_looked_at_where_only_a_reference_leads() -> None:
    schema = {
        **members(a={"$ref": "#/components/schemas/N"}),
        "components": {"schemas": {"N": {"type": "integer", "nullable": True}}},
    }
    compiled = compile_schema(schema)
    assert compiled.is_valid({"a": None})
    schema["components"]["schemas"]["N"]["mistake"] = 1
    assert list(refused(schema)) == ["input_schema/components/schemas/N/mistake"]


def test_a_hundred_faults_are_enough() -> None:
    schema = members(**{f"p{number}": {"type": "wrong"} for number in range(300)})
    assert len(refused(schema)) == 100


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string"},
        {"type": ["string", "null"]},
        {"enum": ["a"]},
        {"const": 1},
        {"not": {}},
        {"anyOf": [{"type": "string"}, {"$ref": "#/$defs/n"}], "$defs": {"n": {"type": "null"}}},
        {"allOf": [{}, {"type": "array"}]},
        {"$ref": "#/$defs/n", "$defs": {"n": False}},
        {"$ref": "#/nowhere"},
        True,
        [],
        "text",
    ],
)
def test_a_root_that_no_object_can_meet_is_refused(schema: Any) -> None:
    assert list(refused(schema)) == ["input_schema"]


def test_by_wish_the_root_may_be_anything() -> None:
    assert compile_schema({"type": "string"}, root_object=False).is_valid("a")
    booleans: list[Any] = [True, False]
    assert [compile_schema(b, root_object=False).is_valid(1) for b in booleans] == booleans


# --- references


def test_a_dangling_reference_fails_only_values_at_its_place() -> None:
    schema = {**members(a={"$ref": "#/$defs/Gone"}, b={"type": "integer"}), "required": ["b"]}
    compiled = compile_schema(schema)
    assert compiled.is_valid({"b": 1})
    (issue,) = compiled.faults({"a": 1, "b": 1})
    assert (issue.path, issue.keyword) == ("/a", "$ref")
    assert "#/$defs/Gone" in issue.message


@pytest.mark.parametrize(
    "reference", ["#gone", "#/required", "other.json", "urn:x", "http://[::", "%", "#/properties/z"]
)
def test_references_that_lead_to_no_schema_are_dangling(reference: str) -> None:
    compiled = compile_schema({**members(a={"$ref": reference}), "required": []})
    assert compiled.is_valid({})
    assert at(compiled, {"a": 1}) == ["/a"]


@pytest.mark.parametrize(
    "reference", ["#", "#/$defs/a%25b", "#/$defs/c~1d", "#anchor", "https://x.org/s#/$defs/c~1d"]
)
def test_references_inside_of_the_schema_are_followed(reference: str) -> None:
    target = {"type": "object"}
    schema = {
        "$id": "https://x.org/s",
        **members(v={"$ref": reference}),
        "$defs": {"a%b": target, "c/d": target, "e": {"$anchor": "anchor", **target}},
    }
    compiled = compile_schema(schema)
    assert compiled.is_valid({"v": {}})
    assert at(compiled, {"v": 1}) == ["/v"]


def test_references_to_known_documents_are_followed() -> None:
    known = {
        "https://x.org/a": {"$defs": {"n": {"$ref": "b#here"}}},
        "https://x.org/b#": {"$defs": {"m": {"$anchor": "here", "type": "integer"}}},
    }
    compiled = compile_schema(members(v={"$ref": "https://x.org/a#/$defs/n"}), resources=known)
    assert compiled.is_valid({"v": 1})
    assert at(compiled, {"v": "x"}) == ["/v"]


@pytest.fixture
def server() -> Iterator[tuple[str, list[str]]]:
    asked: list[str] = []

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *_: Any) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Answers) as serving:
        threading.Thread(target=serving.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{serving.server_port}/s.json", asked
        serving.shutdown()


def test_nothing_is_fetched_from_the_network(server: tuple[str, list[str]]) -> None:
    address, asked = server
    compiled = compile_schema(members(a={"$ref": address}, b={"type": "integer"}))
    assert at(compiled, {"a": 1, "b": 1}) == ["/a"]
    assert asked == []


def test_nothing_is_read_from_the_file_system(tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text("{}", "utf-8")
    compiled = compile_schema(members(a={"$ref": (tmp_path / "s.json").as_uri()}))
    assert at(compiled, {"a": 1}) == ["/a"]


@pytest.mark.parametrize(
    "definition",
    [
        {"allOf": [{"$ref": "#/$defs/A"}]},
        {"allOf": [{"$ref": "#/$defs/A"}, {"$ref": "#/$defs/A"}]},
        {"anyOf": [{"$ref": "#/$defs/A"}, {"type": "string"}]},
        {"$ref": "#/$defs/A"},
        {"not": {"not": {"$ref": "#/$defs/A"}}},
    ],
)
def test_a_loop_of_references_ends(definition: Any) -> None:
    compiled = compile_schema({**members(a={"$ref": "#/$defs/A"}), "$defs": {"A": definition}})
    compiled.faults({"a": 1})


# --- patterns and bounds


@pytest.mark.parametrize(
    ("pattern", "good", "bad"),
    [
        (r"^\p{Lu}", "Abc", "abc"),
        (r"^[\w-.]+$", "a.b-c", "a b"),
        (r"^\d{3}$", "123", "12"),
        (r"^(?=.*\d).{4,}$", "abc1", "abcd"),
        (r"^(a)\1$", "aa", "ab"),
    ],
)
def test_patterns_of_javascript_are_read(pattern: str, good: str, bad: str) -> None:
    compiled = compile_schema(members(a={"pattern": pattern}))
    assert compiled.is_valid({"a": good})
    assert at(compiled, {"a": bad}) == ["/a"]
    named = compile_schema({"patternProperties": {pattern: False}})
    assert named.is_valid({bad: 1})
    assert not named.is_valid({good: 1})


@pytest.mark.parametrize("pattern", [r"^(a+)+$", r"^(?:(?=a)a|a)+$", r"^(a|aa)*(?<!x)b\1$"])
def test_a_pattern_that_takes_exponential_time_ends_as_no_match(pattern: str) -> None:
    compiled = compile_schema(members(a={"pattern": pattern}))
    (issue,) = compiled.faults({"a": "a" * 3000 + "!"})
    assert (issue.path, issue.keyword) == ("/a", "pattern")


@pytest.mark.parametrize("pattern", ["((", "(a{1000}){1000}", "[z-a]"])
def test_a_pattern_that_cannot_be_used_is_a_fault(pattern: str) -> None:
    assert list(refused(members(a={"pattern": pattern}))) == ["input_schema/properties/a/pattern"]


def test_the_patterns_of_one_schema_may_be_few_and_large_or_many_and_small() -> None:
    def some(count: int, pattern: str) -> dict[str, Any]:
        return members(**{f"p{n}": {"pattern": pattern} for n in range(count)})

    large = r"^\p{L}[\p{L}\p{M}' -]{0,99}$"
    assert compile_schema(some(3, large)).is_valid({"p1": "Zoë"})
    assert compile_schema(some(300, "^[a-z]{1,64}$")).is_valid({"p1": "a"})
    assert len(refused(some(50, large))) == 10


def test_many_unusable_patterns_do_not_take_long() -> None:
    schema = members(**{f"p{n}": {"pattern": f"(a{{999}}){{999}}{n}"} for n in range(400)})
    assert 10 <= len(refused(schema)) < 20


def doubling(count: int) -> dict[str, Any]:
    """Give a schema in which each definition refers to the next one twice."""
    chain = {
        f"D{n}": {"allOf": [{"$ref": f"#/$defs/D{n + 1}"}] * 2 + [{"type": "integer"}]}
        for n in range(count)
    }
    return {**members(a={"$ref": "#/$defs/D0"}), "$defs": {**chain, f"D{count}": {}}}


def nested(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "integer"}
    for _ in range(levels):
        schema = members(a=schema)
    return schema


def circular() -> dict[str, Any]:
    schema: dict[str, Any] = members()
    schema["properties"]["a"] = schema
    return schema


@pytest.mark.parametrize(
    ("schema", "word"),
    [
        (nested(300), "deeper"),
        (circular(), "deeper"),
        (members(a={"enum": list(range(60_000))}), "values"),
        (members(a={"description": "x" * 1_100_000}), "characters"),
        (members(**{f"p{n}": {"pattern": f"^{n}"} for n in range(600)}), "patterns"),
        ({"patternProperties": {f"^{n}": {} for n in range(600)}}, "patterns"),
        (doubling(40), "ways"),
        (members(a={"const": {1, 2}}), "set"),
        (members(a={"const": {1: 2}}), "key"),
        ({"type": "object", 5: {}}, "key"),
        (members(a={"const": float("nan")}), "number"),
        (members(a={"const": 10**5000}), "number"),
        (members(a={"const": "\ud800"}), "surrogate"),
        (members(**{"\ud800": {}}), "surrogate"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_schema_that_is_too_much_or_no_json_is_refused(schema: Any, word: str) -> None:
    ((key, message),) = refused(schema).items()
    assert word in message
    assert len(key) < 500


def test_a_chain_of_references_may_not_lead_on_without_end() -> None:
    chain = {f"D{n}": {"$ref": f"#/$defs/D{n + 1}"} for n in range(3000)}
    schema = {**members(a={"$ref": "#/$defs/D0"}), "$defs": {**chain, "D3000": {}}}
    assert "steps" in refused(schema)["input_schema"]


def test_a_large_and_a_deep_schema_are_fine() -> None:
    assert compile_schema(nested(60)).is_valid({})
    assert compile_schema(doubling(10)).is_valid({"a": 1})
    wide = members(**{f"p{n}": {"type": "string", "description": "d"} for n in range(2000)})
    assert at(compile_schema(wide), {"p7": 1}) == ["/p7"]


# --- checking values


def test_formats_are_asserted_unless_one_wishes_otherwise() -> None:
    schema = members(a={"type": "string", "format": "date"})
    assert at(compile_schema(schema), {"a": "yesterday"}) == ["/a"]
    assert compile_schema(schema, assert_formats=False).is_valid({"a": "yesterday"})


def test_the_check_is_the_validators_own_method() -> None:
    is_valid = compile_schema({}).is_valid
    assert type(is_valid).__name__ == "builtin_function_or_method"


def test_a_valid_value_has_no_faults() -> None:
    assert compile_schema(members(a={"type": "integer"})).faults({"a": 1.0}) == ()


def deep(levels: int) -> Any:
    value: Any = []
    for _ in range(levels):
        value = [value]
    return {"a": value}


@pytest.mark.parametrize(
    "value",
    [{"a": "\ud800"}, {1: 2}, {"a": {1}}, deep(100_000), {"a": float("nan")}, {"a": 10**5000}],
    ids=["surrogate", "key", "type", "depth", "nan", "digits"],
)
def test_what_is_no_json_or_too_deep_is_a_fault_and_no_crash(value: Any) -> None:
    (issue,) = compile_schema(members(a={"type": "string"})).faults(value)
    assert issue.keyword == "parse"


@pytest.mark.parametrize(
    ("keywords", "slug"),
    [
        (["required"], "argument_missing"),
        (["required", "dependentRequired"], "argument_missing"),
        (["type", "type"], "argument_type"),
        (["additionalProperties", "unevaluatedProperties"], "argument_unknown"),
        (["minimum"], "argument_invalid"),
        (["required", "type"], "argument_invalid"),
        ([], "argument_invalid"),
    ],
)
def test_the_reason_is_the_kind_that_all_faults_share(keywords: list[str], slug: str) -> None:
    issues = [Issue("/a", "", keyword) for keyword in keywords]
    assert CompiledSchema.reason(issues) == slug
    assert REASONS[slug] is FailureCode.INVALID_ARGUMENT


def test_ten_thousand_small_schemas_share_nothing_that_grows() -> None:
    compiled = [compile_schema(members(a={"type": "string"})) for _ in range(100)]
    assert len({id(one.schema) for one in compiled}) == 100


# --- anything at all

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from(["", "a", "b", "#", "#/$defs/a", "((", "http://x.org/", "date", "~0"])
    | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from("abc") | st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)
KEYWORDS = st.sampled_from(sorted(ENFORCED | ANNOTATIONS | {"mistake", "x-mine"}))
ANYTHING = st.recursive(
    JSON,
    lambda inner: st.dictionaries(KEYWORDS, inner | st.lists(inner, max_size=2), max_size=4),
    max_leaves=12,
)


def plausible(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Give schemas of which most are right."""
    part = inner | st.booleans()
    named = st.dictionaries(st.sampled_from("abc"), part, max_size=3)
    some = st.lists(part, min_size=1, max_size=3)
    kinds = st.sampled_from(["string", "integer", "object", "array", "null", "boolean"])
    count = st.integers(0, 3)
    values = {
        **dict.fromkeys(("properties", "$defs", "dependentSchemas", "dependencies"), named),
        **dict.fromkeys(("allOf", "anyOf", "oneOf", "prefixItems"), some),
        **dict.fromkeys(("additionalProperties", "not", "if", "then", "else"), part),
        **dict.fromkeys(("contains", "propertyNames", "unevaluatedProperties"), part),
        **dict.fromkeys(("minLength", "maxItems", "minContains", "maxProperties"), count),
        "items": part | some,
        "unevaluatedItems": part,
        "type": kinds | st.lists(kinds, min_size=1, max_size=2, unique=True),
        "required": st.lists(st.sampled_from("abc"), max_size=2, unique=True) | st.booleans(),
        "$ref": st.sampled_from(["#", "#/$defs/a", "#/properties/b", "#gone", "http://x.org/"]),
        "$dynamicRef": st.sampled_from(["#here", "#/$defs/a"]),
        "$dynamicAnchor": st.just("here"),
        "$id": st.sampled_from(["http://x.org/", "y"]),
        "patternProperties": st.dictionaries(st.sampled_from(["^a", "b$"]), part, max_size=2),
        "enum": st.lists(JSON, max_size=2),
        "const": JSON,
        "exclusiveMinimum": st.booleans() | count,
        "minimum": count,
        "pattern": st.sampled_from(["^a", "(?=a)b*", "[\\w-.]"]),
        "format": st.sampled_from(["date", "password", "other"]),
        "nullable": st.booleans(),
        "writeOnly": st.booleans(),
        "uniqueItems": st.booleans(),
    }
    chosen = st.lists(st.sampled_from(sorted(values)), max_size=4, unique=True)
    return chosen.flatmap(lambda keys: st.fixed_dictionaries({key: values[key] for key in keys}))


SCHEMAS: st.SearchStrategy[Any] = st.recursive(st.just({}), plausible, max_leaves=10)


@settings(deadline=None, max_examples=200)
@given(schema=SCHEMAS | ANYTHING, values=st.lists(JSON, max_size=3), root_object=st.booleans())
def test_nothing_raises_but_a_configuration_error(
    schema: Any, values: list[Any], root_object: bool
) -> None:
    try:
        compiled = compile_schema(schema, root_object=root_object)
    except ConfigurationError:
        return
    for value in values:
        issues = compiled.faults(value)
        if out_of_bounds(value) is None:
            assert bool(issues) is not compiled.is_valid(value)
        assert compiled.reason(issues) in REASONS
        assert explain("t", issues, value, compiled.redaction)


def test_what_stays_wrong_after_mending_is_told() -> None:
    schema = members(a={"$ref": "#/gone"}, b={"$ref": "#/$defs/b"})
    assert list(refused({**schema, "$defs": {"b": {"$id": "::::"}}})) == [
        "input_schema/$defs/b/$id"
    ]
