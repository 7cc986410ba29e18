"""Errors as JSON-RPC numbers them: the protocol's, and our own for what no peer has said."""

from __future__ import annotations

from typing import Any

import msgspec

from seawall.contract.failure import Failure, FailureCode
from seawall.contract.result import ToolResult

TOO_LARGE = -31001
"""A message had more bytes than allowed."""
UNREACHABLE = -31002
"""The server could not be spoken to; `data.sent` says whether the request was on its way."""
HTTP_STATUS = -31003
"""The server's HTTP answer was an error and no JSON-RPC; `data.status`, `data.retry_after_s`."""
SESSION_GONE = -31004
"""The server knows nothing of the session, and has done nothing."""
MALFORMED = -31005
"""An answer that cannot be read."""

CONNECTION_CLOSED = -32000
REQUEST_TIMEOUT = -32001
INVALID_PARAMS = -32602
URL_NEEDED = -32042

MAX_MESSAGE = 1_000
LONGEST_S = 1e9
"""Of a wait that is believed; a longer one is a mistake, or a joke."""


class _Meaning(msgspec.Struct, frozen=True):
    code: FailureCode
    reason: str = ""
    retryable: bool | None = None
    may_have_run: bool | None = None


_MEANINGS = {
    TOO_LARGE: _Meaning(
        FailureCode.EXECUTION_FAILED, "output_invalid", retryable=False, may_have_run=True
    ),
    MALFORMED: _Meaning(
        FailureCode.EXECUTION_FAILED, "output_invalid", retryable=False, may_have_run=True
    ),
    UNREACHABLE: _Meaning(FailureCode.EXECUTION_FAILED, "transport", may_have_run=True),
    CONNECTION_CLOSED: _Meaning(FailureCode.EXECUTION_FAILED, "transport", may_have_run=True),
    SESSION_GONE: _Meaning(FailureCode.EXECUTION_FAILED, "transport", may_have_run=False),
    REQUEST_TIMEOUT: _Meaning(FailureCode.EXECUTION_FAILED, "tool_timeout", may_have_run=True),
    -32700: _Meaning(FailureCode.EXECUTION_FAILED, "transport"),
    -32600: _Meaning(FailureCode.EXECUTION_FAILED, retryable=False),
    -32601: _Meaning(FailureCode.UNSUPPORTED, may_have_run=False),
    INVALID_PARAMS: _Meaning(FailureCode.INVALID_ARGUMENT, may_have_run=False),
    -32603: _Meaning(FailureCode.EXECUTION_FAILED),
    -32020: _Meaning(FailureCode.UNSUPPORTED, may_have_run=False),
    -32021: _Meaning(FailureCode.UNSUPPORTED, "input_required", may_have_run=False),
    -32022: _Meaning(FailureCode.UNSUPPORTED, may_have_run=False),
    URL_NEEDED: _Meaning(FailureCode.UNSUPPORTED, "input_required"),
}

NEVER_RUN = frozenset((401, 403, 404, 405, 406, 407, 411, 413, 414, 415, 417, 421, 426, 429, 431))
"""Statuses that are answered instead of looking at a call. Under any other the server may have run
it: it may have waited too long for itself (408), or have met a conflict on its way (409)."""

_STATUSES = {
    401: _Meaning(FailureCode.PERMISSION_DENIED),
    403: _Meaning(FailureCode.PERMISSION_DENIED),
    404: _Meaning(FailureCode.EXECUTION_FAILED, "transport"),
    408: _Meaning(FailureCode.EXECUTION_FAILED, "tool_timeout"),
    413: _Meaning(FailureCode.INVALID_ARGUMENT, "too_large"),
    429: _Meaning(FailureCode.RATE_LIMITED),
    502: _Meaning(FailureCode.EXECUTION_FAILED, "transport"),
    503: _Meaning(FailureCode.EXECUTION_FAILED, "transport"),
    504: _Meaning(FailureCode.EXECUTION_FAILED, "tool_timeout"),
}


def failure_of_error(server: str, code: int, message: str, data: Any = None) -> Failure:
    """Say what a JSON-RPC error to `tools/call` means; by its number, never by its text."""
    about = data if isinstance(data, dict) else {}
    meaning = _MEANINGS.get(code, _Meaning(FailureCode.EXECUTION_FAILED, retryable=False))
    if code == HTTP_STATUS:
        status = about.get("status")
        meaning = _STATUSES.get(
            status if isinstance(status, int) else 0, _Meaning(FailureCode.EXECUTION_FAILED)
        )
    ran = meaning.may_have_run
    if _has_not_run(code, about):
        ran = False
    # A number of ours tells a reader nothing; a peer's may.
    number = "" if -32000 < code < -31000 else f" (error {code})"
    said = message.strip() or "the server gave no reason"
    return Failure(
        code=meaning.code,
        reason=meaning.reason,
        message=f"MCP server {server!r}: {said[:MAX_MESSAGE]}{number}",
        layer="executor",
        retryable=meaning.retryable,
        retry_after_s=_seconds(about.get("retry_after_s")),
        may_have_run=ran,
    )


def _has_not_run(code: int, about: dict[str, Any]) -> bool:
    if code == HTTP_STATUS:
        return about.get("status") in NEVER_RUN
    return code == UNREACHABLE and about.get("sent") is False


def _seconds(said: Any) -> float | None:
    """A wait that a peer names, if it is one."""
    if isinstance(said, bool) or not isinstance(said, int | float):
        return None
    return float(said) if 0 <= said < LONGEST_S else None


def result_of_error(server: str, code: int, message: str, data: Any = None) -> ToolResult:
    """Build the result of a call that was answered with a JSON-RPC error."""
    result = ToolResult.of_failure(failure_of_error(server, code, message, data))
    error = {"code": code, "message": message, **({} if data is None else {"data": data})}
    return msgspec.structs.replace(result, metadata={"mcp_error": error})
