"""All the MCP servers of a configuration behind one registry.

    async with await connect("mcp.json") as servers:
        pipeline = Pipeline(servers.registry)
        await pipeline.call("time__get_current_time", {"timezone": "UTC"})

They are started together; one that fails keeps none of the others, is told of, and is tried again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from seawall.contract.errors import ConfigurationError, Fault
from seawall.edges.mcp.config import ServerConfig, load_servers, name_faults, servers_of
from seawall.edges.mcp.extra import need_sdk
from seawall.edges.mcp.listing import Listing
from seawall.edges.mcp.options import McpOptions
from seawall.edges.mcp.pins import Pins
from seawall.pipeline.chance import Chance, SystemChance
from seawall.pipeline.clock import Clock, SystemClock
from seawall.pipeline.foreign import log, tell
from seawall.registry.registry import Registry

if TYPE_CHECKING:
    from seawall.contract.tool import Executor
    from seawall.edges.mcp.server import Server, ServerState

Source = str | Path | ServerConfig | Mapping[str, Any] | Iterable[str | Path | ServerConfig]
"""A file or several, `ServerConfig`s, or the content of a file: `{"mcpServers": {…}}`."""

Note = Callable[[str], None]


async def connect(
    source: Source,
    *,
    options: McpOptions | None = None,
    into: Registry | None = None,
    on_note: Note | None = None,
    clock: Clock | None = None,
    chance: Chance | None = None,
) -> Servers:
    """Connect to all servers that are named and not disabled, at the same time.

    Comes back when each has answered, or has failed once: one that failed is tried again later.
    Raises ConfigurationError for a configuration that cannot work. `into` is the registry that gets
    the tools; `on_note` hears of everything a person should know.
    """
    servers = Servers(
        configs_of(source), options, into=into, on_note=on_note, clock=clock, chance=chance
    )
    opened = False
    try:
        await servers.open()
        opened = True
    finally:
        if not opened:
            await servers.close()
    return servers


def configs_of(source: Source) -> tuple[ServerConfig, ...]:
    """The servers that a source names."""
    if isinstance(source, ServerConfig):
        return (source,)
    if isinstance(source, str | Path):
        return load_servers(source)
    if isinstance(source, Mapping):
        return servers_of(dict(source))
    given = list(source)
    ready = [one for one in given if isinstance(one, ServerConfig)]
    found = (*load_servers([one for one in given if not isinstance(one, ServerConfig)]), *ready)
    faults = name_faults(found)
    if faults:
        raise ConfigurationError(faults)
    return found


class _Kept(NamedTuple):
    server: Server
    listing: Listing


class Servers:
    """Connected servers, and the registry of their tools."""

    def __init__(
        self,
        configs: Iterable[ServerConfig],
        options: McpOptions | None = None,
        *,
        into: Registry | None = None,
        on_note: Note | None = None,
        clock: Clock | None = None,
        chance: Chance | None = None,
    ) -> None:
        need_sdk()
        self._options = options = options or McpOptions()
        self._configs = {one.name: one for one in configs}
        unknown = sorted(options.trust - set(self._configs))
        if unknown:
            names = ", ".join(self._configs) or "none"
            raise ConfigurationError(
                [Fault(f"no such server to trust; there are: {names}", name) for name in unknown]
            )
        self.registry = Registry() if into is None else into
        """The tools of all servers, under names such as `server__tool`."""
        self.pins = Pins(options.pins)
        """The accepted definitions."""
        self._on_note = on_note
        self._clock = clock or SystemClock()
        self._chance = chance or SystemChance()
        self._servers: dict[str, _Kept] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """The servers that the configuration names, connected or not."""
        return tuple(self._configs)

    async def open(self) -> None:
        """Connect to all that are not disabled, at the same time."""
        wanted = [one for one in self._configs.values() if not one.disabled]
        listings = [self._server(one).listing for one in wanted]
        for listing in listings:
            listing.hold()
        await asyncio.gather(*(self.connect(one.name) for one in wanted))
        # In the order of the configuration: a prompt that lists the tools stays the same.
        for listing in listings:
            listing.release()

    async def connect(self, name: str) -> ServerState:
        """Connect to one server that the configuration names, if that was not done before.

        Raises ConfigurationError for any other name: no program is started, and no address spoken
        to, that nobody wrote down.
        """
        config = self._configs.get(name)
        if config is None:
            there = ", ".join(self._configs) or "none"
            raise ConfigurationError([Fault(f"is no configured server; there are: {there}", name)])
        server = self._server(config).server
        await server.start()
        if server.state != "up":
            self._note(name, f"is not connected: {server.why}")
        return self._state(config)

    def _server(self, config: ServerConfig) -> _Kept:
        if config.name not in self._servers:
            self._servers[config.name] = self._made(config)
        return self._servers[config.name]

    def _made(self, config: ServerConfig) -> _Kept:
        from seawall.edges.mcp.server import Server  # noqa: PLC0415  # brings the SDK

        def note(said: str) -> None:
            self._note(config.name, said)

        def executor_of(remote: str) -> Executor:
            async def run(arguments: dict[str, Any], context: Any) -> Any:
                return await server.call(remote, arguments, context)

            return run

        listing = Listing(
            config.name, self.registry, self.pins, self._options, executor_of, note, config.origin
        )
        server = Server(config, self._options, self._clock, self._chance, listing, note)
        return _Kept(server, listing)

    def states(self) -> list[ServerState]:
        """How all servers of the configuration do."""
        return [self._state(config) for config in self._configs.values()]

    def _state(self, config: ServerConfig) -> ServerState:
        from seawall.edges.mcp.server import ServerState  # noqa: PLC0415  # brings the SDK

        kept = self._servers.get(config.name)
        if kept is None:
            why = "disabled" if config.disabled else "not asked for yet"
            return ServerState(name=config.name, state="idle", transport=config.transport, why=why)
        server = kept.server
        return ServerState(
            name=config.name,
            state=server.state,
            transport=config.transport,
            version=server.version,
            tools=kept.listing.names,
            trusted=config.name in self._options.trust,
            why=server.why,
        )

    def refresh(self) -> None:
        """List all tools again soon, as after definitions were accepted."""
        for kept in self._servers.values():
            kept.server.refresh()

    async def close(self) -> None:
        """End all connections and processes; the tools stay registered, and their calls fail."""
        await asyncio.gather(*(kept.server.close() for kept in self._servers.values()))

    def _note(self, server: str, said: str) -> None:
        # It holds words of servers, and goes to logs and terminals.
        clean = "".join(char if char.isprintable() else " " for char in said)
        text = f"MCP server {server!r}: {clean}"
        if self._on_note is None:
            log.warning("%s", text)
        else:
            tell((self._on_note,), text)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *raised: object) -> None:
        await self.close()
