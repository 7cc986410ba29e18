"""Why a call did not give what was asked, said to a model and to a program."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from seawall.contract.pointer import steps_of


class FailureCode(StrEnum):
    """The nine kinds of failure; closed, so that callers can handle them all."""

    INVALID_ARGUMENT = "invalid_argument"
    PERMISSION_DENIED = "permission_denied"
    NOT_FOUND = "not_found"
    TIMEOUT = "timeout"
    RATE_LIMITED = "rate_limited"
    CIRCUIT_OPEN = "circuit_open"
    EXECUTION_FAILED = "execution_failed"
    UNSUPPORTED = "unsupported"
    UNKNOWN = "unknown"


REASONS: dict[str, FailureCode] = {
    "arguments_not_json": FailureCode.INVALID_ARGUMENT,
    "arguments_not_object": FailureCode.INVALID_ARGUMENT,
    "arguments_truncated": FailureCode.INVALID_ARGUMENT,
    "argument_missing": FailureCode.INVALID_ARGUMENT,
    "argument_type": FailureCode.INVALID_ARGUMENT,
    "argument_invalid": FailureCode.INVALID_ARGUMENT,
    "argument_unknown": FailureCode.INVALID_ARGUMENT,
    "too_deep": FailureCode.INVALID_ARGUMENT,
    "too_large": FailureCode.INVALID_ARGUMENT,
    "idempotency_conflict": FailureCode.INVALID_ARGUMENT,
    "environment_unmet": FailureCode.PERMISSION_DENIED,
    "gate_failed": FailureCode.PERMISSION_DENIED,
    "approval_required": FailureCode.PERMISSION_DENIED,
    "approval_denied": FailureCode.PERMISSION_DENIED,
    "approval_expired": FailureCode.PERMISSION_DENIED,
    "approval_mismatch": FailureCode.PERMISSION_DENIED,
    "approval_used": FailureCode.PERMISSION_DENIED,
    "denied_by_policy": FailureCode.PERMISSION_DENIED,
    "loop_detected": FailureCode.PERMISSION_DENIED,
    "permission_denied": FailureCode.PERMISSION_DENIED,
    "tool_not_found": FailureCode.NOT_FOUND,
    "not_found": FailureCode.NOT_FOUND,
    "attempt_timeout": FailureCode.TIMEOUT,
    "deadline_exceeded": FailureCode.TIMEOUT,
    "timeout": FailureCode.TIMEOUT,
    "rate_limited": FailureCode.RATE_LIMITED,
    "overloaded": FailureCode.RATE_LIMITED,
    "limiter_unavailable": FailureCode.RATE_LIMITED,
    "still_running": FailureCode.RATE_LIMITED,
    "approvals_full": FailureCode.RATE_LIMITED,
    "circuit_open": FailureCode.CIRCUIT_OPEN,
    "tool_failed": FailureCode.EXECUTION_FAILED,
    "transport": FailureCode.EXECUTION_FAILED,
    "output_invalid": FailureCode.EXECUTION_FAILED,
    "not_executed": FailureCode.EXECUTION_FAILED,
    "aborted": FailureCode.EXECUTION_FAILED,
    "cancelled": FailureCode.EXECUTION_FAILED,
    "client_gone": FailureCode.EXECUTION_FAILED,
    "gateway_stopped": FailureCode.EXECUTION_FAILED,
    "handed_back": FailureCode.EXECUTION_FAILED,
    "tool_timeout": FailureCode.EXECUTION_FAILED,
    "ledger_unavailable": FailureCode.EXECUTION_FAILED,
    "tool_quarantined": FailureCode.UNSUPPORTED,
    "unsupported": FailureCode.UNSUPPORTED,
    "outcome_unknown": FailureCode.UNKNOWN,
    "outcome_unreadable": FailureCode.UNKNOWN,
}
"""The reasons Seawall itself gives, each under its code. Tools may add slugs of their own."""

_DEFAULT_REASON = {
    FailureCode.INVALID_ARGUMENT: "argument_invalid",
    FailureCode.EXECUTION_FAILED: "tool_failed",
    FailureCode.UNKNOWN: "outcome_unknown",
}

GUIDANCE: dict[FailureCode, str] = {
    FailureCode.INVALID_ARGUMENT: "Correct the arguments named here, then call the tool again.",
    FailureCode.PERMISSION_DENIED: (
        "Do not repeat this call. Choose another way, or tell the user what is needed and why."
    ),
    FailureCode.NOT_FOUND: "Use a name or target that exists; do not guess another.",
    FailureCode.TIMEOUT: "Ask for less at once, or go on without this and say so.",
    FailureCode.RATE_LIMITED: "Do not repeat it at once; wait, or go on with something else.",
    FailureCode.CIRCUIT_OPEN: (
        "Do not repeat it now; use another tool, wait, or tell the user that this one is down."
    ),
    FailureCode.EXECUTION_FAILED: (
        "Read the message; change what caused it, use another tool, or report it."
    ),
    FailureCode.UNSUPPORTED: "This cannot be done here; use another tool.",
    FailureCode.UNKNOWN: "Find out whether it took effect before you do anything again.",
}
"""What the model is told to do when a failure brings no guidance of its own."""

_TRANSIENT = {
    FailureCode.TIMEOUT,
    FailureCode.RATE_LIMITED,
    FailureCode.CIRCUIT_OPEN,
    FailureCode.EXECUTION_FAILED,
}

_RAN = {
    True: "It may have taken effect: check before you do it again.",
    False: "Nothing was run.",
}


_fill = msgspec.structs.force_setattr


class Issue(msgspec.Struct, frozen=True):
    """One fault of one argument."""

    path: str
    """JSON Pointer into the arguments; empty for the whole."""
    message: str
    """What was expected there."""
    keyword: str = ""
    """The JSON Schema keyword that was not met, or `parse`."""


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """A refusal or an error. What is left out is filled from `code`."""

    code: FailureCode
    message: str
    """What was wrong, in a sentence."""
    reason: str = ""
    """A slug below the code, from `REASONS` or a tool's own: `[a-z0-9_]`, 64 characters at most."""
    guidance: str = ""
    """What the model should do next; the code's own words if it is left out."""
    layer: str = ""
    """Who refused: a layer's name, or `executor`."""
    retryable: bool | None = None
    """Whether the same call may be made again later, and may succeed then; always set after
    construction. Of a tool that may change something it is false where the call may have taken
    effect, unless the tool itself says that nothing was done.
    """
    retry_after_s: float | None = None
    """Seconds after which the same call may succeed."""
    may_have_run: bool | None = None
    """Whether an effect is possible: yes, no, or not known."""
    hints: tuple[str, ...] = ()
    """Names near an unknown one."""
    issues: tuple[Issue, ...] = ()
    """What is wrong with the arguments, all of it."""
    cause: tuple[str, ...] = ()
    """Type names of the exceptions behind it, outermost first; never their texts."""

    def __post_init__(self) -> None:
        if not self.reason:
            _fill(self, "reason", _DEFAULT_REASON.get(self.code, self.code.value))
        if not self.guidance:
            _fill(self, "guidance", GUIDANCE[self.code])
        if self.retryable is None:
            _fill(self, "retryable", self.code in _TRANSIENT)

    @property
    def fields(self) -> tuple[str, ...]:
        """The arguments at fault, dotted, without repeats."""
        return tuple(dict.fromkeys(dotted(issue.path) for issue in self.issues if issue.path))

    def render(self) -> str:
        """Say it to a model: what, where, and what to do next."""
        said, guidance, ran = self.message, self.guidance, self.may_have_run
        if self.issues and (fields := self.fields):
            shown = ", ".join(fields[:8])
            said += f" [{shown}]" if len(fields) <= 8 else f" [{shown}, …]"
        if not said.endswith((".", "!", "?")):
            said += "."
        text = f"Error: {self.reason.replace('_', ' ')}: {said} {guidance}"
        return text if ran is None or _RAN[ran] in guidance else f"{text} {_RAN[ran]}"


def dotted(pointer: str) -> str:
    """Turn a JSON Pointer into the path a reader knows: `/a/0/b~1c` is `a.0.b/c`."""
    if "~" in pointer:
        return ".".join(steps_of(pointer))
    return pointer.partition("/")[2].replace("/", ".")


class ToolFailed(Exception):  # noqa: N818  # named by what happened; it is no error of the pipeline
    """Raised by an executor to give its own `Failure` instead of `EXECUTION_FAILED`.

    A text alone is an `EXECUTION_FAILED` that says it, and is not worth another try.
    """

    def __init__(self, failure: Failure | str) -> None:
        if isinstance(failure, str):
            failure = Failure(code=FailureCode.EXECUTION_FAILED, message=failure, retryable=False)
        super().__init__(failure)
        self.failure = failure

    def __str__(self) -> str:
        return f"{self.failure.reason}: {self.failure.message}"
