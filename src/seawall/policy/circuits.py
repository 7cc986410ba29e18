"""Tools that share a circuit must agree on its numbers; told when the second of them comes in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seawall.contract.errors import ConfigurationError, Fault
from seawall.contract.policy import BreakerPolicy

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from seawall.contract.tool import Tool
    from seawall.policy.explain import Given

OF_THE_TOOL = ("ignore", "mode", "outside_retry", "slow_call_s")
"""What each tool has for itself: its errors, its place in the chain, what is slow for it."""

NUMBERS = tuple(name for name in BreakerPolicy.__struct_fields__ if name not in OF_THE_TOOL)


class SharedCircuits:
    """Who shares which circuit under one set of policies."""

    def __init__(self, explain: Callable[[Tool], Mapping[str, Given]]) -> None:
        self._explain = explain
        self._members: dict[str, dict[str, tuple[Tool, BreakerPolicy]]] = {}

    def join(self, tool: Tool, policy: BreakerPolicy | None) -> None:
        """Let a tool in; raises `ConfigurationError` if the others have other numbers."""
        self.leave(tool.name)
        if policy is None or policy.shared is None or policy.mode == "off":
            return
        members = self._members.setdefault(policy.shared, {})
        for other, theirs in members.values():
            faults = [
                Fault(self._said(tool, other, name, policy.shared), f"{tool.name}.breaker.{name}")
                for name in NUMBERS
                if getattr(policy, name) != getattr(theirs, name)
            ]
            if faults:
                raise ConfigurationError(faults)
        members[tool.name] = (tool, policy)

    def leave(self, name: str) -> None:
        """Forget a tool that is gone."""
        for members in self._members.values():
            members.pop(name, None)

    def _said(self, tool: Tool, other: Tool, name: str, shared: str) -> str:
        mine, theirs = (self._explain(one)[f"breaker.{name}"] for one in (tool, other))
        return (
            f"is {mine.value} by {mine.rule}, but {theirs.value} for {other.name} by"
            f" {theirs.rule}; tools that share the circuit {shared!r} need the same"
        )
