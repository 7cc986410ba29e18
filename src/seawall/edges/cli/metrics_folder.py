"""The folder in which the workers of one run count together, and what killed runs left of theirs.

A run holds a lock on a file in its folder. The system gives the lock back when the watching process
and its workers are gone, however they went; so whoever gets the lock of a folder may remove it, and
nobody has to guess by a number whether a process is still the one that it was.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

PREFIX = "seawall-metrics-"
OWNER = "owner"
"""The file that is locked; it says which process watches, for a person who looks."""


class MetricsFolder:
    """A folder of this process and those that it forks; it is theirs while one of them lives."""

    def __init__(self, parent: Path | None = None) -> None:
        parent = Path(tempfile.gettempdir()) if parent is None else parent
        remove_left_over(parent)
        self.path = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
        self._lock = _held(self.path)

    def remove(self) -> None:
        """Remove it, once nobody counts any more."""
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._lock)


def remove_left_over(parent: Path) -> None:
    """Remove folders whose processes are all gone; of others, and of other users, none."""
    for folder in parent.glob(f"{PREFIX}*"):
        with suppress(OSError):  # somebody else removes it, or it is not ours to remove
            if _is_ours(folder):
                _remove_if_left(folder)


def _held(folder: Path) -> int:
    # Locked before it has its name: without the lock it would be taken for left over.
    unnamed = folder / f"{OWNER}.new"
    lock = os.open(unnamed, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    os.write(lock, f"{os.getpid()}\n".encode())
    unnamed.rename(folder / OWNER)
    return lock


def _is_ours(folder: Path) -> bool:
    found = folder.lstat()
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()


def _remove_if_left(folder: Path) -> None:
    lock = os.open(folder / OWNER, os.O_RDWR | os.O_NOFOLLOW)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(lock)
