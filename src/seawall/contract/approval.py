"""What is kept of calls that wait for a person: one record for all calls of a turn.

The record holds names, times and verdicts. Arguments, results and the caller's own state are kept
beside it, sealed, under the keys that `payload` makes.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

import msgspec

from seawall.contract.annotations import Risk
from seawall.contract.decision import Action, PendingApproval
from seawall.contract.errors import ConfigurationError, Fault

if TYPE_CHECKING:
    from collections.abc import Mapping


class ApprovalStatus(StrEnum):
    """How far the calls of one request have come."""

    PENDING = "pending"
    """A person has to answer."""
    APPROVED = "approved"
    """May be resumed."""
    DENIED = "denied"
    EXPIRED = "expired"
    """Nobody answered in time, or nobody resumed it in time."""
    WITHDRAWN = "withdrawn"
    TAKEN = "taken"
    """Somebody runs it now."""
    DONE = "done"
    """Every call has its result."""
    UNKNOWN = "unknown"
    """Whoever ran it is gone, and of some call nobody knows whether it took effect."""


LIVE = frozenset({ApprovalStatus.PENDING, ApprovalStatus.APPROVED, ApprovalStatus.TAKEN})
"""What is not at its end."""


class ApprovalBatch(msgspec.Struct, frozen=True, kw_only=True):
    """One request to a person: the calls of a turn, of which some need an answer."""

    id: str
    """Of the request; what `approve`, `deny` and `resume` take."""
    status: ApprovalStatus
    """As it was when the request was read."""
    created: float
    """Seconds since the epoch, as all times here."""
    expires: float | None = None
    """When the wait ends, in seconds since the epoch; None: never."""
    session_id: str = ""
    """Of the session whose turn waits."""
    caller: str = ""
    """Of that session."""
    calls: int = 1
    """All calls of the turn, those that need no answer among them."""
    approvals: tuple[PendingApproval, ...] = ()
    """Those that need one, in the order of the turn."""
    state: object = None
    """What the caller gave to go on with."""
    owner: str = ""
    """Who runs it now, or ran it last."""
    lease_until: float | None = None
    """Until when whoever runs it is taken to be there, in seconds since the epoch."""


class ApprovalPage(msgspec.Struct, frozen=True, kw_only=True):
    """A part of the requests there are, the newest first."""

    approvals: tuple[ApprovalBatch, ...] = ()
    more: int = 0
    """How many older ones there are beside these; of many only as many are counted."""
    after: str | None = None
    """What gives the next part, if there is one."""


class WaitingRoom(msgspec.Struct, frozen=True, kw_only=True):
    """How much of one caller may wait for a person at once. Nobody takes the places of others."""

    max_waiting: int | None = 1_000
    """Requests; None is no limit."""
    max_waiting_bytes: int | None = 16 * 1024 * 1024
    """Bytes of their arguments, as they are kept, and of what belongs to them; None is no limit."""

    def __post_init__(self) -> None:
        faults = [
            Fault(f"must be at least 1; None is no limit (got {value!r})", key=name)
            for name in self.__struct_fields__
            if (value := getattr(self, name)) is not None and not value >= 1
        ]
        if faults:
            raise ConfigurationError(faults)

    def check(self, requests: int, held: int, size: int) -> None:
        """Raise `ApprovalsFull` if one more of this size has no room beside those that wait."""
        most, most_bytes = self.max_waiting, self.max_waiting_bytes
        if most is not None and requests >= most:
            raise ApprovalsFull(f"{most:,} requests of this caller wait for an answer already")
        if most_bytes is not None and size > most_bytes:
            said = f"the request for it is larger ({size:,} bytes) than all of a caller may be"
            raise ApprovalsFull(f"{said} ({most_bytes:,})")
        if most_bytes is not None and held + size > most_bytes:
            raise ApprovalsFull(f"requests of this caller hold {held:,} of {most_bytes:,} bytes")


class ApprovalsFull(RuntimeError):  # noqa: N818  # named by what happened
    """There is no room for one more request that waits; nothing was kept."""


class FrozenCall(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One call of a turn that waits; it never ran while `begun` is None."""

    call_id: str
    tool: str
    twin_of: int | None = None
    """The position of the same call, given twice; it is run once."""
    asked: bool = False
    """Whether a person has to answer about this one."""
    refused: bool = False
    """It was refused by itself; the refusal is kept, and given again."""
    risk: Risk = Risk.LOW
    definition: dict[str, str] = {}
    """Fingerprints of the parts of the tool's definition."""
    origin: str = ""
    """Which server the tool belongs to."""
    digest: str = ""
    key: str = ""
    """The idempotency key, the same however often it is resumed."""
    decision: Action | None = None
    deny_reason: str = ""
    decided: float | None = None
    decided_by: str = ""
    begun: float | None = None
    begun_by: str = ""
    ended: float | None = None
    end: str = ""
    """How it ended: `ok`, or the slug of its failure."""

    @property
    def in_doubt(self) -> bool:
        """Whether it was begun and nobody has said how it ended."""
        return self.begun is not None and self.ended is None


class Frozen(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A turn that waits. Only the functions of `orchestration.approvals.transitions` change it."""

    id: str
    created: float
    calls: tuple[FrozenCall, ...]
    expires: float | None = None
    session_id: str = ""
    caller: str = ""
    alike: str | None = None
    """Names the one call of it, so that the same call is found; empty where there are more calls,
    and None in records from before there were such names."""
    session_state: str = ""
    """Keyed digest of the state that the session gave its tools; empty if it gave none."""
    services: tuple[str, ...] = ()
    """Names of what the session offered its tools beside it, for longer than one call."""
    front: str = ""
    """Which edge runs it by itself once it is approved; empty: none, somebody resumes it."""
    execution: str | None = None
    withdrawn: float | None = None
    withdrawn_by: str = ""
    instead: str = ""
    """The request for the same call that was kept, if this one was withdrawn as one too many."""
    expired: float | None = None
    """When somebody ended the wait before its time."""
    owner: str = ""
    lease_until: float | None = None
    taken: float | None = None
    finished: float | None = None
    read: float | None = None
    told: float | None = None
    """When whoever makes the call was told that nobody knows whether it took effect."""

    @property
    def is_closed(self) -> bool:
        """Whether nothing can be done with it any more but to read it."""
        return (
            self.finished is not None
            or self.withdrawn is not None
            or self.expired is not None
            or any(call.decision is Action.DENY for call in self.calls)
        )

    def status(self, now: float) -> ApprovalStatus:
        """Say how far it is; times that have passed count without anybody writing so."""
        if self.finished is not None:
            unknown = any(call.end == "outcome_unknown" or call.in_doubt for call in self.calls)
            return ApprovalStatus.UNKNOWN if unknown else ApprovalStatus.DONE
        if self.lease_until is not None and now < self.lease_until:
            return ApprovalStatus.TAKEN
        if any(call.in_doubt for call in self.calls):
            return ApprovalStatus.UNKNOWN
        return self._waiting(now)

    def _waiting(self, now: float) -> ApprovalStatus:
        if self.withdrawn is not None:
            return ApprovalStatus.WITHDRAWN
        if any(call.decision is Action.DENY for call in self.calls):
            return ApprovalStatus.DENIED
        if self.expired is not None or (self.expires is not None and now >= self.expires):
            return ApprovalStatus.EXPIRED
        waits = any(call.asked and call.decision is None for call in self.calls)
        return ApprovalStatus.PENDING if waits else ApprovalStatus.APPROVED


CALL_BYTES = 500
"""What the record of one call takes, beside what is kept sealed."""


def size_of(frozen: Frozen, payloads: Mapping[str, bytes]) -> int:
    """Give the bytes of a request, counted alike in every store."""
    return CALL_BYTES * len(frozen.calls) + sum(map(len, payloads.values()))


def payload(position: int, what: str) -> str:
    """Name what is kept sealed of one call: `arguments`, `shown`, `whole`, `refusal`, `result`."""
    return f"{position}:{what}"


def item_id(batch_id: str, position: int) -> str:
    """The id of the approval of one call."""
    return f"{batch_id}.{position}"


def batch_of(approval_id: str) -> tuple[str, int | None]:
    """Part an id into that of its batch and the position of its call, if it is of one call."""
    batch_id, dot, position = approval_id.partition(".")
    if not dot:
        return batch_id, None
    return batch_id, int(position) if position.isdecimal() and len(position) < 6 else -1


class ApprovalNotFound(LookupError):  # noqa: N818  # named by what happened
    """There is no approval of this id, or no more."""

    def __init__(self, approval_id: str) -> None:
        super().__init__(f"there is no approval {approval_id[:100]!r}")


class ApprovalConflict(ValueError):  # noqa: N818  # named by what happened
    """An approval cannot be answered, withdrawn or run so, as it stands; nothing was changed."""

    def __init__(self, said: str, *, reason: str, status: ApprovalStatus) -> None:
        super().__init__(said)
        self.reason = reason
        """A slug, as a failure has it: `approval_used`, `approval_expired`, …"""
        self.status = status
