"""How much a value is, counted as it would be written, in bounded time."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from seawall.pipeline import extent
from seawall.pipeline.extent import MAX_ITEMS, MAX_TAKEN, Extent, Unrolling, extent_of

if TYPE_CHECKING:
    from collections.abc import Generator


class Held(msgspec.Struct):
    value: Any


@dataclass
class Kept:
    value: Any


def shared(levels: int) -> Any:
    value: Any = [1]
    for _ in range(levels):
        value = [value, value]
    return value


def itself() -> Any:
    value: list[Any] = []
    value.append(value)
    return value


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("text", Extent.FINE),
        (None, Extent.FINE),
        ({"a": [1, 2.0, "x", b"y", None, True]}, Extent.FINE),
        ({"a": object()}, Extent.FINE),
        ([0] * 1_000_000, Extent.FINE),
        (iter(()), Extent.OPEN),
        ({"a": [{"b": map(str, ())}]}, Extent.OPEN),
        (Held(iter(())), Extent.OPEN),
        (Kept((iter(()),)), Extent.OPEN),
        (shared(40), Extent.EXCESSIVE),
        ({"a": (shared(40),)}, Extent.EXCESSIVE),
        (Held(shared(40)), Extent.EXCESSIVE),
        (Kept(shared(40)), Extent.EXCESSIVE),
        ([["x" * 1_000_000] * 300], Extent.EXCESSIVE),
        ([b"x" * 1_000_000] * 300, Extent.EXCESSIVE),
        ([[0] * 2_000] * 2_000, Extent.EXCESSIVE),
        (itself(), Extent.EXCESSIVE),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_value_is_counted_as_often_as_it_is_held(value: Any, expected: Extent) -> None:
    assert extent_of(value) is expected


def unrolled(value: Any) -> Any:
    steps = Unrolling().steps(value)
    while True:
        try:
            next(steps)
        except StopIteration as stop:
            return stop.value


def test_iterators_become_lists_wherever_they_are() -> None:
    value = {"a": iter([1, (x for x in "bc")]), "d": (iter([]), 2), "e": {1}}

    assert unrolled(value) == {"a": [1, ["b", "c"]], "d": ([], 2), "e": {1}}


def test_a_value_without_iterators_takes_no_step() -> None:
    assert list(Unrolling().steps({"a": [1, {"b": 2}]})) == []


def test_each_iterator_gives_so_many_items_and_all_together_no_more() -> None:
    found = unrolled([itertools.count() for _ in range(50)])

    assert len(found[0]) == MAX_ITEMS
    assert sum(map(len, found)) == MAX_TAKEN


def test_iterators_that_give_iterators_come_to_an_end() -> None:
    def endless() -> Generator[Any]:
        while True:
            yield endless()

    assert unrolled(endless()) is not None


def test_a_value_held_many_times_is_looked_into_for_so_long_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(extent, "MAX_TAKEN", 100)

    assert unrolled([shared(40), iter([1])])


def test_iterators_are_closed_at_their_end_and_when_it_stops() -> None:
    closed = []

    def numbers(name: str) -> Generator[int]:
        try:
            yield from range(3)
        finally:
            closed.append(name)

    unrolled([numbers("to its end")])
    steps = Unrolling().steps([numbers("half way")])
    next(steps)
    steps.close()

    assert closed == ["to its end", "half way"]
