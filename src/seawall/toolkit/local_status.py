"""`local_status`: how the machine is doing that the tools run on, without saying whose it is."""

import os
import platform
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_MEMORY_FIELDS = {"MemTotal": "total_bytes", "MemAvailable": "available_bytes"}


class LocalStatus:
    """Reads the state of this machine.

    `disk` is the folder whose file system counts; `proc` where Linux tells the rest. What a system
    does not tell is left out.
    """

    def __init__(self, disk: Path | None = None, proc: Path = Path("/proc")) -> None:
        self._disk = disk or Path.cwd()
        self._proc = proc

    def local_status(self) -> dict[str, Any]:
        """Tell platform, Python version, processors, load, memory, free disk space and uptime.

        No names of hosts or users, no paths, no processes.
        """
        found = {
            "platform": f"{platform.system()} {platform.release()} {platform.machine()}".strip(),
            "python": f"{platform.python_implementation()} {platform.python_version()}",
            "processors": os.cpu_count(),
            "load": _load(),
            "memory": _memory(_lines(self._proc / "meminfo")),
            "disk": _disk(self._disk),
            "uptime_s": _uptime_s(_lines(self._proc / "uptime")),
        }
        return {name: value for name, value in found.items() if value is not None}


def _load() -> list[float] | None:
    """Tell the average load of 1, 5 and 15 minutes; Windows has none."""
    if not hasattr(os, "getloadavg"):
        return None
    try:
        return [round(average, 2) for average in os.getloadavg()]
    except OSError:
        return None


def _memory(lines: list[str]) -> dict[str, int] | None:
    found: dict[str, int] = {}
    for line in lines:
        name, _, rest = line.partition(":")
        amount = rest.removesuffix("kB").strip()
        if name in _MEMORY_FIELDS and amount.isdecimal():
            found[_MEMORY_FIELDS[name]] = int(amount) * 1024
    return found or None


def _disk(folder: Path) -> Mapping[str, int] | None:
    try:
        usage = shutil.disk_usage(folder)
    except OSError:
        return None
    return {"total_bytes": usage.total, "free_bytes": usage.free}


def _uptime_s(lines: list[str]) -> int | None:
    try:
        return int(float(lines[0].split()[0]))
    except (IndexError, ValueError, OverflowError):
        return None


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return []
