"""Quantiles of the last latencies beside a plain model."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seawall.layers.latencies import Latencies


@given(
    st.integers(1, 9),
    st.lists(st.floats(0, 60, allow_nan=False), min_size=1, max_size=40),
    st.integers(1, 100),
)
def test_a_quantile_is_the_nearest_rank_of_the_last(
    most: int, seconds: list[float], percent: int
) -> None:
    latencies = Latencies(most)
    for one in seconds:
        latencies.add(one)

    kept = sorted(seconds[-most:])
    rank = math.ceil(Fraction(percent, 100) * len(kept))

    assert len(latencies) == len(kept)
    assert latencies.quantile(percent / 100) == kept[rank - 1]


@pytest.mark.parametrize(("share", "found"), [(0.5, 2), (0.75, 3), (0.76, 4), (1.0, 4), (0.01, 1)])
def test_some_quantiles(share: float, found: float) -> None:
    latencies = Latencies(10)
    for seconds in (4, 1, 3, 2):
        latencies.add(seconds)

    assert latencies.quantile(share) == found
