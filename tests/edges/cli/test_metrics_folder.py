"""Folders of runs that were killed go; of those that live, none does."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

if sys.platform != "linux":
    pytest.skip("workers need Linux", allow_module_level=True)

from seawall.edges.cli.metrics_folder import OWNER, PREFIX, MetricsFolder, remove_left_over

if TYPE_CHECKING:
    from pathlib import Path

LEAVES = """
import os, sys
from pathlib import Path
from seawall.edges.cli.metrics_folder import MetricsFolder

folder = MetricsFolder(Path(sys.argv[1]))
(folder.path / "counter_w1.db").write_bytes(b"1")
if "worker" in sys.argv and os.fork() == 0:
    sys.stdin.read()
os._exit(0)
"""


def left_over(parent: Path) -> Path:
    """The folder of a process that was killed after it counted something."""
    with subprocess.Popen([sys.executable, "-c", LEAVES, str(parent)]) as child:
        assert child.wait(60) == 0
    (found,) = [one for one in parent.glob(f"{PREFIX}*") if pid_in(one) == child.pid]
    return found


def pid_in(folder: Path) -> int:
    return int((folder / OWNER).read_text())


def test_what_a_killed_run_left_is_removed_at_the_next_start(tmp_path: Path) -> None:
    left = left_over(tmp_path)
    assert list(left.glob("*.db"))

    folder = MetricsFolder(tmp_path)

    assert list(tmp_path.iterdir()) == [folder.path]
    assert pid_in(folder.path) == os.getpid()
    folder.remove()
    assert list(tmp_path.iterdir()) == []


def test_the_folder_of_a_run_that_lives_stays(tmp_path: Path) -> None:
    living = MetricsFolder(tmp_path)

    remove_left_over(tmp_path)

    assert pid_in(living.path) == os.getpid()


def test_it_stays_while_a_worker_outlives_whoever_watched(tmp_path: Path) -> None:
    command = [sys.executable, "-c", LEAVES, str(tmp_path), "worker"]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as watching:
        assert watching.wait(60) == 0

        remove_left_over(tmp_path)

        assert [pid_in(one) for one in tmp_path.iterdir()] == [watching.pid]


@pytest.mark.parametrize("owner", [None, "another user"])
def test_what_may_be_of_others_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, owner: str | None
) -> None:
    """Nor is it known what is in a folder that names no process."""
    left = left_over(tmp_path)
    if owner is None:
        (left / OWNER).unlink()
    else:
        monkeypatch.setattr(os, "getuid", lambda: left.stat().st_uid + 1)

    remove_left_over(tmp_path)

    assert list(left.glob("*.db"))


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    target = left_over(tmp_path / "elsewhere")
    (tmp_path / f"{PREFIX}link").symlink_to(target)

    remove_left_over(tmp_path)

    assert list(target.glob("*.db"))


def test_many_that_start_at_once_remove_what_is_left_and_nothing_of_each_other(
    tmp_path: Path,
) -> None:
    left = left_over(tmp_path)
    for number in range(20):
        shutil.copytree(left, tmp_path / f"{PREFIX}{number}")
    count = 8
    together = threading.Barrier(count)

    def start(_: int) -> list[MetricsFolder]:
        together.wait(30)
        return [MetricsFolder(tmp_path) for _ in range(20)]

    with ThreadPoolExecutor(count) as pool:
        made = [folder for folders in pool.map(start, range(count)) for folder in folders]

    assert {folder.path for folder in made} == set(tmp_path.iterdir())
    assert all((folder.path / OWNER).exists() for folder in made)
    for folder in made:
        folder.remove()
