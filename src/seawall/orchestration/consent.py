"""Ask about all steps before the first runs.

What was allowed belongs to the tool that was asked about, as it was then: if another has taken its
name, or a shortcut was redefined on the way, it does not count.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from seawall.contract.decision import Action, Decision, Prepared
from seawall.contract.result import ToolResult
from seawall.contract.sentences import joined
from seawall.contract.tool import Tool
from seawall.layers.risk_gate import Gate, verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from seawall.orchestration.front import Frame, Front
    from seawall.orchestration.steps import Step
    from seawall.pipeline.invocation import Invocation
    from seawall.pipeline.route import Route

    Values = Mapping[str, Any] | None


class Composite(Protocol):
    """A tool that consists of steps."""

    @property
    def name(self) -> str:
        """The tool's name."""
        ...

    @property
    def plan(self) -> Sequence[Step]:
        """Its steps."""
        ...

    def values(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """What its parameters are for these arguments."""
        ...


class Asked(msgspec.Struct, frozen=True, eq=False):
    """What was found out about one step."""

    tool: Tool
    approved: bool = False
    """A person was asked, and allowed it."""
    inner: Consent | None = None
    """The same about the steps it consists of."""


class Consent(msgspec.Struct, frozen=True, eq=False):
    """What was found out about all steps."""

    steps: tuple[Asked, ...]


class Refused(msgspec.Struct, frozen=True, eq=False):
    """A step that may not run, so none does."""

    at_step: int
    result: ToolResult


class Asking:
    """Asks about steps, those of shortcuts among them included."""

    def __init__(self, front: Front, find: Callable[[str], Composite | None]) -> None:
        self._front = front
        self._find = find

    async def about(
        self, steps: Sequence[Step], frame: Frame, values: Values, whose: Composite | None = None
    ) -> Consent | Refused:
        """Ask about each step that needs it, in order; the first that may not run ends it."""
        found: list[Asked] = []
        for index, step in enumerate(steps):
            route = self._front.route(step.tool)
            if route is None:
                return Refused(index, self._front.unknown(step.tool, frame.session))
            row = "a batch" if whose is None else whose.name
            where = f"step {index} of {row}, asked before any step runs"
            asked = await self._one(step, route, frame, values, where)
            if isinstance(asked, ToolResult):
                return Refused(index, asked)
            found.append(asked)
        return Consent(tuple(found))

    async def _one(
        self, step: Step, route: Route, frame: Frame, values: Values, where: str
    ) -> Asked | ToolResult:
        arguments = step.template.shown(values)
        is_exact = not step.template.steps and (values is not None or not step.template.names)
        call = self._front.call(route, arguments, frame)
        call.deadline = frame.deadline
        if not is_exact:
            call.prepare = lambda call: setattr(call, "arguments", arguments)
            where += "; what stands in {} is filled in later"
        elif call.prepared() is not None:
            return Asked(route.tool)  # it is refused where its arguments are known: nobody is asked
        inner = await self._inner(step, frame, call.arguments if is_exact else None)
        if isinstance(inner, Refused):
            return inner.result
        approved = await self._approved(route, call, where)
        if isinstance(approved, ToolResult):
            return approved
        return Asked(route.tool, approved, inner)

    async def _inner(
        self, step: Step, frame: Frame, arguments: Mapping[str, Any] | None
    ) -> Consent | Refused | None:
        composite = self._find(step.tool)
        if composite is None:
            return None
        values = None if arguments is None else composite.values(arguments)
        return await self.about(composite.plan, frame, values, composite)

    async def _approved(self, route: Route, call: Invocation, where: str) -> bool | ToolResult:
        gate = self._front.gate
        session = call.session
        decision = verdict(gate, call.as_prepared(), session.permissions, session.memory)
        if decision is not None and decision.action is Action.ALLOW:
            return False
        layer = self._front.gate_of(route, _telling(gate, where))
        if layer is None:
            return False
        result = await layer(call, _let_through)
        return True if result is _ALLOWED else result


_ALLOWED = ToolResult()


async def _let_through(_: Invocation) -> ToolResult:
    return _ALLOWED


def _telling(gate: Gate, where: str) -> Gate:
    """The same gate, which tells the person asked that this is one step of several."""
    confirm = gate.confirm
    if confirm is None:
        return gate

    def asked(prepared: Prepared, decision: Decision) -> Any:
        return confirm(prepared, Decision(decision.action, joined((decision.reason, where))))

    return msgspec.structs.replace(gate, confirm=asked)
