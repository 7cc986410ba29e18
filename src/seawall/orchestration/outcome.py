"""What came of steps that ran in a row: one result each, and the report a model reads."""

from __future__ import annotations

from typing import Literal

import msgspec

from seawall.contract.content import TextContent, content_to_json
from seawall.contract.failure import Failure, FailureCode
from seawall.contract.result import ToolResult

NOT_EXECUTED = "Not executed: an earlier action in this turn failed."
"""Exactly what every step after a failed one carries."""

Status = Literal["executed", "failed", "timed_out", "not_executed"]

_SAID: dict[Status, str] = {
    "executed": "done",
    "failed": "failed",
    "timed_out": "out of time",
    "not_executed": "not executed",
}


class BatchOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """Steps in their order. Refused beforehand: no results, and `refusal` says why."""

    tools: tuple[str, ...]
    """The tool of each step."""
    results: tuple[ToolResult, ...] = ()
    """One per step; those that were not executed carry `NOT_EXECUTED`."""
    refusal: Failure | None = None
    """Why nothing was run at all."""
    at_step: int | None = None
    """The step that failed, or that is to blame for the refusal."""
    timed_out: bool = False
    """The time for all steps was over in `at_step`."""

    @property
    def halted_at(self) -> int | None:
        """The step that failed; None if all were executed, or none was begun."""
        return self.at_step if self.results else None

    @property
    def complete(self) -> bool:
        """Whether every step was executed and succeeded."""
        return self.refusal is None and self.at_step is None

    @property
    def statuses(self) -> tuple[Status, ...]:
        """How each step ended."""
        return tuple(self._status(index) for index in range(len(self.results)))

    def _status(self, index: int) -> Status:
        if self.at_step is None or index < self.at_step:
            return "executed"
        if index > self.at_step:
            return "not_executed"
        return "timed_out" if self.timed_out else "failed"

    def report(self) -> str:
        """For a model: what came of the whole, then every step under its number, from 0."""
        if self.refusal is not None:
            return self.refusal.render()
        return "\n\n".join([self._headline(), *map(self._step, range(len(self.results)))])

    def result(self, subject: str) -> ToolResult:
        """The whole as the result of one tool: an error unless all steps were executed."""
        if self.refusal is not None:
            # Of this tool then, and not of the step that it is about: nothing was run at all.
            return ToolResult.of_failure(msgspec.structs.replace(self.refusal, layer="executor"))
        failure = None if self.complete else self._failure(subject)
        said = self.report() if failure is None else f"{failure.render()}\n\n{self.report()}"
        others = (
            block
            for result in self.results
            for block in result.content
            if not isinstance(block, TextContent)
        )
        return ToolResult(
            content=(TextContent(text=said), *others),
            is_error=failure is not None,
            failure=failure,
            structured_content={"statuses": list(self.statuses), "halted_at": self.halted_at},
            terminate=self.complete and all(result.terminate for result in self.results),
        )

    def _headline(self) -> str:
        count = len(self.results)
        at = self.at_step
        if at is None:
            return f"{count} of {count} steps succeeded."
        how = "was out of time" if self.timed_out else "failed"
        left = count - at - 1
        rest = "" if not left else f", so {left} after it {'was' if left == 1 else 'were'} not run"
        return f"{at} of {count} steps succeeded; step {at} ({self.tools[at]}) {how}{rest}."

    def _step(self, index: int) -> str:
        result = self.results[index]
        status = self._status(index)
        said = result.text if status in ("executed", "not_executed") else result.render()
        others = [
            f"({content_to_json(block)['type']}, below)"
            for block in result.content
            if not isinstance(block, TextContent)
        ]
        lines = [f"[{index}] {self.tools[index]}: {_SAID[status]}", said, *others]
        return "\n".join(line for line in lines if line)

    def _failure(self, subject: str) -> Failure:
        at = self.at_step or 0
        why = self.results[at].failure
        begun = [_may_have_run(result) for result in self.results]
        # Never the failed step's own code: it speaks of that step's tool and arguments, and the
        # health of the whole is not in question because of it.
        return Failure(
            code=FailureCode.EXECUTION_FAILED,
            message=f"step {at} ({self.tools[at]}) of {subject} {_how(why, self.timed_out)}",
            guidance=_GUIDANCE,
            retryable=False,
            may_have_run=any(begun),
        )


def _may_have_run(step: ToolResult) -> bool:
    # A fallback answers without an attempt of the step's own.
    failure = step.failure
    return step.attempts > 0 or failure is None or failure.may_have_run is True


def _how(failure: Failure | None, timed_out: bool) -> str:  # noqa: FBT001  # one place, by position
    if timed_out:
        return "was out of time"
    return "failed" if failure is None else f"failed: {failure.reason.replace('_', ' ')}"


_GUIDANCE = (
    "Read what each step gave. The steps before it have taken effect: do not run those again, but"
    " correct what made it fail and go on from there."
)


def not_executed(tool: str) -> ToolResult:
    """The result of a step that was left out because an earlier one failed."""
    failure = Failure(
        code=FailureCode.EXECUTION_FAILED,
        message=NOT_EXECUTED,
        reason="not_executed",
        guidance="Correct the action that failed first.",
        layer="batch",
        may_have_run=False,
    )
    return ToolResult(
        tool=tool, content=(TextContent(text=NOT_EXECUTED),), is_error=True, failure=failure
    )
