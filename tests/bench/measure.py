"""Compare two things on a machine whose speed changes under our hands.

All pairs run interleaved, in a fresh random order each round; ours runs between two blocks of what
it is compared with. Reported is the median of the paired ratios: it is steady where a time is not.
"""

from __future__ import annotations

import asyncio
import gc
import random
import statistics
import time
from collections.abc import Awaitable, Callable, Sequence
from importlib.metadata import version
from typing import NamedTuple

import msgspec

Case = Callable[[int], Awaitable[None]]
"""Runs the thing so many times."""

WALL = time.perf_counter
"""Where waits and threads are what is measured."""


class Pair(NamedTuple):
    """What is measured: ours against another thing that runs beside it."""

    name: str
    ours: Case
    against: str
    other: Case
    aim: float | None = None
    """Where the ratio should be at most."""
    packages: tuple[str, ...] = ()
    """Whose versions the ratio depends on, apart from Seawall's."""
    does: str = ""
    """What the other one does of Seawall's duties."""
    clock: Callable[[], float] = time.process_time
    """Time of the processor, so that what else the machine does is not counted."""


class Row(msgspec.Struct, frozen=True, omit_defaults=True):
    """What was found: the median of the ratios, the least, the greatest; medians of the times.

    Sizes stand where a ratio would, with their unit.
    """

    name: str
    against: str
    ratio: float
    least: float
    greatest: float
    ours_us: float = 0.0
    other_us: float = 0.0
    aim: float | None = None
    versions: dict[str, str] = {}
    does: str = ""
    unit: str = ""
    wall: bool = False
    """Measured by the clock on the wall, so that a busy machine moves it."""

    @property
    def key(self) -> tuple[str, str]:
        return (self.name, self.against)


async def measured(
    pairs: Sequence[Pair], *, rounds: int, block_s: float = 0.003, seed: int = 1
) -> list[Row]:
    """Run all pairs interleaved; rows come in the order of the pairs."""
    chance = random.Random(seed)
    timings = [_Timing(pair) for pair in pairs]
    sizes: dict[Case, int] = {}
    for pair in pairs:
        for case in (pair.ours, pair.other):
            if case not in sizes:
                sizes[case] = await _size(case, block_s, pair.clock)
    gc.collect()
    gc.freeze()
    try:
        for _ in range(rounds):
            for timing in chance.sample(timings, len(timings)):
                await timing.take(sizes)
    finally:
        gc.unfreeze()
    return [timing.row() for timing in timings]


class _Timing:
    """The rounds of one pair."""

    def __init__(self, pair: Pair) -> None:
        self.pair = pair
        self._ours: list[float] = []
        self._other: list[float] = []

    async def take(self, sizes: dict[Case, int]) -> None:
        ours, other, clock = self.pair.ours, self.pair.other, self.pair.clock
        before = await _timed(other, sizes[other], clock)
        self._ours.append(await _timed(ours, sizes[ours], clock))
        after = await _timed(other, sizes[other], clock)
        self._other.append((before + after) / 2)

    def row(self) -> Row:
        pair = self.pair
        ratios = [ours / other for ours, other in zip(self._ours, self._other, strict=True)]
        return Row(
            pair.name,
            pair.against,
            statistics.median(ratios),
            min(ratios),
            max(ratios),
            statistics.median(self._ours),
            statistics.median(self._other),
            pair.aim,
            versions_of(pair.packages),
            pair.does,
            wall=pair.clock is WALL,
        )


def versions_of(packages: tuple[str, ...]) -> dict[str, str]:
    """Which versions are installed here."""
    return {name: version(name) for name in packages}


async def _size(case: Case, block_s: float, clock: Callable[[], float]) -> int:
    """How often a case runs in a block."""
    await case(1)
    size = 1
    while size < 100_000:
        fastest_us = min([await _timed(case, size, clock) for _ in range(2)])
        if fastest_us * size >= block_s * 1e6:
            break
        size *= 2
    return size


async def _timed(case: Case, size: int, clock: Callable[[], float]) -> float:
    """µs for one."""
    # What the block before left to the loop is no part of this one.
    await asyncio.sleep(0)
    begun = clock()
    await case(size)
    return (clock() - begun) / size * 1e6
