"""What may become of a turn that waits: pure functions from one record to the next.

    pending ─▶ approved ─▶ taken ─▶ done, or unknown
       └─▶ denied, expired, withdrawn (an approved one may expire or be withdrawn too)

A store applies one of these to what it has, alone with it, and writes what comes out. What cannot
be done raises `ApprovalConflict`, and nothing is written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from seawall.contract.approval import ApprovalConflict, ApprovalStatus, Frozen, FrozenCall

if TYPE_CHECKING:
    from collections.abc import Callable

    from seawall.contract.decision import Action

    Transition = Callable[[Frozen], Frozen]

UNKNOWN = "outcome_unknown"


class Decide:
    """Answer for one call, or for all that have no answer yet. An answer is never overwritten."""

    name = "decide"

    def __init__(
        self, position: int | None, action: Action, *, now: float, by: str, reason: str = ""
    ) -> None:
        self._position = position
        self._answer = {
            "decision": action,
            "decided": now,
            "decided_by": by,
            "deny_reason": reason,
        }
        self._now = now

    def __call__(self, frozen: Frozen) -> Frozen:
        """Give the record with the answer."""
        status = frozen.status(self._now)
        if status is not ApprovalStatus.PENDING:
            raise conflict(frozen, status, "cannot be answered")
        at = [place for place, call in enumerate(frozen.calls) if self._means(place, call)]
        if not at:
            raise conflict(frozen, status, "cannot be answered", self._stands(frozen))
        calls = list(frozen.calls)
        for place in at:
            calls[place] = replace(calls[place], **self._answer)
        return replace(frozen, calls=tuple(calls))

    def _stands(self, frozen: Frozen) -> str:
        known = () if self._position is None else frozen.calls[self._position : self._position + 1]
        for call in known:
            if call.asked and call.decision is not None:
                return f"{call.tool} has its answer already: {call.decision}"
        return "that call of it needs no answer"

    def _means(self, place: int, call: FrozenCall) -> bool:
        is_meant = self._position is None or place == self._position
        return is_meant and call.asked and call.decision is None


class Withdraw:
    """Take a request back: whoever made it does not want it any more."""

    name = "withdraw"

    def __init__(self, *, now: float, by: str) -> None:
        self._now = now
        self._by = by

    def __call__(self, frozen: Frozen) -> Frozen:
        """Give the record withdrawn, unless it was run or refused before."""
        status = frozen.status(self._now)
        waits = status in (ApprovalStatus.PENDING, ApprovalStatus.APPROVED)
        if not (waits and is_untouched(frozen)):
            raise conflict(frozen, status, "cannot be withdrawn", _stands(frozen, status))
        return replace(frozen, withdrawn=self._now, withdrawn_by=self._by)


class Supersede:
    """Take back a request that is one too many: another one for the same call is kept.

    Only while it waits. Of two that see the same two requests at different times each could
    otherwise take back the other's choice, and none would be left.
    """

    name = "supersede"

    def __init__(self, instead: str, *, now: float) -> None:
        self._instead = instead
        self._now = now

    def __call__(self, frozen: Frozen) -> Frozen:
        """Give the record withdrawn, with the id of the one that counts."""
        status = frozen.status(self._now)
        if status is not ApprovalStatus.PENDING:
            raise conflict(frozen, status, "cannot be replaced by another")
        return replace(frozen, withdrawn=self._now, instead=self._instead)


class Expire:
    """Write down that the time is over; `at_once` ends it before its time."""

    name = "expire"

    def __init__(self, *, now: float, at_once: bool = False) -> None:
        self._now = now
        self._at_once = at_once

    def __call__(self, frozen: Frozen) -> Frozen:
        """Give the record expired."""
        status = frozen.status(self._now)
        waits = status in (ApprovalStatus.PENDING, ApprovalStatus.APPROVED)
        over = status is ApprovalStatus.EXPIRED
        if not is_untouched(frozen) or not (over or (waits and self._at_once)):
            raise conflict(frozen, status, "cannot expire", _stands(frozen, status))
        return frozen if frozen.expired is not None else replace(frozen, expired=self._now)


def is_untouched(frozen: Frozen) -> bool:
    """Whether nothing of it ran, and nobody who took it may still begin: it was given back."""
    has_run = any(call.begun is not None or call.ended is not None for call in frozen.calls)
    return frozen.lease_until is None and frozen.finished is None and not has_run


class Moved(ApprovalConflict):
    """The record is not what a plan was made from: make another plan."""


class Take:
    """Become the one who runs it. Somebody whose lease is over loses it.

    `seen` is the record that was looked at before: what was found out about it, whether its owner
    is `gone` too, holds for that record alone.
    """

    name = "take"

    def __init__(
        self, owner: str, seen: Frozen, *, now: float, lease_s: float, gone: bool = False
    ) -> None:
        self._owner = owner
        self._seen = seen
        self._now = now
        self._until = now + lease_s
        self._gone = gone

    def __call__(self, frozen: Frozen) -> Frozen:
        """Give the record as ours."""
        if frozen != self._seen:
            said = f"approval {frozen.id} changed meanwhile"
            status = frozen.status(self._now)
            raise Moved(said, reason=REASONS.get(status, "approval_used"), status=status)
        if self._gone and frozen.lease_until is not None:
            frozen = replace(frozen, lease_until=self._now)
        status = frozen.status(self._now)
        again = frozen.taken is not None and frozen.finished is None
        may = status is ApprovalStatus.APPROVED or (
            again and status in (ApprovalStatus.UNKNOWN, ApprovalStatus.EXPIRED)
        )
        if not may:
            raise conflict(frozen, status, "cannot be run")
        return replace(frozen, owner=self._owner, lease_until=self._until, taken=self._now)


class Renew:
    """Say that whoever runs it is still there."""

    name = "renew"

    def __init__(self, owner: str, *, now: float, lease_s: float) -> None:
        self._owner = owner
        self._until = now + lease_s

    def __call__(self, frozen: Frozen) -> Frozen:
        """Give the record with a longer lease."""
        _ours(frozen, self._owner)
        return replace(frozen, lease_until=self._until)


class Begin:
    """Write down that a call is about to run: once, unless it is safe to run it again."""

    name = "begin"

    def __init__(self, position: int, owner: str, *, now: float, again: bool) -> None:
        self._position = position
        self._owner = owner
        self._now = now
        self._again = again

    def __call__(self, frozen: Frozen) -> Frozen:
        """Give the record with the call begun."""
        _ours(frozen, self._owner)
        call = frozen.calls[self._position]
        if call.ended is not None or (call.begun is not None and not self._again):
            status = frozen.status(self._now)
            raise conflict(frozen, status, "cannot be run", f"{call.tool} was begun before")
        return _with(frozen, self._position, begun=self._now, begun_by=self._owner)


class NotBegun:
    """Take back that a call was about to run: it was not, as more could not be written down."""

    name = "not_begun"

    def __init__(self, position: int, owner: str, before: FrozenCall) -> None:
        self._position = position
        self._owner = owner
        self._before = before

    def __call__(self, frozen: Frozen) -> Frozen:
        """Give the record with the call as it was before."""
        call = frozen.calls[self._position]
        if call.begun_by != self._owner or call.ended is not None:
            return frozen  # that it begins was not kept
        before = self._before
        return _with(frozen, self._position, begun=before.begun, begun_by=before.begun_by)


class Settle:
    """Write down how a call ended. Who began it may say so even after it lost the lease."""

    name = "settle"

    def __init__(self, position: int, owner: str, end: str, *, now: float) -> None:
        self._position = position
        self._owner = owner
        self._end = end
        self._now = now

    def __call__(self, frozen: Frozen) -> Frozen:
        """Give the record with the call ended."""
        call = frozen.calls[self._position]
        if call.begun_by != self._owner:
            _ours(frozen, self._owner)
            if call.in_doubt and self._end != UNKNOWN:
                raise self._untold(frozen, f"another has begun {call.tool}")
        if call.ended is not None and not (call.end == UNKNOWN and call.begun_by == self._owner):
            raise self._untold(frozen, f"that of {call.tool} is kept already")
        return _with(frozen, self._position, ended=self._now, end=self._end)

    def _untold(self, frozen: Frozen, why: str) -> ApprovalConflict:
        return conflict(frozen, frozen.status(self._now), "cannot take this end of a call", why)


class Finish:
    """Every call has its result: nothing of it runs again."""

    name = "finish"

    def __init__(self, owner: str, *, now: float) -> None:
        self._owner = owner
        self._now = now

    def __call__(self, frozen: Frozen) -> Frozen:
        """Give the record finished."""
        _ours(frozen, self._owner)
        return replace(frozen, finished=self._now, lease_until=None)


class Release:
    """Stop running it, because whoever wanted it does not wait any more."""

    name = "release"

    def __init__(self, owner: str) -> None:
        self._owner = owner

    def __call__(self, frozen: Frozen) -> Frozen:
        """Give the record without an owner; what was begun and did not end stays in doubt."""
        _ours(frozen, self._owner)
        return replace(frozen, lease_until=None)


class Read:
    """Write down that the results were fetched."""

    name = "read"

    def __init__(self, *, now: float) -> None:
        self._now = now

    def __call__(self, frozen: Frozen) -> Frozen:
        """Give the record as read."""
        return frozen if frozen.read is not None else replace(frozen, read=self._now)


class Tell:
    """Write down that whoever makes the call again was told that its outcome is not known."""

    name = "tell"

    def __init__(self, *, now: float) -> None:
        self._now = now

    def __call__(self, frozen: Frozen) -> Frozen:
        """Give the record as told."""
        return frozen if frozen.told is not None else replace(frozen, told=self._now)


class Look:
    """Change nothing: something about it is written into the audit log alone."""

    name = "look"

    def __call__(self, frozen: Frozen) -> Frozen:
        """Give the record as it is."""
        return frozen


def _ours(frozen: Frozen, owner: str) -> None:
    if frozen.owner != owner or frozen.finished is not None or frozen.lease_until is None:
        said = f"approval {frozen.id} is run by somebody else now"
        raise ApprovalConflict(said, reason="approval_used", status=ApprovalStatus.TAKEN)


def _with(frozen: Frozen, position: int, **changes: object) -> Frozen:
    calls = list(frozen.calls)
    calls[position] = replace(calls[position], **changes)
    return replace(frozen, calls=tuple(calls))


REASONS = {
    ApprovalStatus.PENDING: "approval_required",
    ApprovalStatus.DENIED: "approval_denied",
    ApprovalStatus.WITHDRAWN: "approval_denied",
    ApprovalStatus.EXPIRED: "approval_expired",
}
"""Why an approval in this state does not let anything run; used up, where it is not named."""


_STANDS = {
    ApprovalStatus.PENDING: "it waits for an answer",
    ApprovalStatus.APPROVED: "it is approved already",
    ApprovalStatus.DENIED: "it is denied already",
    ApprovalStatus.EXPIRED: "its time is over; make the call again to ask anew",
    ApprovalStatus.WITHDRAWN: "it was withdrawn; make the call again to ask anew",
    ApprovalStatus.TAKEN: "it is being run",
    ApprovalStatus.DONE: "it was run already; its outcome says what came of it",
    ApprovalStatus.UNKNOWN: "it was begun, and whether it took effect is not known",
}


def conflict(
    frozen: Frozen, status: ApprovalStatus, said: str, why: str | None = None
) -> ApprovalConflict:
    """Say what cannot be done with it, and what stands in the way: where it is, unless told."""
    reason = REASONS.get(status, "approval_used")
    why = why or _STANDS[status]
    if frozen.instead:
        why = f"{frozen.instead} is kept for the same call"
    return ApprovalConflict(f"approval {frozen.id} {said}: {why}", reason=reason, status=status)


def _stands(frozen: Frozen, status: ApprovalStatus) -> str | None:
    """Say what the state alone does not: that something of it has run."""
    if status not in _BEFORE_IT_RUNS or is_untouched(frozen):
        return None
    return "some of it was begun before"


_BEFORE_IT_RUNS = (ApprovalStatus.PENDING, ApprovalStatus.APPROVED, ApprovalStatus.EXPIRED)
