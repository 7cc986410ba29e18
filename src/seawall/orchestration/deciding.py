"""Who decides about a pipeline's calls, and what can be said of a tool before there is one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from seawall.contract.decision import Action, Decision
from seawall.layers.risk_gate import Gate
from seawall.layers.risk_policies import AllowlistPolicy, CallPolicy
from seawall.layers.risk_rules import RuledPolicy

if TYPE_CHECKING:
    from collections.abc import Callable

    from seawall.contract.annotations import Risk
    from seawall.contract.tool import Tool
    from seawall.layers.risk_gate import Later
    from seawall.policy.model import Policies


class Deciding:
    """The gate that was given, or the one that the policies say."""

    def __init__(
        self,
        given: CallPolicy | Gate | None,
        confirm: Callable[..., Any] | None,
        policies: Policies,
    ) -> None:
        self._is_given = given is not None
        if isinstance(given, Gate):
            self.gate = replace(given, later=None)
        else:
            policy = policies.risk.policy() if given is None else given
            self.gate = Gate(policy=policy, confirm=confirm)

    def lets_wait(self, later: Later) -> None:
        """Let calls wait where nobody can be asked now."""
        self.gate = replace(self.gate, later=later)

    def under(self, policies: Policies) -> Gate:
        """Give the gate that there would be under these policies."""
        return self.gate if self._is_given else replace(self.gate, policy=policies.risk.policy())

    def risk_of(self, tool: Tool) -> Risk:
        """The risk of a tool as the rules see it."""
        policy = self.gate.policy
        return policy.risk_of(tool) if isinstance(policy, RuledPolicy) else tool.effective_risk

    def of_tool(self, tool: Tool) -> Decision:
        """What is decided whatever session and arguments; to ask, if it depends on these."""
        for_tool = getattr(self.gate.policy, "for_tool", None)
        if for_tool is None:
            return Decision(Action.ASK, "it depends on the call")
        found: Decision = for_tool(tool)
        return found

    @property
    def allowlist(self) -> AllowlistPolicy | None:
        """The list of the policy, if it has one."""
        policy = self.gate.policy
        below = policy.base if isinstance(policy, RuledPolicy) else policy
        return below if isinstance(below, AllowlistPolicy) else None
