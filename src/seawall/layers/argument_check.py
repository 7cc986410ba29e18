"""Refuse arguments that do not fit the tool's schema, before they cost anything.

The work is done once per call by `Invocation.prepared`, when the first thing needs the arguments;
so a gate that asks a person asks about what will run. This layer stands where the answer counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from seawall.contract.result import ToolResult
    from seawall.pipeline.invocation import Handler, Invocation
    from seawall.pipeline.layer import LayerContext


class ArgumentCheck:
    """Refuses calls whose arguments cannot be used, naming all faults."""

    name = "argument_check"

    @classmethod
    def for_tool(cls, context: LayerContext) -> ArgumentCheck | None:
        """Nothing to do if the policy switches the check off."""
        return None if context.policy.check_mode == "off" else cls()

    async def __call__(self, call: Invocation, proceed: Handler) -> ToolResult:
        """Prepare the arguments, or refuse."""
        refusal = call.prepared() if call.unprepared else call.refusal
        return await proceed(call) if refusal is None else refusal
