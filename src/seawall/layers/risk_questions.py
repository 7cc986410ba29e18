"""Ask a person about a call: once for calls that the same answer covers, and not for ever.

One question is open per session, gate and tool; a tool that took another's name has its own. Calls
that come meanwhile wait for its answer. One for the session covers them all; one that lets this
call run lets no other run, however equal; one that keeps this call from running counts for those
with the same arguments. Who is not covered asks afterwards, one by one. If whoever asked is
cancelled, the next who waits asks. An allowance holds for the definition that a person was shown.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from enum import StrEnum
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import msgspec

from seawall.contract.decision import Action, Decision, Prepared
from seawall.pipeline.digest import canonical_text
from seawall.pipeline.foreign import guarded, log, log_frames
from seawall.pipeline.session import ALLOWED as ALLOWED_BY_PROGRAM
from seawall.pipeline.session import DENIED as DENIED_BY_PROGRAM

if TYPE_CHECKING:
    from seawall.contract.tool import Tool
    from seawall.pipeline.clock import Clock
    from seawall.pipeline.invocation import Invocation
    from seawall.pipeline.session import Permissions

T = TypeVar("T")

Confirm = Callable[[Prepared, Decision], Any]
"""Asks a person: gives an `Answer`, or an awaitable of one.

One that waits must be async, else it holds up the event loop. True and "yes" are ALLOW_ONCE, False
and "no" are DENY; an answer may also be given by its name. Anything else refuses the call.
"""


ALLOWED = "a person allowed it for this session"
DENIED = "a person denied it for this session"
STANDING = frozenset({ALLOWED, DENIED, ALLOWED_BY_PROGRAM, DENIED_BY_PROGRAM})
"""What we say ourselves of an answer that stands."""


class Asker(Protocol):
    """As much of a gate as a question needs."""

    @property
    def confirm(self) -> Confirm | None:
        """Asks a person."""
        ...

    @property
    def answer_within_s(self) -> float | None:
        """How long the person has."""
        ...


class Answer(StrEnum):
    """What a person says about a call."""

    ALLOW_ONCE = "allow_once"
    """This call and no other: an equal one that waits is asked about after it."""
    ALLOW_SESSION = "allow_session"
    """Whatever this session calls the tool with, while the tool is described as it was then."""
    DENY = "deny"
    """Not in this session."""
    DENY_ONCE = "deny_once"
    """Not now: neither this call, nor those with the same arguments that are waiting already."""
    LATER = "later"
    """Nobody can be asked now: the call waits where approvals are on, else it is refused."""


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

# None of these lets a call run. ALLOW_ONCE must not be among them: each run needs a yes of its own.
_FOR_EQUAL = (Answer.DENY_ONCE, Answer.LATER, NoAnswer.FAILED)


GRACE_S = 1.0
"""How long one who was told that it is too late may take to end, before it is left alone."""

MAX_DEFINITIONS = 16
"""Definitions of one name that a session remembers a person's allowance for."""


class _Question:
    """A question that is open, and later what came of it; None if it was not asked to its end."""

    __slots__ = ("about", "outcome", "over", "whose")

    def __init__(self, about: str, whose: tuple[Tool, Asker]) -> None:
        self.about = about
        # Held while it is open: it is found by their identity.
        self.whose = whose
        self.over = asyncio.Event()
        self.outcome: Outcome | None = None

    def covers(self, about: str) -> bool:
        return self.outcome in _FOR_ALL or (self.outcome in _FOR_EQUAL and self.about == about)


class _Allowed:
    """What a person allowed under one name: a permission, and the definitions it was given for."""

    __slots__ = ("definitions", "known", "standing")

    def __init__(self, standing: Decision | None, definitions: list[Any]) -> None:
        self.standing = standing
        self.definitions = definitions
        self.known: Tool | None = None
        """One of these definitions, so that its fingerprint is not made for every call."""

    def covers(self, tool: Tool) -> bool:
        if self.known is not tool and _fingerprint(tool) in self.definitions:
            self.known = tool
        return self.known is tool


def standing_for(
    tool: Tool, permissions: Permissions, memory: Mapping[str, Any]
) -> Decision | None:
    """What the session was told about a tool; None if that was about another definition of it.

    That is so of what a person answered. What the program allows or denies holds for the name.
    """
    standing = permissions.decision(tool.name)
    if standing is None or standing.action != Action.ALLOW:
        return standing
    allowed: _Allowed | None = memory.get(_ALLOWED, {}).get(tool.name)
    if allowed is None or allowed.standing is not standing or allowed.covers(tool):
        return standing
    return None


_ALLOWED = "risk_gate:allowed"


class Questions:
    """Asks about the calls of one tool. `left` holds those who were asked and do not end."""

    def __init__(
        self,
        tool: Tool,
        gate: Asker,
        clock: Clock,
        on_ask: Callable[[], None],
        left: set[asyncio.Task[Any]],
    ) -> None:
        self._tool = tool
        self._gate = gate
        self._clock = clock
        self._on_ask = on_ask
        self._left = left

    async def outcome(self, call: Invocation, decision: Decision) -> Outcome:
        """Wait for the answer that covers this call, whoever asks for it."""
        prepared = call.as_prepared()
        about = canonical_text(prepared.arguments)
        # An event serves one loop, and a session may be used from several.
        key = (id(self._tool), id(self._gate), asyncio.get_running_loop())
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

        question = questions[key] = _Question(about, (self._tool, self._gate))
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
        left_s, within_s = self._left_s(call), self._gate.answer_within_s
        by_deadline = left_s is not None and (within_s is None or left_s < within_s)
        if left_s is not None and left_s <= 0:
            return NoAnswer.TOO_LATE
        self._on_ask()
        cancels = _cancels()
        said = self._begun(prepared, decision)
        if isinstance(said, asyncio.Task):
            said = await self._heard(call, said, left_s if by_deadline else within_s)
        if _cancels() > cancels:
            # Nobody waits for this call any more, whatever the answer.
            raise asyncio.CancelledError
        if said is NoAnswer.EXPIRED:
            return NoAnswer.TOO_LATE if by_deadline else NoAnswer.EXPIRED
        if canonical_text(call.arguments) != about:
            log.warning("arguments of %r were changed while it was asked about", self._tool.name)
            return NoAnswer.FAILED
        return said if isinstance(said, NoAnswer) else answer_of(said)

    def _begun(self, prepared: Prepared, decision: Decision) -> Any:
        """Begin to ask: the answer, or a task that gives it."""

        def ask() -> Any:
            said: Any = self._gate.confirm and self._gate.confirm(prepared, decision)
            # A task of its own can be left, however deaf it is to being cancelled.
            waits = hasattr(said, "__await__")
            return asyncio.create_task(self._awaited(said)) if waits else said

        try:
            return verdict_of(self._what, ask, NoAnswer.FAILED)
        except asyncio.CancelledError:
            return NoAnswer.FAILED  # something it used was cancelled; see below if it was the call

    async def _awaited(self, saying: Any) -> Any:
        try:
            return await saying
        except (asyncio.CancelledError, KeyboardInterrupt):
            raise
        except BaseException as error:  # noqa: BLE001  # foreign: whatever it is, it is no answer
            log_frames(self._what, error)
            return NoAnswer.FAILED

    async def _heard(
        self, call: Invocation, asking: asyncio.Task[Any], within_s: float | None
    ) -> Any:
        """Wait for what is said; one that does not end in time is cancelled, and then left."""
        in_time = False
        try:
            in_time = await self._ended(asking, within_s)
        finally:
            if not in_time:
                self._let_go(asking)
        if in_time:
            return NoAnswer.FAILED if asking.cancelled() else asking.result()
        left_s = self._left_s(call)
        await self._ended(asking, GRACE_S if left_s is None else min(GRACE_S, left_s))
        return NoAnswer.EXPIRED

    async def _ended(self, asking: asyncio.Task[Any], seconds: float | None) -> bool:
        """Wait so long for a task, and tell whether it ended before; it is not cancelled."""
        if seconds is None:
            await asyncio.wait({asking})
            return True
        if seconds <= 0:
            return False
        rung, timer = self._clock.alarm(seconds)
        try:
            await asyncio.wait({asking, rung}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            timer.cancel()
        return not rung.done()

    def _let_go(self, asking: asyncio.Task[Any]) -> None:
        self._left.add(asking)
        asking.add_done_callback(self._forget)
        asking.cancel()

    def _forget(self, ended: asyncio.Task[Any]) -> None:
        self._left.discard(ended)
        if not ended.cancelled():
            ended.exception()  # looked at, else asyncio complains; logged where it was raised

    @property
    def _what(self) -> str:
        return f"asking about {self._tool.name!r} raised"

    def _left_s(self, call: Invocation) -> float | None:
        return None if call.deadline is None else call.deadline - self._clock.now()

    def _standing(self, call: Invocation) -> Answer | None:
        session = call.session
        standing = standing_for(self._tool, session.permissions, session.memory)
        if standing is None:
            return None
        return Answer.DENY if standing.action == Action.DENY else Answer.ALLOW_SESSION

    def _remember(self, call: Invocation, outcome: Outcome) -> None:
        if outcome is Answer.DENY:
            call.session.permissions.deny(self._tool.name, DENIED)
        elif outcome is Answer.ALLOW_SESSION and self._standing(call) is None:
            self._allow(call)

    def _allow(self, call: Invocation) -> None:
        name, permissions = self._tool.name, call.session.permissions
        every: dict[str, _Allowed] = call.session.memory.setdefault(_ALLOWED, {})
        former, standing = every.get(name), permissions.decision(name)
        definitions = [_fingerprint(self._tool)]
        if former is not None and standing is not None and former.standing is standing:
            definitions = [*former.definitions, *definitions][-MAX_DEFINITIONS:]
        permissions.allow(name, ALLOWED)
        every[name] = _Allowed(permissions.decision(name), definitions)


def verdict_of(what: str, work: Callable[[], T], otherwise: T) -> T:
    """Run foreign code that decides; whatever it raises is `otherwise`, save a cancel or Ctrl-C."""
    try:
        return work()
    except (asyncio.CancelledError, KeyboardInterrupt):
        raise
    except BaseException as error:  # noqa: BLE001  # a gate must not end without a verdict
        log_frames(what, error)
        return otherwise


def _cancels() -> int:
    task = asyncio.current_task()
    return 0 if task is None else task.cancelling()


def _fingerprint(tool: Tool) -> Any:
    """What a person saw of a tool when they were asked; two that differ are two definitions."""
    seen = [
        tool.description,
        tool.input_schema,
        tool.risk,
        msgspec.structs.asdict(tool.annotations),
    ]

    def digest() -> Any:
        text = json.dumps(seen, sort_keys=True, default=_plain)
        return blake2b(text.encode(), digest_size=16).hexdigest()

    # One that cannot be written down equals no other.
    return guarded(f"the definition of {tool.name!r} is no JSON", digest, lambda _: tool)


def _plain(value: Any) -> Any:
    """Make JSON of what may stand in a schema beside it; anything else is refused."""
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"a {type(value).__name__} is no JSON")


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
