"""Waiting for what servers, processes and threads do in their own time: as short as it takes."""

from __future__ import annotations

import asyncio
import inspect
import socket
import threading
import time
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

EVERY_S = 0.02
"""Seconds between two looks."""
WITHIN_S = 30.0
"""Seconds after which it is a failure: long, as the machine may be busy."""

SOON_S = 5.0
"""Seconds within which happens what waits for nothing: the machine may be busy."""


async def until(holds: Callable[[], Any], *, within_s: float = WITHIN_S) -> Any:
    """Wait until a function, plain or async, gives something true; gives that, or fails."""
    end = time.monotonic() + within_s
    while True:
        found = holds()
        if inspect.isawaitable(found):
            found = await found
        if found:
            return found
        assert time.monotonic() < end, f"it did not come true within {within_s:g} s"
        await asyncio.sleep(EVERY_S)


def waited(holds: Callable[[], Any], *, within_s: float = WITHIN_S) -> Any:
    """Wait as `until` does, in code that is not async."""
    end = time.monotonic() + within_s
    while not (found := holds()):
        assert time.monotonic() < end, f"it did not come true within {within_s:g} s"
        time.sleep(EVERY_S)
    return found


def until_listening(port: int, process: subprocess.Popen[bytes]) -> None:
    """Wait until a process listens on a port of this machine; fail if it ends before."""

    def listens() -> bool:
        assert process.poll() is None, "the process ended before it listened"
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    waited(listens, within_s=60)


async def until_idle() -> None:
    """Let all tasks of this loop run until each of them waits for something."""
    for _ in range(100):
        await asyncio.sleep(0)


class Lines:
    """What a process writes, read by a thread as it comes."""

    def __init__(self, stream: IO[str]) -> None:
        self.lines: list[str] = []
        self._stream = stream
        self._more = threading.Condition()
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self) -> None:
        for line in self._stream:
            with self._more:
                self.lines.append(line.rstrip())
                self._more.notify_all()

    def until(self, said: str, times: int = 1, *, within_s: float = WITHIN_S) -> str:
        """Wait for a line that has this in it, so many times; gives the last."""
        end = time.monotonic() + within_s
        with self._more:
            while True:
                found = [line for line in self.lines if said in line]
                if len(found) >= times:
                    return found[times - 1]
                left = end - time.monotonic()
                assert left > 0, f"{said!r} was not said {times} times: {self.lines}"
                self._more.wait(left)


def until_gone(process: int) -> None:
    """Wait until a process of this machine has ended, whether or not anybody asked how."""

    def is_gone() -> bool:
        try:
            stat = Path(f"/proc/{process}/stat").read_text()
        except OSError:
            return True
        return stat.rpartition(")")[2].split()[0] == "Z"

    waited(is_gone)
