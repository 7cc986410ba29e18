"""A turn: the calls that a model makes at once, what is told on the way, and what came of them."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Literal

import msgspec

from seawall.contract.approval import ApprovalBatch
from seawall.contract.result import ToolResult


class TurnStatus(StrEnum):
    """How a turn ended; a program that drives a model goes on only after `DONE`."""

    DONE = "done"
    """Hand the results to the model."""
    TERMINATED = "terminated"
    """Every result asked for the end, or a hook stopped the turn."""
    WAITING = "waiting"
    """Nothing was run: a person has to answer first."""
    ABORTED = "aborted"
    """A hook broke the turn off."""
    LOOP = "loop"
    """The model repeats itself, and was stopped."""


class TurnEvent(msgspec.Struct, frozen=True, kw_only=True):
    """Something that happened to one call of a turn.

    Each call has one `start` and one `end`, with its `update`s between them; `position` tells the
    calls apart even where a model gave two of them the same id.
    """

    kind: Literal["start", "update", "end"]
    """What happened."""
    call_id: str
    """Of the call."""
    tool: str
    """The name that was called."""
    position: int
    """Of the call in its turn, from 0."""
    arguments: Any = None
    """At the start: as the model gave them."""
    report: Any = None
    """At an update: a line of text, or a partial result."""
    done: float | None = None
    """How much of `total` is done, at an update that says so."""
    total: float | None = None
    """How much there is to do, if it is known."""
    result: ToolResult | None = None
    """At the end."""


class TurnOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a turn: one result for each call, in the order of the calls."""

    results: tuple[ToolResult, ...] = ()
    """In the order of the calls; empty only if there were none."""
    status: TurnStatus = TurnStatus.DONE
    """How it ended."""
    approval: ApprovalBatch | None = None
    """What a person has to answer, if the turn waits."""
    messages: tuple[Any, ...] = ()
    """What hooks want the model to read after the results, in the order of the calls."""
    reason: str = ""
    """Why it ended, if it is not simply done."""
