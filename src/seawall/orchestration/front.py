# ruff: noqa: SLF001  # the one file that looks inside the pipeline, for those who call in a row
"""What steps that run in a row need of their pipeline beyond its public face."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import msgspec

from seawall.contract.span import Outcome
from seawall.layers.risk_gate import Gate, RiskGate
from seawall.pipeline.context import MAX_DEPTH
from seawall.pipeline.invocation import Invocation
from seawall.pipeline.layer import LayerContext
from seawall.pipeline.session import Session

if TYPE_CHECKING:
    from collections.abc import Mapping

    from seawall.contract.result import ToolResult
    from seawall.orchestration.pipeline import Pipeline
    from seawall.pipeline.context import ToolContext
    from seawall.pipeline.route import Route


class Frame(msgspec.Struct, frozen=True, kw_only=True):
    """What steps share: whose they are, when their time is over, how deep they are called."""

    session: Session
    batch_id: str
    depth: int = 0
    deadline: float | None = None
    """Monotonic seconds."""
    outer: Invocation | None = None
    """The call of the tool that runs the steps; None if the program does."""

    def ending(self, deadline: float) -> Frame:
        """The same, to end at `deadline` at the latest."""
        if self.deadline is not None and self.deadline <= deadline:
            return self
        return msgspec.structs.replace(self, deadline=deadline)


class Front:
    """A pipeline, as seen by what calls its tools in a row."""

    def __init__(self, pipeline: Pipeline) -> None:
        self.pipeline = pipeline
        self.clock = pipeline.clock
        self.gate: Gate = pipeline._gate
        self.has_gate = RiskGate in pipeline._builder._layers

    def frame(self, session: Session | None) -> Frame:
        """Make the frame of steps that the program itself runs."""
        pipeline = self.pipeline
        pipeline._home.enter()
        return Frame(session=session or pipeline._session, batch_id=self._new_id())

    def frame_of(self, context: ToolContext) -> Frame:
        """Make the frame of steps that a running tool runs."""
        call = context._call
        return Frame(
            session=call.session,
            batch_id=call.batch_id or self._new_id(),
            depth=call.depth + 1,
            deadline=call.deadline,
            outer=call,
        )

    def new_batch(self, frame: Frame) -> Frame:
        """The same, for a batch of its own."""
        return msgspec.structs.replace(frame, batch_id=self._new_id())

    def _new_id(self) -> str:
        return f"batch-{self.pipeline._chance.token(8)}"

    def route(self, name: str) -> Route | None:
        """The tool's chain as it is now."""
        return self.pipeline._routes.get(name)

    def unknown(self, name: str, session: Session) -> ToolResult:
        """Say that a name cannot be called, and why."""
        return self.pipeline._not_callable(name, None, session)

    def is_too_deep(self, frame: Frame) -> bool:
        """Whether a call in this frame would be deeper than tools may call tools."""
        return frame.depth >= MAX_DEPTH

    def call(self, route: Route, arguments: Mapping[str, Any], frame: Frame) -> Invocation:
        """Make one call, without running it."""
        pipeline = self.pipeline
        call = pipeline._invocation(route, arguments, pipeline._new_id(), frame.session)
        call.depth = frame.depth
        call.batch_id = frame.batch_id
        if frame.outer is not None:
            call.belongs_to(frame.outer, hooked=pipeline._hooked)
        return call

    async def run(self, route: Route, call: Invocation, frame: Frame) -> ToolResult:
        """Run a call through all its layers, in what is left of the frame's time."""
        left_s = route.policy.deadline_s
        if frame.deadline is not None:
            own_s = frame.deadline - self.clock.now()
            left_s = own_s if left_s is None else min(left_s, own_s)
        running = self.pipeline._run(route, call, None, left_s)
        if frame.outer is None:
            return await running
        # A limit cancels the task that its call runs in. In a task of its own, that of a step
        # cannot be taken for one of the tool around it.
        return await asyncio.ensure_future(running)

    def left_out(self, route: Route, call: Invocation) -> None:
        """Record the span of a step that was not executed because an earlier one failed."""
        now = self.clock.now()
        route._span(call, 0, call.arrived, Outcome.SKIPPED, "not_executed", now)

    def gate_of(self, route: Route, gate: Gate) -> RiskGate | None:
        """Make the risk gate of a tool, with somebody else to ask; None if it has none."""
        pipeline = self.pipeline
        if not self.has_gate:
            return None
        context = LayerContext(
            route.tool,
            route.policy,
            self.clock,
            pipeline._chance,
            pipeline.states,
            route._counting.event,
            {Gate: gate},
        )
        return RiskGate.for_tool(context)
