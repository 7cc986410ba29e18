"""What steps that run in a row need of their pipeline beyond its public face."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from seawall.pipeline.aside import Alone
from seawall.pipeline.context import MAX_DEPTH, call_of
from seawall.pipeline.invocation import Invocation
from seawall.pipeline.session import Session

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from seawall.contract.decision import Prepared
    from seawall.contract.result import ToolResult
    from seawall.layers.risk_gate import Gate, RiskGate
    from seawall.pipeline.clock import Clock
    from seawall.pipeline.context import ToolContext
    from seawall.pipeline.route import Route


class Frame(msgspec.Struct, frozen=True, kw_only=True):
    """What steps share: whose they are, when their time is over, how deep they are called."""

    session: Session
    batch_id: str
    depth: int = 0
    deadline: float | None = None
    """Monotonic seconds."""
    alone: Alone | None = None
    """What hooks end where the program runs the steps: all that are left."""
    outer: Invocation | None = None
    """The call of the tool that runs the steps; None if the program does."""

    def ending(self, deadline: float) -> Frame:
        """The same, to end at `deadline` at the latest."""
        if self.deadline is not None and self.deadline <= deadline:
            return self
        return msgspec.structs.replace(self, deadline=deadline)


class RowDoors(NamedTuple):
    """What it is that they need."""

    clock: Clock
    prepare: Callable[..., Prepared | ToolResult]
    enter: Callable[[], None]
    """To be called in the loop, before the first call."""
    session: Session
    """Of calls that bring none."""
    new_id: Callable[[], str]
    route_of: Callable[[str], Route | None]
    not_callable: Callable[[str, Session], ToolResult]
    """Answers for a name that cannot be called."""
    invocation: Callable[[Route, Any, Session, Invocation | None], Invocation]
    run: Callable[[Route, Invocation, float | None, float | None], Awaitable[ToolResult]]
    gate: Callable[[], Gate]
    """Who decides about calls now: policies may be replaced."""
    gate_of: Callable[[Route, Gate], RiskGate | None]
    own_name: Callable[[str], str | None] = lambda name: name
    """The name of the tool that a model means."""


class Front:
    """A pipeline, as seen by what calls its tools in a row."""

    def __init__(self, doors: RowDoors) -> None:
        self._doors = doors
        self.clock = doors.clock
        self.prepare = doors.prepare
        """Says what would run, or why not; runs nothing."""
        self.route = self._doors.route_of
        """The tool's chain as it is now."""
        self.unknown = self._doors.not_callable
        """Says that a name cannot be called, and why."""
        self.own_name = self._doors.own_name
        """The name of the tool that a model means, or None if there is none."""
        self.gate_of = self._doors.gate_of
        """Makes the risk gate of a tool, with somebody else to ask; None if it has none."""

    @property
    def gate(self) -> Gate:
        """Who decides about calls now."""
        return self._doors.gate()

    def frame(self, session: Session | None) -> Frame:
        """Make the frame of steps that the program itself runs."""
        doors = self._doors
        doors.enter()
        return Frame(session=session or doors.session, batch_id=doors.new_id(), alone=Alone())

    def frame_of(self, context: ToolContext) -> Frame:
        """Make the frame of steps that a running tool runs."""
        call = call_of(context)
        return Frame(
            session=call.session,
            batch_id=call.batch_id or self._doors.new_id(),
            depth=call.depth + 1,
            deadline=call.deadline,
            outer=call,
        )

    def new_batch(self, frame: Frame) -> Frame:
        """The same, for a batch of its own."""
        return msgspec.structs.replace(frame, batch_id=self._doors.new_id())

    def is_too_deep(self, frame: Frame) -> bool:
        """Whether a call in this frame would be deeper than tools may call tools."""
        return frame.depth >= MAX_DEPTH

    def call(self, route: Route, arguments: Mapping[str, Any], frame: Frame) -> Invocation:
        """Make one call, without running it."""
        call = self._doors.invocation(route, arguments, frame.session, frame.outer)
        call.batch_id = frame.batch_id
        if frame.alone is not None:
            call.beside().turn = frame.alone
        return call

    async def run(self, route: Route, call: Invocation, frame: Frame) -> ToolResult:
        """Run a call through all its layers, in what is left of the frame's time."""
        left_s = route.policy.deadline_s
        if frame.deadline is not None:
            own_s = frame.deadline - self.clock.now()
            left_s = own_s if left_s is None else min(left_s, own_s)
        running = self._doors.run(route, call, None, left_s)
        if frame.outer is None:
            return await running
        # A limit cancels the task that its call runs in. In a task of its own, that of a step
        # cannot be taken for one of the tool around it.
        return await frame.outer.hears_of(call, asyncio.ensure_future(running))
