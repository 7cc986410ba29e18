"""The bounded table of keys under the limiters."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seawall.layers.rate_limit.table import Table, shortest_wait


class Lasting:
    """A state that is idle from a time on."""

    def __init__(self, until: float) -> None:
        self.until = until
        self.tracked = False

    def idle(self, at: float) -> bool:
        return at >= self.until

    def idle_at(self) -> float:
        return self.until

    def branch(self, at: float) -> Lasting:
        return Lasting(self.until)


def keep(table: Table[Lasting], key: str, until: float) -> Lasting:
    state = table.open(key, "group", lambda: Lasting(until))
    table.keep(key, "group", state)
    return state


def test_the_reading_never_goes_back() -> None:
    table: Table[Lasting] = Table(4)

    assert [table.reading(at) for at in (-5.0, 3.0, 2.0, 4.0)] == [-5.0, 3.0, 3.0, 4.0]


def test_an_opened_state_is_not_held_before_it_is_kept() -> None:
    table: Table[Lasting] = Table(4)
    table.reading(0.0)

    state = table.open("a", "group", lambda: Lasting(5.0))
    assert table.find("a", "group") is None
    table.keep("a", "group", state)

    assert table.find("a", "group") is state
    assert table.open("a", "group", lambda: Lasting(9.0)) is state


def test_keeping_a_state_twice_holds_it_once() -> None:
    table: Table[Lasting] = Table(4)
    table.reading(0.0)
    state = keep(table, "a", 5.0)

    table.keep("a", "group", state)

    assert table.tracked() == 1
    assert len(table._due) == 1


def test_a_state_that_lasts_longer_than_it_did_is_put_back_in_the_queue() -> None:
    table: Table[Lasting] = Table(4)
    table.reading(0.0)
    state = keep(table, "a", 5.0)
    state.until = 8.0

    table.reading(6.0)
    assert table.tracked() == 1
    table.reading(8.0)

    assert table.tracked() == 0
    assert not state.tracked


def test_a_state_that_is_due_but_by_rounding_not_idle_is_asked_again_an_instant_later() -> None:
    table: Table[Lasting] = Table(4)
    table.reading(0.0)
    state = keep(table, "a", 5.0)
    state.idle = lambda at: at > 5.0  # type: ignore[method-assign]  # idle_at rounded down

    table.reading(5.0)
    assert table.tracked() == 1
    table.reading(math.nextafter(5.0, 6.0))

    assert table.tracked() == 0


def test_a_hastened_state_is_forgotten_when_it_is_idle_and_not_later() -> None:
    table: Table[Lasting] = Table(4)
    table.reading(0.0)
    state = keep(table, "a", 5.0)

    state.until = 1.0
    table.hasten("a")
    table.hasten("nobody")
    table.reading(1.0)

    assert table.tracked() == 0


def test_what_was_discarded_does_not_forget_the_next_state_of_its_key() -> None:
    table: Table[Lasting] = Table(4)
    table.reading(0.0)
    keep(table, "a", 1.0)
    table.discard("a")
    table.discard("a")
    keep(table, "a", 5.0)

    table.reading(2.0)

    assert table.tracked() == 1


def test_a_discarded_key_leaves_the_queue_when_it_is_due() -> None:
    table: Table[Lasting] = Table(2)
    table.reading(0.0)
    keep(table, "a", 1.0)
    table.discard("a")

    table.reading(2.0)
    keep(table, "b", 5.0)
    keep(table, "c", 5.0)
    keep(table, "d", 5.0)

    assert "a" not in [key for _, key in table._due]


def test_the_queue_stays_in_proportion_to_the_keys() -> None:
    table: Table[Lasting] = Table(4)
    table.reading(0.0)
    keep(table, "a", 5.0)
    keep(table, "b", 6.0)

    for _ in range(1000):
        table.hasten("a")

    assert len(table._due) <= 2 * 2 + 64
    table.reading(6.0)
    assert table.tracked() == 0


def test_clearing_lets_all_go() -> None:
    table: Table[Lasting] = Table(1)
    table.reading(0.0)
    first = keep(table, "a", 5.0)
    keep(table, "b", 5.0)

    assert table.clear() == 1

    assert not first.tracked
    assert table.find("a", "group") is None
    assert table.find("b", "group") is None


@given(at=st.floats(-1e9, 1e9), due=st.floats(-1e9, 1e9), late=st.integers(0, 20))
def test_the_shortest_wait_ends_when_it_fits_however_floats_round(
    at: float, due: float, late: int
) -> None:
    from_when = due + late * math.ulp(due)

    wait_s = shortest_wait(at, due, lambda then: then >= from_when)

    assert at + wait_s >= from_when
    assert wait_s == pytest.approx(max(0.0, due - at), abs=64 * math.ulp(max(abs(at), abs(due), 1)))
