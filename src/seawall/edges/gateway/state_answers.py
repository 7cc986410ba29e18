"""Calls under an `Idempotency-Key`, known to all who use one state: other workers, later runs.

For tools that have no ledger of their own: those that only read, those whose policy wants none,
and all where the pipeline's layers are without it. What was begun is committed before the call
runs; what cannot be committed is not run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from seawall.contract.effect import ANSWERS, EffectState, Intent, Settled
from seawall.contract.errors import StoreUnavailable
from seawall.contract.failure import FailureCode
from seawall.edges.gateway.answers import Answer, answer_of, refusal
from seawall.edges.gateway.kept_answers import REPLAYED, conflict, still_running
from seawall.layers.ledger import Ledger
from seawall.pipeline.foreign import log

if TYPE_CHECKING:
    from seawall.contract.effect import Effect, KeyUse
    from seawall.contract.result import ToolResult
    from seawall.contract.span import Digest
    from seawall.contract.tool import Tool
    from seawall.edges.gateway.kept_answers import Key
    from seawall.orchestration.pipeline import Pipeline
    from seawall.stores.sql_ledger import SqlLedger


SETTLES_S = 0.25
"""How long a call that is said to run may take to be forgotten, if nothing was run."""


class Held(Exception):  # noqa: N818  # it carries an answer
    """The call is not to be run; this is answered instead."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer.status)
        self.answer = answer


class StateAnswers:
    """What was answered under which key, in the pipeline's state."""

    def __init__(self, pipeline: Pipeline, keep_s: float) -> None:
        self._pipeline = pipeline
        self._keep_s = keep_s
        self._ledger: SqlLedger | None = None if pipeline.state is None else pipeline.state.answers
        self._tools_have_ledgers = Ledger in pipeline._chains.builder.layers  # noqa: SLF001  # given once

    @property
    def is_durable(self) -> bool:
        """Whether keys outlive the process, here or in a tool's own ledger."""
        return self._ledger is not None

    def keeps(self, tool: Tool | None) -> bool:
        """Whether keys of this tool's calls are kept here, and not by its own ledger."""
        policy = None if tool is None else self._pipeline.policy_of(tool.name)
        if self._ledger is None or tool is None or policy is None:
            return False
        return tool.retry_safe or policy.ledger == "off" or not self._tools_have_ledgers

    async def check(
        self, key: Key, payload: Digest, tool: Tool | None, scope: str, about: dict[str, str]
    ) -> None:
        """Hold a key that was used for another call, in this run or before, by whichever worker.

        `scope` is what the ledger calls the client. What is kept of a key may be an answer, an
        effect, or an approval: it stands for one call of one tool all the same. Raises `Held`.
        """
        uses = await self._uses(key, scope, about)
        others = [use for use in uses if self._is_other(use, payload, tool, scope)]
        if any(use.effect.state is EffectState.RUNNING for use in others):
            # One that was refused is forgotten a moment after its answer.
            await self._pipeline.clock.sleep(SETTLES_S)
            uses = await self._uses(key, scope, about)
            others = [use for use in uses if self._is_other(use, payload, tool, scope)]
        if others:
            raise Held(conflict(about))
        if not self.keeps(tool):
            for use in uses:
                if use.scope == _scope(key):
                    # It was kept before the tool's policy gave it a ledger.
                    raise Held(_answer(use.effect, about))

    async def _uses(self, key: Key, scope: str, about: dict[str, str]) -> list[KeyUse]:
        if self._ledger is None:
            return []
        client, name = key
        try:
            uses = await self._ledger.uses(name, (_scope(key), f"asked:{client}", scope))
        except StoreUnavailable as error:
            raise Held(unavailable(about)) from error
        return [use for use in uses if not self._never_ran(use.effect.token)]

    def _is_other(self, use: KeyUse, payload: Digest, tool: Tool | None, scope: str) -> bool:
        """Whether what is kept under a key is of another call, or may be."""
        if use.scope != scope:
            return use.digest not in (None, payload.mac)
        if tool is None or use.tool != tool.name:
            return True
        return self.keeps(tool) and not tool.retry_safe

    def _never_ran(self, token: str) -> bool:
        state = self._pipeline.state
        ledgers = (self._ledger, None if state is None else state.ledger)
        return any(one is not None and one.never_ran(token) for one in ledgers)

    async def begin(
        self, key: Key, payload: Digest, tool: Tool, scope: str, request_id: str
    ) -> _Begun:
        """Begin a call; raises `Held` with what is to be answered if it must not run.

        `scope` is what the ledger calls the client. What another worker begins under the same key
        at the same moment is seen here, or sees this.
        """
        ledger = self._ledger
        if ledger is None:
            raise RuntimeError("a state that is not durable keeps no answers")
        client, name = key
        intent = Intent(
            token=self._pipeline.new_key(),
            scope=_scope(key),
            tool="",
            key=name,
            digest=payload.mac,
            call_id=request_id,
            caller=client,
            rivals=(scope, f"asked:{client}"),
            answers=tool.name if tool.retry_safe else "",
            keep_s=self._keep_s,
            replay=tool.retry_safe,
        )
        about = {"request_id": request_id, "tool": tool.name}
        try:
            begun = await ledger.begin(intent)
        except StoreUnavailable as error:
            raise Held(unavailable(about)) from error
        if begun.earlier is None:
            return _Begun(ledger, intent)
        raise Held(conflict(about) if begun.conflict else _answer(begun.earlier, about))


class _Begun:
    """A call that runs under its key. Say once how it ended."""

    def __init__(self, ledger: SqlLedger, intent: Intent) -> None:
        self._ledger = ledger
        self._intent = intent

    async def ended(self, result: ToolResult) -> None:
        """Keep what came of it."""
        state = EffectState.DONE if result.failure is None else EffectState.FAILED
        try:
            await self._ledger.settle(self._settled(state, result))
        except StoreUnavailable as error:
            # It is tried again; the answer is true all the same.
            log.warning("an answer could not be kept: %s", error)

    def broken_off(self) -> None:
        """Nobody saw how it ended; a call that may be repeated is as if it had not begun."""
        if self._intent.replay:
            self.ran_nothing()
        else:
            self._ledger.settle_soon(self._settled(EffectState.UNKNOWN, None))

    def ran_nothing(self) -> None:
        """Let the key be used again."""
        self._ledger.withdraw_soon(self._intent.token)

    def _settled(self, state: EffectState, result: ToolResult | None) -> Settled:
        return Settled(
            token=self._intent.token,
            scope=self._intent.scope,
            tool="",
            state=state,
            outcome=result,
            keep_s=self._intent.keep_s,
        )


def _scope(key: Key) -> str:
    return ANSWERS + key[0]


def ledger_replay(result: ToolResult) -> str | None:
    """Give the id of the call that this is the answer of, if the ledger gave it again."""
    told: Any = None if result.metadata is None else result.metadata.get("ledger")
    found = told.get("of_call") if isinstance(told, dict) else None
    return found if isinstance(found, str) else None


def _answer(earlier: Effect, about: dict[str, str]) -> Answer:
    if earlier.outcome is not None:
        return answer_of(earlier.outcome, earlier.call_id, headers=(REPLAYED,))
    if earlier.state is EffectState.RUNNING:
        return still_running({**about, "request_id": earlier.call_id})
    why = earlier.unreadable or "it was broken off"
    return refusal(
        FailureCode.UNKNOWN,
        "outcome_unknown" if earlier.state is EffectState.UNKNOWN else "outcome_unreadable",
        f"what the call with this Idempotency-Key gave is not known: {why}",
        may_have_run=True,
        **about,
    )


def unavailable(about: dict[str, str]) -> Answer:
    """Refuse a call whose key could not be looked up or written down."""
    return refusal(
        FailureCode.RATE_LIMITED,
        "overloaded",
        f"{about['tool']} was not run, as its Idempotency-Key could not be written down first",
        retry_after_s=5.0,
        guidance="Try it again later, with the same key.",
        **about,
    )
