"""Run a gateway by uvicorn: bind, say where, and drain before the end."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from seawall.contract.errors import ConfigurationError, Fault
from seawall.edges.addresses import HeldAddress, bind, listen
from seawall.edges.gateway.app import Gateway
from seawall.edges.gathering import Turn

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    import uvicorn

    from seawall.edges.gateway.pulse import Pulse
    from seawall.edges.gateway.settings import GatewaySettings
    from seawall.orchestration.pipeline import Pipeline

BACKLOG = 2_048


async def serve(
    pipeline: Pipeline,
    settings: GatewaySettings,
    on_start: Callable[[str], None] = lambda _: None,
    on_ready: Callable[[], None] = lambda: None,
    pulse: Pulse | None = None,
) -> None:
    """Serve until SIGINT, SIGTERM or a cancel; then take nothing new and let calls end.

    They have `drain_s` for it; whoever asks meanwhile is told so. `on_start` is told the address
    once it is bound, `on_ready` that calls are taken. One of several workers shares the address
    with the others, and leaves SIGINT, which a terminal sends to all of them, to whoever watches
    over them. Raises `ConfigurationError` if the port is taken.
    """
    gateway = Gateway(pipeline, settings, pulse)
    listening = bound(settings)
    on_start(shown(*listening.getsockname()[:2]))
    server = server_of(gateway, on_ready)
    running = asyncio.ensure_future(server.serve(sockets=[listening]))
    try:
        await asyncio.shield(running)
    except asyncio.CancelledError:
        server.should_exit = True
        await running
        raise
    finally:
        listening.close()


def shown(host: str, port: int) -> str:
    """Write the address as a client asks for it."""
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def held(settings: GatewaySettings) -> HeldAddress:
    """Hold the address of the settings for workers; raises `ConfigurationError` if it is taken."""
    try:
        return HeldAddress(settings.host.strip("[]"), settings.port)
    except OSError as error:
        raise _taken(settings, error) from error


def bound(settings: GatewaySettings) -> socket.socket:
    """Take the address of the settings; raises `ConfigurationError` if it is taken.

    It is listened on; by one of several workers not before its server does, so that no connection
    comes to a worker that does not take calls yet.
    """
    host = settings.host.strip("[]")
    try:
        if settings.workers > 1:
            listening = bind(host, settings.port, shared=True)
        else:
            listening = listen(host, settings.port, BACKLOG)
    except OSError as error:
        raise _taken(settings, error) from error
    listening.setblocking(False)  # noqa: FBT003  # the name of the method says it
    return listening


def _taken(settings: GatewaySettings, error: OSError) -> ConfigurationError:
    said = f"{settings.host}:{settings.port} cannot be listened on: {error.strerror}"
    return ConfigurationError([Fault(f"{said}; choose another with --port", "port")])


def server_of(gateway: Gateway, on_ready: Callable[[], None] = lambda: None) -> uvicorn.Server:
    """Make the server of a gateway; it ends the streams of viewers when it stops."""
    import uvicorn  # noqa: PLC0415  # an extra, and slow to import

    from seawall.edges.gateway.connection import Connection  # noqa: PLC0415  # as above
    from seawall.edges.gateway.server import Server  # noqa: PLC0415  # as above

    settings = gateway.settings

    class Bounded(Connection):
        max_header_bytes = settings.max_header_bytes
        turn = Turn()

    config = uvicorn.Config(
        gateway,
        host=settings.host,
        port=settings.port,
        http=Bounded,
        access_log=False,  # a path or a header may hold what nobody should read
        log_level="warning",
        server_header=False,
        proxy_headers=False,  # whoever sends X-Forwarded-For would choose its address
        date_header=True,
        lifespan="on",
        ws="none",
    )
    return Server(config, gateway, on_ready)
