"""Hold a call of a turn between its gates and all that costs something.

In a turn, gates are passed in the order of the calls, and nothing runs before all have passed; so
this layer stands where the gates end. Only the chain that turns use has it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from seawall.contract.result import ToolResult
    from seawall.pipeline.invocation import Handler, Invocation


class Admission:
    """Waits for the turn, then proceeds."""

    name = "admission"

    async def __call__(self, call: Invocation, proceed: Handler) -> ToolResult:
        """Pass the turnstile of the call's turn, if it has one."""
        turnstile = None if call.aside is None else call.aside.turnstile
        if turnstile is None:
            return await proceed(call)
        refusal = await turnstile.enter()
        if refusal is not None:
            return refusal
        try:
            return await proceed(call)
        finally:
            turnstile.leave()
