"""The event loop a pipeline belongs to, and the way there from other threads.

All state of a pipeline is touched in one loop only; that is why no layer needs a lock.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import threading
from concurrent.futures import CancelledError, Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeVar

from seawall.pipeline.foreign import NOT_OURS_AWAITED

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

T = TypeVar("T")

LOOK_AGAIN_S = 0.5
"""How often a waiting thread looks whether the loop it waits for is still there."""

_running = asyncio.get_running_loop


class Home:
    """One loop: that of the first call, until it is closed, or left behind by a fork."""

    __slots__ = ("_guards", "_on_move", "_private", "_process", "_thread_id", "loop")

    def __init__(self, on_move: Callable[[], None] = lambda: None) -> None:
        self.loop: asyncio.AbstractEventLoop | None = None
        """To compare with the running one; only `enter` and its like may set it."""
        self._thread_id = 0
        self._private: _LoopThread | None = None
        self._process = os.getpid()
        self._guards: dict[int, threading.Lock] = {}
        self._on_move = on_move

    def enter(self) -> None:
        """Be at home, or move in; raises `RuntimeError` while home is another loop."""
        loop = _running()
        if loop is not self.loop:
            self._move_in(loop)

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        """One thread at a time; in a forked process first leave behind what did not come along.

        A guard for each process, as that of the former may be held by a thread left there.
        """
        process = os.getpid()
        with self._guards.setdefault(process, threading.Lock()):
            if self._process != process:
                self._process = process
                self.loop = self._private = None
                self._on_move()
            yield

    def _move_in(self, loop: asyncio.AbstractEventLoop) -> None:
        with self._guarded():
            home = self.loop
            if home is loop:
                return
            if home is not None and not home.is_closed():
                raise RuntimeError(
                    "this pipeline belongs to another event loop, that of its first call; use"
                    " call_sync from other threads, or a pipeline of its own for each loop"
                )
            if home is not None:
                self._on_move()
            self.loop = loop
            self._thread_id = threading.get_ident()

    def soon(self, work: Callable[[], Any]) -> None:
        """Do it now if we are in the loop's thread, else there as soon as it can."""
        loop = self.loop
        if loop is None or threading.get_ident() == self._thread_id:
            work()
        else:
            with suppress(RuntimeError):  # closed: nobody is there to hear
                loop.call_soon_threadsafe(work)

    def run(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run at home from another thread, and wait for it."""
        loop = self._for_sync()
        coro = work()
        try:
            future = asyncio.run_coroutine_threadsafe(coro, loop)
        except RuntimeError as error:  # closed since we looked
            coro.close()
            raise RuntimeError(_ENDED) from error
        try:
            return _outcome(future, loop)
        finally:
            future.cancel()
            if loop.is_closed() and inspect.getcoroutinestate(coro) == inspect.CORO_CREATED:
                coro.close()

    async def finish(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Do it at home, from whichever loop; not at all if that has ended."""
        loop = self.loop
        if loop is None or loop is _running():
            await work()
        elif loop.is_running():
            await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work(), loop))

    def _for_sync(self) -> asyncio.AbstractEventLoop:
        try:
            current = _running()
        except RuntimeError:
            current = None
        with self._guarded():
            home = self.loop
            if self._private is not None and self._private.ending:
                self._private.join()
            if current is not None and (home is None or home is current or home.is_closed()):
                raise RuntimeError(
                    "a synchronous call would stop the event loop that is running here; use"
                    " `await pipeline.call(…)`, or of a framework's tool its asynchronous call"
                    " (LangChain: `await tool.ainvoke(…)`)"
                )
            if home is not None and home.is_running():
                return home
            if home is not None and not home.is_closed():
                raise RuntimeError(
                    "this pipeline belongs to an event loop that is not running now; run it, or"
                    " close it, or make a pipeline of its own for call_sync"
                )
            if home is not None:
                self._on_move()
            self._private = _LoopThread()
            self.loop = self._private.loop
            self._thread_id = self._private.thread_id
            return self.loop

    def close(self) -> None:
        """End the loop that was made for `call_sync`, if there is one."""
        private = self._private
        if private is not None and private.is_here():
            private.stop()
            return
        # Guarded to the end, so that no call comes to a loop that is about to be closed.
        with self._guarded():
            private, self._private = self._private, None
            if private is not None:
                private.stop()


_ENDED = "the event loop of this pipeline ended before the call did; whether it ran is not known"


def _outcome(future: Future[T], loop: asyncio.AbstractEventLoop) -> T:
    """Wait for what another thread's loop does, but not for a loop that does nothing any more."""
    ran = True
    while True:
        with suppress(FutureTimeoutError):
            return _answer(future, LOOK_AGAIN_S)
        if future.done():
            return _answer(future)
        # Twice: a program may run its loop again for its next piece of work.
        ran_before, ran = ran, loop.is_running()
        if loop.is_closed() or not (ran or ran_before):
            raise RuntimeError(_ENDED)


def _answer(future: Future[T], seconds: float | None = None) -> T:
    try:
        return future.result(seconds)
    except CancelledError as error:  # only an ending loop cancels what nobody else can reach
        raise RuntimeError(_ENDED) from error


class _LoopThread:
    """An event loop in a daemon thread."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.ending = False
        """Whether it takes no more work, and will be closed soon."""
        running = threading.Event()
        self.loop.call_soon(running.set)
        self._thread = threading.Thread(target=self._run, name="seawall-loop", daemon=True)
        self._thread.start()
        # A second thread must not take it for a loop that nobody runs.
        running.wait()
        self.thread_id = self._thread.ident or 0

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        # What no event loop survives is raised where the call is waited for.
        with suppress(*NOT_OURS_AWAITED, SystemExit):
            self.loop.run_forever()
        self.ending = True
        try:
            with suppress(*NOT_OURS_AWAITED, SystemExit):
                self.loop.run_until_complete(self._wind_up())
        finally:
            self.loop.close()

    async def _wind_up(self) -> None:
        # Whoever waits for a call in another thread must hear that it will not be answered.
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        if left:
            await asyncio.wait(left, timeout=1)
        await self.loop.shutdown_asyncgens()

    def stop(self) -> None:
        with suppress(RuntimeError):  # closed: a call has ended it
            self.loop.call_soon_threadsafe(self.loop.stop)
        self.join()

    def is_here(self) -> bool:
        """Whether this is its thread."""
        return threading.get_ident() == self.thread_id

    def join(self) -> None:
        """Wait for its end, but not for a tool that ignores it."""
        if not self.is_here():
            self._thread.join(timeout=5)
