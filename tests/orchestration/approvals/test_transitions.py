"""Steps of a record that only a race brings about."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from seawall.contract.approval import ApprovalConflict, Frozen, FrozenCall
from seawall.contract.decision import Action
from seawall.orchestration.approvals.transitions import (
    Begin,
    Decide,
    Expire,
    Moved,
    Settle,
    Take,
    Withdraw,
)

if TYPE_CHECKING:
    from collections.abc import Callable

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

    with pytest.raises(ApprovalConflict, match="another has begun "):
        Settle(0, "second", "approval_used", now=4)(taken)
    unknown = Settle(0, "second", "outcome_unknown", now=4)(taken)
    assert Settle(0, "first", "ok", now=5)(unknown).calls[0].end == "ok"


def call(**changes: Any) -> FrozenCall:
    return replace(FrozenCall(call_id="a", tool="pay", asked=True), **changes)


DENIED = replace(RECORD, calls=(call(decision=Action.DENY),))
WAITS = replace(RECORD, calls=(call(),))
RUN = replace(RECORD, calls=(call(decision=Action.ALLOW, begun=1.0, ended=2.0),))


@pytest.mark.parametrize(
    ("step", "record", "said"),
    [
        (Decide(None, Action.ALLOW, now=9, by="a"), DENIED,
         "approval apr_1 cannot be answered: it is denied already"),
        (Decide(None, Action.DENY, now=9, by="a"), RECORD,
         "approval apr_1 cannot be answered: it is approved already"),
        (Decide(None, Action.ALLOW, now=9, by="a"), replace(WAITS, expires=5.0),
         "approval apr_1 cannot be answered: its time is over; make the call again to ask anew"),
        (Decide(None, Action.ALLOW, now=9, by="a"), replace(WAITS, withdrawn=5.0, instead="apr_2"),
         "approval apr_1 cannot be answered: apr_2 is kept for the same call"),
        (Decide(1, Action.ALLOW, now=9, by="a"),
         replace(WAITS, calls=(*WAITS.calls, call(asked=False))),
         "approval apr_1 cannot be answered: that call of it needs no answer"),
        (Decide(1, Action.DENY, now=9, by="a"),
         replace(WAITS, calls=(*WAITS.calls, call(decision=Action.ALLOW))),
         "approval apr_1 cannot be answered: pay has its answer already: allow"),
        (Withdraw(now=9, by="a"), DENIED,
         "approval apr_1 cannot be withdrawn: it is denied already"),
        (Withdraw(now=9, by="a"), RUN,
         "approval apr_1 cannot be withdrawn: some of it was begun before"),
        (Expire(now=9), WAITS, "approval apr_1 cannot expire: it waits for an answer"),
        (Take("o", DENIED, now=9, lease_s=30), DENIED,
         "approval apr_1 cannot be run: it is denied already"),
        (Begin(0, "o", now=9, again=False), replace(RUN, owner="o", lease_until=20.0),
         "approval apr_1 cannot be run: pay was begun before"),
        (Settle(0, "o", "ok", now=9), replace(RUN, owner="o", lease_until=20.0),
         "approval apr_1 cannot take this end of a call: that of pay is kept already"),
    ],
)  # fmt: skip
def test_what_stands_in_the_way_is_said_as_it_is(
    step: Callable[[Frozen], Frozen], record: Frozen, said: str
) -> None:
    with pytest.raises(ApprovalConflict) as raised:
        step(record)

    assert str(raised.value) == said
