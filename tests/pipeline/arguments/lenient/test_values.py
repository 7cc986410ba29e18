from __future__ import annotations

import enum
import math
from types import MappingProxyType
from typing import Any

import pytest

from seawall.pipeline.arguments.lenient import values


class Word(enum.StrEnum):
    YES = "yes"


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (None, "null"),
        (True, "boolean"),
        (1, "integer"),
        (1.0, "integer"),
        (1.5, "number"),
        (math.nan, "NaN"),
        (-math.inf, "-Infinity"),
        ("", "string"),
        (Word.YES, "string"),
        ((1,), "array"),
        ([], "array"),
        ({}, "object"),
        (b"", "unknown"),
    ],
)
def test_every_value_has_a_kind(value: Any, kind: str) -> None:
    assert values.kind_of(value) == kind


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0"),
        (-0.0, "0"),
        (1.0, "1"),
        (-7.25, "-7.25"),
        (0.1, "0.1"),
        (100.0, "100"),
        (1e20, "100000000000000000000"),
        (1e21, "1e+21"),
        (1.5e300, "1.5e+300"),
        (1.2345678901234568e20, "123456789012345680000"),
        (0.000001, "0.000001"),
        (0.0000001, "1e-7"),
        (-1.25e-9, "-1.25e-9"),
        (5e-324, "5e-324"),
        (12345.678, "12345.678"),
        (9007199254740993, "9007199254740993"),
        (10**400, "Infinity"),
        (-(10**400), "-Infinity"),
        (math.nan, "NaN"),
    ],
)
def test_numbers_print_as_in_javascript(number: float, text: str) -> None:
    assert values.number_text(number) == text


@pytest.mark.parametrize(
    ("left", "right", "equal"),
    [
        (1, 1.0, True),
        (1, True, False),
        ([1], [True], False),
        ({"a": [1, {}]}, {"a": [1.0, {}]}, True),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
        ({}, [], False),
        ([], [[]], False),
        ("1", 1, False),
        (None, 0, False),
        ((1, 2), [1, 2], True),
    ],
)
def test_equality_is_that_of_json(left: Any, right: Any, *, equal: bool) -> None:
    assert (values.frozen(left) == values.frozen(right)) is equal


def test_keys_that_are_indexes_come_first() -> None:
    keys = ["b", "10", "2", "01", "4294967295", "4294967294", "-1", "a", 3]

    assert values.script_keys(keys) == [
        "2",
        "10",
        "4294967294",
        "b",
        "01",
        "4294967295",
        "-1",
        "a",
        3,
    ]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"b": 1.0, "1": []}, '{"1":[],"b":1}'),
        ([{}, None, True, False], "[{},null,true,false]"),
        ("é\u2028\n\ud800", '"é\u2028\\n\\ud800"'),
        (math.inf, "null"),
        (b"", "null"),
    ],
    ids=repr,
)
def test_json_is_written_as_javascript_writes_it(value: Any, text: str) -> None:
    assert values.json_text(value) == text


def test_an_integer_beyond_all_numbers_is_written_as_null() -> None:
    assert values.json_text([10**5000]) == "[null]"


def test_json_can_be_indented() -> None:
    assert values.json_text({"a": [1, {}], "b": []}, indent=2) == (
        '{\n  "a": [\n    1,\n    {}\n  ],\n  "b": []\n}'
    )


def test_json_that_is_too_deep_is_cut() -> None:
    value: Any = 1
    for _ in range(5_000):
        value = [value]

    assert values.json_text(value) == f'{"[" * 201}"..."{"]" * 201}'


def test_any_mapping_becomes_plain_json() -> None:
    value: Any = MappingProxyType({"a": (1, MappingProxyType({}))})

    assert values.plain(value) == {"a": [1, {}]}


@pytest.mark.parametrize(("key", "path"), [("a/b~", "/x/a~1b~0"), ("", "/x/"), (3, "/x/3")])
def test_a_pointer_escapes_its_parts(key: Any, path: str) -> None:
    assert values.child("/x", key) == path
