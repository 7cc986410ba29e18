"""What 1,000 processes do to a service that fails and recovers, for three ways to retry.

    python docs/simulations/recovery.py docs/simulations/recovery.svg

Each process has a pipeline of its own and makes a call every two seconds on average, whether the
last one was answered or not; all on one clock that is moved by hand, so nothing here waits. The
service can do 700 requests in a second, and 500 are asked of it. A request that it turns away costs
it a quarter of one that it serves, as a connection, a handshake and an error do. From second 30 to
60 it turns away all. What is drawn is how many requests reach it in each second, and how many it
serves.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from seawall import (
    Annotations,
    BreakerPolicy,
    Pipeline,
    Policies,
    RetryBudgetPolicy,
    RunPolicy,
    Tool,
)
from seawall.pipeline.chance import SystemChance
from seawall.testing import FakeClock

PROCESSES = 1_000
EVERY_S = 2.0
CAPACITY = 700.0
TURNED_AWAY_COSTS = 0.25
DOWN = (30, 60)
SECONDS = 150

WAYS: dict[str, RunPolicy] = {
    "naive: 4 retries, 1 s apart": RunPolicy(delays_s=(1, 1, 1, 1)),
    "full jitter: 4 retries": RunPolicy(max_retries=4, base_delay_s=1),
    "full jitter, budget, one probe": RunPolicy(
        max_retries=4,
        base_delay_s=1,
        retry_budget=RetryBudgetPolicy(share=0.2, min_retries=1),
        breaker=BreakerPolicy(threshold=3, cooldown_s=4, max_cooldown_s=12),
    ),
}


class Service:
    """Serves what it has time for in each second, and turns the rest away."""

    def __init__(self, clock: FakeClock) -> None:
        self._clock = clock
        self._second = -1
        self._left = 0.0
        self.asked: Counter[int] = Counter()
        self.served: Counter[int] = Counter()

    async def ask(self, arguments: dict[str, Any], context: Any) -> str:  # noqa: ARG002  # an executor
        """Serve one request, or turn it away."""
        second = int(self._clock.now())
        if second != self._second:
            self._second, self._left = second, CAPACITY
        self.asked[second] += 1
        if DOWN[0] <= second < DOWN[1] or self._left < 1:
            self._left = max(self._left - TURNED_AWAY_COSTS, 0.0)
            raise ConnectionError("turned away")
        self._left -= 1
        self.served[second] += 1
        return "served"


async def simulated(policy: RunPolicy, seed: int = 1) -> Service:
    """Run all processes to the end."""
    clock = FakeClock()
    service = Service(clock)
    tool = Tool("ask", "", {"type": "object"}, service.ask, annotations=Annotations.for_reading())
    work = [
        asyncio.ensure_future(_process(tool, policy, clock, SystemChance(seed * PROCESSES + n)))
        for n in range(PROCESSES)
    ]
    await clock.advance(SECONDS)
    for task in work:
        task.cancel()
    await asyncio.gather(*work, return_exceptions=True)
    return service


async def _process(tool: Tool, policy: RunPolicy, clock: FakeClock, chance: SystemChance) -> None:
    pipeline = Pipeline([tool], policies=Policies(policy), clock=clock, chance=chance, loop=None)
    await clock.sleep(chance.uniform(0, EVERY_S))
    async with asyncio.TaskGroup() as calls:
        while True:
            calls.create_task(pipeline.call("ask", {}))
            await clock.sleep(chance.uniform(0.5 * EVERY_S, 1.5 * EVERY_S))


def told(services: dict[str, Service]) -> str:
    """Say what can be seen in numbers."""
    lines = []
    for name, service in services.items():
        while_down = sum(service.asked[s] for s in range(*DOWN)) / (DOWN[1] - DOWN[0])
        after = [service.asked[s] for s in range(DOWN[1], SECONDS)]
        well = _well_again(service)
        lines.append(
            f"{name}: {while_down:.0f} a second while it is down, {max(after)} at most after it,"
            f" {'not well again' if well is None else f'well again after {well} s'}"
        )
    return "\n".join(lines)


def _well_again(service: Service) -> int | None:
    """Seconds after which it turns hardly anybody away any more."""
    sick = [s for s in range(DOWN[1], SECONDS - 1) if service.served[s] < 0.98 * service.asked[s]]
    last = max(sick, default=DOWN[1] - 1)
    return None if last >= SECONDS - 5 else last + 1 - DOWN[1]


# The drawing: plain SVG, so that nothing has to be installed.

WIDTH, HEIGHT, LEFT, TOP = 820, 220, 60, 34
COLOURS = {"asked": "#c0392b", "served": "#1e8449"}


def drawn(services: dict[str, Service]) -> str:
    """Draw one panel below the other, all with the same scale."""
    top = max(max(service.asked.values()) for service in services.values())
    top = (top // 500 + 1) * 500
    panels = [
        _panel(name, service, top, TOP + place * (HEIGHT + 56))
        for place, (name, service) in enumerate(services.items())
    ]
    height = TOP + len(services) * (HEIGHT + 56) + 6
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT + WIDTH + 20} {height}"'
        ' font-family="sans-serif" font-size="13" fill="#222">\n'
        "<title>Requests in a second that reach a service which is down from second 30 to 60,"
        " and those it serves</title>\n"
        '<rect width="100%" height="100%" fill="#ffffff"/>\n' + "\n".join(panels) + "\n</svg>\n"
    )


def _panel(name: str, service: Service, top: int, y: int) -> str:
    def x_of(second: float) -> float:
        return LEFT + second / SECONDS * WIDTH

    def y_of(count: float) -> float:
        return y + HEIGHT - count / top * HEIGHT

    parts = [
        f'<text x="{LEFT}" y="{y - 10}" font-weight="bold">{name}</text>',
        (
            f'<rect x="{x_of(DOWN[0]):.1f}" y="{y}" width="{x_of(DOWN[1]) - x_of(DOWN[0]):.1f}"'
            f' height="{HEIGHT}" fill="#eeeeee"/>'
        ),
        f'<text x="{x_of(DOWN[0]) + 6:.1f}" y="{y + 16}" fill="#666">down</text>',
    ]
    parts += [
        (
            f'<line x1="{LEFT}" x2="{LEFT + WIDTH}" y1="{y_of(count):.1f}" y2="{y_of(count):.1f}"'
            f' stroke="#dddddd"/><text x="{LEFT - 8}" y="{y_of(count) + 4:.1f}"'
            f' text-anchor="end">{count}</text>'
        )
        for count in range(0, top + 1, 500)
    ]
    parts.append(
        f'<line x1="{LEFT}" x2="{LEFT + WIDTH}" y1="{y_of(CAPACITY):.1f}"'
        f' y2="{y_of(CAPACITY):.1f}" stroke="#2471a3" stroke-dasharray="5 4"/>'
        f'<text x="{LEFT + WIDTH}" y="{y_of(CAPACITY) - 5:.1f}" text-anchor="end"'
        f' fill="#2471a3">what it can do</text>'
    )
    parts += [
        f'<text x="{x_of(second):.1f}" y="{y + HEIGHT + 17}" text-anchor="middle">{second} s</text>'
        for second in range(0, SECONDS + 1, 30)
    ]
    for place, (what, colour) in enumerate(COLOURS.items()):
        counts = getattr(service, what)
        points = " ".join(f"{x_of(s + 0.5):.1f},{y_of(counts[s]):.1f}" for s in range(SECONDS))
        parts.append(
            f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>'
        )
        parts.append(
            f'<text x="{LEFT + WIDTH - 80 * (2 - place)}" y="{y - 10}"'
            f' fill="{colour}">{what}</text>'
        )
    return "\n".join(parts)


def main() -> None:
    """Simulate, say, and draw into the file that is named."""
    logging.getLogger("seawall").addHandler(logging.NullHandler())
    services = {name: asyncio.run(simulated(policy)) for name, policy in WAYS.items()}
    print(told(services))
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(drawn(services), encoding="utf-8")


if __name__ == "__main__":
    main()
