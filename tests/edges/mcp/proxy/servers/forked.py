"""A server on stdio that is there at once: `forked.py ADDRESS` has it forked off by a host.

To import the SDK takes longer than all that a session does. So the host has it imported already
(`everything.py host ADDRESS`), and is handed the three streams of each process that wants to be
one.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def forked(address: str) -> int:
    """Be the server until it ends; gives its exit code."""
    with socket.socket(socket.AF_UNIX) as link:
        link.connect(address)
        socket.send_fds(link, [b"x"], [0, 1, 2])
        # Whoever started this process is to see its streams end as soon as the server's end.
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1):
            os.dup2(nothing, stream)
        return (link.recv(1) or b"\1")[0]


def host(address: str, serve: Callable[[], object]) -> None:
    """Fork one off for each that asks, for as long as this process runs; they end with it."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(address)
        listening.listen(64)
        while True:
            link, _ = listening.accept()
            with link:
                _, streams, _, _ = socket.recv_fds(link, 1, 3)
                if not os.fork():
                    listening.close()
                    _one(link, streams, serve)
                for stream in streams:
                    os.close(stream)


def _one(link: socket.socket, streams: list[int], serve: Callable[[], object]) -> None:
    """Run one in this process, watched over by a parent that tells how it ended."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    child = os.fork()
    if not child:
        link.close()
        for wanted, stream in enumerate(streams):
            os.dup2(stream, wanted)
            os.close(stream)
        serve()
        sys.stdout.flush()
        os._exit(0)
    for stream in streams:
        os.close(stream)
    _, status = os.waitpid(child, 0)
    with suppress(OSError):  # its process was killed: nobody asks
        link.sendall(bytes([os.waitstatus_to_exitcode(status) & 255]))
    os._exit(0)


if __name__ == "__main__":
    sys.exit(forked(sys.argv[1]))
