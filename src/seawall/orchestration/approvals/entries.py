"""What the audit log says of approvals: who was asked about what, who answered, what came of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seawall.contract.approval import Frozen, item_id
from seawall.contract.audit import AuditEntry, AuditKind

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from seawall.contract.decision import Action

MAX_WHY = 300


def noting(
    event: str, *, at: float, by: str = "", why: str = "", only: int | None = None
) -> Callable[[Frozen], Sequence[AuditEntry]]:
    """Make what writes an event: an entry for each call that a person is asked about.

    `event` is `asked`, `approved`, `denied`, `withdrawn`, `expired`, `resumed` or `refused`. It is
    kept together with the change that it is about: neither comes about without the other.
    """

    def entries(frozen: Frozen) -> list[AuditEntry]:
        return [
            AuditEntry(
                kind=AuditKind.APPROVAL,
                at=at,
                tool=call.tool,
                call_id=call.call_id,
                session=frozen.session_id,
                caller=frozen.caller,
                outcome=event,
                by=by,
                why=why[:MAX_WHY],
                digest=call.digest,
                about=item_id(frozen.id, position),
            )
            for position, call in enumerate(frozen.calls)
            if call.asked and _is_meant(position, call.decided, call.decision)
        ]

    def _is_meant(position: int, decided: float | None, decision: Action | None) -> bool:
        if event in ("approved", "denied"):
            # Others of the same request may have been answered before.
            return decided == at and decision is not None and only in (None, position)
        return only in (None, position)

    return entries
