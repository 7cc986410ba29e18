"""The proxy on standard input and output: one client, one server."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from typing import TYPE_CHECKING, Any

from seawall.edges.mcp.proxy.child import Child, Starts
from seawall.edges.mcp.proxy.client import Client
from seawall.edges.mcp.proxy.lines import Splitter, reading, writing
from seawall.edges.mcp.proxy.link import Link
from seawall.pipeline.foreign import log

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from seawall.edges.mcp.proxy.guard import Guard
    from seawall.edges.mcp.proxy.link import Server
    from seawall.edges.mcp.proxy.messages import Message
    from seawall.pipeline.clock import Clock


class ChildServer:
    """A server that is a process of ours."""

    def __init__(self, child: Child, clock: Clock) -> None:
        self.child = child
        self._clock = clock

    def send(self, message: Message) -> None:
        """Send one message."""
        self.child.write(message.raw)

    async def stop(self) -> None:
        """End the process."""
        await self.child.stop(self._clock)


def starting(
    command: Sequence[str],
    clock: Clock,
    environment: Mapping[str, str] | None = None,
    *,
    attach: Callable[[Child], None] | None = None,
) -> Callable[[Link], Awaitable[Server]]:
    """Give what starts the server of a link, within bounds; `attach` sees each process."""
    starts = Starts(clock)

    async def connect(link: Link) -> Server:
        await starts.take()
        child = await Child.start(command, link.from_server, link.server_gone, environment)
        if attach is not None:
            attach(child)
        return ChildServer(child, clock)

    return connect


class Streams:
    """Our standard streams, kept for the protocol: all else that writes to them goes elsewhere."""

    def __init__(self) -> None:
        sys.stdout.flush()
        self.incoming = os.dup(0)
        self.outgoing = os.dup(1)
        # A stray print, ours or a library's, must not stand between two messages.
        os.dup2(2, 1)
        with open(os.devnull, "rb") as nothing:  # noqa: PTH123  # the descriptor is wanted, no path
            os.dup2(nothing.fileno(), 0)


async def serve(
    guard: Guard, connect_with: Callable[[Callable[[Child], None]], Any], streams: Streams
) -> str:
    """Relay until the client closes our input, or a signal ends it; the server is ended too.

    Gives why the server never answered anything, if it ended, or could not begin, by itself.
    """
    loop = asyncio.get_running_loop()
    over = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, over.set)
    output = await writing(streams.outgoing)

    def to_client(raw: bytes, *_: Any) -> None:
        output.write(raw)

    children: list[Child] = []

    def attach(child: Child) -> None:
        children[:] = [child]
        child.source = source
        output.source = child

    link = Link(guard, Client(guard.chance), to_client, connect_with(attach))
    too_long = "the client sent a message beyond the bound; it is dropped"
    source = await reading(
        streams.incoming, Splitter(link.from_client, lambda: log.warning(too_long)), over.set
    )
    link.start()
    await over.wait()
    await link.close()
    await guard.aclose()
    # Its client may be gone before it was seen that the server is.
    failed = [child.code for child in children if child.code is not None and child.code > 0]
    return link.never_answered(f"the server ended with code {failed[0]}" if failed else "")
