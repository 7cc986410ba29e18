from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seawall.contract.failure import ToolFailed
from seawall.toolkit.xml_extract import MAX_DEPTH, xml_extract

SHOP = """<?xml version="1.0" encoding="latin-1"?>
<shop xmlns="urn:shop" xmlns:x="urn:x">
  <item id="1" x:lang="en"><name>Pen</name><price>2</price></item>
  <item id="2"><name>Ink &amp; paper</name><price>5</price><note/></item>
  <box><item id="3"><name>Cap</name><x:name>Other</x:name></item></box>
  tail
</shop>"""


def _found(path: str, xml: str = SHOP) -> list[Any]:
    matches: list[Any] = xml_extract(xml, path)["matches"]
    return matches


def _texts(path: str, xml: str = SHOP) -> list[str]:
    return [one if isinstance(one, str) else one["text"] for one in _found(path, xml)]


@pytest.mark.parametrize(
    ("path", "texts"),
    [
        ("item/name", ["Pen", "Ink & paper"]),
        ("./item/name", ["Pen", "Ink & paper"]),
        ("/shop/item/name", ["Pen", "Ink & paper"]),
        ("/item", []),
        ("//name", ["Pen", "Ink & paper", "Cap", "Other"]),
        (".//price", ["2", "5"]),
        ("//{urn:x}name", ["Other"]),
        ("//{urn:shop}item/x:name", ["Pen", "Ink & paper", "Cap", "Other"]),
        ("//item/@id", ["1", "2", "3"]),
        ("//item/@*", ["1", "en", "2", "3"]),
        ("item/@lang", ["en"]),
        ("//@id", ["1", "2", "3"]),
        ("item[2]/name", ["Ink & paper"]),
        ("item[last()]/name/text()", ["Ink & paper"]),
        ("item[0]", []),
        ("item[9]", []),
        ("//item[1]/@id", ["1", "3"]),
        ("//item[@id='3']/name[1]", ["Cap"]),
        ('//item[@id != "3"]/@id', ["1", "2"]),
        ("//item[@missing]", []),
        ("//item[note]/@id", ["2"]),
        ("//item[price='2']/@id", ["1"]),
        ("//name[.='Cap']/../@id", ["3"]),
        ("//name[text()='Pen']", ["Pen"]),
        ("//box/*/*", ["Cap", "Other"]),
        ("item/../item/..//price[. = '5']", ["5"]),
        ("//*//name", ["Pen", "Ink & paper", "Cap", "Other"]),
        ("//note", [""]),
        ("//note/text()", []),
    ],
)
def test_a_path_finds_elements_attributes_and_text(path: str, texts: list[str]) -> None:
    assert _texts(path) == texts


def test_an_element_comes_with_its_attributes_and_all_its_text() -> None:
    assert _found("item[1]") == [
        {"tag": "item", "attributes": {"id": "1", "lang": "en"}, "text": "Pen2"}
    ]


def test_the_first_matches_are_given_and_all_counted() -> None:
    told = xml_extract(SHOP, "//name", limit=1)

    assert (len(told["matches"]), told["found"]) == (1, 4)


BOMB = """<!DOCTYPE a [<!ENTITY x "xx"><!ENTITY y "&x;&x;">]><a>&y;</a>"""


@pytest.mark.parametrize(
    ("xml", "said"),
    [
        (BOMB, "document type"),
        ('<!DOCTYPE a SYSTEM "file:///etc/passwd"><a/>', "document type"),
        ("<!DOCTYPE html><a/>", "document type"),
        ("<a>&x;</a>", "line 1, column 4: undefined entity"),
        ("<a>", "no element found"),
        ("", "no element found"),
        ("text", "syntax error"),
        ("<a></b>", "mismatched tag"),
        ("<a/><b/>", "junk after document element"),
        ("<x:a/>", "unbound prefix"),
        ("<a>\x00</a>", "not well-formed"),
        ("<a>\ud800</a>", "half of a character"),
        ("<a>" * (MAX_DEPTH + 1), "levels deep"),
        ("<a>" + "<b/>" * 100_001 + "</a>", "more than 100000 elements"),
        ("<a>" + "x" * 1_000_001 + "</a>", "longer than"),
    ],
)
def test_xml_that_is_broken_or_dangerous_is_refused(xml: str, said: str) -> None:
    with pytest.raises(ToolFailed, match=said) as refused:
        xml_extract(xml, "//a")

    assert refused.value.failure.fields == ("xml",)


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/",
        "//",
        "a/",
        "a//",
        "///a",
        "a b",
        "a[",
        "a[]",
        "a[@]",
        "a[x()]",
        "a['b']",
        "a[b=c]",
        "@a/b",
        "text()/a",
        "a|b",
        "count(a)",
        "child::a",
        "a/" * 200,
    ],
)
def test_what_is_no_path_is_refused(path: str) -> None:
    with pytest.raises(ToolFailed) as refused:
        xml_extract("<a/>", path)

    assert refused.value.failure.fields == ("path",)


@pytest.mark.parametrize("path", ["//*[.='x']", "//a", "//a/*" + "/../*" * 40])
def test_work_is_bounded_whatever_the_path(path: str) -> None:
    deep = "<a>" * 90 + "<b/>" * 20_000 + "</a>" * 90

    with pytest.raises(ToolFailed) as refused:
        xml_extract(deep, path)

    assert refused.value.failure.fields == ("path",)


def test_an_answer_that_repeats_itself_is_bounded() -> None:
    with pytest.raises(ToolFailed, match="larger than"):
        xml_extract("<a>" * 90 + "x" * 50_000 + "</a>" * 90, "//a")


@given(st.text("<>/a='\" &;![]", max_size=30), st.text("/a*.@[]='\"12()", min_size=1, max_size=12))
def test_any_text_gives_matches_or_a_refusal(xml: str, path: str) -> None:
    try:
        told = xml_extract(xml or "<a/>", path)
    except ToolFailed as refused:
        told = {"matches": [], "found": 0, "fields": refused.failure.fields}

    assert told.get("fields") in (None, ("xml",), ("path",))
    assert len(told["matches"]) == min(told["found"], 100)
