"""A server's processes end with ours, also if ours is killed.

A small shell waits for the end of a pipe that only we hold. However we end, the system closes it,
and the shell kills the server's whole process group. A server that leaves its group on purpose is
beyond this; on Windows, where there is no such shell, servers see their standard input close.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from typing import Any

SHELL = "/bin/sh"

_SCRIPT = 'read -r _; kill -s KILL -- "-$1" 2>/dev/null'


class Watchdog:
    """Watches over the process group of one server."""

    def __init__(self, group: int) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        if sys.platform == "win32":
            return
        with contextlib.suppress(OSError):
            self._process = subprocess.Popen(  # noqa: S603  # a fixed script of ours
                [SHELL, "-c", _SCRIPT, "seawall-watchdog", str(group)],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                cwd="/",
                env={},  # it needs nothing of ours
            )

    def dismiss(self) -> None:
        """Stop watching: the group has ended."""
        process = self._process
        if process is None:
            return
        process.kill()
        process.wait()
        if process.stdin is not None:
            process.stdin.close()
        self._process = None


def kill_group(group: int, how: int) -> None:
    """Send a signal to all processes of a group; one that is gone is no error."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if sys.platform == "win32":
            os.kill(group, how)
        else:
            os.killpg(group, how)


def group_options() -> dict[str, Any]:
    """How a process is started so that it leads a group of its own."""
    if sys.platform == "win32":
        return {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP}
    return {"start_new_session": True}


HARD = getattr(signal, "SIGKILL", signal.SIGTERM)
SOFT = signal.SIGTERM
