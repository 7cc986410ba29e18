"""Refuse arguments that do not fit the tool's schema, before they cost anything.

The work is done once per call by `Invocation.prepared`, when the first thing needs the arguments;
so a gate that asks a person asks about what will run. This layer stands where the answer counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from seawall.pipeline.layer import Fitted

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from seawall.contract.result import ToolResult
    from seawall.pipeline.invocation import Handler, Invocation
    from seawall.pipeline.layer import LayerContext


class ArgumentCheck(Fitted):
    """Refuses calls whose arguments cannot be used, naming all faults."""

    name = "argument_check"

    @classmethod
    def for_tool(cls, context: LayerContext) -> ArgumentCheck | None:
        """Nothing to do if the policy switches the check off."""
        return None if context.policy.check_mode == "off" else cls()

    def fitted(self, proceed: Handler) -> Handler:
        """Prepare the arguments, and hand on the next layer's coroutine as it is; or refuse."""

        def check(call: Invocation) -> Awaitable[ToolResult]:
            if call.unprepared:  # as `prepared` does, a frame less
                call.refusal = call.prepare(call)
                call.unprepared = False
            refusal = call.refusal
            return proceed(call) if refusal is None else _given(refusal)

        return check


async def _given(refusal: ToolResult) -> ToolResult:
    return refusal
