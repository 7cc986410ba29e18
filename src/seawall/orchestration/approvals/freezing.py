"""Make a turn wait: store it first, announce it then, run nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from seawall.contract.approval import Frozen, FrozenCall
from seawall.orchestration.approvals.binding import SALT_BYTES, definition_of, names_of
from seawall.orchestration.approvals.entries import noting
from seawall.orchestration.approvals.kept import Envelope
from seawall.orchestration.approvals.surroundings import digest_of_state

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from seawall.contract.annotations import Risk
    from seawall.contract.approval import WaitingRoom
    from seawall.contract.tool import Tool
    from seawall.orchestration.approvals.settings import ApprovalSettings
    from seawall.orchestration.approvals.store import ApprovalStore
    from seawall.orchestration.waiting import Waiting
    from seawall.pipeline.chance import Chance
    from seawall.pipeline.clock import Clock
    from seawall.pipeline.session import Session

MAX_REASON = 1_000


class Freezer:
    """Writes turns down."""

    def __init__(
        self,
        store: ApprovalStore,
        settings: ApprovalSettings,
        clock: Clock,
        chance: Chance,
        risk_of: Callable[[Tool], Risk],
        room: Callable[[], WaitingRoom],
    ) -> None:
        self._store = store
        self._settings = settings
        self._clock = clock
        self._chance = chance
        self._risk_of = risk_of
        self._room = room

    def new_id(self) -> str:
        """Draw the id of a request; nobody guesses it."""
        return f"apr_{self._chance.token(12)}"

    async def freeze(
        self,
        batch_id: str,
        waiting: Sequence[Waiting],
        session: Session,
        *,
        execution: str | None,
        state: Any,
    ) -> tuple[Frozen, Envelope]:
        """Store a turn; what the store raises is raised."""
        envelope = Envelope.new(batch_id, self._store.box, self._chance.token(SALT_BYTES))
        envelope.put_state(state)
        calls = tuple(self._call(at, one, envelope) for at, one in enumerate(waiting))
        now, holds_s = self._clock.wall(), self._settings.expires_after_s
        frozen = Frozen(
            id=batch_id,
            created=now,
            expires=None if holds_s is None else now + holds_s,
            session_id=session.id,
            caller=session.caller,
            session_state=digest_of_state(session, envelope),
            services=session.lasting.names,
            alike=self._alike(waiting),
            front=session.front,
            execution=execution,
            calls=calls,
        )
        entries = noting("asked", at=now)(frozen)
        await self._store.add(frozen, envelope.sealed, entries, self._room())
        return frozen, envelope

    def _alike(self, waiting: Sequence[Waiting]) -> str:
        call = waiting[0].call if len(waiting) == 1 else None
        if call is None or waiting[0].refusal is not None:
            return ""
        return names_of(self._store.box, waiting[0].tool, call.arguments)[0]

    def _call(self, position: int, one: Waiting, envelope: Envelope) -> FrozenCall:
        call = one.call
        if one.refusal is not None:
            envelope.put_result(position, "refusal", one.refusal)
        if call is None or one.refusal is not None or one.twin_of is not None:
            return FrozenCall(
                call_id=one.call_id,
                tool=one.tool,
                twin_of=one.twin_of,
                refused=one.refusal is not None,
            )
        envelope.put_arguments(position, call.tool, call.arguments, self._settings.hidden)
        decision = one.decision
        if decision is not None:
            envelope.put_reason(position, decision.reason[:MAX_REASON])
        return FrozenCall(
            call_id=one.call_id,
            tool=one.tool,
            asked=decision is not None,
            risk=self._risk_of(call.tool),
            definition=definition_of(call.tool),
            origin=call.tool.origin,
            digest=envelope.digest(one.tool, call.arguments),
            key=call.idempotency_key or self._chance.token(16),
        )
