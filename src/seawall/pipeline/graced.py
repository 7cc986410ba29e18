"""Foreign code that is no tool, such as a hook, inside a limit that somebody else keeps.

The same rule as for tools: once the limit is over and it was cancelled it has a bounded grace to
end, and after that is ended where it stands.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from seawall.pipeline.drive import Drive
from seawall.pipeline.foreign import begun

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from seawall.pipeline.clock import Clock

GRACE_S = 1.0
"""The grace where no policy says one."""


async def graced(work: Callable[[], Any], clock: Clock, left_s: float, grace_s: float) -> Any:
    """Run code that may be a coroutine; `left_s` is what its limit has left.

    Whoever keeps the limit cancels, and gets a `CancelledError` within `grace_s` of that, whatever
    the code makes of its cancel.
    """
    value = begun(work)
    if not hasattr(value, "__await__"):
        return value
    drive = Drive(_awaited(value), _NoCall(), clock, grace_s)
    timer = clock.call_later(max(left_s, 0), drive.limit_is_over)
    try:
        return await drive
    finally:
        timer.cancel()


async def _awaited(value: Awaitable[Any]) -> Any:
    return await value


class _NoCall:
    """Stands where a tool's call would be told what becomes of it."""

    __slots__ = ("cancel_reason",)

    def __init__(self) -> None:
        self.cancel_reason: str | None = None

    def end_attempt(self, now: float) -> None:
        """Nothing: no attempt has ended."""
