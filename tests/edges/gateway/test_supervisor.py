"""Real processes: a supervisor and its workers, which do nothing but what the test is about."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.waiting import Lines, until_gone, waited

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="workers need Linux")

WITHIN_S = 30.0


class Supervised:
    """The program, and the lines that it and its workers have written."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        assert process.stdout is not None
        self._said = Lines(process.stdout)
        self.lines = self._said.lines

    def until(self, said: str, times: int = 1) -> str:
        """Wait for a line that has this in it, so many times; gives the last."""
        return self._said.until(said, times, within_s=WITHIN_S)

    def worker(self, number: int, start: int = 1) -> int:
        """The process of a place's worker, by how often one has started there."""
        return int(self.until(f"seat {number} ", start).split()[2])

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def code(self) -> int:
        found = self.process.wait(WITHIN_S)
        self._said.reader.join(WITHIN_S)
        return found

    def kill(self) -> None:
        """Kill it and its workers, and return when the last of their lines is read."""
        self.process.kill()

        def all_is_read() -> bool:
            for line in self.lines:
                if line.startswith("seat "):
                    with suppress(ProcessLookupError):
                        os.kill(int(line.split()[2]), signal.SIGKILL)
            return not self._said.reader.is_alive()

        # A worker that was just started may be named only now; a stream must not be closed
        # while its reader reads.
        waited(all_is_read)


@contextmanager
def supervised(*arguments: str) -> Iterator[Supervised]:
    command = [sys.executable, "-m", "tests.edges.gateway.supervised", *arguments]
    folder = Path(__file__).parents[3]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as process:
        found = Supervised(process)
        try:
            yield found
        finally:
            found.kill()


def test_the_first_worker_starts_alone_and_the_others_once_it_serves() -> None:
    with supervised("steady", "3") as found:
        found.until("3 workers serve")
        seats = [line for line in found.lines if line.startswith("seat")]

    assert [line.split()[3] for line in seats] == ["first=True", "first=False", "first=False"]
    assert seats[0].split()[1] == "1"
    assert {line.split()[1] for line in seats} == {"1", "2", "3"}  # two start side by side


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_told_to_stop_it_ends_its_workers_in_order_and_then_with_0(number: signal.Signals) -> None:
    with supervised("steady", "2") as found:
        found.until("2 workers serve")
        found.send(number)

        assert found.code() == 0
        assert {"ended 1", "ended 2"} <= set(found.lines)


def test_a_worker_that_is_killed_is_replaced_in_its_place_and_buried() -> None:
    with supervised("steady", "2") as found:
        found.until("2 workers serve")
        former = found.worker(2)
        os.kill(former, signal.SIGKILL)
        found.until("worker 2 serves again")

        assert found.worker(2, start=2) != former
        assert "buried 2" in found.lines
        assert f"worker 2 (process {former}) was ended by SIGKILL" in found.until("SIGKILL")
        assert len([line for line in found.lines if line.startswith("seat 1")]) == 1


def test_one_that_ends_by_itself_is_replaced_too() -> None:
    with supervised("steady", "2") as found:
        found.until("2 workers serve")
        os.kill(found.worker(1), signal.SIGTERM)

        assert "ended with 0" in found.until("another starts")
        found.until("worker 1 serves again")


def test_a_worker_that_is_blocked_is_said_once_and_left_alone_until_it_goes_on() -> None:
    with supervised("beats", "2") as found:
        found.until("2 workers serve")
        blocked = found.worker(2)
        os.kill(blocked, signal.SIGUSR1)
        said = found.until("been blocked")
        os.kill(found.worker(1), signal.SIGTERM)  # something else goes on meanwhile
        found.until("worker 1 serves again")
        os.kill(blocked, signal.SIGUSR1)
        again = found.until("goes on")
        found.send(signal.SIGTERM)
        assert found.code() == 0

    assert said.startswith(f"worker 2 (process {blocked}) takes no calls")
    assert said.endswith("it is left alone, as it may be in the middle of a call")
    assert again.startswith(f"worker 2 (process {blocked}) goes on")
    assert len([line for line in found.lines if "been blocked" in line]) == 1
    assert len([line for line in found.lines if line.startswith("seat 2")]) == 1


def test_a_blocked_worker_is_replaced_if_the_rules_want_that() -> None:
    with supervised("beats", "2", "1", "2") as found:
        found.until("2 workers serve")
        blocked = found.worker(2)
        os.kill(blocked, signal.SIGUSR1)
        found.until("worker 2 serves again")

        assert "after 2 s" in found.until("takes no calls")
        assert f"worker 2 (process {blocked}) is killed" in found.until("is killed: ")
        assert found.worker(2, start=2) != blocked
        assert len([line for line in found.lines if line.startswith("seat 1")]) == 1


def test_after_a_stop_of_all_nobody_is_said_to_be_blocked() -> None:
    with supervised("beats", "2", "1", "2") as found:
        found.until("2 workers serve")
        processes = [found.process.pid, found.worker(1), found.worker(2)]
        for process in processes:
            os.kill(process, signal.SIGSTOP)
        time.sleep(2.5)  # what passes while all are stopped is what this is about
        for process in processes:
            os.kill(process, signal.SIGCONT)
        found.send(signal.SIGHUP)
        found.until("hangup 1")
        found.until("hangup 2")
        found.send(signal.SIGTERM)

        assert found.code() == 0
        assert not [line for line in found.lines if "blocked" in line]


def test_a_fault_of_the_configuration_ends_all_at_once_with_its_code() -> None:
    with supervised("faulty", "4") as found:
        assert found.code() == 2
        assert len([line for line in found.lines if line.startswith("seat")]) == 1


def test_a_worker_that_cannot_start_beside_another_ends_all() -> None:
    with supervised("second-faulty", "2") as found:
        assert found.code() == 2
        assert "ended 1" in found.lines
        assert "no more are started" in found.until("worker 2")


def test_after_five_starts_that_came_to_nothing_it_gives_up_and_says_why() -> None:
    with supervised("never", "2") as found:
        assert found.code() == 1
        assert len([line for line in found.lines if line.startswith("seat 1")]) == 5
        assert "was ended by SIGSEGV; no more are started" in found.lines[-1]


def test_workers_that_are_killed_again_and_again_after_they_served_are_not_given_up() -> None:
    with supervised("brief", "1") as found:
        found.until("1 workers serve")
        for start in range(1, 6):
            os.kill(found.worker(1, start), signal.SIGKILL)
            found.until("another starts in", start)
            if start < 5:
                found.until("serves again", start)

        assert found.until("another starts in", 5).endswith("in 4 s")
        found.send(signal.SIGTERM)
        assert found.code() == 0


def test_one_that_never_serves_is_killed_and_tried_again() -> None:
    with supervised("hangs", "1") as found:
        found.until("worker 1 did not serve within 1 s", 2)

        found.send(signal.SIGTERM)
        assert found.code() == 0


def test_what_does_not_end_in_time_is_killed_and_said() -> None:
    with supervised("deaf", "2", "0.2") as found:
        found.until("2 workers serve")
        found.send(signal.SIGTERM)

        assert found.code() == 1
        assert "workers are killed" in found.lines[-3]


def test_a_second_interrupt_waits_no_longer() -> None:
    with supervised("deaf", "2", "600") as found:
        found.until("2 workers serve")
        found.send(signal.SIGINT)
        time.sleep(0.2)  # two signals at once may come as one
        found.send(signal.SIGINT)

        assert found.code() == 1


def test_workers_end_when_the_supervisor_is_killed_those_that_hang_too() -> None:
    for how in ("steady", "deaf"):
        with supervised(how, "2") as found:
            found.until("2 workers serve")
            found.process.kill()

            until_gone(found.worker(1))
            until_gone(found.worker(2))


def test_a_hangup_reaches_all_workers_and_ends_none() -> None:
    with supervised("steady", "2") as found:
        found.until("2 workers serve")
        found.send(signal.SIGHUP)
        found.until("hangup 1")
        found.until("hangup 2")

        found.send(signal.SIGTERM)
        assert found.code() == 0


def test_fifty_replaced_workers_leave_no_descriptor_behind() -> None:
    with supervised("steady", "2") as found:
        found.until("2 workers serve")
        folder = Path(f"/proc/{found.process.pid}/fd")
        before = len(list(folder.iterdir()))
        first = found.until("seat 2").split()[-1]
        for start in range(1, 51):
            # Killed in turn, so that neither place is taken for one that cannot start.
            os.kill(found.worker(1 + start % 2, (start + 1) // 2), signal.SIGTERM)
            found.until("serves again", start)

        assert len(list(folder.iterdir())) == before
        assert found.until("seat 2", 25).split()[-1] == first
