"""Which failures pass by themselves: what retry repeats, and a hedge may still make good."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seawall.contract.failure import FailureCode

if TYPE_CHECKING:
    from seawall.contract.failure import Failure


# Before Python 3.12 it takes longer to ask the class for one of its members than to compare it.
_EXECUTION_FAILED = FailureCode.EXECUTION_FAILED
_TIMEOUT = FailureCode.TIMEOUT


def is_transient(failure: Failure) -> bool:
    """Whether the same call may succeed if it is simply made again."""
    if not failure.retryable:
        return False
    code = failure.code
    if code is _EXECUTION_FAILED:
        return True
    if code is _TIMEOUT:
        return failure.reason != "deadline_exceeded"
    # Our own limiter's refusal is final; a tool that is limited itself may say when to come back.
    return (
        code is FailureCode.RATE_LIMITED
        and failure.layer == "executor"
        and failure.retry_after_s is not None
    )


def is_open_circuit(failure: Failure | None) -> bool:
    """Whether our breaker did not let the attempt be made; a tool may have a circuit too."""
    return (
        failure is not None
        and failure.code is FailureCode.CIRCUIT_OPEN
        and failure.layer != "executor"
    )
