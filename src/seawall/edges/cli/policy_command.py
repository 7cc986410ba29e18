"""The options of `seawall policy …`."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from seawall.edges.cli.options import (
    JsonOption,
    PolicyOption,
    RegistryOption,
    configuration_errors,
)

policy_app = typer.Typer(
    help="Check, explain, compare, simulate and tune policy files.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@policy_app.command("check")
def check_policies(
    files: Annotated[
        list[str], typer.Argument(metavar="FILE…", help="Policy files, or ready-made names.")
    ],
    *,
    registry: RegistryOption = None,
    mcp_config: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="A client's configuration with `mcpServers`: families that name other servers are"
            " noted.",
        ),
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="End with 2 for notes, too, as for faults.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Tell everything that is wrong with policy files, each fault with file, line and column.

    With --registry also what is allowed but was probably not meant. Ends with 2 if a file cannot
    be used.
    """
    from seawall.edges.cli.paper import Paper  # noqa: PLC0415  # loaded by the command that needs it
    from seawall.edges.cli.policy import CheckOptions, check  # noqa: PLC0415  # as above

    options = CheckOptions(registry=registry, mcp_config=mcp_config, strict=strict, as_json=as_json)
    with configuration_errors():
        code = check(files, options, Paper(), Paper(sys.stderr))
    raise typer.Exit(code)


@policy_app.command("explain")
def explain_policy(
    tool: Annotated[str, typer.Argument(metavar="TOOL", help="The tool's name.")],
    *,
    registry: RegistryOption = None,
    policy: PolicyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show each value of a tool's policy, and the rule that gave it."""
    from seawall.edges.cli.paper import Paper  # noqa: PLC0415  # loaded by the command that needs it
    from seawall.edges.cli.policy import explain  # noqa: PLC0415  # as above

    with configuration_errors():
        code = explain(tool, registry, policy, Paper(), Paper(sys.stderr), as_json=as_json)
    raise typer.Exit(code)


@policy_app.command("diff")
def diff_policies(
    before: Annotated[str, typer.Argument(metavar="A", help="A policy file or ready-made name.")],
    after: Annotated[str, typer.Argument(metavar="B", help="The one to compare it with.")],
    *,
    registry: RegistryOption = None,
    exit_code: Annotated[
        bool, typer.Option("--exit-code", help="End with 1 if anything differs.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Show which tools another policy changes: each value, and the rules that give it.

    What a file writes otherwise but comes to the same is no difference.
    """
    from seawall.edges.cli.paper import Paper  # noqa: PLC0415  # loaded by the command that needs it
    from seawall.edges.cli.policy import DiffOptions, diff  # noqa: PLC0415  # as above

    options = DiffOptions(registry=registry, exit_code=exit_code, as_json=as_json)
    with configuration_errors():
        code = diff(before, after, options, Paper())
    raise typer.Exit(code)


@policy_app.command("schema")
def write_schema() -> None:
    """Write the JSON Schema of policy files, for editors."""
    from seawall.edges.cli.paper import Paper  # noqa: PLC0415  # loaded by the command that needs it
    from seawall.edges.cli.policy import schema  # noqa: PLC0415  # as above

    schema(Paper())
