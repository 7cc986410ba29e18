from typing import Any

import pytest

from seawall import FailureCode
from seawall.edges.mcp.codes import (
    HTTP_STATUS,
    SESSION_GONE,
    TOO_LARGE,
    UNREACHABLE,
    failure_of_error,
    result_of_error,
)


@pytest.mark.parametrize(
    ("code", "data", "expected", "ran"),
    [
        (UNREACHABLE, {"sent": False}, "transport", False),
        (UNREACHABLE, {"sent": True}, "transport", True),
        (UNREACHABLE, None, "transport", True),
        (SESSION_GONE, None, "transport", False),
        (TOO_LARGE, None, "output_invalid", True),
        (HTTP_STATUS, {"status": 401}, "permission_denied", False),
        (HTTP_STATUS, {"status": 404}, "transport", False),
        (HTTP_STATUS, {"status": 405}, "tool_failed", False),
        (HTTP_STATUS, {"status": 413}, "too_large", False),
        (HTTP_STATUS, {"status": 408}, "tool_timeout", None),
        (HTTP_STATUS, {"status": 409}, "tool_failed", None),
        (HTTP_STATUS, {"status": 400}, "tool_failed", None),
        (HTTP_STATUS, {"status": 503}, "transport", None),
        (HTTP_STATUS, {"status": 504}, "tool_timeout", None),
        (HTTP_STATUS, {"status": 500}, "tool_failed", None),
        (HTTP_STATUS, {"status": "429"}, "tool_failed", None),
        (HTTP_STATUS, None, "tool_failed", None),
    ],
)
def test_what_no_peer_said_has_its_meaning_too(
    code: int, data: Any, expected: str, ran: bool | None
) -> None:
    failure = failure_of_error("s", code, "said", data)

    assert (failure.reason, failure.may_have_run) == (expected, ran)
    assert "error" not in failure.message


def test_a_status_of_too_many_requests_carries_its_delay() -> None:
    failure = failure_of_error("s", HTTP_STATUS, "m", {"status": 429, "retry_after_s": 3})

    assert failure.code is FailureCode.RATE_LIMITED
    assert failure.retry_after_s == 3


@pytest.mark.parametrize("text", ["Unknown tool: x", "connection refused", "timed out"])
def test_the_text_of_an_error_decides_nothing(text: str) -> None:
    assert failure_of_error("s", 1, text).code is FailureCode.EXECUTION_FAILED
    assert failure_of_error("s", 1, text).retryable is False


def test_an_error_keeps_its_data_beside_what_a_model_reads() -> None:
    result = result_of_error("s", -32602, "no", {"field": "a"})

    assert result.metadata == {
        "mcp_error": {"code": -32602, "message": "no", "data": {"field": "a"}}
    }
    assert "field" not in result.render()


@pytest.mark.parametrize("text", ["", "  ", "x" * 100_000])
def test_an_error_says_something_of_bounded_length(text: str) -> None:
    message = failure_of_error("s", -32603, text).message

    assert 10 < len(message) < 2_000


@pytest.mark.parametrize(
    ("said", "waits"),
    [(2, 2.0), (0.5, 0.5), (-1, None), (float("nan"), None), (10**400, None), (True, None)],
)
def test_a_wait_is_believed_if_it_is_one(said: Any, waits: float | None) -> None:
    failure = failure_of_error("s", HTTP_STATUS, "m", {"status": 429, "retry_after_s": said})

    assert failure.retry_after_s == waits
