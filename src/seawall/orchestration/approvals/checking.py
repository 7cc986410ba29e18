"""Is what would run now what was approved then? Looks at each call; runs and changes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from seawall.contract.decision import Action
from seawall.layers.risk_gate import verdict
from seawall.orchestration.approvals.binding import changes, definition_of, same_digest
from seawall.orchestration.approvals.refusals import in_doubt, refused, unreadable
from seawall.orchestration.approvals.resumed_turn import Planned
from seawall.orchestration.approvals.surroundings import unlike

if TYPE_CHECKING:
    from collections.abc import Mapping

    from seawall.contract.approval import Frozen, FrozenCall
    from seawall.contract.decision import Decision
    from seawall.contract.result import ToolResult
    from seawall.contract.tool import Tool
    from seawall.orchestration.approvals.desk import Approvals
    from seawall.orchestration.approvals.grounds import Grounds
    from seawall.orchestration.approvals.kept import Envelope
    from seawall.pipeline.arguments.prepare import Prepare
    from seawall.pipeline.invocation import Invocation
    from seawall.pipeline.route import Route
    from seawall.pipeline.session import Session

_MISSING: Any = object()

_GIVE_SESSION = "Do not repeat this call: its approval stays good for whoever resumes it rightly."


class Given:
    """Arguments as they are given at a resume: of the one call, or of each by its id."""

    def __init__(self, arguments: Mapping[str, Any] | None, frozen: Frozen) -> None:
        self._arguments = arguments
        runs = [call for call in frozen.calls if call.twin_of is None and not call.refused]
        self._alone = len(runs) == 1

    def of(self, call: FrozenCall) -> Any:
        """Give the arguments of a call, or `_MISSING`."""
        if self._arguments is None:
            return _MISSING
        return self._arguments if self._alone else self._arguments.get(call.call_id, _MISSING)


class Checker:
    """Plans what is to happen to each call of a request."""

    def __init__(self, grounds: Grounds, approvals: Approvals) -> None:
        self._grounds = grounds
        self._approvals = approvals

    async def plan(
        self, frozen: Frozen, envelope: Envelope, given: Given, session: Session
    ) -> dict[int, Planned]:
        """Say for each position what is to happen."""
        if (session.id, session.caller) != (frozen.session_id, frozen.caller):
            said = "it was approved for another session"
            return {at: _mismatch(call, said) for at, call in enumerate(frozen.calls)}
        late = frozen.expires is not None and self._approvals.clock.wall() >= frozen.expires
        odd = unlike(frozen, envelope, session, self._approvals.session_of(frozen))
        check = _Check(self._grounds, envelope, given, session, late=late, odd=odd)
        return {at: check(at, call) for at, call in enumerate(frozen.calls)}


class _Check:
    def __init__(
        self,
        grounds: Grounds,
        envelope: Envelope,
        given: Given,
        session: Session,
        *,
        late: bool,
        odd: str | None,
    ) -> None:
        self._grounds = grounds
        self._envelope = envelope
        self._given = given
        self._session = session
        self._late = late
        self._odd = odd

    def __call__(self, position: int, call: FrozenCall) -> Planned:
        if call.twin_of is not None:
            return Planned()
        if call.refused or call.ended is not None:
            return Planned(kept=self._kept(position, call))
        route = self._grounds.doors.route_of(call.tool)
        if call.in_doubt and not (route is not None and _may_run_again(route.tool)):
            return Planned(kept=in_doubt(call))
        return self._as_it_was(position, call, route)

    def _as_it_was(self, position: int, call: FrozenCall, route: Route | None) -> Planned:
        if self._late:
            return Planned(kept=refused(call, "approval_expired", "its time was over"))
        if self._odd is not None:
            return _mismatch(call, self._odd, _GIVE_SESSION)
        if route is None:
            return _mismatch(call, "there is no such tool any more")
        changed = changes(call.definition, definition_of(route.tool))
        if changed:
            return _mismatch(call, f"the tool is not what it was: {_listed(changed)} changed")
        return self._arguments_fit(position, call, route)

    def _arguments_fit(self, position: int, call: FrozenCall, route: Route) -> Planned:
        kept = self._envelope.arguments(position)
        given = self._given.of(call)
        if kept is None and given is _MISSING:
            said = "its arguments are not kept here, as there is no key; give them again"
            return _mismatch(call, said)
        # What was kept is prepared already: the tool's own shim must not see it a second time.
        prepare = self._preparing_again(route) if given is _MISSING else None
        arguments = kept if given is _MISSING else given
        trial = self._grounds.doors.invocation(route, arguments, call.call_id, self._session)
        if prepare is not None:
            trial.prepare = prepare
        refusal = trial.prepared()
        if refusal is not None:
            return _mismatch(call, f"its arguments do not fit any more: {_message(refusal)}")
        if not same_digest(self._envelope.digest(call.tool, trial.arguments), call.digest):
            return _mismatch(call, "its arguments are not those that were approved")
        return self._allowed(call, route, trial) or Planned(
            arguments=arguments,
            approved=call.asked,
            key=call.key,
            again=call.in_doubt,
            prepare=prepare,
        )

    def _preparing_again(self, route: Route) -> Prepare | None:
        tool = route.tool
        if tool.prepare_arguments is None:
            return None
        plain = msgspec.structs.replace(tool, prepare_arguments=None)
        return self._grounds.preparing(plain, route.policy)

    def _allowed(self, call: FrozenCall, route: Route, trial: Invocation) -> Planned | None:
        """Ask the policy of today; None if it lets the call run."""
        if not self._grounds.has_gate or route.policy.gate_mode != "on":
            return None
        session = self._session
        decision = verdict(
            self._grounds.gate(), trial.as_prepared(), session.permissions, session.memory
        )
        if decision is None:
            said = "whether it may could not be found out"
            return Planned(kept=refused(call, "gate_failed", said), blocks=True)
        if decision.action is Action.ALLOW or (decision.action is Action.ASK and call.asked):
            return None
        if decision.action is Action.ASK:
            said = (
                f"by the rules of now a person has to be asked about it ({decision.reason[:200]})"
            )
            return _mismatch(call, said)
        return Planned(
            kept=refused(call, self._denied_as(route, decision), decision.reason[:300]), blocks=True
        )

    def _denied_as(self, route: Route, decision: Decision) -> str:
        standing = self._session.permissions.decision(route.tool.name)
        return "approval_denied" if standing == decision else "denied_by_policy"

    def _kept(self, position: int, call: FrozenCall) -> ToolResult:
        found = self._envelope.result(position, "refusal" if call.refused else "result")
        if found is None and call.end == "outcome_unknown":
            return in_doubt(call)
        return unreadable(call) if found is None else found


def unusable(frozen: Frozen) -> dict[int, Planned]:
    """Refuse all calls, as what is kept of them was changed, or needs another key."""
    said = "what is kept of it cannot be read: it was changed, or needs another key"
    return {
        at: Planned(kept=refused(call, "gate_failed", said), blocks=True)
        for at, call in enumerate(frozen.calls)
    }


def _may_run_again(tool: Tool) -> bool:
    return tool.replay == "safe" or tool.retry_safe


def _mismatch(call: FrozenCall, said: str, guidance: str = "") -> Planned:
    return Planned(kept=refused(call, "approval_mismatch", said, guidance), blocks=True)


def _message(refusal: ToolResult) -> str:
    return "" if refusal.failure is None else refusal.failure.message[:300]


def _listed(parts: list[str]) -> str:
    return " and ".join([", ".join(parts[:-1]), parts[-1]]) if len(parts) > 1 else parts[0]
