"""When a model is taken to go in circles, and what it is told then."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import msgspec

from seawall.contract.content import TextContent
from seawall.contract.failure import FailureCode
from seawall.orchestration.loop_judge import Judge  # noqa: TC001 - msgspec reads it at run time
from seawall.policy.settings import Bounds, LoopSettings, check_bounds, loop_bounds, within

if TYPE_CHECKING:
    from seawall.contract.result import ToolResult

LAYER = "loop_detector"

MAX_REASON = 300
MAX_S = 1e9
"""Seconds that are no limit any more."""

GUIDANCE = (
    "Do not repeat it. Use what you have, try something else, or tell the user what stands in the"
    " way."
)


class LoopPolicy(LoopSettings, frozen=True, kw_only=True):
    """When a model is taken to go in circles, and who else may say so."""

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
        check_bounds(self, (*loop_bounds(self), *self._judge_bounds()), "loop.")

    def _judge_bounds(self) -> Bounds:
        return (
            ("judge_after", "at least 0", within(self.judge_after, 0)),
            ("judge_every", "at least 1", within(self.judge_every, 1)),
            ("judge_confidence", "from 0 to 1", within(self.judge_confidence, 0, 1)),
            ("judge_within_s", "above 0", within(self.judge_within_s, 1e-9, MAX_S)),
        )


BY_SESSION = LoopPolicy(scope="sessions")
"""What holds where nothing else is said: calls of nobody in particular may repeat."""


def chosen(given: LoopPolicy | None, settings: LoopSettings | None) -> LoopPolicy | None:
    """Give what a program says itself, or else what its policies say."""
    if given is not BY_SESSION:
        return given
    return None if settings is None else LoopPolicy(**msgspec.structs.asdict(settings))


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
