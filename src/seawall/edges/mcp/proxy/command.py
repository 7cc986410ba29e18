"""`seawall proxy`, behind its command line."""

from __future__ import annotations

import asyncio
import shutil
from importlib.util import find_spec
from typing import TYPE_CHECKING

from seawall.contract.errors import ConfigurationError
from seawall.pipeline.foreign import log

if TYPE_CHECKING:
    from seawall.edges.mcp.proxy.options import ProxyOptions
    from seawall.edges.mcp.proxy.stdio import Streams


def proxy(options: ProxyOptions) -> bool:
    """Run the proxy until it is told to end; say whether there was a server.

    There was none if its program is not there, or if it never answered and ended by itself.
    """
    faults = options.faults()
    if faults:
        raise ConfigurationError(faults)
    _need_extras(options)
    if options.http is not None:
        from seawall.edges.mcp.proxy.http_serving import run  # noqa: PLC0415  # HTTP is an extra

        run(options)
        return True
    from seawall.edges.mcp.proxy.stdio import Streams  # noqa: PLC0415  # not for --help

    missing = options.url is None and shutil.which(options.command[0]) is None
    if missing:
        # Its client gets an error for each request; who started this by hand sees only this.
        said = "the program %r was not found; is it installed, and on the PATH?"
        log.error(said, options.command[0])
    why = asyncio.run(_on_stdio(options, Streams()))
    if why:
        log.error("error: the server never answered anything: %s", why)
    return not (missing or why)


def _need_extras(options: ProxyOptions) -> None:
    """Say what is missing before anything is opened: later a client would only see silence."""
    wanted = {"mcp": ("mcp", "httpx2")} if options.url is not None or options.http else {}
    if options.http is not None:
        wanted["gateway"] = ("uvicorn", "httptools")
    missing = [
        extra
        for extra, modules in wanted.items()
        if any(find_spec(each) is None for each in modules)
    ]
    if missing:
        given = "--url" if options.http is None else "--http"
        raise ConfigurationError(
            f"{given} needs what is not installed: pip install 'seawall[{','.join(missing)}]'"
        )


async def _on_stdio(options: ProxyOptions, streams: Streams) -> str:
    from seawall.edges.mcp.proxy.stdio import serve, starting  # noqa: PLC0415  # as above

    guard = options.guard()
    await guard.start()
    if options.url is not None:
        from seawall.edges.mcp.proxy.http_server import connecting  # noqa: PLC0415  # an extra

        url = options.url
        return await serve(guard, lambda _: connecting(url, guard.clock), streams)
    return await serve(
        guard,
        lambda attach: starting(options.command, guard.clock, options.environment, attach=attach),
        streams,
    )
