"""Running one call: the loop detector first, then its chain, under its limits; then the books."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seawall.contract.failure import FailureCode
from seawall.pipeline.clock import Clock, Deadlines, Limit
from seawall.pipeline.convert import may_be_repeated

if TYPE_CHECKING:
    from seawall.contract.result import ToolResult
    from seawall.orchestration.loop import LoopDetector
    from seawall.pipeline.invocation import Handler, Invocation
    from seawall.pipeline.route import Route
    from seawall.recording.audit import Audit

_AT_LEAST_S = 0.05
"""Seconds until a deadline looks again whether an attempt that outlived it has ended."""


class Running:
    """Runs the calls of one pipeline."""

    def __init__(self, clock: Clock, audit: Audit | None) -> None:
        self._clock = clock
        self._audit = audit

    async def run(
        self,
        route: Route,
        call: Invocation,
        timeout_s: float | None,
        deadline_s: float | None,
        watch: LoopDetector | None = None,
    ) -> ToolResult:
        """Give what comes of it; raises what breaks it off, once the books know."""
        recent = call.session.recent
        if recent is not None and recent.hot and watch is not None:
            refusal = watch.refusal(call, route.digest, route.count)
            if refusal is not None:
                return await self._audited(route, call, refusal)
        if deadline_s is None:
            deadline_s = route.policy.deadline_s
        calls = route.calls
        calls.count += 1
        try:
            if timeout_s is None and deadline_s is None and call.aside is None:
                result = await route.handle(call)
            else:
                result = await self._within(route, call, timeout_s, deadline_s)
        except BaseException as error:
            route.broken_off(call, error)
            raise
        finally:
            calls.count -= 1
        if watch is not None:
            result = watch.seen(call, result, route.digest(call))
        if self._audit is not None:
            return await self._audited(route, call, result)
        return route.finish(call, result)

    async def _audited(self, route: Route, call: Invocation, result: ToolResult) -> ToolResult:
        """Close the books of a call, and wait for the entry if it is one to be waited for."""
        try:
            result = await route.spilled(call, result)
            if self._audit is not None and self._audit.due:
                await self._audit.settle()
        except BaseException:
            if call.aside is not None:
                call.aside.lost()
            raise
        return result

    async def _within(
        self, route: Route, call: Invocation, timeout_s: float | None, deadline_s: float | None
    ) -> ToolResult:
        """Run in a turn, under limits of the caller's, or under the policy's deadline."""
        call.timeout_s = timeout_s
        handle: Handler = route.with_limits()
        if deadline_s is None:
            return await handle(call)
        call.deadline = call.arrived + deadline_s
        shared = route.deadlines if deadline_s == route.policy.deadline_s else None
        limit = _Deadline(self._clock, deadline_s, call, shared)
        if call.aside is not None:
            call.aside.limit = limit
        with limit:
            return await handle(call)
        if call.aside is not None:
            call.aside.lost()
        return call.refuse(
            FailureCode.TIMEOUT,
            f"{call.tool.name} was not answered within the {deadline_s:g} s for the whole call",
            reason="deadline_exceeded",
            layer="pipeline",
            may_have_run=call.started,
            retryable=may_be_repeated(call),
        )


class _Deadline(Limit):
    """Cuts gates and waits short; an attempt that runs is cut by its own layer, with a grace."""

    __slots__ = ("_call", "_paused")

    def __init__(
        self, clock: Clock, seconds: float, call: Invocation, shared: Deadlines | None
    ) -> None:
        super().__init__(clock, seconds, shared)
        self._call = call
        self._paused = 0.0

    def expire(self) -> None:
        call = self._call
        if not call.live:
            super().expire()
            return
        # What comes after the attempt, such as a hook, is cut too if it takes as long again.
        again_s = max(call.policy.grace_s, _AT_LEAST_S)
        self._timer = self._clock.call_later(again_s, self.expire)

    def pause(self) -> None:
        """Let no time pass while a turn holds the call for reasons that are not its own."""
        self.stop()
        self._paused = self._clock.now()

    def resume(self) -> None:
        """Go on, with as much time left as there was."""
        now = self._clock.now()
        if self._call.deadline is not None and not self.expired:
            self._call.deadline += now - self._paused
            self._timer = self._clock.call_later(max(self._call.deadline - now, 0), self.expire)
