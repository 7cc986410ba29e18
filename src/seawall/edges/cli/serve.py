"""`seawall serve`: make the pipeline and the tokens, and run the gateway."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from seawall.contract.errors import ConfigurationError, Fault
from seawall.edges.cli.mcp_sources import McpChoice, with_tools
from seawall.edges.cli.sources import kept, policies_from, policy_path, recorded, state_from
from seawall.edges.gateway.settings import GatewaySettings, token_path
from seawall.edges.gateway.sharing import said_of, sharing
from seawall.edges.gateway.tokens import (
    MadeToken,
    Tokens,
    tokens_from_environment,
    tokens_from_file,
)
from seawall.orchestration.approvals.settings import ApprovalSettings
from seawall.orchestration.pipeline import Pipeline
from seawall.orchestration.policy_watch import watched
from seawall.policy.model import Policies

if TYPE_CHECKING:
    from seawall.edges.cli.paper import Paper
    from seawall.edges.gateway.seat import Seat
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
    workers: int = 1
    replace_blocked_s: float | None = None
    state: str | None = None
    mcp: McpChoice = McpChoice()
    watch: bool = False
    record: str | None = None


class Access(msgspec.Struct, frozen=True):
    """Who may come in: the same for all workers."""

    tokens: Tokens
    made: MadeToken | None = None
    """What was made for this run; its file is there while somebody can come in."""


def serve(options: ServeOptions, paper: Paper) -> None:
    """Serve until the process is told to stop."""
    need_gateway()
    access = access_of(options)
    try:
        serve_here(options, paper, access)
    finally:
        if access.made is not None:
            access.made.remove()


def need_gateway() -> None:
    """Say what to install if the gateway cannot be imported."""
    try:
        import seawall.edges.gateway.serve  # noqa: F401, PLC0415  # an extra
    except ModuleNotFoundError as error:
        said = f"the gateway needs {error.name}; run `pip install 'seawall[gateway]'`"
        raise ConfigurationError(said) from error


def serve_here(
    options: ServeOptions, paper: Paper, access: Access, seat: Seat | None = None
) -> None:
    """Serve in this process, which has the seat of a worker or is the only one."""
    policies, state = policies_from(options.policy), state_from(options.state or "memory:")
    policies = with_replicas(policies, options.workers)
    settings = settings_of(options, policies, access.tokens, seat)
    told = Told(paper, access, seat)

    async def work(registry: Registry) -> None:
        told.once(*(f"note: {note}" for note in policies.notes(registry)))
        with recorded(_own_file(options.record, seat), registry) as recorders:
            pipeline = Pipeline(
                registry,
                policies=policies,
                state=state,
                approvals=ApprovalSettings(),
                recorders=recorders,
            )
            await serving(pipeline)

    async def serving(pipeline: Pipeline) -> None:
        from seawall.edges.gateway.serve import serve as run  # noqa: PLC0415  # an extra

        async with kept(state), AsyncExitStack() as stack:
            if options.policy is not None:
                path = policy_path(options.policy)
                await _watch(stack, path, pipeline, options, told)
            if seat is not None:
                # Only now is there somebody to end in order.
                seat.end_with_supervisor(options.drain_s + LAST_S)
            await run(
                pipeline,
                settings,
                lambda address: told.started(address, pipeline, settings),
                lambda: None if seat is None else seat.ready(),
                None if seat is None else seat.pulse,
            )

    with_tools(options.registry, options.mcp, paper, work, policies, state)


LAST_S = 15.0
"""What a worker without a supervisor may take beyond its drain."""


class Told:
    """Says what a person is to know; of several workers the first says what is so for all."""

    def __init__(self, paper: Paper, access: Access, seat: Seat | None) -> None:
        self._paper = paper
        self._access = access
        self._seat = seat

    def once(self, *lines: str) -> None:
        """Say what all workers would say."""
        if self._seat is None or self._seat.is_first:
            for line in lines:
                self._paper.text(line)

    def each(self, line: str) -> None:
        """Say something of this process."""
        self._paper.text(line if self._seat is None else f"{self._seat.name}: {line}")

    def started(self, address: str, pipeline: Pipeline, settings: GatewaySettings) -> None:
        """Say where it is, who may come in, and what is kept."""
        self.once(f"{len(pipeline.registry)} tools at {address}")
        if self._access.made is not None:
            if self._seat is None or self._seat.is_first:
                self._access.made.write()
            self.once(f"the token for approvals and administration is in {self._access.made.path}")
        if self._seat is not None:
            self.once(*said_of(sharing(pipeline, settings), self._seat.of))
        elif pipeline.state is None or not pipeline.state.durable:
            self.once("what is kept is in memory, and gone when this ends; --state keeps it")


async def _watch(
    stack: AsyncExitStack, path: Path, pipeline: Pipeline, options: ServeOptions, told: Told
) -> None:
    """Take the policy file anew on SIGHUP, and if wanted when it changes."""

    def taken(policies: Policies) -> None:
        told.each(f"policy taken: {path}")
        told.once(*(f"note: {note}" for note in policies.notes(pipeline.registry)))

    def refused(error: ConfigurationError) -> None:
        for fault in error.faults:
            told.each(f"error: {fault}")
        told.each("the former policy goes on")

    watch = watched(path, pipeline, environment=os.environ, on_reload=taken, on_fault=refused)
    hangup = getattr(signal, "SIGHUP", None)  # not on every system
    if hangup is not None:
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(hangup, watch.reload)
        stack.callback(loop.remove_signal_handler, hangup)
    if options.watch:
        await stack.enter_async_context(watch)


def with_replicas(policies: Policies | None, workers: int) -> Policies:
    """Let each worker grant no more than its part of a rate where nothing is shared."""
    policies = policies or Policies.default()
    if policies.shared.replicas < workers:
        policies.shared = msgspec.structs.replace(policies.shared, replicas=workers)
    return policies


def settings_of(
    options: ServeOptions, policies: Policies, tokens: Tokens, seat: Seat | None = None
) -> GatewaySettings:
    """Put together how the gateway is run."""
    try:
        return GatewaySettings(
            host=options.host,
            port=options.port,
            tokens=tokens,
            allow_hosts=options.allow_hosts,
            max_body_bytes=options.max_body_bytes,
            client_rate=options.client_rate,
            drain_s=options.drain_s,
            console=options.console,
            console_allow=policies.console.allow,
            worker=1 if seat is None else seat.number,
            workers=options.workers,
        )
    except ConfigurationError as error:
        raise ConfigurationError([_of_option(fault) for fault in error.faults]) from None


_OPTIONS = {
    "host": "--host",
    "port": "--port",
    "client_rate": "--client-rate",
    "max_body_bytes": "--max-body",
    "drain_s": "--drain",
}


def _of_option(fault: Fault) -> Fault:
    """Name the option that a setting was given by."""
    return msgspec.structs.replace(fault, key=_OPTIONS.get(fault.key, fault.key))


def access_of(options: ServeOptions) -> Access:
    """Gather the tokens; if none of them may administer, make one for this run."""
    tokens = tokens_from_environment(os.environ)
    if options.token_file is not None:
        tokens += tokens_from_file(options.token_file)
    if any(client.may("admin") for client in tokens.clients):
        return Access(tokens)
    made = MadeToken(token_path(options.port))
    return Access(tokens + made.tokens, made)


def _own_file(record: str | None, seat: Seat | None) -> str | None:
    """Name the file of this worker's spans: times in one count from its own beginning."""
    if record is None or seat is None:
        return record
    path = Path(record)
    return str(path.with_name(f"{path.stem}.{seat.number}{path.suffix}"))
