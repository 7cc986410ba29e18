from __future__ import annotations

import pytest

from seawall.edges.gateway.respawn import LONGEST_WAIT_S, STEADY_S, TRIES, Respawn, wait_before


@pytest.mark.parametrize(
    ("failures", "wait_s"),
    [(0, 0.0), (1, 0.25), (2, 0.5), (3, 1.0), (6, 8.0), (7, LONGEST_WAIT_S), (10_000, 15.0)],
)
def test_waits_double_up_to_a_bound(failures: int, wait_s: float) -> None:
    assert wait_before(failures) == wait_s


def test_who_has_served_for_long_is_replaced_at_once() -> None:
    respawn = Respawn()

    assert respawn.ended(100.0, STEADY_S) == 0.0
    assert respawn.due == 100.0


def test_starts_that_never_serve_wait_longer_and_are_hopeless_in_the_end() -> None:
    respawn = Respawn()

    for _ in range(TRIES):
        assert not respawn.is_hopeless
        respawn.ended(0.0, None)
    assert respawn.is_hopeless
    assert respawn.due == 4.0

    respawn.ended(50.0, STEADY_S + 1)
    assert not respawn.is_hopeless


def test_one_that_serves_for_a_moment_again_and_again_waits_longer_but_is_not_hopeless() -> None:
    respawn = Respawn()

    waits = [respawn.ended(0.0, 1.0) for _ in range(TRIES * 2)]

    assert not respawn.is_hopeless
    assert waits[-1] == LONGEST_WAIT_S


def test_one_that_served_only_for_a_moment_counts_as_an_early_end() -> None:
    respawn = Respawn()

    assert respawn.ended(0.0, STEADY_S - 0.1) > 0
