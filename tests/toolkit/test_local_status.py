import getpass
import os
import shutil
import socket
from pathlib import Path

import pytest

from seawall.toolkit.local_status import LocalStatus


def _proc(folder: Path, *, meminfo: str = "", uptime: str = "") -> Path:
    (folder / "meminfo").write_text(meminfo)
    (folder / "uptime").write_text(uptime)
    return folder


def test_memory_and_uptime_are_read_where_linux_tells_them(tmp_path: Path) -> None:
    meminfo = "MemTotal:  2000 kB\nMemFree: 1 kB\nMemAvailable:  500 kB\nHugePages_Total: 0\n"

    told = LocalStatus(
        tmp_path, _proc(tmp_path, meminfo=meminfo, uptime="93.7 12.1\n")
    ).local_status()

    assert told["memory"] == {"total_bytes": 2_048_000, "available_bytes": 512_000}
    assert told["uptime_s"] == 93


@pytest.mark.parametrize("uptime", ["", "soon", "inf 1", "nan"])
def test_what_the_system_does_not_tell_is_left_out(tmp_path: Path, uptime: str) -> None:
    told = LocalStatus(
        tmp_path, _proc(tmp_path, meminfo="MemTotal: much", uptime=uptime)
    ).local_status()

    assert "memory" not in told
    assert "uptime_s" not in told


def test_nothing_is_needed_of_the_system_but_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise OSError

    monkeypatch.setattr(shutil, "disk_usage", fails)
    monkeypatch.setattr(os, "getloadavg", fails, raising=False)
    told = LocalStatus(tmp_path, tmp_path / "none").local_status()
    monkeypatch.delattr(os, "getloadavg")
    without_load = LocalStatus(tmp_path, tmp_path / "none").local_status()

    assert {"platform", "python"} <= told.keys() <= {"platform", "python", "processors"}
    assert without_load == told


def test_no_host_or_user_name_is_told() -> None:
    told = str(LocalStatus().local_status())

    assert LocalStatus().local_status()["disk"]["free_bytes"] > 0
    assert socket.gethostname() not in told
    assert str(Path.home()) not in told
    # A short name may be part of other words.
    assert len(getpass.getuser()) < 6 or getpass.getuser() not in told
