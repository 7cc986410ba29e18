"""What several commands have in common: options, and how a faulty configuration is told."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from seawall.edges.cli.exits import Exit

if TYPE_CHECKING:
    from collections.abc import Iterator

RegistryOption = Annotated[
    str | None,
    typer.Option(
        "--registry",
        metavar="MODULE:ATTRIBUTE",
        help="Your tools: a registry, a list of tools or functions, a module, or a function"
        " without parameters that gives them. Default: the bundled tools.",
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
        help="Where effects, the audit log, notes and shortcuts are kept: sqlite:///FILE or"
        " postgresql://…. Default: in memory, until the command ends.",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Write JSON, for programs.")]


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
            typer.echo(f"error: {fault}", err=True)
        raise typer.Exit(Exit.USAGE) from None
    except (MissingExtra, StoreUnavailable) as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(Exit.USAGE) from None
