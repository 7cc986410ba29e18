"""The server of a gateway: uvicorn's, with an end in order and an eye on requests that do not come.

Imports uvicorn, which is an extra, and slow to import.
"""

from __future__ import annotations

import gc
import math
import signal
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import uvicorn

from seawall.contract.errors import ConfigurationError, Fault

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterator
    from types import FrameType

    from seawall.edges.gateway.app import Gateway

TICKS_OF_A_LOOK = 10
"""Ticks of the server, ten a second, between looks for requests that do not come."""


class Server(uvicorn.Server):
    """Serves one gateway, and ends the streams of viewers when it stops."""

    def __init__(
        self, config: uvicorn.Config, gateway: Gateway, on_ready: Callable[[], None]
    ) -> None:
        super().__init__(config)
        self._gateway = gateway
        self._on_ready = on_ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to take calls, and say so; raises `ConfigurationError` if the pipeline cannot."""
        with suppress(SystemExit):  # by which some versions of uvicorn end the process
            await super().startup(sockets)
        if not self.started:
            said = "the pipeline could not be opened; put right what the log says, and run it again"
            raise ConfigurationError([Fault(said)])
        self._on_ready()
        # What is there now stays: the collector need not go through it again and again.
        gc.collect()
        gc.freeze()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """End in order; the signal is not raised again, as there is more to close after."""

        def told(number: int, frame: FrameType | None) -> None:
            if self._gateway.settings.workers == 1 or number != signal.SIGINT:
                self.handle_exit(number, frame)

        with handled(told):
            yield

    async def on_tick(self, counter: int) -> bool:
        """Look around, ten times a second; whether it is to end."""
        gateway = self._gateway
        if counter % TICKS_OF_A_LOOK == 0:
            for connection in list(self.server_state.connections):
                connection.end_if_overdue(gateway.settings.read_s)  # type: ignore[union-attr]  # all are ours
            gateway.beat()
        if not await super().on_tick(counter):
            return False
        gateway.stop()
        return self.force_exit or not gateway.is_to_listen()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Take nothing new, and let calls end that run."""
        self._gateway.stop()
        self.config.timeout_graceful_shutdown = max(math.ceil(self._gateway.left_s), 1)
        await super().shutdown(sockets)


@contextmanager
def handled(told: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Have the signals that end a server told here, where this is the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    former = {one: signal.signal(one, told) for one in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for one, handler in former.items():
            signal.signal(one, handler)
