"""Ask a person about a call: once for calls that the same answer covers, and not for ever.

One question is open per session and tool. Calls that come meanwhile wait for its answer: one for
the session covers them all, one for this call only those with the same arguments; the others ask
afterwards, one by one. If whoever asked is cancelled, the next who waits asks.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from seawall.contract.decision import Action, Decision, Prepared
from seawall.pipeline.digest import canonical_text
from seawall.pipeline.foreign import guarded_async, log

if TYPE_CHECKING:
    from seawall.pipeline.clock import Clock
    from seawall.pipeline.invocation import Invocation

Confirm = Callable[[Prepared, Decision], Any]
"""Asks a person: gives an `Answer`, or an awaitable of one.

One that waits must be async, else it holds up the event loop. True and "yes" are ALLOW_ONCE, False
and "no" are DENY; an answer may also be given by its name. Anything else refuses the call.
"""


class Answer(StrEnum):
    """What a person says about a call."""

    ALLOW_ONCE = "allow_once"
    """This call, and those with the same arguments that are waiting already."""
    ALLOW_SESSION = "allow_session"
    """Whatever this session calls the tool with."""
    DENY = "deny"
    """Not in this session."""
    DENY_ONCE = "deny_once"


class NoAnswer(StrEnum):
    """Why there is no answer."""

    EXPIRED = "approval_expired"
    FAILED = "gate_failed"
    """What asks raised, or gave something that is no answer."""
    TOO_LATE = "deadline_exceeded"
    """The call's own time was over first."""


Outcome = Answer | NoAnswer

_ANSWERS: dict[str, Answer] = {
    **{answer.value: answer for answer in Answer},
    "allow": Answer.ALLOW_ONCE,
    "yes": Answer.ALLOW_ONCE,
    "no": Answer.DENY,
}

# If nobody has answered one question, nobody is there for those behind it.
_FOR_ALL = (Answer.ALLOW_SESSION, Answer.DENY, NoAnswer.EXPIRED)


class _Question:
    """A question that is open, and later what came of it; None if it was not asked to its end."""

    __slots__ = ("about", "outcome", "over")

    def __init__(self, about: str) -> None:
        self.about = about
        self.over = asyncio.Event()
        self.outcome: Outcome | None = None

    def covers(self, about: str) -> bool:
        return self.outcome in _FOR_ALL or (self.outcome is not None and self.about == about)


class Questions:
    """Asks about the calls of one tool."""

    def __init__(
        self,
        tool: str,
        confirm: Confirm,
        within_s: float | None,
        clock: Clock,
        on_ask: Callable[[], None],
    ) -> None:
        self._tool = tool
        self._confirm = confirm
        self._within_s = within_s
        self._clock = clock
        self._on_ask = on_ask

    async def outcome(self, call: Invocation, decision: Decision) -> Outcome:
        """Wait for the answer that covers this call, whoever asks for it."""
        prepared = call.as_prepared()
        about = canonical_text(prepared.arguments)
        # An event serves one loop, and a session may be used from several.
        key = (self._tool, asyncio.get_running_loop())
        questions: dict[Any, _Question] = call.session.memory.setdefault("risk_gate", {})
        while (question := questions.get(key)) is not None:
            with self._clock.limit(self._left_s(call)):
                await question.over.wait()
            if not question.over.is_set():
                return NoAnswer.TOO_LATE
            standing = self._standing(call)
            if standing is not None:
                return standing
            if question.outcome is not None and question.covers(about):
                return question.outcome

        question = questions[key] = _Question(about)
        try:
            outcome = await self._asked(call, prepared, decision, about)
            self._remember(call, outcome)
            if outcome is not NoAnswer.TOO_LATE:
                question.outcome = outcome
        finally:
            del questions[key]
            question.over.set()
        # Denied by somebody else meanwhile: that is stronger than any answer to this question.
        return Answer.DENY if self._standing(call) is Answer.DENY else outcome

    async def _asked(
        self, call: Invocation, prepared: Prepared, decision: Decision, about: str
    ) -> Outcome:
        left_s, within_s = self._left_s(call), self._within_s
        by_deadline = left_s is not None and (within_s is None or left_s < within_s)
        if left_s is not None and left_s <= 0:
            return NoAnswer.TOO_LATE
        self._on_ask()
        said: Outcome = NoAnswer.EXPIRED
        with self._clock.limit(left_s if by_deadline else within_s) as limit:
            said = await self._said(prepared, decision)
        if limit.expired:
            return NoAnswer.TOO_LATE if by_deadline else NoAnswer.EXPIRED
        if canonical_text(call.arguments) != about:
            log.warning("the arguments of %r were changed while it was asked about", self._tool)
            return NoAnswer.FAILED
        return said

    async def _said(self, prepared: Prepared, decision: Decision) -> Outcome:
        try:
            said = await guarded_async(
                f"asking about {self._tool!r} raised",
                lambda: self._confirm(prepared, decision),
                lambda _: NoAnswer.FAILED,
            )
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            return NoAnswer.FAILED  # something it waited for was cancelled, not this call
        return said if said is NoAnswer.FAILED else answer_of(said)

    def _left_s(self, call: Invocation) -> float | None:
        return None if call.deadline is None else call.deadline - self._clock.now()

    def _standing(self, call: Invocation) -> Answer | None:
        standing = call.session.permissions.decision(self._tool)
        if standing is None:
            return None
        return Answer.DENY if standing.action == Action.DENY else Answer.ALLOW_SESSION

    def _remember(self, call: Invocation, outcome: Outcome) -> None:
        permissions = call.session.permissions
        if outcome is Answer.DENY:
            permissions.deny(self._tool, "a person denied it for this session")
        elif outcome is Answer.ALLOW_SESSION and self._standing(call) is None:
            permissions.allow(self._tool, "a person allowed it for this session")


def answer_of(said: Any) -> Outcome:
    """Read what a confirm callback gave."""
    if said is True:
        return Answer.ALLOW_ONCE
    if said is False:
        return Answer.DENY
    if isinstance(said, str) and len(said) <= 64:
        name = said.strip().lower().replace("-", "_").replace(" ", "_")
        if name in _ANSWERS:
            return _ANSWERS[name]
    log.warning("asking gave a %s that is no answer; see Answer", type(said).__name__)
    return NoAnswer.FAILED
