"""Worker threads for sync tools: bounded per tool, and counted when nobody waits any more.

The threads are daemons of our own: those of `concurrent.futures` are joined when the interpreter
ends, so that one tool that hangs would keep the program from ending. All books are kept in the
loop's thread, so there is no lock.
"""

from __future__ import annotations

import asyncio
import contextvars
import itertools
import os
import threading
from collections import deque
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_IDLE = 32

_numbers = itertools.count(1)

# Follows a call from a tool's thread into the loop and on into the next tool's thread.
_waiting: contextvars.ContextVar[tuple[_Held, ...]] = contextvars.ContextVar(
    "seawall_threads", default=()
)


def depth() -> int:
    """How many tools wait in threads of theirs for what this code does; 0 outside of tools."""
    return len(_waiting.get())


class NoThread(Exception):  # noqa: N818  # not an error of the program: it becomes a result
    """All threads of a tool wait for calls of it that wait for a thread."""


class _Held:
    """A thread of a tool that is taken, as long as it is."""

    __slots__ = ("is_over", "of")

    def __init__(self, of: Workers) -> None:
        self.of = of
        self.is_over = False


class _Job:
    __slots__ = (
        "after",
        "answer",
        "context",
        "ended",
        "era",
        "held",
        "is_abandoned",
        "loop",
        "lost",
        "work",
    )

    def __init__(
        self,
        work: Callable[[], Any],
        loop: asyncio.AbstractEventLoop,
        ended: Callable[[_Job], None],
        lost: Callable[[_Job], None],
        era: int,
        of: Workers,
    ) -> None:
        self.held = _Held(of)
        self.work = work
        self.era = era
        self.context = contextvars.copy_context()
        self.context.run(_waiting.set, (*_waiting.get(), self.held))
        self.loop = loop
        self.answer: asyncio.Future[Any] = loop.create_future()
        self.ended = ended
        self.lost = lost
        self.after: Callable[[], None] | None = None
        self.is_abandoned = False


class _Worker:
    """One thread, given one job at a time."""

    def __init__(self, threads: Threads) -> None:
        self._threads = threads
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        thread = threading.Thread(
            target=self._run, name=f"seawall-tool-{next(_numbers)}", daemon=True
        )
        thread.start()

    def give(self, job: _Job | None) -> None:
        self._jobs.put(job)

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            value, error = None, None
            try:
                value = job.context.run(job.work)
            except BaseException as raised:  # noqa: BLE001  # handed to the loop, whatever it is
                error = raised
            try:
                job.loop.call_soon_threadsafe(self._deliver, job, value, error)
            except RuntimeError:
                job.lost(job)  # the loop was closed: nobody is there to hear
                return
            del job, value, error

    def _deliver(self, job: _Job, value: Any, error: BaseException | None) -> None:
        if not self._threads.keep(self):
            self.give(None)
        answer = job.answer
        if not answer.done():
            if error is None:
                answer.set_result(value)
            elif isinstance(error, (StopIteration, GeneratorExit)):
                # A future refuses the one, and the other would close whoever waits for it; a tool
                # that raises them is a tool that failed.
                kind = "StopIteration" if isinstance(error, StopIteration) else "GeneratorExit"
                answer.set_exception(RuntimeError(f"the tool raised {kind}"))
            else:
                answer.set_exception(error)
        job.ended(job)


class Threads:
    """The threads of one pipeline."""

    __slots__ = ("_at_work", "_closed", "_idle", "_process", "abandoned")

    def __init__(self) -> None:
        self._idle: deque[_Worker] = deque()
        self._at_work: set[_Worker] = set()
        self._process = os.getpid()
        self._closed = False
        self.abandoned = 0
        """Threads still at work for calls that were already answered."""

    def start(self, job: _Job) -> None:
        """Give a job to an idle thread, or to a new one."""
        if self._process != os.getpid():
            self._forked()
        worker = self._idle.pop() if self._idle else _Worker(self)
        self._at_work.add(worker)
        worker.give(job)

    def keep(self, worker: _Worker) -> bool:
        """Take a worker that has nothing to do; False if it is not needed any more."""
        self._at_work.discard(worker)
        if self._closed or len(self._idle) >= MAX_IDLE:
            return False
        self._idle.append(worker)
        return True

    def forget_loop(self) -> None:
        """Let threads that work for a loop that is gone end with their jobs."""
        if self._process != os.getpid():
            self._forked()
        while self._at_work:
            self._at_work.pop().give(None)

    def _forked(self) -> None:
        """Threads do not come along into a forked process."""
        self._process = os.getpid()
        self._idle.clear()
        self._at_work.clear()

    def close(self) -> None:
        """End the idle threads; those at work end with their job."""
        self._closed = True
        while self._idle:
            self._idle.pop().give(None)


class Workers:
    """One tool's share of the threads. A thread that hangs keeps its place, and is counted."""

    __slots__ = ("_era", "_places", "_threads", "abandoned", "busy", "limit")

    def __init__(self, threads: Threads, limit: int) -> None:
        self._threads = threads
        self.limit = limit
        self.busy = 0
        self.abandoned = 0
        self._era = 0
        self._places: dict[asyncio.Future[None], tuple[_Held, ...]] = {}
        """Who waits for a thread, in order, each with those of this tool's that wait for it."""

    async def run(
        self,
        work: Callable[[], Any],
        started: Callable[[], None],
        left_behind: Callable[[], Callable[[], None]] | None = None,
    ) -> Any:
        """Run `work` in a thread, after those before it if all places are taken.

        `started` is called once a thread has been given the work: from then on an effect is
        possible, and a cancel leaves the thread at work. Then `left_behind` is called, and what
        it gives is called in the loop once the thread has ended. Raises `NoThread` instead of
        waiting for those who wait for this.
        """
        if self.busy >= self.limit or self._places:
            await self._place()
        else:
            self.busy += 1
        job = _Job(work, asyncio.get_running_loop(), self._ended, self._lost, self._era, self)
        self._threads.start(job)
        started()
        try:
            return await job.answer
        except asyncio.CancelledError:
            # The thread may have ended in the turn of the loop in which the cancel came.
            if job.answer.cancelled() and job.era == self._era and not job.held.is_over:
                job.is_abandoned = True
                self.abandoned += 1
                self._threads.abandoned += 1
                if left_behind is not None:
                    job.after = left_behind()
            raise

    def forget_loop(self) -> None:
        """Begin with all places free; threads that hang for a loop that is gone do not count."""
        self._era += 1
        self._threads.abandoned -= self.abandoned
        self.busy = self.abandoned = 0
        self._places.clear()

    async def _place(self) -> None:
        ours = tuple(held for held in _waiting.get() if held.of is self)
        if ours:
            waiting = {held for each in (ours, *self._places.values()) for held in each}
            if sum(not held.is_over for held in waiting) >= max(self.busy, self.limit):
                raise NoThread
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._places[place] = ours
        era = self._era
        entered = False
        try:
            await place
            entered = True
        finally:
            if not entered and era == self._era:
                self._give_up(place)

    def _give_up(self, place: asyncio.Future[None]) -> None:
        if place in self._places:
            del self._places[place]
        elif not place.cancelled():  # it was handed over just now: hand it on
            self.busy -= 1
            self._next()

    def _ended(self, job: _Job) -> None:
        self._lost(job)
        if job.after is not None:
            job.after()
        if self._places:
            self._next()

    def _lost(self, job: _Job) -> None:
        """Free the place; in a loop that was closed nobody waits for it any more."""
        job.held.is_over = True
        if job.era != self._era:
            return
        self.busy -= 1
        if job.is_abandoned:
            self.abandoned -= 1
            self._threads.abandoned -= 1

    def _next(self) -> None:
        while self._places and self.busy < self.limit:
            place = next(iter(self._places))
            del self._places[place]
            if not place.done() and not place.get_loop().is_closed():
                self.busy += 1
                place.set_result(None)
