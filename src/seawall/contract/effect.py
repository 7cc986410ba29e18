"""What is kept of a call that may have an effect: its intent before it runs, its outcome after."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from seawall.contract.result import ToolResult

ANSWERS = "answers:"
"""How the scope begins in which answers to a caller's keys are kept, for tools without effects."""


class EffectState(StrEnum):
    """How far a call came."""

    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    """The tool answered, and its answer was a failure."""
    UNKNOWN = "unknown"
    """It began, and how it ended is not known."""


class Intent(msgspec.Struct, frozen=True, kw_only=True):
    """A call that is about to run."""

    token: str
    """Names this run; drawn anew for each."""
    scope: str
    """Who calls: keys of different scopes are different keys."""
    tool: str
    key: str | None = None
    """The caller's idempotency key; without one nobody can ask for this call again."""
    digest: str
    """Fingerprint of the arguments."""
    call_id: str = ""
    session: str = ""
    caller: str = ""
    decided: tuple[str, str] = ("", "")
    """Who let it run, and why."""
    rivals: tuple[str, ...] = ()
    """Scopes in which another call may have the same key, which then is a conflict."""
    answers: str = ""
    """The tool of an answer, where it may have an effect under the same key as well."""
    keep_s: float = 86_400.0
    """How long the outcome is kept, from its end."""
    replay: bool = False
    """Whether it may be run again when it is not known how it ended."""


class Effect(msgspec.Struct, frozen=True, kw_only=True):
    """A call as it is kept."""

    token: str
    scope: str
    tool: str
    call_id: str
    state: EffectState
    reason: str
    """Why it failed or is not known, as a slug."""
    created: float
    """Seconds since the epoch."""
    settled: float | None = None
    outcome: ToolResult | None = None
    unreadable: str = ""
    """Why there is no outcome, although the call has ended; empty if there is one."""


class Begun(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to an intent: it is kept and may run, or there is an earlier call."""

    earlier: Effect | None = None
    """The call that had the same key; None lets this one run."""
    conflict: bool = False
    """That call was of another tool, or had other arguments."""


class KeyUse(msgspec.Struct, frozen=True, kw_only=True):
    """A call that had a key, whatever its tool."""

    scope: str
    tool: str
    """Empty where an answer is kept, and no effect."""
    digest: str | None
    """Fingerprint of the arguments; None if it compares with none of ours."""
    effect: Effect


class Settled(msgspec.Struct, frozen=True, kw_only=True):
    """How a call ended."""

    token: str
    scope: str
    tool: str
    state: EffectState
    reason: str = ""
    outcome: ToolResult | None = None
    """None where nobody can ask for it again."""
    keep_s: float = 86_400.0
