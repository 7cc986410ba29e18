"""`seawall serve`: make the pipeline and the tokens, and run the gateway."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from seawall.contract.errors import ConfigurationError
from seawall.edges.cli.mcp_sources import McpChoice, with_tools
from seawall.edges.cli.sources import kept, policies_from, state_from
from seawall.edges.gateway.settings import GatewaySettings, token_path
from seawall.edges.gateway.tokens import (
    Tokens,
    made_token,
    tokens_from_environment,
    tokens_from_file,
)
from seawall.orchestration.approvals.settings import ApprovalSettings
from seawall.orchestration.pipeline import Pipeline

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
        pipeline = Pipeline(registry, policies=policies, state=state, approvals=ApprovalSettings())

        def started(address: str) -> None:
            paper.text(f"{len(registry)} tools at {address}")
            if where is not None:
                paper.text(f"the token for approvals and administration is in {where}")
            if state is None or not state.durable:
                paper.text("what is kept is in memory, and gone when this ends; --state keeps it")

        async with kept(state):
            await run(pipeline, settings, started)

    with_tools(options.registry, options.mcp, paper, work, policies, state)


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
    where = token_path()
    return tokens + made_token(where), where
