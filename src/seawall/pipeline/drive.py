"""Run a coroutine inside the caller's task, under a limit, and be able to let go of it.

A scope in the caller's task cannot leave a tool that ignores its cancellation, and a task per
attempt costs more than all layers together. So the coroutine is driven by hand: while it is well
this is one generator around it; once cancelled it gets a bounded grace, in the same task, so that
its own scopes still end where they began; after that it is ended where it stands.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from seawall.pipeline.invocation import why_cancelled
from seawall.pipeline.task_groups import cancelling_group

if TYPE_CHECKING:
    from seawall.pipeline.clock import Clock

T = TypeVar("T")

Future = asyncio.Future

_Steps = Generator[Any, None, T]


class LetGo(Exception):  # noqa: N818  # not an error: the coroutine was given its grace
    """The coroutine did not end within its grace, and was ended where it stood."""


class _Ended(Exception):  # noqa: N818  # how a generator hands on the value of a coroutine's end
    def __init__(self, value: Any) -> None:
        super().__init__()
        self.value = value


class Driven(Protocol):
    """Whose coroutine it is: a call of a tool, or what stands for one."""

    cancel_reason: str | None
    """Why it is being given up."""

    def end_attempt(self, now: float) -> None:
        """It was let go, and is not driven any further."""
        ...


_NOTHING: Any = object()


def running_task(coro: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
    """Give the task in which a coroutine is to run; closes it and raises if there is none."""
    task = asyncio.current_task()
    if task is None:
        coro.close()
        raise RuntimeError("a tool call needs a running asyncio task")
    return task


class Drive(Generic[T]):
    """Awaitable around one coroutine. `expire` cancels it; `expired` says that this happened.

    Awaiting it gives the coroutine's value or raises what it raised; `CancelledError` once it
    ended after `expire` or after a cancel from outside, whatever it made of that cancel; `LetGo`
    if it did not end within `grace_s` of `expire`. Scopes inside the coroutine work as ever.

    Of a coroutine whose first step was made before: `task` is where that was, `cancelling` how
    often that was being cancelled before it, and `waiting` what the coroutine waits for.
    """

    __slots__ = (
        "_call",
        "_cancelling",
        "_clock",
        "_coro",
        "_first",
        "_grace_s",
        "_group",
        "_late",
        "_over",
        "_task",
        "expired",
        "reason",
    )

    def __init__(
        self,
        coro: Coroutine[Any, None, T],
        call: Driven,
        clock: Clock,
        grace_s: float,
        reason: str = "attempt_timeout",
        task: asyncio.Task[Any] | None = None,
        cancelling: int = 0,
        waiting: Any = _NOTHING,
    ) -> None:
        if task is None:
            task = running_task(coro)
            cancelling = task.cancelling()
        self._task = task
        self._cancelling = cancelling
        self._first = waiting
        self._coro = coro
        self._call = call
        self._clock = clock
        self._grace_s = grace_s
        self.reason = reason
        """Why the call is given up where `expire` ends it."""
        self._over: asyncio.Future[None] | None = None
        self._group: asyncio.TaskGroup | None = None
        self._late = self.expired = False

    def expire(self) -> None:
        """Cancel the coroutine, as its limit is over."""
        self.expired = True
        self._call.cancel_reason = self.reason
        if self._over is not None:
            self._arm(self._over)
        self._task.cancel()

    def limit_is_over(self) -> None:
        """Bound the grace: a limit is over whose keeper cancels the task, now or soon."""
        self._late = True
        if self._over is not None:
            self._arm(self._over)

    def settle(self) -> bool:
        """Take our cancel back; whether ours was the only one. Call once, if `expired`."""
        return self._task.uncancel() <= self._cancelling

    def __await__(self) -> _Steps[T]:
        coro = self._coro
        send = coro.send
        try:
            waiting = self._first
            if waiting is _NOTHING:
                waiting = send(None)
            while True:
                try:
                    if waiting is None or waiting.__class__ is Future:
                        yield waiting
                    else:
                        # A task or a group of them may be deaf to the cancel that our task would
                        # hand on to it; so our task waits for it through a future of its own.
                        yield from _either(waiting).__await__()
                except GeneratorExit:
                    coro.close()
                    raise
                except BaseException as error:  # noqa: BLE001  # forwarded, never kept
                    if isinstance(error, asyncio.CancelledError) and self._was_cancelled():
                        waiting = yield from self._wind_down(waiting, error)
                    else:
                        waiting = coro.throw(error)
                else:
                    waiting = send(None)
        except StopIteration as stop:
            value: T = stop.value
            return value
        except _Ended as ended:
            own: T = ended.value
            return own

    @property
    def _is_cancelled(self) -> bool:
        """Whether the task itself is being cancelled, not only a future it waited for."""
        return self.expired or self._task.cancelling() > self._cancelling

    def _was_cancelled(self) -> bool:
        """Whether the task is being cancelled by somebody else than a group of the coroutine."""
        group = cancelling_group(self._coro, self._task)
        if group is not None and group is not self._group:
            self._group = group
            self._task.uncancel()
        return self._is_cancelled

    def _wind_down(
        self, waiting: asyncio.Future[Any] | None, cancel: asyncio.CancelledError
    ) -> _Steps[asyncio.Future[Any] | None]:
        """Cancel the coroutine and wait for its end, `grace_s` at most once its limit is over.

        Before that it is waited for as any task is, however long its cleanup takes: it may have
        been a scope of its own that cancelled, such as `asyncio.timeout`, which shows only when
        the scope takes its cancel back. Then the coroutine goes on as before, and this gives what
        it waits for next.
        """
        call = self._call
        if call.cancel_reason is None:
            call.cancel_reason = why_cancelled(cancel)
        over = self._over = asyncio.get_running_loop().create_future()
        if self.expired or self._late:
            self._arm(over)
        step = self._throwing(cancel)
        try:
            if waiting is not None and not waiting.done() and waiting.cancel(*cancel.args[:1]):
                step = yield from self._wait(waiting, over)
            while True:
                try:
                    waiting = step()
                except StopIteration as stop:
                    # Whoever cancelled is obeyed, even if the coroutine swallowed it.
                    if self._is_cancelled:
                        raise cancel from None
                    raise _Ended(stop.value) from None
                if not self._is_cancelled:
                    call.cancel_reason = None
                    return waiting
                step = yield from self._wait(waiting, over)
        finally:
            over.cancel()
            self._over = None
            # This frame is in the traceback: a ring, and work for the collector.
            del cancel, step

    def _arm(self, over: asyncio.Future[None]) -> None:
        def end_grace() -> None:
            if not over.done():
                over.set_result(None)

        timer = self._clock.call_later(self._grace_s, end_grace)
        over.add_done_callback(lambda _: timer.cancel())

    def _wait(
        self, waiting: asyncio.Future[Any] | None, over: asyncio.Future[None]
    ) -> _Steps[Callable[[], Any]]:
        """Wait for what the coroutine waits for, or for the end of its grace."""
        while True:
            again: asyncio.CancelledError | None = None
            try:
                if waiting is None:
                    yield None
                else:
                    yield from _either(waiting, over).__await__()
            except asyncio.CancelledError as cancel:
                again = cancel
                self._was_cancelled()
            except RuntimeError as error:
                unfit = error  # what it waits for is none of this loop's futures: it is told
                return lambda: self._coro.throw(unfit)
            if waiting is None or waiting.done():
                if over.done():
                    self._let_go()
                return self._send if again is None else self._throwing(again)
            if over.done():
                self._let_go()
            if again is not None:
                # A second cancel goes on to what is being waited for.
                waiting.cancel(*again.args[:1])

    def _throwing(self, cancel: asyncio.CancelledError) -> Callable[[], Any]:
        # The same object: scopes know their own cancel by what it says. A lambda's frame would hold
        # it, and be in its traceback.
        return partial(self._coro.throw, cancel)

    def _send(self) -> Any:
        return self._coro.send(None)

    def _let_go(self) -> None:
        # Ended where it stands: its scopes belong to our task, and would cancel it later if the
        # coroutine went on elsewhere. One that will not end even so is not driven any further.
        self._call.end_attempt(self._clock.now())
        cause: BaseException | None = None
        try:
            self._coro.throw(GeneratorExit())
        except BaseException as ended:  # noqa: BLE001  # however it ended, it has ended
            cause = ended
        raise (LetGo if self.expired else asyncio.CancelledError) from cause


async def _either(*futures: asyncio.Future[Any]) -> None:
    """Return when one of them is done, without cancelling any if this wait is cancelled."""
    loop = asyncio.get_running_loop()
    # Both are what a task says that is given it; here no task would look at it.
    if getattr(futures[0], "_asyncio_future_blocking", None) is None:
        raise RuntimeError(f"Task got bad yield: {futures[0]!r:.200}")
    if futures[0].get_loop() is not loop:
        raise RuntimeError(f"{futures[0]!r:.200} is attached to a different loop")
    # It was yielded for a task to wait for, and taken back.
    futures[0]._asyncio_future_blocking = False  # noqa: SLF001  # as a task does
    gate = loop.create_future()

    def open_gate(_: asyncio.Future[Any]) -> None:
        if not gate.done():
            gate.set_result(None)

    for future in futures:
        future.add_done_callback(open_gate)
    try:
        await gate
    finally:
        for future in futures:
            future.remove_done_callback(open_gate)
