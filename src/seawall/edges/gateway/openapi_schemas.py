"""The shapes of what the gateway takes and gives, for its description in OpenAPI."""

from __future__ import annotations

from typing import Any

from seawall.contract.approval import ApprovalStatus
from seawall.contract.failure import FailureCode
from seawall.edges.gateway.tokens import SCOPES

Schema = dict[str, Any]

_TEXT: Schema = {"type": "string"}
_NUMBER: Schema = {"type": "number"}
_COUNT: Schema = {"type": "integer", "minimum": 0}
_FLAG: Schema = {"type": "boolean"}
_OBJECT: Schema = {"type": "object"}
_MAYBE_OBJECT: Schema = {"type": ["object", "null"]}
_MAYBE_TEXT: Schema = {"type": ["string", "null"]}
_MAYBE_NUMBER: Schema = {"type": ["number", "null"]}
_MAYBE_FLAG: Schema = {"type": ["boolean", "null"]}
_SECONDS: Schema = {"type": ["number", "null"], "exclusiveMinimum": 0, "maximum": 86_400}
_IDENTIFIER: Schema = {"type": ["string", "null"], "maxLength": 200, "pattern": "^[ -~]*$"}
_RISK: Schema = {"enum": ["low", "medium", "high"]}


def schemas() -> dict[str, Schema]:
    """Give all shapes by their names."""
    return {**_of_calls(), **_of_tools(), **_of_approvals(), **_of_views()}


def reference(name: str) -> Schema:
    """Point to a shape."""
    return {"$ref": f"#/components/schemas/{name}"}


def _object(required: dict[str, Schema], optional: dict[str, Schema] | None = None) -> Schema:
    properties = {**required, **(optional or {})}
    return {"type": "object", "properties": properties, "required": list(required)}


def _list(item: Schema) -> Schema:
    return {"type": "array", "items": item}


def _of_calls() -> dict[str, Schema]:
    options = {
        "arguments": {"type": ["object", "string", "null"]},
        "requestId": _IDENTIFIER,
        "sessionId": _IDENTIFIER,
        "timeoutS": _SECONDS,
        "deadlineS": _SECONDS,
    }
    result = {
        "requestId": _TEXT,
        "tool": _TEXT,
        "isError": _FLAG,
        "text": _TEXT,
        "content": _list(_OBJECT),
        "structuredContent": {},
        "failure": {"oneOf": [_failure(), {"type": "null"}]},
        "attempts": _COUNT,
        "durationMs": _MAYBE_NUMBER,
        "approval": _MAYBE_TEXT,
    }
    return {"Call": _object({"tool": _TEXT}, options), "Result": _object(result)}


def _failure() -> Schema:
    return _object(
        {
            "code": {"enum": [code.value for code in FailureCode]},
            "reason": _TEXT,
            "message": _TEXT,
            "guidance": _TEXT,
            "layer": _TEXT,
            "retryable": _FLAG,
            "retryAfterS": _MAYBE_NUMBER,
            "mayHaveRun": _MAYBE_FLAG,
            "hints": _list(_TEXT),
            "fields": _list(_TEXT),
            "issues": _list(_object({"path": _TEXT, "message": _TEXT, "keyword": _TEXT})),
        }
    )


def _of_tools() -> dict[str, Schema]:
    brief: Schema = {
        "name": _TEXT,
        "title": _MAYBE_TEXT,
        "description": _TEXT,
        "riskLevel": _RISK,
        "needConfirm": _FLAG,
        "state": {"enum": ["runnable", "not_released", "locked", "blocked"]},
        "quarantined": _MAYBE_TEXT,
        "family": _MAYBE_TEXT,
        "category": _TEXT,
        "breaker": _MAYBE_TEXT,
        "rate": _MAYBE_OBJECT,
    }
    further: Schema = {
        "inputSchema": _OBJECT,
        "outputSchema": _MAYBE_OBJECT,
        "annotations": _OBJECT,
        "tags": _list(_TEXT),
        "retrySafe": _FLAG,
        "policy": _MAYBE_OBJECT,
        "example": _MAYBE_OBJECT,
    }
    counted = ("all", "runnable", "needsApproval", "notReleased", "blocked")
    tools = {
        "tools": _list({"anyOf": [reference("Tool"), reference("BriefTool")]}),
        "counts": _object(dict.fromkeys(counted, _COUNT)),
    }
    return {
        "BriefTool": _object(brief),
        "Tool": _object({**brief, **further}),
        "Tools": _object(tools),
    }


def _of_approvals() -> dict[str, Schema]:
    call = {
        "id": _TEXT,
        "requestId": _TEXT,
        "tool": _TEXT,
        "server": _TEXT,
        "risk": _RISK,
        "reason": _TEXT,
        "arguments": _TEXT,
        "argumentsCut": _FLAG,
        "digest": _TEXT,
        "decision": _MAYBE_TEXT,
        "denyReason": _TEXT,
        "decided": _MAYBE_NUMBER,
        "decidedBy": _TEXT,
    }
    approval = {
        "id": _TEXT,
        "status": {"enum": list(ApprovalStatus)},
        "created": _NUMBER,
        "expires": _MAYBE_NUMBER,
        "sessionId": _TEXT,
        "caller": _TEXT,
        "calls": _list(_object(call)),
    }
    decision = {"decision": {"enum": ["approve", "deny", "withdraw"]}}
    return {
        "Approval": _object(approval, {"results": _list(reference("Result"))}),
        "Approvals": _object(
            {"approvals": _list(reference("Approval")), "more": _COUNT, "after": _MAYBE_TEXT}
        ),
        "Decision": _object(decision, {"reason": _TEXT, "digests": _list(_TEXT)}),
    }


def _of_views() -> dict[str, Schema]:
    spans = {"spans": _list(_span()), "histogram": _OBJECT, "dropped": _COUNT}
    breaker = {"tool": _TEXT, "state": {"enum": ["closed", "open", "half_open"]}}
    workers = {
        "worker": _COUNT,
        "workers": _COUNT,
        "pulse": _list(_object({"worker": _COUNT, "silentS": _MAYBE_NUMBER})),
        "sharing": _list(reference("Part")),
    }
    part = {"what": _TEXT, "how": {"enum": ["shared", "divided", "each"]}, "where": _TEXT}
    return {
        "Client": _object({"name": _TEXT, "may": _object(dict.fromkeys(SCOPES, _FLAG))}),
        "Spans": _object(spans),
        "Usages": _object({"tools": _list(_usage())}),
        "Breaker": _object(breaker),
        "Breakers": _object({"breakers": _list(reference("Breaker"))}),
        "Change": _object({"action": {"enum": ["open", "close", "reset"]}}),
        "Workers": _object(workers),
        "Part": _object(part),
    }


def _span() -> Schema:
    return _object(
        {
            "requestId": _TEXT,
            "tool": _TEXT,
            "attempt": _COUNT,
            "started": _NUMBER,
            "durationMs": _NUMBER,
            "queueMs": _NUMBER,
            "outcome": {"enum": ["success", "failed", "denied", "skipped"]},
            "reason": _TEXT,
            "digest": _MAYBE_TEXT,
            "mended": _list(_TEXT),
            "verdicts": _list(_TEXT),
        }
    )


def _usage() -> Schema:
    return _object(
        {
            "tool": _TEXT,
            "invocations": _COUNT,
            "successes": _COUNT,
            "failures": _COUNT,
            "refusals": _COUNT,
            "runs": _COUNT,
            "totalS": _NUMBER,
            "meanS": _MAYBE_NUMBER,
            "successRate": _MAYBE_NUMBER,
            "lastError": _MAYBE_TEXT,
            "lastUsed": _MAYBE_NUMBER,
        }
    )
