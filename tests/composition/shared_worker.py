"""One process of many: calls a tool as fast as it can until a time, and says what came of it.

`python shared_worker.py URL SECONDS REPLICAS TIMEOUT_S ON_STORE_DOWN` writes a line when it is
ready, reads from its input when to begin, and ends with a line of JSON.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections import Counter
from typing import Any

from seawall import Annotations, BreakerPolicy, Pipeline, Policies, RunPolicy, Shared, Tool

RATE = "600/minute"
AT_ONCE = 4


async def answer(arguments: dict[str, Any], context: Any) -> str:
    return "ok"


def a_tool() -> Tool:
    hints = Annotations.for_reading()
    return Tool("t", "Answers.", {"type": "object"}, answer, annotations=hints)


class Calls:
    """Calls one after another, and their outcomes."""

    def __init__(self, pipeline: Pipeline, until: float) -> None:
        self._pipeline = pipeline
        self._until = until
        self.outcomes: Counter[str] = Counter()
        self.first = [float("inf")] * 2
        """When the first call began, and when the first ended: the server decided in between."""
        self.last = [0.0] * 2
        self.slowest_s = 0.0
        self.longest_wait_s = 0.0

    async def make(self) -> None:
        while (begun := time.time()) < self._until:
            before = time.monotonic()  # the machine may set its clock meanwhile
            result = await self._pipeline.call("t", {}, deadline_s=5)
            self.slowest_s = max(self.slowest_s, time.monotonic() - before)
            ended = time.time()
            failure = result.failure
            self.outcomes[failure.reason if failure else "granted"] += 1
            if failure is not None and failure.reason == "rate_limited":
                self.longest_wait_s = max(self.longest_wait_s, failure.retry_after_s or 1e9)
            times = (begun, ended)
            self.first = [min(pair) for pair in zip(self.first, times, strict=True)]
            self.last = [max(pair) for pair in zip(self.last, times, strict=True)]
            # A model asks again when it is told to; here only the server is to be kept busy.
            await asyncio.sleep(0)


async def watch(shared: Shared, seen: list[tuple[float, bool]]) -> None:
    """Note each change of whether the store answers."""
    while True:
        if shared.is_up != seen[-1][1]:
            seen.append((time.time(), shared.is_up))
        await asyncio.sleep(0.01)


async def main(
    url: str, seconds: float, replicas: int, timeout_s: float, on_store_down: Any
) -> None:
    policy = RunPolicy(rate=RATE, on_store_down=on_store_down, breaker=BreakerPolicy())
    shared = Shared(url, replicas=replicas, timeout_s=timeout_s)
    problems: list[str] = []
    asyncio.get_running_loop().set_exception_handler(
        lambda _, context: problems.append(str(context.get("message")))
    )
    async with shared, Pipeline([a_tool()], policies=Policies(policy), shared=shared) as pipeline:
        while not shared.is_up:  # noqa: ASYNC110  # it has no event to wait for
            await asyncio.sleep(0.05)
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        begin = float(await asyncio.to_thread(sys.stdin.readline))
        await asyncio.sleep(max(begin - time.time(), 0))
        seen = [(time.time(), True)]
        watching = asyncio.ensure_future(watch(shared, seen))
        calls = Calls(pipeline, begin + seconds)
        await asyncio.gather(*(calls.make() for _ in range(AT_ONCE)))
        watching.cancel()
        found = {
            "outcomes": dict(calls.outcomes),
            "first": calls.first,
            "last": calls.last,
            "slowest_s": calls.slowest_s,
            "longest_wait_s": calls.longest_wait_s,
            "seen": seen,
            "problems": problems,
        }
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    _, url, seconds, replicas, timeout_s, on_store_down = sys.argv
    asyncio.run(main(url, float(seconds), int(replicas), float(timeout_s), on_store_down))
