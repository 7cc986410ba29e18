"""The options of `seawall batch`."""

from __future__ import annotations

from typing import Annotated

import typer

from seawall.edges.cli.options import (
    JsonOption,
    McpConfigOption,
    PinsOption,
    PolicyOption,
    RecordOption,
    RegistryOption,
    StateOption,
    TrustOption,
    YesOption,
    ends_with_code,
    mcp_choice,
)


@ends_with_code
def run_batch(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE|-",
            help='The steps: JSON of a list of {"tool": …, "arguments": …}, or of'
            ' {"steps": […], "budget_s": …}.',
        ),
    ],
    *,
    registry: RegistryOption = None,
    mcp_config: McpConfigOption = None,
    trust: TrustOption = None,
    pins: PinsOption = None,
    policy: PolicyOption = None,
    state: StateOption = None,
    yes: YesOption = False,
    budget: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", help="For all steps together, 1 to 600. Default: 120."),
    ] = None,
    record: RecordOption = None,
    as_json: JsonOption = False,
) -> int:
    """Run calls strictly in order, until the first one fails.

    {0} in a text of the arguments is what step 0 gave, {1} what step 1 gave, and so on. Steps that
    need approval are asked about on the terminal before the first one runs; without a terminal and
    without --yes nothing is run. Ends with the exit code of the step that failed, as seawall call
    has it.
    """
    from seawall.edges.cli.batch import BatchOptions, batch  # noqa: PLC0415  # loaded when it is run

    options = BatchOptions(
        registry=registry,
        mcp=mcp_choice(mcp_config, trust, pins),
        policy=policy,
        state=state,
        yes=yes,
        budget_s=budget,
        record=record,
        as_json=as_json,
    )
    return batch(file, options)
