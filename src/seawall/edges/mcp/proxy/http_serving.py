"""The proxy on an address: the listening socket, the server around it, and its end."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Any

from seawall.contract.errors import ConfigurationError, Fault
from seawall.edges import addresses
from seawall.edges.mcp.proxy.http_shell import Doorkeeper, Shell

if TYPE_CHECKING:
    import socket

    from seawall.edges.mcp.proxy.options import ProxyOptions

BACKLOG = 1_024
END_WITHIN_S = 2
"""What requests under way get when it is told to end."""


def run(options: ProxyOptions) -> None:
    """Serve until a signal says to end."""
    host, port = address(options.http or "")
    if not addresses.is_loopback(host) and options.token is None:
        raise ConfigurationError(
            [
                Fault(
                    f"{host} can be reached by others: give --token-file, or use 127.0.0.1",
                    "--http",
                )
            ]
        )
    asyncio.run(_serve(options, host, port))


def address(text: str) -> tuple[str, int]:
    """Read HOST:PORT; a bare port is of 127.0.0.1. Raises ConfigurationError."""
    host, _, port = text.rpartition(":")
    if not port.isdecimal() or int(port) > 65_535:
        raise ConfigurationError([Fault(f"takes HOST:PORT, not {text!r}", "--http")])
    return host.strip("[]") or "127.0.0.1", int(port)


async def _serve(options: ProxyOptions, host: str, port: int) -> None:
    guard = options.guard()
    await guard.start()
    door = Doorkeeper(
        host, token=options.token, hosts=options.allowed_hosts, origins=options.allowed_origins
    )
    listening = listen(host, port)
    shown = f"[{host}]" if ":" in host else host
    print(  # noqa: T201  # standard error, for a person
        f"seawall proxy: http://{shown}:{listening.getsockname()[1]}/mcp",
        file=sys.stderr,
        flush=True,
    )
    if options.url is not None:
        from seawall.edges.mcp.proxy.http_client import HttpClient  # noqa: PLC0415  # an extra
        from seawall.edges.mcp.proxy.http_relay import Relay  # noqa: PLC0415  # as above

        async with HttpClient(options.url, guard.clock) as server:
            relay = Relay(guard, server, strip_credentials=door.takes_token)
            await _run(Shell(door, relay), listening)
    else:
        from seawall.edges.mcp.proxy.http_sessions import Sessions  # noqa: PLC0415  # only then

        sessions = Sessions(guard, options.command, options.environment)
        await _run(Shell(door, sessions), listening)
        await sessions.close()
    await guard.aclose()


def listen(host: str, port: int) -> socket.socket:
    """Open the address; raises ConfigurationError if it cannot be had."""
    try:
        return addresses.listen(host, port, BACKLOG)
    except OSError as error:
        said = f"{host}:{port} cannot be used: {error.strerror or type(error).__name__}"
        raise ConfigurationError([Fault(said, "--http")]) from None


async def _run(app: Any, listening: socket.socket) -> None:
    import uvicorn  # noqa: PLC0415  # an extra

    from seawall.edges.mcp.proxy.gathering import GatheringProtocol  # noqa: PLC0415  # as above

    config = uvicorn.Config(
        app,
        http=GatheringProtocol,
        lifespan="off",
        log_level="warning",
        access_log=False,
        server_header=False,
        date_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=END_WITHIN_S,
    )
    await uvicorn.Server(config).serve(sockets=[listening])
