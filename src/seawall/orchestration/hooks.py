"""What a hook is, and what it is shown of a call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import msgspec

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from seawall.contract.decision import Prepared
    from seawall.contract.hook import After, Before
    from seawall.contract.result import ToolResult
    from seawall.contract.tool import Tool
    from seawall.pipeline.invocation import Invocation
    from seawall.pipeline.session import Session


class Hook(Protocol):
    """What is asked before a call and told after it; either may be left out, and be async.

    A plain function runs in the event loop: one that waits must be async.

    A hook may have a third, `report(context)`: asked about what the tool reports while it runs, if
    somebody listens. It answers `Replace`, or None to leave the report as it is; if it fails, the
    report is withheld. A hook that takes something out of results wants it.
    """

    def before(self, context: HookContext) -> Before | Awaitable[Before]:  # noqa: ARG002  # for others
        """Look at a call that is about to pass its gates; None lets it go on."""
        return None

    def after(self, context: HookContext) -> After | Awaitable[After]:  # noqa: ARG002  # for others
        """Look at `context.result`, of a call that was tried; None leaves it as it is."""
        return None


class HookContext:
    """One call, as one hook sees it, before and after."""

    __slots__ = ("_call", "_is_report", "given", "memory", "result")

    def __init__(self, call: Invocation, given: Any) -> None:
        self._call = call
        self.given = given
        """The arguments as the model gave them: text, or a mapping."""
        self.memory: dict[str, Any] = {}
        """For the hook to keep something from `before` to `after`."""
        self.result: ToolResult | None = None
        """What came of the call, or what its tool reports; None in `before`."""
        self._is_report = False

    def of_report(self, report: ToolResult) -> HookContext:
        """The same for something that the tool reports, with the same `memory`."""
        other = HookContext(self._call, self.given)
        other.memory, other.result, other._is_report = self.memory, report, True
        return other

    @property
    def call_id(self) -> str:
        """Of the call; a rewrite keeps it."""
        return self._call.call_id

    @property
    def tool(self) -> Tool:
        """What is called."""
        return self._call.tool

    @property
    def arguments(self) -> dict[str, Any]:
        """A copy of the arguments that will run, or ran; to change them, answer `Rewrite`."""
        found: dict[str, Any] = copied(self._call.arguments)
        return found

    @property
    def prepared(self) -> Prepared:
        """The call as gates and people see it; its arguments are a copy."""
        prepared = self._call.as_prepared()
        return msgspec.structs.replace(prepared, arguments=copied(prepared.arguments))

    @property
    def session(self) -> Session:
        """Of the caller."""
        return self._call.session

    @property
    def turn_id(self) -> str | None:
        """Of the turn or batch this call belongs to, if any."""
        return self._call.batch_id

    @property
    def depth(self) -> int:
        """0 for a call of the model's, more for one that a tool makes."""
        return self._call.depth

    def inject(self, message: Any) -> None:
        """Have the model read something after the results.

        It comes out in `TurnOutcome.messages`, or for a call alone in the result's
        `metadata["messages"]`. Of a report nothing is injected.
        """
        if self._is_report:
            return
        self._call.beside().messages.append(message)


def copied(value: Any) -> Any:
    """Copy JSON-like data, so that nobody changes what was checked."""
    if isinstance(value, dict):
        return {key: copied(item) for key, item in value.items()}
    return [copied(item) for item in value] if isinstance(value, list) else value
