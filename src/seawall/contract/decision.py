"""What a gate decides, and what waits for a person."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import msgspec

from seawall.contract.annotations import Risk
from seawall.contract.span import Digest
from seawall.contract.tool import Tool


class Action(StrEnum):
    """What is to happen to a call."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


class Decision(msgspec.Struct, frozen=True):
    """A verdict with its reason, which is never blank."""

    action: Action
    """What is to happen."""
    reason: str
    """For people and logs; for the model too, if the call is refused."""

    def __post_init__(self) -> None:
        if not self.reason.strip():
            msgspec.structs.force_setattr(self, "reason", f"no reason was given for {self.action}")


class Prepared(msgspec.Struct, frozen=True, kw_only=True):
    """A call whose arguments are parsed, coerced and checked: what would run, if it may."""

    tool: Tool
    """What would run."""
    arguments: dict[str, Any]
    """As the executor would get them, but for typed values of its own `check`."""
    call_id: str = ""
    """Empty where nothing was called yet."""
    session_id: str = ""
    """Of the caller's session."""
    caller: str = ""
    """Of that session."""
    digest: Digest | None = None
    """Of the arguments."""
    mended: tuple[str, ...] = ()
    """What was mended, as pointers and rules without values."""
    ignored: tuple[str, ...] = ()
    """Names of arguments that the tool does not take, and does not get; eight at most."""


class PendingApproval(msgspec.Struct, frozen=True, kw_only=True):
    """A call that waits for a person. Times are seconds since the epoch."""

    id: str
    """Of this call within the request."""
    call_id: str
    """Of the call in its turn."""
    tool: str
    """The tool's name."""
    risk: Risk
    """Of the call, when it was asked about."""
    reason: str
    """Why a person is asked."""
    created: float
    """When it was asked."""
    expires: float | None = None
    """When the wait ends; None: never."""
    decision: Action | None = None
    """ALLOW or DENY; None: not answered yet."""
    deny_reason: str = ""
    """What the person said to a denial; the model reads it."""
    decided: float | None = None
    """When it was answered."""
    state: Any = None
    """Opaque to Seawall: what the caller needs to go on with."""
    decided_by: str = ""
    """Who answered, as whoever took the answer calls them."""
    arguments: str = ""
    """What would run, as JSON text for a person: bounded, and without secrets."""
    arguments_cut: bool = False
    """Whether that leaves out something that is no secret; `Approvals.show` gives it `whole`."""
    digest: str = ""
    """Of all arguments; they are checked against it before they run."""
    session_id: str = ""
    """Of the session that made the call."""
    caller: str = ""
    """Of that session."""
    batch_id: str = ""
    """The request that it is part of: all calls of one turn."""
    origin: str = ""
    """Which server the tool belongs to: it may run there, and nowhere else."""
