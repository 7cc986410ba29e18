from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seawall.contract.failure import FailureCode, ToolFailed
from seawall.toolkit.json_path import json_path, select

STORE = {
    "store": {
        "book": [
            {"category": "reference", "author": "Rees", "title": "Sayings", "price": 8.95},
            {"category": "fiction", "author": "Waugh", "title": "Sword", "price": 12.99},
            {
                "category": "fiction",
                "author": "Melville",
                "title": "Moby",
                "isbn": "0",
                "price": 8.99,
            },
            {
                "category": "fiction",
                "author": "Tolkien",
                "title": "Lord",
                "isbn": "1",
                "price": 22.99,
            },
        ],
        "bicycle": {"color": "red", "price": 399},
    }
}


def _values(document: Any, path: str) -> list[Any]:
    return [node.value for node in select(document, path)]


@pytest.mark.parametrize(
    ("path", "values"),
    [
        ("$.store.book[*].author", ["Rees", "Waugh", "Melville", "Tolkien"]),
        ("$..author", ["Rees", "Waugh", "Melville", "Tolkien"]),
        ("$.store..price", [8.95, 12.99, 8.99, 22.99, 399]),
        ("$..book[2].author", ["Melville"]),
        ("$..book[2].publisher", []),
        ("$..book[-1].title", ["Lord"]),
        ("$..book[0,1].title", ["Sayings", "Sword"]),
        ("$..book[:2].title", ["Sayings", "Sword"]),
        ("$..book[?@.isbn].title", ["Moby", "Lord"]),
        ("$..book[?@.price<10].title", ["Sayings", "Moby"]),
        ("$..book[?(@.price < 10 && @.category == 'fiction')].title", ["Moby"]),
        ("$..book[?!@.isbn || @.price > 20].title", ["Sayings", "Sword", "Lord"]),
        ("$['store']['bicycle']['color']", ["red"]),
        ('$["store"]["bicycle"]["color"]', ["red"]),
        ("$.store.book[?length(@.title) == 4].title", ["Moby", "Lord"]),
        ("$.store[?count(@.*) == 4].color", []),
        ("$.store.book[?value(@..price) == 8.95].author", ["Rees"]),
        ("$.store.book[?@.price == $.store.book[0].price].author", ["Rees"]),
        ("$.store.bicycle[?@ == 'red']", ["red"]),
        (" $ .store .bicycle .color ", ["red"]),
    ],
)
def test_the_examples_of_the_rfc_and_their_like(path: str, values: list[Any]) -> None:
    assert _values(STORE, path) == values


@pytest.mark.parametrize(
    ("document", "path", "values"),
    [
        ([0, 1, 2, 3, 4, 5, 6], "$[1:3]", [1, 2]),
        ([0, 1, 2, 3, 4, 5, 6], "$[5:]", [5, 6]),
        ([0, 1, 2, 3, 4, 5, 6], "$[1:5:2]", [1, 3]),
        ([0, 1, 2, 3, 4, 5, 6], "$[5:1:-2]", [5, 3]),
        ([0, 1, 2, 3, 4, 5, 6], "$[::-1]", [6, 5, 4, 3, 2, 1, 0]),
        ([0, 1], "$[::0]", []),
        ([0, 1], "$[0,0]", [0, 0]),
        ([0, 1], "$[-3]", []),
        ({"a": 1}, "$[0]", []),
        ([1], "$.a", []),
        ({"": 1, "a'b": 2, "\n": 3}, r"$['', 'a\'b', '\n']", [1, 2, 3]),
        ({"\N{GRINNING FACE}": 1}, r"$['\uD83D\uDE00']", [1]),
        ({"\u00e4": 1}, "$.\u00e4", [1]),
        ({"\u00e4": 1}, r"$['\u00E4']", [1]),
        ([[1, [2]], 3], "$..[0]", [[1, [2]], 1, 2]),
        ([1, 1.0, True, "1", None], "$[?@ == 1]", [1, 1.0]),
        ([1, True, "1"], "$[?@ == true]", [True]),
        ([None, 0, {}], "$[?@ == null]", [None]),
        ([{"a": 1}, {"b": 1}], "$[?@.a == @.b]", []),
        ([{"a": None}, {}], "$[?@.a]", [{"a": None}]),
        (
            [{"a": [1, {"b": 2}], "c": [1, {"b": 2}]}, {"a": [1], "c": [2]}],
            "$[?@.a == @.c].a",
            [[1, {"b": 2}]],
        ),
        ([{"a": [1]}, {"a": {"x": 1}}], "$[?@.a == $[0].a].a", [[1]]),
        ([{"a": {"x": 1}}], "$[?@.a != $[0].a]", []),
        ([{"a": [1]}, {"a": [1, 2]}], "$[?@.a == $[0].a].a", [[1]]),
        ([{"a": {"x": 1}}, {"a": {"y": 1}}], "$[?@.a == $[0].a].a", [{"x": 1}]),
        ([{"a": 1}, {"a": 2}], "$[?@.a >= 2].a", [2]),
        (["a", "b", 1], "$[?@ <= 'a']", ["a"]),
        ([1, "a", None, True], "$[?@ < 2]", [1]),
        ([{"x": 1}], "$[?@.y != 1].x", [1]),
        ([{"x": 1}], "$[?length(@.x) == 1]", []),
        ([{"x": [1, 2]}], "$[?length(@.x) == 2].x", [[1, 2]]),
        ([-1, 1e3], "$[?@ == -1.0 || @ == 1e3]", [-1, 1e3]),
        ({"a": 1}, "$", [{"a": 1}]),
    ],
)
def test_corners_of_the_grammar(document: Any, path: str, values: list[Any]) -> None:
    found = _values(document, path)

    assert found == values
    # Python holds 1 and True for equal.
    assert [type(one) for one in found] == [type(one) for one in values]


def test_places_are_normalized_paths() -> None:
    document = {"a b": [{"it's": 1}], "\n": 2, "\\": 3}

    assert json_path(document, "$..*")["paths"] == [
        "$['a b']",
        "$['\\u000a']",
        "$['\\\\']",
        "$['a b'][0]",
        "$['a b'][0]['it\\'s']",
    ]


def test_values_come_with_how_many_there_are() -> None:
    assert json_path([1, 2, 3], "$[*]", limit=2) == {
        "values": [1, 2],
        "paths": ["$[0]", "$[1]"],
        "found": 3,
    }


def test_a_document_may_be_json_text() -> None:
    assert json_path('{"a": 1}', "$.a")["values"] == [1]


@pytest.mark.parametrize(
    ("path", "values"),
    [
        ("$[?match(@, 'a.c')]", ["abc"]),
        ("$[?search(@, 'b')]", ["abc", "b"]),
        ("$[?match(@, @)]", ["abc", "b"]),
    ],
)
def test_patterns_match_whole_texts_or_parts(path: str, values: list[str]) -> None:
    pytest.importorskip("re2", reason="regular expressions come with the extra `toolkit`")

    assert _values(["abc", "b", 3], path) == values


@pytest.mark.parametrize(
    "path",
    [
        "",
        "a",
        "$.",
        "$..",
        "$[",
        "$[]",
        "$['a",
        "$['a\\x']",
        "$['\\ud800']",
        "$['\\ud800\\u0041']",
        "$['\\udc00']",
        "$['\\u12']",
        "$['\t']",
        "$[01]",
        "$[-0]",
        "$[9007199254740992]",
        "$[1 2]",
        "$.a b",
        "$.1",
        "$[?]",
        "$[?1]",
        "$[?'a']",
        "$[?@.a ==]",
        "$[?@.* == 1]",
        "$[?(@.a]",
        "$[?!1 == 2]",
        "$[?length(@)]",
        "$[?length(@.*) == 1]",
        "$[?count(1) == 1]",
        "$[?match(@.a, 'a') == true]",
        "$[?match(@.a)]",
        "$[?frob(@)]",
        "$[?@.a == word]",
        "$" + "[?" * 30 + "@" + "]" * 30,
        "$[?(" + "@[?" * 30 + "@" + "]" * 30 + ")]",
        "$[?" + "(" * 30 + "@" + ")" * 30 + "]",
        "$" + ".a" * 600,
    ],
)
def test_what_is_no_path_is_refused(path: str) -> None:
    with pytest.raises(ToolFailed) as refused:
        select({}, path)

    assert refused.value.failure.code is FailureCode.INVALID_ARGUMENT
    assert refused.value.failure.fields == ("path",)


@pytest.mark.parametrize(
    "path",
    ["$" + "..*" * 12, "$" + "[0,0,0,0]" * 30, "$..[?@..[?@..[?@..x]]]"],
)
def test_a_query_that_multiplies_is_stopped(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # As the budget is in earnest, only sooner.
    monkeypatch.setattr("seawall.toolkit.json_path.MAX_STEPS", 20_000)
    document: Any = 0
    for _ in range(12):
        document = [document, document]

    with pytest.raises(ToolFailed, match="looks at more than"):
        select(document, path)


def test_an_answer_that_repeats_itself_is_bounded() -> None:
    with pytest.raises(ToolFailed, match="larger than"):
        json_path(["x" * 100_000], "$[" + ",".join("0" * 20) + "]")


_json = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["a", "b"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2)
    ),
    max_leaves=12,
)


@given(_json)
def test_every_place_leads_back_to_its_value(document: Any) -> None:
    for node in select(document, "$..*"):
        found = select(document, node.path())

        assert len(found) == 1
        assert found[0].value is node.value


@given(st.text("$@.*[]'?()<>=!&|, 01ab-:\"\\u", max_size=25))
def test_any_text_gives_nodes_or_a_refusal_of_the_path(text: str) -> None:
    try:
        select({"a": [1, {"b": 0}]}, f"${text}")
    except ToolFailed as refused:
        fields = refused.failure.fields
    else:
        fields = ("path",)

    assert fields == ("path",)
