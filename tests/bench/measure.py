"""Measure on a machine whose speed changes under our hands.

All cases run interleaved, in a fresh random order each round, each between two blocks of the
baseline; what is reported is the median of the paired ratios. A ratio is steady where a time is
not.
"""

from __future__ import annotations

import gc
import random
import statistics
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple

Case = Callable[[int], Awaitable[None]]
"""Runs the thing so many times."""


class Row(NamedTuple):
    """One case: times in µs, ratios to the baseline of the same round."""

    name: str
    min_us: float
    median_us: float
    ratio: float
    ratio_min: float
    ratio_max: float


async def measured(
    cases: Mapping[str, Case], baseline: Case, *, rounds: int, block_s: float = 0.003, seed: int = 1
) -> list[Row]:
    """Run all cases interleaved and compare each with the baseline beside it."""
    chance = random.Random(seed)
    sizes = {name: await _size(case, block_s) for name, case in cases.items()}
    base_size = await _size(baseline, block_s)
    times: dict[str, list[float]] = {name: [] for name in cases}
    ratios: dict[str, list[float]] = {name: [] for name in cases}
    gc.collect()
    gc.freeze()
    try:
        for _ in range(rounds):
            order = list(cases)
            chance.shuffle(order)
            for name in order:
                before = await _timed(baseline, base_size)
                took = await _timed(cases[name], sizes[name])
                after = await _timed(baseline, base_size)
                times[name].append(took)
                ratios[name].append(2 * took / (before + after))
    finally:
        gc.unfreeze()
    return [_row(name, times[name], ratios[name]) for name in cases]


async def _size(case: Case, block_s: float) -> int:
    await case(20)
    size = 20
    while (await _timed(case, size)) * size < block_s * 1e6 and size < 100_000:
        size *= 2
    return size


async def _timed(case: Case, size: int) -> float:
    begun = time.perf_counter()
    await case(size)
    return (time.perf_counter() - begun) / size * 1e6


def _row(name: str, times: list[float], ratios: list[float]) -> Row:
    return Row(
        name,
        min(times),
        statistics.median(times),
        statistics.median(ratios),
        min(ratios),
        max(ratios),
    )
