"""Answers to calls of names that cannot be called: nothing is run and nothing is spent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from seawall.contract.decision import Action
from seawall.contract.failure import FailureCode
from seawall.contract.result import ToolResult
from seawall.pipeline.context import MAX_DEPTH
from seawall.pipeline.foreign import masked, told

if TYPE_CHECKING:
    from collections.abc import Callable

    from seawall.contract.tool import ToolCall
    from seawall.orchestration.chains import Chains
    from seawall.orchestration.deciding import Deciding
    from seawall.orchestration.equipment import Equipment
    from seawall.orchestration.loop import LoopDetector
    from seawall.pipeline.invocation import Invocation
    from seawall.pipeline.route import Route
    from seawall.pipeline.session import Session
    from seawall.registry.registry import Registry

MAX_SHOWN = 80
MAX_CATEGORIES = 20


class UnknownNames:
    """Answers for the names that a pipeline cannot call, and keeps the answers in its books."""

    def __init__(
        self,
        registry: Registry,
        chains: Chains,
        deciding: Deciding,
        equipment: Equipment,
        invocation: Callable[[Route, Any, str, Session], Invocation],
        new_id: Callable[[], str],
    ) -> None:
        self._registry = registry
        self._chains = chains
        self._deciding = deciding
        self._digester = equipment.digester
        self._metrics = equipment.metrics
        self._recorders = equipment.recorders
        self._invocation = invocation
        self._new_id = new_id

    def answer(
        self,
        name: Any,
        arguments: Any,
        call_id: str | None,
        session: Session,
        watch: LoopDetector | None = None,
    ) -> ToolResult:
        """Say that there is no such tool, or why it is set aside; or that this goes in circles."""
        answer = self._kept(name, arguments, call_id or self._new_id(), session, None)
        if watch is None:
            return answer
        digest = self._digester.of_any(f"unknown {answer.tool}", arguments)
        return watch.unknown(session, answer.tool, digest, answer)

    def answer_with(
        self, asked: ToolCall, call_id: str, session: Session, result: ToolResult
    ) -> ToolResult:
        """Give this result, as nothing was looked at."""
        return self._kept(asked.name, asked.arguments, call_id, session, result)

    def refusal(self, name: Any, call_id: str, session: Session) -> ToolResult:
        """Say the same, and keep it nowhere."""
        reason = self._registry.quarantine_reason(name) if isinstance(name, str) else None
        if reason is not None:
            return quarantined(name, reason, call_id)
        return no_such_tool(self._registry, name, call_id, allowed=self._usable(session))

    def _kept(
        self,
        name: Any,
        arguments: Any,
        call_id: str,
        session: Session,
        instead: ToolResult | None,
    ) -> ToolResult:
        reason = self._registry.quarantine_reason(name) if isinstance(name, str) else None
        tool = None if reason is None else self._registry.get(name)
        if tool is not None:
            route = self._chains.of_set_aside(tool)
            call = self._invocation(route, arguments, call_id, session)
            call.refusal = instead or quarantined(name, reason or "", call_id)
            return route.finish(call, call.refusal)
        refusal = self.refusal(name, call_id, session) if instead is None else instead
        failure = refusal.failure
        if failure is not None and instead is None:
            self._metrics.suggested(near=bool(failure.hints))
        for recorder in self._recorders:
            told((recorder.unknown,))
        return refusal

    def _usable(self, session: Session) -> Callable[[str], bool]:
        """Which names may be hinted at: none that session or policy deny, or that is set aside."""
        listed = self._deciding.allowlist

        def usable(name: str) -> bool:
            standing = session.permissions.decision(name)
            route = self._chains.routes.get(name)
            if route is None or (standing is not None and standing.action is Action.DENY):
                return False
            return listed is None or listed.for_tool(route.tool).action is not Action.DENY

        return usable


def no_such_tool(
    registry: Registry, name: Any, call_id: str, *, allowed: Callable[[str], bool] | None = None
) -> ToolResult:
    """Say which names are near, or which categories there are; never the whole list.

    A name for which `allowed` says no is never a hint.
    """
    asked = name if isinstance(name, str) else ""
    hints = registry.suggest(asked, allowed=allowed)
    count = len(registry)
    there_are = {0: "there are no tools", 1: "there is 1 tool"}.get(
        count, f"there are {count} tools"
    )
    if hints:
        near = ", ".join(hints)
        guidance = (
            f"Nothing was run. Near names: {near}. Call one of them only if it is what you meant."
        )
    elif count:
        kinds = registry.categories()
        more = ", …" if len(kinds) > MAX_CATEGORIES else ""
        guidance = (
            f"Nothing was run. No name is near; the tools there are belong to:"
            f" {', '.join(kinds[:MAX_CATEGORIES])}{more}. Do not guess names."
        )
    else:
        guidance = "Nothing was run. Go on without tools."
    return ToolResult.failed(
        FailureCode.NOT_FOUND,
        f"no tool has the name {shown(asked)}; {there_are}"
        if asked
        else f"the call names no tool; {there_are}",
        call_id=call_id,
        tool=asked[:MAX_SHOWN],
        reason="tool_not_found",
        guidance=guidance,
        layer="registry",
        hints=hints,
        may_have_run=False,
    )


def quarantined(name: str, reason: str, call_id: str) -> ToolResult:
    """Say that a tool is set aside, and why."""
    return ToolResult.failed(
        FailureCode.UNSUPPORTED,
        f"{name} is set aside, as its declaration is faulty: {reason[:300]}",
        call_id=call_id,
        tool=name,
        reason="tool_quarantined",
        layer="registry",
        may_have_run=False,
    )


def shown(name: str) -> str:
    """Quote a name that a model made up: bounded, printable, masked."""
    head = masked(name[:MAX_SHOWN])
    printable = "".join(char if char.isprintable() else "?" for char in head)
    printable = printable.encode("utf-8", "replace").decode()
    return f'"{printable}…"' if len(name) > MAX_SHOWN else f'"{printable}"'


def too_deep(name: str) -> ToolResult:
    """Say that tools have called each other too often for this call."""
    return ToolResult.failed(
        FailureCode.PERMISSION_DENIED,
        f"tools may call tools {MAX_DEPTH} deep, and this call would be deeper",
        reason="denied_by_policy",
        layer="pipeline",
        tool=name,
        may_have_run=False,
    )
