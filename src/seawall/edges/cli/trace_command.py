"""The options of `seawall trace`."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from seawall.edges.cli.options import JsonOption, NewestOption, ends_with_code


@ends_with_code
def show_trace(
    file: Annotated[
        str, typer.Argument(metavar="FILE|-", help="The spans, as JSON or as JSON lines.")
    ],
    *,
    tool: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only spans of this tool.")
    ] = None,
    call: Annotated[
        str | None, typer.Option(metavar="ID", help="All attempts of one call, oldest first.")
    ] = None,
    limit: NewestOption = 40,
    histogram: Annotated[
        bool, typer.Option("--histogram", help="How the spans of each tool ended.")
    ] = False,
    suggest: Annotated[
        bool,
        typer.Option("--suggest", help="What is done again and again, as shortcuts to edit."),
    ] = False,
    export: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Write the chosen spans, as JSON if the name ends in .json, else as JSON lines.",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> int:
    """Look at the spans that a trace recorder exported.

    Spans have sizes, times and verdicts, never what a tool was given or gave.
    """
    from seawall.edges.cli.paper import Paper  # noqa: PLC0415  # loaded by the command that needs it
    from seawall.edges.cli.trace import TraceOptions, trace  # noqa: PLC0415  # as above

    chosen = {"--histogram": histogram, "--suggest": suggest, "--export": export is not None}
    given = [name for name, is_given in chosen.items() if is_given]
    if len(given) > 1:
        raise typer.BadParameter(f"one at a time: {' or '.join(given)}")
    options = TraceOptions(
        tool=tool,
        call=call,
        limit=limit,
        histogram=histogram,
        suggest=suggest,
        export=export,
        as_json=as_json,
    )
    return trace(file, options, Paper(), Paper(sys.stderr))
