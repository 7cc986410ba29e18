"""Eight processes under full pressure: one rate for all, exactly; and what they do when the store
is stopped, paused, restarted or full meanwhile."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from tests.redis_servers import KINDS, Server, running, until_up

from seawall import Shared

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PROCESSES = 8
CAPACITY = 600
PER_SECOND = 10.0
WORKER = Path(__file__).with_name("shared_worker.py")
BEGINNING_S = 0.5
"""Until all have begun, on a machine that is busy."""


@pytest.fixture
def server() -> Iterator[Server]:
    with running() as found:
        yield found


class Run(NamedTuple):
    """What came of all processes together."""

    each: list[dict[str, Any]]

    @property
    def granted(self) -> int:
        return self.count("granted")

    @property
    def seconds(self) -> tuple[float, float]:
        """From the first decision to the last by the server's clock: at least, and at most."""
        first_began, first_ended = (min(one["first"][n] for one in self.each) for n in (0, 1))
        last_began, last_ended = (max(one["last"][n] for one in self.each) for n in (0, 1))
        return last_began - first_ended, last_ended - first_began

    def count(self, outcome: str) -> int:
        return sum(one["outcomes"].get(outcome, 0) for one in self.each)

    @property
    def outcomes(self) -> set[str]:
        return {outcome for one in self.each for outcome in one["outcomes"]}


def run_all(
    url: str,
    seconds: float,
    *,
    timeout_s: float,
    on_store_down: str,
    meanwhile: Callable[[float], None] = lambda begin: None,
) -> Run:
    arguments = (url, seconds, PROCESSES, timeout_s, on_store_down)
    errors = tempfile.TemporaryFile("w+")  # noqa: SIM115  # read when all have ended
    workers = [
        subprocess.Popen(
            [sys.executable, str(WORKER), *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
        for _ in range(PROCESSES)
    ]
    try:
        for worker in workers:
            assert worker.stdout is not None
            assert worker.stdout.readline() == "ready\n"
        begin = time.time() + BEGINNING_S
        for worker in workers:
            assert worker.stdin is not None
            worker.stdin.write(f"{begin}\n")
            worker.stdin.flush()
        meanwhile(begin)
        said = [worker.communicate(timeout=seconds + 120)[0] for worker in workers]
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()
    errors.seek(0)
    assert "Traceback" not in (told := errors.read()), told
    errors.close()
    return Run([json.loads(lines) for lines in said])


def assert_exact(run: Run) -> None:
    """Granted is capacity and refill, give or take one, between the first and last decision."""
    assert run.outcomes == {"granted", "rate_limited"}
    least, most = (CAPACITY + seconds * PER_SECOND for seconds in run.seconds)
    refused = run.count("rate_limited")
    say(f"granted {run.granted}, expected {least:.2f} to {most:.2f}, refused {refused}")
    assert least - 1 <= run.granted <= most + 1
    # Less than one token is missing, so there is room within a tenth of a second.
    assert max(one["longest_wait_s"] for one in run.each) <= 1 / PER_SECOND
    assert not any(one["problems"] for one in run.each)


async def assert_wait_is_true(url: str) -> None:
    """A call exactly so much later is granted, if nobody else asks."""
    async with Shared(url, timeout_s=5) as shared:
        await until_up(shared)
        while (taken := await shared.buckets.take("LIMITER/tool=t", CAPACITY, 60, 1)) is not None:
            if not taken.granted:
                break
        assert taken is not None
        assert taken.retry_after_s is not None
        await asyncio.sleep(taken.retry_after_s)
        again = await shared.buckets.take("LIMITER/tool=t", CAPACITY, 60, 1)
        assert again is not None
        assert again.granted


@pytest.mark.parametrize("seconds", [4, pytest.param(30, marks=pytest.mark.long)])
def test_eight_processes_under_full_pressure_are_granted_one_rate(
    seconds: float, server: Server
) -> None:
    run = run_all(server.url, seconds, timeout_s=5, on_store_down="fail-closed")

    assert_exact(run)
    asyncio.run(assert_wait_is_true(server.url))


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS[1:])
def test_other_servers_count_as_exactly(kind: str) -> None:
    with running(kind) as server:
        assert_exact(run_all(server.url, 10, timeout_s=5, on_store_down="fail-closed"))


def stopped(server: Server) -> None:
    server.stop()
    time.sleep(2)
    server.start()


def paused(server: Server) -> None:
    server.pause()
    time.sleep(2)
    server.go_on()


def restarted(server: Server) -> None:
    server.stop()
    server.start()


def full(server: Server) -> None:
    server.fill()
    time.sleep(2)
    server.make_room()


def back_after(seen: list[list[Any]], mended_at: float) -> float:
    """Seconds from when the store was mended until this process was answered again."""
    later = [at for at, is_up in seen if is_up and at >= mended_at]
    # It was answered already if the last that was seen before is an answer.
    before = [is_up for at, is_up in seen if at < mended_at]
    return 0.0 if not before or before[-1] else min(later, default=float("inf")) - mended_at


def say(text: str) -> None:
    """For who runs it with `-s`: the numbers of the page about shared state."""
    sys.stdout.write(f"{text}\n")


@pytest.mark.parametrize(
    "on_store_down", ["fail-open", pytest.param("fail-closed", marks=pytest.mark.long)]
)
@pytest.mark.parametrize("how", [stopped, paused, restarted, full])
def test_no_call_hangs_and_nothing_is_raised_whatever_happens_to_the_store(
    how: Callable[[Server], None], on_store_down: str, server: Server
) -> None:
    """The store fails for 2 s one second after the beginning; 5 s later all must be back."""
    mended_at: list[float] = []

    def meanwhile(begin: float) -> None:
        time.sleep(max(begin + 1 - time.time(), 0))
        how(server)
        mended_at.append(time.time())

    run = run_all(server.url, 8, timeout_s=0.05, on_store_down=on_store_down, meanwhile=meanwhile)

    back_s = max(back_after(one["seen"], mended_at[0]) for one in run.each)
    say(
        f"{how.__name__}, {on_store_down}: granted {run.granted} in {run.seconds[1]:.1f} s,"
        f" without the store {run.count('limiter_unavailable')},"
        f" slowest call {max(one['slowest_s'] for one in run.each) * 1000:.0f} ms,"
        f" back after {back_s:.2f} s"
    )
    assert run.outcomes <= {"granted", "rate_limited", "limiter_unavailable"}
    assert back_s < 5
    assert max(one["slowest_s"] for one in run.each) < 2
    assert not any(one["problems"] for one in run.each)
    # A store that lost its memory grants a whole capacity anew; a process alone its part.
    lost = 0 if how in (paused, full) else CAPACITY
    own = CAPACITY + 3 * PER_SECOND if on_store_down == "fail-open" else 0
    assert run.granted <= CAPACITY + run.seconds[1] * PER_SECOND + lost + own + PROCESSES
