"""Where a state keeps turns that wait for a person."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seawall.stores.memory_approvals import MemoryApprovals
from seawall.stores.memory_audit import MemoryAudit

if TYPE_CHECKING:
    from seawall.stores.sql_approvals import SqlApprovals
    from seawall.stores.state import State


def approvals_in(state: State | None) -> MemoryApprovals | SqlApprovals:
    """Give the store of a state; in memory, if there is none or it is itself in memory."""
    if state is None:
        return MemoryApprovals()
    audit = state.audit
    if state.database is None or state.owners is None or isinstance(audit, MemoryAudit):
        return MemoryApprovals(audit=audit if isinstance(audit, MemoryAudit) else None)
    # Slow to import: only a durable state needs it.
    from seawall.stores.sql_approvals import SqlApprovals  # noqa: PLC0415

    return SqlApprovals(state.database, state.owners, audit, state.seal)
