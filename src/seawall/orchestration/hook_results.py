"""Results that hooks make: refusals, results in place of others, and results changed in part."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from seawall.contract.content import Content, content_from_json
from seawall.contract.failure import Failure, FailureCode
from seawall.contract.turn import TurnStatus
from seawall.pipeline.convert import data_of, parts_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seawall.contract.hook import Deny, Replace
    from seawall.contract.result import ToolResult
    from seawall.pipeline.invocation import Invocation

LAYER = "hooks"
MAX_REASON = 300


def denied(call: Invocation, answer: Deny) -> ToolResult:
    """Answer a call that a hook denied: with a refusal, or with what the hook gives instead."""
    why = answer.reason[:MAX_REASON] or "a rule of this system does not allow it"
    if answer.result is None:
        result = call.refuse(
            FailureCode.PERMISSION_DENIED,
            f"{call.tool.name} was not run: {why}",
            reason="denied_by_policy",
            layer=LAYER,
        )
    else:
        result = _instead(call, answer.result)
    return msgspec.structs.replace(result, terminate=answer.terminate is True or result.terminate)


def _instead(call: Invocation, given: ToolResult) -> ToolResult:
    """Put a hook's own result in place of the call's."""
    failure = given.failure
    if failure is None and given.is_error:
        failure = Failure(
            code=FailureCode.PERMISSION_DENIED,
            message=_first_line(given.text) or f"{call.tool.name} was not run",
            reason="denied_by_policy",
            layer=LAYER,
            may_have_run=False,
        )
    return msgspec.structs.replace(
        given,
        call_id=call.call_id,
        tool=call.tool.name,
        is_error=failure is not None,
        failure=failure,
        terminate=given.terminate is True,
        duration_ms=None,
        attempts=0,
    )


def not_begun(call: Invocation, status: TurnStatus, reason: str) -> ToolResult:
    """Refuse a call because its turn was ended before it could begin."""
    aborted = status is TurnStatus.ABORTED
    said = "broken off" if aborted else "ended"
    because = f": {reason[:MAX_REASON]}" if reason else ""
    return call.refuse(
        FailureCode.EXECUTION_FAILED,
        f"{call.tool.name} was not run, as the turn was {said}{because}",
        reason="aborted" if aborted else "not_executed",
        layer=LAYER,
        guidance="Do not repeat it by yourself; wait for the user.",
    )


def replaced(result: ToolResult, change: Replace) -> ToolResult:
    """Apply a replacement; raises `ValueError` or a kin of it if its content is no content."""
    fields: dict[str, Any] = {}
    if change.content is not None:
        fields["content"] = _blocks(change.content)
        fields["structured_content"] = None
    for name in ("structured_content", "details", "usage", "metadata"):
        value = getattr(change, name)
        if value is not None:
            fields[name] = data_of(value) if name == "structured_content" else value
    if change.terminate is not None:
        fields["terminate"] = change.terminate is True
    for name in ("usage", "metadata"):
        if not isinstance(fields.get(name, {}), Mapping):
            raise TypeError(f"{name} must be a mapping")
    result = msgspec.structs.replace(result, **fields)
    failure = _failure_of(result, change)
    return msgspec.structs.replace(result, failure=failure, is_error=failure is not None)


def _failure_of(result: ToolResult, change: Replace) -> Failure | None:
    """Fit the failure to a result whose content, or whose flag, was replaced."""
    is_error = result.is_error if change.is_error is None else change.is_error is True
    if not is_error:
        return None
    said = _first_line(result.text) or "the result was made an error by a rule of this system"
    if result.failure is None:
        return Failure(
            code=FailureCode.EXECUTION_FAILED,
            message=said,
            layer=LAYER,
            may_have_run=True,
            retryable=False,
        )
    if change.content is None:
        return result.failure
    # What the hook took out of the text must not come back by way of the failure.
    return msgspec.structs.replace(
        result.failure, message=said, guidance="", hints=(), issues=(), cause=()
    )


def _blocks(content: str | Sequence[Any]) -> tuple[Content, ...]:
    if isinstance(content, str):
        return parts_of(content)[0]
    return tuple(_block(block) for block in content)


def _block(block: Any) -> Content:
    if isinstance(block, Mapping):
        return content_from_json(dict(block))
    content, _ = parts_of(block)
    if content != (block,) and not isinstance(block, str):
        raise TypeError(
            f"{type(block).__name__} is no content block; give texts, or values such as TextContent"
        )
    return content[0]


def _first_line(text: str) -> str:
    line = text.strip().split("\n", 1)[0]
    return line if len(line) <= MAX_REASON else line[: MAX_REASON - 1] + "…"
