"""`seawall proxy`: one command in front of an MCP server."""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path  # noqa: TC003  # typer reads the annotations
from typing import TYPE_CHECKING, Annotated

import typer

from seawall.edges.cli.exits import Exit
from seawall.edges.cli.options import PolicyOption, StateOption, configuration_errors

if TYPE_CHECKING:
    from seawall.policy.model import Policies

TOKEN = "SEAWALL_PROXY_TOKEN"  # noqa: S105  # the name of a variable, no secret


PROXY_HELP = """Stand in front of an MCP server and guard its tools.

Tool calls go through all layers, and all else passes as it is. In a client's configuration it
stands instead of the server's own command:

\b
  seawall proxy -- npx -y some-server
  seawall proxy --url https://host/mcp --http 127.0.0.1:8100

Standard output carries the protocol alone; what there is to say goes to standard error.
"""


def run_proxy(
    command: Annotated[
        list[str] | None,
        typer.Argument(metavar="-- COMMAND", help="The server's command and its arguments."),
    ] = None,
    *,
    url: Annotated[
        str | None,
        typer.Option("--url", metavar="URL", help="A server that is reached over HTTP instead."),
    ] = None,
    http: Annotated[
        str | None,
        typer.Option(
            "--http",
            metavar="HOST:PORT",
            help="Offer the server over HTTP instead of standard input and output.",
        ),
    ] = None,
    policy: PolicyOption = None,
    state: StateOption = None,
    trust_hints: Annotated[
        bool,
        typer.Option(
            "--trust-hints",
            help="Believe the server's hints that a tool only reads or may be repeated.",
        ),
    ] = False,
    client_asks: Annotated[
        bool,
        typer.Option(
            "--client-asks",
            help="The client asks its user about every call itself, so nobody is asked twice.",
        ),
    ] = False,
    pins: Annotated[
        Path | None,
        typer.Option(
            "--pins",
            metavar="FILE",
            help="Hold back tools whose definition is not the accepted one, kept in this file.",
        ),
    ] = None,
    server_name: Annotated[
        str | None,
        typer.Option(
            "--server-name",
            metavar="NAME",
            help="What the server is: approvals are shown with it, and hold for it alone.",
        ),
    ] = None,
    token_file: Annotated[
        Path | None,
        typer.Option(
            "--token-file",
            metavar="FILE",
            help=f"Clients over HTTP must send the token in this file, or in ${TOKEN}.",
        ),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option("--allow-host", metavar="HOST", help="A further name clients may use for it."),
    ] = None,
    allow_origin: Annotated[
        list[str] | None,
        typer.Option("--allow-origin", metavar="ORIGIN", help="A web origin that may use it."),
    ] = None,
) -> None:
    """Stand in front of an MCP server."""
    from seawall.edges.cli.sources import policies_from, state_from  # noqa: PLC0415  # loaded when it is run
    from seawall.edges.mcp.proxy.command import proxy  # noqa: PLC0415  # as above
    from seawall.edges.mcp.proxy.options import ProxyOptions  # noqa: PLC0415  # as above

    # Said on standard error even without --verbose: nobody else tells what the server does.
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Printable())
    logger = logging.getLogger("seawall")
    logger.handlers = [handler]
    logger.propagate = False

    with configuration_errors():
        token = os.environ.pop(TOKEN, "")
        if token_file is not None:
            token = token_from(token_file)
        policies = policies_from(policy)
        has_server = proxy(
            ProxyOptions(
                command=tuple(command or ()),
                url=url,
                http=http,
                policies=policies,
                state=state_from(state),
                trust_hints=trust_hints,
                client_asks=client_asks,
                pins=pins,
                token=token or None,
                server_name=server_name,
                environment=_for_servers(policies, state, token),
                allowed_hosts=tuple(allow_host or ()),
                allowed_origins=tuple(allow_origin or ()),
            )
        )
    if not has_server:
        raise typer.Exit(Exit.USAGE)


def _for_servers(policies: Policies | None, state: str | None, token: str) -> dict[str, str]:
    """Give the environment of the server: without what was told to us alone."""
    from seawall.edges.mcp.proxy.environment import for_servers  # noqa: PLC0415  # not for --help

    shared = None if policies is None else policies.shared
    named = None if shared is None else shared.url_env
    told = [state, token, None if shared is None else shared.url, os.environ.get(named or "")]
    return for_servers(os.environ, told, [named])


class _Printable(logging.Formatter):
    """Shows what could move the cursor of a terminal: names and errors are the server's words."""

    def format(self, record: logging.LogRecord) -> str:
        from seawall.edges.cli.paper import printable  # noqa: PLC0415  # loaded when it is run

        return printable(super().format(record))


def token_from(file: Path) -> str:
    """Read a token; raises ConfigurationError if there is none."""
    from seawall.contract.errors import ConfigurationError, Fault  # noqa: PLC0415  # not for --help

    try:
        token = file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        said = f"cannot be read: {getattr(error, 'strerror', None) or type(error).__name__}"
        raise ConfigurationError([Fault(said, f"--token-file {file}")]) from None
    if not token:
        raise ConfigurationError(
            [Fault("is empty; write the token into it", f"--token-file {file}")]
        )
    return token
