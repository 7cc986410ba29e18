"""The commands and their options. What a command does is loaded when it is run."""

from __future__ import annotations

import logging
import math
import sys
from typing import Annotated

import typer

from seawall import __version__
from seawall.edges.cli.approvals_command import app as approvals_app
from seawall.edges.cli.audit_command import audit_app
from seawall.edges.cli.batch_command import run_batch
from seawall.edges.cli.check_arguments_command import check_arguments
from seawall.edges.cli.exits import MEANINGS
from seawall.edges.cli.mcp_command import mcp_app
from seawall.edges.cli.once import each_option_once
from seawall.edges.cli.options import (
    ArgumentsArgument,
    JsonOption,
    McpConfigOption,
    PinsOption,
    PolicyOption,
    RecordOption,
    RegistryOption,
    ServersOption,
    StateOption,
    ToolArgument,
    TrustOption,
    YesOption,
    ends_with_code,
    mcp_choice,
)
from seawall.edges.cli.policy_command import policy_app
from seawall.edges.cli.proxy_command import PROXY_HELP, run_proxy
from seawall.edges.cli.serve_command import run_gateway
from seawall.edges.cli.trace_command import show_trace

app = typer.Typer(
    name="seawall",
    help="A hardened execution pipeline for the tools that language models call.",
    # Rich would double the time until the first letter is shown.
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:  # noqa: FBT001  # typer calls it so
    if wanted:
        typer.echo(f"seawall {__version__}")
        raise typer.Exit


@app.callback()
def seawall(
    *,
    version: Annotated[  # noqa: ARG001  # its callback does the work
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Say the version."),
    ] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Log what tools raise, with its frames.")
    ] = False,
) -> None:
    """A hardened execution pipeline for the tools that language models call."""
    logger = logging.getLogger("seawall")
    if verbose:
        logging.basicConfig(stream=sys.stderr, format="%(levelname)s %(name)s: %(message)s")
    elif not logger.handlers:
        # Results say what is wrong; frames are for those who ask for them.
        logger.addHandler(logging.NullHandler())


@app.command("demo")
@ends_with_code
def run_demo(
    *,
    policy: PolicyOption = None,
    mcp_config: ServersOption = None,
    trust: TrustOption = None,
    pins: PinsOption = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Write one JSON object a line, for programs.")
    ] = False,
    seed: Annotated[
        int | None, typer.Option(metavar="N", help="Let chance fall the same way each time.")
    ] = None,
    fast: Annotated[bool, typer.Option("--fast", help="Leave out the pauses for reading.")] = False,
    chaos: Annotated[
        bool, typer.Option("--chaos", help="Break more: injected errors, crashes, hangs, delays.")
    ] = False,
) -> int:
    """Watch a scripted agent's calls meet the main layers.

    Those are seven: environment gate, risk gate, argument check, rate limit, retry, breaker and
    timeout. The tools and the service behind them are real: it is started here, on this machine
    alone, and is flaky, slow and down at times. Takes some seconds, needs no network, and ends by
    itself: with 0 if all seven acted, else with 1.
    """
    from seawall.edges.cli.demo import DemoOptions, demo  # noqa: PLC0415  # loaded when it is run

    options = DemoOptions(
        policy=policy,
        mcp=mcp_choice(mcp_config, trust, pins),
        as_json=as_json,
        seed=seed,
        fast=fast,
        chaos=chaos,
    )
    return demo(options)


@app.command("tools")
@ends_with_code
def list_tools(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="Everything about this tool.", show_default=False),
    ] = None,
    *,
    registry: RegistryOption = None,
    mcp_config: McpConfigOption = None,
    trust: TrustOption = None,
    pins: PinsOption = None,
    policy: PolicyOption = None,
    describe: Annotated[
        str | None,
        typer.Option(
            "--describe",
            metavar="NAME",
            help="Everything about one tool: schema, examples, and which rule of the policy gave"
            " each value. The same as NAME.",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> int:
    """List the tools, with the policy that each runs under."""
    from seawall.edges.cli.paper import Paper  # noqa: PLC0415  # loaded by the command that needs it
    from seawall.edges.cli.tools import ToolsOptions, tools  # noqa: PLC0415  # as above

    if None not in (name, describe) and name != describe:
        raise typer.BadParameter(f"one tool at a time: {name} or {describe}")
    options = ToolsOptions(
        registry=registry,
        mcp=mcp_choice(mcp_config, trust, pins),
        policy=policy,
        describe=describe or name,
        as_json=as_json,
    )
    return tools(options, Paper(), Paper(sys.stderr))


def _seconds(raw: str) -> float:
    from seawall.policy.units import duration  # noqa: PLC0415  # loaded when it is needed

    try:
        value = float(raw)
    except ValueError:
        try:
            value = duration(raw)
        except ValueError as error:
            raise typer.BadParameter(str(error)) from None
    if not 0 < value < math.inf:
        raise typer.BadParameter(f"must be a number of seconds above 0, not {value:g}")
    return value


_CALL_HELP = """Call one tool through all layers and write its result.

A call that needs approval asks on the terminal; without a terminal and without --yes it is refused,
or with --state it waits: see seawall approvals.
What went wrong is written to standard error; with --json it is part of the result.

\b
Exit codes:
""" + "\n".join(f"  {code:d}  {meaning}" for code, meaning in MEANINGS.items())


@app.command("call", help=_CALL_HELP)
@ends_with_code
def call_tool(
    tool: ToolArgument,
    arguments: ArgumentsArgument = None,
    *,
    registry: RegistryOption = None,
    mcp_config: McpConfigOption = None,
    trust: TrustOption = None,
    pins: PinsOption = None,
    policy: PolicyOption = None,
    state: StateOption = None,
    once: Annotated[
        str | None,
        typer.Option(
            "--once",
            metavar="KEY",
            help="An idempotency key: with a state, calls with the same key are one effect.",
        ),
    ] = None,
    yes: YesOption = False,
    timeout: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            parser=_seconds,
            help="For each attempt, instead of the policy's; 2, 2s, 500ms, 1m.",
        ),
    ] = None,
    deadline: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            parser=_seconds,
            help="For the whole call: questions, waits and attempts together.",
        ),
    ] = None,
    record: RecordOption = None,
    as_json: JsonOption = False,
) -> int:
    """Call one tool through all layers and write its result."""
    from seawall.edges.cli.call import CallOptions, call  # noqa: PLC0415  # loaded when it is run

    options = CallOptions(
        registry=registry,
        mcp=mcp_choice(mcp_config, trust, pins),
        policy=policy,
        state=state,
        once=once,
        yes=yes,
        timeout_s=timeout,
        deadline_s=deadline,
        record=record,
        as_json=as_json,
    )
    return call(tool, arguments, options)


app.command("check-arguments")(check_arguments)
app.command("batch")(run_batch)
app.command("trace")(show_trace)
app.add_typer(policy_app, name="policy")
app.command("serve")(run_gateway)
app.add_typer(audit_app)
app.add_typer(mcp_app, name="mcp")
# What follows the server's command is the server's own, also where `--` was forgotten.
app.command("proxy", help=PROXY_HELP, context_settings={"allow_interspersed_args": False})(
    run_proxy
)
app.add_typer(approvals_app)


@app.command("version")
def show_version() -> None:
    """Say the version."""
    _show_version(wanted=True)


each_option_once(app)


def run() -> None:
    """Run the command line of this process."""
    for stream in (sys.stdout, sys.stderr):
        # A stream that cannot say a letter says its code instead of failing.
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")
    app(prog_name="seawall")
