"""Write down what a call is about to do before it does it, and how it ended.

For tools that must not be repeated blindly. The intent is committed before the tool runs, the
outcome after; a process that dies between leaves an intent without an outcome, which is reported
as not known and never run again, unless the tool says that this is safe. Nothing runs that could
not be written down.

A caller's idempotency key makes this one effect for however many calls: with the same arguments
they get the outcome of the first, with others they are refused.

A call that began is forgotten only by the tool's own word that it did nothing.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Protocol

from msgspec.structs import replace

from seawall.contract.effect import ANSWERS, Begun, Effect, EffectState, Intent, Settled
from seawall.contract.failure import FailureCode
from seawall.pipeline.convert import is_infrastructure
from seawall.pipeline.digest import Digester
from seawall.pipeline.foreign import guarded_async, tell

if TYPE_CHECKING:
    from seawall.contract.failure import Failure
    from seawall.contract.result import ToolResult
    from seawall.pipeline.invocation import Handler, Invocation
    from seawall.pipeline.layer import LayerContext
    from seawall.pipeline.session import Session

LONGEST_SCOPE = 200
"""Characters of a caller's or session's name that are kept; a longer one is kept as its hash."""

LONGEST_KEY = 1_000
"""Characters of an idempotency key; a longer one is refused."""

ASK_AGAIN_S = 30.0
"""The longest wait that is suggested to whoever asks for a call that still runs."""

_UNSURE = frozenset({"cancelled", "aborted"})
"""Reasons of a failure that say nothing about the effect; what broke down says nothing either."""


class EffectLedger(Protocol):
    """Keeps intents and outcomes; an error means that nothing may run."""

    async def begin(self, intent: Intent) -> Begun:
        """Keep an intent, committed when this returns, or give the call that had its key.

        If it raises, or its caller is cancelled, the intent is taken back: nothing was run.
        """
        ...

    async def settle(self, settled: Settled) -> None:
        """Keep how a call ended; goes on when its caller is cancelled."""
        ...

    def settle_soon(self, settled: Settled) -> None:
        """Keep how a call ended, without anybody waiting for it."""
        ...

    def withdraw_soon(self, token: str) -> None:
        """Forget an intent of which nothing was run."""
        ...


class Ledger:
    """Keeps what calls of one tool are about to do, and how they ended."""

    name = "ledger"

    def __init__(self, context: LayerContext, ledger: EffectLedger, digester: Digester) -> None:
        self._ledger = ledger
        self._digester = digester
        self._tool = context.tool.name
        self._replay = context.tool.replay == "safe"
        self._without_key = not context.tool.retry_safe
        self._keep_s = context.policy.ledger_keep_s
        self._chance = context.chance
        self._clock = context.clock
        self._count = context.count

    @classmethod
    def for_tool(cls, context: LayerContext) -> Ledger | None:
        """Nothing to do for a tool that may be repeated, or without a state that outlives us.

        Where another tool may stand in for it, the two under one key would be two effects.
        """
        if context.policy.ledger == "off" or (
            context.tool.retry_safe and not _may_be_replaced(context)
        ):
            return None
        ledger = context.part(EffectLedger)  # type: ignore[type-abstract]  # a protocol is a key too
        digester = context.part(Digester)
        return None if ledger is None or digester is None else cls(context, ledger, digester)

    async def __call__(self, call: Invocation, proceed: Handler) -> ToolResult:
        """Write down the intent, run, write down the outcome."""
        if call.idempotency_key is None and not self._without_key:
            return await proceed(call)
        refusal = call.prepared() or self._unfit(call)
        if refusal is not None:
            return refusal
        intent = self._intent(call)
        begun = await self._begin(intent)
        if begun is None:
            self._count(self.name, "store_fail_closed")
            return self._unavailable(call)
        if begun.earlier is not None:
            return self._answered(call, begun)
        try:
            result = await proceed(call)
        except BaseException as error:
            self._broken_off(call, intent, error)
            raise
        await self._settle(call, intent, result)
        return result

    def _intent(self, call: Invocation) -> Intent:
        if call.digest is None:
            call.digest = self._digester.of(self._tool, call.known_arguments())
        return Intent(
            token=self._chance.token(16),
            scope=scope_of(call.session),
            tool=self._tool,
            key=call.idempotency_key,
            digest=call.digest.mac,
            call_id=call.call_id,
            session=call.session.id,
            caller=call.session.caller,
            decided=call.decided,
            rivals=(ANSWERS + call.session.caller,) if call.session.caller else (),
            keep_s=self._keep_s,
            replay=self._replay,
        )

    async def _begin(self, intent: Intent) -> Begun | None:
        begun: Any = await guarded_async(
            "the ledger failed, so a call was not run",
            lambda: self._ledger.begin(intent),
            lambda _: None,
        )
        return begun if isinstance(begun, Begun) else None

    def _broken_off(self, call: Invocation, intent: Intent, error: BaseException) -> None:
        """Write down that nobody saw the end; in passing, as a cancel is not to be held up."""
        if not call.started:
            tell((self._ledger.withdraw_soon,), intent.token)
            return
        reason = "cancelled" if isinstance(error, asyncio.CancelledError) else "tool_failed"
        tell((self._ledger.settle_soon,), self._settled(intent, EffectState.UNKNOWN, reason))

    async def _settle(self, call: Invocation, intent: Intent, result: ToolResult) -> None:
        failure = result.failure
        if failure is not None and (not call.started or failure.may_have_run is False):
            self._ledger.withdraw_soon(intent.token)
            return
        state = _state_of(failure, call.error)
        reason = "" if failure is None else failure.reason
        settled = self._settled(intent, state, reason)
        if intent.key is not None and state is not EffectState.UNKNOWN:
            settled = replace(settled, outcome=result)
        kept = await guarded_async(
            "how a call ended could not be written down",
            lambda: self._kept(settled),
            lambda _: False,
        )
        if not kept:
            # The answer is true all the same; if the process ends too, it counts as not known.
            self._count(self.name, "store_unsettled")

    async def _kept(self, settled: Settled) -> bool:
        await self._ledger.settle(settled)
        return True

    def _settled(self, intent: Intent, state: EffectState, reason: str) -> Settled:
        return Settled(
            token=intent.token,
            scope=intent.scope,
            tool=intent.tool,
            state=state,
            reason=reason,
            keep_s=self._keep_s,
        )

    def _unfit(self, call: Invocation) -> ToolResult | None:
        key = call.idempotency_key
        if key is None or (isinstance(key, str) and 0 < len(key) <= LONGEST_KEY):
            return None
        return call.refuse(
            FailureCode.INVALID_ARGUMENT,
            f"an idempotency key is a text of 1 to {LONGEST_KEY} characters",
            reason="idempotency_conflict",
            layer=self.name,
            guidance="Give each thing that is to be done once a key of its own.",
        )

    def _answered(self, call: Invocation, begun: Begun) -> ToolResult:
        """Answer from what is known of the earlier call with the same key."""
        earlier = begun.earlier
        if earlier is None:
            raise RuntimeError("there is no earlier call to answer from")
        if begun.conflict:
            return self._conflict(call, earlier)
        if earlier.state is EffectState.RUNNING:
            return self._running(call, earlier)
        if earlier.state is EffectState.UNKNOWN:
            return self._unknown(call, earlier)
        if earlier.outcome is None:
            return self._unreadable(call, earlier)
        self._count(self.name, "answered")
        metadata = {**(earlier.outcome.metadata or {}), "ledger": {"of_call": earlier.call_id}}
        # What the state kept does not say how often; whoever looks at it should see that it ran.
        attempts = earlier.outcome.attempts or 1
        return replace(earlier.outcome, metadata=metadata, attempts=attempts)

    def _conflict(self, call: Invocation, earlier: Effect) -> ToolResult:
        same = earlier.tool == self._tool
        used_for = f"a call of {self._tool} with other arguments" if same else "another call"
        return call.refuse(
            FailureCode.INVALID_ARGUMENT,
            f"this idempotency key was used for {used_for}",
            reason="idempotency_conflict",
            layer=self.name,
            guidance="Give what differs a key of its own, or repeat the call exactly as it was.",
        )

    def _running(self, call: Invocation, earlier: Effect) -> ToolResult:
        elapsed_s = max(self._clock.wall() - earlier.created, 0.0)
        return call.refuse(
            FailureCode.RATE_LIMITED,
            f"the same call of {self._tool} began {elapsed_s:.0f} s ago and still runs",
            reason="still_running",
            layer=self.name,
            guidance="Do not start it another way; ask again later, with the same key.",
            retry_after_s=min(max(elapsed_s, 1.0), ASK_AGAIN_S),
        )

    def _unknown(self, call: Invocation, earlier: Effect) -> ToolResult:
        self._count(self.name, "outcome_unknown")
        return call.refuse(
            FailureCode.UNKNOWN,
            f"the same call of {self._tool} began at {_at(earlier.created)}, and how it ended is"
            f" not known ({(earlier.reason or 'interrupted').replace('_', ' ')})",
            reason="outcome_unknown",
            layer=self.name,
            may_have_run=True,
        )

    def _unreadable(self, call: Invocation, earlier: Effect) -> ToolResult:
        ended = "succeeded" if earlier.state is EffectState.DONE else "failed"
        when = earlier.created if earlier.settled is None else earlier.settled
        return call.refuse(
            FailureCode.UNKNOWN,
            f"the same call of {self._tool} {ended} at {_at(when)}, but what it gave cannot be"
            f" shown: {earlier.unreadable}",
            reason="outcome_unreadable",
            layer=self.name,
            guidance="Do not do it again. Look for its effect where that shows, if you need more.",
            may_have_run=True,
        )

    def _unavailable(self, call: Invocation) -> ToolResult:
        return call.refuse(
            FailureCode.EXECUTION_FAILED,
            f"{self._tool} was not run, as what it would do could not be written down first",
            reason="ledger_unavailable",
            layer=self.name,
            guidance="Try it again later, or tell the user that it is not possible now.",
        )


def _may_be_replaced(context: LayerContext) -> bool:
    fallback = context.policy.fallback
    replaced = fallback is not None and fallback.tool is not None
    return replaced and not context.tool.annotations.is_read_only


def scope_of(session: Session) -> str:
    """Who calls, as the ledger keeps it: the caller if there is one, else the session."""
    scope = f"caller:{session.caller}" if session.caller else f"session:{session.id}"
    if len(scope) <= LONGEST_SCOPE:
        return scope
    return blake2b(scope.encode("utf-8", "surrogatepass"), digest_size=32).hexdigest()


def _state_of(failure: Failure | None, error: BaseException | None) -> EffectState:
    """Whether a result says what became of the effect: an answer does, a breakdown does not."""
    if failure is None:
        return EffectState.DONE
    if failure.code is FailureCode.UNKNOWN or failure.reason in _UNSURE:
        return EffectState.UNKNOWN
    return EffectState.UNKNOWN if is_infrastructure(failure, error) else EffectState.FAILED


def _at(seconds: float) -> str:
    said = datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
    return said.replace("+00:00", "Z")
