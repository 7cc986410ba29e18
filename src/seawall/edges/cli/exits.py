"""What the exit codes of the commands mean. Scripts rely on them, so they never change."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

from seawall.contract.failure import FailureCode

if TYPE_CHECKING:
    from seawall.contract.failure import Failure


class Exit(IntEnum):
    """The codes; `MEANINGS` says what each tells a script."""

    OK = 0
    TOOL_FAILED = 1
    USAGE = 2
    INVALID_ARGUMENTS = 3
    REFUSED = 4
    NOT_FOUND = 5
    TIMEOUT = 6
    RATE_LIMITED = 7
    CIRCUIT_OPEN = 8
    UNKNOWN = 9


MEANINGS = {
    Exit.OK: "the tool answered",
    Exit.TOOL_FAILED: "the tool failed",
    Exit.USAGE: "usage or configuration error",
    Exit.INVALID_ARGUMENTS: "the arguments are invalid",
    Exit.REFUSED: "refused: permission or approval is missing",
    Exit.NOT_FOUND: "not found: the tool, or what it was asked for",
    Exit.TIMEOUT: "timeout",
    Exit.RATE_LIMITED: "rate limited",
    Exit.CIRCUIT_OPEN: "circuit open: the tool keeps failing and is left alone",
    Exit.UNKNOWN: "the outcome is unknown, or the tool does not support this",
}

_OF_CODE = {
    FailureCode.INVALID_ARGUMENT: Exit.INVALID_ARGUMENTS,
    FailureCode.PERMISSION_DENIED: Exit.REFUSED,
    FailureCode.NOT_FOUND: Exit.NOT_FOUND,
    FailureCode.TIMEOUT: Exit.TIMEOUT,
    FailureCode.RATE_LIMITED: Exit.RATE_LIMITED,
    FailureCode.CIRCUIT_OPEN: Exit.CIRCUIT_OPEN,
    FailureCode.EXECUTION_FAILED: Exit.TOOL_FAILED,
    FailureCode.UNSUPPORTED: Exit.UNKNOWN,
    FailureCode.UNKNOWN: Exit.UNKNOWN,
}


def exit_of(failure: Failure | None) -> Exit:
    """Give the exit code of a call that ended so."""
    return Exit.OK if failure is None else _OF_CODE[failure.code]
