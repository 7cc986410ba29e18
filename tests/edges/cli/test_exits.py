from pathlib import Path

import pytest

from seawall.contract.failure import Failure, FailureCode
from seawall.edges.cli.exits import MEANINGS, Exit, exit_of


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (FailureCode.EXECUTION_FAILED, 1),
        (FailureCode.INVALID_ARGUMENT, 3),
        (FailureCode.PERMISSION_DENIED, 4),
        (FailureCode.NOT_FOUND, 5),
        (FailureCode.TIMEOUT, 6),
        (FailureCode.RATE_LIMITED, 7),
        (FailureCode.CIRCUIT_OPEN, 8),
        (FailureCode.UNSUPPORTED, 9),
        (FailureCode.UNKNOWN, 9),
    ],
)
def test_each_kind_of_failure_has_its_exit_code(code: FailureCode, expected: int) -> None:
    assert exit_of(Failure(code=code, message="m")) == expected


def test_an_answer_is_zero() -> None:
    assert exit_of(None) == 0


def test_no_kind_of_failure_is_forgotten() -> None:
    codes = {exit_of(Failure(code=code, message="m")) for code in FailureCode}

    assert codes == set(Exit) - {Exit.OK, Exit.USAGE}


def test_every_code_has_a_meaning() -> None:
    assert set(MEANINGS) == set(Exit)


@pytest.mark.parametrize("code", Exit)
def test_the_documentation_says_what_each_code_means(code: Exit) -> None:
    page = Path(__file__).parents[3] / "docs" / "command-line.md"

    assert f"| {code:d} | {MEANINGS[code]} |" in page.read_text()
