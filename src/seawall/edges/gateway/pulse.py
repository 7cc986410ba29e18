"""Whether the event loop of each worker still goes round: a time for each, in shared memory.

    worker 1    writes the time once a second  ─┐
    worker 2    writes the time once a second  ─┼─▶ a page of shared memory
                                                │
    supervisor  looks now and then   ◀──────────┘ whoever is asked for `/workers` looks too

A worker that does not go round takes no call, and those that it has wait; but it may be in the
middle of one, and to kill it then may leave a payment half made.
"""

from __future__ import annotations

import mmap
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from seawall.pipeline.clock import Clock

_BYTES = 8
_NOBODY = 0.0


class Pulse:
    """The times of all workers; made before they are forked. Its clock counts alike in all."""

    def __init__(self, workers: int, clock: Clock) -> None:
        self._clock = clock
        self._workers = workers
        self._times = memoryview(mmap.mmap(-1, (workers + 1) * _BYTES)).cast("d")

    def beat(self, number: int) -> None:
        """Say that the loop of this worker goes round."""
        self._times[number - 1] = self._clock.now()

    def rest(self, number: int) -> None:
        """Say that nobody is to expect a sign: the worker has ended, or is about to."""
        self._times[number - 1] = _NOBODY

    def silent_s(self, number: int) -> float | None:
        """How long ago a worker's last sign was; None if none is expected."""
        last: float = self._times[number - 1]
        return None if last == _NOBODY else max(self._clock.now() - last, 0.0)

    @property
    def all_end(self) -> bool:
        """Whether all workers were told to stop, and not this one alone."""
        return bool(self._times[self._workers])

    def end_all(self) -> None:
        """Note that all workers are told to stop."""
        self._times[self._workers] = 1.0

    def shown(self) -> list[dict[str, float | int | None]]:
        """Say it of all workers, for people."""
        found = ((number, self.silent_s(number)) for number in range(1, self._workers + 1))
        return [
            {"worker": number, "silentS": None if silent is None else round(silent, 1)}
            for number, silent in found
        ]


class Silence:
    """How long workers were silent while somebody watched.

    Whoever watches may have been stopped or starved itself, with all the others; what passed
    meanwhile is held against nobody.
    """

    def __init__(self, pulse: Pulse, clock: Clock, every_s: float) -> None:
        self.every_s = every_s
        """How often is to be looked."""
        self._pulse = pulse
        self._clock = clock
        self._looked = self._from = clock.now()

    def look(self) -> None:
        """Note that somebody watches now."""
        now = self._clock.now()
        if now - self._looked > 2 * self.every_s:
            self._from = now
        self._looked = now

    def of(self, number: int) -> float:
        """Seconds for which a worker gave no sign, as far as was watched."""
        return min(self._pulse.silent_s(number) or 0.0, self._looked - self._from)
