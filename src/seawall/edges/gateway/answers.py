"""A result as an HTTP answer: one shape of body for all, and the status that says the kind.

200 done                       404 no such tool               429 a rate is used up
202 a person has to answer     409 the same call still runs   501 cannot be done here
400 the request is no request  413 too large                  502 the tool failed
401 no token, or a wrong one   415 not JSON                   503 overloaded, circuit open
403 not allowed                422 the arguments are no good  504 out of time
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import msgspec

from seawall.contract.content import Content, TextContent
from seawall.contract.failure import Failure, FailureCode

if TYPE_CHECKING:
    from seawall.contract.result import ToolResult

JSON = b"application/json"

_encoded = msgspec.json.Encoder(enc_hook=str).encode

CLIENT_GONE = "client_gone"
"""Why a call was cancelled whose client closed the connection."""
STOPPED = "gateway_stopped"
"""Why a call was cancelled that did not end although the gateway had to."""

_BY_CODE = {
    FailureCode.INVALID_ARGUMENT: 422,
    FailureCode.PERMISSION_DENIED: 403,
    FailureCode.NOT_FOUND: 404,
    FailureCode.TIMEOUT: 504,
    FailureCode.RATE_LIMITED: 429,
    FailureCode.CIRCUIT_OPEN: 503,
    FailureCode.EXECUTION_FAILED: 502,
    FailureCode.UNSUPPORTED: 501,
    FailureCode.UNKNOWN: 502,
}
_BY_REASON = {
    "bad_request": 400,
    "unauthenticated": 401,
    "method_not_allowed": 405,
    "request_timeout": 408,
    "still_running": 409,
    "approval_used": 409,
    "idempotency_conflict": 422,
    "body_too_large": 413,
    "media_type_unsupported": 415,
    "host_not_allowed": 421,
    "headers_too_large": 431,
    "gateway_failed": 500,
    "overloaded": 503,
    "limiter_unavailable": 503,
    "ledger_unavailable": 503,
}


class IssueBody(msgspec.Struct, frozen=True):
    """One fault of one argument."""

    path: str
    message: str
    keyword: str


class FailureBody(msgspec.Struct, frozen=True, rename="camel"):
    """Why a call did not give what was asked."""

    code: str
    reason: str
    message: str
    guidance: str
    layer: str
    retryable: bool
    retry_after_s: float | None = msgspec.field(name="retryAfterS")
    may_have_run: bool | None
    hints: tuple[str, ...]
    fields: tuple[str, ...]
    issues: tuple[IssueBody, ...]


class ResultBody(msgspec.Struct, frozen=True, rename="camel"):
    """What every answer to a call has, whatever came of it."""

    request_id: str
    tool: str
    is_error: bool
    text: str
    content: tuple[Content, ...]
    structured_content: Any
    failure: FailureBody | None
    attempts: int
    duration_ms: float | None
    approval: str | None = None
    """Address of the approval that the call waits for."""


Headers = tuple[tuple[bytes, bytes], ...]


class Answer(msgspec.Struct, frozen=True):
    """An answer, ready to be sent."""

    status: int
    body: bytes
    headers: Headers = ()
    media: bytes = JSON


def json_answer(value: Any, status: int = 200) -> Answer:
    """Answer with a value as JSON."""
    return Answer(status, _encoded(value))


def answer_of(result: ToolResult, request_id: str = "", *, headers: Headers = ()) -> Answer:
    """Say a result over HTTP."""
    failure = result.failure
    body = _encoded(body_of(result, request_id))
    if failure is None:
        return Answer(200, body, headers)
    if failure.retry_after_s is not None:
        headers = (*headers, (b"retry-after", b"%d" % max(math.ceil(failure.retry_after_s), 1)))
    return Answer(status_of(result), body, headers)


def refusal(code: FailureCode, reason: str, message: str, **fields: Any) -> Answer:
    """Answer without a call: what was asked never came as far as a tool."""
    from seawall.contract.result import ToolResult  # noqa: PLC0415  # only on the refusing path

    fields.setdefault("may_have_run", False)
    request_id = fields.pop("request_id", "")
    headers = fields.pop("headers", ())
    result = ToolResult.failed(code, message, reason=reason, layer="gateway", **fields)
    return answer_of(result, request_id, headers=headers)


def stops() -> Answer:
    """Refuse what is not begun any more."""
    return refusal(
        FailureCode.RATE_LIMITED,
        "overloaded",
        "the gateway stops; nothing was run",
        retry_after_s=1.0,
        headers=((b"connection", b"close"),),
    )


def status_of(result: ToolResult) -> int:
    """Give the status that HTTP people expect."""
    failure = result.failure
    if failure is None:
        return 200
    if approval_of(result) is not None:
        return 202
    return _BY_REASON.get(failure.reason) or _BY_CODE[failure.code]


def approval_of(result: ToolResult) -> str | None:
    """Give the id of the approval that a refused call waits for, if one was stored."""
    failure = result.failure
    if failure is None or failure.reason != "approval_required" or result.metadata is None:
        return None
    found = result.metadata.get("approval_id")
    return found if isinstance(found, str) else None


def body_of(result: ToolResult, request_id: str) -> ResultBody:
    """Give the body of an answer; `request_id` stands where no call had an id."""
    failure = result.failure
    approval = approval_of(result)
    content = result.content
    text = content[0].text if len(content) == 1 and type(content[0]) is TextContent else result.text
    return ResultBody(
        request_id or result.call_id,
        result.tool,
        result.is_error,
        text,
        content,
        result.structured_content,
        None if failure is None else _failure_body(failure),
        result.attempts,
        result.duration_ms,
        None if approval is None else f"/approvals/{approval}",
    )


def _failure_body(failure: Failure) -> FailureBody:
    return FailureBody(
        failure.code.value,
        failure.reason,
        failure.message,
        failure.guidance,
        failure.layer,
        bool(failure.retryable),
        failure.retry_after_s,
        failure.may_have_run,
        failure.hints,
        failure.fields,
        tuple(IssueBody(one.path, one.message, one.keyword) for one in failure.issues),
    )
