"""The options of `seawall check-arguments`."""

from __future__ import annotations

from typing import Annotated

import typer

from seawall.edges.cli.options import (
    JsonOption,
    McpConfigOption,
    PinsOption,
    PolicyOption,
    RegistryOption,
    TrustOption,
    configuration_errors,
    mcp_choice,
)


def check_arguments(
    tool: Annotated[str, typer.Argument(help="The tool's name.")],
    arguments: Annotated[
        str | None,
        typer.Argument(
            metavar="[TEXT|-]",
            help="The arguments as a model sent them, or - to read them from standard input.",
            show_default=False,
        ),
    ] = None,
    *,
    registry: RegistryOption = None,
    mcp_config: McpConfigOption = None,
    trust: TrustOption = None,
    pins: PinsOption = None,
    policy: PolicyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what would be mended in the arguments of a call, and what refused; runs nothing.

    Ends with 0 if the tool could be called so, with 3 if the arguments are refused, and else as
    seawall call does.
    """
    from seawall.edges.cli.check_arguments import (  # noqa: PLC0415  # loaded when it is run
        CheckOptions,
        check,
    )

    options = CheckOptions(
        registry=registry, mcp=mcp_choice(mcp_config, trust, pins), policy=policy, as_json=as_json
    )
    with configuration_errors():
        code = check(tool, arguments, options)
    raise typer.Exit(code)
