"""What one call reports while it runs, on its way to those who listen: bounded, and after hooks.

    tool ▶ newest of what comes too fast ▶ after-hooks ▶ listeners

A tool in a thread may report faster than anybody is told. What waits is bounded, and so is what is
passed on; the newest report takes the place of those before it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Any

from seawall.pipeline.foreign import told

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from seawall.contract.result import ToolResult
    from seawall.pipeline.clock import Clock
    from seawall.pipeline.invocation import Invocation, Progress

MAX_AT_ONCE = 100
"""Reports of one call that are passed on without a pause."""

EVERY_S = 0.1
"""How often one is passed on after that."""


class Pace:
    """How many reports may pass now: `MAX_AT_ONCE`, of which one comes back every `EVERY_S`."""

    def __init__(self) -> None:
        self._left = float(MAX_AT_ONCE)
        self._at: float | None = None

    def left(self, now: float) -> int:
        """Say how many may pass."""
        if self._at is not None:
            self._left = min(float(MAX_AT_ONCE), self._left + (now - self._at) / EVERY_S)
        self._at = now
        return int(self._left + 1e-9)

    def take(self, count: int = 1) -> None:
        """Let some pass."""
        self._left -= count

    @property
    def wait_s(self) -> float:
        """Seconds from the last asking until one may pass."""
        return max(0.0, 1.0 - self._left) * EVERY_S


class Reports:
    """The reports of one call. What waits when the call ends is not told: its result is."""

    __slots__ = ("_call", "_clock", "_of_all", "_pace", "_sender", "_soon", "_waiting", "_woken")

    def __init__(
        self,
        call: Invocation,
        of_all: Progress | None,
        clock: Clock,
        soon: Callable[[Callable[[], Any]], None],
    ) -> None:
        self._call = call
        self._of_all = of_all
        self._clock = clock
        self._soon = soon
        self._pace = Pace()
        self._waiting: deque[tuple[Any, float | None, float | None]] = deque(maxlen=MAX_AT_ONCE)
        self._woken = False
        self._sender: asyncio.Task[None] | None = None

    def add(self, report: Any, done: float | None, total: float | None) -> None:
        """Take a report, from any thread."""
        self._waiting.append((report, done, total))
        if not self._woken:
            self._woken = True
            self._soon(self._flush)

    def _flush(self) -> None:
        self._woken = False  # before it looks, as a thread may add one right after
        if self._sender is not None:
            return  # it goes on with what waits
        while self._waiting:
            if not self._next_may_pass():
                return
            news = self._waiting.popleft()
            found = self._through_hooks(news[0])
            if hasattr(found, "__await__"):
                self._sender = asyncio.ensure_future(self._sent(found, news))
                return
            self._tell(found, news)

    def _next_may_pass(self) -> bool:
        """Leave as many as may pass; if none may, the newest waits until it may."""
        room = self._pace.left(self._clock.now())
        while len(self._waiting) > max(room, 1):
            self._waiting.popleft()
        if room:
            self._pace.take()
            return True
        self._woken = True
        self._clock.call_later(self._pace.wait_s, self._later)
        return False

    def _later(self) -> None:
        if self._call.live:
            self._flush()
            return
        self._woken = False
        self._waiting.clear()

    def _through_hooks(self, report: Any) -> Any:
        through = self._call.on_partial
        return report if through is None else through(report)

    async def _sent(self, found: Awaitable[Any], news: Sequence[Any]) -> None:
        """Tell what hooks that are async leave of a report, and go on with those after it."""
        try:
            said = await found
        finally:
            self._sender = None
        if self._call.live:
            self._tell(said, news)
        self._later()

    def _tell(self, report: str | ToolResult | None, news: Sequence[Any]) -> None:
        """Tell a report; None is one that hooks withheld."""
        if report is None:
            return
        listeners = [one for one in (self._call.on_progress, self._of_all) if one is not None]
        told(listeners, report, *news[1:])
