"""A room with so many places: who finds none waits in line, first come, first served.

A place that becomes free is handed to the first in line before anybody new can take it. One event
loop uses a room; nothing in here blocks.
"""

from __future__ import annotations

import asyncio
import math
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from seawall.pipeline.clock import Clock
    from seawall.pipeline.invocation import Invocation


class Room:
    """Places for `limit` calls: whoever finds none free, or a line, has to `wait`.

    To enter is `in_flight += 1`, left to the layers as they do it for every call.
    """

    __slots__ = ("_now", "era", "in_flight", "limit", "line")

    def __init__(self, limit: float = math.inf) -> None:
        self.limit = limit
        self.in_flight = 0
        """Places taken."""
        self.line: dict[asyncio.Future[float], Sequence[Invocation]] = {}
        """Who waits, in order, each with those in here that wait for it. To be read only."""
        self.era = 0
        """Counts the loops it was used in: a place of a former era must not be given back."""
        self._now: Callable[[], float] | None = None

    @property
    def waiting(self) -> int:
        """Calls in line."""
        return len(self.line)

    @property
    def idle(self) -> bool:
        """Whether nobody is in it and nobody waits."""
        return not self.in_flight and not self.line

    def is_stuck(self, inside: Sequence[Invocation]) -> bool:
        """Whether all who are in here wait for somebody in line, or for whom `inside` wait for."""
        waiting = {call for held in (inside, *self.line.values()) for call in held if call.live}
        return bool(inside) and len(waiting) >= self.in_flight

    async def wait(
        self, clock: Clock, seconds: float | None, inside: Sequence[Invocation] = ()
    ) -> float | None:
        """Stand in line for `seconds` at most; when a place was handed over, None if none was."""
        turn = asyncio.get_running_loop().create_future()
        self._now = clock.now
        self.line[turn] = inside
        era = self.era
        entered = False
        try:
            with clock.limit(seconds):
                await turn
            entered = turn.done() and not turn.cancelled()
        finally:
            # Cancelled: either still in line, or handed a place that nobody will use.
            if not entered and era == self.era:
                self._give_up(turn)
        return turn.result() if entered else None

    def leave(self) -> None:
        """Give a place back, and hand it on."""
        self.in_flight -= 1
        if self.line:
            self.admit()

    def admit(self) -> None:
        """Let in from the line as many as there are places for."""
        while self.line and self.in_flight < self.limit:
            turn = next(iter(self.line))
            del self.line[turn]
            # Of a loop that was closed: nobody there would take the place.
            if not turn.done() and not turn.get_loop().is_closed():
                self.in_flight += 1
                turn.set_result(0.0 if self._now is None else self._now())

    def resize(self, limit: float) -> None:
        """Change the number of places; those inside stay. May be called outside of the loop."""
        self.limit = limit
        turn = next(iter(self.line), None)
        if turn is not None:
            with suppress(RuntimeError):  # closed: nobody waits any more
                turn.get_loop().call_soon_threadsafe(self.admit)

    def forget_loop(self) -> None:
        """Be empty: the loop of all who were in it or in line is gone."""
        self.era += 1
        self.in_flight = 0
        self.line = {}

    def _give_up(self, turn: asyncio.Future[float]) -> None:
        if turn in self.line:
            del self.line[turn]
        elif not turn.cancelled():
            self.leave()
