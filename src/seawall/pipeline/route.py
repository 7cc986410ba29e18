"""Everything about one tool that a call needs, made once: its chain and who counts it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from seawall.contract.span import Instants, Outcome, Span
from seawall.pipeline.breaking_off import note_begun
from seawall.pipeline.convert import is_infrastructure
from seawall.pipeline.digest import bounded
from seawall.pipeline.foreign import tell, told
from seawall.pipeline.invocation import why_cancelled
from seawall.pipeline.recorder import Finished, OnAttempt, OnCall, OnEvent, OnSuccess

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from seawall.contract.failure import Failure
    from seawall.contract.policy import RunPolicy
    from seawall.contract.result import ToolResult
    from seawall.contract.span import Digest
    from seawall.contract.tool import Tool
    from seawall.pipeline.clock import Clock, Deadlines
    from seawall.pipeline.digest import Digester
    from seawall.pipeline.invocation import Handler, Invocation
    from seawall.pipeline.recorder import Recorder


T = TypeVar("T")


class Counting:
    """The functions that count for one tool, gathered from all recorders."""

    __slots__ = (
        "on_attempt",
        "on_call",
        "on_event",
        "on_success",
        "on_successful_attempt",
        "on_successful_call",
    )

    def __init__(self, recorders: Iterable[Recorder], tool: str) -> None:
        found = [recorder.for_tool(tool) for recorder in recorders]
        others = [one for one in found if one.on_success is None]
        self.on_attempt: tuple[OnAttempt, ...] = _known(one.on_attempt for one in found)
        self.on_call: tuple[OnCall, ...] = _known(one.on_call for one in found)
        self.on_event: tuple[OnEvent, ...] = _known(one.on_event for one in found)
        self.on_success: tuple[OnSuccess, ...] = tuple(
            _guarded(one.on_success) for one in found if one.on_success is not None
        )
        # Of those that do not have that.
        self.on_successful_attempt: tuple[OnAttempt, ...] = _known(o.on_attempt for o in others)
        self.on_successful_call: tuple[OnCall, ...] = _known(o.on_call for o in others)

    def event(self, layer: str, event: str) -> None:
        """Count what a layer did."""
        told(self.on_event, layer, event)


def _guarded(on_success: OnSuccess) -> OnSuccess:
    """Give a function that raises nothing: ours is so, others are guarded."""
    if str(getattr(on_success, "__module__", None)).startswith("seawall.recording."):
        return on_success
    listeners = (on_success,)
    return lambda span, executed_s: told(listeners, span, executed_s)


def _known(functions: Iterable[T | None]) -> tuple[T, ...]:
    return tuple(function for function in functions if function is not None)


# Before Python 3.12 it takes longer to ask the class for one of its members than for a global.
_SUCCESS, _FAILED = Outcome.SUCCESS, Outcome.FAILED
_WELL: tuple[str, bool, float | None] = ("", True, None)
"""What the span of an attempt without a failure has of it: `health` and what follows."""


class InFlight:
    """How many calls are under way in one event loop."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0


class Route:
    """One tool's chain, with the books of its calls."""

    __slots__ = (
        "_clock",
        "_counting",
        "_digest",
        "_digester",
        "_limit",
        "_make_bounded",
        "_now",
        "_origin",
        "bounded",
        "calls",
        "closing",
        "deadlines",
        "handle",
        "policy",
        "prepare",
        "spill",
        "tool",
    )

    def __init__(
        self,
        tool: Tool,
        policy: RunPolicy,
        prepare: Callable[[Invocation], ToolResult | None],
        handle: Handler,
        make_bounded: Callable[[], Handler],
        counting: Counting,
        clock: Clock,
        digester: Digester,
        origin: float,
        limit: Callable[[ToolResult], ToolResult] | None,
        spill: Callable[[Invocation, ToolResult], Awaitable[ToolResult]] | None = None,
        deadlines: Deadlines | None = None,
    ) -> None:
        self.tool = tool
        self.policy = policy
        self.prepare = prepare
        self.handle = handle
        self.bounded: Handler | None = None
        self._make_bounded = make_bounded
        self._counting = counting
        self._clock = clock
        self._now = clock.now
        self._digester = digester
        self._digest: Callable[[Any], Digest] | None = None
        self._origin = origin
        self._limit = limit
        self.spill = spill
        """Cuts as the limit does, and keeps what is cut; None where nothing is kept."""
        self.deadlines = deadlines
        """Of calls under the policy's own deadline, behind one timer."""
        self.calls = InFlight()
        self.closing = self.close_attempt

    @property
    def in_flight(self) -> int:
        """Calls that are under way."""
        return self.calls.count

    def forget_loop(self) -> None:
        """Count anew; calls of a loop that is gone go on counting where nobody looks."""
        self.calls = InFlight()

    def with_limits(self) -> Handler:
        """Give the chain for calls in turns, or with a time limit the policy does not have."""
        if self.bounded is None:
            self.bounded = self._make_bounded()
        return self.bounded

    async def spilled(self, call: Invocation, result: ToolResult) -> ToolResult:
        """Close the books of a call, and keep what its result is cut by."""
        if self.spill is None:
            return self.finish(call, result)
        ended = self._now()
        try:
            fine = await self.spill(call, result)
        except BaseException:
            # Who is cancelled meanwhile hears nothing of it, but the call came to its end.
            self.finish(call, result)
            raise
        return self._finish(call, fine, ended, is_cut=True)

    def finish(self, call: Invocation, result: ToolResult) -> ToolResult:
        """Close the books of a call that came to a result; gives the result in its final form."""
        now = self._now()
        if result.failure is not None or not call.attempt_open:
            return self._finish(call, result, now)
        # It went well, as most do: what follows is `_finish` in one go.
        call.attempt_open = False
        call.error = None
        begun, arrived = call.attempt_started, call.arrived
        digest, make = call.digest, self._digest
        if digest is None:
            if make is None or call.own_of is None:
                digest = self.digest(call)
            else:
                digest = call.digest = make(call._arguments)  # noqa: SLF001  # frames less
        usual = call.marks is None and call.timeout_s is None and call.deadline is None
        span = Span(
            call.call_id,
            self.tool.name,
            call.attempt,
            call.attempt_wall,
            (now - begun) * 1000.0,
            _SUCCESS,
            "",
            digest,
            call.mended,
            arrived - self._origin,
            (begun - arrived) * 1000.0,
            None if call.rated is None else (call.rated - arrived) * 1000.0,
            call.key,
            call.verdicts,
            None if usual else instants_of(call),
        )
        counting, executed_s = self._counting, call.executed_s or 0.0
        for on_success in counting.on_success:
            on_success(span, executed_s)
        if counting.on_successful_attempt:
            tell(counting.on_successful_attempt, span)
        if result.call_id is not call.call_id or result.attempts != call.attempt:
            result = completed(result, call)
        if self._limit is not None:
            result = self._limit(result)
        if counting.on_successful_call:
            self._finished(counting.on_successful_call, call, _SUCCESS, "", "", now, result)
        return result

    def _finish(
        self, call: Invocation, result: ToolResult, now: float, *, is_cut: bool = False
    ) -> ToolResult:
        attempt, failure = call.attempt, result.failure
        if failure is None:
            outcome, reason, layer = _SUCCESS, "", ""
        else:
            outcome = _FAILED if attempt else Outcome.DENIED
            reason, layer = failure.reason, failure.layer
        if call.attempt_open:
            call.attempt_open = False
            self._span(call, attempt, call.attempt_started, outcome, reason, now, failure)
        elif attempt == 0:
            self._without_attempt(call, outcome, reason, now)
        if result.call_id is not call.call_id or result.attempts != attempt:
            result = completed(result, call)
        if self._limit is not None and not is_cut:
            result = self._limit(result)
        self._finished(self._counting.on_call, call, outcome, reason, layer, now, result)
        return result

    def broken_off(self, call: Invocation, error: BaseException) -> None:
        """Close the books of a call that came to no result.

        Its caller cancelled it, its tool handed control back, or a defect broke it off.
        """
        now = self._now()
        if call.aside is not None:
            call.aside.lost()
        note_begun(error, begun=call.started)
        outcome = Outcome.FAILED if call.attempt else Outcome.DENIED
        reason = why_cancelled(error)
        if isinstance(error, self.tool.control_flow):
            outcome, reason = Outcome.SKIPPED, "handed_back"
        elif isinstance(error, Exception):
            reason = "tool_failed" if call.attempt else "gate_failed"
        if call.attempt_open:
            call.attempt_open = False
            self._span(call, call.attempt, call.attempt_started, outcome, reason, now)
        elif call.attempt == 0:
            self._span(call, 0, call.arrived, outcome, reason, now)
        self._finished(self._counting.on_call, call, outcome, reason, "", now, None)

    def skipped(self, call: Invocation) -> None:
        """Record a call that is not executed, because an earlier one of its row failed."""
        self._span(call, 0, call.arrived, Outcome.SKIPPED, "not_executed", self._now())

    def count(self, layer: str, event: str) -> None:
        """Count what a layer of this tool did."""
        self._counting.event(layer, event)

    def close_attempt(self, call: Invocation, result: ToolResult) -> None:
        """Record an attempt that another one follows."""
        if not call.attempt_open:
            return
        call.attempt_open = False
        failure, now = result.failure, self._now()
        outcome, reason = (_SUCCESS, "") if failure is None else (_FAILED, failure.reason)
        self._span(call, call.attempt, call.attempt_started, outcome, reason, now, failure)

    def _without_attempt(self, call: Invocation, outcome: Outcome, reason: str, now: float) -> None:
        """Record a call that a layer refused, or answered by itself, before its first attempt."""
        call.attempt_wall = self._clock.wall()
        self._span(call, 0, call.arrived, outcome, reason, now)

    def _span(
        self,
        call: Invocation,
        attempt: int,
        begun: float,
        outcome: Outcome,
        reason: str,
        now: float,
        failure: Failure | None = None,
    ) -> None:
        listeners = self._counting.on_attempt
        if not listeners:
            return
        health, retryable, retry_after_s = _WELL if failure is None else _health(call, failure)
        span = Span(
            call.call_id,
            self.tool.name,
            attempt,
            call.attempt_wall or self._clock.wall(),
            (now - begun) * 1000,
            outcome,
            reason,
            call.digest or self.digest(call),
            call.mended,
            call.arrived - self._origin,
            (begun - call.arrived) * 1000,
            _rated_ms(call),
            call.key,
            call.verdicts,
            instants_of(call),
            health,
            retryable,
            retry_after_s,
        )
        tell(listeners, span)

    def digest(self, call: Invocation) -> Digest:
        """Digest of the arguments that ran, or of what came if they were refused."""
        found = call.digest
        if found is None:
            make = self._digest
            if make is None:
                make = self._digest = self._digester.for_tool(self.tool.name)
            known = call.known_arguments() if call.own_of is None else call._arguments  # noqa: SLF001  # a frame less
            found = call.digest = make(known if call.refusal is None else bounded(known))
        return found

    def _finished(
        self,
        listeners: tuple[OnCall, ...],
        call: Invocation,
        outcome: Outcome,
        reason: str,
        layer: str,
        now: float,
        result: ToolResult | None,
    ) -> None:
        call.error = None
        finished = Finished(
            call.call_id,
            self.tool.name,
            outcome,
            reason,
            layer,
            now - call.arrived,
            call.executed_s,
            call.attempt,
            call.session.id,
            call.session.caller,
            result,
            call.digest,
            call.decided,
            call.batch_id,
            None if call.marks is None else instants_of(call),
        )
        tell(listeners, finished)


def _health(call: Invocation, failure: Failure) -> tuple[str, bool, float | None]:
    """Tell what a failed attempt says of the tool, as its span has it."""
    said = "infrastructure" if is_infrastructure(failure, call.error) else "answer"
    return said, bool(failure.retryable), failure.retry_after_s


_ROUNDING = 1e-6
_LENGTHS = frozenset({"wait", "limit", "short", "silent"})


def _rated_ms(call: Invocation) -> float | None:
    """Tell when the rate limit was asked, once."""
    rated, call.rated = call.rated, None
    return None if rated is None else (rated - call.arrived) * 1000


def instants_of(call: Invocation) -> Instants | None:
    """Tell when layers decided; what was said once of a call is not said again."""
    arrived = call.arrived
    found: dict[str, float] = {}
    for name, seconds in (call.marks or {}).items():  # a loop: half the price for one or two
        found[f"{name}_ms"] = (seconds if name in _LENGTHS else seconds - arrived) * 1000
    if call.timeout_s is not None:
        found["timeout_ms"] = call.timeout_s * 1000
    if call.deadline is not None:
        deadline_s = call.deadline - arrived
        if abs(deadline_s - (call.policy.deadline_s or 0.0)) > _ROUNDING:
            found["deadline_ms"] = deadline_s * 1000
    call.marks = None
    return Instants(**found) if found else None


def completed(result: ToolResult, call: Invocation) -> ToolResult:
    """Give a result its call, and what is known of the attempts."""
    return msgspec.structs.replace(
        result,
        call_id=call.call_id,
        tool=call.tool.name,
        attempts=call.attempt,
        duration_ms=None if call.executed_s is None else call.executed_s * 1000,
    )
