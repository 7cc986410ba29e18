"""Several calls in a row, of which the first error is the last.

    outcome = await BatchRunner(pipeline).run([
        {"tool": "fetch", "arguments": {"url": "https://example.org"}},
        {"tool": "write_file", "arguments": {"path": "page.txt", "content": "{0}"}},
    ])

For programs as it stands; for models as the tool `tool_batch_run`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from seawall.contract.annotations import Annotations, Risk
from seawall.contract.failure import Failure, FailureCode, Issue
from seawall.contract.sentences import joined
from seawall.contract.tool import Tool
from seawall.orchestration.outcome import NOT_EXECUTED, BatchOutcome
from seawall.orchestration.step_runner import StepRunner
from seawall.orchestration.steps import BATCH_RUN, StepsFault, read_document, read_steps
from seawall.orchestration.template import MAX_INSERTED

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from seawall.contract.result import ToolResult
    from seawall.orchestration.front import Frame
    from seawall.orchestration.pipeline import Pipeline
    from seawall.orchestration.step_runner import OnStep
    from seawall.pipeline.context import ToolContext
    from seawall.pipeline.session import Session

__all__ = ["NOT_EXECUTED", "BatchOutcome", "BatchRunner"]

MAX_STEPS = 16
MIN_BUDGET_S = 1.0
MAX_BUDGET_S = 600.0
DEFAULT_BUDGET_S = 120.0
ANSWERS_S = 300.0
"""How long a person may take for the question about one step, as the gate has it."""


class BatchRunner:
    """Runs batches through a pipeline; `tool` is what a model calls."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._runner = StepRunner.of(pipeline)
        self.tool = Tool(
            name=BATCH_RUN,
            title="Run steps in a row",
            description=_DESCRIPTION,
            input_schema=_SCHEMA,
            executor=self._execute,
            # What its steps are is not known here, so it is taken for the worst.
            annotations=Annotations(
                read_only=False, destructive=True, idempotent=False, open_world=True
            ),
            risk=Risk.HIGH,
            # It asks by itself, about each step that needs it, before the first.
            self_gated=True,
            category="orchestration",
            execution="sequential",
            # The time for the steps is kept here; this only keeps other limits out of the way.
            duration=MAX_BUDGET_S + MAX_STEPS * ANSWERS_S,
        )

    async def run(
        self,
        steps: str | Sequence[Mapping[str, Any]],
        *,
        session: Session | None = None,
        budget_s: float = DEFAULT_BUDGET_S,
    ) -> BatchOutcome:
        """Run 1 to 16 steps strictly in order, each `{"tool": …, "arguments": …}`.

        Everything that can be known beforehand is checked first: then nothing is run and the
        outcome has a `refusal`. The first error ends it. `budget_s`, 1 to 600, is for all steps
        together; questions to a person are asked before it begins.
        """
        return await self._run(steps, self._runner.front.frame(session), budget_s)

    async def _execute(self, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        frame = self._runner.front.frame_of(context)
        if self._runner.is_in_batch(frame):
            return _refused(Issue("", _NESTED), code=FailureCode.PERMISSION_DENIED).result(
                BATCH_RUN
            )

        def on_step(index: int, tool: str) -> None:
            context.progress(f"step {index}: {tool}", done=index)

        budget_s = arguments.get("budget_s", DEFAULT_BUDGET_S)
        outcome = await self._run(arguments.get("steps"), frame, budget_s, on_step)
        return outcome.result("the batch")

    async def _run(
        self, given: Any, frame: Frame, budget_s: Any, on_step: OnStep | None = None
    ) -> BatchOutcome:
        fault = _budget_fault(budget_s)
        if fault is not None:
            return _refused(fault)
        try:
            tree = read_document(given, "/steps")
            if isinstance(tree, dict) and "steps" in tree:
                tree = tree["steps"]  # a file or a model wrapped them
            if not tree:
                return _refused(Issue("/steps", _NO_STEPS))
            own_name = self._runner.front.own_name
            steps = read_steps(tree, most=MAX_STEPS, own_name=own_name)
        except StepsFault as faults:
            return _refused(*faults.issues)
        return await self._runner.batch(steps, frame, budget_s=float(budget_s), on_step=on_step)


def _budget_fault(budget_s: Any) -> Issue | None:
    is_number = isinstance(budget_s, (int, float)) and not isinstance(budget_s, bool)
    if is_number and math.isfinite(budget_s) and MIN_BUDGET_S <= budget_s <= MAX_BUDGET_S:
        return None
    said = f"budget_s must be {MIN_BUDGET_S:g} to {MAX_BUDGET_S:g} seconds, not {budget_s!r:.40}"
    return Issue("/budget_s", said)


def _refused(*issues: Issue, code: FailureCode = FailureCode.INVALID_ARGUMENT) -> BatchOutcome:
    at = next((part for issue in issues if (part := issue.path.split("/"))[2:3]), ["", "", ""])
    refusal = Failure(
        code=code,
        message=joined(issue.message for issue in issues[:4]),
        layer="batch",
        issues=tuple(issue for issue in issues if issue.path),
        may_have_run=False,
    )
    return BatchOutcome(tools=(), refusal=refusal, at_step=int(at[2]) if at[2].isdigit() else None)


_NO_STEPS = "a batch needs a step; for a single call, call that tool directly"
_NESTED = "a batch cannot be run by a step of a batch; give all steps in one"

_DESCRIPTION = (
    f"Run up to {MAX_STEPS} tool calls strictly in order, where each needs what came before it. The"
    " first error ends it, and the steps after it are not executed.\n\n"
    'Each step is {"tool": name, "arguments": {…}}. In a text of the arguments, {0} is replaced by'
    " the text that step 0 gave, {1} by that of step 1, and so on: only earlier steps, and"
    f" {MAX_INSERTED:,} characters of each at most. Braces that are meant as text are written"
    " twice: {{ and }}. Arguments may also be JSON text; there {0} may stand without quotes and"
    " keeps its type. Nothing is run if any step is invalid. For one call, call the tool directly."
)

_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "steps": {
            "description": f"1 to {MAX_STEPS} steps, as a list or as JSON text of one.",
            "anyOf": [
                {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {
                            "tool": {"type": "string", "description": "The tool's name."},
                            "arguments": {
                                "type": ["object", "string"],
                                "description": "Its arguments, or JSON text of them.",
                            },
                        },
                    },
                },
                {"type": "string"},
            ],
        },
        "budget_s": {
            "type": "number",
            "minimum": MIN_BUDGET_S,
            "maximum": MAX_BUDGET_S,
            "default": DEFAULT_BUDGET_S,
            "description": "Seconds for all steps together.",
        },
    },
    "required": ["steps"],
}
