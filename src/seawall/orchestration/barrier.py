"""Let calls pass their gates one by one, then run them together, so many at once.

A call says that it is past its gates by entering its ticket, which is what the `admission` layer
does; one that is refused by a gate never comes there, and its task ends instead.
"""

from __future__ import annotations

import asyncio
import math
from typing import TYPE_CHECKING, Any

from seawall.layers.room import Room

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence

    from seawall.contract.result import ToolResult
    from seawall.pipeline.clock import Clock
    from seawall.pipeline.invocation import Invocation

    Job = Callable[["Ticket"], Coroutine[Any, Any, None]]


class Barrier:
    """Holds calls until all that came before are past their gates, and bounds how many run."""

    def __init__(self, clock: Clock, width: int) -> None:
        self._clock = clock
        self._width = width
        self._room = Room(0)
        """Without places as long as it is closed."""
        self._is_down = False
        self.stopping = False
        """Whether all are being cancelled, as opposed to one that cancels itself."""

    def bring_down(self) -> None:
        """Let nobody begin any more; who waits is told."""
        self._is_down = True
        self._open(math.inf)

    def _open(self, places: float) -> None:
        self._room.limit = math.inf if self._is_down else places
        self._room.admit()

    async def pass_through(self) -> bool:
        """Wait for a place; False if nobody may begin any more."""
        room = self._room
        if room.in_flight < room.limit and not room.line:
            room.in_flight += 1
        else:
            await room.wait(self._clock, None)
        if self._is_down:
            room.leave()
        return not self._is_down

    def leave(self) -> None:
        """Hand the place on."""
        self._room.leave()

    async def run(
        self, jobs: Iterable[Job], before: Callable[[], Awaitable[None]] | None = None
    ) -> None:
        """Run all: each starts when the one before is past its gates or at its end.

        When all are, `before` is awaited, and then they may go on.

        A job that raises, which is a defect, and a cancel from outside end them all; either way
        no task is left behind.
        """
        tasks: list[asyncio.Task[None]] = []
        try:
            for job in jobs:
                ticket = Ticket(self)
                task = asyncio.create_task(job(ticket))
                task.add_done_callback(ticket.ended)
                tasks.append(task)
                await ticket.past
                _raise_first([task])
            if before is not None:
                await before()
            self._open(self._width)
            if tasks:
                await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
            _raise_first(tasks)
        except BaseException:
            self.stopping = True
            await _stopped(tasks)
            raise


class Ticket:
    """The way of one call through the barrier."""

    __slots__ = ("_barrier", "_call", "_refusal", "past")

    def __init__(self, barrier: Barrier) -> None:
        self._barrier = barrier
        self._call: Invocation | None = None
        self._refusal: Callable[[], ToolResult | None] = _none
        self.past: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done when the call is past its gates, or at its end."""

    def given_to(self, call: Invocation, refusal: Callable[[], ToolResult | None]) -> None:
        """Stand in the way of this call; `refusal` tells it that it may not begin any more."""
        self._call = call
        self._refusal = refusal
        call.beside().turnstile = self

    def is_past(self) -> None:
        """Let the next one start."""
        if not self.past.done():
            self.past.set_result(None)

    def ended(self, _: asyncio.Task[None]) -> None:
        """The call has come to its end; it is forgotten, as it knows its ticket."""
        self.is_past()
        self._call = None
        self._refusal = _none

    async def enter(self) -> ToolResult | None:
        """Wait for a place. The call's own time stands still: it waits for others."""
        limit = None if self._call is None else self._call.beside().limit
        if limit is not None:
            limit.pause()
        self.is_past()
        entered = await self._barrier.pass_through()
        if limit is not None:
            limit.resume()
        return None if entered else self._refusal()

    def leave(self) -> None:
        """Hand the place on."""
        self._barrier.leave()


def _none() -> None:
    return None


def _raise_first(tasks: Sequence[asyncio.Task[None]]) -> None:
    for task in tasks:
        if task.done() and not task.cancelled() and (error := task.exception()) is not None:
            raise error


async def _stopped(tasks: Sequence[asyncio.Task[None]]) -> None:
    """Cancel all and see them end, however often this is cancelled meanwhile."""
    for task in tasks:
        task.cancel()
    while pending := [task for task in tasks if not task.done()]:
        try:
            await asyncio.wait(pending)
        except asyncio.CancelledError:
            for task in pending:
                task.cancel()
    for task in tasks:
        if not task.cancelled():
            task.exception()  # seen, or asyncio would log it
