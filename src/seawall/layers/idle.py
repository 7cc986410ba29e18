"""How long an attempt may go on without a word.

Part of the `timeout` layer: each report of progress renews this wait, and nothing renews the limit
of the attempt or the deadline of the call, which end it all the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from seawall.pipeline.clock import Clock, Expiring, Timer
    from seawall.pipeline.invocation import Invocation


class IdleWait:
    """Two waits in one: for the next report, and for the end of the attempt.

    Progress only leaves its time at the call, from whichever thread it comes; the timer looks
    there when it fires. So a tool that reports a thousand times a second costs no timers.
    """

    __slots__ = ("_call", "_clock", "_idle_s", "_limit_s", "_over", "_timers", "idle", "seconds")

    def __init__(
        self, clock: Clock, call: Invocation, idle_s: float, limit_s: float | None
    ) -> None:
        self._clock = clock
        self._call = call
        self._idle_s = idle_s
        self._limit_s = limit_s
        self._timers: dict[str, Timer] = {}
        self._over = False
        self.idle = False
        """Whether it was the silence that ended it."""
        self.seconds = idle_s if limit_s is None else limit_s
        """The wait that ended it."""

    def enter(self, waiter: Expiring) -> None:
        """Start both waits."""
        self._call.progress_at = self._clock.now()
        if self._limit_s is not None:
            self._timers["limit"] = self._clock.call_later(
                self._limit_s, lambda: self._end(waiter, idle=False)
            )
        self._listen(waiter, self._idle_s)

    def leave(self, _: Expiring) -> None:
        """End them."""
        for timer in self._timers.values():
            timer.cancel()

    def _listen(self, waiter: Expiring, seconds: float) -> None:
        self._timers["idle"] = self._clock.call_later(seconds, lambda: self._look(waiter))

    def _look(self, waiter: Expiring) -> None:
        call = self._call
        # Waiting for a free thread is not the tool's silence.
        heard = max(call.progress_at, call.attempt_started) if call.begun else self._clock.now()
        left_s = heard + self._idle_s - self._clock.now()
        if left_s > 0:
            self._listen(waiter, left_s)
        else:
            self._end(waiter, idle=True)

    def _end(self, waiter: Expiring, *, idle: bool) -> None:
        # The other timer may fire while the tool, cancelled already, takes its time to end.
        if self._over:
            return
        self._over = True
        self.idle = idle
        waiter.expire()
        if idle:
            self.seconds = self._idle_s
            self._call.cancel_reason = "attempt_timeout"
