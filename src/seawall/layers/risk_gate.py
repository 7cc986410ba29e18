"""Ask a person before a tool does what may do harm.

Outside of everything that repeats, so consent belongs to the call and not to an attempt. What the
session was told stands first: a denial beats all, an allowance spares the question but lifts no
denial by the policy. Whoever is asked sees the arguments that will run; nobody is asked about
arguments that cannot.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import msgspec

from seawall.contract.audit import Private
from seawall.contract.decision import Action, Decision
from seawall.contract.errors import ConfigurationError, Fault
from seawall.contract.failure import REASONS
from seawall.contract.result import ToolResult
from seawall.layers.risk_policies import AllowlistPolicy, CallPolicy, RiskPolicy
from seawall.layers.risk_questions import (
    STANDING,
    Answer,
    Confirm,
    NoAnswer,
    Outcome,
    Questions,
    standing_for,
    verdict_of,
)
from seawall.layers.risk_rules import RuledPolicy
from seawall.pipeline.invocation import Invocation
from seawall.pipeline.layer import Fitted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from seawall.contract.decision import Prepared
    from seawall.contract.tool import Tool
    from seawall.pipeline.invocation import Handler
    from seawall.pipeline.layer import LayerContext
    from seawall.pipeline.session import Permissions

APPROVED = "risk_gate:approved"
"""The note of a call that was approved before it came here: it is not asked about again."""

MAX_REASON = 300


Later = Callable[[Invocation, Decision], Awaitable[ToolResult | None]]
"""Gives the answer for now to a call that waits for a person; None if it cannot wait."""


class Gate(msgspec.Struct, frozen=True):
    """Who decides about calls, and who is asked. Without `confirm` there is nobody to ask."""

    policy: CallPolicy = RiskPolicy()
    """Decides each call: allow, ask or deny."""
    confirm: Confirm | None = None
    answer_within_s: float | None = 300.0
    """How long a person has to answer, in seconds; then the call is refused. None: for ever."""
    later: Later | None = None
    """Lets a call wait where nobody can be asked now; the pipeline's own."""

    def __post_init__(self) -> None:
        faults = []
        decide: Any = getattr(self.policy, "decide", None)
        if not callable(decide) or inspect.iscoroutinefunction(decide):
            faults.append(Fault("must have a plain function `decide(prepared)`", key="policy"))
        confirm: Any = self.confirm
        if confirm is not None and not callable(confirm):
            faults.append(Fault("must be a function that asks and gives an Answer", key="confirm"))
        within_s = self.answer_within_s
        if within_s is not None and not 0 < within_s < math.inf:
            said = f"must be above 0; None is no limit (got {within_s!r})"
            faults.append(Fault(said, key="answer_within_s"))
        if faults:
            raise ConfigurationError(faults)


def verdict(
    gate: Gate,
    prepared: Prepared,
    permissions: Permissions,
    memory: Mapping[str, Any] | None = None,
) -> Decision | None:
    """Tell what the gate makes of a call before anybody is asked; None if the policy failed.

    `memory` is the session's; without it a person's allowance counts for the tool's name.
    """
    standing = standing_for(prepared.tool, permissions, memory or {})
    if standing is not None and standing.action == Action.DENY:
        return standing
    decision = _decided(gate.policy, prepared)
    return decision and _spared(decision, standing, prepared.tool)


class RiskGate(Fitted):
    """Refuses calls that a person, the session or the policy does not allow."""

    name = "risk_gate"

    def __init__(self, context: LayerContext) -> None:
        gate = context.part(Gate) or Gate()
        self._tool = context.tool
        self._name = context.tool.name
        self._policy = gate.policy
        self._shadow = context.policy.gate_mode == "shadow"
        self._count = context.count
        self._fixed = _fixed(gate.policy, context.tool)
        action = None if self._fixed is None else self._fixed.action
        self._open = action is Action.ALLOW
        self._may_be_allowed = self._open or action is Action.ASK
        self._knows_arguments = type(gate.policy) not in _OURS
        self._by_policy = ("policy", "" if self._fixed is None else self._fixed.reason)
        self._later = None if self._shadow else gate.later
        self._questions: Questions | None = None
        if gate.confirm is not None and not self._shadow:
            # Kept with the tool's state: a gate may be gone before those it asked have ended.
            left: set[Any] = context.states.of_tool(self._name).slot("risk_gate:left", set)
            self._questions = Questions(self._tool, gate, context.clock, self._on_ask, left)

    @classmethod
    def for_tool(cls, context: LayerContext) -> RiskGate | None:
        """There for every tool unless switched off: a session may deny the most harmless one."""
        return None if context.policy.gate_mode == "off" else cls(context)

    def fitted(self, proceed: Handler) -> Handler:
        """Hand on the next layer's coroutine as it is, one frame less; or look closer."""
        name, is_open, by_policy = self._name, self._open, self._by_policy

        def gate(call: Invocation) -> Awaitable[ToolResult]:
            if is_open and name not in call.session.permissions.answers:
                call.decided = by_policy
                return proceed(call)
            return self._looked(call, proceed)

        return gate

    def _looked(self, call: Invocation, proceed: Handler) -> Awaitable[ToolResult]:
        standing = self._standing(call)
        if standing is None:
            clear = self._open
        else:
            clear = self._may_be_allowed and standing.action is Action.ALLOW
        if clear:
            call.decided = self._by_policy if standing is None else _by_session(standing)
            return proceed(call)
        return self._gated(call, proceed)

    def _standing(self, call: Invocation) -> Decision | None:
        return standing_for(self._tool, call.session.permissions, call.session.memory)

    async def _gated(self, call: Invocation, proceed: Handler) -> ToolResult:
        refusal = await self._refusal(call)
        if refusal is None:
            return await proceed(call)
        if not self._shadow:
            return refusal
        if refusal.failure is not None and refusal is not call.refusal:
            self._count(self.name, "shadow_refused")
            call.note(f"{self.name}:would_refuse:{refusal.failure.reason}")
        return await proceed(call)

    async def _refusal(self, call: Invocation) -> ToolResult | None:
        standing = self._standing(call)
        if standing is not None:
            call.decided = _by_session(standing)
            if standing.action == Action.DENY:
                return self._refused(call, "approval_denied", standing.reason)
        decision = self._fixed
        if decision is None:
            refusal = call.prepared()
            if refusal is not None:
                return refusal
            decision = _decided(self._policy, call.as_prepared())
            if decision is None:
                return self._refused(call, *_SAID[NoAnswer.FAILED])
        return await self._settled(call, _spared(decision, standing, self._tool), standing)

    async def _settled(
        self, call: Invocation, decision: Decision, standing: Decision | None
    ) -> ToolResult | None:
        if decision is not standing:
            call.decided = ("policy", self._why(decision))
        if decision.action is Action.DENY:
            return self._refused(call, "denied_by_policy", decision.reason)
        if decision.action is Action.ALLOW:
            return None
        if APPROVED in call.verdicts:
            call.decided = ("approval", self._why(decision))
            return None
        return call.prepared() or await self._asked(call, decision)

    async def _asked(self, call: Invocation, decision: Decision) -> ToolResult | None:
        outcome: Outcome = Answer.LATER
        if self._questions is not None:
            outcome = await self._questions.outcome(call, decision)
        if outcome is Answer.LATER:
            waiting = None if self._later is None else await self._later(call, decision)
            if waiting is not None:
                return waiting
            why = f"it needs a person's approval ({decision.reason}) and nobody can be asked here"
            return self._refused(call, "approval_required", why)
        if isinstance(outcome, Answer):
            call.decided = ("person", outcome.value)
        if outcome in (Answer.ALLOW_ONCE, Answer.ALLOW_SESSION):
            return None
        return self._refused(call, *_SAID[outcome])

    def _why(self, decision: Decision) -> str:
        return Private(decision.reason) if self._knows_arguments else decision.reason

    def _on_ask(self) -> None:
        self._count(self.name, "asked")

    def _refused(self, call: Invocation, reason: str, why: str) -> ToolResult:
        return call.refuse(
            REASONS[reason],
            f"{self._name} was not run: {why[:MAX_REASON]}",
            reason=reason,
            layer=self.name,
            guidance=_GUIDANCE.get(reason, ""),
        )


_SAID: dict[Outcome, tuple[str, str]] = {
    Answer.DENY: ("approval_denied", "a person denied it for this session"),
    Answer.DENY_ONCE: ("approval_denied", "a person denied this call"),
    NoAnswer.EXPIRED: ("approval_expired", "nobody answered in time whether it may"),
    NoAnswer.FAILED: ("gate_failed", "whether it may could not be found out"),
    NoAnswer.TOO_LATE: ("deadline_exceeded", "the time for this call was over before an answer"),
}

_GUIDANCE = {
    "approval_denied": (
        "Do not repeat this call; choose another way, or tell the user why it is needed."
    ),
    "approval_expired": (
        "Do not repeat this call now. Tell the user that it waits for their approval, or choose"
        " another way."
    ),
    "approval_required": (
        "Do not repeat this call. Tell the user what you want to do and why, and that it needs"
        " their approval first."
    ),
    "denied_by_policy": (
        "Do not call this tool again; use another, or tell the user that it is not allowed here."
    ),
    "gate_failed": (
        "Do not repeat this call; choose another way, or tell the user that its approval fails."
    ),
}


_OURS = (RiskPolicy, AllowlistPolicy, RuledPolicy)
"""What these say is made of tools and of what an operator wrote, never of arguments."""


def _by_session(standing: Decision) -> tuple[str, str]:
    said = standing.reason
    return "session", said if said in STANDING else Private(said)


def _fixed(policy: CallPolicy, tool: Tool) -> Decision | None:
    """Decide for all calls of a tool, if the policy is known to look at the tool alone."""
    # By exact type: a subclass may decide by the arguments.
    if type(policy) in _OURS:
        known: Any = policy
        decision: Decision | None = known.for_tool(tool)
        return None if decision is None else _spared(decision, None, tool)
    return None


def _decided(policy: CallPolicy, prepared: Prepared) -> Decision | None:
    """Ask a policy; None if it raised or gave something that is no decision."""
    what = f"the policy for {prepared.tool.name!r} raised"
    said: Any = verdict_of(what, lambda: policy.decide(prepared), None)
    if isinstance(said, Decision) and said.action in _ACTIONS:
        return Decision(Action(said.action), said.reason)
    return None


_ACTIONS = frozenset(Action)


def _spared(decision: Decision, standing: Decision | None, tool: Tool) -> Decision:
    """Turn ASK into ALLOW where the session has answered, or the tool asks by itself."""
    if decision.action is not Action.ASK:
        return decision
    if tool.self_gated:
        return Decision(Action.ALLOW, "the tool asks by itself")
    return decision if standing is None else standing
