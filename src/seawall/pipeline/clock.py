"""Time that is handed in: monotonic for durations, wall clock only to show or store."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Protocol, Self

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType


class Timer(Protocol):
    """Something that will happen unless it is cancelled."""

    def cancel(self) -> None:
        """Let it not happen."""
        ...


class Expiring(Protocol):
    """Something that is told when its time is over."""

    def expire(self) -> None:
        """Its time is over."""
        ...


class Clock:
    """Monotonic seconds, waits and limits. A subclass says what time it is and how to be woken."""

    def now(self) -> float:
        """Monotonic seconds from an arbitrary start."""
        raise NotImplementedError

    def wall(self) -> float:
        """Seconds since the epoch: to show or to store, never to measure."""
        raise NotImplementedError

    def call_later(self, seconds: float, callback: Callable[[], None]) -> Timer:
        """Call back once, in the running loop."""
        raise NotImplementedError

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        raise NotImplementedError

    def alarm(self, seconds: float) -> tuple[asyncio.Future[None], Timer]:
        """Give a future that is done after `seconds`, and its timer."""
        rung: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def ring() -> None:
            if not rung.done():
                rung.set_result(None)

        return rung, self.call_later(seconds, ring)

    def limit(self, seconds: float | None) -> Limit:
        """Cancel the block's body after `seconds`; the code after the block then goes on.

        Behaves as `asyncio.timeout` does, but swallows its own expiry: read `.expired`.
        A cancel from outside passes through, also when both come at once.
        """
        return Limit(self, seconds)


class SystemClock(Clock):
    """The real clock."""

    def __init__(self) -> None:
        # Bound once: a method that only forwards would be paid for at every layer.
        self.now = time.monotonic  # type: ignore[method-assign]  # same signature, one call less
        self.wall = time.time  # type: ignore[method-assign]  # same signature, one call less

    def call_later(self, seconds: float, callback: Callable[[], None]) -> Timer:
        """Call back once, in the running loop."""
        return asyncio.get_running_loop().call_later(seconds, callback)

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)


_TOLERANCE_S = 0.001
"""By how much a wait may end late, for ending in the order in which waits were begun."""


class Deadlines:
    """Waits of one length, in the order they end, behind a single timer.

    A wait that ends early is removed at once, so only what is in flight is held. They belong to
    one loop, while a clock may serve pipelines in many: each pipeline has its own.
    """

    __slots__ = ("_armed", "_clock", "_latest", "_out_of_order", "_waiting", "seconds")

    def __init__(self, clock: Clock, seconds: float) -> None:
        self._clock = clock
        self.seconds = seconds
        self._waiting: dict[Expiring, float] = {}
        self._out_of_order: dict[Expiring, Timer] = {}
        self._latest = 0.0
        self._armed = False

    def enter(self, waiter: Expiring, began: float | None = None) -> None:
        """Start a wait, or one that `began` some time ago."""
        now = self._clock.now()
        ends = (now if began is None else began) + self.seconds
        if ends < self._latest - _TOLERANCE_S and self._waiting:
            left_s = max(ends - now, 0.0)
            self._out_of_order[waiter] = self._clock.call_later(left_s, waiter.expire)
            return
        self._latest = ends
        self._waiting[waiter] = ends
        if not self._armed:
            self._armed = True
            self._clock.call_later(max(ends - now, 0.0), self._fire)

    def leave(self, waiter: Expiring) -> None:
        """End a wait; nothing happens if it has expired."""
        if self._waiting.pop(waiter, None) is None and self._out_of_order:
            timer = self._out_of_order.pop(waiter, None)
            if timer is not None:
                timer.cancel()

    def forget_loop(self) -> None:
        """Begin anew: the timer was of a loop that was closed, and will not fire."""
        self._waiting.clear()
        self._out_of_order.clear()
        self._armed = False

    def _fire(self) -> None:
        now = self._clock.now()
        while self._waiting:
            waiter, deadline = next(iter(self._waiting.items()))
            if deadline > now:
                self._clock.call_later(deadline - now, self._fire)
                return
            del self._waiting[waiter]
            waiter.expire()
        self._armed = False


class Limit:
    """The block of `Clock.limit`."""

    __slots__ = ("_cancelling", "_clock", "_seconds", "_shared", "_task", "_timer", "expired")

    def __init__(
        self, clock: Clock, seconds: float | None, shared: Deadlines | None = None
    ) -> None:
        self._clock = clock
        self._seconds = seconds
        self._shared = shared
        self._timer: Timer | None = None
        self.expired = False

    def __enter__(self) -> Self:
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("a time limit needs a running asyncio task")
        self._task = task
        self._cancelling = task.cancelling()
        if self._shared is not None:
            self._shared.enter(self)
        elif self._seconds is not None:
            self._timer = self._clock.call_later(max(self._seconds, 0), self.expire)
        return self

    def expire(self) -> None:
        """Cancel the body."""
        self.expired = True
        self._task.cancel()

    def stop(self) -> None:
        """Let its time not come to an end."""
        if self._shared is not None:
            self._shared.leave(self)
        if self._timer is not None:
            self._timer.cancel()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        self.stop()
        if not self.expired:
            return False
        # Ours only if nobody else has asked for a cancel meanwhile.
        return self._task.uncancel() <= self._cancelling and kind is asyncio.CancelledError
