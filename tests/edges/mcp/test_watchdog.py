import os
import signal
import subprocess

from seawall.edges.mcp.watchdog import HARD, Watchdog, group_options, kill_group


def sleeping() -> subprocess.Popen[bytes]:
    return subprocess.Popen(["sleep", "600"], **group_options())


def test_a_watchdog_that_is_dismissed_kills_nobody() -> None:
    process = sleeping()
    watchdog = Watchdog(process.pid)

    watchdog.dismiss()
    watchdog.dismiss()

    kill_group(process.pid, signal.SIGTERM)
    assert process.wait(5) == -signal.SIGTERM  # the watchdog would have killed it


def test_when_the_pipe_closes_the_whole_group_is_killed() -> None:
    process = subprocess.Popen(["sh", "-c", "trap '' TERM; sleep 600 & wait"], **group_options())
    watchdog = Watchdog(process.pid)
    assert watchdog._process is not None
    assert watchdog._process.stdin is not None

    watchdog._process.stdin.close()

    assert process.wait(5) == -signal.SIGKILL
    watchdog._process.wait(5)


def test_a_group_that_is_gone_is_no_error() -> None:
    process = sleeping()
    kill_group(process.pid, HARD)
    process.wait(5)

    kill_group(process.pid, HARD)
    assert os.getpid()
