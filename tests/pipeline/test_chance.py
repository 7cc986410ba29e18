"""Chance that is handed in."""

from __future__ import annotations

from seawall.pipeline.chance import SystemChance


def test_a_seed_repeats_everything() -> None:
    one, other = SystemChance(seed=7), SystemChance(seed=7)

    drawn = [(c.uniform(1, 2), c.integer(0, 10**9), c.token(8)) for c in (one, other)]

    assert drawn[0] == drawn[1]
    assert drawn[0] != (one.uniform(1, 2), one.integer(0, 10**9), one.token(8))


def test_without_a_seed_bounds_hold_and_tokens_differ() -> None:
    chance = SystemChance()

    assert all(1 <= chance.uniform(1, 2) <= 2 for _ in range(100))
    assert {chance.integer(3, 5) for _ in range(200)} == {3, 4, 5}
    assert len({chance.token(16) for _ in range(100)}) == 100
    assert len(chance.token(16)) == 32
