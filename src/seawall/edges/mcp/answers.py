"""What came back for a call of a server's tool, or why nothing did, as the tool's result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from seawall.contract.failure import Failure, FailureCode
from seawall.contract.result import ToolResult
from seawall.edges.mcp.results import result_from_mcp

if TYPE_CHECKING:
    from collections.abc import Mapping


def refused(server: str, code: FailureCode, said: str, **fields: Any) -> ToolResult:
    """Build the failure of a call without an answer; `fields` are those of `Failure`."""
    message = f"MCP server {server!r}: {said}"
    return ToolResult.of_failure(Failure(code=code, message=message, layer="executor", **fields))


def down(server: str, why: str, retry_after_s: float | None) -> ToolResult:
    """Build the failure of a call that was not sent."""
    return refused(
        server,
        FailureCode.EXECUTION_FAILED,
        f"it is down: {why}",
        reason="transport",
        retry_after_s=retry_after_s,
        may_have_run=False,
    )


def result_of_answer(server: str, answer: Mapping[str, Any]) -> ToolResult:
    """Read the answer to `tools/call`; one that is no result is a failure that says so."""
    kind = answer.get("resultType", "complete")
    if kind == "input_required":
        said = "the tool asks the user for input before it goes on, and nobody can be asked here"
        return refused(server, FailureCode.UNSUPPORTED, said, reason="input_required")
    if kind != "complete":
        said = f"it answered with a result of the kind {str(kind)[:40]!r}, which is not known"
        return refused(server, FailureCode.UNSUPPORTED, said)
    try:
        return result_from_mcp(answer)
    except ValueError as error:
        return refused(
            server,
            FailureCode.EXECUTION_FAILED,
            f"its answer is no result of a tool: {error}",
            reason="output_invalid",
            retryable=False,
            may_have_run=True,
        )
