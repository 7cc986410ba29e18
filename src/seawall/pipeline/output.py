"""Hold a tool to the output schema that it declares.

Around the executor, so that whatever repeats or counts attempts sees a broken promise as the
tool's own answer. `format` is not held against a result: a date without its zone is no reason to
throw away what was done.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from seawall.contract.failure import FailureCode, Issue
from seawall.contract.pointer import steps_of
from seawall.contract.result import ToolResult
from seawall.pipeline.arguments.patterns.bounds import pattern_bounds
from seawall.pipeline.arguments.reading.bounds import out_of_bounds

if TYPE_CHECKING:
    from collections.abc import Callable

    from seawall.contract.tool import Tool
    from seawall.pipeline.arguments.compiled import CompiledSchema
    from seawall.pipeline.invocation import Handler, Invocation

LAYER = "output_check"

MAX_VALUES = 1_000_000
"""Values in a result that is checked; one that holds more counts as invalid."""
_ANY_SIZE = 1 << 62
_SAID = 8
_SHOWN = 100


def checking_output(
    tool: Tool,
    promised: CompiledSchema,
    execute: Handler,
    *,
    warn: bool,
    count: Callable[[str, str], None] | None = None,
) -> Handler:
    """Put the check of a tool's results around its executor.

    With `warn` the result stays as it is, and its metadata and the span say what is wrong.
    """
    promise = _Promise(tool, promised, count)
    tell = promise.warned if warn else promise.refused

    async def check(call: Invocation) -> ToolResult:
        result = await execute(call)
        if result.failure is not None:
            return result
        broken = promise.broken(result.structured_content)
        if not broken:
            return result
        promise.counted()
        return tell(call, result, broken)

    return check


def told_as_promised(result: ToolResult, tool: str) -> ToolResult:
    """Give a success without structured content to a reader that was promised some.

    Clients of MCP raise for such a success, and what the tool did is then lost on the model. So it
    is an error that says that the tool ran, followed by what there is of the result. Nothing else
    is changed.
    """
    if result.is_error or result.structured_content is not None:
        return result
    failed = ToolResult.failed(
        FailureCode.EXECUTION_FAILED,
        f"{tool} ran, but its structured content is not here",
        reason="output_invalid",
        layer=LAYER,
        retryable=False,
        guidance="Do not repeat this call; use what is here, or ask for less.",
        may_have_run=True,
    )
    return msgspec.structs.replace(
        result,
        content=(*failed.content, *result.content),
        is_error=True,
        failure=failed.failure,
    )


class _Promise:
    """What one tool's results must be."""

    def __init__(
        self, tool: Tool, compiled: CompiledSchema, count: Callable[[str, str], None] | None
    ) -> None:
        self._tool = tool
        self._count = count
        self._compiled = compiled
        self._patterns = pattern_bounds(compiled.schema)
        self._names = frozenset(_property_names(compiled.schema))

    def broken(self, value: Any) -> tuple[Issue, ...]:
        """Say what is wrong with structured content, None included; nothing if it is in order."""
        fault = out_of_bounds(value, most_bytes=_ANY_SIZE, most_values=MAX_VALUES)
        if fault is None and self._patterns is not None:
            fault = self._patterns.fault(value)
        if fault is not None:
            return (Issue(fault[1], fault[2], "parse"),)
        if self._compiled.is_valid(value):
            return ()
        found = self._compiled.faults(value)
        return tuple(issue for issue in found if issue.keyword != "format")

    def counted(self) -> None:
        """Count a broken promise, whatever becomes of the result."""
        if self._count is not None:
            self._count(LAYER, "invalid")

    def refused(
        self, call: Invocation, result: ToolResult, issues: tuple[Issue, ...]
    ) -> ToolResult:
        """Give the failure instead of the result, which only `details` holds from here on."""
        if result.structured_content is None:
            said = "its result has no structured content, though it declares an output schema"
        else:
            said = f"its result breaks its own output schema at {'; '.join(self._said(issues))}"
        failed = call.refuse(
            FailureCode.EXECUTION_FAILED,
            f"{self._tool.name} ran, but {said}",
            reason="output_invalid",
            layer=LAYER,
            retryable=False,
            may_have_run=True,
        )
        return msgspec.structs.replace(
            failed,
            usage=result.usage,
            metadata=result.metadata,
            duration_ms=result.duration_ms,
            attempts=result.attempts,
            details={
                "issues": [msgspec.structs.asdict(issue) for issue in issues],
                "content": result.content,
                "structured_content": result.structured_content,
                "details": result.details,
            },
        )

    def warned(self, call: Invocation, result: ToolResult, issues: tuple[Issue, ...]) -> ToolResult:
        """Give the result, with a note in its metadata and in the span."""
        call.note("output:invalid")
        metadata = {**(result.metadata or {}), "output_invalid": self._said(issues)}
        return msgspec.structs.replace(result, metadata=metadata)

    def _said(self, issues: tuple[Issue, ...]) -> list[str]:
        said = [f"{self._place(issue.path)} ({issue.keyword})" for issue in issues[:_SAID]]
        more = len(issues) - _SAID
        return [*said, f"and {more} more"] if more > 0 else said

    def _place(self, pointer: str) -> str:
        """Name a place in words of the schema alone: other names are what the tool said."""
        known = [
            step if step.isdecimal() or step in self._names else "*" for step in steps_of(pointer)
        ]
        shown = ".".join(known) or "root"
        return shown if len(shown) <= _SHOWN else f"{shown[: _SHOWN - 1]}…"


def _property_names(schema: Any) -> set[str]:
    names: set[str] = set()
    waiting = [schema]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            properties = node.get("properties")
            names.update(properties if isinstance(properties, dict) else ())
            names.update(name for name in node.get("required", ()) if isinstance(name, str))
            waiting += node.values()
        elif isinstance(node, list):
            waiting += node
    return names
