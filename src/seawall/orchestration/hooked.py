"""Code of the application's own around every call: look, refuse, rewrite, ask, stop, replace.

    loop detector ▶ before-hooks ▶ layers ▶ executor ▶ after-hooks ▶ result limit

Hooks run one after the other, in the order in which they were given. They see a call once, however
often it is tried, and only if its name and its arguments are in order. A before-hook that fails
refuses the call; an after-hook that fails withholds the result.

What layers keep (ledger, cache) is what the tool gave, inside of the hooks: each answer made of it
passes the after-hooks of the call that it is for. What a tool reports while it runs passes the
hooks that have a `report`, where somebody listens.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from seawall.contract.decision import Action, Decision
from seawall.contract.errors import ConfigurationError, Fault
from seawall.contract.failure import FailureCode
from seawall.contract.hook import Abort, Defer, Deny, Replace, Rewrite, Stop
from seawall.contract.result import ToolResult
from seawall.contract.turn import TurnStatus
from seawall.layers.risk_gate import APPROVED, Gate, RiskGate
from seawall.orchestration.hook_results import LAYER, denied, not_begun, replaced
from seawall.orchestration.hooks import Hook, HookContext, copied
from seawall.orchestration.progress import Passage
from seawall.pipeline.digest import Digester
from seawall.pipeline.foreign import guarded, guarded_async, log
from seawall.pipeline.graced import graced
from seawall.pipeline.layer import LayerContext
from seawall.pipeline.route import completed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from seawall.contract.approval import ApprovalBatch
    from seawall.contract.decision import Prepared
    from seawall.pipeline.invocation import Handler, Invocation


class _Pair(NamedTuple):
    name: str
    before: Callable[[HookContext], Any] | None
    after: Callable[[HookContext], Any] | None
    report: Callable[[HookContext], Any] | None


class Hooks:
    """The hooks of a pipeline, looked at once. Raises `ConfigurationError` for what is none."""

    def __init__(self, hooks: Iterable[Hook]) -> None:
        self._pairs: list[_Pair] = []
        self.on_approval: list[Callable[[ApprovalBatch], Any]] = []
        """Those that want to be told of calls that wait for a person."""
        faults = []
        for position, hook in enumerate(hooks):
            told = None if inspect.isclass(hook) else getattr(hook, "on_approval", None)
            if callable(told):
                self.on_approval.append(told)
            pair = _pair(hook)
            if pair is None and callable(told):
                continue
            if pair is None:
                said = f"{hook!r} is no hook: it must have a method `before`, `after` or `report`"
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


_HALVES = ("before", "after", "report")


def _pair(hook: Any) -> _Pair | None:
    methods = [getattr(hook, name, None) for name in _HALVES]
    if inspect.isclass(hook) or not all(method is None or callable(method) for method in methods):
        return None
    if not any(methods):
        return None
    own = (
        None if getattr(type(hook), name, None) is getattr(Hook, name, None) else method
        for name, method in zip(_HALVES, methods, strict=True)
    )
    return _Pair(type(hook).__name__, *own)


_FAILED = object()
"""What a hook that raised, or gave nonsense, counts as having answered."""

_BEFORE = (Deny, Rewrite, Defer, Abort, Stop)
_AFTER = (Replace, Stop, Abort)
_REPORT = (Replace,)


class _Hooked:
    """The hooks around the chain of one tool."""

    __slots__ = ("_awaits", "_context", "_handler", "_pairs", "_reports")

    def __init__(self, pairs: Sequence[_Pair], context: LayerContext, handler: Handler) -> None:
        self._pairs = pairs
        self._reports = any(pair.report is not None for pair in pairs)
        self._awaits = any(inspect.iscoroutinefunction(pair.report) for pair in pairs)
        self._context = context
        self._handler = handler

    async def handle(self, call: Invocation) -> ToolResult:
        refusal = call.prepared() or _too_late(call)
        if refusal is not None:
            return refusal
        contexts = [HookContext(call, call.given) for _ in self._pairs]
        if self._reports:
            passed = functools.partial(self._passed, call, contexts)
            call.passage = Passage(passed, awaits=self._awaits)
        resumed = call.aside is not None and call.aside.resumed
        # What was approved is what they said then, so they are not asked again.
        answer = None if resumed else await self._before(call, contexts)
        if isinstance(answer, ToolResult):
            return _of_the_whole(call, answer)
        result = await self._ran(call, answer)
        if result.failure is None or call.attempt or result.attempts:
            result = await self._after(call, contexts, result)
        return _of_the_whole(call, result)

    async def _ran(self, call: Invocation, answer: Defer | None) -> ToolResult:
        try:
            return await (self._handler(call) if answer is None else self._asked(call, answer))
        finally:
            if self._awaits and call.passage is not None:
                await call.passage.end(self._context.clock, call.policy.grace_s)

    async def _before(
        self, call: Invocation, contexts: Sequence[HookContext]
    ) -> ToolResult | Defer | None:
        """Ask each hook; the first that has more to say than a rewrite ends it."""
        for pair, context in zip(self._pairs, contexts, strict=True):
            if pair.before is None:
                continue
            answer = await _answer(pair.name, self._asking(call, pair.before, context), _BEFORE)
            if isinstance(answer, Rewrite):
                refusal = self._rewritten(call, answer)
                if refusal is not None:
                    return refusal
            elif answer is not None:
                return self._decided(call, answer)
        return None

    def _asking(
        self, call: Invocation, ask: Callable[[HookContext], Any], context: HookContext
    ) -> Callable[[], Any]:
        """Ask a hook, which ends within the policy's grace once the time for the call is over."""
        if call.deadline is None:
            return lambda: ask(context)
        clock = self._context.clock
        left_s = call.deadline - clock.now()
        return lambda: graced(lambda: ask(context), clock, left_s, call.policy.grace_s)

    def _rewritten(self, call: Invocation, answer: Rewrite) -> ToolResult | None:
        arguments: Any = answer.arguments  # a hook may give anything, whatever its type says
        if not isinstance(arguments, Mapping):
            return self._failed(call)
        beside = call.beside()
        digester = self._context.part(Digester)
        if beside.signature is None and digester is not None:
            beside.signature = digester.of(call.tool.name, call.arguments)
        # What was approved is not what would run.
        call.verdicts = tuple(said for said in call.verdicts if said != APPROVED)
        self._noted(call, "rewritten")
        return call.rewrite(copied(dict(arguments)))

    def _decided(self, call: Invocation, answer: Any) -> ToolResult | Defer:
        if isinstance(answer, Defer):
            self._noted(call, "deferred")
            return answer
        if isinstance(answer, Deny):
            self._noted(call, "denied")
            return denied(call, answer)
        if isinstance(answer, Abort):
            self._noted(call, "aborted")
            return _ended(call, TurnStatus.ABORTED, answer.reason)
        if isinstance(answer, Stop):
            self._noted(call, "stopped")
            result = _ended(call, TurnStatus.TERMINATED, answer.reason)
            return msgspec.structs.replace(result, terminate=True)
        return self._failed(call)

    def _failed(self, call: Invocation) -> ToolResult:
        """Refuse a call, as a hook failed."""
        return self._refused(call, "was not run: a check before it failed", ran=call.started)

    def _withheld(self, call: Invocation, *, ran: bool) -> ToolResult:
        """Withhold what a call gave, as a hook failed: `may_have_run` says whether it was run."""
        said = "was run, but what it gave" if ran else "was answered, but what was to be given"
        return self._refused(call, f"{said} is withheld: a check after it failed", ran=ran)

    def _refused(self, call: Invocation, said: str, *, ran: bool) -> ToolResult:
        self._noted(call, "failed")
        return call.refuse(
            FailureCode.PERMISSION_DENIED,
            f"{call.tool.name} {said}",
            reason="gate_failed",
            layer=LAYER,
            may_have_run=ran,
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
            {Gate: msgspec.structs.replace(gate, policy=_Asks(answer.reason))},
        )

        async def approved(call: Invocation) -> ToolResult:
            call.note(APPROVED)
            return await self._handler(call)

        result: ToolResult = await RiskGate(asking)(call, approved)
        return result

    async def _after(
        self, call: Invocation, contexts: Sequence[HookContext], result: ToolResult
    ) -> ToolResult:
        """Tell each hook. One that stops the turn keeps none from being told: they may redact.

        Also of what was not run for this call: an answer, or a failure, that is given again has
        the attempts of the call that it is of.
        """
        call.close_attempt(call, result)  # hooks are no part of it
        ran = call.started or result.attempts > 0
        for pair, context in zip(self._pairs, contexts, strict=True):
            if pair.after is None:
                continue
            result = context.result = completed(result, call)
            answer = await _answer(pair.name, self._asking(call, pair.after, context), _AFTER)
            if answer is not None:
                result = self._applied(call, result, answer, ran=ran)
        return result

    def _applied(
        self, call: Invocation, result: ToolResult, answer: Any, *, ran: bool
    ) -> ToolResult:
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
                lambda _: self._withheld(call, ran=ran),
            )
        return self._withheld(call, ran=ran)

    async def _passed(
        self, call: Invocation, contexts: Sequence[HookContext], report: str | ToolResult
    ) -> str | ToolResult | None:
        is_text = isinstance(report, str)
        left = ToolResult.of_text(report) if isinstance(report, str) else report
        for pair, context in zip(self._pairs, contexts, strict=True):
            if pair.report is None:
                continue
            looking = context.of_report(completed(left, call))
            answer = await _answer(pair.name, functools.partial(pair.report, looking), _REPORT)
            found = _replaced_in_report(call, left, answer)
            if found is None:
                return None
            left = found
        return left.text if is_text else left

    def _noted(self, call: Invocation, event: str) -> None:
        self._context.count(LAYER, event)
        call.note(f"{LAYER}:{event}")


def _replaced_in_report(call: Invocation, report: ToolResult, answer: Any) -> ToolResult | None:
    """Give what a hook leaves of a report; None withholds it."""
    if answer is None:
        return report
    if not isinstance(answer, Replace):
        return None
    return guarded(
        f"the replacement for a report of {call.tool.name!r} is faulty",
        lambda: replaced(report, answer),
        lambda _: None,
    )


class _Asks:
    """A policy that has every call asked about."""

    def __init__(self, reason: str) -> None:
        self._decision = Decision(Action.ASK, reason or "a rule wants a person to look at it")

    def decide(self, _: Prepared) -> Decision:
        return self._decision


async def _answer(name: str, ask: Callable[[], Any], allowed: tuple[type, ...]) -> Any:
    """Ask a hook; `_FAILED` if it raises, or gives what is no answer here."""
    answer = await guarded_async(f"hook {name} raised", ask, lambda _: _FAILED)
    if answer is None or answer is _FAILED or isinstance(answer, allowed):
        return answer
    kinds = ", ".join(kind.__name__ for kind in allowed)
    log.warning("hook %s gave a %s, not one of %s", name, type(answer).__name__, kinds)
    return _FAILED


def _ended(call: Invocation, status: TurnStatus, reason: str) -> ToolResult:
    _end(call, status, reason)
    return not_begun(call, status, reason)


def _end(call: Invocation, status: TurnStatus, reason: str) -> None:
    turn = None if call.aside is None else call.aside.turn
    if turn is not None:
        turn.end(status, reason)


def _too_late(call: Invocation) -> ToolResult | None:
    """Refuse a call whose turn was ended, as those that tools make come after it began."""
    turn = None if call.aside is None else call.aside.turn
    return None if turn is None or turn.ended is None else not_begun(call, *turn.ended)


def _of_the_whole(call: Invocation, result: ToolResult) -> ToolResult:
    """Give what hooks said of a call outside of a turn, and of what its tool called."""
    aside = call.aside
    if aside is None or call.depth or (aside.turn is not None and aside.alone is None):
        return result
    if aside.alone is not None and aside.alone.ended is not None:
        stopped = aside.alone.ended[0] is TurnStatus.TERMINATED
        result = msgspec.structs.replace(result, terminate=result.terminate or stopped)
    if not aside.messages:
        return result
    metadata = {**(result.metadata or {}), "messages": tuple(aside.messages)}
    return msgspec.structs.replace(result, metadata=metadata)
