from __future__ import annotations

from typing import Any

import pytest

from seawall.contract.failure import Issue
from seawall.pipeline.arguments.lenient.text import changes, validation_text


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        ("5", 5, ("text to integer",)),
        ({"a": {"b": "x"}}, {"a": {"b": True}}, ("/a/b text to boolean",)),
        ({"a": None, "b": None}, {"b": "null"}, ("/a null dropped", "/b null to text")),
        ({"a/b": "5"}, {"a/b": ["5"]}, ("/a~1b text to list",)),
        ([3.9, "x", None], [3, "x", 0], ("/0 number to integer", "/2 null to integer")),
        ({"a": {"x": 1}}, {"a": [{"x": 1}]}, ("/a object to list",)),
    ],
)
def test_changes_are_told_by_place_and_kind(before: Any, after: Any, found: Any) -> None:
    assert changes(before, after) == found


def test_changes_come_in_the_order_of_the_value() -> None:
    before = {"b": ["1", {"c": "2"}], "a": "3"}
    after = {"b": [1, {"c": 2}], "a": 3}

    assert [change.split()[0] for change in changes(before, after)] == ["/b/0", "/b/1/c", "/a"]


def test_a_long_list_of_changes_is_cut_and_says_so() -> None:
    found = changes(["1"] * 250, [1] * 250)

    assert len(found) == 101
    assert found[-1] == "and 150 more"


def test_the_whole_is_called_root_and_paths_are_dotted() -> None:
    issues = [Issue("", "a"), Issue("/x/0/a~1b", "b"), Issue("/", "c")]

    assert validation_text("t", issues, {}) == (
        'Validation failed for tool "t":\n'
        "  - root: a\n  - x.0.a/b: b\n  - : c\n\n"
        "Received arguments:\n{}"
    )


@pytest.mark.parametrize(
    "received",
    [
        {"a": "x" * 100_000},
        {"a": [1] * 20_000},
        {f"k{number}": 1 for number in range(5_000)},
        "x" * 100_000,
        [[10**4000] * 10],
    ],
)
def test_arguments_that_nobody_would_read_are_cut(received: Any) -> None:
    assert len(validation_text("t", [Issue("", "a")], received)) < 3_000
