"""Which failures pass by themselves."""

from __future__ import annotations

import pytest

from seawall.contract.failure import Failure, FailureCode
from seawall.layers.transient import is_open_circuit, is_transient


@pytest.mark.parametrize(
    ("failure", "transient"),
    [
        (Failure(code=FailureCode.TIMEOUT, message=""), True),
        (Failure(code=FailureCode.TIMEOUT, message="", reason="attempt_timeout"), True),
        (Failure(code=FailureCode.TIMEOUT, message="", reason="deadline_exceeded"), False),
        (Failure(code=FailureCode.EXECUTION_FAILED, message=""), True),
        (Failure(code=FailureCode.EXECUTION_FAILED, message="", retryable=False), False),
        (Failure(code=FailureCode.RATE_LIMITED, message=""), False),
        (Failure(code=FailureCode.RATE_LIMITED, message="", retry_after_s=1), False),
        (
            Failure(code=FailureCode.RATE_LIMITED, message="", retry_after_s=1, layer="executor"),
            True,
        ),
        (Failure(code=FailureCode.RATE_LIMITED, message="", layer="executor"), False),
        (Failure(code=FailureCode.CIRCUIT_OPEN, message="", layer="executor"), False),
        (Failure(code=FailureCode.INVALID_ARGUMENT, message=""), False),
        (Failure(code=FailureCode.PERMISSION_DENIED, message="", retryable=True), False),
        (Failure(code=FailureCode.NOT_FOUND, message=""), False),
        (Failure(code=FailureCode.UNSUPPORTED, message=""), False),
        (Failure(code=FailureCode.UNKNOWN, message="", retryable=True), False),
    ],
)
def test_only_what_may_pass_by_itself_is_transient(failure: Failure, transient: bool) -> None:
    assert is_transient(failure) is transient


@pytest.mark.parametrize(
    ("failure", "ours"),
    [
        (None, False),
        (Failure(code=FailureCode.CIRCUIT_OPEN, message="", layer="breaker"), True),
        (Failure(code=FailureCode.CIRCUIT_OPEN, message="", layer="executor"), False),
        (Failure(code=FailureCode.TIMEOUT, message="", layer="timeout"), False),
    ],
)
def test_an_open_circuit_is_that_of_our_breaker(failure: Failure | None, ours: bool) -> None:
    assert is_open_circuit(failure) is ours
