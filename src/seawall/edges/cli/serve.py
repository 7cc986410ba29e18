"""`seawall serve`: make the pipeline and the tokens, and run the gateway."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from seawall.contract.errors import ConfigurationError
from seawall.edges.cli.mcp_sources import McpChoice, with_tools
from seawall.edges.cli.sources import kept, policies_from, policy_path, recorded, state_from
from seawall.edges.gateway.settings import GatewaySettings, token_path
from seawall.edges.gateway.tokens import (
    Tokens,
    made_token,
    tokens_from_environment,
    tokens_from_file,
)
from seawall.orchestration.approvals.settings import ApprovalSettings
from seawall.orchestration.pipeline import Pipeline
from seawall.orchestration.policy_watch import watched

if TYPE_CHECKING:
    from seawall.edges.cli.paper import Paper
    from seawall.policy.model import Policies
    from seawall.registry.registry import Registry


class ServeOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line said."""

    registry: str | None = None
    policy: str | None = "gateway"
    host: str = "127.0.0.1"
    port: int = 8080
    token_file: Path | None = None
    allow_hosts: tuple[str, ...] = ()
    client_rate: str | None = None
    max_body_bytes: int = 1_048_576
    drain_s: float = 20.0
    console: bool = True
    state: str | None = None
    mcp: McpChoice = McpChoice()
    watch: bool = False
    record: str | None = None


def serve(options: ServeOptions, paper: Paper) -> None:
    """Serve until the process is told to stop."""
    try:
        from seawall.edges.gateway.serve import serve as run  # noqa: PLC0415  # an extra
    except ModuleNotFoundError as error:
        said = f"the gateway needs {error.name}; run `pip install 'seawall[gateway]'`"
        raise ConfigurationError(said) from error
    policies, state = policies_from(options.policy), state_from(options.state or "memory:")
    tokens, where = _tokens(options)
    settings = _settings(options, policies, tokens)

    async def work(registry: Registry) -> None:
        for note in policies.notes(registry) if policies else ():
            paper.text(f"note: {note}")
        with recorded(options.record, registry) as recorders:
            await serving(
                Pipeline(
                    registry,
                    policies=policies,
                    state=state,
                    approvals=ApprovalSettings(),
                    recorders=recorders,
                )
            )

    async def serving(pipeline: Pipeline) -> None:
        def started(address: str) -> None:
            paper.text(f"{len(pipeline.registry)} tools at {address}")
            if where is not None:
                paper.text(f"the token for approvals and administration is in {where}")
            if state is None or not state.durable:
                paper.text("what is kept is in memory, and gone when this ends; --state keeps it")

        async with kept(state), AsyncExitStack() as stack:
            if options.policy is not None:
                await _watch(stack, policy_path(options.policy), pipeline, options, paper)
            await run(pipeline, settings, started)

    with_tools(options.registry, options.mcp, paper, work, policies, state)


async def _watch(
    stack: AsyncExitStack, path: Path, pipeline: Pipeline, options: ServeOptions, paper: Paper
) -> None:
    """Take the policy file anew on SIGHUP, and if wanted when it changes."""

    def taken(policies: Policies) -> None:
        paper.text(f"policy taken: {path}")
        for note in policies.notes(pipeline.registry):
            paper.text(f"note: {note}")

    def refused(error: ConfigurationError) -> None:
        for fault in error.faults:
            paper.text(f"error: {fault}")
        paper.text("the former policy goes on")

    watch = watched(path, pipeline, environment=os.environ, on_reload=taken, on_fault=refused)
    hangup = getattr(signal, "SIGHUP", None)  # not on every system
    if hangup is not None:
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(hangup, watch.reload)
        stack.callback(loop.remove_signal_handler, hangup)
    if options.watch:
        await stack.enter_async_context(watch)


def _settings(options: ServeOptions, policies: Policies | None, tokens: Tokens) -> GatewaySettings:
    return GatewaySettings(
        host=options.host,
        port=options.port,
        tokens=tokens,
        allow_hosts=options.allow_hosts,
        max_body_bytes=options.max_body_bytes,
        client_rate=options.client_rate,
        drain_s=options.drain_s,
        console=options.console,
        console_allow=None if policies is None else policies.console.allow,
    )


def _tokens(options: ServeOptions) -> tuple[Tokens, Path | None]:
    """Gather the tokens; if none of them may administer, make one for this run."""
    tokens = tokens_from_environment(os.environ)
    if options.token_file is not None:
        tokens += tokens_from_file(options.token_file)
    if any(client.may("admin") for client in tokens.clients):
        return tokens, None
    where = token_path(options.port)
    return tokens + made_token(where), where
