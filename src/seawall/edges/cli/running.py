"""What the commands that run tools share: how tools, policy, state and asking are set up."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, TypeVar

import msgspec

from seawall.edges.cli.asking import Terminal, allowed_once
from seawall.edges.cli.mcp_sources import McpChoice, with_tools
from seawall.edges.cli.paper import Paper
from seawall.edges.cli.sources import kept, policies_from, recorded, state_from
from seawall.orchestration.pipeline import Pipeline

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from seawall.registry.registry import Registry

T = TypeVar("T")

NOBODY = "Nobody can be asked here: run it on a terminal, or allow it with --yes."


class RunOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line said about tools, policy, state and asking."""

    registry: str | None = None
    mcp: McpChoice = McpChoice()
    policy: str | None = None
    state: str | None = None
    yes: bool = False
    record: str | None = None
    as_json: bool = False


def with_pipeline(
    options: RunOptions,
    work: Callable[[Pipeline], Awaitable[T]],
    *,
    reads_input: bool,
    wanted: str | None = None,
) -> T:
    """Run `work` with a pipeline of these options, open while it runs.

    A person is asked on the terminal, unless standard input is read for something else.
    """
    terminal = Terminal()
    asks = options.yes or (not reads_input and terminal.is_there)
    confirm = (allowed_once if options.yes else terminal.confirm) if asks else None
    policies, state = policies_from(options.policy), state_from(options.state)
    errors = Paper(sys.stderr)

    async def run(registry: Registry) -> T:
        for note in policies.notes(registry) if policies else ():
            errors.line(note, lead="note: ")
        with recorded(options.record, registry) as recorders:
            pipeline = Pipeline(
                registry, policies=policies, confirm=confirm, state=state, recorders=recorders
            )
            async with kept(state), pipeline:
                return await work(pipeline)

    return with_tools(options.registry, options.mcp, errors, run, policies, state, wanted)
