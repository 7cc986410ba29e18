"""The options of `seawall policy …`."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from seawall.edges.cli.options import (
    DescribedOption,
    JsonOption,
    PolicyOption,
    RegistryOption,
    ToolArgument,
    ends_with_code,
)

FullOption = Annotated[
    bool, typer.Option("--full", help="A line for each value, instead of what is alike once.")
]

policy_app = typer.Typer(
    help="Check, explain, compare, simulate and tune policy files.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@policy_app.command("check")
@ends_with_code
def check_policies(
    files: Annotated[
        list[str], typer.Argument(metavar="FILE", help="Policy files, or ready-made names.")
    ],
    *,
    registry: Annotated[
        str | None,
        typer.Option(
            "--registry",
            metavar="MODULE:ATTRIBUTE",
            help="Your tools: what in the files fits none of them is noted.",
        ),
    ] = None,
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
) -> int:
    """Tell all that is wrong with policy files, and where.

    Each fault has its file, line and column. With --registry also what is allowed but was probably
    not meant. Ends with 2 if a file cannot be used.
    """
    from seawall.edges.cli.paper import Paper  # noqa: PLC0415  # loaded by the command that needs it
    from seawall.edges.cli.policy import CheckOptions, check  # noqa: PLC0415  # as above

    options = CheckOptions(registry=registry, mcp_config=mcp_config, strict=strict, as_json=as_json)
    return check(files, options, Paper(), Paper(sys.stderr))


@policy_app.command("explain")
@ends_with_code
def explain_policy(
    tool: ToolArgument,
    *,
    registry: RegistryOption = None,
    policy: PolicyOption = None,
    full: FullOption = False,
    as_json: JsonOption = False,
) -> int:
    """Show a tool's policy by the rules that gave it."""
    from seawall.edges.cli.paper import Paper  # noqa: PLC0415  # loaded by the command that needs it
    from seawall.edges.cli.policy import ExplainOptions, explain  # noqa: PLC0415  # as above

    options = ExplainOptions(registry=registry, policy=policy, full=full, as_json=as_json)
    return explain(tool, options, Paper(), Paper(sys.stderr))


@policy_app.command("diff")
@ends_with_code
def diff_policies(
    before: Annotated[str, typer.Argument(metavar="A", help="A policy file or ready-made name.")],
    after: Annotated[str, typer.Argument(metavar="B", help="The one to compare it with.")],
    *,
    registry: RegistryOption = None,
    exit_code: Annotated[
        bool, typer.Option("--exit-code", help="End with 1 if anything differs.")
    ] = False,
    full: FullOption = False,
    as_json: JsonOption = False,
) -> int:
    """Show which tools another policy changes, and how.

    Each change is shown once, with the tools that it is for and the rule that says it. What a file
    writes otherwise but comes to the same is no difference.
    """
    from seawall.edges.cli.paper import Paper  # noqa: PLC0415  # loaded by the command that needs it
    from seawall.edges.cli.policy import DiffOptions, diff  # noqa: PLC0415  # as above

    options = DiffOptions(registry=registry, exit_code=exit_code, full=full, as_json=as_json)
    return diff(before, after, options, Paper())


@policy_app.command("schema")
def write_schema() -> None:
    """Write the JSON Schema of policy files, for editors."""
    from seawall.edges.cli.paper import Paper  # noqa: PLC0415  # loaded by the command that needs it
    from seawall.edges.cli.policy import schema  # noqa: PLC0415  # as above

    schema(Paper())


TraceOption = Annotated[
    list[str],
    typer.Option(
        "--trace",
        metavar="FILE",
        help="Recorded calls, as --record writes them; several files are played as one.",
    ),
]
SeedOption = Annotated[int, typer.Option(metavar="N", help="What is left to chance falls by it.")]


def _bound(of_what: str) -> Any:
    return typer.Option(metavar="N|N%", help=f"End with 1 if {of_what}.")


@policy_app.command("simulate")
@ends_with_code
def simulate_policy(
    *,
    trace: TraceOption,
    policy: Annotated[
        str,
        typer.Option("--policy", metavar="FILE", help="The candidate: file or ready-made name."),
    ],
    baseline: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="The policy that was recorded under: both are simulated, and compared.",
        ),
    ] = None,
    registry: DescribedOption = None,
    seed: SeedOption = 0,
    max_refused: Annotated[str | None, _bound("more calls are refused by a limit")] = None,
    max_newly_refused: Annotated[str | None, _bound("more are refused that were not")] = None,
    max_timed_out: Annotated[str | None, _bound("more run out of time")] = None,
    max_failed: Annotated[str | None, _bound("more fail after they began")] = None,
    max_lost: Annotated[str | None, _bound("more are not answered that were")] = None,
    max_shadow_refused: Annotated[
        str | None, _bound("layers in shadow mode would refuse more")
    ] = None,
    explain_differences: Annotated[
        bool,
        typer.Option(
            "--explain-differences",
            help="With --baseline: in which calls it differs from what happened, and at which"
            " boundary.",
        ),
    ] = False,
    as_json: JsonOption = False,
) -> int:
    """Play recorded calls under another policy.

    The layers are the real ones, on a virtual clock. Says for each tool and family how many calls
    would be refused, timed out, repeated, saved or lost, what that adds to their time, and which
    layers refuse. A bound is a number of calls, as 10, or a share of them, as 1%.
    """
    from seawall.edges.cli.paper import Paper  # noqa: PLC0415  # loaded by the command that needs it
    from seawall.edges.cli.simulate import SimulateOptions, run_simulation  # noqa: PLC0415  # as above

    options = SimulateOptions(
        traces=tuple(trace),
        policy=policy,
        baseline=baseline,
        registry=registry,
        seed=seed,
        bounds={
            "refused": max_refused,
            "newly_refused": max_newly_refused,
            "timed_out": max_timed_out,
            "failed": max_failed,
            "lost": max_lost,
            "shadow_refused": max_shadow_refused,
        },
        explain=explain_differences,
        as_json=as_json,
    )
    return run_simulation(options, Paper(), Paper(sys.stderr))


@policy_app.command("tune")
@ends_with_code
def tune_policy(
    *,
    trace: TraceOption,
    policy: Annotated[
        str | None,
        typer.Option(
            "--policy",
            metavar="FILE",
            help="The policy that was recorded under, to be changed; without it, default.",
        ),
    ] = None,
    registry: DescribedOption = None,
    seed: SeedOption = 0,
    output: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write the policy here, to be reviewed.")
    ] = None,
    as_json: JsonOption = False,
) -> int:
    """Propose timeouts, rates and other limits from recorded calls.

    Writes a policy file that extends the present one, each value with what it was, the evidence for
    it, and the simulated effect of all. Says of which tools too little is known.
    """
    from seawall.edges.cli.paper import Paper  # noqa: PLC0415  # loaded by the command that needs it
    from seawall.edges.cli.tune import TuneOptions, run_tuning  # noqa: PLC0415  # as above

    options = TuneOptions(
        traces=tuple(trace),
        policy=policy,
        registry=registry,
        seed=seed,
        output=output,
        as_json=as_json,
    )
    return run_tuning(options, Paper(), Paper(sys.stderr))
