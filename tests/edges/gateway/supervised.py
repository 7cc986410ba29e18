"""A program with a supervisor whose workers do as they are told; for the tests of that."""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from seawall.edges.gateway.supervisor import Rules, Supervisor
from seawall.pipeline.clock import SystemClock

if TYPE_CHECKING:
    from seawall.edges.gateway.seat import Seat


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def work(seat: Seat, how: str) -> int:
    descriptors = len(list(Path("/proc/self/fd").iterdir()))
    say(f"seat {seat.number} {os.getpid()} first={seat.is_first} fds={descriptors}")
    if how == "faulty" or (how == "second-faulty" and seat.number == 2):
        return 2
    if how == "never":
        os.kill(os.getpid(), signal.SIGSEGV)
    if how == "hangs":
        threading.Event().wait(60)
    told = threading.Event()
    signal.signal(signal.SIGTERM, signal.SIG_IGN if how == "deaf" else lambda *_: told.set())
    signal.signal(signal.SIGHUP, lambda *_: say(f"hangup {seat.number}"))
    blocked = [False]
    signal.signal(signal.SIGUSR1, lambda *_: blocked.append(not blocked[-1]))
    seat.end_with_supervisor(0.5)
    if how == "beats":
        seat.pulse.beat(seat.number)
    seat.ready()
    while not told.wait(0.05):
        if how == "beats" and not blocked[-1]:
            seat.pulse.beat(seat.number)
    say(f"ended {seat.number}")
    return 0


def main(how: str, workers: str, drain_s: str = "1", replace_s: str = "") -> int:
    rules = Rules(
        workers=int(workers),
        drain_s=float(drain_s),
        margin_s=0.2,
        start_s=1.0,
        steady_s=600.0 if how == "brief" else 0.0,
        blocked_s=1.0,
        replace_blocked_s=float(replace_s) if replace_s else None,
    )
    seat = Supervisor(rules, SystemClock(), say, lambda number: say(f"buried {number}")).run()
    return seat if isinstance(seat, int) else work(seat, how)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
