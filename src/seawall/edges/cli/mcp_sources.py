"""What `--mcp-config` and its companions name: servers, connected while a command runs."""

from __future__ import annotations

import asyncio
import getpass
import logging
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec

from seawall.contract.errors import ConfigurationError, Fault
from seawall.edges.cli.sources import registry_from
from seawall.registry.registry import Registry

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from seawall.edges.cli.paper import Paper
    from seawall.edges.mcp.servers import Servers
    from seawall.edges.mcp.variables import Input
    from seawall.policy.model import Policies
    from seawall.stores.state import State

T = TypeVar("T")


class McpChoice(msgspec.Struct, frozen=True):
    """What the command line said of MCP servers."""

    files: tuple[str, ...] = ()
    trust: tuple[str, ...] = ()
    pins: str | None = None

    def __bool__(self) -> bool:
        return bool(self.files)

    @property
    def pins_path(self) -> Path:
        """Where accepted definitions are kept: beside the first configuration, if not told."""
        from seawall.edges.mcp.pins import pins_path  # noqa: PLC0415  # not without servers

        return pins_path(Path(self.files[0])) if self.pins is None else Path(self.pins)


def with_tools(
    registry: str | None,
    mcp: McpChoice,
    errors: Paper,
    work: Callable[[Registry], Awaitable[T]],
    policies: Policies | None = None,
    state: State | None = None,
    wanted: str | None = None,
) -> T:
    """Run `work` with the tools of `--registry` and those of the servers, while these are there.

    With servers and no `--registry` there are only the servers' tools. Raises `ConfigurationError`
    if the tool that is `wanted` is of a server that could not be connected.
    """
    needs_servers(mcp)
    # What `--registry` names is looked for before a loop runs: it may run one itself.
    if not mcp:
        own = registry_from(registry, policies, state)
    else:
        own = Registry() if registry is None else registry_from(registry).copy()
    return asyncio.run(_with_servers(own, mcp, errors, work, wanted))


async def _with_servers(
    own: Registry,
    mcp: McpChoice,
    errors: Paper,
    work: Callable[[Registry], Awaitable[T]],
    wanted: str | None,
) -> T:
    if not mcp:
        return await work(own)
    async with connected(mcp, errors, own) as servers:
        if wanted is not None and wanted not in servers.registry:
            _need_server_of(wanted, servers)
        return await work(servers.registry)


def _need_server_of(tool: str, servers: Servers) -> None:
    """Say why a tool's server is not there: of its tools nothing is known."""
    from seawall.edges.mcp.names import SEPARATOR, prefix_of  # noqa: PLC0415  # not without servers

    for server in servers.states():
        is_its = tool.startswith(prefix_of(server.name) + SEPARATOR)
        if is_its and server.state != "up" and not server.tools:
            said = f"is not connected, so {tool} cannot be called: {server.why}"
            raise ConfigurationError([Fault(said, f"MCP server {server.name!r}")])


@asynccontextmanager
async def connected(mcp: McpChoice, errors: Paper, into: Registry) -> AsyncIterator[Servers]:
    """Connect the servers of the files; what a person should know is told on `errors`."""
    from seawall.edges.mcp.config import load_servers  # noqa: PLC0415  # not without servers
    from seawall.edges.mcp.options import McpOptions  # noqa: PLC0415  # as above
    from seawall.edges.mcp.servers import connect  # noqa: PLC0415  # as above

    for name in ("mcp", "client"):
        # As with our own: results and notes say what is wrong, and logs are for those who ask.
        logging.getLogger(name).addHandler(logging.NullHandler())
    options = McpOptions(trust=frozenset(mcp.trust), pins=mcp.pins_path)
    configs = load_servers(mcp.files, ask=_ask if _can_ask() else None)

    def note(said: str) -> None:
        errors.line(said, lead="note: ")

    async with await connect(configs, options=options, into=into, on_note=note) as servers:
        yield servers


def needs_servers(mcp: McpChoice) -> None:
    """Refuse options that say something of servers where none are named."""
    if mcp:
        return
    said = "says something of MCP servers; name them with --mcp-config"
    given = [("--trust", bool(mcp.trust)), ("--pins", mcp.pins is not None)]
    faults = [Fault(said, option) for option, is_given in given if is_given]
    if faults:
        raise ConfigurationError(faults)


def _can_ask() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


def _ask(wanted: Input) -> str | None:
    """Ask the person at the terminal for what a configuration of VS Code asks for."""
    question = f"{wanted.description or wanted.id}: "
    if wanted.password:
        return getpass.getpass(question) or None
    sys.stderr.write(question)
    sys.stderr.flush()
    return sys.stdin.readline().rstrip("\n") or None
