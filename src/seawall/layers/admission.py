"""Hold a call of a turn between its gates and all that costs something.

In a turn, gates are passed in the order of the calls, and nothing runs before all have passed; so
this layer stands where the gates end. Only the chain that turns use has it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from seawall.pipeline.layer import Fitted

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from seawall.contract.result import ToolResult
    from seawall.pipeline.aside import Turnstile
    from seawall.pipeline.invocation import Handler, Invocation


class Admission(Fitted):
    """Waits for the turn, then proceeds."""

    name = "admission"

    def fitted(self, proceed: Handler) -> Handler:
        """Pass the turnstile of the call's turn, if it has one."""

        def admitted(call: Invocation) -> Awaitable[ToolResult]:
            turnstile = None if call.aside is None else call.aside.turnstile
            return proceed(call) if turnstile is None else _passed(turnstile, call, proceed)

        return admitted


async def _passed(turnstile: Turnstile, call: Invocation, proceed: Handler) -> ToolResult:
    refusal = await turnstile.enter()
    if refusal is not None:
        return refusal
    try:
        return await proceed(call)
    finally:
        turnstile.leave()
