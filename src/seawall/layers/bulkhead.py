"""Bound how many calls of a tool are under way at once.

A call beyond the bound waits in line, first come, first served, until its deadline or for as long
as one attempt may take; when the line is full it is refused at once. Outside of `retry`: a call
keeps its place while it waits for its next attempt.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from seawall.contract.failure import FailureCode
from seawall.layers.room import Room

if TYPE_CHECKING:
    from seawall.contract.result import ToolResult
    from seawall.pipeline.invocation import Handler, Invocation
    from seawall.pipeline.layer import LayerContext

LINE_PER_PLACE = 4
"""Calls that may wait, for each that may be under way."""


class Bulkhead:
    """Lets `max_concurrency` calls through at once; others wait, or are refused.

    The room is kept in the tool's slot `bulkhead`: `in_flight`, `waiting` and `limit` tell how it
    stands. A changed limit counts at once, for the calls in line too.
    """

    name = "bulkhead"

    def __init__(self, context: LayerContext, limit: int) -> None:
        policy = context.policy
        self._room = context.slots.slot(self.name, Room)
        self._longest_line = limit * LINE_PER_PLACE
        self._wait_s = policy.timeout_s
        self._shadow = policy.max_concurrency_mode == "shadow"
        self._limit = limit
        self._clock = context.clock
        self._count = context.count
        # In shadow mode nobody is held up, not even behind the calls of an earlier policy.
        self._room.resize(math.inf if self._shadow else limit)

    @classmethod
    def for_tool(cls, context: LayerContext) -> Bulkhead | None:
        """Nothing to do without a bound; calls that wait for a bound that is gone go on."""
        limit = context.policy.max_concurrency
        if limit is None or context.policy.max_concurrency_mode == "off":
            room = context.slots.find(cls.name)
            if room is not None:
                room.resize(math.inf)
            return None
        return cls(context, limit)

    async def __call__(self, call: Invocation, proceed: Handler) -> ToolResult:
        """Take a place, or wait for one; give it back whatever happens."""
        room = self._room
        if room.in_flight < room.limit and not room.line:
            room.in_flight += 1
            if self._shadow and room.in_flight > self._limit:
                self._note(call, room)
        else:
            refusal = await self._wait(call, room)
            if refusal is not None:
                return refusal
        era = room.era
        try:
            return await proceed(call)
        finally:
            if era == room.era:
                room.leave()

    async def _wait(self, call: Invocation, room: Room) -> ToolResult | None:
        if room.waiting >= self._longest_line:
            return self._overloaded(call, f"and {room.waiting} more wait already")
        seconds, by_deadline = self._patience(call)
        if seconds is not None and seconds <= 0:
            return self._too_late(call)
        inside = _around(call)
        if inside and room.is_stuck(inside):
            return self._overloaded(call, "and all of them wait for calls like this one")
        self._count(self.name, "waited")
        entered = await room.wait(self._clock, seconds, inside)
        return None if entered else self._gave_up(call, seconds, by_deadline=by_deadline)

    def _patience(self, call: Invocation) -> tuple[float | None, bool]:
        """Seconds to wait in line at most, and whether the call's deadline is what sets them."""
        wait_s = self._wait_s if call.timeout_s is None else call.timeout_s
        if call.deadline is None:
            return wait_s, False
        left_s = call.deadline - self._clock.now()
        return (left_s, True) if wait_s is None or left_s <= wait_s else (wait_s, False)

    def _note(self, call: Invocation, room: Room) -> None:
        """Say what would have happened; only beyond the line would there have been a refusal."""
        if room.in_flight <= self._limit + self._longest_line:
            call.note(f"{self.name}:would_wait")
            return
        self._count(self.name, "shadow_refused")
        call.note(f"{self.name}:would_refuse:overloaded")

    def _overloaded(self, call: Invocation, said: str) -> ToolResult:
        return call.refuse(
            FailureCode.RATE_LIMITED,
            f"{call.tool.name} is busy: calls of it under way: {self._room.in_flight}, {said}",
            reason="overloaded",
            layer=self.name,
            guidance="Wait for answers that are still out, then try again; or go on without it.",
        )

    def _gave_up(self, call: Invocation, seconds: float | None, *, by_deadline: bool) -> ToolResult:
        if by_deadline:
            return self._too_late(call)
        return self._overloaded(call, f"and there was no place within {seconds or 0:g} s")

    def _too_late(self, call: Invocation) -> ToolResult:
        return call.refuse(
            FailureCode.TIMEOUT,
            f"{call.tool.name} was busy until the time for this call was over; it was not begun",
            reason="deadline_exceeded",
            layer=self.name,
        )


def _around(call: Invocation) -> list[Invocation]:
    """Give the calls of the same tool that wait for this one, as their tools make it."""
    found = []
    outer = call.outer
    while outer is not None:
        if outer.tool.name == call.tool.name:
            found.append(outer)
        outer = outer.outer
    return found
