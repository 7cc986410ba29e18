"""Code of the application's own around every call: look, refuse, rewrite, ask, stop, replace.

    loop detector ▶ before-hooks ▶ layers ▶ executor ▶ after-hooks ▶ result limit

Hooks run one after the other, in the order in which they were given. They see a call once, however
often it is tried, and only if its name and its arguments are in order. A before-hook that fails
refuses the call; an after-hook that fails withholds the result.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import msgspec

from seawall.contract.content import Content, content_from_json
from seawall.contract.decision import Action, Decision
from seawall.contract.errors import ConfigurationError, Fault
from seawall.contract.failure import Failure, FailureCode
from seawall.contract.hook import Abort, Defer, Deny, Replace, Rewrite, Stop
from seawall.contract.result import ToolResult
from seawall.contract.turn import TurnStatus
from seawall.layers.risk_gate import APPROVED, Gate, RiskGate
from seawall.pipeline.convert import parts_of
from seawall.pipeline.digest import Digester
from seawall.pipeline.foreign import guarded, guarded_async, log
from seawall.pipeline.layer import LayerContext
from seawall.pipeline.route import completed

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence

    from seawall.contract.decision import Prepared
    from seawall.contract.hook import After, Before
    from seawall.contract.tool import Tool
    from seawall.pipeline.invocation import Handler, Invocation
    from seawall.pipeline.session import Session

LAYER = "hooks"
MAX_REASON = 300


class Hook(Protocol):
    """What is asked before a call and told after it; either may be left out, and be async.

    A plain function runs in the event loop: one that waits must be async.
    """

    def before(self, context: HookContext) -> Before | Awaitable[Before]:  # noqa: ARG002  # for others
        """Look at a call that is about to pass its gates; None lets it go on."""
        return None

    def after(self, context: HookContext) -> After | Awaitable[After]:  # noqa: ARG002  # for others
        """Look at `context.result`, of a call that was tried; None leaves it as it is."""
        return None


class HookContext:
    """One call, as one hook sees it, before and after."""

    __slots__ = ("_call", "given", "memory", "result")

    def __init__(self, call: Invocation, given: Any) -> None:
        self._call = call
        self.given = given
        """The arguments as the model gave them: text, or a mapping."""
        self.memory: dict[str, Any] = {}
        """For the hook to keep something from `before` to `after`."""
        self.result: ToolResult | None = None
        """What came of the call; None in `before`."""

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
        copied: dict[str, Any] = _copied(self._call.arguments)
        return copied

    @property
    def prepared(self) -> Prepared:
        """The call as gates and people see it; its arguments are a copy."""
        prepared = self._call.as_prepared()
        return msgspec.structs.replace(prepared, arguments=_copied(prepared.arguments))

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
        `metadata["messages"]`.
        """
        self._call.beside().messages.append(message)


class _Pair(NamedTuple):
    name: str
    before: Callable[[HookContext], Any] | None
    after: Callable[[HookContext], Any] | None


class Hooks:
    """The hooks of a pipeline, looked at once. Raises `ConfigurationError` for what is none."""

    def __init__(self, hooks: Iterable[Hook]) -> None:
        self._pairs: list[_Pair] = []
        faults = []
        for position, hook in enumerate(hooks):
            pair = _pair(hook)
            if pair is None:
                said = f"{hook!r} is no hook: an object with a method `before`, `after`, or both"
                faults.append(Fault(said, f"hooks[{position}]"))
            else:
                self._pairs.append(pair)
        if faults:
            raise ConfigurationError(faults)

    def __bool__(self) -> bool:
        return bool(self._pairs)

    def around(self, context: LayerContext, handler: Handler) -> Handler:
        """Put the hooks around one tool's chain."""
        return _Hooked(self._pairs, context, handler).handle


def _pair(hook: Any) -> _Pair | None:
    methods = [getattr(hook, name, None) for name in ("before", "after")]
    if inspect.isclass(hook) or not all(method is None or callable(method) for method in methods):
        return None
    if not any(methods):
        return None
    before, after = (
        None if getattr(type(hook), name, None) is getattr(Hook, name) else method
        for name, method in zip(("before", "after"), methods, strict=True)
    )
    return _Pair(type(hook).__name__, before, after)


_FAILED = object()
"""What a hook that raised, or gave nonsense, counts as having answered."""

_BEFORE = (Deny, Rewrite, Defer, Abort, Stop)
_AFTER = (Replace, Stop, Abort)


class _Hooked:
    """The hooks around the chain of one tool."""

    __slots__ = ("_context", "_handler", "_pairs")

    def __init__(self, pairs: Sequence[_Pair], context: LayerContext, handler: Handler) -> None:
        self._pairs = pairs
        self._context = context
        self._handler = handler

    async def handle(self, call: Invocation) -> ToolResult:
        refusal = call.prepared()
        if refusal is not None:
            return refusal
        contexts = [HookContext(call, call.given) for _ in self._pairs]
        answer = await self._before(call, contexts)
        if isinstance(answer, ToolResult):
            result = answer
        elif isinstance(answer, Defer):
            result = await self._asked(call, answer)
        else:
            result = await self._handler(call)
        if call.attempt:
            result = await self._after(call, contexts, result)
        return _with_messages(call, result)

    async def _before(
        self, call: Invocation, contexts: Sequence[HookContext]
    ) -> ToolResult | Defer | None:
        """Ask each hook; the first that has more to say than a rewrite ends it."""
        for pair, context in zip(self._pairs, contexts, strict=True):
            if pair.before is None:
                continue
            answer = await _answer(pair.name, pair.before, context, _BEFORE)
            if isinstance(answer, Rewrite):
                refusal = self._rewritten(call, answer)
                if refusal is not None:
                    return refusal
            elif answer is not None:
                return self._decided(call, answer)
        return None

    def _rewritten(self, call: Invocation, answer: Rewrite) -> ToolResult | None:
        arguments: Any = answer.arguments  # a hook may give anything, whatever its type says
        if not isinstance(arguments, Mapping):
            return self._failed(call)
        beside = call.beside()
        digester = self._context.part(Digester)
        if beside.signature is None and digester is not None:
            beside.signature = digester.of(call.tool.name, call.arguments)
        self._noted(call, "rewritten")
        return call.rewrite(_copied(dict(arguments)))

    def _decided(self, call: Invocation, answer: Any) -> ToolResult | Defer:
        if isinstance(answer, Defer):
            self._noted(call, "deferred")
            return answer
        if isinstance(answer, Deny):
            self._noted(call, "denied")
            return _denied(call, answer)
        if isinstance(answer, Abort):
            self._noted(call, "aborted")
            return _ended(call, TurnStatus.ABORTED, answer.reason)
        if isinstance(answer, Stop):
            self._noted(call, "stopped")
            result = _ended(call, TurnStatus.TERMINATED, answer.reason)
            return msgspec.structs.replace(result, terminate=True)
        return self._failed(call)

    def _failed(self, call: Invocation) -> ToolResult:
        self._noted(call, "failed")
        return call.refuse(
            FailureCode.PERMISSION_DENIED,
            f"{call.tool.name} was not run: a check before it failed",
            reason="gate_failed",
            layer=LAYER,
        )

    async def _asked(self, call: Invocation, answer: Defer) -> ToolResult:
        """Have the risk gate ask, as if the policy had said so."""
        context, gate = self._context, self._context.part(Gate) or Gate()
        asking = LayerContext(
            context.tool,
            msgspec.structs.replace(context.policy, gate_mode="on"),
            context.clock,
            context.chance,
            context.states,
            context.count,
            {Gate: Gate(_Asks(answer.reason), gate.confirm, gate.answer_within_s)},
        )

        async def approved(call: Invocation) -> ToolResult:
            call.note(APPROVED)
            return await self._handler(call)

        return await RiskGate(asking)(call, approved)

    async def _after(
        self, call: Invocation, contexts: Sequence[HookContext], result: ToolResult
    ) -> ToolResult:
        """Tell each hook. One that stops the turn keeps none from being told: they may redact."""
        call.close_attempt(call, result)  # hooks are no part of it
        for pair, context in zip(self._pairs, contexts, strict=True):
            if pair.after is None:
                continue
            result = context.result = completed(result, call)
            answer = await _answer(pair.name, pair.after, context, _AFTER)
            if answer is not None:
                result = self._applied(call, result, answer)
        return result

    def _applied(self, call: Invocation, result: ToolResult, answer: Any) -> ToolResult:
        change = answer
        if isinstance(answer, Abort):
            self._noted(call, "aborted")
            _end(call, TurnStatus.ABORTED, answer.reason)
            return result
        if isinstance(answer, Stop):
            self._noted(call, "stopped")
            _end(call, TurnStatus.TERMINATED, answer.reason)
            result = msgspec.structs.replace(result, terminate=True)
            change = answer.replace
        if change is None:
            return result
        if isinstance(change, Replace):
            self._noted(call, "replaced")
            return guarded(
                f"the replacement for a result of {call.tool.name!r} is faulty",
                lambda: replaced(result, change),
                lambda _: self._withheld(call),
            )
        return self._withheld(call)

    def _withheld(self, call: Invocation) -> ToolResult:
        self._noted(call, "failed")
        return call.refuse(
            FailureCode.PERMISSION_DENIED,
            f"{call.tool.name} was run, but what it gave is withheld: a check after it failed",
            reason="gate_failed",
            layer=LAYER,
            may_have_run=call.started,
        )

    def _noted(self, call: Invocation, event: str) -> None:
        self._context.count(LAYER, event)
        call.note(f"{LAYER}:{event}")


class _Asks:
    """A policy that has every call asked about."""

    def __init__(self, reason: str) -> None:
        self._decision = Decision(Action.ASK, reason or "a rule wants a person to look at it")

    def decide(self, _: Prepared) -> Decision:
        return self._decision


async def _answer(
    name: str, ask: Callable[[HookContext], Any], context: HookContext, allowed: tuple[type, ...]
) -> Any:
    """Ask a hook; `_FAILED` if it raises, or gives what is no answer here."""
    try:
        answer = await guarded_async(f"hook {name} raised", lambda: ask(context), lambda _: _FAILED)
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        return _FAILED  # something it waited for was cancelled, not this call
    if answer is None or answer is _FAILED or isinstance(answer, allowed):
        return answer
    kinds = ", ".join(kind.__name__ for kind in allowed)
    log.warning("hook %s gave a %s, not one of %s", name, type(answer).__name__, kinds)
    return _FAILED


def _denied(call: Invocation, answer: Deny) -> ToolResult:
    why = answer.reason[:MAX_REASON] or "a rule of this system does not allow it"
    if answer.result is None:
        result = call.refuse(
            FailureCode.PERMISSION_DENIED,
            f"{call.tool.name} was not run: {why}",
            reason="denied_by_policy",
            layer=LAYER,
        )
    else:
        result = _instead(call, answer.result)
    return msgspec.structs.replace(result, terminate=answer.terminate is True or result.terminate)


def _instead(call: Invocation, given: ToolResult) -> ToolResult:
    """Put a hook's own result in place of the call's."""
    failure = given.failure
    if failure is None and given.is_error:
        failure = Failure(
            code=FailureCode.PERMISSION_DENIED,
            message=_first_line(given.text) or f"{call.tool.name} was not run",
            reason="denied_by_policy",
            layer=LAYER,
            may_have_run=False,
        )
    return msgspec.structs.replace(
        given,
        call_id=call.call_id,
        tool=call.tool.name,
        is_error=failure is not None,
        failure=failure,
        terminate=given.terminate is True,
        duration_ms=None,
        attempts=0,
    )


def _ended(call: Invocation, status: TurnStatus, reason: str) -> ToolResult:
    _end(call, status, reason)
    return not_begun(call, status, reason)


def _end(call: Invocation, status: TurnStatus, reason: str) -> None:
    turn = None if call.aside is None else call.aside.turn
    if turn is not None:
        turn.end(status, reason)


def not_begun(call: Invocation, status: TurnStatus, reason: str) -> ToolResult:
    """Refuse a call because its turn was ended before it could begin."""
    aborted = status is TurnStatus.ABORTED
    said = "broken off" if aborted else "ended"
    because = f": {reason[:MAX_REASON]}" if reason else ""
    return call.refuse(
        FailureCode.EXECUTION_FAILED,
        f"{call.tool.name} was not run, as the turn was {said}{because}",
        reason="aborted" if aborted else "not_executed",
        layer=LAYER,
        guidance="Do not repeat it by yourself; wait for the user.",
    )


def replaced(result: ToolResult, change: Replace) -> ToolResult:
    """Apply a replacement; raises `ValueError` or a kin of it if its content is no content."""
    fields: dict[str, Any] = {}
    if change.content is not None:
        fields["content"] = _blocks(change.content)
        fields["structured_content"] = None
    for name in ("structured_content", "details", "usage", "metadata"):
        value = getattr(change, name)
        if value is not None:
            fields[name] = value
    if change.terminate is not None:
        fields["terminate"] = change.terminate is True
    for name in ("usage", "metadata"):
        if not isinstance(fields.get(name, {}), Mapping):
            raise TypeError(f"{name} must be a mapping")
    result = msgspec.structs.replace(result, **fields)
    failure = _failure_of(result, change)
    return msgspec.structs.replace(result, failure=failure, is_error=failure is not None)


def _failure_of(result: ToolResult, change: Replace) -> Failure | None:
    """Fit the failure to a result whose content, or whose flag, was replaced."""
    is_error = result.is_error if change.is_error is None else change.is_error is True
    if not is_error:
        return None
    said = _first_line(result.text) or "the result was made an error by a rule of this system"
    if result.failure is None:
        return Failure(
            code=FailureCode.EXECUTION_FAILED, message=said, layer=LAYER, may_have_run=True
        )
    if change.content is None:
        return result.failure
    # What the hook took out of the text must not come back by way of the failure.
    return msgspec.structs.replace(
        result.failure, message=said, guidance="", hints=(), issues=(), cause=()
    )


def _blocks(content: str | Sequence[Any]) -> tuple[Content, ...]:
    if isinstance(content, str):
        return parts_of(content)[0]
    return tuple(_block(block) for block in content)


def _block(block: Any) -> Content:
    if isinstance(block, Mapping):
        return content_from_json(dict(block))
    content, _ = parts_of(block)
    if content != (block,) and not isinstance(block, str):
        raise TypeError(f"{type(block).__name__} is no content block")
    return content[0]


def _first_line(text: str) -> str:
    line = text.strip().split("\n", 1)[0]
    return line if len(line) <= MAX_REASON else line[: MAX_REASON - 1] + "…"


def _with_messages(call: Invocation, result: ToolResult) -> ToolResult:
    """Give what was injected to whoever made a call outside of a turn."""
    aside = call.aside
    if aside is None or not aside.messages or aside.turn is not None or call.depth:
        return result
    metadata = {**(result.metadata or {}), "messages": tuple(aside.messages)}
    return msgspec.structs.replace(result, metadata=metadata)


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copied(item) for key, item in value.items()}
    return [_copied(item) for item in value] if isinstance(value, list) else value
