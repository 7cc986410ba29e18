"""An event loop whose time is virtual: a day passes as fast as its work can be done.

It knows tasks, futures and timers, and no sockets or threads. A timer fires at exactly the time
that it was set for, and everything that can go on then does so before the next one.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections import deque
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, TypeVar

from seawall.pipeline.clock import Clock

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Generator, Sequence
    from contextvars import Context

    from seawall.pipeline.clock import Timer

T = TypeVar("T")

_Future = asyncio.Future


class VirtualLoop(asyncio.AbstractEventLoop):
    """Runs one coroutine to its end, and all tasks that it begins."""

    def __init__(self) -> None:
        self.now = 0.0
        self._ready: deque[_Soon | asyncio.TimerHandle] = deque()
        self._timers: list[tuple[float, int, asyncio.TimerHandle | asyncio.Future[None]]] = []
        self._visits: Sequence[tuple[float, int]] = ()
        self._visited = 0
        self._visit: Callable[[int], object] = abs
        self._order = itertools.count()
        self._broken: dict[str, Any] | None = None

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run to the end. A callback that raises ends it with that error."""
        asyncio._set_running_loop(self)  # noqa: SLF001  # public, for those who write loops
        try:
            task = self.create_task(work)
            self._settle()
            while not task.done():
                self._pass_time()
                self._settle()
            return task.result()
        finally:
            asyncio._set_running_loop(None)  # noqa: SLF001  # as above

    def expect(self, visits: Sequence[tuple[float, int]], visit: Callable[[int], object]) -> None:
        """Call `visit` with each number at its time; they come in order, before timers."""
        self._visits, self._visited, self._visit = visits, 0, visit

    @property
    def expects_more(self) -> bool:
        """Whether visits are still to come."""
        return self._visited < len(self._visits)

    def wake_at(self, when: float) -> asyncio.Future[None]:
        """Give a future that is done at a time; lighter than a timer."""
        future: asyncio.Future[None] = _Future(loop=self)
        heapq.heappush(self._timers, (when, next(self._order), future))
        return future

    def _settle(self) -> None:
        ready = self._ready
        while ready:
            handle = ready.popleft()
            if not handle.cancelled():
                handle._run()  # noqa: SLF001  # a loop's own business
        if self._broken is not None:
            raise RuntimeError(self._broken.get("message")) from self._broken.get("exception")

    def _pass_time(self) -> None:
        timers = self._timers
        if self._visited < len(self._visits):
            at, number = self._visits[self._visited]
            if not timers or at <= timers[0][0]:
                self._visited += 1
                self.now = max(self.now, at)
                self._visit(number)
                return
        while timers:
            when, _, timer = heapq.heappop(timers)
            if isinstance(timer, _Future):
                if not timer.done():
                    self.now = max(self.now, when)
                    timer.set_result(None)
                    return
            elif not timer.cancelled():
                self.now = max(self.now, when)
                self._ready.append(timer)
                return
            if self.expects_more:
                return
        raise RuntimeError("nothing is left that could ever go on")

    def time(self) -> float:
        """Virtual seconds."""
        return self.now

    def call_soon(  # type: ignore[override]  # the types of typeshed bind arguments to callbacks
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> _Soon:
        """Call back before time passes."""
        soon = _Soon(self, callback, args, copy_context() if context is None else context)
        self._ready.append(soon)
        return soon

    def call_at(  # type: ignore[override]  # as above
        self,
        when: float,
        callback: Callable[..., object],
        *args: Any,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """Call back at a time."""
        timer = asyncio.TimerHandle(when, callback, args, self, context)
        heapq.heappush(self._timers, (when, next(self._order), timer))
        return timer

    def call_later(  # type: ignore[override]  # as above
        self,
        delay: float,
        callback: Callable[..., object],
        *args: Any,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """Call back after some seconds."""
        return self.call_at(self.now + max(delay, 0.0), callback, *args, context=context)

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """Leave it in its place: it is passed over when its time comes."""

    def create_future(self) -> asyncio.Future[Any]:
        """Make a future of this loop."""
        return asyncio.Future(loop=self)

    def create_task(  # type: ignore[override]  # newer versions have more options, none used here
        self, coro: Coroutine[Any, Any, T], **_: Any
    ) -> asyncio.Task[T]:
        """Make a task of this loop."""
        return asyncio.Task(coro, loop=self)

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Note what a callback raised; it ends the run."""
        self._broken = self._broken or context

    def get_debug(self) -> bool:
        """Whether slow callbacks are looked for: they are not."""
        return False

    def is_running(self) -> bool:
        """Whether it runs."""
        return True

    def is_closed(self) -> bool:
        """Whether it is closed: there is nothing to close."""
        return False


class VirtualClock(Clock):
    """The time of a virtual loop."""

    def __init__(self, loop: VirtualLoop, wall: float = 0.0) -> None:
        self._loop = loop
        self._wall = wall

    def now(self) -> float:
        """Virtual seconds."""
        return self._loop.now

    def wall(self) -> float:
        """Virtual seconds since the epoch."""
        return self._wall + self._loop.now

    def call_later(self, seconds: float, callback: Callable[[], None]) -> Timer:
        """Call back after some seconds."""
        return self._loop.call_later(seconds, callback)

    async def sleep(self, seconds: float) -> None:
        """Wait in virtual time."""
        if seconds <= 0:
            await _Once()
            return
        await self._loop.wake_at(self._loop.now + seconds)


class _Soon:
    """A callback that is due: as much of a handle as tasks and futures need."""

    __slots__ = ("_args", "_callback", "_context", "_loop", "_off")

    def __init__(
        self,
        loop: VirtualLoop,
        callback: Callable[..., object],
        args: tuple[Any, ...],
        context: Context,
    ) -> None:
        self._loop = loop
        self._callback = callback
        self._args = args
        self._context = context
        self._off = False

    def cancel(self) -> None:
        self._off = True

    def cancelled(self) -> bool:
        return self._off

    def _run(self) -> None:
        try:
            self._context.run(self._callback, *self._args)
        except (SystemExit, KeyboardInterrupt):
            raise
        except BaseException as error:  # noqa: BLE001  # as any loop does: told, not lost
            self._loop.call_exception_handler({"message": "a callback raised", "exception": error})


class _Once:
    """Let others go first."""

    def __await__(self) -> Generator[None, None, None]:
        yield
