"""The options of `seawall approvals`."""

from __future__ import annotations

import getpass
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from seawall.edges.cli.options import (
    JsonOption,
    PolicyOption,
    RegistryOption,
    SharedStateOption,
    ends_with_code,
)

if TYPE_CHECKING:
    from collections.abc import Callable

app = typer.Typer(
    name="approvals",
    help="See what waits for a person, answer it, and run it.",
    rich_markup_mode=None,
    no_args_is_help=True,
)

STATUSES = "pending, approved, taken, done, unknown, denied, expired, withdrawn; or all."

IdArgument = Annotated[
    str, typer.Argument(metavar="ID", help="Of a request, or of one call of it.")
]
ByOption = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Who answers. Default: your name here."),
]


@ends_with_code
def _run(state: str | None, as_json: bool, work: Callable[[Any, Any], int]) -> int:  # noqa: FBT001  # one place, by position
    from seawall.edges.cli import approvals  # noqa: PLC0415  # loaded when it is run
    from seawall.edges.cli.paper import Paper  # noqa: PLC0415  # as above

    return work(approvals, approvals.Desk(state, as_json, Paper(), Paper(sys.stderr)))


def _answer(state: str | None, as_json: bool, said: str, change: Callable[[Any], Any]) -> None:  # noqa: FBT001  # as above
    _run(state, as_json, lambda its, desk: its.answered(desk, change, said))


@app.command("list")
def list_approvals(
    *,
    status: Annotated[str, typer.Option(metavar="STATUS", help=STATUSES)] = "pending",
    session: Annotated[
        str | None, typer.Option(metavar="ID", help="Only those of this session.")
    ] = None,
    limit: Annotated[
        int, typer.Option(metavar="N", min=1, max=1000, help="How many of the newest.")
    ] = 100,
    after: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="List the older ones: what the list before said last."),
    ] = None,
    state: SharedStateOption = None,
    as_json: JsonOption = False,
) -> None:
    """List requests, newest first."""
    _run(state, as_json, lambda its, desk: its.listed(desk, status, session, limit, after))


@app.command("show")
def show_approval(
    approval_id: IdArgument, *, state: SharedStateOption = None, as_json: JsonOption = False
) -> None:
    """Show a request: what would run, and why somebody is asked.

    Arguments are shown; what the tool's schema marks as secret is not shown.
    """
    _run(state, as_json, lambda its, desk: its.shown(desk, approval_id))


@app.command("approve")
def approve(
    approval_id: IdArgument,
    *,
    reason: Annotated[str, typer.Option(metavar="TEXT", help="For the audit.")] = "",
    by: ByOption = None,
    state: SharedStateOption = None,
    as_json: JsonOption = False,
) -> None:
    """Allow a request, or one call of it. It runs when it is resumed, not because of this."""
    who = _name(by)
    _answer(
        state, as_json, "Approved", lambda asked: asked.approve(approval_id, by=who, reason=reason)
    )


@app.command("deny")
def deny(
    approval_id: IdArgument,
    reason: Annotated[str, typer.Argument(metavar="REASON", help="Why; the model reads it.")] = "",
    *,
    by: ByOption = None,
    state: SharedStateOption = None,
    as_json: JsonOption = False,
) -> None:
    """Deny a request, or one call of it.

    Then nothing of its turn runs.
    """
    who = _name(by)
    _answer(state, as_json, "Denied", lambda asked: asked.deny(approval_id, reason, by=who))


@app.command("withdraw")
def withdraw(
    approval_id: IdArgument,
    *,
    by: ByOption = None,
    state: SharedStateOption = None,
    as_json: JsonOption = False,
) -> None:
    """Take a request back, approved or not.

    That can be done as long as nothing of it was run.
    """
    who = _name(by)
    _answer(state, as_json, "Withdrawn", lambda asked: asked.withdraw(approval_id, by=who))


@app.command("resume")
def resume(
    approval_id: IdArgument,
    *,
    arguments: Annotated[
        str | None,
        typer.Option(
            metavar="JSON|-",
            help="The arguments once more, where none are kept for lack of a key.",
        ),
    ] = None,
    registry: RegistryOption = None,
    policy: PolicyOption = None,
    state: SharedStateOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run what was approved, once. Tools, schemas, rules and arguments have to be as approved.

    Ends with the exit code of the first call that failed, as seawall call has it.
    """
    _run(
        state,
        as_json,
        lambda its, desk: its.resumed(desk, approval_id, arguments, registry, policy),
    )


@app.command("outcome")
def outcome(
    approval_id: IdArgument, *, state: SharedStateOption = None, as_json: JsonOption = False
) -> None:
    """Write what came of a request that was run. Runs nothing."""
    _run(state, as_json, lambda its, desk: its.fetched(desk, approval_id))


def _name(by: str | None) -> str:
    if by is not None:
        return by
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return ""
