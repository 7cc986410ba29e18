"""Layers between the real ones that hold a replay to the recorded instants.

`Begins` stands where an attempt is about to begin, `Ends` right around the time limits: a loop that
was busy came to both a little late, and what breakers and lines made of it depends on that.
`Instead` is the real fallback, but for the other tool: its calls are in the trace by themselves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from seawall.layers.fallback import Fallback

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from seawall.contract.optional_policies import FallbackPolicy
    from seawall.contract.result import ToolResult
    from seawall.orchestration.replay.plan import Plan
    from seawall.orchestration.replay.virtual import VirtualLoop
    from seawall.pipeline.invocation import Handler, Invocation
    from seawall.pipeline.layer import LayerContext


class Begins:
    """Lets an attempt begin as late after it could have begun as it did."""

    name = "begins"

    def __init__(self, plans: Mapping[str, Plan], loop: VirtualLoop) -> None:
        self._plans = plans
        self._loop = loop

    def for_tool(self, _: LayerContext) -> Begins:
        """Stand in every chain; one serves all."""
        return self

    def __call__(self, call: Invocation, proceed: Handler) -> Awaitable[ToolResult]:
        """Wait, if there is anything to wait for."""
        now = self._loop.now
        when = self._plans[call.call_id].begins_at(call.attempt + 1, now)
        return proceed(call) if when <= now else self._later(call, proceed, when)

    async def _later(self, call: Invocation, proceed: Handler, when: float) -> ToolResult:
        await self._loop.wake_at(when)
        return await proceed(call)


class Ends:
    """Lets the end of an attempt be noticed as late after it as it was."""

    name = "ends"

    def __init__(self, plans: Mapping[str, Plan], loop: VirtualLoop) -> None:
        self._plans = plans
        self._loop = loop

    def for_tool(self, _: LayerContext) -> Ends:
        """Stand in every chain; one serves all."""
        return self

    def __call__(self, call: Invocation, proceed: Handler) -> Awaitable[ToolResult]:
        """Hand on the attempt itself, where nothing of this is known."""
        plan = self._plans[call.call_id]
        return proceed(call) if plan.is_plain(call.attempt + 1) else self._kept(plan, call, proceed)

    async def _kept(self, plan: Plan, call: Invocation, proceed: Handler) -> ToolResult:
        result = await proceed(call)
        failure = result.failure
        cut = failure is not None and failure.layer == "timeout"
        when = plan.ends_at(call.attempt, self._loop.now, cut=cut)
        if when > self._loop.now:
            # Whoever watches the call is not to take it for over.
            call.live = True
            try:
                await self._loop.wake_at(when)
            finally:
                call.live = False
        return result


class Instead:
    """A recipe of the fallback whose other tool answers as `answer` says."""

    name = "fallback"

    def __init__(self, answer: Callable[[Invocation, str], Awaitable[ToolResult | None]]) -> None:
        self._answer = answer

    def for_tool(self, context: LayerContext) -> Fallback | None:
        """Nothing to do where the fallback has nothing to do."""
        policy = context.policy.fallback
        if policy is None or policy.tool == context.tool.name:
            return None
        return _Fallback(context, policy, self._answer)


class _Fallback(Fallback):
    def __init__(
        self,
        context: LayerContext,
        policy: FallbackPolicy,
        answer: Callable[[Invocation, str], Awaitable[ToolResult | None]],
    ) -> None:
        super().__init__(context, policy)
        self._answer = answer

    async def _called(self, call: Invocation, tool: str) -> ToolResult | None:
        return await self._answer(call, tool)
