"""Days of calls in many shapes, drawn with parameters that no rule of the tuner was made for."""

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING

from seawall.contract.span import Outcome, Span
from seawall.recording.trace_file import About, Recorded, Trace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

DAY_S = 6 * 3600.0
"""A short day, so that many of them can be played."""

CUT_S = 30.0
"""Where the default policy cut off what hung when the day was recorded."""

Nature = dict[str, float]
"""What a tool is like; the same on every day."""


def call(tool: str, number: int, at: float, seconds: float, reason: str = "") -> Recorded:
    span = Span(
        call_id=f"{tool}-{number}",
        tool=tool,
        attempt=1,
        started=at,
        duration_ms=seconds * 1000,
        outcome=Outcome.FAILED if reason else Outcome.SUCCESS,
        reason=reason,
        offset_s=at,
        health="infrastructure" if reason else "",
    )
    return Recorded(tool=tool, call_id=span.call_id, arrival_s=at, spans=[span])


def diurnal(chance: random.Random, nature: Nature) -> Iterator[tuple[float, float, str]]:
    """Many calls around the middle of the day, few at its ends."""
    at = 0.0
    while (at := at + chance.expovariate(nature["flow"])) < DAY_S:
        if chance.random() < 0.1 + 0.9 * math.sin(math.pi * at / DAY_S) ** 2:
            yield at, chance.lognormvariate(math.log(nature["typical"]), 0.4), ""


def bursty(chance: random.Random, nature: Nature) -> Iterator[tuple[float, float, str]]:
    """Nothing for a while, then many at once; how many differs."""
    at = 0.0
    while (at := at + chance.expovariate(nature["flow"] / 8)) < DAY_S:
        for number in range(1 + int(chance.expovariate(1 / nature["burst"]))):
            yield at + number * 0.05, chance.uniform(0.5, 1.5) * nature["typical"], ""


def heavy(chance: random.Random, nature: Nature) -> Iterator[tuple[float, float, str]]:
    """A Pareto tail: some attempts take hundreds of times longer than most, and are answered."""
    at = 0.0
    while (at := at + chance.expovariate(nature["flow"])) < DAY_S:
        seconds = nature["typical"] * chance.paretovariate(nature["alpha"])
        yield (at, CUT_S, "attempt_timeout") if seconds > CUT_S else (at, seconds, "")


def hanging(chance: random.Random, nature: Nature) -> Iterator[tuple[float, float, str]]:
    """Some attempts never end."""
    at = 0.0
    while (at := at + chance.expovariate(nature["flow"])) < DAY_S:
        if chance.random() < nature["hangs"]:
            yield at, CUT_S, "attempt_timeout"
        else:
            yield at, chance.lognormvariate(math.log(nature["typical"]), 0.5), ""


def failing(chance: random.Random, nature: Nature) -> Iterator[tuple[float, float, str]]:
    """Outages of very different lengths, and stray failures between them."""
    at, down_until, next_down = 0.0, 0.0, chance.expovariate(1 / nature["between"])
    while (at := at + chance.expovariate(nature["flow"])) < DAY_S:
        if at > next_down:
            down_until = at + chance.expovariate(1 / nature["outage"])
            next_down = down_until + chance.expovariate(1 / nature["between"])
        if at < down_until:
            yield at, nature["slow"], "transport"
        elif chance.random() < nature["strays"]:
            yield at, 0.2, "transport"
        else:
            yield at, chance.uniform(0.5, 1.5) * nature["typical"], ""


def slowing(chance: random.Random, nature: Nature) -> Iterator[tuple[float, float, str]]:
    """Two or three times a day everything takes ten times longer for some minutes."""
    slow_at = [chance.uniform(0, DAY_S) for _ in range(2 + int(chance.random() * 2))]
    at = 0.0
    while (at := at + chance.expovariate(nature["flow"])) < DAY_S:
        is_slow = any(begin <= at < begin + 400 for begin in slow_at)
        seconds = nature["typical"] * chance.uniform(0.5, 1.5) * (10 if is_slow else 1)
        yield at, min(seconds, CUT_S * 0.9), ""


def rare(chance: random.Random, nature: Nature) -> Iterator[tuple[float, float, str]]:
    """A call now and then: too few to say anything."""
    at = 0.0
    while (at := at + chance.expovariate(60 / DAY_S)) < DAY_S:
        failed = chance.random() < 0.2
        yield at, nature["typical"], "transport" if failed else ""


def thin(chance: random.Random, nature: Nature) -> Iterator[tuple[float, float, str]]:
    """Just enough calls to speak of, with a tail that was hardly seen."""
    at = 0.0
    while (at := at + chance.expovariate(240 / DAY_S)) < DAY_S:
        long = chance.random() < 0.004
        yield at, nature["typical"] * (chance.uniform(5, 20) if long else 1), ""


SHAPES: dict[str, Callable[[random.Random, Nature], Iterator[tuple[float, float, str]]]] = {
    shape.__name__: shape
    for shape in (diurnal, bursty, heavy, hanging, failing, slowing, rare, thin)
}


def natures(seed: int) -> dict[str, Nature]:
    """Draw what each tool is like."""
    chance = random.Random(f"nature {seed}")
    return {
        name: {
            "flow": 1 / chance.uniform(6, 30),
            "typical": math.exp(chance.uniform(math.log(0.05), math.log(2))),
            "burst": chance.uniform(2, 15),
            "alpha": chance.uniform(1.1, 2.0),
            "hangs": chance.uniform(0.002, 0.03),
            "between": chance.uniform(1_000, 6_000),
            "outage": chance.uniform(20, 400),
            "slow": chance.uniform(0.1, 8),
            "strays": chance.uniform(0, 0.03),
        }
        for name in SHAPES
    }


def a_day(seed: int, day: int) -> Trace:
    """Draw one day of tools of all shapes."""
    calls: list[Recorded] = []
    for name, nature in natures(seed).items():
        chance = random.Random(f"{name} {seed} {day}")
        calls += [
            call(name, number, *one)
            for number, one in enumerate(sorted(SHAPES[name](chance, nature)))
        ]
    tools = {name: About(name, {"read_only": True}) for name in SHAPES}
    return Trace(tools=tools, calls=sorted(calls, key=lambda one: one.arrival_s))
