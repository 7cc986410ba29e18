"""What is still to be written down, once the store answers again."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from seawall.contract.approval import ApprovalConflict, ApprovalNotFound
from seawall.contract.errors import StoreUnavailable
from seawall.pipeline.foreign import guarded_async, log

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from seawall.pipeline.clock import Clock

WAIT_S = 1.0
"""Between two tries."""

PATIENCE_S = 3_600.0
"""How long it is tried."""


class Arrears:
    """Writes again and again, whoever is cancelled meanwhile.

    Bounded by what ran when the store went: nothing is taken or begun that cannot be written.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._tasks: set[asyncio.Task[None]] = set()
        self._closing = asyncio.Event()

    def __len__(self) -> int:
        return len(self._tasks)

    def write(
        self,
        what: str,
        work: Callable[[], Awaitable[Any]],
        over: Callable[[], object] = lambda: None,
    ) -> asyncio.Future[None]:
        """Begin; what is returned is done after the first try, however it went.

        `over` is called when it is written, or given up.
        """
        loop = asyncio.get_running_loop()
        tried: asyncio.Future[None] = loop.create_future()
        task = loop.create_task(self._insist(what, work, tried))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(lambda _: over())
        return tried

    async def aclose(self) -> None:
        """Let what waits be tried once more, and end."""
        loop = asyncio.get_running_loop()
        tasks = [task for task in self._tasks if task.get_loop() is loop]
        if tasks:
            self._closing.set()
            await asyncio.gather(*tasks, return_exceptions=True)
        self._closing = asyncio.Event()
        self._tasks.clear()

    async def _insist(
        self, what: str, work: Callable[[], Awaitable[Any]], tried: asyncio.Future[None]
    ) -> None:
        end, closing = self._clock.now() + PATIENCE_S, self._closing
        try:
            while True:
                is_last = closing.is_set() or self._clock.now() >= end
                if await _done(what, work):
                    return
                if is_last:
                    log.error("%s, and is given up", what)
                    return
                _ring(tried)
                await self._pause(closing)
        finally:
            _ring(tried)

    async def _pause(self, closing: asyncio.Event) -> None:
        rung, timer = self._clock.alarm(WAIT_S)
        closed = asyncio.ensure_future(closing.wait())
        try:
            await asyncio.wait((rung, closed), return_when=asyncio.FIRST_COMPLETED)
        finally:
            timer.cancel()
            rung.cancel()
            closed.cancel()


def _ring(tried: asyncio.Future[None]) -> None:
    if not tried.done():
        tried.set_result(None)


async def _done(what: str, work: Callable[[], Awaitable[Any]]) -> bool:
    """Try once; whether nothing is left to do."""

    async def attempt() -> bool:
        try:
            await work()
        except StoreUnavailable as error:
            log.warning("%s: %s", what, error)
            return False
        except (ApprovalConflict, ApprovalNotFound) as error:
            log.debug("%s: %s", what, error)  # others went on with it, or it was never there
        return True

    found: Any = await guarded_async(what, attempt, lambda _: False)
    return found is True
