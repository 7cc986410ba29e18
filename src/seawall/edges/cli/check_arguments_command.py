"""The options of `seawall check-arguments`."""

from __future__ import annotations

from seawall.edges.cli.options import (
    ArgumentsArgument,
    JsonOption,
    McpConfigOption,
    PinsOption,
    PolicyOption,
    RegistryOption,
    ToolArgument,
    TrustOption,
    ends_with_code,
    mcp_choice,
)


@ends_with_code
def check_arguments(
    tool: ToolArgument,
    arguments: ArgumentsArgument = None,
    *,
    registry: RegistryOption = None,
    mcp_config: McpConfigOption = None,
    trust: TrustOption = None,
    pins: PinsOption = None,
    policy: PolicyOption = None,
    as_json: JsonOption = False,
) -> int:
    """Show what is mended or refused in a call's arguments.

    Runs nothing. Ends with 0 if the tool could be called so, with 3 if the arguments are refused,
    and else as seawall call does.
    """
    from seawall.edges.cli.check_arguments import (  # noqa: PLC0415  # loaded when it is run
        CheckOptions,
        check,
    )

    options = CheckOptions(
        registry=registry, mcp=mcp_choice(mcp_config, trust, pins), policy=policy, as_json=as_json
    )
    return check(tool, arguments, options)
