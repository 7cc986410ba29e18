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
    reason: str

    def __post_init__(self) -> None:
        if not self.reason.strip():
            msgspec.structs.force_setattr(self, "reason", f"no reason was given for {self.action}")


class Prepared(msgspec.Struct, frozen=True, kw_only=True):
    """A call whose arguments are parsed, coerced and checked: what would run, if it may."""

    tool: Tool
    arguments: dict[str, Any]
    call_id: str = ""
    session_id: str = ""
    caller: str = ""
    digest: Digest | None = None
    mended: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    """Names of arguments that the tool does not take, and does not get; eight at most."""


class PendingApproval(msgspec.Struct, frozen=True, kw_only=True):
    """A call that waits for a person. Times are seconds since the epoch."""

    id: str
    call_id: str
    tool: str
    risk: Risk
    reason: str
    created: float
    expires: float | None = None
    decision: Action | None = None
    deny_reason: str = ""
    decided: float | None = None
    state: Any = None
    """Opaque to Seawall: what the caller needs to go on with."""
    decided_by: str = ""
    arguments: str = ""
    """What would run, as JSON text for a person: bounded, and without secrets."""
    digest: str = ""
    """Of all arguments; they are checked against it before they run."""
    session_id: str = ""
    caller: str = ""
    batch_id: str = ""
    """The request that it is part of: all calls of one turn."""
