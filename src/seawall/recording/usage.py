"""How often each tool was called and how that went: numbers per tool, for people and programs.

Only registered tools are counted, so there are as many records as tools. Calls are counted from
one event loop; reading is safe from any thread.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from seawall.contract.span import Outcome, Span
from seawall.pipeline.clock import SystemClock
from seawall.pipeline.recorder import Finished, ToolRecorder
from seawall.recording.shown import moment, one_line, slug

if TYPE_CHECKING:
    from collections.abc import Callable

    from seawall.pipeline.clock import Clock

_SUCCESS = Outcome.SUCCESS


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """What became of the calls of one tool since it was registered."""

    tool: str
    successes: int = 0
    failures: int = 0
    refusals: int = 0
    """Calls that a layer refused."""
    skipped: int = 0
    """Steps of a batch that an earlier step made pointless."""
    runs: int = 0
    """Calls whose executor began."""
    total_s: float = 0.0
    """Time inside the executor, over all runs and attempts."""
    last_error: str = ""
    """The slug of the newest failure; a success does not clear it."""
    last_used: float | None = None
    """Seconds since the epoch of the newest call's end."""

    @property
    def invocations(self) -> int:
        """All calls, however they ended."""
        return self.successes + self.failures + self.refusals + self.skipped

    @property
    def success_rate(self) -> float | None:
        """Share of successes among the calls that were not refused or skipped."""
        tried = self.successes + self.failures
        return self.successes / tried if tried else None

    @property
    def mean_s(self) -> float | None:
        """Mean time inside the executor of the calls that ran."""
        return self.total_s / self.runs if self.runs else None


class UsageTracker:
    """Counts the calls of each registered tool."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = SystemClock() if clock is None else clock
        self._tallies: dict[str, _Tally] = {}

    def for_tool(self, tool: str) -> ToolRecorder:
        """Give the function that counts a call; asked again, it goes on with the same numbers."""
        tally = self._tallies.get(tool)
        if tally is None:
            tally = self._tallies[tool] = _Tally(self._clock.wall)
        return ToolRecorder(on_call=tally.on_call, on_success=tally.on_success)

    def unknown(self) -> None:
        """Count nothing: a name that is not registered leaves no trace."""

    def forget(self, tool: str) -> None:
        """Drop the numbers of a tool that was unregistered."""
        self._tallies.pop(tool, None)

    def begin(self, tool: str) -> UsageHandle:
        """Begin a call of your own; of a tool that is not registered nothing is counted."""
        return UsageHandle(self._tallies.get(tool), self._clock.now)

    def snapshot(self) -> dict[str, Usage]:
        """Give the numbers of every registered tool, most called first, then by name."""
        read = [tally.read(tool) for tool, tally in list(self._tallies.items())]
        read.sort(key=lambda usage: (-usage.invocations, usage.tool))
        return {usage.tool: usage for usage in read}

    def report(self, limit: int = 40) -> str:
        """For people: the most called tools, a line each, then how many others there are."""
        used = [usage for usage in self.snapshot().values() if usage.invocations]
        shown = used[: max(limit, 0)]
        lines = [_line(usage) for usage in shown]
        lines.append(f"{len(used) - len(shown)} more; {len(self) - len(used)} never called")
        return "\n".join(lines)

    def __len__(self) -> int:
        return len(self._tallies)


class UsageHandle:
    """A call that was begun and counts once, as what it is first said to have been."""

    __slots__ = ("_begun", "_now", "_tally")

    def __init__(self, tally: _Tally | None, now: Callable[[], float]) -> None:
        self._tally = tally
        self._now = now
        self._begun = now()

    def success(self) -> bool:
        """Count a success; False if nothing was counted."""
        return self._settle(_SUCCESS, "", self._now() - self._begun)

    def failure(self, reason: str = "") -> bool:
        """Count a failure; False if nothing was counted."""
        return self._settle(Outcome.FAILED, reason, self._now() - self._begun)

    def refusal(self, reason: str = "") -> bool:
        """Count a refusal, for which nothing ran; False if nothing was counted."""
        return self._settle(Outcome.DENIED, reason, None)

    def _settle(self, outcome: Outcome, reason: str, seconds: float | None) -> bool:
        tally, self._tally = self._tally, None
        if tally is None:
            return False
        tally.count(outcome, reason, seconds)
        return True


class _Tally:
    __slots__ = (
        "_wall",
        "failures",
        "last_error",
        "last_used",
        "refusals",
        "runs",
        "skipped",
        "successes",
        "total_s",
    )

    def __init__(self, wall: Callable[[], float]) -> None:
        self._wall = wall
        self.successes = self.failures = self.refusals = self.skipped = self.runs = 0
        self.total_s = 0.0
        self.last_error = ""
        self.last_used: float | None = None

    def on_success(self, span: Span, seconds: float) -> None:
        self.last_used = span.started + span.duration_ms * 0.001  # cheaper than the clock
        self.runs += 1
        self.total_s += seconds
        self.successes += 1

    def on_call(self, finished: Finished) -> None:
        self.count(finished.outcome, finished.reason, finished.executed_s)

    def count(self, outcome: Outcome, reason: str, seconds: float | None) -> None:
        self.last_used = self._wall()
        if seconds is not None:
            self.runs += 1
            self.total_s += seconds
        if outcome is _SUCCESS:
            self.successes += 1
        elif outcome is Outcome.FAILED:
            self.failures += 1
            self.last_error = slug(reason) or "other"
        elif outcome is Outcome.DENIED:
            self.refusals += 1
        else:
            self.skipped += 1

    def read(self, tool: str) -> Usage:
        return Usage(
            tool=tool,
            successes=self.successes,
            failures=self.failures,
            refusals=self.refusals,
            skipped=self.skipped,
            runs=self.runs,
            total_s=self.total_s,
            last_error=self.last_error,
            last_used=self.last_used,
        )


def _line(usage: Usage) -> str:
    rate, mean_s = usage.success_rate, usage.mean_s
    parts = [
        one_line(usage.tool),
        f"{usage.invocations} calls",
        f"success {usage.successes}, failed {usage.failures}, denied {usage.refusals}",
        f"{rate:.0%} success" if rate is not None and usage.runs else "",
        "" if mean_s is None else f"mean {mean_s:.3f} s",
        f"last error {usage.last_error}" if usage.last_error else "",
        "" if usage.last_used is None else f"last used {moment(usage.last_used)}",
    ]
    return "  ".join(part for part in parts if part)
