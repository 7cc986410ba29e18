"""Recorded calls, played again under another policy.

Arrivals, latencies and failures are those of the trace; rate limit, bulkhead, retry, breaker and
timeout are the real layers, on a virtual clock. What gates, argument check and hooks refused stays
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
from seawall.orchestration.replay.plan import Plan, Samples
from seawall.orchestration.replay.virtual import VirtualClock, VirtualLoop
from seawall.pipeline.recorder import Finished, ToolRecorder
from seawall.pipeline.session import Session
from seawall.recording.trace import TraceRecorder
from seawall.registry.registry import Registry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from seawall.contract.policy import RunPolicy
    from seawall.contract.span import Span
    from seawall.policy.model import Policies
    from seawall.recording.trace_file import About, Recorded, Trace

LAYERS = ("rate_limit", "bulkhead", "adaptive_limit", "retry", "breaker", "timeout")
"""What is played; by their names in policies."""

_PLAYED = frozenset({*LAYERS, "executor", "pipeline", ""})
_REFUSALS = frozenset({"rate_limited", "overloaded", "circuit_open", "limiter_unavailable"})
_TIMES = frozenset({"attempt_timeout", "deadline_exceeded"})


class Ended(msgspec.Struct, frozen=True, gc=False):
    """How a call ended, in the trace or in a replay."""

    outcome: Outcome
    reason: str
    attempts: int
    elapsed_s: float
    shadowed: int = 0
    """Refusals that layers in shadow mode would have made."""

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
    shadowed = sum(":would_refuse" in verdict for verdict in last.verdicts)
    return Ended(outcome, reason, call.attempts, elapsed_ms / 1000, shadowed)


def is_played(call: Recorded) -> bool:
    """Whether a call came past the gates, so that the layers that are played decide on it."""
    if not call.spans or call.spans[-1].outcome is Outcome.SKIPPED:
        return False
    if call.attempts:
        return True
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
        self._policies = policies
        self._live = live or policies
        self._seed = seed
        # typeshed has methods as abstract that the base class only raises from.
        self._loop = VirtualLoop()  # type: ignore[abstract]  # as said
        self._clock = VirtualClock(self._loop)
        self._plans: dict[str, Plan] = {}
        self._tasks: dict[asyncio.Task[Any] | None, Plan] = {}
        self._shadowed: dict[str, int] = {}
        self._ended: list[Ended | None] = [None] * len(self._calls)
        self._sessions: dict[tuple[str, str], Session] = {}
        self._waits = {name: self._waits_outside(tool) for name, tool in self._tools.items()}
        self._limits = {
            name: None if live is None else _limit_s(tool, live.for_tool(tool))
            for name, tool in self._tools.items()
        }
        self._pipeline = self._made()

    def run(self) -> list[Ended | None]:
        """Play all calls."""
        self._loop.run(self._all())
        return self._ended

    def _made(self) -> Pipeline:
        by_tool: dict[str, list[Recorded]] = {name: [] for name in self._tools}
        for call in self._calls:
            by_tool[call.tool].append(call)
        self._samples = {name: Samples(calls) for name, calls in by_tool.items()}
        registry = Registry([_played(tool, self._execute) for tool in self._tools.values()])
        return Pipeline(
            registry,
            policies=self._policies,
            layers=LAYERS,
            loop=None,
            trace=TraceRecorder(0, clock=self._clock),
            recorders=[self],
            clock=self._clock,
            chance=_ReplayChance(self),
            digest_key=b"replay",
        )

    def _waits_outside(self, tool: Tool) -> bool:
        """Whether a call's time before its first attempt was spent outside of what is played."""
        policy = self._live.for_tool(tool)
        bounded = policy.max_concurrency is not None and policy.max_concurrency_mode == "on"
        return not bounded and policy.adaptive_limit is None

    async def _all(self) -> None:
        under_way: set[asyncio.Task[None]] = set()
        for number, call in enumerate(self._calls):
            if not is_played(call):
                continue
            wait_s = call.arrival_s - self._loop.now
            if wait_s > 0:
                await self._clock.sleep(wait_s)
            task = self._loop.create_task(self._one(number, call))
            under_way.add(task)
            task.add_done_callback(under_way.discard)
        while under_way:
            await next(iter(under_way))

    async def _one(self, number: int, call: Recorded) -> None:
        name = str(number)
        plan = self._plans[name] = Plan(
            call, self._samples[call.tool], self._seed, self._limits[call.tool]
        )
        task = asyncio.current_task()
        self._tasks[task] = plan
        cancelled_after_s = plan.cancelled_after_s
        if cancelled_after_s is not None and task is not None:
            self._loop.call_later(cancelled_after_s, task.cancel)
        try:
            if self._waits[call.tool] and call.spans[0].queue_ms > 0:
                await self._clock.sleep(call.spans[0].queue_ms / 1000)
            await self._pipeline.call(call.tool, {}, call_id=name, session=self._session(call))
        except asyncio.CancelledError:
            self._ended[number] = self._ended[number] or recorded_end(call)
        finally:
            del self._tasks[task], self._plans[name]
            self._shadowed.pop(name, None)

    def _session(self, call: Recorded) -> Session:
        end = call.end
        key = ("", "") if end is None else (end.caller, end.session)
        found = self._sessions.get(key)
        if found is None:
            found = self._sessions[key] = Session(key[1], caller=key[0])
        return found

    async def _execute(self, _: dict[str, Any], context: Any) -> Any:
        plan = self._plans[context.call_id]
        step = plan.made = plan.step(context.attempt, self._loop.now)
        plan.tried = context.attempt
        if step.seconds > 0:
            try:
                await self._clock.sleep(step.seconds)
            except asyncio.CancelledError:
                if step.linger_s > 0:
                    await self._clock.sleep(step.linger_s)
                raise
        failure = step.failure()
        return "" if failure is None else ToolResult.of_failure(failure)

    def wait_s(self, low: float, high: float) -> float:
        """Give the wait of the call that is being retried now."""
        plan = self._tasks[asyncio.current_task()]
        return plan.wait_s(plan.tried, low, high)

    def for_tool(self, tool: str) -> ToolRecorder:  # noqa: ARG002  # all tools go into one list
        """Listen to how calls end."""
        return ToolRecorder(on_attempt=self._attempt, on_call=self._call)

    def unknown(self) -> None:
        """Nothing unknown is played."""

    def _attempt(self, span: Span) -> None:
        found = sum(":would_refuse" in verdict for verdict in span.verdicts)
        if found:
            self._shadowed[span.call_id] = found

    def _call(self, finished: Finished) -> None:
        number = int(finished.call_id)
        call = self._calls[number]
        plan = self._plans[finished.call_id]
        reason = finished.reason
        if finished.layer == "executor" and plan.made is not None:
            reason = plan.made.reason
        outside_s = self._loop.now - finished.elapsed_s - call.arrival_s
        self._ended[number] = Ended(
            finished.outcome,
            reason,
            finished.attempts,
            finished.elapsed_s + max(outside_s, 0.0),
            self._shadowed.get(finished.call_id, 0),
        )


def _limit_s(tool: Tool, policy: RunPolicy) -> float | None:
    """Give the limit that attempts were recorded under, where it is known."""
    return policy.timeout_s if policy.timeout_mode == "on" and not tool.duration else None


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
        exclusive=None,
        examples=(),
        prepare_arguments=None,
        check=None,
    )
