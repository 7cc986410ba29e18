import pytest

from seawall import FailureCode
from seawall.edges.mcp.answers import down, result_of_answer


def test_an_answer_is_the_tools_result() -> None:
    result = result_of_answer("s", {"content": [{"type": "text", "text": "fine"}]})

    assert (result.text, result.is_error) == ("fine", False)


@pytest.mark.parametrize(
    ("answer", "code", "reason"),
    [
        ({"resultType": "input_required"}, FailureCode.UNSUPPORTED, "input_required"),
        ({"resultType": "task"}, FailureCode.UNSUPPORTED, "unsupported"),
        ({"resultType": None}, FailureCode.UNSUPPORTED, "unsupported"),
        ({"content": 7}, FailureCode.EXECUTION_FAILED, "output_invalid"),
    ],
)
def test_an_answer_that_is_no_result_says_so(
    answer: dict[str, object], code: FailureCode, reason: str
) -> None:
    failure = result_of_answer("s", answer).failure

    assert failure is not None
    assert (failure.code, failure.reason) == (code, reason)
    assert "'s'" in failure.message


def test_a_call_that_was_not_sent_may_come_again_later() -> None:
    failure = down("s", "it ended", 3.0).failure

    assert failure is not None
    assert (failure.may_have_run, failure.retryable, failure.retry_after_s) == (False, True, 3.0)
