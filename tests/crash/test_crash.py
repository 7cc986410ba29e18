"""What `python -m tests.crash` shows at length, in short: no effect twice, none lost silently."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest


def harness(url: str, *options: str, within_s: float = 120) -> str:
    """In a process of its own: it forks, and this one has threads."""
    run = subprocess.run(
        [sys.executable, "-m", "tests.crash", "--url", url, *options],
        capture_output=True,
        text=True,
        timeout=within_s,
        env={**os.environ, "SEAWALL_STATE_KEY": "33" * 32},
        check=False,
    )
    assert run.returncode == 0, run.stderr[-3000:]
    return run.stdout


def test_a_crash_at_each_point_repeats_nothing_and_loses_nothing(state_url: str) -> None:
    said = harness(state_url, "--runs", "18")

    assert "18 killed" in said
    assert "outcome_unknown" in said


def test_of_two_processes_one_runs_what_was_approved(state_url: str) -> None:
    assert "10 approval_used and ok" in harness(state_url, "--races", "10")


@pytest.mark.long
def test_two_hundred_crashes_repeat_nothing_and_lose_nothing(state_url: str) -> None:
    assert "200 killed" in harness(state_url, "--runs", "200", within_s=1_200)


@pytest.mark.long
def test_in_five_hundred_races_one_of_two_runs_it(state_url: str) -> None:
    said = harness(state_url, "--races", "500", within_s=1_200)

    assert "500 approval_used and ok" in said
