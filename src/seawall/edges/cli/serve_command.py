"""`seawall serve`: the options of the gateway."""

from __future__ import annotations

import sys
from pathlib import Path  # noqa: TC003  # typer reads the types at run time
from typing import Annotated

import typer

from seawall.edges.cli.options import (
    McpConfigOption,
    PinsOption,
    PolicyOption,
    RecordOption,
    RegistryOption,
    StateOption,
    TrustOption,
    configuration_errors,
    mcp_choice,
)


def run_gateway(
    *,
    registry: RegistryOption = None,
    mcp_config: McpConfigOption = None,
    trust: TrustOption = None,
    pins: PinsOption = None,
    policy: PolicyOption = "gateway",
    state: StateOption = None,
    host: Annotated[
        str,
        typer.Option(
            metavar="ADDRESS", help="Address to bind; other than loopback only with a token."
        ),
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(metavar="N", help="Port; 0 takes a free one.")] = 8080,
    token_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Tokens of clients, as docs/gateway.md shows; readable for you alone (mode 0600).",
        ),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Another name the gateway is asked for under."),
    ] = None,
    client_rate: Annotated[
        str | None,
        typer.Option(metavar="RATE", help="Calls of each client, such as 600/minute."),
    ] = None,
    max_body: Annotated[
        int, typer.Option(metavar="BYTES", help="The largest body that is read.")
    ] = 1_048_576,
    drain: Annotated[
        float, typer.Option(metavar="SECONDS", help="How long calls may go on at the end.")
    ] = 20.0,
    console: Annotated[
        bool, typer.Option("--console/--no-console", help="Serve the page at /.")
    ] = True,
    workers: Annotated[
        int,
        typer.Option(
            metavar="N", min=1, max=256, help="Processes that serve together; needs --state."
        ),
    ] = 1,
    replace_blocked: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            min=10,
            help="With --workers: kill and replace one whose event loop is blocked for so long."
            " Default: it is told, and left alone.",
        ),
    ] = None,
    watch: Annotated[
        bool, typer.Option("--watch", help="Take the policy file anew when it changes.")
    ] = False,
    record: RecordOption = None,
) -> None:
    """Offer the tools over HTTP, with a page to look at them.

    Safe by default: it binds to loopback, and starts with the strict policy `gateway`. Answering
    approvals and opening circuits need a token even there; it is made at the start, unless you
    give one, and kept in a file that only you can read. SIGHUP takes the policy file anew; one that
    cannot be used is told, and the former policy goes on.

    With --workers several processes serve the one address; what ends is replaced. It ends with 0
    when it was told to stop, with 1 when workers did not start, or had to be killed.
    """
    from seawall.edges.cli.paper import Paper  # noqa: PLC0415  # loaded when it is run
    from seawall.edges.cli.serve import ServeOptions, serve  # noqa: PLC0415  # as above

    options = ServeOptions(
        registry=registry,
        policy=policy,
        host=host,
        port=port,
        token_file=token_file,
        allow_hosts=tuple(allow_host or ()),
        client_rate=client_rate,
        max_body_bytes=max_body,
        drain_s=drain,
        console=console,
        workers=workers,
        replace_blocked_s=replace_blocked,
        state=state,
        mcp=mcp_choice(mcp_config, trust, pins),
        watch=watch,
        record=record,
    )
    with configuration_errors():
        if workers > 1:
            from seawall.edges.cli.serve_workers import (  # noqa: PLC0415  # not on every system
                serve_by_workers,
            )

            raise typer.Exit(serve_by_workers(options, Paper(sys.stderr)))
        serve(options, Paper(sys.stderr))
