"""The server's process: its own group, our pipes, and never left behind."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import signal
import sys
from collections import deque
from typing import TYPE_CHECKING, Any, cast

from seawall.edges.mcp.proxy.exchange import ServerGone
from seawall.edges.mcp.proxy.lines import HIGH_WATER_BYTES, Splitter
from seawall.edges.mcp.proxy.messages import on_one_line
from seawall.edges.mcp.watchdog import Watchdog
from seawall.pipeline.foreign import log

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from seawall.edges.mcp.proxy.lines import Pausing
    from seawall.pipeline.clock import Clock

STOP_WITHIN_S = 2.0
"""What a server gets to end by itself after its input was closed, and again after SIGTERM."""

MAX_STARTS = 5
STARTS_WITHIN_S = 60.0

_PR_SET_PDEATHSIG = 1


class Starts:
    """How often a server may be started: not endlessly, and slower each time."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._times: deque[float] = deque()

    async def take(self) -> None:
        """Wait for the next start; raises `ServerGone` if there were too many."""
        now = self._clock.now()
        while self._times and now - self._times[0] > STARTS_WITHIN_S:
            self._times.popleft()
        if len(self._times) >= MAX_STARTS:
            left_s = STARTS_WITHIN_S - (now - self._times[0])
            raise ServerGone(
                f"the server ended {MAX_STARTS} times within {STARTS_WITHIN_S:g} s and is not"
                f" started again for {left_s:.0f} s",
                may_have_run=False,
            )
        self._times.append(now)
        tries = len(self._times) - 1
        if tries > 1:
            await self._clock.sleep(0.25 * 2 ** (tries - 2))


class Child(asyncio.SubprocessProtocol):
    """A server that speaks over its standard streams. Its standard error is ours."""

    def __init__(self, on_line: Callable[[bytes], None], on_gone: Callable[[str], None]) -> None:
        self._splitter = Splitter(on_line, self._too_long)
        self._on_gone = on_gone
        self._transport: asyncio.SubprocessTransport | None = None
        self._stdin: asyncio.WriteTransport | None = None
        self._ended = asyncio.Event()
        self._watchdog: Watchdog | None = None
        self._told = False
        self.code: int | None = None
        """With which it ended; below 0 the signal that ended it."""
        self.source: Pausing | None = None

    @classmethod
    async def start(
        cls,
        command: Sequence[str],
        on_line: Callable[[bytes], None],
        on_gone: Callable[[str], None],
        environment: Mapping[str, str] | None = None,
    ) -> Child:
        """Start a server; raises `ServerGone` if that cannot be done."""
        loop = asyncio.get_running_loop()
        try:
            _, child = await loop.subprocess_exec(
                lambda: cls(on_line, on_gone),
                *command,
                stderr=None,
                env=environment,
                start_new_session=True,
                preexec_fn=_dies_with(os.getpid()) if sys.platform == "linux" else None,
            )
        except OSError as error:
            said = error.strerror or type(error).__name__
            raise ServerGone(
                f"the server {command[0]!r} cannot be started: {said}", may_have_run=False
            ) from None
        return child

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """It runs."""
        self._transport = cast("asyncio.SubprocessTransport", transport)
        self._stdin = cast("asyncio.WriteTransport", self._transport.get_pipe_transport(0))
        self._stdin.set_write_buffer_limits(high=HIGH_WATER_BYTES)
        self._watchdog = Watchdog(self._transport.get_pid())

    def pipe_data_received(self, fd: int, data: bytes) -> None:  # noqa: ARG002  # stdout alone
        """It says something."""
        self._splitter.feed(data)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:  # noqa: ARG002
        """It closed a stream: without its output it is of no use."""
        if fd == 1:
            self._splitter.end()
            self._gone("the server closed its output")

    def process_exited(self) -> None:
        """It ended."""
        self.code = None if self._transport is None else self._transport.get_returncode()
        self._ended.set()
        # What it said last may still be in the pipe.
        asyncio.get_running_loop().call_soon(self._gone, f"the server ended with code {self.code}")

    def pause_writing(self) -> None:
        """It is slow to read."""
        if self.source is not None:
            self.source.pause_reading()

    def resume_writing(self) -> None:
        """It reads on."""
        if self.source is not None:
            self.source.resume_reading()

    def pause_reading(self) -> None:
        """Our own reader is slow."""
        self._output().pause_reading()

    def resume_reading(self) -> None:
        """Our own reader reads on."""
        self._output().resume_reading()

    def write(self, line: bytes) -> None:
        """Send one message."""
        if self._stdin is not None and not self._stdin.is_closing():
            self._stdin.write(on_one_line(line) + b"\n")

    async def stop(self, clock: Clock, *, patience_s: float = STOP_WITHIN_S) -> None:
        """End it and all of its group: by closing its input, by asking, by force."""
        self._told = True
        if self._stdin is not None:
            self._stdin.close()
        for step in (None, signal.SIGTERM, signal.SIGKILL):
            if step is not None:
                self._signal(step)
            with clock.limit(patience_s):
                await self._ended.wait()
            if self._ended.is_set():
                break
        self._signal(signal.SIGKILL)  # of its group, whoever it left behind
        if self._watchdog is not None:
            self._watchdog.dismiss()
        if self._transport is not None:
            self._transport.close()

    def _signal(self, number: int) -> None:
        if self._transport is None:
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._transport.get_pid(), number)

    def _gone(self, why: str) -> None:
        if not self._told:
            self._told = True
            self._on_gone(why)

    def _output(self) -> Any:
        return self._transport and self._transport.get_pipe_transport(1)

    def _too_long(self) -> None:
        log.warning("the server sent a message beyond the bound; it is dropped")


def _dies_with(parent: int) -> Callable[[], None]:
    """Let Linux end the child if we are ended by force."""
    prctl = ctypes.CDLL(None, use_errno=True).prctl

    def before_exec() -> None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:
            os._exit(1)  # we were gone before it could be asked for

    return before_exec
