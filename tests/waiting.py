"""Waiting for what servers, processes and threads do in their own time: as short as it takes."""

from __future__ import annotations

import asyncio
import inspect
import socket
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

EVERY_S = 0.02
"""Seconds between two looks."""
WITHIN_S = 30.0
"""Seconds after which it is a failure: long, as the machine may be busy."""


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
