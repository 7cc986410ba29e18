"""Where references lead."""

from __future__ import annotations

from typing import Any

import pytest

from seawall.pipeline.arguments.schema.dialects import DRAFT_4, DRAFT_7, DRAFT_2020, Dialect
from seawall.pipeline.arguments.schema.documents import MARK, Documents, mark_dangling

ROOT: dict[str, Any] = {
    "$id": "https://x.org/root",
    "$defs": {
        "a": {"title": "a"},
        "b": {"$anchor": "here", "title": "b"},
        "c": {"$id": "sub/c", "title": "c", "$defs": {"d": {"title": "d"}}},
        "e": {"$id": "urn:e", "title": "e", "$dynamicAnchor": "there"},
        "list": [{"title": "f"}],
    },
}
KNOWN = {"https://y.org/k": {"title": "k", "$defs": {"l": {"title": "l"}}}}


def followed(
    reference: str, *steps: str, root: Any = None, dialect: Dialect = DRAFT_2020
) -> str | None:
    documents = Documents(ROOT if root is None else root, dialect, KNOWN)
    place = documents.child(documents.root, *steps) if steps else documents.root
    found = documents.follow(place, reference)
    return found.node.get("title", "root") if found is not None else None


@pytest.mark.parametrize(
    ("reference", "title"),
    [
        ("#", "root"),
        ("", "root"),
        ("https://x.org/root", "root"),
        ("root#/$defs/a", "a"),
        ("#/$defs/a", "a"),
        ("#/%24defs/a", "a"),
        ("#here", "b"),
        ("sub/c", "c"),
        ("sub/c#/$defs/d", "d"),
        ("#/$defs/c/$defs/d", "d"),
        ("urn:e", "e"),
        ("urn:e#there", "e"),
        ("#/$defs/list/0", "f"),
        ("https://y.org/k#/$defs/l", "l"),
        ("#/$defs/list/1", None),
        ("#/$defs/list/-1", None),
        ("#/$defs/list", None),
        ("#/$defs/a/title", None),
        ("#nowhere", None),
        ("nowhere", None),
        ("http://[::", None),
    ],
)
def test_a_reference_leads_where_it_should(reference: str, title: str | None) -> None:
    assert followed(reference) == title


def test_a_reference_is_relative_to_the_schema_it_stands_in() -> None:
    assert followed("#/$defs/d", "$defs", "c") == "d"
    assert followed("#/$defs/d", "$defs", "a") is None
    assert followed("#", "$defs", "e") == "e"
    assert followed("other", "$defs", "e") is None


def test_old_drafts_name_anchors_by_id() -> None:
    root = {"definitions": {"a": {"$id": "#here", "title": "a"}}}
    assert followed("#here", root=root, dialect=DRAFT_7) == "a"
    named = {"id": "https://x.org/", "definitions": {"a": {"id": "a", "title": "a"}}}
    assert followed("a", root=named, dialect=DRAFT_4) == "a"


def test_beside_a_reference_old_drafts_have_no_id() -> None:
    root = {"definitions": {"a": {"$id": "a", "$ref": "#", "title": "a"}}}
    assert followed("a", root=root, dialect=DRAFT_7) is None
    assert followed("a", root=root, dialect=DRAFT_2020) == "a"


def test_a_place_has_an_address_that_can_be_referred_to() -> None:
    root = {"properties": {"a b/c%~": {"title": "x"}}}
    documents = Documents(root, DRAFT_2020, {})
    place = documents.child(documents.root, "properties", "a b/c%~")
    assert place.address == "urn:seawall:schema#/properties/a%20b~1c%25~0"


def test_a_chain_of_bare_references_is_gone_to_its_end() -> None:
    root = {
        "$defs": {
            "a": {"$ref": "#/$defs/b"},
            "b": {"$ref": "#/$defs/c"},
            "c": {"title": "c"},
            "loop": {"$ref": "#/$defs/loop"},
            "gone": {"$ref": "#/$defs/nowhere"},
            "more": {"$ref": "#/$defs/c", "title": "more"},
        }
    }
    documents = Documents(root, DRAFT_2020, {})
    ends = {
        name: documents.final(documents.child(documents.root, "$defs", name)).steps[-1]
        for name in ("a", "loop", "gone", "more")
    }
    assert ends == {"a": "c", "loop": "loop", "gone": "gone", "more": "more"}


def test_only_references_that_lead_nowhere_are_marked() -> None:
    root: dict[str, Any] = {
        "properties": {
            "a": {"$ref": "#/$defs/ok", "title": "kept"},
            "b": {"$ref": "#/$defs/gone", "title": "kept"},
            "c": {"$dynamicRef": "#gone"},
            "d": {"$ref": "https://json-schema.org/draft/2020-12/schema"},
        },
        "$defs": {"ok": {}},
    }
    documents = Documents(root, DRAFT_2020, {})
    assert mark_dangling(documents, DRAFT_2020.own_addresses)
    assert root["properties"]["a"]["$ref"] == "#/$defs/ok"
    assert root["properties"]["b"] == {"title": "kept", "not": {}, MARK: "#/$defs/gone"}
    assert root["properties"]["c"] == {"not": {}, MARK: "#gone"}
    assert "$ref" in root["properties"]["d"]
    assert not mark_dangling(documents, DRAFT_2020.own_addresses)


def test_documents_that_nothing_leads_to_are_left_alone() -> None:
    known: dict[str, Any] = {
        "https://y.org/a": {"$ref": "b"},
        "https://y.org/b": {"properties": {"z": {"$ref": "gone"}}},
        "https://y.org/c": {"$ref": "gone"},
    }
    documents = Documents({"$ref": "https://y.org/a"}, DRAFT_2020, known)
    assert mark_dangling(documents, ())
    assert known["https://y.org/b"]["properties"]["z"][MARK] == "gone"
    assert known["https://y.org/c"] == {"$ref": "gone"}
