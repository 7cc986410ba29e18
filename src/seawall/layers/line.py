"""Waiting for a place in a room, and saying why there was none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seawall.contract.failure import FailureCode

if TYPE_CHECKING:
    from collections.abc import Callable

    from seawall.contract.result import ToolResult
    from seawall.layers.room import Room
    from seawall.pipeline.clock import Clock
    from seawall.pipeline.invocation import Invocation

LINE_PER_PLACE = 4
"""Calls that may wait, for each that may be under way."""


class Line:
    """The line before a layer's room: bounded, and no longer than an attempt or a deadline."""

    def __init__(
        self,
        layer: str,
        room: Room,
        clock: Clock,
        wait_s: float | None,
        waited: Callable[[], None],
    ) -> None:
        self._layer = layer
        self._room = room
        self._clock = clock
        self._wait_s = wait_s
        self._waited = waited

    async def wait(self, call: Invocation, longest: int) -> ToolResult | None:
        """Wait for a place unless `longest` wait already; the refusal if none was taken."""
        room = self._room
        if room.waiting >= longest:
            return self._overloaded(call, f"and {room.waiting} more wait already")
        seconds, by_deadline = self._patience(call)
        if seconds is not None and seconds <= 0:
            return self._too_late(call)
        inside = _around(call)
        if inside and room.is_stuck(inside):
            return self._overloaded(call, "and all of them wait for calls like this one")
        self._waited()
        call.lines_up(self._clock.now())
        admitted = await room.wait(self._clock, seconds, inside)
        if admitted is None:
            return self._gave_up(call, seconds, by_deadline=by_deadline)
        call.mark("admitted", admitted)
        return None

    def _patience(self, call: Invocation) -> tuple[float | None, bool]:
        """Seconds to wait in line at most, and whether the call's deadline is what sets them."""
        wait_s = self._wait_s if call.timeout_s is None else call.timeout_s
        if call.deadline is None:
            return wait_s, False
        left_s = call.deadline - self._clock.now()
        return (left_s, True) if wait_s is None or left_s <= wait_s else (wait_s, False)

    def _gave_up(self, call: Invocation, seconds: float | None, *, by_deadline: bool) -> ToolResult:
        if by_deadline:
            return self._too_late(call)
        return self._overloaded(call, f"and there was no place within {seconds or 0:g} s")

    def _overloaded(self, call: Invocation, said: str) -> ToolResult:
        return call.refuse(
            FailureCode.RATE_LIMITED,
            f"{call.tool.name} is busy: calls of it under way: {self._room.in_flight}, {said}",
            reason="overloaded",
            layer=self._layer,
            guidance="Wait for answers that are still out, then try again; or go on without it.",
        )

    def _too_late(self, call: Invocation) -> ToolResult:
        return call.refuse(
            FailureCode.TIMEOUT,
            f"{call.tool.name} was busy until the time for this call was over; it was not begun",
            reason="deadline_exceeded",
            layer=self._layer,
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
