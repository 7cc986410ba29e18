"""What one call reports while it runs, on its way to those who listen: bounded, and after hooks.

    tool ▶ newest of what comes too fast ▶ after-hooks ▶ listeners

A tool in a thread may report faster than anybody is told. What waits is bounded, and so is what is
passed on; the newest report takes the place of those before it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Any

from seawall.layers.result_limit import limited
from seawall.layers.result_sizes import text_size
from seawall.layers.text_ends import text_head
from seawall.pipeline.foreign import log, told

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Sequence

    from seawall.contract.result import ToolResult
    from seawall.pipeline.clock import Clock
    from seawall.pipeline.invocation import Invocation, Progress

MAX_REPORT_BYTES = 8 * 1024
"""Of one line of text; a partial result is cut as the result would be."""

MAX_AT_ONCE = 100
"""Reports of one call that are passed on without a pause."""

EVERY_S = 0.1
"""How often one is passed on after that."""


def short(line: str, most: int = MAX_REPORT_BYTES) -> str:
    """Give a line itself if it is short enough, else its beginning, and how long it was."""
    if 4 * len(line) <= most or text_size(line) <= most:
        return line
    said = f"… [cut: it has {len(line):,} characters]"
    return text_head(line, max(most - text_size(said), 0)) + said


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

    def lets(self, now: float) -> bool:
        """Let one pass if it may; say whether it does."""
        if not self.left(now):
            return False
        self.take()
        return True

    @property
    def wait_s(self) -> float:
        """Seconds from the last asking until one may pass."""
        return max(0.0, 1.0 - self._left) * EVERY_S


class Passage:
    """What hooks leave of the reports of one call, as long as it goes on."""

    __slots__ = ("_awaits", "_passed", "sender")

    def __init__(self, passed: Callable[[Any], Coroutine[Any, Any, Any]], *, awaits: bool) -> None:
        self._passed = passed
        self._awaits = awaits
        self.sender: asyncio.Task[None] | None = None
        """At work while a hook that is async is."""

    def through(self, report: Any) -> Any:
        """Give what is left of a report, or an awaitable of it; None if it is withheld."""
        passing = self._passed(report)
        if self._awaits:
            return passing
        try:
            passing.send(None)
        except StopIteration as end:
            return end.value
        passing.close()
        log.warning("a report is withheld: an after-hook that is not async gave an awaitable")
        return None

    async def end(self, clock: Clock, grace_s: float) -> None:
        """Have it end with its call; a hook that ignores its cancel is waited for so long."""
        if self.sender is not None:
            self.sender.cancel()
            with clock.limit(grace_s):
                await asyncio.wait([self.sender])


class Reports:
    """The reports of one call. What waits when the call ends is not told: its result is."""

    __slots__ = ("_call", "_clock", "_of_all", "_pace", "_passage", "_soon", "_waiting", "_woken")

    def __init__(
        self,
        call: Invocation,
        of_all: Progress | None,
        clock: Clock,
        soon: Callable[[Callable[[], Any]], None],
    ) -> None:
        self._call = call
        self._passage: Passage | None = call.passage
        self._of_all = of_all
        self._clock = clock
        self._soon = soon
        self._pace = Pace()
        self._waiting: deque[tuple[Any, float | None, float | None]] = deque(maxlen=MAX_AT_ONCE)
        self._woken = False

    def add(self, report: Any, done: float | None, total: float | None) -> None:
        """Take a report, from any thread; of what waits a line too is bounded."""
        if isinstance(report, str):
            report = short(report)
        self._waiting.append((report, done, total))
        if not self._woken:
            self._woken = True
            self._soon(self._flush)

    def _flush(self) -> None:
        self._woken = False  # before it looks, as a thread may add one right after
        passage = self._passage
        while self._waiting and (passage is None or passage.sender is None):
            if not self._next_may_pass():
                return
            news = self._waiting.popleft()
            found = news[0] if passage is None else passage.through(news[0])
            if passage is not None and hasattr(found, "__await__"):
                passage.sender = asyncio.ensure_future(self._sent(passage, found, news))
            else:
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

    async def _sent(self, passage: Passage, found: Awaitable[Any], news: Sequence[Any]) -> None:
        """Tell what hooks that are async leave of a report, and go on with those after it."""
        said = await found
        passage.sender = None
        if self._call.live:
            self._tell(said, news)
        self._later()

    def _tell(self, report: str | ToolResult | None, news: Sequence[Any]) -> None:
        """Tell a report; None is one that hooks withheld."""
        if report is None:
            return
        most = self._call.policy.max_result_bytes
        if isinstance(report, str):
            report = short(report, min(most or MAX_REPORT_BYTES, MAX_REPORT_BYTES))
        elif most is not None:
            report = limited(report, most)
        listeners = [one for one in (self._call.on_progress, self._of_all) if one is not None]
        told(listeners, report, *news[1:])
