"""Several processes that serve together, and the one that watches over them.

    supervisor ──fork──▶ worker 1    says that it is ready; only then come the others, so that
        │                worker 2    a mistake is told once
        │                worker 3
        ├─ one ends ───▶ another takes its place, at once or after a wait that doubles
        ├─ one blocks ─▶ is said; it is killed, and replaced, only if the rules want that
        ├─ SIGHUP ─────▶ is passed on: policies are taken anew
        ├─ SIGTERM ────▶ is passed on: calls end; what has not ended in time is killed
        └─ killed ─────▶ the system closes a pipe, by which workers know, and end

The supervisor runs no code but this and none of the user's, has no thread and no connection, so
that to fork is safe, and there is little that could end it.
"""

from __future__ import annotations

import os
import select
import signal
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from seawall.edges.gateway.pulse import Pulse, Silence
from seawall.edges.gateway.respawn import STEADY_S, TRIES, Respawn
from seawall.edges.gateway.seat import Seat

if TYPE_CHECKING:
    from collections.abc import Callable

    from seawall.pipeline.clock import Clock

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD, signal.SIGHUP)

MARGIN_S = 15.0
"""What a worker may take beyond its drain, to close what it has open, before it is killed."""
START_S = 120.0
"""How long a worker may take until it serves: it may have to start servers of its own."""
BLOCKED_S = 10.0
"""After so long without a round of its event loop, a worker is said to be blocked."""
LOOK_S = 5.0
"""Seconds between looks at what no signal tells."""

ENDED = 0
"""The exit code after an end in order; codes of workers that could not be used are theirs."""
GAVE_UP = 1
FAULTY = 2
"""With this code a worker says that it can never start: its configuration is wrong."""


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """How many workers there are, and how long they may take."""

    workers: int
    drain_s: float
    start_s: float = START_S
    margin_s: float = MARGIN_S
    steady_s: float = STEADY_S
    blocked_s: float = BLOCKED_S
    replace_blocked_s: float | None = None
    """After so long a blocked worker is killed, with the calls that it has; None: never."""


class _Place:
    """The place of one worker, and who has it now."""

    def __init__(self, number: int, respawn: Respawn) -> None:
        self.number = number
        self.respawn = respawn
        self.process = 0
        """0 while nobody has it."""
        self.report = -1
        self.since = 0.0
        self.ready_at: float | None = None
        self.is_to_reload = False
        self.is_killed = False
        self.blocked_since: float | None = None


class Supervisor:
    """Starts workers, replaces those that end, and ends them. For the main thread of a process."""

    def __init__(
        self,
        rules: Rules,
        clock: Clock,
        say: Callable[[str], None],
        buried: Callable[[int], None] = lambda _: None,
    ) -> None:
        self._rules = rules
        self._clock = clock
        self._say = say
        self._buried = buried
        """Told the number of a place whose worker has ended."""
        self._places = [
            _Place(number, Respawn(rules.steady_s)) for number in range(1, rules.workers + 1)
        ]
        self._any_was_ready = False
        self._all_were_ready = False
        self._stop_by: float | None = None
        """When what still runs is killed; None until it is told to stop."""
        self._code = ENDED
        self._pulse = Pulse(rules.workers, clock)
        self._silence = Silence(self._pulse, clock, min(LOOK_S, rules.blocked_s / 2))
        self._life = (-1, -1)
        self._wake = (-1, -1)

    def run(self) -> Seat | int:
        """Watch over workers to the end. Gives the exit code here, and in each worker its seat.

        As `os.fork` does, this returns once in each process. In a worker signals are as they were,
        but for SIGINT and SIGHUP, which do nothing until somebody wants them.
        """
        former = self._begin()
        while not self._is_over():
            seat = self._start_due()
            if seat is not None:
                return seat
            self._wait()
            self._reap()
            self._look_at_times()
        self._end(former)
        return self._code

    # ---- beginning and end ------------------------------------------------------------------

    def _begin(self) -> dict[signal.Signals, signal.Handlers]:
        self._life = os.pipe()
        self._wake = os.pipe()
        for end in self._wake:
            os.set_blocking(end, False)
        former: dict[signal.Signals, signal.Handlers] = {}
        for one in SIGNALS:
            former[one] = signal.signal(one, _noted)  # type: ignore[assignment]  # ours to give back
        signal.set_wakeup_fd(self._wake[1], warn_on_full_buffer=False)
        return former

    def _end(self, former: dict[signal.Signals, signal.Handlers]) -> None:
        signal.set_wakeup_fd(-1)
        for one, handler in former.items():
            signal.signal(one, handler)
        for end in (*self._life, *self._wake):
            os.close(end)

    def _is_over(self) -> bool:
        return self._stop_by is not None and not any(place.process for place in self._places)

    # ---- starting ---------------------------------------------------------------------------

    def _start_due(self) -> Seat | None:
        """Start whom it is time for; gives the seat in the process that was started."""
        if self._stop_by is not None:
            return None
        now = self._clock.now()
        for place in self._empty():
            if place.respawn.due <= now:
                seat = self._started(place)
                if seat is not None:
                    return seat
        return None

    def _empty(self) -> list[_Place]:
        """The places that a worker may take now; until one has served, the first alone."""
        allowed = self._places if self._any_was_ready else self._places[:1]
        return [place for place in allowed if not place.process]

    def _started(self, place: _Place) -> Seat | None:
        try:
            return self._forked(place)
        except OSError as error:  # no process or no descriptor is left
            wait_s = place.respawn.ended(self._clock.now(), None)
            self._say(f"worker {place.number} cannot be started: {error.strerror}")
            if not self._any_was_ready and place.respawn.is_hopeless:
                self._code = GAVE_UP
                self._stop()
            else:
                self._say(f"it is tried again in {wait_s:g} s")
            return None

    def _forked(self, place: _Place) -> Seat | None:
        ours, theirs = os.pipe()
        # A signal between the fork and the first line of the child would be taken for ours.
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        try:
            process = os.fork()
        except OSError:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
            os.close(ours)
            os.close(theirs)
            raise
        if process == 0:
            os.close(ours)
            return self._as_worker(place, theirs)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        os.close(theirs)
        os.set_blocking(ours, False)
        place.process, place.report, place.since = process, ours, self._clock.now()
        place.ready_at, place.is_killed = None, False
        return None

    def _as_worker(self, place: _Place, report: int) -> Seat:
        """Leave behind what is the supervisor's."""
        signal.set_wakeup_fd(-1)
        for one in SIGNALS:
            # Nothing, and not `SIG_IGN`: that would go on in whatever the worker starts.
            does_nothing = one in (signal.SIGINT, signal.SIGHUP)
            signal.signal(one, _noted if does_nothing else signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        for end in (self._life[1], *self._wake, *(one.report for one in self._places)):
            if end >= 0:
                os.close(end)
        with open(os.devnull, "rb") as nothing:  # noqa: PTH123  # its number is what is wanted
            os.dup2(nothing.fileno(), 0)
        return Seat(
            number=place.number,
            of=self._rules.workers,
            is_first=not self._any_was_ready,
            report=report,
            life=self._life[0],
            pulse=self._pulse,
        )

    # ---- watching ---------------------------------------------------------------------------

    def _wait(self) -> None:
        reports = {place.report: place for place in self._places if place.report >= 0}
        found, _, _ = select.select([self._wake[0], *reports], [], [], self._until_next())
        for end in found:
            if end in reports:
                self._heard(reports[end])
            else:
                for number in os.read(end, 4_096):
                    self._signalled(number)

    def _until_next(self) -> float | None:
        """Seconds until something is to be done by time alone."""
        times = [place.respawn.due for place in self._empty()]
        times += [
            place.since + self._rules.start_s
            for place in self._places
            if place.process and place.ready_at is None
        ]
        if self._stop_by is not None:
            times = [self._stop_by]
        # Never for ever: what is missed is then made up for.
        now = self._clock.now()
        return max(min([*times, now + self._silence.every_s]) - now, 0.0)

    def _heard(self, place: _Place) -> None:
        with suppress(BlockingIOError):
            if not os.read(place.report, 4_096):
                self._close_report(place)
                return
        if place.ready_at is not None:
            return
        place.ready_at = self._clock.now()
        self._any_was_ready = True
        if place.is_to_reload:
            place.is_to_reload = False
            self._send(place, signal.SIGHUP)
        if self._all_were_ready:
            self._say(f"worker {place.number} serves again, as process {place.process}")
        elif all(one.ready_at is not None for one in self._places):
            self._all_were_ready = True
            self._say(f"{self._rules.workers} workers serve")

    def _signalled(self, number: int) -> None:
        if number == signal.SIGHUP:
            for place in self._places:
                # One that is not ready has perhaps read the policy already.
                place.is_to_reload = place.ready_at is None
                if place.ready_at is not None:
                    self._send(place, signal.SIGHUP)
        elif number == signal.SIGINT and self._stop_by is not None:
            self._kill_all("told so twice")
        elif number in (signal.SIGTERM, signal.SIGINT) and self._stop_by is None:
            self._stop()

    def _stop(self) -> None:
        self._stop_by = self._clock.now() + self._rules.drain_s + self._rules.margin_s
        self._pulse.end_all()
        for place in self._places:
            self._send(place, signal.SIGTERM)

    def _look_at_times(self) -> None:
        now = self._clock.now()
        if self._stop_by is not None:
            if now >= self._stop_by:
                self._kill_all(f"they did not end within {self._rules.drain_s:g} s and some")
            return
        for place in self._places:
            starts = place.process and place.ready_at is None and not place.is_killed
            if starts and now - place.since >= self._rules.start_s:
                self._say(f"worker {place.number} did not serve within {self._rules.start_s:g} s")
                self._kill(place)
        self._silence.look()
        for place in self._places:
            if place.ready_at is not None and not place.is_killed:
                self._look_at_pulse(place, now)

    def _look_at_pulse(self, place: _Place, now: float) -> None:
        silent_s, rules = self._silence.of(place.number), self._rules
        worker = f"worker {place.number} (process {place.process})"
        if silent_s < rules.blocked_s:
            if place.blocked_since is not None:
                blocked_s = now - silent_s - place.blocked_since
                self._say(f"{worker} goes on, after {blocked_s:.0f} s")
                place.blocked_since = None
            return
        if place.blocked_since is None:
            place.blocked_since = now - silent_s
            self._say(
                f"{worker} takes no calls: its event loop has been blocked for {silent_s:.0f} s;"
                f" {_then(rules.replace_blocked_s)}"
            )
        if rules.replace_blocked_s is not None and silent_s >= rules.replace_blocked_s:
            self._say(f"{worker} is killed: its event loop has been blocked for {silent_s:.0f} s")
            self._kill(place)

    def _kill(self, place: _Place) -> None:
        place.is_killed = True
        self._send(place, signal.SIGKILL)

    def _kill_all(self, why: str) -> None:
        left = [place for place in self._places if place.process and not place.is_killed]
        if not left:
            return
        self._say(f"workers are killed: {why}")
        self._code = GAVE_UP
        for place in left:
            self._kill(place)

    def _send(self, place: _Place, number: signal.Signals) -> None:
        if place.process:
            with suppress(ProcessLookupError):
                os.kill(place.process, number)

    # ---- ends of workers --------------------------------------------------------------------

    def _reap(self) -> None:
        """Take note of every process that ended: as the first of a container, of strange ones."""
        while True:
            try:
                process, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if process == 0:
                return
            for place in self._places:
                if place.process == process:
                    self._ended(place, os.waitstatus_to_exitcode(status))

    def _ended(self, place: _Place, code: int) -> None:
        # It may have been ready and ended before that was heard.
        if place.report >= 0 and place.ready_at is None:
            self._heard(place)
        now, process = self._clock.now(), place.process
        was_ready = place.ready_at
        self._close_report(place)
        place.process, place.ready_at, place.blocked_since = 0, None, None
        self._pulse.rest(place.number)
        self._buried(place.number)
        if self._stop_by is not None:
            return
        wait_s = place.respawn.ended(now, None if was_ready is None else now - was_ready)
        said = f"worker {place.number} (process {process}) {_how(code)}"
        if self._is_no_use(place, code, was_ready=was_ready is not None):
            self._say(f"{said}; no more are started")
            self._code = FAULTY if code == FAULTY else GAVE_UP
            self._stop()
        else:
            self._say(f"{said}; another starts{f' in {wait_s:g} s' if wait_s else ''}")

    def _is_no_use(self, place: _Place, code: int, *, was_ready: bool) -> bool:
        """Whether to give up: at the start over a fault; later only when nobody serves any more."""
        if not self._all_were_ready:
            return (code == FAULTY and not was_ready) or place.respawn.failures >= TRIES
        serves = any(one.ready_at is not None for one in self._places)
        return not serves and all(one.respawn.is_hopeless for one in self._places)

    def _close_report(self, place: _Place) -> None:
        if place.report >= 0:
            os.close(place.report)
            place.report = -1


def _then(replace_s: float | None) -> str:
    if replace_s is None:
        return "it is left alone, as it may be in the middle of a call"
    return f"it is killed, with the calls that it has, after {replace_s:g} s"


def _noted(number: int, frame: object) -> None:
    """Do nothing: the number comes by the pipe."""


def _how(code: int) -> str:
    if code >= 0:
        return f"ended with {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"
