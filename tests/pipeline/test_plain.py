"""Plain data of any value, within bounds."""

from __future__ import annotations

from typing import Any

import pytest

from seawall.pipeline.plain import MAX_PARTS, Plain


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (None, None),
        (1, 1),
        ("a", "a"),
        ((1, [2]), [1, [2]]),
        ({1: {"b": None}}, {"1": {"b": None}}),
        ({5}, [5]),
        (frozenset({5}), [5]),
        (object(), "<object>"),
        ([b"x"], ["<bytes>"]),
    ],
)
def test_what_json_does_not_know_stands_as_its_type(value: Any, plain: Any) -> None:
    assert Plain().of(value) == plain


def test_the_same_part_may_come_twice_but_not_inside_itself() -> None:
    part = [1]
    loop: list[Any] = [part, part]
    loop.append(loop)

    assert Plain().of(loop) == [[1], [1], "<itself>"]


def test_depth_and_number_of_parts_are_bounded() -> None:
    deep: Any = 1
    for _ in range(100):
        deep = [deep]
    wide: Any = [1, 2]
    for _ in range(30):
        wide = [wide, wide]

    assert "deeper" in str(Plain().of(deep))
    assert len(str(Plain().of(wide))) < 20 * MAX_PARTS
    assert Plain().of([0] * (MAX_PARTS + 5))[-1] == "<more>"
