"""What several commands have in common: options, and how a faulty configuration is told."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Annotated, ParamSpec

import typer

from seawall.edges.cli.exits import Exit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from seawall.edges.cli.mcp_sources import McpChoice

P = ParamSpec("P")

ToolArgument = Annotated[str, typer.Argument(metavar="TOOL", help="The tool's name.")]
ArgumentsArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="JSON|-",
        help="The arguments as a model would send them, or - to read them from standard input.",
        show_default=False,
    ),
]
RegistryOption = Annotated[
    str | None,
    typer.Option(
        "--registry",
        metavar="MODULE:ATTRIBUTE",
        help="Your tools: a registry, a list of tools or functions, a module, or a function"
        " without parameters that gives them. Default: the bundled tools.",
    ),
]
DescribedOption = Annotated[
    str | None,
    typer.Option(
        "--registry",
        metavar="MODULE:ATTRIBUTE",
        help="The tools that were recorded, where the trace does not say what they are like.",
    ),
]
PolicyOption = Annotated[
    str | None,
    typer.Option(
        "--policy",
        metavar="FILE",
        help="A policy file, or the name of one that comes with Seawall.",
    ),
]
StateOption = Annotated[
    str | None,
    typer.Option(
        "--state",
        metavar="URL",
        envvar="SEAWALL_STATE",
        help="Where approvals, effects, the audit log, notes and shortcuts are kept: sqlite:///FILE"
        " or postgresql://…. Default: in memory, until the command ends.",
    ),
]
SharedStateOption = Annotated[
    str | None,
    typer.Option(
        "--state",
        metavar="URL",
        envvar="SEAWALL_STATE",
        help="The state of whoever asked: sqlite:///FILE or postgresql://…. Always needed.",
    ),
]
ServersOption = Annotated[
    list[str] | None,
    typer.Option(
        "--mcp-config",
        metavar="FILE",
        help="A configuration of MCP servers, as Claude Desktop, Cursor or VS Code have it. May be"
        " given several times.",
    ),
]
McpConfigOption = Annotated[
    list[str] | None,
    typer.Option(
        "--mcp-config",
        metavar="FILE",
        help="MCP servers whose tools are added, as Claude Desktop, Cursor or VS Code name them."
        " May be given several times. Without --registry there are only their tools.",
    ),
]
TrustOption = Annotated[
    list[str] | None,
    typer.Option(
        "--trust",
        metavar="SERVER",
        help="An MCP server whose hints about its tools count. May be given several times.",
    ),
]
PinsOption = Annotated[
    str | None,
    typer.Option(
        "--pins",
        metavar="FILE",
        help="Where accepted definitions of MCP tools are kept. Default: beside the first"
        " --mcp-config.",
    ),
]
RecordOption = Annotated[
    str | None,
    typer.Option(
        "--record",
        metavar="FILE",
        help="Append every span to this file, to simulate and tune policies with. Digests only.",
    ),
]
YesOption = Annotated[
    bool,
    typer.Option("--yes", "-y", help="Allow what needs approval instead of being asked."),
]
NewestOption = Annotated[
    int, typer.Option(metavar="N", min=0, help="How many of the newest to list.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Write JSON, for programs.")]


def mcp_choice(
    files: list[str] | None, trust: list[str] | None = None, pins: str | None = None
) -> McpChoice:
    """Put together what the options say of MCP servers."""
    from seawall.edges.cli.mcp_sources import McpChoice  # noqa: PLC0415  # not for --help

    return McpChoice(tuple(files or ()), tuple(trust or ()), pins)


@contextmanager
def configuration_errors() -> Iterator[None]:
    """Say what cannot work, one line for each fault, and end with the code for it."""
    from seawall.contract.errors import (  # noqa: PLC0415  # not for --help
        ConfigurationError,
        MissingExtra,
        StoreUnavailable,
    )

    try:
        yield
    except ConfigurationError as error:
        for fault in error.faults:
            _tell(str(fault))
        raise typer.Exit(Exit.USAGE) from None
    except (MissingExtra, StoreUnavailable) as error:
        _tell(str(error))
        raise typer.Exit(Exit.USAGE) from None


def _tell(said: str) -> None:
    from seawall.edges.cli.paper import Paper  # noqa: PLC0415  # not for --help

    Paper(sys.stderr).line(said, lead="error: ")


def ends_with_code(command: Callable[P, int]) -> Callable[P, None]:
    """Let the process end with the code that a command gives, or that of a faulty configuration."""

    @wraps(command)
    def run(*args: P.args, **options: P.kwargs) -> None:
        with configuration_errors():
            code = command(*args, **options)
        raise typer.Exit(code)

    return run
