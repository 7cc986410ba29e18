"""Steps of a record that only a race brings about."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from seawall.contract.approval import ApprovalConflict, Frozen, FrozenCall
from seawall.contract.decision import Action
from seawall.orchestration.approvals.transitions import Begin, Moved, Settle, Take

RECORD = Frozen(
    id="apr_1",
    created=0,
    calls=(FrozenCall(call_id="a", tool="pay", asked=True, decision=Action.ALLOW),),
)


def test_who_saw_that_the_former_one_was_gone_does_not_push_out_the_next() -> None:
    left = Take("dead", RECORD, now=1, lease_s=30)(RECORD)
    taken = Take("next", left, now=2, lease_s=30, gone=True)(left)

    with pytest.raises(Moved, match="changed meanwhile"):
        Take("late", left, now=2, lease_s=30, gone=True)(taken)


def test_of_what_another_began_only_that_it_is_not_known_may_be_said() -> None:
    begun = Begin(0, "first", now=2, again=False)(Take("first", RECORD, now=1, lease_s=30)(RECORD))
    over = replace(begun, lease_until=None)
    taken = Take("second", over, now=3, lease_s=30)(over)

    with pytest.raises(ApprovalConflict, match="elsewhere"):
        Settle(0, "second", "approval_used", now=4)(taken)
    unknown = Settle(0, "second", "outcome_unknown", now=4)(taken)
    assert Settle(0, "first", "ok", now=5)(unknown).calls[0].end == "ok"
