"""Calls in the shapes of model APIs, and ids that come twice."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seawall import ToolCall
from seawall.orchestration.calls import call_of, members_of

QUERY = {"q": "x"}


@pytest.mark.parametrize(
    "shape",
    [
        ToolCall("find", QUERY, "1"),
        ("find", QUERY, "1"),
        ["find", QUERY, 1],
        {"id": "1", "type": "function", "function": {"name": "find", "arguments": QUERY}},
        {"id": "fc_9", "call_id": "1", "type": "function_call", "name": "find", "arguments": QUERY},
        {"type": "tool_use", "id": "1", "name": "find", "input": QUERY},
        {"functionCall": {"name": "find", "args": QUERY, "id": "1"}},
        {"type": "tool_call", "id": "1", "name": "find", "args": QUERY},
        SimpleNamespace(
            model_dump=lambda: {"id": "1", "function": {"name": "find", "arguments": QUERY}}
        ),
    ],
)
def test_every_shape_reads_as_the_same_call(shape: Any) -> None:
    assert call_of(shape) == ToolCall("find", QUERY, "1")


@pytest.mark.parametrize(
    ("shape", "call"),
    [
        (("find",), ToolCall("find")),
        (("find", '{"q": 1}'), ToolCall("find", '{"q": 1}')),
        ({"name": "find", "input": {}}, ToolCall("find", {})),
        ({"name": "find", "arguments": None, "id": ""}, ToolCall("find")),
        ({"name": "find", "arguments": "", "input": QUERY}, ToolCall("find", "")),
        ({"function": {"name": ["find"]}}, ToolCall("")),
        ({}, ToolCall("")),
    ],
)
def test_what_is_missing_is_left_out(shape: Any, call: ToolCall) -> None:
    assert call_of(shape) == call


@pytest.mark.parametrize("shape", [None, 7, "find", object(), (), (1, 2, 3, 4)])
def test_what_has_no_shape_of_a_call_is_told_at_once(shape: Any) -> None:
    with pytest.raises(TypeError, match="no call"):
        call_of(shape)


def ids(*calls: ToolCall) -> list[tuple[str, int | None]]:
    """The id of each, and the position of the call that it repeats."""
    numbers = itertools.count(1)
    members = members_of(calls, lambda: f"new-{next(numbers)}")
    return [
        (member.call_id, None if member.twin_of is None else member.twin_of.position)
        for member in members
    ]


def test_a_call_without_an_id_gets_one() -> None:
    assert ids(ToolCall("a"), ToolCall("a")) == [("new-1", None), ("new-2", None)]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"a": 1, "b": [2.0]}, {"b": [2], "a": 1.0}),
        ('{"a": 1}', {"a": 1}),
        ('{"a": 1}', ' {"a":1} '),
        (None, {}),
        ("", "{}"),
        ("{not json", "{not json"),
    ],
)
def test_equal_calls_of_one_id_are_one_call(first: Any, second: Any) -> None:
    calls = ToolCall("a", first, "x"), ToolCall("a", second, "x")

    assert ids(*calls) == [("x", None), ("x", 0)]


@pytest.mark.parametrize(
    "second",
    [
        ToolCall("b", {"a": 1}, "x"),
        ToolCall("a", {"a": 2}, "x"),
        ToolCall("a", {"a": True}, "x"),
        ToolCall("a", '"text"', "x"),
        ToolCall("a", {"a": 1}, "x", truncated=True),
        ToolCall("a", {"a": 1}, "x", arguments_error="cut"),
    ],
)
def test_another_call_of_one_id_gets_an_id_of_its_own(second: ToolCall) -> None:
    assert ids(ToolCall("a", {"a": 1}, "x"), second) == [("x", None), ("x_2", None)]


def test_an_id_of_its_own_is_nobody_elses() -> None:
    calls = [ToolCall("a", {"n": n}, "x") for n in range(3)]

    assert ids(ToolCall("a", {}, "x_2"), *calls) == [
        ("x_2", None),
        ("x", None),
        ("x_3", None),
        ("x_4", None),
    ]


def test_a_repeated_call_goes_by_the_id_of_the_one_that_it_repeats() -> None:
    first, second = ToolCall("a", {"n": 1}, "x"), ToolCall("a", {"n": 2}, "x")

    assert ids(first, second, second, first) == [("x", None), ("x_2", None), ("x_2", 1), ("x", 0)]


def _shared(levels: int) -> Any:
    value: Any = [1]
    for _ in range(levels):
        value = [value, value]
    return value


def _deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = {"a": value}
    return value


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param({"a": _shared(60)}, id="a value that is held many times"),
        pytest.param(_deep(10_000), id="deep"),
        pytest.param({"n": 10**100_000}, id="a long number"),
        pytest.param("{" * 3_000_000, id="a long text"),
        pytest.param("[" + "1," * 200_000 + "1]", id="a text of many values"),
    ],
)
def test_arguments_of_any_size_are_compared_in_bounded_time(arguments: Any) -> None:
    call = ToolCall("find", arguments, "x")

    assert ids(call, call) == [("x", None), ("x", 0)]


def test_long_texts_that_differ_at_their_end_are_two_calls() -> None:
    text = "x" * 3_000_000

    found = ids(ToolCall("find", f"{text}1", "x"), ToolCall("find", f"{text}2", "x"))

    assert found == [("x", None), ("x_2", None)]


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["a", "b"]),
            st.integers(0, 2),
            st.sampled_from([None, "x", "x_2", "y"]),
        ),
        max_size=30,
    )
)
def test_ids_tell_apart_all_that_is_run(calls: list[tuple[str, int, str | None]]) -> None:
    given_ = [ToolCall(name, {"n": n}, call_id) for name, n, call_id in calls]
    numbers = itertools.count()

    members = members_of(given_, lambda: f"new-{next(numbers)}")

    run = [member for member in members if member.twin_of is None]
    assert len({member.call_id for member in run}) == len(run)
    assert [member.call for member in members] == given_
    for member in members:
        if member.twin_of is not None:
            assert member.twin_of.call == member.call
            assert member.twin_of.call_id == member.call_id
