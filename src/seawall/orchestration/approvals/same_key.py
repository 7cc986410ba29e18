"""The request that a call under the same idempotency key has made already.

Whoever made it may have ended before they were told of it. A second one for the key would be two
that a person can approve for one call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from seawall.contract.approval import LIVE
from seawall.contract.errors import SealBroken
from seawall.orchestration.approvals.binding import definition_of, names_of, same_digest
from seawall.orchestration.approvals.surroundings import digest_of_state

if TYPE_CHECKING:
    from seawall.contract.approval import Frozen
    from seawall.orchestration.approvals.desk import Approvals
    from seawall.pipeline.invocation import Invocation

MAX_LOOKED_AT = 1_000
"""Requests for the same call, under whatever keys, of which the newest are looked at."""


async def under_same_key(approvals: Approvals, call: Invocation) -> str | None:
    """Give the id of the request that stands for the key of this call, if there is one."""
    key = call.idempotency_key
    if key is None:
        return None
    store = approvals.store
    alike = names_of(store.box, call.tool.name, call.arguments)
    page = await store.page(closed=False, before=None, limit=MAX_LOOKED_AT, alike=alike)
    for frozen in page:
        is_of_key = len(frozen.calls) == 1 and frozen.calls[0].key == key
        if is_of_key and await _is_for(frozen, call, approvals):
            return frozen.id
    return None


async def _is_for(frozen: Frozen, call: Invocation, approvals: Approvals) -> bool:
    """Whether a request is for this call, and may still come to something."""
    kept, session = frozen.calls[0], call.session
    if (frozen.caller, frozen.session_id) != (session.caller, session.id):
        return False
    if frozen.id in approvals.withdrawing or await approvals.status(frozen) not in LIVE:
        return False
    if (kept.tool, kept.definition) != (call.tool.name, definition_of(call.tool)):
        return False
    envelope = await approvals.envelope(frozen)
    try:
        digest = envelope.digest(kept.tool, call.arguments)
        state = digest_of_state(session, envelope)
    except SealBroken:
        return False  # nor could it be run
    return same_digest(digest, kept.digest) and state == frozen.session_state
