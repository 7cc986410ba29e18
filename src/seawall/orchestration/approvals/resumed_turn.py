"""A turn that was frozen, run after its answer: each call exactly once, hooks not asked again."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from seawall.contract.result import ToolResult
from seawall.layers.risk_gate import APPROVED
from seawall.orchestration.turn import Turn

if TYPE_CHECKING:
    from collections.abc import Mapping

    from seawall.orchestration.barrier import Ticket
    from seawall.orchestration.calls import Member
    from seawall.pipeline.aside import Turnstile
    from seawall.pipeline.invocation import Invocation
    from seawall.pipeline.route import Route


class Planned(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """What is to happen to one call of a turn that is resumed."""

    kept: ToolResult | None = None
    """Its result, where it is not to run."""
    blocks: bool = False
    """Whether because of it no other call may run."""
    arguments: dict[str, Any] | None = None
    approved: bool = False
    key: str = ""
    again: bool = False
    """Whether it may run although it was begun before."""
    prepare: Callable[[Any], ToolResult | None] | None = None


class Books(Protocol):
    """Writes down what becomes of the calls."""

    async def begin(self, call: Invocation, position: int, *, again: bool) -> ToolResult | None:
        """Write down that a call is about to run; the refusal if it may not."""
        ...

    async def settle(self, position: int, result: ToolResult, *, ran: bool) -> None:
        """Write down how it ended; `ran` says whether anything of it was begun."""
        ...

    def not_begun(self, position: int) -> None:
        """Take back that it is about to run: it is cancelled, and nothing of it was begun."""
        ...


class ResumedTurn(Turn):
    """The turn, with what was found out about each call."""

    def __init__(
        self, *arguments: Any, plan: Mapping[int, Planned], books: Books, **options: Any
    ) -> None:
        super().__init__(*arguments, **options)
        self._plan = plan
        self._books = books
        self._begun: dict[int, _Begun] = {}

    @property
    def _gates_first(self) -> bool:
        return True

    async def _result(self, member: Member, ticket: Ticket | None) -> ToolResult:
        planned = self._plan[member.position]
        if planned.kept is not None:
            return planned.kept
        try:
            result = await super()._result(member, ticket)
            await self._books.settle(member.position, result, ran=self._has_run(member))
        except BaseException:
            if not self._has_run(member):
                self._books.not_begun(member.position)
            raise
        finally:
            begun = self._begun.pop(member.position, None)
            if begun is not None:
                begun.free()
        return result

    def _has_run(self, member: Member) -> bool:
        call = self._calls.get(member)
        return call is not None and (call.started or call.beside().handed_on)

    def _call(self, route: Route, member: Member, ticket: Ticket | None) -> Invocation:
        call = super()._call(route, member, ticket)
        planned = self._plan[member.position]
        beside = call.beside()
        beside.resumed = True
        if beside.turnstile is not None:
            begun = _Begun(beside.turnstile, call, member.position, planned, self._books)
            beside.turnstile = self._begun[member.position] = begun
        call.idempotency_key = planned.key
        if planned.approved:
            call.note(APPROVED)
        if planned.prepare is not None:
            call.prepare = planned.prepare
        return call


class _Begun:
    """The turnstile of a resumed call: past it, the call counts as begun.

    Its place is free again only when its end is stored, so that in a row nothing begins before.
    """

    def __init__(
        self, inner: Turnstile, call: Invocation, position: int, planned: Planned, books: Books
    ) -> None:
        self._inner = inner
        self._call = call
        self._position = position
        self._planned = planned
        self._books = books
        self._is_in = False

    async def enter(self) -> ToolResult | None:
        refusal = await self._inner.enter()
        if refusal is not None:
            return refusal
        self._is_in = True
        return await self._books.begin(self._call, self._position, again=self._planned.again)

    def leave(self) -> None:
        """Stay: there is still something to be stored."""

    def free(self) -> None:
        if self._is_in:
            self._is_in = False
            self._inner.leave()
