"""`seawall mcp`: the servers of a configuration, and the definitions that were accepted."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from seawall.edges.cli.options import (
    JsonOption,
    PinsOption,
    ServersOption,
    TrustOption,
    configuration_errors,
    ends_with_code,
    mcp_choice,
)

mcp_app = typer.Typer(
    help="Look at MCP servers, and at definitions that changed.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
pins_app = typer.Typer(
    help="See which definitions of tools changed, and accept them.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
mcp_app.add_typer(pins_app, name="pins")


@mcp_app.command("servers")
@ends_with_code
def list_servers(
    *,
    mcp_config: ServersOption = None,
    trust: TrustOption = None,
    pins: PinsOption = None,
    as_json: JsonOption = False,
) -> int:
    """Connect to the servers and say how they do.

    Ends with 1 if one is not connected.
    """
    from seawall.edges.cli.mcp import servers  # noqa: PLC0415  # loaded by the command that needs it
    from seawall.edges.cli.paper import Paper  # noqa: PLC0415  # as above

    choice = mcp_choice(mcp_config, trust, pins)
    return servers(choice, Paper(), Paper(sys.stderr), as_json=as_json)


@pins_app.command("show")
@ends_with_code
def show_pins(
    *,
    mcp_config: ServersOption = None,
    pins: PinsOption = None,
    as_json: JsonOption = False,
) -> int:
    """Show what changed in definitions since they were accepted.

    Asks no server. Ends with 1 if something waits to be accepted.
    """
    from seawall.edges.cli.mcp import show  # noqa: PLC0415  # loaded by the command that needs it
    from seawall.edges.cli.paper import Paper  # noqa: PLC0415  # as above

    return show(mcp_choice(mcp_config, None, pins), Paper(), as_json=as_json)


@pins_app.command("accept")
def accept_pin(
    server: Annotated[
        str, typer.Argument(metavar="SERVER", help="The server's name in the configuration.")
    ],
    tool: Annotated[str, typer.Argument(metavar="TOOL", help="The tool's name on that server.")],
    digest: Annotated[
        str,
        typer.Argument(
            metavar="DIGEST",
            help="Of the changed definition, as seawall mcp pins show gives it.",
        ),
    ],
    *,
    mcp_config: ServersOption = None,
    pins: PinsOption = None,
) -> None:
    """Accept one changed definition: exactly the one that was shown."""
    from seawall.edges.cli.mcp import accept  # noqa: PLC0415  # loaded by the command that needs it
    from seawall.edges.cli.paper import Paper  # noqa: PLC0415  # as above

    with configuration_errors():
        accept(mcp_choice(mcp_config, None, pins), (server, tool, digest), Paper())
