"""Refuse a call whose tool cannot work here and now.

Stands before everything that asks, checks or counts. Only a flag that is known to be off refuses;
what is unknown is tried. Declare hard needs alone: a tool that has another way would be forbidden
calls that might have worked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from seawall.contract.failure import FailureCode
from seawall.layers.environment import Environment
from seawall.pipeline.layer import Fitted

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from seawall.contract.result import ToolResult
    from seawall.pipeline.invocation import Handler, Invocation
    from seawall.pipeline.layer import LayerContext


class EnvironmentGate(Fitted):
    """Refuses calls of a tool while any flag that it needs is off."""

    name = "environment_gate"

    def __init__(self, context: LayerContext, environment: Environment) -> None:
        self._environment = environment
        self._known = environment.get
        self._tool = context.tool.name
        self._needs = tuple(dict.fromkeys(context.tool.needs))
        self._shadow = context.policy.gate_mode == "shadow"
        self._count = context.count

    @classmethod
    def for_tool(cls, context: LayerContext) -> EnvironmentGate | None:
        """Nothing to do for a tool without needs, or where no environment is known."""
        environment = context.part(Environment)
        if environment is None or not context.tool.needs or context.policy.gate_mode == "off":
            return None
        return cls(context, environment)

    def fitted(self, proceed: Handler) -> Handler:
        """Hand on the next layer's coroutine as it is, one frame less; or refuse."""
        needs, known = self._needs, self._known

        def gate(call: Invocation) -> Awaitable[ToolResult]:
            for flag in needs:
                if known(flag) is False:
                    return self._unmet(call, proceed, flag)
            return proceed(call)

        return gate

    async def _unmet(self, call: Invocation, proceed: Handler, first: str) -> ToolResult:
        if not self._shadow:
            return self._refused(call, first)
        self._count(self.name, "shadow_refused")
        call.note(f"{self.name}:would_refuse:environment_unmet")
        return await proceed(call)

    def _refused(self, call: Invocation, first: str) -> ToolResult:
        # The first was seen to be off; asking its source again may give another answer.
        unmet = [flag for flag in self._needs if flag == first or self._known(flag) is False]
        verb = "is" if len(unmet) == 1 else "are"
        repairs = " ".join(f"{flag}: {self._environment.repair(flag)}" for flag in unmet)
        return call.refuse(
            FailureCode.PERMISSION_DENIED,
            f"{self._tool} needs {' and '.join(unmet)}, which {verb} off",
            reason="environment_unmet",
            layer=self.name,
            guidance=(
                f"{repairs} {self._environment.summary()}"
                " Do not call this tool again until that has changed."
            ),
        )
