"""The options of `seawall audit`."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from seawall.edges.cli.options import JsonOption, NewestOption, ends_with_code

audit_app = typer.Typer(
    name="audit",
    help="Look at the audit log of a state.",
    rich_markup_mode=None,
    no_args_is_help=True,
)

Where = Annotated[
    str,
    typer.Option(
        "--state",
        metavar="URL",
        envvar="SEAWALL_STATE",
        help="sqlite:///FILE or postgresql://…",
    ),
]
Kind = Annotated[
    str | None,
    typer.Option(
        metavar="KIND", help="Only entries of this kind: call, effect, turn, approval, gap."
    ),
]
OfTool = Annotated[
    str | None, typer.Option("--tool", metavar="NAME", help="Only entries about this tool.")
]


@audit_app.command("show")
@ends_with_code
def show_audit(
    *,
    state: Where,
    kind: Kind = None,
    tool: OfTool = None,
    limit: NewestOption = 40,
    as_json: JsonOption = False,
) -> int:
    """List the newest entries."""
    from seawall.edges.cli.audit import AuditOptions, show  # noqa: PLC0415  # loaded when it is run
    from seawall.edges.cli.paper import Paper  # noqa: PLC0415  # as above

    options = AuditOptions(state=state, kind=kind, tool=tool, limit=limit, as_json=as_json)
    return show(options, Paper())


@audit_app.command("export")
@ends_with_code
def export_audit(*, state: Where, kind: Kind = None, tool: OfTool = None) -> int:
    """Write all entries as JSON lines.

    Each has its number, its text, and the hash of the text.
    """
    from seawall.edges.cli.audit import AuditOptions, export  # noqa: PLC0415  # loaded when it is run
    from seawall.edges.cli.paper import Paper  # noqa: PLC0415  # as above

    return export(AuditOptions(state=state, kind=kind, tool=tool), Paper())


@audit_app.command("verify")
@ends_with_code
def verify_audit(
    *,
    state: Where,
    last: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBER:HASH",
            help="The last entry as an earlier verify gave it: shows if the end was cut off.",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> int:
    """Check that no entry was changed, removed or moved.

    Ends with 1 if one was.
    """
    from seawall.edges.cli.audit import AuditOptions, verify  # noqa: PLC0415  # loaded when it is run
    from seawall.edges.cli.paper import Paper  # noqa: PLC0415  # as above

    options = AuditOptions(state=state, last=last, as_json=as_json)
    return verify(options, Paper(), Paper(sys.stderr))
