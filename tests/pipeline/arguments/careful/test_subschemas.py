from __future__ import annotations

from typing import Any

import jsonschema_rs
import pytest

from seawall.pipeline.arguments.careful.subschemas import Subschemas

DRAFT_7 = "http://json-schema.org/draft-07/schema#"


def subschemas_of(root: dict[str, Any], **options: bool) -> Subschemas:
    return Subschemas(root, lambda value: True, **options)


def accepts(root: dict[str, Any], node: Any, value: Any, **options: bool) -> bool:
    return subschemas_of(root, **options).accepts(node)(value)


def test_the_whole_is_checked_by_the_check_that_was_handed_in() -> None:
    root = {"type": "object"}
    check = {"a": 1}.__eq__

    assert Subschemas(root, check).accepts(root) is check


@pytest.mark.parametrize(
    ("node", "good", "bad"),
    [
        (True, 1, ...),
        (False, ..., 1),
        ({}, 1, ...),
        ({"type": "string", "description": "a text"}, "x", 1),
        ({"type": "integer"}, 3, True),
        ({"type": "integer"}, 3.0, 3.5),
        ({"type": "number"}, 3.5, False),
        ({"type": "boolean"}, False, 0),
        ({"type": "null"}, None, 0),
        ({"type": "array"}, [], {}),
        ({"type": "array"}, (), "x"),
        ({"type": "object"}, {}, []),
        ({"type": ["string", "null"]}, None, 1),
        ({"type": "string", "minLength": 2}, "xx", "x"),
        ({"type": "string", "format": "date"}, "2024-02-29", "2023-02-29"),
        ({"enum": [1, "a"]}, "a", "b"),
        ({"pattern": "^(a+)+$"}, "aaa", "a" * 60 + "!"),
    ],
)
def test_a_subschema_is_checked_by_itself(node: Any, good: Any, bad: Any) -> None:
    root = {"type": "object", "properties": {"v": node}}

    assert good is ... or accepts(root, node, good)
    assert bad is ... or not accepts(root, node, bad)


def test_formats_count_unless_they_are_switched_off() -> None:
    node = {"type": "string", "format": "date"}
    root = {"properties": {"v": node}}

    assert accepts(root, node, "x", validate_formats=False)


@pytest.mark.parametrize(
    ("reference", "more"),
    [
        ("#/$defs/P", {}),
        ("#/$defs/a~1b%20c", {}),
        ("#/definitions/P", {}),
        ("#named", {}),
        ("#/components/schemas/P", {}),
        ("#/allOf/0", {}),
        ("https://example.com/tool#/$defs/P", {"$id": "https://example.com/tool"}),
        ("tool#named", {"$id": "https://example.com/tool"}),
        ("part", {"$id": "https://example.com/tool"}),
        ("#old", {"$schema": DRAFT_7}),
    ],
)
def test_references_are_followed_inside_the_schema(reference: str, more: dict[str, Any]) -> None:
    target = {"type": "object", "properties": {"n": {"type": "integer"}}}
    node = {"$ref": reference}
    root = {
        **more,
        "properties": {"v": node},
        "allOf": [dict(target)],
        "$defs": {
            "P": dict(target),
            "a/b c": dict(target),
            "anchored": {"$anchor": "named", **target},
            "part": {"$id": "part", **target} if "$id" in more else {},
        },
        "definitions": {
            "P": dict(target),
            "old": {"$id": "#old", **target} if "$schema" in more else {},
        },
        "components": {"schemas": {"P": dict(target)}},
    }
    subschemas = subschemas_of(root)

    layers, known = subschemas.layers((node,))

    assert known
    assert layers[-1]["properties"] == target["properties"]
    assert subschemas.accepts(node)({"n": 1})
    assert not subschemas.accepts(node)({"n": "1"})


def test_a_reference_is_relative_to_the_part_it_stands_in() -> None:
    node = {"$ref": "#/$defs/Q"}
    part = {"$id": "part", "properties": {"v": node}, "$defs": {"Q": {"type": "boolean"}}}
    root = {"properties": {"p": part}, "$defs": {"Q": {"type": "integer"}}}
    subschemas = subschemas_of(root)

    assert subschemas.layers((node,))[0][-1] == {"type": "boolean"}
    assert subschemas.accepts(node)(True)
    assert not subschemas.accepts(node)(1)


@pytest.mark.parametrize(
    "reference",
    [
        "#/$defs/Gone",
        "#gone",
        "other.json",
        "https://example.com/x",
        "file:///etc/passwd",
        "#/properties/v/$ref/0",
        "#/allOf/7",
        5,
    ],
)
def test_a_reference_that_leads_nowhere_accepts_no_value_at_its_place_alone(reference: Any) -> None:
    node, other = {"$ref": reference}, {"allOf": [{"type": "integer"}, {"minimum": 1}]}
    root = {"properties": {"v": node, "w": other}, "allOf": [{}]}
    subschemas = subschemas_of(root)

    assert subschemas.layers((node,)) == ([node], False)
    assert not subschemas.accepts(node)(1)
    assert subschemas.accepts(other)(1)
    assert not subschemas.accepts(other)(0)
    assert node == {"$ref": reference}


def test_a_reference_to_a_published_dialect_is_not_dangling() -> None:
    node = {"$ref": "https://json-schema.org/draft/2020-12/schema"}
    subschemas = subschemas_of({"properties": {"v": node}})

    assert subschemas.accepts(node)({"type": "object"})
    assert not subschemas.accepts(node)({"type": "thing"})


def test_nothing_is_fetched() -> None:
    node = {"$ref": "https://json-schema.org/no/such/dialect"}

    assert accepts({"properties": {"v": node}}, node, object())


def test_references_in_a_circle_end() -> None:
    node = {"$ref": "#/$defs/A"}
    root = {
        "properties": {"v": node},
        "$defs": {"A": {"allOf": [{"$ref": "#/$defs/B"}]}, "B": {"$ref": "#/$defs/A"}},
    }
    subschemas = subschemas_of(root)

    assert len(subschemas.layers((node,))[0]) == 4
    assert subschemas.accepts(node)(1) in {True, False}


def test_what_stands_beside_a_reference_counts_except_in_old_drafts() -> None:
    node = {"$ref": "#/definitions/P", "minimum": 5}
    root = {"properties": {"v": node}, "definitions": {"P": {"type": "integer"}}}
    old = {**root, "$schema": DRAFT_7}

    assert subschemas_of(root).layers((node,))[0] == [node, {"type": "integer"}]
    assert subschemas_of(old).layers((node,))[0] == [{"type": "integer"}]
    assert accepts(old, node, 1)
    assert not accepts(root, node, 1)


@pytest.mark.parametrize("node", [{"type": "thing"}, {"pattern": "("}, {"type": ["string", "x"]}])
def test_what_cannot_be_compiled_accepts_everything(node: dict[str, Any]) -> None:
    assert accepts({"properties": {"v": node}}, node, object())


def test_a_subschema_from_elsewhere_accepts_everything() -> None:
    subschemas = subschemas_of({"type": "object"})
    foreign = {"$ref": "#", "minimum": 1}

    assert subschemas.accepts(foreign)(0)
    assert subschemas.layers((foreign,)) == ([foreign], False)


def test_a_subschema_is_compiled_once_and_not_before_it_is_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compiled = []
    original = jsonschema_rs.validator_for

    def counted(schema: Any, **options: Any) -> Any:
        compiled.append(schema)
        return original(schema, **options)

    monkeypatch.setattr(jsonschema_rs, "validator_for", counted)
    node = {"type": "integer", "minimum": 1}
    check = subschemas_of({"properties": {"v": node}}).accepts(node)

    assert compiled == []
    assert [check(1), check(0), check(2)] == [True, False, True]
    assert len(compiled) == 1


@pytest.mark.parametrize(
    ("pattern", "name", "matches"),
    [
        ("^n_", "n_1", True),
        ("^n_", "m_1", False),
        (r"^\p{Lu}", "Éa", True),
        ("(", "(", False),
        ("^(a+)+$", "a" * 60 + "!", False),
    ],
)
def test_names_match_as_in_the_check(pattern: str, name: str, matches: bool) -> None:
    subschemas = subschemas_of({})

    assert subschemas.matches(pattern, name) is matches
    assert subschemas.matches(pattern, name) is matches


def test_what_only_asserts_is_checked_without_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    node = {"type": "string", "maxLength": 2, "title": "Short"}
    root = {"properties": {"a": node, "b": {"$ref": "#/properties/a"}}}
    monkeypatch.setattr(jsonschema_rs, "Registry", None)  # nothing is put into one

    check = subschemas_of(root).accepts(node)

    assert check("ab")
    assert not check("abc")
    assert not check(1)


@pytest.mark.parametrize(("draft", "accepts_three"), [("draft-04", False), ("draft-07", True)])
def test_what_only_asserts_is_read_in_its_draft(draft: str, accepts_three: bool) -> None:
    node = {"type": "integer", "minimum": 1}
    root = {"$schema": f"http://json-schema.org/{draft}/schema#", "properties": {"a": node}}

    assert accepts(root, node, 3.0) is accepts_three
    assert accepts(root, node, 3)
    assert not accepts(root, node, 0)
