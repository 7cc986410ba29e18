"""Bound how many calls of a tool are under way at once.

A call beyond the bound waits in line, first come, first served, until its deadline or for as long
as one attempt may take; when the line is full it is refused at once. Outside of `retry`: a call
keeps its place while it waits for its next attempt.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from seawall.layers.line import LINE_PER_PLACE, Line
from seawall.layers.room import Room

if TYPE_CHECKING:
    from seawall.contract.result import ToolResult
    from seawall.pipeline.invocation import Handler, Invocation
    from seawall.pipeline.layer import LayerContext


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
        self._shadow = policy.max_concurrency_mode == "shadow"
        self._limit = limit
        self._count = context.count
        self._line = Line(
            self.name,
            self._room,
            context.clock,
            policy.timeout_s,
            lambda: self._count(self.name, "waited"),
        )
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
            refusal = await self._line.wait(call, self._longest_line)
            if refusal is not None:
                return refusal
        era = room.era
        try:
            return await proceed(call)
        finally:
            if era == room.era:
                room.leave()

    def _note(self, call: Invocation, room: Room) -> None:
        """Say what would have happened; only beyond the line would there have been a refusal."""
        if room.in_flight <= self._limit + self._longest_line:
            call.note(f"{self.name}:would_wait")
            return
        self._count(self.name, "shadow_refused")
        call.note(f"{self.name}:would_refuse:overloaded")
