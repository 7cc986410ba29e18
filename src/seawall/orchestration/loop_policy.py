"""When a model is taken to go in circles, and what it is told then."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from seawall.contract.content import TextContent
from seawall.contract.errors import ConfigurationError, Fault
from seawall.contract.failure import FailureCode
from seawall.orchestration.loop_judge import Judge

if TYPE_CHECKING:
    from seawall.contract.result import ToolResult

LAYER = "loop_detector"

MAX_WINDOW = 1_000
MAX_REASON = 300

GUIDANCE = (
    "Do not repeat it. Use what you have, try something else, or tell the user what stands in the"
    " way."
)


class LoopPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """When a model is taken to go in circles."""

    threshold: int = 5
    """Calls with the same arguments and the same result; the next is refused."""
    window: int | None = None
    """The last calls of a session among which they are counted; None: as many, all in a row."""
    cycle_rounds: int | None = 3
    """Rounds of the same two or three calls with the same results; None looks for no cycles."""
    pause_s: float | None = 300.0
    """A session that calls nothing for so long begins anew; None: it never does."""
    exempt: tuple[str, ...] = ()
    """Names of tools that may repeat, with `*`, `?` and `[…]`."""
    exempt_tags: tuple[str, ...] = ("polling",)
    """Tools with one of these tags may repeat, too."""
    scope: Literal["all", "sessions"] = "all"
    """`sessions` leaves out calls that bring no session, unless they are made in a turn."""
    judge: Judge | None = None
    """Asked whether the conversation goes in circles; see `LoopQuestion` and `LoopVerdict`."""
    judge_after: int = 30
    """Turns of a session before the judge is asked."""
    judge_every: int = 10
    """Turns from one question to the next."""
    judge_confidence: float = 0.8
    """Verdicts below this stop nobody."""
    judge_within_s: float = 30.0
    """What comes later is no verdict."""

    def __post_init__(self) -> None:
        faults = [
            Fault(f"must be {said} (got {getattr(self, key)!r})", key=f"loop.{key}")
            for key, said, fine in self._bounds()
            if not fine
        ]
        if faults:
            raise ConfigurationError(faults)

    def _bounds(self) -> tuple[tuple[str, str, bool], ...]:
        most = MAX_WINDOW if self.window is None else self.window
        return (
            ("threshold", "from 2 to the window", 2 <= self.threshold <= most),
            ("window", f"at most {MAX_WINDOW}", most <= MAX_WINDOW),
            ("cycle_rounds", "from 2 to 100, or None", 2 <= (self.cycle_rounds or 2) <= 100),
            ("pause_s", "above 0, or None", self.pause_s is None or self.pause_s > 0),
            ("scope", "all or sessions", self.scope in ("all", "sessions")),
            ("judge_after", "at least 0", self.judge_after >= 0),
            ("judge_every", "at least 1", self.judge_every >= 1),
            ("judge_confidence", "from 0 to 1", 0 <= self.judge_confidence <= 1),
            ("judge_within_s", "above 0", 0 < self.judge_within_s < math.inf),
        )


BY_SESSION = LoopPolicy(scope="sessions")
"""What holds where nothing else is said: calls of nobody in particular may repeat."""


class LoopFinding(msgspec.Struct, frozen=True):
    """Which detector fired, and how often it had seen what it looks for."""

    detector: Literal["repeat", "cycle_2", "cycle_3", "judge"]
    count: int
    """Equal calls, rounds of a cycle, or turns before a verdict."""
    said: str
    """For the model."""

    @property
    def metadata(self) -> dict[str, Any]:
        """What a result carries about it, under `loop`."""
        return {"loop": {"detector": self.detector, "count": self.count}}


def repeat(count: int) -> LoopFinding:
    """Say that one call was made so many times."""
    said = f"the same call was made {count} times with the same result"
    return LoopFinding("repeat", count, said)


def cycle(length: int, count: int) -> LoopFinding:
    """Say that so many calls were made so many times in turn."""
    said = f"the same {length} calls were made {count} times in turn with the same results"
    return LoopFinding("cycle_2" if length == 2 else "cycle_3", count, said)


def refusal_of(tool: str, finding: LoopFinding) -> dict[str, Any]:
    """Give the fields of the failure that refuses a call of a loop."""
    return {
        "code": FailureCode.PERMISSION_DENIED,
        "message": f"{tool} was not run, as {finding.said}",
        "reason": "loop_detected",
        "layer": LAYER,
        "guidance": GUIDANCE,
    }


def warned(result: ToolResult, finding: LoopFinding) -> ToolResult:
    """Add the warning to a result, for the model and for the program."""
    line = f"[Loop: {finding.said}. The next call that goes on so is refused. {GUIDANCE}]"
    return msgspec.structs.replace(
        result,
        content=(*result.content, TextContent(text=line)),
        metadata={**(result.metadata or {}), **finding.metadata},
    )
