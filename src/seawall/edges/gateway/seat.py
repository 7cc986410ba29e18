"""The place of a worker among several, and how it learns that nobody watches any more."""

from __future__ import annotations

import os
import signal
import threading

import msgspec

from seawall.edges.gateway.pulse import Pulse

READY = b"ready\n"


class Seat(msgspec.Struct, frozen=True, kw_only=True):
    """The place of one worker; `Supervisor.run` gives it to the process that takes it."""

    number: int
    """From 1; whoever replaces a worker has the number that this one had."""
    of: int
    is_first: bool
    """Whether this is the first worker of all: what is to be told once, it tells."""
    report: int
    """Where the supervisor reads."""
    life: int
    """The end of a pipe that the supervisor alone holds open, and the system closes after it."""
    pulse: Pulse
    """Where workers say that their event loops go round."""

    @property
    def name(self) -> str:
        """As logs and metrics have it."""
        return f"worker {self.number}"

    def ready(self) -> None:
        """Tell the supervisor that calls are taken."""
        os.write(self.report, READY)

    def end_with_supervisor(self, within_s: float) -> None:
        """End in order once the supervisor is gone, however it went; at once after so long.

        In a thread, so that a tool that blocks the loop does not keep an orphan alive.
        """
        threading.Thread(
            target=_end_after, args=(self.life, within_s), name="seawall-life", daemon=True
        ).start()


def _end_after(life: int, within_s: float) -> None:
    os.read(life, 1)
    os.kill(os.getpid(), signal.SIGTERM)
    threading.Event().wait(within_s)
    os.kill(os.getpid(), signal.SIGKILL)
