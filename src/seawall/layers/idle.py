"""How long an attempt may go on without a word.

Part of the `timeout` layer: each report of progress renews this wait, and nothing renews the limit
of the attempt or the deadline of the call, which end it all the same.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from seawall.pipeline.clock import Clock, Deadlines, Expiring, Timer
    from seawall.pipeline.invocation import Invocation


class IdleWait:
    """Two waits in one: for the next report, and for the end of the attempt.

    Progress only leaves its time at the call, from whichever thread it comes; whichever timer
    fires looks there. So a tool that reports a thousand times a second costs no timers, and one
    that answers before its first silence is over costs none but `first`, which waits share.
    """

    __slots__ = (
        "_call",
        "_clock",
        "_ends_at",
        "_first",
        "_idle_s",
        "_limit_s",
        "_timer",
        "_waiter",
        "idle",
        "seconds",
    )

    def __init__(
        self,
        clock: Clock,
        call: Invocation,
        idle_s: float,
        limit_s: float | None,
        first: Deadlines | None = None,
    ) -> None:
        self._clock = clock
        self._call = call
        self._idle_s = idle_s
        self._limit_s = limit_s
        self._ends_at = math.inf
        self._first = first if first is not None and first.seconds == idle_s else None
        self._timer: Timer | None = None
        self._waiter: Expiring | None = None
        self.idle = False
        """Whether it was the silence that ended it."""
        self.seconds = idle_s if limit_s is None else limit_s
        """The wait that ended it."""

    def enter(self, waiter: Expiring, _: float | None = None) -> None:
        """Start both waits."""
        self._waiter = waiter
        now = self._call.progress_at = self._clock.now()
        if self._limit_s is not None:
            self._ends_at = now + self._limit_s
        if self._first is not None and self._idle_s < self._ends_at - now:
            self._first.enter(self)
        else:
            self._listen(min(self._idle_s, self._ends_at - now))

    def leave(self, _: Expiring) -> None:
        """End them."""
        self._waiter = None
        if self._first is not None:
            self._first.leave(self)
        if self._timer is not None:
            self._timer.cancel()

    def expire(self) -> None:
        """Look whether one of them is over, or when it will be."""
        call, now = self._call, self._clock.now()
        # Waiting for a free thread is not the tool's silence.
        heard = max(call.progress_at, call.attempt_started) if call.begun else now
        left_s, limit_left_s = heard + self._idle_s - now, self._ends_at - now
        if limit_left_s <= 0:
            self._end(idle=False)
        elif left_s <= 0:
            self._end(idle=True)
        else:
            self._listen(min(left_s, limit_left_s))

    def _listen(self, seconds: float) -> None:
        self._timer = self._clock.call_later(seconds, self.expire)

    def _end(self, *, idle: bool) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is None:
            return
        self.idle = idle
        waiter.expire()
        if idle:
            self.seconds = self._idle_s
            self._call.cancel_reason = "attempt_timeout"
