"""Run steps strictly in order: checked and asked about before the first, ended by the first error.

Each step is a call through the whole pipeline. What can be known beforehand is found out before
anything runs; the time for all steps begins when all questions are answered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from seawall.contract.failure import Failure, FailureCode, Issue
from seawall.contract.result import ToolResult
from seawall.contract.sentences import joined
from seawall.layers.risk_gate import APPROVED
from seawall.orchestration.consent import Asked, Asking, Composite, Consent, Refused
from seawall.orchestration.front import Frame, Front
from seawall.orchestration.outcome import BatchOutcome, not_executed
from seawall.orchestration.steps import BATCH_RUN, Step
from seawall.orchestration.template import Inserted, TemplateFault

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from seawall.orchestration.pipeline import Pipeline
    from seawall.pipeline.invocation import Invocation
    from seawall.pipeline.route import Route

    OnStep = Callable[[int, str], None]

MAX_SAID = 4
"""Faulty steps in the message of a refusal; the issues have all."""

_CLOSE_S = 0.01
"""Timers may ring this much early, so a step that ends then is out of the common time."""


class StepRunner:
    """Runs steps for batches and shortcuts; one for each pipeline."""

    def __init__(self, pipeline: Pipeline) -> None:
        self.front = Front(pipeline.in_a_row())
        self._composites: dict[str, Composite] = {}
        self._asking = Asking(self.front, self._composites.get)
        self._consents: dict[str, Consent] = {}
        self._batches: set[str] = set()

    @classmethod
    def of(cls, pipeline: Pipeline) -> StepRunner:
        """Give the pipeline's runner."""
        return pipeline.states.shared("seawall.steps").slot("runner", lambda: cls(pipeline))

    def add(self, tool: str, composite: Composite) -> None:
        """Say what a tool consists of, so that its steps are asked about beforehand too."""
        self._composites[tool] = composite

    def forget(self, tool: str) -> None:
        """A tool consists of nothing any more."""
        self._composites.pop(tool, None)

    def is_in_batch(self, frame: Frame) -> bool:
        """Whether a batch is what has called."""
        return frame.batch_id in self._batches

    async def batch(
        self,
        steps: Sequence[Step],
        frame: Frame,
        *,
        budget_s: float,
        on_step: OnStep | None = None,
    ) -> BatchOutcome:
        """Run the steps of a batch."""
        frame = self.front.new_batch(frame)
        self._batches.add(frame.batch_id)
        try:
            return await self._run(steps, frame, budget_s, on_step=on_step)
        finally:
            self._batches.discard(frame.batch_id)

    async def composite(
        self,
        composite: Composite,
        values: Mapping[str, Any],
        frame: Frame,
        *,
        budget_s: float,
    ) -> BatchOutcome:
        """Run the steps of a tool that consists of them, in the frame of that tool's call."""
        call_id = "" if frame.outer is None else frame.outer.call_id
        return await self._run(
            composite.plan,
            frame,
            budget_s,
            values=values,
            whose=composite,
            consent=self._consents.pop(call_id, None),
        )

    async def one(self, tool: str, arguments: Any, frame: Frame) -> ToolResult:
        """Make a single call for a running tool."""
        route = self.front.route(tool)
        if route is None:
            return self.front.unknown(tool, frame.session)
        if self.front.is_too_deep(frame):
            return ToolResult.of_failure(_TOO_DEEP, tool=tool)
        return await self.front.run(route, self.front.call(route, arguments, frame), frame)

    async def _run(
        self,
        steps: Sequence[Step],
        frame: Frame,
        budget_s: float,
        *,
        values: Mapping[str, Any] | None = None,
        whose: Composite | None = None,
        consent: Consent | None = None,
        on_step: OnStep | None = None,
    ) -> BatchOutcome:
        tools = tuple(step.tool for step in steps)
        faults = self._faults(steps, frame, values or {})
        if faults:
            return BatchOutcome(tools=tools, refusal=_refusal(faults, tools), at_step=faults[0][0])
        found = consent or await self._asking.about(steps, frame, values or {}, whose)
        if isinstance(found, Refused):
            fault = (found.at_step, _failure_of(found.result))
            return BatchOutcome(tools=tools, refusal=_refusal([fault], tools), at_step=fault[0])
        return await self._in_order(steps, frame, budget_s, values or {}, found, on_step)

    def _faults(
        self, steps: Sequence[Step], frame: Frame, values: Mapping[str, Any]
    ) -> list[tuple[int, Failure]]:
        """Find everything that can be known to be wrong before anything runs."""
        checked = ((index, self._fault(step, frame, values)) for index, step in enumerate(steps))
        return [(index, failure) for index, failure in checked if failure is not None]

    def _fault(self, step: Step, frame: Frame, values: Mapping[str, Any]) -> Failure | None:
        if step.tool == BATCH_RUN:
            said = "a batch cannot be a step; give its steps instead"
            return Failure(code=FailureCode.INVALID_ARGUMENT, message=said)
        if self.front.is_too_deep(frame):
            return _TOO_DEEP
        if self.front.route(step.tool) is None:
            return self.front.unknown(step.tool, frame.session).failure
        if step.template.steps:
            return None
        arguments = step.template.fill((), values)
        found = self.front.prepare(step.tool, arguments, session=frame.session)
        return found.failure if isinstance(found, ToolResult) else None

    async def _in_order(
        self,
        steps: Sequence[Step],
        frame: Frame,
        budget_s: float,
        values: Mapping[str, Any],
        consent: Consent,
        on_step: OnStep | None,
    ) -> BatchOutcome:
        frame = frame.ending(self.front.clock.now() + budget_s)
        results: list[ToolResult] = []
        given: list[Inserted] = []
        at_step: int | None = None
        for index, (step, asked) in enumerate(zip(steps, consent.steps, strict=True)):
            if at_step is not None:
                results.append(self._left_out(step, frame))
                continue
            if on_step is not None:
                on_step(index, step.tool)
            result = await self._step(step, frame, given, values, asked)
            results.append(result)
            given.append(Inserted.of_result(result))
            if result.is_error:
                at_step = index
        return BatchOutcome(
            tools=tuple(step.tool for step in steps),
            results=tuple(results),
            at_step=at_step,
            timed_out=at_step is not None and self._is_over(frame, results[at_step]),
        )

    async def _step(
        self,
        step: Step,
        frame: Frame,
        given: Sequence[Inserted],
        values: Mapping[str, Any],
        asked: Asked,
    ) -> ToolResult:
        front = self.front
        route = front.route(step.tool)
        if route is None:  # unregistered while the steps before it ran
            return front.unknown(step.tool, frame.session)
        try:
            call = front.call(route, step.template.fill(given, values), frame)
        except TemplateFault as fault:
            call = front.call(route, step.template.shown(), frame)
            return route.finish(call, _refused(call, _unfit(fault)))
        if frame.deadline is not None and front.clock.now() >= frame.deadline:
            return route.finish(call, _refused(call, _TOO_LATE))
        if asked.tool is route.tool:
            if asked.approved:
                _approve(call)
            if asked.inner is not None:
                self._consents[call.call_id] = asked.inner
        try:
            return await front.run(route, call, frame)
        finally:
            self._consents.pop(call.call_id, None)

    def _left_out(self, step: Step, frame: Frame) -> ToolResult:
        route: Route | None = self.front.route(step.tool)
        if route is not None:
            route.skipped(self.front.call(route, step.template.shown(), frame))
        return not_executed(step.tool)

    def _is_over(self, frame: Frame, result: ToolResult) -> bool:
        """Whether it was the common time that ended a step, and not a limit of its own."""
        failure = result.failure
        return (
            failure is not None
            and failure.reason == "deadline_exceeded"
            and frame.deadline is not None
            and self.front.clock.now() >= frame.deadline - _CLOSE_S
        )


def _approve(call: Invocation) -> None:
    """Spare the call the question, unless a hook gives it other arguments than were asked about."""
    call.note(APPROVED)
    prepare = call.prepare

    def prepare_again(call: Invocation) -> ToolResult | None:
        call.verdicts = tuple(said for said in call.verdicts if said != APPROVED)
        return prepare(call)

    def prepare_once(call: Invocation) -> ToolResult | None:
        call.prepare = prepare_again
        return prepare(call)

    call.prepare = prepare_once


_TOO_DEEP = Failure(
    code=FailureCode.PERMISSION_DENIED,
    message="tools call each other too deeply here; call this one by itself",
    reason="denied_by_policy",
    layer="pipeline",
    may_have_run=False,
)

_TOO_LATE = Failure(
    code=FailureCode.TIMEOUT,
    message="the time for all steps was over before this one could begin",
    reason="deadline_exceeded",
    layer="batch",
)


def _unfit(fault: TemplateFault) -> Failure:
    issues = tuple(Issue(one.path, one.message, one.keyword) for one in fault.issues)
    return Failure(
        code=FailureCode.INVALID_ARGUMENT,
        message=str(fault),
        reason=fault.reason,
        layer="batch",
        issues=issues,
    )


def _refused(call: Invocation, failure: Failure) -> ToolResult:
    failure = msgspec.structs.replace(failure, may_have_run=False)
    return ToolResult.of_failure(failure, call_id=call.call_id, tool=call.tool.name)


def _failure_of(result: ToolResult) -> Failure:
    found = result.failure
    return found or Failure(code=FailureCode.PERMISSION_DENIED, message="it may not run")


def _refusal(faults: Sequence[tuple[int, Failure]], tools: Sequence[str]) -> Failure:
    """One failure for all faulty steps; nothing was run."""
    first = faults[0][1]
    parts = [
        f"step {index} ({tools[index][:80]}): {failure.message}"
        for index, failure in faults[:MAX_SAID]
    ]
    if len(faults) > MAX_SAID:
        parts.append(f"and {len(faults) - MAX_SAID} more steps")
    said = joined(parts)
    issues = (
        Issue(f"/steps/{index}/arguments{issue.path}", issue.message, issue.keyword)
        for index, failure in faults
        for issue in failure.issues
    )
    return msgspec.structs.replace(
        first,
        message=f"no step was run. {said[0].upper()}{said[1:]}",
        layer=first.layer or "batch",
        issues=tuple(issues),
        may_have_run=False,
    )
