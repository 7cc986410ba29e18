from __future__ import annotations

from typing import Any

import pytest

from seawall.pipeline.arguments.lenient.lenient import Lenient
from seawall.pipeline.arguments.lenient.references import References, Unresolved

SCHEMA: dict[str, Any] = {
    "$id": "https://example.com/a/root.json",
    "properties": {"list": {"prefixItems": [True, {"type": "integer"}]}},
    "$defs": {
        "a/b%": {"const": 1},
        "sp ace": {"const": 2},
        "other": {
            "$id": "other.json",
            "$defs": {"n": {"$anchor": "n", "const": 3}, "d": {"$dynamicAnchor": "d"}},
        },
        "urn": {"$id": "urn:example:x", "$defs": {"k": {"const": 4}}},
        "weird": {"$id": "http://[", "$anchor": "w"},
    },
    "x-extra": {"const": 5},
}


def found(reference: str, base: str = "https://example.com/a/root.json") -> Any:
    return References(SCHEMA).resolve(reference, base)[0]


@pytest.mark.parametrize(
    ("reference", "constant"),
    [
        ("#/$defs/a~1b%25", 1),
        ("#/$defs/sp%20ace", 2),
        ("other.json#n", 3),
        ("https://example.com/a/other.json#/$defs/n", 3),
        ("urn:example:x#/$defs/k", 4),
        ("#/x-extra", 5),
    ],
)
def test_a_reference_finds_its_target(reference: str, constant: int) -> None:
    assert found(reference)["const"] == constant


def test_a_reference_may_lead_into_a_list_and_to_the_whole() -> None:
    assert found("#/properties/list/prefixItems/1") == {"type": "integer"}
    assert found("#/properties/list/prefixItems/0") is True
    assert found("#") is SCHEMA
    assert found("root.json") is SCHEMA


def test_an_identifier_that_is_no_address_is_taken_as_it_is() -> None:
    assert found("http://[")["$anchor"] == "w"
    assert found("#w", "http://[")["$anchor"] == "w"


@pytest.mark.parametrize(
    "reference",
    [
        "#/$defs/none",
        "#none",
        "none.json",
        "https://example.org/",
        "#/properties/list/prefixItems/2",
        "#/properties/list/prefixItems/x",
        "http://[none",
    ],
)
def test_a_reference_to_nothing_is_told(reference: str) -> None:
    with pytest.raises(Unresolved):
        found(reference)


def test_references_are_relative_to_the_nearest_identifier() -> None:
    references = References(SCHEMA)
    other = SCHEMA["$defs"]["other"]

    assert references.base(other) == "https://example.com/a/other.json"
    assert references.resolve("#n", references.base(other))[0] == {"$anchor": "n", "const": 3}
    assert references.base({"$id": "new.json"}, "https://example.com/a/x") == (
        "https://example.com/a/new.json"
    )


def test_a_dynamic_reference_leads_to_the_outermost_anchor() -> None:
    schema = {
        "$id": "https://example.com/strict",
        "$dynamicAnchor": "node",
        "$ref": "tree",
        "unevaluatedProperties": False,
        "$defs": {
            "tree": {
                "$id": "tree",
                "$dynamicAnchor": "node",
                "properties": {
                    "data": True,
                    "children": {"type": "array", "items": {"$dynamicRef": "#node"}},
                },
            }
        },
    }
    lenient = Lenient(schema)

    assert lenient.faults({"children": [{"data": 1}]}) == ()
    assert [(i.path, i.message) for i in lenient.faults({"children": [{"daat": 1}]})] == [
        ("/children/0/daat", "unknown field")
    ]


@pytest.mark.parametrize("name", ["d", "n"])
def test_a_dynamic_reference_without_an_outer_anchor_is_a_plain_one(name: str) -> None:
    references = References(SCHEMA)
    base = "https://example.com/a/other.json"

    plain = references.resolve(f"#{name}", base)

    assert references.resolve_dynamic(f"#{name}", base) == plain


def test_a_dynamic_reference_to_nothing_rejects_only_its_place() -> None:
    lenient = Lenient({"properties": {"a": {"$dynamicRef": "#none"}}})

    assert lenient.faults({"b": 1}) == ()
    assert [issue.path for issue in lenient.faults({"a": 1})] == ["/a"]


def test_nothing_is_ever_fetched() -> None:
    lenient = Lenient({"properties": {"a": {"$ref": "file:///etc/hostname"}}})

    assert [issue.message for issue in lenient.faults({"a": 1})] == [
        "unresolved reference file:///etc/hostname"
    ]
