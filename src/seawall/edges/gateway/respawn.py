"""When a worker that ended is started again, and when it is no use any more. Plain arithmetic."""

from __future__ import annotations

STEADY_S = 10.0
"""Whoever has served for so long is replaced at once: it is not one that cannot start."""
FIRST_WAIT_S = 0.25
LONGEST_WAIT_S = 15.0
TRIES = 5
"""Starts in a row that never came to serve, after which there is no use in another."""


class Respawn:
    """The starts of one worker's place: how many ended early in a row, and when the next is due."""

    def __init__(self, steady_s: float = STEADY_S) -> None:
        self._steady_s = steady_s
        self.failures = 0
        """Ends before the worker had served for long."""
        self.barren = 0
        """Ends before it had served at all."""
        self.due = 0.0

    def ended(self, now: float, served_s: float | None) -> float:
        """Note that one ended, after so long of service, or before any; how long to wait now."""
        self.failures = (
            0 if served_s is not None and served_s >= self._steady_s else self.failures + 1
        )
        self.barren = self.barren + 1 if served_s is None else 0
        wait_s = wait_before(self.failures)
        self.due = now + wait_s
        return wait_s

    @property
    def is_hopeless(self) -> bool:
        """Whether so many never served that another would not either.

        One that served for a moment shows that it can: what ends it may pass, such as a machine
        that is short of memory.
        """
        return self.barren >= TRIES


def wait_before(failures: int) -> float:
    """Seconds before the next start, after so many early ends in a row."""
    if failures <= 0:
        return 0.0
    return min(FIRST_WAIT_S * 2.0 ** min(failures - 1, 60), LONGEST_WAIT_S)
