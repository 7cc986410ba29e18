"""Two processes that resume the same approvals at the same moment."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from typing import TYPE_CHECKING

from tests.crash.scene import CALLS, Scene, effects_of, outcomes

if TYPE_CHECKING:
    from pathlib import Path


class _Racer:
    """A process that resumes what it is told, and tells how it ended."""

    def __init__(self, url: str, effects: Path) -> None:
        orders, self._orders = os.pipe()
        self._answers, answers = os.pipe()
        self.pid = os.fork()
        if not self.pid:
            code = 70
            try:
                asyncio.run(_raced(url, effects, orders, answers))
                code = 0
            finally:
                os._exit(code)
        os.close(orders)
        os.close(answers)

    def go(self, batch_id: str) -> None:
        os.write(self._orders, f"{batch_id}\n".encode())

    def said(self) -> str:
        line = b""
        while not line.endswith(b"\n"):
            part = os.read(self._answers, 1)
            assert part, "a racer ended by itself"
            line += part
        return line.decode().strip()

    def end(self) -> None:
        # A word, as a racer forked later holds this end of the pipe too.
        os.write(self._orders, b"end\n")
        os.waitpid(self.pid, 0)


async def _raced(url: str, effects: Path, orders: int, answers: int) -> None:
    scene = Scene(url, effects)
    with os.fdopen(orders) as lines:
        # Not in the loop's own thread: a transaction that it has begun would stay open meanwhile.
        while (line := await asyncio.to_thread(lines.readline)) != "end\n":
            found = outcomes((await scene.pipeline.resume(line.strip())).results)
            os.write(answers, f"{','.join(sorted(set(found.values())))}\n".encode())
    await scene.close()


def races(url: str, effects: Path, runs: int) -> Counter[str]:
    """Race; how both ended, and how often. Raises for what must not be."""
    ids = asyncio.run(_approved(url, effects, runs))
    racers = [_Racer(url, effects), _Racer(url, effects)]
    found: Counter[str] = Counter()
    for number, batch_id in enumerate(ids):
        first, second = racers if number % 2 else reversed(racers)
        first.go(batch_id)
        second.go(batch_id)
        said = sorted(racer.said() for racer in racers)
        ran = effects_of(effects, f"race{number}")
        assert ran == dict.fromkeys(CALLS, 1), f"race {number}: {ran}, {said}"
        assert said == ["approval_used", "ok"], f"race {number}: {said}"
        found.update([" and ".join(said)])
    for racer in racers:
        racer.end()
    return found


async def _approved(url: str, effects: Path, runs: int) -> list[str]:
    scene = Scene(url, effects)
    ids = []
    for number in range(runs):
        ids.append(await scene.frozen(f"race{number}"))
        await scene.pipeline.approvals.approve(ids[-1], by="somebody")
    await scene.close()
    return ids
