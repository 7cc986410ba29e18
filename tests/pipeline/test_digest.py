"""Fingerprints that compare equal arguments and say nothing about them."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from seawall.pipeline.digest import Digester, canonical_text, told_apart


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
        ({"a": 1}, {"a": 1.0}, True),
        ({"a": [1, 2]}, {"a": [2, 1]}, False),
        ({"a": "1"}, {"a": 1}, False),
        ({"a": True}, {"a": 1}, False),
        ({"a": None}, {}, False),
        ({"a": {1, 2, 3}}, {"a": {3, 2, 1}}, True),
        ({1: "x"}, {"1": "x"}, True),
        ({"a": object()}, {"a": object()}, True),
        ({"a": b"x"}, {"a": object()}, False),
        ({"a": "\ud800"}, {"a": "\ud800"}, True),
    ],
)
def test_equal_arguments_have_equal_fingerprints(one: Any, other: Any, equal: bool) -> None:
    digester = Digester()

    assert (digester.of("t", one) == digester.of("t", other)) is equal


def test_a_fingerprint_belongs_to_one_tool_and_one_key() -> None:
    arguments = {"card": "4111"}
    one, other = Digester(b"one"), Digester(b"other")

    assert one.of("t", arguments) != one.of("u", arguments)
    assert one.of("t", arguments).mac != other.of("t", arguments).mac
    assert one.of("t", arguments) == Digester(b"one").of("t", arguments)
    assert len(one.of("t", arguments).mac) * 4 == 128
    assert Digester().of("t", arguments) != Digester().of("t", arguments)


def test_a_key_may_be_longer_than_the_hash_takes() -> None:
    long = Digester(b"k" * 200)

    assert long.of("t", {}) == Digester(b"k" * 200).of("t", {})
    assert long.of("t", {}) != Digester(b"k" * 201).of("t", {})


def test_sizes_are_those_of_the_canonical_text() -> None:
    digest = Digester().of("t", {"b": "x y", "a": 1})

    assert canonical_text({"b": "x y", "a": 1}) == '{"a":1,"b":"x y"}'
    assert (digest.length, digest.non_blank) == (17, 16)


@pytest.mark.parametrize("depth", [300, 100_000])
def test_arguments_of_any_depth_have_a_text(depth: int) -> None:
    deep: Any = "bottom"
    for _ in range(depth):
        deep = {"a": deep}

    assert "<deeper than 64 levels>" in canonical_text(deep)


def test_a_value_that_refers_to_itself_has_a_text() -> None:
    loop: dict[str, Any] = {}
    loop["one"] = loop["two"] = loop

    assert canonical_text(loop) == '{"one":"<itself>","two":"<itself>"}'


def test_what_has_no_text_at_all_stands_as_its_type() -> None:
    class Unsayable:
        def __str__(self) -> str:
            raise TypeError("no")

    assert canonical_text({Unsayable(): 1}) == '"<dict>"'


def test_one_text_has_a_fingerprint_too() -> None:
    digester = Digester(b"k")

    assert digester.text("alice") == digester.text("alice") != digester.text("bob")
    assert digester.text("\ud800")


@pytest.mark.parametrize(
    "value",
    [{"a": 1}, None, "text", {"a": [1.5, "x" * 1_000]}, [], "x" * 100_000, {"a": 10**400}],
)
def test_of_arguments_of_usual_size_the_digest_is_the_same_whoever_looked_at_them(
    value: Any,
) -> None:
    digester = Digester(b"key")

    assert digester.of_any("t", value) == digester.of("t", value)


@pytest.mark.parametrize(
    "value",
    [
        {"a": ["x" * 1_000_000] * 25_000},
        "x" * 5_000_000,
        {"a": [{n} for n in range(100_000)]},
        {f"k{n}": "x" * 1_000 for n in range(100_000)},
        {"a": [10**40_000] * 1_000},
    ],
    ids=["shared", "text", "sets", "members", "digits"],
)
def test_arguments_that_are_larger_than_any_call_may_have_are_digested_by_their_beginning(
    value: Any,
) -> None:
    begun = time.process_time()
    digest = Digester(b"key").of_any("t", value)

    assert digest.length < 10_000_000
    assert time.process_time() - begun < 0.5


@pytest.mark.parametrize("tool", ["t", "with \0 in it", "\ud800"])
def test_what_is_made_for_one_tool_gives_the_same_fingerprints(tool: str) -> None:
    digester = Digester(b"key")
    digest = digester.for_tool(tool)

    for arguments in ({}, {"a": 1}, {"a": "\ud800"}, {"a": object()}, "text"):
        assert digest(arguments) == digester.of(tool, arguments)
    assert digest({"a": 1}) != digest({"a": 2})


@given(st.lists(st.text("0:1\0")), st.lists(st.text("0:1\0")))
@example(["a\0b", "c"], ["a", "b\0c"])
@example(["1:a"], ["", "1:a"])
def test_only_equal_texts_are_joined_to_the_same(one: list[str], other: list[str]) -> None:
    assert (told_apart(*one) == told_apart(*other)) is (one == other)
