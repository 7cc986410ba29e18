"""Recorded calls, played again under another policy.

Arrivals, latencies and failures are those of the trace; the layers of `LAYERS` are the real ones,
on a virtual clock. What gates, argument check and hooks refused stays
refused: they would decide the same again. Calls come when they came, whatever became of those
before them.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import msgspec

from seawall.contract.annotations import Annotations
from seawall.contract.result import ToolResult
from seawall.contract.span import Outcome
from seawall.contract.tool import Tool
from seawall.orchestration.pipeline import Pipeline
from seawall.orchestration.replay.pacing import Begins, Ends, Instead
from seawall.orchestration.replay.plan import CANCELLED, Limits, Plan, Samples, entered_ms, fraction
from seawall.orchestration.replay.virtual import VirtualClock, VirtualLoop
from seawall.pipeline.recorder import Finished, ToolRecorder
from seawall.pipeline.session import Session
from seawall.recording.metrics import Metrics
from seawall.recording.trace import TraceRecorder
from seawall.recording.usage import UsageTracker
from seawall.registry.registry import Registry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from seawall.contract.policy import RunPolicy
    from seawall.contract.span import Span
    from seawall.pipeline.invocation import Invocation
    from seawall.policy.model import Policies
    from seawall.recording.trace_file import About, Recorded, Trace

LAYERS = (
    *("fallback", "cache", "rate_limit", "bulkhead", "adaptive_limit", "exclusive"),
    *("retry", "hedge", "breaker", "timeout"),
)
"""What is played; by their names in policies."""

_PLAYED = frozenset({*LAYERS, "executor", "pipeline", ""})
_REFUSALS = frozenset({"rate_limited", "overloaded", "circuit_open", "limiter_unavailable"})
_REFUSES = {
    "rate_limited": "rate_limit",
    "limiter_unavailable": "rate_limit",
    "circuit_open": "breaker",
    "overloaded": "bulkhead",
}
"""Which layer gives such a reason, where a trace has spans alone."""
_CAME_SO_FAR = frozenset({*CANCELLED, "deadline_exceeded"})
"""What may end a call anywhere on its way: only by its instants it is known where it was."""
_TIMES = frozenset({"attempt_timeout", "deadline_exceeded"})


class Ended(msgspec.Struct, frozen=True, gc=False):
    """How a call ended, in the trace or in a replay."""

    outcome: Outcome
    reason: str
    attempts: int
    elapsed_s: float
    shadowed: int = 0
    """Refusals that layers in shadow mode would have made."""
    layer: str = ""
    """Which layer refused it, as policies name it; of no meaning where none did."""

    @property
    def refused(self) -> bool:
        """Whether a limit refused it before anything ran."""
        return self.outcome is Outcome.DENIED and self.reason in (*_REFUSALS, "deadline_exceeded")

    @property
    def timed_out(self) -> bool:
        """Whether it ran out of time."""
        return self.outcome is Outcome.FAILED and self.reason in _TIMES

    @property
    def good(self) -> bool:
        """Whether it was answered."""
        return self.outcome is Outcome.SUCCESS

    def same(self, other: Ended) -> bool:
        """Whether both ended in the same way, after as many attempts."""
        mine = (self.outcome, self.reason, self.attempts)
        return mine == (other.outcome, other.reason, other.attempts)


def recorded_end(call: Recorded) -> Ended:
    """Tell how a recorded call ended."""
    last = call.spans[-1]
    outcome, reason = call.outcome, call.reason
    if call.layer not in _PLAYED:  # of a hook, after the last attempt
        outcome, reason = last.outcome, last.reason
    elapsed_ms = call.end.elapsed_ms if call.end else last.queue_ms + last.duration_ms
    shadowed = max(map(_would_refuse, call.spans))
    layer = call.layer or _REFUSES.get(reason, "")
    return Ended(outcome, reason, call.attempts, elapsed_ms / 1000, shadowed, layer)


def _would_refuse(span: Span) -> int:
    return sum(":would_refuse" in verdict for verdict in span.verdicts)


def is_played(call: Recorded) -> bool:
    """Whether a call came past the gates, so that the layers that are played decide on it."""
    if not call.spans or call.spans[-1].outcome is Outcome.SKIPPED:
        return False
    if call.attempts or call.outcome is Outcome.SUCCESS:
        return True
    last = call.spans[-1]
    if call.reason in _CAME_SO_FAR:
        if last.rated_ms is not None:
            return True
        if last.instants is not None:
            return last.instants.lined_ms is not None
    if call.layer:
        return call.layer in LAYERS
    return call.reason in _REFUSALS


def tools_of(trace: Trace, given: Iterable[Tool] = ()) -> dict[str, Tool]:
    """Make the tools that policies choose by, as recorded, or as given where they are."""
    known = {tool.name: tool for tool in given}
    names = dict.fromkeys(call.tool for call in trace.calls)
    return {name: known.get(name) or _tool(name, trace.tools.get(name)) for name in names}


def _tool(name: str, about: About | None) -> Tool:
    if about is None:
        return Tool(name, "", {"type": "object"}, _nothing)
    hints = {key: value for key, value in about.hints.items() if key in _HINTS}
    return Tool(
        name,
        "",
        {"type": "object"},
        _nothing,
        annotations=Annotations(**hints),
        imported=about.imported,
        family=about.family,
        category=about.category or "utility",
        tags=about.tags,
        duration=about.duration,
        exclusive=about.exclusive,
    )


_HINTS = frozenset(Annotations.__struct_fields__)


async def _nothing(arguments: dict[str, Any], context: Any) -> None:
    """Do nothing; a replay puts recorded answers in this place."""


class Simulation:
    """One replay. `run` gives how each call ended, in the order of the trace; None: not played."""

    def __init__(
        self,
        trace: Trace,
        policies: Policies,
        *,
        tools: Mapping[str, Tool] | None = None,
        live: Policies | None = None,
        seed: int = 0,
    ) -> None:
        self._calls = trace.calls
        self._tools = tools_of(trace) if tools is None else dict(tools)
        self._seed = seed
        # typeshed has methods as abstract that the base class only raises from.
        self._loop = VirtualLoop()  # type: ignore[abstract]  # as said
        self._clock = VirtualClock(self._loop)
        self._plans: dict[str, Plan] = {}
        self._tasks: dict[asyncio.Task[Any] | None, Plan] = {}
        self._shadowed: dict[str, int] = {}
        self._ended: list[Ended | None] = [None] * len(self._calls)
        self._sessions: dict[tuple[str, str], Session] = {}
        self._samples = _samples(self._calls, self._tools)
        self._live = {name: _limits(tool, live) for name, tool in self._tools.items()}
        self.policies = {name: policies.for_tool(tool) for name, tool in self._tools.items()}
        """What each tool is played under."""
        self.turned: dict[str, list[float]] = {}
        """By tool, when its circuit changed."""
        self.left: dict[str, list[float]] = {}
        """By tool, when calls of it ended."""
        self.short: dict[int, float] = {}
        """By the number of a refused call, how much later it would have been let through."""
        self._pipeline = self._made(policies)

    def run(self) -> list[Ended | None]:
        """Play all calls."""
        self._loop.run(self._all())
        return self._ended

    def _made(self, policies: Policies) -> Pipeline:
        begins, ends = Begins(self._plans, self._loop), Ends(self._plans, self._loop)
        before = {"retry": (begins,), "breaker": (begins,), "timeout": (ends,)}
        layers: list[Any] = [
            layer for name in LAYERS[1:] for layer in (*before.get(name, ()), name)
        ]
        layers.insert(0, Instead(self._answered))
        registry = Registry([_played(tool, self._execute) for tool in self._tools.values()])
        return Pipeline(
            registry,
            policies=policies,
            layers=layers,
            loop=None,
            trace=_NoTrace(0, clock=self._clock),
            usage=_NoUsage(self._clock),
            metrics=_NoMetrics(),
            recorders=[self],
            clock=self._clock,
            chance=_ReplayChance(self),
            digest_key=b"replay",
        )

    async def _all(self) -> None:
        calls, loop = self._calls, self._loop
        visits = sorted(
            (call.arrival_s + entered_ms(call) / 1000, number)
            for number, call in enumerate(calls)
            if is_played(call)
        )
        if not visits:
            return
        self._under_way = len(visits)
        self._over = loop.create_future()
        loop.expect(visits, self._visit)
        await self._over

    def _visit(self, number: int) -> None:
        call = self._calls[number]
        plan = Plan(call, self._samples[call.tool], self._seed, self._live[call.tool])
        self._plans[str(number)] = plan
        task = self._loop.create_task(self._one(number, plan))
        self._tasks[task] = plan
        cancelled_at = plan.cancelled_at
        if cancelled_at is not None:
            self._loop.call_at(cancelled_at, task.cancel)

    async def _one(self, number: int, plan: Plan) -> None:
        name, call = str(number), plan.call
        policy = self.policies[call.tool]
        digest = call.spans[-1].digest
        arguments = {} if policy.cache is None or digest is None else {"digest": digest.mac}
        try:
            await self._pipeline.call(
                call.tool,
                arguments,
                call_id=name,
                session=self._session(call),
                timeout_s=plan.own_timeout_s,
                deadline_s=plan.deadline_s(policy.deadline_s),
            )
        except asyncio.CancelledError:
            self._ended[number] = self._ended[number] or recorded_end(call)
        finally:
            del self._tasks[asyncio.current_task()], self._plans[name]
            self._shadowed.pop(name, None)
            self._under_way -= 1
            if not self._under_way:
                self._over.set_result(None)

    def _session(self, call: Recorded) -> Session:
        end = call.end
        key = ("", "") if end is None else (end.caller, end.session)
        found = self._sessions.get(key)
        if found is None:
            found = self._sessions[key] = Session(key[1], caller=key[0])
        return found

    async def _execute(self, _: dict[str, Any], context: Any) -> Any:
        plan, now = self._plans[context.call_id], self._loop.now
        step = plan.play(context.attempt, now)
        if step.seconds > 0:
            await self._loop.wake_at(plan.over_at(context.attempt, now, step.seconds))
        if not step.reason:
            return ""
        return ToolResult.of_failure(step.failure())

    async def _answered(self, call: Invocation, tool: str) -> ToolResult | None:
        """Give what another tool would have answered at this time."""
        samples = self._samples.get(tool)
        plan = self._plans.get(call.call_id)
        if samples is None or plan is None:
            return None
        share = fraction(self._seed, plan.call.call_id, 0, "instead")
        span = samples.near(self._loop.now, share)
        if span is None:
            return None
        await self._clock.sleep(span.duration_ms / 1000)
        return ToolResult() if span.outcome is Outcome.SUCCESS else None

    def wait_s(self, low: float, high: float) -> float:
        """Give the wait of the call that is being retried now."""
        return self._tasks[asyncio.current_task()].wait_s(low, high)

    def for_tool(self, tool: str) -> ToolRecorder:
        """Listen to how calls end, and when circuits change."""
        turned = self.turned.setdefault(tool, [])

        def event(layer: str, _: str) -> None:
            if layer == "breaker":
                turned.append(self._loop.now)

        watched = is_shadowed(self.policies[tool])
        return ToolRecorder(
            on_attempt=self._attempt if watched else None, on_call=self._call, on_event=event
        )

    def unknown(self) -> None:
        """Nothing unknown is played."""

    def _attempt(self, span: Span) -> None:
        if not span.verdicts:
            return
        found = _would_refuse(span)
        if not found:
            return
        self._shadowed[span.call_id] = found
        number = int(span.call_id)
        ended = self._ended[number]
        if ended is not None and found > ended.shadowed:  # the span of one that lost a race
            self._ended[number] = msgspec.structs.replace(ended, shadowed=found)

    def _call(self, finished: Finished) -> None:
        number = int(finished.call_id)
        call = self._calls[number]
        reason, result = finished.reason, finished.result
        if result is not None and result.failure is not None:
            if finished.layer == "executor":
                reason = result.failure.message
            elif result.failure.retry_after_s is not None:
                self.short[number] = result.failure.retry_after_s
        self.left.setdefault(call.tool, []).append(self._loop.now)
        self._ended[number] = Ended(
            finished.outcome,
            reason,
            finished.attempts,
            finished.elapsed_s + entered_ms(call) / 1000,
            self._shadowed.get(finished.call_id, 0),
            finished.layer,
        )


class _NoTrace(TraceRecorder):
    def for_tool(self, tool: str) -> ToolRecorder:  # noqa: ARG002  # whatever the tool
        return ToolRecorder()


class _NoUsage(UsageTracker):
    def for_tool(self, tool: str) -> ToolRecorder:  # noqa: ARG002  # whatever the tool
        return ToolRecorder()


class _NoMetrics(Metrics):
    def for_tool(self, tool: str) -> ToolRecorder:  # noqa: ARG002  # whatever the tool
        return ToolRecorder()


def is_shadowed(policy: RunPolicy) -> bool:
    """Whether any layer of it only says what it would have done."""
    sections = (policy.breaker, policy.adaptive_limit, policy.retry_budget)
    modes = [policy.rate_mode, policy.timeout_mode, policy.max_concurrency_mode]
    return "shadow" in (*modes, *(section.mode for section in sections if section is not None))


def _samples(calls: Iterable[Recorded], tools: Iterable[str]) -> dict[str, Samples]:
    by_tool: dict[str, list[Recorded]] = {name: [] for name in tools}
    for call in calls:
        by_tool[call.tool].append(call)
    return {name: Samples(found) for name, found in by_tool.items()}


def _limits(tool: Tool, live: Policies | None) -> Limits:
    """Give the limits that a tool was recorded under, where they are known."""
    if live is None:
        return Limits()
    policy = live.for_tool(tool)
    timed = policy.timeout_mode == "on" and not tool.duration
    return Limits(policy.timeout_s if timed else None, policy.deadline_s)


class _ReplayChance:
    """Waits as they were recorded, or drawn for the call; nothing else is left to chance."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation

    def uniform(self, low: float, high: float) -> float:
        return self._simulation.wait_s(low, high)

    def integer(self, low: int, high: int) -> int:  # noqa: ARG002  # nothing that is played asks
        return low

    def token(self, n: int) -> str:
        return "0" * 2 * n


def _played(tool: Tool, execute: Callable[..., Any]) -> Tool:
    """Give a tool with the same marks, whose answers are recorded ones."""
    return msgspec.structs.replace(
        tool,
        executor=execute,
        input_schema={"type": "object"},
        output_schema=None,
        exclusive=None if (tool.exclusive or "$").startswith("$") else tool.exclusive,
        examples=(),
        prepare_arguments=None,
        check=None,
    )
