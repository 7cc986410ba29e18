"""What the exit codes of the commands mean. Scripts rely on them, so they never change."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

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

# By name: the codes themselves would be loaded, with all of the contract, to show a help text.
_OF_CODE = {
    "INVALID_ARGUMENT": Exit.INVALID_ARGUMENTS,
    "PERMISSION_DENIED": Exit.REFUSED,
    "NOT_FOUND": Exit.NOT_FOUND,
    "TIMEOUT": Exit.TIMEOUT,
    "RATE_LIMITED": Exit.RATE_LIMITED,
    "CIRCUIT_OPEN": Exit.CIRCUIT_OPEN,
    "EXECUTION_FAILED": Exit.TOOL_FAILED,
    "UNSUPPORTED": Exit.UNKNOWN,
    "UNKNOWN": Exit.UNKNOWN,
}


def exit_of(failure: Failure | None) -> Exit:
    """Give the exit code of a call that ended so."""
    return Exit.OK if failure is None else _OF_CODE[failure.code.name]
