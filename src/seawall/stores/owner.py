"""Who holds what was begun: this process, told from one that is gone.

On one machine that is exact: the process of a number that began at a time is there, or is not.
Elsewhere a process is there while it was seen within the lease; it says so while it holds anything.
"""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

LEASE_S = 30.0
"""Without a sign for so long, a process on another machine is taken to be gone."""
BEAT_S = 10.0
"""How often a process that holds something says that it is there."""


class Owner(msgspec.Struct, frozen=True, kw_only=True):
    """One process's part in one state."""

    id: str
    place: str
    """The machine since it was started, and the process numbers that are seen; empty: unknown."""
    pid: int
    started: int
    """When the process began, as its system counts; 0 where that is not known."""


def this_process(token: str) -> Owner:
    """Describe this process."""
    pid = os.getpid()
    return Owner(id=token, place=_place(), pid=pid, started=_started(pid) or 0)


def is_gone_for_sure(owner: Owner) -> bool | None:
    """Whether a process has ended; None if that cannot be seen from here."""
    if not owner.place or owner.place != _place():
        return None
    started = _started(owner.pid)
    return started is None or (owner.started not in (0, started))


def _place() -> str:
    # Containers of one machine count processes each for itself.
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
        return f"{boot}/{os.readlink('/proc/self/ns/pid')}"  # noqa: PTH115  # no real path
    except (OSError, ValueError):
        return ""


def _started(pid: int) -> int | None:
    """When a process began, in ticks since the machine did; None if there is no such process."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
    except OSError:
        return None
    # A process that ended but was not yet fetched by its parent does nothing any more.
    return None if fields[0] in ("Z", "X") else int(fields[19])
