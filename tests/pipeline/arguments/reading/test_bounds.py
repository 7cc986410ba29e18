from __future__ import annotations

import enum
import json
from collections import OrderedDict
from decimal import Decimal
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seawall.pipeline.arguments.reading.bounds import out_of_bounds
from seawall.pipeline.arguments.reading.reader import MAX_BYTES, MAX_DEPTH, MAX_DIGITS, MAX_VALUES


class Colour(enum.StrEnum):
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 3


def nested(levels: int) -> Any:
    value: Any = 1
    for number in range(levels):
        value = {"x": value} if number % 2 else [value]
    return value


def cyclic() -> Any:
    value: dict[str, Any] = {"x": []}
    value["x"].append(value)
    return value


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"a": 1, "b": "x", "c": True, "d": None, "e": 1.5},
        {"é": "é", "a": [1, (2, 3)], "b": {"c": {}}},
        {"a": 10 ** (MAX_DIGITS - 1), "b": -(10 ** (MAX_DIGITS - 1))},
        {"a": 2**70},
        {"a": "x" * 10_000},
        {f"k{n}": n for n in range(100)},
        OrderedDict(a=OrderedDict(b=1)),
        {"a": Level.HIGH},
        {"x": "\U0001f600"},
    ],
)
def test_json_of_usual_size_passes(value: Any) -> None:
    assert out_of_bounds(value) is None


@pytest.mark.parametrize(
    ("value", "reason", "pointer"),
    [
        ({"a": float("nan")}, "argument_invalid", "/a"),
        ({"a": [1, {"b/c~": float("-inf")}]}, "argument_invalid", "/a/1/b~1c~0"),
        ({"a": {1, 2}}, "argument_invalid", "/a"),
        ({"a": [b"x"]}, "argument_invalid", "/a/0"),
        ({"a": object()}, "argument_invalid", "/a"),
        ({"a": Decimal(1)}, "argument_invalid", "/a"),
        ({"a": Colour.RED}, "argument_invalid", "/a"),
        ({"a": MappingProxyType({})}, "argument_invalid", "/a"),
        ({"a": {Colour.RED: 1}}, "argument_invalid", "/a"),
        ({1: 2}, "argument_invalid", ""),
        ({"a": {None: 2}}, "argument_invalid", "/a"),
        ({"a": {True: 2}}, "argument_invalid", "/a"),
        ({"a": "\ud835 bold"}, "argument_invalid", "/a"),
        ({"a": {"é\udc00": 1}}, "argument_invalid", "/a"),
        ({"\ud835": 1}, "argument_invalid", ""),
        ({"a": [1, 10**MAX_DIGITS]}, "too_large", "/a/1"),
        ({"a": -(10**MAX_DIGITS)}, "too_large", "/a"),
        ({"a": "x" * MAX_BYTES}, "too_large", "/a"),
        ({"a": "é" * (MAX_BYTES // 2)}, "too_large", "/a"),
        ({"a": ["x" * 1000] * 2000}, "too_large", "/a"),
        ({"a": {"b": [0] * MAX_BYTES}}, "too_large", "/a"),
        ({"k" * MAX_BYTES: 1}, "too_large", ""),
        ({"a": cyclic()}, "too_deep", "/a"),
        (MappingProxyType({}), "argument_invalid", ""),
    ],
)
def test_what_no_tool_could_take_is_named(value: Any, reason: str, pointer: str) -> None:
    fault = out_of_bounds(value)

    assert fault is not None
    assert fault[:2] == (reason, pointer)
    assert fault[2]


def test_depth_is_bounded_however_deep_it_is() -> None:
    assert out_of_bounds(nested(MAX_DEPTH)) is None
    for levels in (MAX_DEPTH + 1, 5000, 100_000):
        fault = out_of_bounds({"a": nested(levels)})
        assert fault is not None
        assert fault[:2] == ("too_deep", "/a")


def test_the_depth_may_be_chosen() -> None:
    assert out_of_bounds(nested(200), 200) is None
    assert out_of_bounds(nested(3), 2) is not None


@pytest.mark.parametrize("of", [1, "text", None, {}, [], 1.5])
def test_the_number_of_values_is_bounded(of: Any) -> None:
    assert out_of_bounds({"a": [of] * (MAX_VALUES - 1)}) is None
    fault = out_of_bounds({"a": [of] * MAX_VALUES})
    assert fault is not None
    assert fault[:2] == ("too_large", "/a")


def test_the_number_of_values_may_be_chosen() -> None:
    assert out_of_bounds([1] * 50_000, most_values=50_000) is None
    assert out_of_bounds(["x" * 1000] * 2_000, most_bytes=4_000_000) is None
    assert out_of_bounds([1] * 100, most_values=99) is not None


def test_numbers_of_many_digits_are_few() -> None:
    assert out_of_bounds({"a": [10**40] * 100}) is None
    assert out_of_bounds({"a": [2**63] * 10_000}) is None
    for digits, count in ((30, 1_000), (4_000, 3)):
        fault = out_of_bounds({"a": [10**digits] * count})
        assert fault is not None
        assert fault[:2] == ("too_large", "/a")


def test_what_is_shared_many_times_counts_many_times() -> None:
    value: Any = "leaf"
    for _ in range(30):
        value = [value] * 10

    fault = out_of_bounds({"a": value})

    assert fault is not None
    assert fault[0] == "too_large"


def test_a_pointer_is_never_longer_than_can_be_shown() -> None:
    value: Any = float("nan")
    for _ in range(100):
        value = {"k" * 50: value}

    fault = out_of_bounds(value)

    assert fault is not None
    assert len(fault[1]) <= 512
    assert set(fault[1].split("/")) == {"", "k" * 50}


def test_a_message_never_holds_a_value() -> None:
    fault = out_of_bounds({"a": {"s3cret"}})

    assert fault is not None
    assert "s3cret" not in fault[2]


anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.text(st.characters(categories=["Cs", "Ll"]), max_size=3)
    | st.binary(max_size=2)
    | st.just({1}),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=2) | st.integers(), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.text(max_size=3), anything, max_size=4))
def test_what_passes_is_strict_json_and_what_does_not_is_no_json(value: dict[str, Any]) -> None:
    fault = out_of_bounds(value)

    try:
        text = json.dumps(value, allow_nan=False, ensure_ascii=False)
        is_json = json.loads(text.encode()) == value
    except (ValueError, TypeError):
        is_json = False
    assert (fault is None) == is_json
