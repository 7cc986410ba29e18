"""Entries of the audit log: what was decided, what was done, how each turn ended."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class AuditKind(StrEnum):
    """What an entry is about."""

    CALL = "call"
    """A call that ended, and who let it run or did not."""
    EFFECT = "effect"
    """A call that may have an effect: about to run, and how it ended."""
    TURN = "turn"
    """The end of a turn."""
    APPROVAL = "approval"
    """A request, an answer to it, or what became of it."""
    GAP = "gap"
    """Entries that could not be kept; `outcome` says how many."""


class Private(str):
    """Text that foreign code made, and so may repeat arguments: it is kept sealed, or not at all.

    For why something was decided: policies, sessions and hooks of a program's own say that as they
    like.
    """

    __slots__ = ()


class AuditEntry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One thing that happened. Holds no arguments and no results; texts are cut to 300."""

    kind: AuditKind
    at: float
    """Seconds since the epoch, when it happened."""
    tool: str = ""
    call_id: str = ""
    turn_id: str = ""
    session: str = ""
    caller: str = ""
    outcome: str = ""
    """Such as `success`, `failed`, `denied`; of a turn its status; of an effect its state."""
    reason: str = ""
    """A slug, as in `Failure`."""
    layer: str = ""
    """Who refused."""
    by: str = ""
    """Who decided: `policy`, `session`, `person`, `approval`, or a name."""
    why: str = ""
    """A `Private` one is sealed where there is a key, as `why_sealed`, and left out where not."""
    digest: str = ""
    """Fingerprint of the arguments."""
    about: str = ""
    """The id of what this belongs to: an effect's token, an approval."""


class AuditRecord(msgspec.Struct, frozen=True, kw_only=True):
    """An entry in its place in the log."""

    seq: int
    """From 1, without gaps."""
    text: str
    """The entry as JSON, with `seq` and `previous`: what the hash is of."""
    key: str
    """Name of the key of the hash; empty: a plain SHA-256."""
    hash: str


class AuditMark(msgspec.Struct, frozen=True):
    """An entry by its number and hash: who keeps it elsewhere can tell if the log was cut."""

    seq: int
    hash: str

    def __str__(self) -> str:
        return f"{self.seq}:{self.hash}"


class AuditFault(msgspec.Struct, frozen=True):
    """Something that is wrong with the log."""

    seq: int
    said: str


class AuditReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a check of the whole log found."""

    entries: int
    faults: tuple[AuditFault, ...] = ()
    """The first 20."""
    unkeyed: int = 0
    """Entries that were written without a key: whoever can write to the log can forge these."""
    last: AuditMark | None = None

    @property
    def sound(self) -> bool:
        """Whether nothing was changed, removed or put elsewhere."""
        return not self.faults
