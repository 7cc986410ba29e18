"""Everything on, faults on purpose, servers that come and go: nothing grows, all books agree."""

from __future__ import annotations

import subprocess
import sys

import pytest
from tests.found import program
from tests.servers import postgres_binaries


def run(minutes: float, cycle_s: float) -> subprocess.CompletedProcess[str]:
    """In a process of its own, whose memory nobody else uses."""
    return subprocess.run(
        [sys.executable, "-m", "tests.soak", "--minutes", str(minutes), "--cycle", str(cycle_s)],
        capture_output=True,
        text=True,
        timeout=minutes * 60 + 240,
        check=False,
    )


@pytest.mark.parametrize(
    ("minutes", "cycle_s"),
    [(0.4, 3), pytest.param(10, 15, marks=pytest.mark.long)],
    ids=["short", "long"],
)
def test_every_call_has_one_outcome_in_all_books_and_nothing_grows(
    minutes: float, cycle_s: float
) -> None:
    program("redis-server")
    assert postgres_binaries() is not None

    done = run(minutes, cycle_s)

    assert done.returncode == 0, f"{done.stdout[-4_000:]}\n{done.stderr[-2_000:]}"
    assert "0 faults" in done.stdout
