"""`seawall proxy`, behind its command line."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from seawall.contract.errors import ConfigurationError

if TYPE_CHECKING:
    from seawall.edges.mcp.proxy.options import ProxyOptions
    from seawall.edges.mcp.proxy.stdio import Streams


def proxy(options: ProxyOptions) -> None:
    """Run the proxy until it is told to end."""
    faults = options.faults()
    if faults:
        raise ConfigurationError(faults)
    if options.http is not None:
        from seawall.edges.mcp.proxy.http_serving import run  # noqa: PLC0415  # HTTP is an extra

        run(options)
        return
    from seawall.edges.mcp.proxy.stdio import Streams  # noqa: PLC0415  # not for --help

    asyncio.run(_on_stdio(options, Streams()))


async def _on_stdio(options: ProxyOptions, streams: Streams) -> None:
    from seawall.edges.mcp.proxy.stdio import serve, starting  # noqa: PLC0415  # as above

    guard = options.guard()
    if options.url is not None:
        from seawall.edges.mcp.proxy.http_server import connecting  # noqa: PLC0415  # an extra

        url = options.url
        await serve(guard, lambda _: connecting(url, guard.clock), streams)
        return
    await serve(
        guard,
        lambda attach: starting(options.command, guard.clock, attach=attach),
        streams,
    )
