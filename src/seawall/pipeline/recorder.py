"""What listens to calls: spans, usage, metrics, audit. One that fails harms no call."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import msgspec

from seawall.contract.result import ToolResult
from seawall.contract.span import Digest, Instants, Outcome, Span

if TYPE_CHECKING:
    from seawall.contract.tool import Tool
    from seawall.pipeline.invocation import Handler


class Finished(msgspec.Struct, frozen=True):
    """A call that ended, one way or another; each call ends exactly once."""

    call_id: str
    tool: str
    outcome: Outcome
    reason: str
    """A slug; empty for success."""
    layer: str
    """Who refused or failed it; empty for success."""
    elapsed_s: float
    """From arrival to the answer: gates, waits and attempts together."""
    executed_s: float | None
    """Inside the executor over all attempts; None if it never began."""
    attempts: int
    session_id: str
    caller: str
    result: ToolResult | None
    """None if the caller cancelled it."""
    digest: Digest | None = None
    """Of the arguments, if anybody has asked for it."""
    decided: tuple[str, str] = ("", "")
    """Who let it run or did not, and why; empty if nobody was asked."""
    batch_id: str | None = None
    instants: Instants | None = None
    """When layers decided after the last attempt that has a span."""


OnAttempt = Callable[[Span], None]
OnCall = Callable[[Finished], None]
OnEvent = Callable[[str, str], None]
OnSuccess = Callable[[Span, float], object]
"""Told of a call that went well: its last attempt, and the seconds inside the executor over all."""


class ToolRecorder:
    """The functions that count for one tool; None where a recorder has no use for the news.

    With `on_success`, the last attempt and the end of a call that went well are told by that alone,
    instead of by `on_attempt` and `on_call`: what is the same of all such calls need not be told.
    """

    __slots__ = ("on_attempt", "on_call", "on_event", "on_success")

    def __init__(
        self,
        on_attempt: OnAttempt | None = None,
        on_call: OnCall | None = None,
        on_event: OnEvent | None = None,
        on_success: OnSuccess | None = None,
    ) -> None:
        self.on_attempt = on_attempt
        self.on_call = on_call
        self.on_event = on_event
        self.on_success = on_success


class Recorder(Protocol):
    """Hands out, once per tool, the functions that count for it."""

    def for_tool(self, tool: str) -> ToolRecorder:
        """Give the functions for a registered tool."""
        ...

    def unknown(self) -> None:
        """Count a call of a name that is not registered; the name itself is never kept."""
        ...


@runtime_checkable
class Surrounding(Protocol):
    """A recorder that also stands around the calls, because what runs inside must see it."""

    def around(self, tool: Tool, handler: Handler) -> Handler:
        """Give the handler to run instead; asked once per chain, it must not change results."""
        ...


def surrounding(recorders: Iterable[Recorder]) -> tuple[Surrounding, ...]:
    """Give those recorders that want to be around chains.

    Asked once for all tools: an `isinstance` of a protocol takes longer than composing a chain.
    """
    return tuple(recorder for recorder in recorders if isinstance(recorder, Surrounding))


def surrounded(tool: Tool, handler: Handler, recorders: Iterable[Surrounding]) -> Handler:
    """Put recorders around a tool's chain; the first is innermost."""
    for recorder in recorders:
        handler = recorder.around(tool, handler)
    return handler
