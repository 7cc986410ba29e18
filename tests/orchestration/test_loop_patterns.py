"""Repetition in rows of keys."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seawall.orchestration.loop_patterns import repeated, rounds


@pytest.mark.parametrize(
    ("keys", "window", "threshold", "found"),
    [
        ([1, 1, 1], 3, 3, {1: 3}),
        ([2, 1, 1, 1], 3, 3, {1: 3}),
        ([1, 1, 2, 1], 3, 3, {}),
        ([1, 1, 2, 1], 4, 3, {1: 3}),
        ([1, 2, 1, 2], 4, 2, {1: 2, 2: 2}),
        ([1, 1], 5, 3, {}),
        ([], 5, 2, {}),
    ],
)
def test_keys_are_counted_among_the_last(
    keys: list[int], window: int, threshold: int, found: dict[int, int]
) -> None:
    assert repeated(keys, window, threshold) == found


@pytest.mark.parametrize(
    ("keys", "length", "count"),
    [
        ([1, 2, 1, 2, 1, 2], 2, 3),
        ([9, 1, 2, 1, 2], 2, 2),
        ([2, 1, 2, 1, 2], 2, 2),
        ([1, 2, 1], 2, 1),
        ([1, 2], 2, 1),
        ([1], 2, 0),
        ([], 2, 0),
        ([1, 1, 1, 1], 2, 0),
        ([1, 2, 3, 1, 2, 3], 3, 2),
        ([1, 1, 2, 1, 1, 2], 3, 2),
        ([1, 2, 1, 2, 1, 2], 3, 1),
        ([1, 2, 3, 9, 1, 2, 3], 3, 1),
    ],
)
def test_rounds_of_a_cycle_are_counted_from_the_end(
    keys: list[int], length: int, count: int
) -> None:
    assert rounds(keys, length) == count


@given(st.lists(st.integers(0, 2), max_size=20), st.sampled_from([2, 3]))
def test_the_end_of_a_row_is_so_many_rounds_and_no_more(keys: list[int], length: int) -> None:
    count = rounds(keys, length)

    end = keys[-length:]
    assert keys[len(keys) - count * length :] == end * count
    if count:
        before = keys[: len(keys) - count * length]
        assert before[-length:] != end
        assert len(set(end)) > 1
