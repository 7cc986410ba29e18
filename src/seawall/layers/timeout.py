"""Give up on an attempt that takes too long.

The tool is cancelled and waited for, within a bounded grace; one that ignores its cancellation is
ended where it stands. A sync tool cannot be stopped: its thread goes on, and the result says so.
Innermost, so the limit holds for each attempt; a call's deadline cuts the last one short. A tool
that reports its progress may also be bound by how long it says nothing.
"""

from __future__ import annotations

import asyncio
from asyncio import current_task
from typing import TYPE_CHECKING, Any

from seawall.contract.defaults import default_of
from seawall.contract.failure import FailureCode
from seawall.layers.idle import IdleWait
from seawall.pipeline.clock import Deadlines
from seawall.pipeline.convert import may_be_repeated
from seawall.pipeline.drive import Drive, LetGo, running_task
from seawall.pipeline.execute import is_async
from seawall.pipeline.layer import Fitted
from seawall.pipeline.state import deadlines_of

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from seawall.contract.policy import RunPolicy
    from seawall.contract.result import ToolResult
    from seawall.pipeline.clock import Clock, Expiring, Timer
    from seawall.pipeline.invocation import Handler, Invocation
    from seawall.pipeline.layer import LayerContext

_EXPIRED = "attempt_timeout"

DURATION_MARGIN_S = 5.0
"""What a tool gets beyond the duration it is known to take."""


class Timeout(Fitted):
    """Fails attempts still running after the policy's `timeout_s` or the call's own limit.

    Also those that have not reported for `idle_timeout_s`.
    """

    name = "timeout"

    def __init__(self, context: LayerContext) -> None:
        self._clock: Clock = context.clock
        self._grace_s = context.policy.grace_s
        self._count = context.count
        self._in_thread = not is_async(context.tool.executor)
        self._seconds = _timed(context.policy)
        self._idle_s = context.policy.idle_timeout_s
        self._argument: str | None = None
        duration = context.tool.duration if context.widen else None
        if isinstance(duration, str):
            self._argument = duration
        elif duration is not None:
            self._seconds = _widened(self._seconds, duration)
            self._idle_s = _widened(self._idle_s, duration)
        self._watched_s: float | None = None
        if context.policy.timeout_mode == "shadow":
            self._watched_s, self._seconds = self._seconds, None
        # Policies fix few lengths, so waits of equal length share one timer.
        fixed = self._seconds is not None and self._argument is None and self._idle_s is None
        states, clock = context.states, context.clock
        self._shared = deadlines_of(states, clock, self._seconds) if fixed else None
        self._silence = deadlines_of(states, clock, self._idle_s)

    @classmethod
    def for_tool(cls, context: LayerContext) -> Timeout | None:
        """Nothing to do without a limit, in the policy or at the call."""
        policy = context.policy
        limits = (_timed(policy), policy.deadline_s, policy.idle_timeout_s)
        return cls(context) if context.bounded or any(limits) else None

    def fitted(self, proceed: Handler) -> Handler:
        """Run one attempt under its limit."""
        shared, watched_s = self._shared, self._watched_s
        if shared is not None:
            return self._limited(proceed, shared)

        def watched(call: Invocation) -> Awaitable[ToolResult]:
            if watched_s is not None and call.timeout_s is None:
                return self._watch(call, proceed, watched_s)
            return self._unusual(call, proceed)

        return watched

    def _limited(self, proceed: Handler, shared: Deadlines) -> Handler:
        """Run attempts under the policy's own limit, or under that which the call brings."""
        clock, grace_s = self._clock, self._grace_s

        async def limited(call: Invocation) -> ToolResult:
            waits: Waits = shared
            reason = _EXPIRED
            if call.deadline is not None or call.timeout_s is not None:
                seconds, reason = self._limit(call)
                if seconds is not None and seconds <= 0:
                    return self._too_late(call)
                if seconds is not None and seconds != shared.seconds:
                    waits = _Single(clock, seconds)
            coro: Any = proceed(call)
            task = current_task() or running_task(coro)
            cancelling, before = task.cancelling(), call.attempt
            try:
                waiting = coro.send(None)
            except StopIteration as stop:
                # Nothing can end a step that waits for nothing: it takes no timer.
                answer: ToolResult = stop.value
                return answer
            drive: Drive[ToolResult] = Drive(
                coro, call, clock, grace_s, reason, task, cancelling, waiting
            )
            waits.enter(drive, call.attempt_started if call.attempt > before else None)
            try:  # as `_driven` does, a frame less
                return await drive
            except (asyncio.CancelledError, LetGo) as end:
                if not _is_ours(drive, end):
                    raise
                return self._ended(call, drive, waits, was_ended=isinstance(end, LetGo))
            finally:
                waits.leave(drive)

        return limited

    async def _watch(self, call: Invocation, proceed: Handler, seconds: float) -> ToolResult:
        """Let an attempt take as long as it does, and note if that was too long."""
        began = self._clock.now()
        result = await self._unusual(call, proceed)
        if self._clock.now() - began >= self._argued(call, seconds):
            self._count(self.name, "shadow_refused")
            call.note(f"{self.name}:would_refuse:attempt_timeout")
        return result

    async def _unusual(self, call: Invocation, proceed: Handler) -> ToolResult:
        """Run an attempt whose limit depends on the call; or refuse it, if its time is over."""
        seconds, reason = self._limit(call)
        if seconds is not None and seconds <= 0:
            return self._too_late(call)
        waits: Waits
        if self._idle_s is not None:
            idle_s = self._argued(call, self._idle_s)
            waits = IdleWait(self._clock, call, idle_s, seconds, self._silence)
        elif seconds is not None:
            waits = _Single(self._clock, seconds)
        else:
            return await proceed(call)
        coro: Any = proceed(call)
        drive: Drive[ToolResult] = Drive(coro, call, self._clock, self._grace_s, reason)
        waits.enter(drive)
        return await self._driven(call, drive, waits)

    async def _driven(self, call: Invocation, drive: Drive[ToolResult], waits: Waits) -> ToolResult:
        """Run an attempt to its end, or to that of its time."""
        try:
            return await drive
        except (asyncio.CancelledError, LetGo) as end:
            if not _is_ours(drive, end):
                raise
            return self._ended(call, drive, waits, was_ended=isinstance(end, LetGo))
        finally:
            waits.leave(drive)

    def _ended(
        self, call: Invocation, drive: Drive[ToolResult], waits: Waits, *, was_ended: bool
    ) -> ToolResult:
        """Say that its time was over."""
        reason = drive.reason
        said = f"{call.tool.name} gave no answer within {shown_seconds(waits.seconds)}"
        if isinstance(waits, IdleWait) and waits.idle:
            said = f"{call.tool.name} was idle: no progress for {shown_seconds(waits.seconds)}"
            reason = _EXPIRED
            call.mark("silent", waits.seconds)
        else:
            call.mark("limit", waits.seconds)
        return self._given_up(call, said, reason, was_ended=was_ended)

    def _limit(self, call: Invocation) -> tuple[float | None, str]:
        """Seconds for this attempt, and why it ends when they are over."""
        seconds = self._seconds if call.timeout_s is None else call.timeout_s
        if seconds is not None and call.timeout_s is None:
            seconds = self._argued(call, seconds)
        if call.deadline is None:
            return seconds, _EXPIRED
        left = call.deadline - self._clock.now()
        if seconds is None or left < seconds:
            return left, "deadline_exceeded"
        return seconds, _EXPIRED

    def _argued(self, call: Invocation, seconds: float) -> float:
        """Widen a limit by what the call's argument says it takes."""
        if self._argument is None:
            return seconds
        return max(seconds, argued_duration(call, self._argument) + DURATION_MARGIN_S)

    def _too_late(self, call: Invocation) -> ToolResult:
        return call.refuse(
            FailureCode.TIMEOUT,
            f"the time for this call of {call.tool.name} was over before it could be tried",
            reason="deadline_exceeded",
            layer=self.name,
            may_have_run=call.started,
            retryable=may_be_repeated(call),
        )

    def _given_up(self, call: Invocation, said: str, reason: str, *, was_ended: bool) -> ToolResult:
        self._count(self.name, "expired")
        if not call.begun:
            said += "; it waited for a free thread and was not begun"
        elif was_ended:
            self._count(self.name, "let_go")
            said += "; it did not stop when it was told to, and was ended"
        elif self._in_thread:
            self._count(self.name, "thread_abandoned")
            said += "; it runs in a thread that cannot be stopped, and may go on"
        return call.refuse(
            FailureCode.TIMEOUT,
            said,
            reason=reason,
            layer=self.name,
            # What only reads has no effect to look for, begun or not.
            may_have_run=None if call.tool.annotations.read_only else call.started,
            retryable=may_be_repeated(call),
        )


def _is_ours(drive: Drive[Any], end: asyncio.CancelledError | LetGo) -> bool:
    """Whether nobody but the limit ended it; else it is the caller's cancel that is raised."""
    if drive.expired and drive.settle():
        return True
    if isinstance(end, LetGo):
        raise asyncio.CancelledError from None
    return False


class _Single:
    """A wait of a length that no other shares."""

    __slots__ = ("_clock", "_timer", "seconds")

    def __init__(self, clock: Clock, seconds: float) -> None:
        self._clock = clock
        self._timer: Timer | None = None
        self.seconds = seconds

    def enter(self, waiter: Expiring, began: float | None = None) -> None:
        left_s = self.seconds
        if began is not None:
            left_s = max(began + left_s - self._clock.now(), 0.0)
        self._timer = self._clock.call_later(left_s, waiter.expire)

    def leave(self, _: Expiring) -> None:
        if self._timer is not None:
            self._timer.cancel()


def _timed(policy: RunPolicy) -> float | None:
    return None if policy.timeout_mode == "off" else policy.timeout_s


Waits = Deadlines | _Single | IdleWait


def _widened(limit_s: float | None, duration_s: float) -> float | None:
    return None if limit_s is None else max(limit_s, duration_s + DURATION_MARGIN_S)


LONGEST_ARGUED_S = 86_400
"""Seconds that an argument may widen a limit to, whatever it says."""


def argued_duration(call: Invocation, argument: str) -> float:
    """Seconds that an argument holds, or milliseconds if its name ends in `_ms`; else 0.

    One that is not given stands for its default in the tool's schema.
    """
    if call.prepared() is not None:
        return 0.0
    arguments = call.arguments
    value = arguments[argument] if argument in arguments else default_of(call.tool, argument)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return 0.0
    if not 0 < value < float("inf"):
        return 0.0
    # Bounded first: an integer may be beyond all floats.
    if argument.endswith("_ms"):
        return min(value, LONGEST_ARGUED_S * 1000) / 1000
    return float(min(value, LONGEST_ARGUED_S))


def shown_seconds(seconds: float) -> str:
    """Write a limit for a reader: `100 ms`, `30 s`."""
    return f"{seconds * 1000:.3g} ms" if seconds < 0.9995 else f"{seconds:.6g} s"
