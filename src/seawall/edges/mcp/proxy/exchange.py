"""One `tools/call` on its way: what was asked, what was sent, and what came back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from seawall.contract.failure import Failure, FailureCode, ToolFailed
from seawall.contract.result import ToolResult
from seawall.edges.mcp.proxy.client import capabilities_in, is_stateless
from seawall.edges.mcp.proxy.messages import decoded
from seawall.edges.mcp.results import result_from_mcp
from seawall.orchestration.progress import Pace
from seawall.pipeline.foreign import log

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Mapping

    from seawall.edges.mcp.proxy.client import Client
    from seawall.edges.mcp.proxy.messages import Message
    from seawall.pipeline.clock import Clock, Timer
    from seawall.pipeline.context import ToolContext

MAX_REASON = 500

HELD_EVERY_S = 0.1
"""How often a call that waits for its client is marked as alive."""


class ServerGone(Exception):  # noqa: N818  # named by what happened to the server
    """The server cannot be reached, or went before it answered."""

    def __init__(self, why: str, *, may_have_run: bool | None = None) -> None:
        super().__init__(why)
        self.why = why
        self.may_have_run = may_have_run


class Upstream(Protocol):
    """A client's own way to the server."""

    async def request(
        self, request_id: Any, method: str, params: Any, exchange: Exchange | None
    ) -> Message:
        """Send a request and wait for its answer; raises `ServerGone`.

        When it is cancelled the server is told so, with the exchange's reason. What else the server
        says meanwhile goes to the client.
        """
        ...

    def to_client(self, raw: bytes, exchange: Exchange) -> None:
        """Send the client something that belongs to a call."""
        ...


class Exchange:
    """One call of the client's. The pipeline may make several requests to the server of it."""

    def __init__(self, message: Message, client: Client, upstream: Upstream) -> None:
        self.id = message.envelope.id
        self.client = client
        self.upstream = upstream
        self.params = message.envelope.parameters()
        name = self.params.get("name")
        self.name = name if isinstance(name, str) else ""
        meta = self.params.get("_meta")
        self.meta: Mapping[str, Any] = meta if isinstance(meta, dict) else {}
        self.stateless = is_stateless(self.meta)
        self.capabilities = capabilities_in(self.meta) if self.stateless else client.capabilities
        self.token = self.meta.get("progressToken")
        self.own_token: str | None = None
        """A token of the proxy's own, if the client gave none and silence is bounded."""
        self.progressed: float | None = None
        """The last progress the client was told of."""
        self._pace = Pace()
        self.cancelled = False
        self.cancel_reason: str | None = None
        self.attempt_id: Any = None
        self.sent = False
        """Whether any attempt went out to the server."""
        self.context: ToolContext | None = None
        self.answered: Message | None = None
        """The server's last answer."""
        self.given: ToolResult | None = None
        """What was read of it, if it is a result that a model sees."""
        self.question: dict[str, Any] | None = None
        """What must be asked before it may run, by a client that comes back with the answer."""
        self.approved = False
        """A person said yes, in this round or one before."""
        self.about = ""
        """Fingerprint of what the person was asked about."""
        self.brought: Any = None
        """The state of an earlier round, if the client came back with one."""
        self.brought_answer: Any = None
        self._held = 0
        self._timer: Timer | None = None
        self.task: asyncio.Task[Any] | None = None

    def cancel(self, reason: Any) -> None:
        """Give it up, because the client says so; if it has not begun, it will not."""
        self.cancelled = True
        self.cancel_reason = reason[:MAX_REASON] if isinstance(reason, str) else None
        if self.task is not None:
            self.task.cancel()

    async def attempt(self, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        """Make one request of it; raises `ToolFailed` where the server gives no result."""
        self.answered = self.given = None
        self.context = context
        self.attempt_id = self.id if context.attempt == 1 else self.client.new_id()
        try:
            message = await self.upstream.request(
                self.attempt_id, "tools/call", self._sent(arguments), self
            )
        except ServerGone as gone:
            raise ToolFailed(_transport(gone)) from None
        finally:
            self.context = None
        self.answered = message
        self.given = self._read(message)
        return self.given

    def _sent(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """The parameters as they came, with the arguments as they were prepared."""
        params = self.params
        if arguments or params.get("arguments") is not None:
            params = {**params, "arguments": arguments}
        if self.own_token is not None:
            params = {**params, "_meta": {**self.meta, "progressToken": self.own_token}}
        return params

    def heard(self, progress: Any, now: float) -> bool:
        """The server reported progress, at `now`; whether the client is to be told."""
        if self.context is not None:
            self.context.progress("")
        if self.own_token is not None:
            return False
        if not self._pace.lets(now):
            return False
        if not isinstance(progress, (int, float)):
            return True
        # A second attempt begins anew, but what a client is told must grow.
        if self.progressed is not None and progress <= self.progressed:
            return self.context is None or self.context.attempt == 1
        self.progressed = progress
        return True

    def give_up_reason(self) -> str | None:
        """Why an attempt is given up: what the client said, or what the pipeline says."""
        if self.cancelled:
            return self.cancel_reason
        return None if self.context is None else self.context.cancelled.reason

    def hold(self, clock: Clock) -> None:
        """The server asks the client something: its silence is not the server's meanwhile."""
        self._held += 1
        if self._held == 1:
            self._still_held(clock)

    def release(self) -> None:
        """The client has answered."""
        self._held = max(self._held - 1, 0)
        if self._timer is not None and not self._held:
            self._timer.cancel()

    def _still_held(self, clock: Clock) -> None:
        if self._held and self.context is not None:
            self.context.progress("")
            self._timer = clock.call_later(HELD_EVERY_S, lambda: self._still_held(clock))

    def unmodified(self, result: ToolResult) -> bool:
        """Whether what the pipeline gives is what the server said."""
        given = self.given
        return (
            given is not None
            and result.is_error == given.is_error
            and (result.content is given.content or result.content == given.content)
            and result.structured_content == given.structured_content
            and (result.failure is None or result.failure.layer == "executor")
        )

    def _read(self, message: Message) -> ToolResult:
        envelope = message.envelope
        if envelope.error is not msgspec.UNSET:
            raise ToolFailed(_protocol_error(envelope.error))
        try:
            said = None if envelope.result is msgspec.UNSET else decoded(envelope.result)
        except (msgspec.MsgspecError, ValueError, RecursionError):
            said = None
        if not isinstance(said, dict):
            raise ToolFailed(_unreadable("no JSON object"))
        if is_opaque(said):
            return ToolResult()
        try:
            return result_from_mcp(said)
        except ValueError as error:
            log.debug("a result of %r is none: %s", self.name, error)
            return ToolResult()  # handed on as it is: the client may know more than we do


def is_opaque(said: Mapping[str, Any]) -> bool:
    """Whether it is no final result: the server wants input first, or works on it as a task."""
    kind = said.get("resultType", "complete")
    return kind != "complete" or "content" not in said


def _transport(gone: ServerGone) -> Failure:
    return Failure(
        code=FailureCode.EXECUTION_FAILED,
        message=gone.why,
        reason="transport",
        layer="executor",
        may_have_run=gone.may_have_run,
    )


def _unreadable(why: str) -> Failure:
    return Failure(
        code=FailureCode.EXECUTION_FAILED,
        message=f"the server's answer cannot be read: {why}",
        layer="executor",
        retryable=False,
        may_have_run=True,
    )


_CODES = {-32602: FailureCode.INVALID_ARGUMENT, -32601: FailureCode.UNSUPPORTED}


def _protocol_error(raw: msgspec.Raw) -> Failure:
    """Say a JSON-RPC error for the records; the client gets it as it came."""
    try:
        said = decoded(raw)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        said = None
    said = said if isinstance(said, dict) else {}
    return Failure(
        code=_CODES.get(said.get("code", 0), FailureCode.EXECUTION_FAILED),
        message=str(said.get("message", "the server answered with an error"))[:MAX_REASON],
        reason="tool_failed",
        layer="executor",
        retryable=False,
    )
