"""What an executor is handed: no keys, no service locator, no globals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from seawall.contract.failure import FailureCode
from seawall.contract.result import ToolResult
from seawall.pipeline.invocation import Invocation

if TYPE_CHECKING:
    from collections.abc import Mapping

    from seawall.pipeline.session import Services

MAX_DEPTH = 8
"""How deep tools may call tools."""


class Cancelled:
    """Whether the attempt was given up, for code that looks instead of being cancelled."""

    __slots__ = ("_attempt", "_call", "_reason")

    def __init__(self, call: Invocation, attempt: int) -> None:
        self._call = call
        self._attempt = attempt
        self._reason: str | None = None

    @property
    def reason(self) -> str | None:
        """Why, as a slug: `attempt_timeout`, `cancelled`, …; None while it was not."""
        call = self._call
        if self._reason is None and call.attempt != self._attempt:
            self._reason = "attempt_timeout"  # else another attempt would not have followed
        elif self._reason is None and (call.cancel_reason is not None or not call.live):
            self._reason = call.cancel_reason or "cancelled"
        return self._reason

    def __bool__(self) -> bool:
        return self.reason is not None


class ToolContext(msgspec.Struct, eq=False):
    """One attempt, as its executor sees it. Safe to read from the tool's thread.

    Progress counts only while this attempt runs; later reports are ignored.
    """

    _call: Invocation
    attempt: int
    """From 1."""
    _cancelled: Cancelled | None = None

    @property
    def call_id(self) -> str:
        """Joins all attempts of the call, in spans and results."""
        return self._call.call_id

    @property
    def batch_id(self) -> str | None:
        """Of the batch or turn this call belongs to."""
        return self._call.batch_id

    @property
    def session_id(self) -> str:
        """Of the caller's session; empty if none was given.

        Callers choose it, and two may choose the same: what belongs to one is kept under `caller`
        and this.
        """
        return self._call.session.id

    @property
    def caller(self) -> str:
        """Who calls, as the session says it; empty if it does not."""
        return self._call.session.caller

    @property
    def state(self) -> Mapping[str, Any]:
        """What the session was given, deeply read-only."""
        return self._call.session.state

    @property
    def services(self) -> Services:
        """Services offered to tools: `services.get(name)` gives None for any other."""
        return self._call.session.services

    @property
    def idempotency_key(self) -> str:
        """The same for all attempts of this call and different for any other; never the model's."""
        call = self._call
        if call.idempotency_key is None:
            call.idempotency_key = call.pipeline.new_key()
        return call.idempotency_key

    @property
    def cancelled(self) -> Cancelled:
        """True once this attempt was given up; a sync tool should look at it in its loop."""
        if self._cancelled is None:
            self._cancelled = Cancelled(self._call, self.attempt)
        return self._cancelled

    def progress(
        self, report: str | ToolResult, done: float | None = None, total: float | None = None
    ) -> None:
        """Report progress: a line of text, or a partial result (output shown ends retrying)."""
        call = self._call
        if not (call.live and call.attempt == self.attempt):
            return
        if not isinstance(report, str):
            call.shown = True
        call.reported()
        call.pipeline.progressed(call, report, done, total)

    async def call_tool(self, name: str, arguments: Mapping[str, Any] | None = None) -> ToolResult:
        """Call another tool through the same layers, at most `MAX_DEPTH` deep.

        Refused once this attempt has ended: nobody would hear of what it does.
        """
        call = self._call
        if not (call.live and call.attempt == self.attempt):
            return _over(call, name)
        result: ToolResult = await call.pipeline.call_nested(call, name, arguments)
        return result


def _over(call: Invocation, name: str) -> ToolResult:
    return ToolResult.failed(
        FailureCode.PERMISSION_DENIED,
        f"the call of {call.tool.name} that wants this one has ended",
        reason="denied_by_policy",
        layer="pipeline",
        tool=name,
        may_have_run=False,
    )


def call_of(context: ToolContext) -> Invocation:
    """Give the call behind a context, to tools of ours that run others in its frame."""
    return context._call  # noqa: SLF001  # executors see the context alone
