"""Tool calls through the pipeline, whatever way they come and go."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import msgspec

from seawall.contract.decision import Action
from seawall.contract.failure import FailureCode
from seawall.contract.result import ToolResult
from seawall.edges.mcp.proxy import messages
from seawall.edges.mcp.proxy.approvals import Approvals
from seawall.edges.mcp.proxy.catalogue import Catalogue, NotListed
from seawall.edges.mcp.proxy.requests import Requests
from seawall.edges.mcp.results import result_to_mcp
from seawall.layers.risk_questions import Answer
from seawall.orchestration.pipeline import Pipeline
from seawall.pipeline.chance import SystemChance
from seawall.pipeline.clock import SystemClock
from seawall.pipeline.foreign import log
from seawall.pipeline.recorder import ToolRecorder
from seawall.recording.trace import TraceRecorder
from seawall.registry.registry import Registry

if TYPE_CHECKING:
    from seawall.contract.decision import Decision, Prepared
    from seawall.edges.mcp.proxy.exchange import Exchange
    from seawall.edges.mcp.proxy.holding import Holding
    from seawall.pipeline.chance import Chance
    from seawall.pipeline.clock import Clock
    from seawall.pipeline.context import ToolContext
    from seawall.policy.model import Policies
    from seawall.stores.state import State

APPROVE_BY_POLICY = (
    "Do not repeat this call. Tell the user what you want to do and why, and that it needs their"
    " approval first: this client cannot be asked for it, so whoever runs the proxy must allow the"
    ' tool in its policy, such as `[risk] allow = ["{name}"]`, or start it with --client-asks if'
    " the client asks by itself."
)


class Guard:
    """One pipeline for one server. Many clients may call through it, each with its own session."""

    def __init__(
        self,
        policies: Policies,
        *,
        trusted: bool = False,
        client_asks: bool = False,
        holding: Holding | None = None,
        origin: str = "",
        state: State | None = None,
        clock: Clock | None = None,
        chance: Chance | None = None,
    ) -> None:
        self.clock = clock or SystemClock()
        self.chance = chance or SystemChance()
        registry = Registry()
        self.pipeline = Pipeline(
            registry,
            policies=policies,
            trace=_Unread(0),
            confirm=_allowed if client_asks else self._confirm,
            state=state,
            clock=self.clock,
            chance=self.chance,
        )
        self.approvals = Approvals(self.clock, self.chance)
        self._exchanges: dict[str, Exchange] = {}
        waits = self.pipeline.approvals.enabled
        self._requests = Requests(self.pipeline, self._exchanges) if waits else None
        self.catalogue = Catalogue(
            registry,
            self._run,
            self.clock,
            trusted=trusted,
            holding=holding,
            origin=origin,
            is_denied=lambda tool: self.pipeline.decision_for(tool).action is Action.DENY,
            on_listed=lambda: _told(policies, registry),
        )
        self._count = 0
        # Ids go into requests that outlive this process.
        self._prefix = f"call-{self.chance.token(4)}" if waits else "call"

    async def start(self) -> None:
        """Connect to the state, if there is one; raises what that raises."""
        if self.pipeline.state is not None:
            await self.pipeline.state.start()

    async def call(self, exchange: Exchange) -> bytes | None:
        """Make a call and give the message that answers it; None if the client has cancelled it."""
        exchange.task = asyncio.current_task()
        try:
            return None if exchange.cancelled else await self._answered(exchange)
        except asyncio.CancelledError:
            if not exchange.cancelled:
                raise
            return None

    async def _answered(self, exchange: Exchange) -> bytes:
        if not exchange.name:
            return messages.error(
                exchange.id, messages.INVALID_PARAMS, "tools/call needs the name of a tool"
            )
        odd = messages.ambiguous_parameter(exchange.params)
        if odd is not None:
            said = f"tools/call has no parameter {odd[:200]!r}; mind the case of its letters"
            return messages.error(exchange.id, messages.INVALID_PARAMS, said)
        self.approvals.unpack(exchange)
        client, name = exchange.client, exchange.name
        if not self.catalogue.knows(client, name):
            try:
                await self.catalogue.update(client, exchange.upstream, exchange.meta)
            except NotListed as not_listed:
                return _not_listed(exchange, not_listed)
        if name not in client.names:
            return self._unknown(exchange)
        return self._answer(exchange, await self._piped(exchange))

    async def _piped(self, exchange: Exchange) -> ToolResult:
        self._count += 1
        call_id = f"{self._prefix}-{self._count}"
        self._exchanges[call_id] = exchange
        policy = self.pipeline.policy_of(exchange.name)
        if exchange.token is None and policy is not None and policy.idle_timeout_s is not None:
            exchange.own_token = exchange.client.new_token()
        arguments = exchange.params.get("arguments")
        try:
            result = await self.pipeline.call(
                exchange.name,
                arguments,
                call_id=call_id,
                session=exchange.client.session_for_call(self.chance),
            )
        finally:
            if self._exchanges.get(call_id) is exchange:
                del self._exchanges[call_id]
        if self._requests is not None:
            return await self._requests.outcome(exchange, result)
        failure = result.failure
        wanted = failure is not None and failure.reason == "approval_required"
        return _needs_policy(result, exchange.name) if wanted else result

    async def _run(self, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        return await self._exchanges[context.call_id].attempt(arguments, context)

    def _confirm(self, prepared: Prepared, decision: Decision) -> Any:
        exchange = self._exchanges.get(prepared.call_id)
        if exchange is None:
            return Answer.DENY_ONCE
        return self.approvals.ask(exchange, prepared, decision)

    def _answer(self, exchange: Exchange, result: ToolResult) -> bytes:
        answered = exchange.answered
        if answered is not None and exchange.unmodified(result):
            return self._as_it_came(exchange, answered)
        failure = result.failure
        if (
            answered is not None
            and answered.envelope.error is not msgspec.UNSET
            and failure is not None
            and failure.layer == "executor"
        ):
            return _with_id(exchange, answered, "error")
        if exchange.question is not None:
            return messages.answer(exchange.id, exchange.question)
        if failure is not None and failure.code is FailureCode.NOT_FOUND and not result.attempts:
            return self._unknown(exchange, result)
        return self._made(exchange, result)

    def _as_it_came(self, exchange: Exchange, answered: messages.Message) -> bytes:
        if exchange.approved and exchange.stateless:
            said = messages.decoded(answered.envelope.result)  # type: ignore[arg-type]  # it was read before
            if said.get("resultType") == "input_required":
                return messages.answer(exchange.id, self.approvals.carried(exchange, said))
        return _with_id(exchange, answered, "result")

    def _made(self, exchange: Exchange, result: ToolResult) -> bytes:
        """Write what the pipeline made: a refusal, a failure, or a result that was cut."""
        said = result_to_mcp(result, self.pipeline.registry.get(exchange.name))
        if exchange.stateless and "resultType" not in said:
            said["resultType"] = "complete"
        return messages.answer(exchange.id, said)

    def _unknown(self, exchange: Exchange, result: ToolResult | None = None) -> bytes:
        """Say that there is no such tool, with names that are near and that the client may know."""
        if result is None:
            names = exchange.client.names
            hints = self.pipeline.registry.suggest(
                exchange.name, allowed=lambda name: name in names
            )
        else:
            hints = result.failure.hints if result.failure else ()
        shown = exchange.name[:200]
        near = f". Near names: {', '.join(hints)}" if hints else ""
        data = {"reason": "tool_not_found", "tool": shown, "hints": list(hints)}
        return messages.error(
            exchange.id, messages.INVALID_PARAMS, f"Unknown tool: {shown}{near}", data
        )

    def parameter_headers(self, name: str, params: dict[str, Any]) -> list[tuple[bytes, bytes]]:
        """Write the arguments that a tool wants in HTTP headers too."""
        from mcp.shared.inbound import mcp_param_headers, x_mcp_header_map  # noqa: PLC0415  # heavy

        tool = self.pipeline.registry.get(name)
        arguments = params.get("arguments")
        if tool is None or not isinstance(arguments, dict):
            return []
        found = mcp_param_headers(x_mcp_header_map(tool.input_schema), arguments)
        return [(header.lower().encode(), value.encode()) for header, value in found.items()]

    async def aclose(self) -> None:
        """End the pipeline, and the state."""
        await self.pipeline.aclose()
        if self.pipeline.state is not None:
            await self.pipeline.state.aclose()


def _told(policies: Policies, registry: Registry) -> None:
    """Say what the policy allows but probably does not mean, now that the tools are known."""
    for note in policies.notes(registry):
        log.warning("note: %s", note)


class _Unread(TraceRecorder):
    """Keeps no spans, and costs none: nobody can ask a proxy for them."""

    def for_tool(self, tool: str) -> ToolRecorder:  # noqa: ARG002  # the same for all
        """Give nothing that would be told of attempts."""
        return ToolRecorder()


def _allowed(prepared: Prepared, decision: Decision) -> Answer:  # noqa: ARG001  # the client asks
    return Answer.ALLOW_ONCE


def _with_id(exchange: Exchange, answered: messages.Message, kind: str) -> bytes:
    """Give the server's answer under the id of the client's request; as it came, if it has it."""
    if exchange.attempt_id == exchange.id:
        return answered.raw
    raw = getattr(answered.envelope, kind)
    if kind == "error":
        return messages.error_of(exchange.id, raw)
    return messages.answer(exchange.id, raw)


def _not_listed(exchange: Exchange, not_listed: NotListed) -> bytes:
    if not_listed.error is not None:
        return messages.error_of(exchange.id, not_listed.error)
    data = {"reason": "transport", "tool": exchange.name[:200]}
    return messages.error(exchange.id, messages.INTERNAL_ERROR, not_listed.why, data)


def _needs_policy(result: ToolResult, name: str) -> ToolResult:
    return ToolResult.failed(
        FailureCode.PERMISSION_DENIED,
        f"{name} was not run: it needs a person's approval, and this client cannot ask for it",
        reason="approval_required",
        layer="risk_gate",
        guidance=APPROVE_BY_POLICY.format(name=name),
        may_have_run=False,
        call_id=result.call_id,
        tool=name,
    )
