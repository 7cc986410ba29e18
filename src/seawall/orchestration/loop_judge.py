"""Ask somebody who can read, usually another model, whether a conversation goes in circles.

The question is put rarely, under a limit; no answer, a faulty or a late one stops nobody.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from seawall.contract.tool import ToolCall
from seawall.pipeline.foreign import guarded, guarded_async
from seawall.pipeline.graced import GRACE_S, graced
from seawall.pipeline.session import Session

if TYPE_CHECKING:
    from seawall.pipeline.clock import Clock


class LoopQuestion(msgspec.Struct, frozen=True):
    """What a judge is told; the conversation itself is the application's."""

    session: Session
    """Whose conversation it is."""
    turns: int
    """Turns of this session that are over."""
    calls: tuple[ToolCall, ...]
    """What the model wants to do next."""


class LoopVerdict(msgspec.Struct, frozen=True):
    """What a judge answers: this, a mapping with these keys, or JSON text of one."""

    is_loop: bool
    """Whether the conversation goes in circles."""
    reason: str = ""
    """Told to the model if it is stopped."""
    confidence: float = 0.0
    """From 0 to 1."""


Judge = Callable[[LoopQuestion], Any]
"""`async (question) -> LoopVerdict`, or anything that reads as one."""


async def judged(
    judge: Judge, question: LoopQuestion, clock: Clock, within_s: float
) -> LoopVerdict | None:
    """Ask; None if there is no answer that can be used."""
    said: Any = None
    with clock.limit(within_s):
        said = await guarded_async(
            "the loop judge raised",
            lambda: graced(lambda: judge(question), clock, within_s, GRACE_S),
            _nothing,
        )
    if said is None:
        return None
    return guarded("the loop judge's answer cannot be read", lambda: _read(said), _nothing)


def _read(said: Any) -> LoopVerdict:
    if isinstance(said, LoopVerdict):
        return said
    if isinstance(said, (str, bytes)):
        return msgspec.json.decode(said, type=LoopVerdict)
    return msgspec.convert(said, LoopVerdict, from_attributes=True)


def _nothing(_: BaseException) -> None:
    return None
