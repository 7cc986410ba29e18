"""`time_now` and `wait`: the only bundled tools that look at a clock to say what it shows."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import Field

from seawall.toolkit.date_time import weekday
from seawall.toolkit.refusal import invalid
from seawall.toolkit.zones import Zone, zone_of

MAX_WAIT_MS = 300_000
_TOLERANCE_MS = 25
"""Timers of common systems are this coarse: what is missing below it is not worth a word."""


class TimeNow:
    """Tells the time of `wall`, in seconds since the epoch."""

    def __init__(self, wall: Callable[[], float]) -> None:
        self._wall = wall

    def time_now(self, zone: Zone = "UTC") -> dict[str, Any]:
        """Tell the current date and time in a time zone."""
        instant = datetime.fromtimestamp(self._wall(), UTC)
        local = instant.astimezone(zone_of(zone))
        return {
            "time": local.isoformat(timespec="seconds"),
            "zone": zone,
            "abbreviation": local.tzname(),
            "weekday": weekday(local),
            "utc": instant.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "epoch_s": round(instant.timestamp(), 3),
        }


class Wait:
    """Lets time pass by `sleep`, in seconds, and measures it by `now`, a monotonic clock."""

    def __init__(
        self, sleep: Callable[[float], Awaitable[object]], now: Callable[[], float]
    ) -> None:
        self._sleep = sleep
        self._now = now

    async def wait(
        self,
        duration_ms: Annotated[
            int, Field(description=f"Milliseconds, 1 to {MAX_WAIT_MS}; split a longer wait.")
        ],
    ) -> dict[str, Any]:
        """Wait for a number of milliseconds, five minutes at most, then go on.

        The answer says how long it really was, and whether something woke it early.
        """
        # Not in the schema: its refusal could not say what to do instead.
        if not 1 <= duration_ms <= MAX_WAIT_MS:
            raise invalid(
                "duration_ms",
                f"duration_ms must be 1 to {MAX_WAIT_MS} (five minutes), not {duration_ms}"[:200],
                guidance="Split a longer wait into several calls, and check in between.",
            )
        began = self._now()
        await self._sleep(duration_ms / 1000)
        waited_ms = (self._now() - began) * 1000
        return {
            "waited_ms": round(waited_ms),
            "woke_early": waited_ms < duration_ms - _TOLERANCE_MS,
        }
