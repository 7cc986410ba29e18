"""One call on its way: the only thing inside the pipeline that changes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import msgspec

from seawall.contract.failure import REASONS, Failure
from seawall.contract.policy import RunPolicy
from seawall.contract.result import ToolResult
from seawall.contract.span import Digest
from seawall.contract.tool import Tool
from seawall.pipeline.aside import Aside
from seawall.pipeline.copying import copied
from seawall.pipeline.session import Session

if TYPE_CHECKING:
    from collections.abc import Mapping

    from seawall.contract.decision import Prepared
    from seawall.contract.failure import FailureCode

Handler = Callable[["Invocation"], Awaitable[ToolResult]]
"""What a layer proceeds to: the next layer, or at the end the executor."""

MAX_HANDED = 16
"""Failures of other calls that are known for such, should a tool hand one on as its own."""

Progress = Callable[[Any, float | None, float | None], Any]
"""Listener of one call's progress: text or partial result, done, total."""


NOBODY = ("", "")


def _not_recorded(call: Invocation, result: ToolResult) -> None:  # noqa: ARG001  # nobody records
    call.attempt_open = False


class Leftovers:
    """How much of a call still runs after it was answered."""

    __slots__ = ("_then", "running")

    def __init__(self) -> None:
        self.running = 0
        self._then: list[Callable[[], None]] = []

    def ended(self) -> None:
        """One of them is over; with the last, whoever waits for it is told."""
        self.running -= 1
        if not self.running:
            waiting, self._then = self._then, []
            for work in waiting:
                work()

    def then(self, work: Callable[[], None]) -> None:
        """Do something when nothing runs any more: at once, if that is now."""
        if self.running:
            self._then.append(work)
        else:
            work()


class Invocation(msgspec.Struct, eq=False):
    """One call. Layers read it; what each may write is said at the field."""

    # Made for every call: a struct fills its fields in a third of the time that `__init__` takes.
    tool: Tool
    """What is called."""
    policy: RunPolicy
    """What its chain was made of."""
    prepare: Callable[[Invocation], ToolResult | None]
    """Sets the arguments, or gives the refusal; called by `prepared()` alone."""
    given: Any
    """Arguments as they came; never changed."""
    call_id: str
    """Joins all attempts, in spans and results."""
    session: Session
    """Of the caller."""
    arrived: float
    """When it came, in monotonic seconds."""
    pipeline: Any = None
    """The front door, for calls made by tools."""
    close_attempt: Callable[[Invocation, ToolResult], None] = _not_recorded
    """Record the attempt that just ended; for a layer that is about to begin another."""
    given_truncated: bool = False
    """Whether the provider cut the arguments off."""
    idempotency_key: str | None = None
    """The caller's, or one that is made when the tool asks for it."""
    on_progress: Progress | None = None
    """Who is told what the tool reports."""
    passage: Any = None
    """What hooks leave of its reports; None where no hook looks at them."""
    reports: Any = None
    """What is reported, on its way to who listens; made at the first report."""

    attempt: int = 0
    """Attempts begun. Written by the executor alone."""
    attempt_open: bool = False
    """Whether the newest attempt is in no book yet."""
    attempt_started: float = 0.0
    """When the newest began, in monotonic seconds."""
    attempt_wall: float = 0.0
    """The same in seconds since the epoch."""
    started: bool = False
    """Whether any attempt's executor has begun, so that an effect is possible."""
    begun: bool = False
    """The same of the newest attempt alone, which may end while it waits for a thread."""
    live: bool = False
    """Whether the executor runs right now: progress counts only then."""
    shown: bool = False
    """Whether output was shown already: such a call is never tried again."""
    executed_s: float | None = None
    """Time inside the executor over all attempts; None if it never began."""
    progress_at: float = 0.0
    """When it last reported; kept only under a policy that bounds silence."""
    error: BaseException | None = None
    """What the last attempt raised, for classifying by type; dropped when the call ends."""
    cancel_reason: str | None = None
    """Why the newest attempt is being given up."""

    unprepared: bool = True
    """Whether the arguments are still to be parsed and checked."""
    refusal: ToolResult | None = None
    """Why the arguments cannot be used, once they were prepared."""
    _arguments: Any = None
    bound: Any = None
    """What the executor gets instead of the JSON arguments, from the tool's own check."""
    own_of: Callable[[Any], Any] | None = None
    """Makes what an attempt gets of the arguments, where the schema says all about them."""
    mended: tuple[str, ...] = ()
    """What was mended in the arguments, as in `Span.mended`."""
    ignored: tuple[str, ...] = ()
    """Names of arguments that the tool does not take, and does not get."""
    digest: Digest | None = None
    """Of the arguments; made when somebody asks."""

    timeout_s: float | None = None
    """The caller's own limit for each attempt, instead of the policy's."""
    deadline: float | None = None
    """Monotonic seconds after which nothing of this call is begun."""
    rated: float | None = None
    """When the rate limit was asked, for the newest attempt."""
    marks: dict[str, float] | None = None
    """When other layers decided about the newest attempt."""
    verdicts: tuple[str, ...] = ()
    """What layers decided so far, as in `Span.verdicts`."""
    decided: tuple[str, str] = NOBODY
    """Who let it run or did not (policy, session, person, approval), and why."""
    key: str = ""
    """Fingerprint of the rate limit's key, if it has one."""
    budgeted: bool = False
    """Whether a budget of extra attempts has counted this call."""

    outer: Invocation | None = None
    """The call whose tool makes this one."""
    depth: int = 0
    """How many calls of tools it is inside of."""
    batch_id: str | None = None
    """Of the batch or turn this call belongs to."""
    aside: Aside | None = None
    """What turns and hooks keep about it; made by `beside()`."""
    handed: tuple[Failure, ...] = ()
    """Failures without an effect of calls that its tool made, the newest; it may hand one on."""
    reached: bool = False
    """Whether a call of its tool may have changed something."""
    leftovers: Leftovers | None = None
    """What goes on although an attempt was given up: threads, tasks that are let go."""

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        """Show no arguments."""
        return [("call_id", self.call_id)]

    __repr__ = object.__repr__

    def left_behind(self) -> Leftovers:
        """Note that something goes on after its attempt; call `.ended()` once it does not."""
        if self.leftovers is None:
            self.leftovers = Leftovers()
        self.leftovers.running += 1
        return self.leftovers

    def fork(self, attempt: int) -> Invocation:
        """Make the call of an attempt that runs beside others: same arguments, own books.

        `attempt` is the number of those before it. Call after `prepared()` gave None.
        """
        other = Invocation(
            self.tool,
            self.policy,
            self.prepare,
            self.given,
            self.call_id,
            self.session,
            self.arrived,
        )
        if self.leftovers is None:
            self.leftovers = Leftovers()
        for name in _OF_ALL_ATTEMPTS:
            setattr(other, name, getattr(self, name))
        other.attempt = attempt
        other.marks, self.marks = self.marks, None  # said once, with the first of them
        return other

    def beside(self) -> Aside:
        """Give what turns and hooks keep about this call, made at the first asking."""
        if self.aside is None:
            self.aside = Aside()
        return self.aside

    def belongs_to(self, outer: Invocation, *, hooked: bool = True) -> None:
        """Make this a call of another call's tool: one turn, one place for messages of hooks."""
        self.outer = outer
        if hooked or outer.aside is not None:
            self.aside = outer.beside().shared()
        if outer.policy.idle_timeout_s is not None:
            self.on_progress = lambda *_: outer.reported()

    async def hears_of(self, inner: Invocation, running: Awaitable[ToolResult]) -> ToolResult:
        """Wait for a call that this call's tool makes, and keep what it may have done."""
        failure = None
        try:
            result = await running
            failure = result.failure
        finally:
            if inner.started and (failure is None or failure.may_have_run is not False):
                self.reached = self.reached or not inner.tool.annotations.is_read_only
            elif failure is not None:
                self.handed = (*self.handed[1 - MAX_HANDED :], failure)
        return result

    def prepared(self) -> ToolResult | None:
        """Parse, coerce and check the arguments, once per call; the refusal if they are no good."""
        if self.unprepared:
            self.refusal = self.prepare(self)
            self.unprepared = False
        return self.refusal

    def end_attempt(self, now: float, attempt: int | None = None) -> None:
        """The executor has ended, or is let go and no longer this call's.

        Of an `attempt` that was let go, nothing is noted: the call is at another, or has ended.
        """
        if attempt is not None and not (self.live and self.attempt == attempt):
            return
        self.live = False
        if self.begun:
            self.executed_s = (self.executed_s or 0.0) + now - self.attempt_started

    def reported(self) -> None:
        """Keep when progress was made, where the policy bounds silence."""
        if self.policy.idle_timeout_s is not None:
            self.progress_at = self.pipeline.clock.now()

    def rewrite(self, arguments: Mapping[str, Any]) -> ToolResult | None:
        """Take other arguments and prepare them anew; the refusal if they are no good."""
        self.given = arguments
        self._arguments = self.own_of = self.bound = self.digest = None
        self.mended = self.ignored = ()
        self.unprepared = True
        return self.prepared()

    def known_arguments(self) -> Any:
        """The prepared arguments, or what was given while there are none."""
        return self.given if self._arguments is None else self._arguments

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments to run with. Asking before `prepared()` gave None is a defect."""
        if self._arguments is None:
            self.prepared()
        found: dict[str, Any] | None = self._arguments
        if found is None or self.refusal is not None:
            raise RuntimeError("the arguments of this call were refused; there are none")
        return found

    @arguments.setter
    def arguments(self, value: dict[str, Any]) -> None:
        self._arguments = value
        self.own_of = None

    def as_prepared(self) -> Prepared:
        """What policies, hooks and people are shown. Call after `prepared()` gave None."""
        from seawall.contract.decision import Prepared  # noqa: PLC0415  # only on the asking path

        return Prepared(
            tool=self.tool,
            # A copy: whoever is shown it cannot change what will run.
            arguments=copied(self.arguments),
            call_id=self.call_id,
            session_id=self.session.id,
            caller=self.session.caller,
            digest=self.digest,
            mended=self.mended,
            ignored=self.ignored,
        )

    def note(self, verdict: str) -> None:
        """Keep what a layer decided, as `layer:verdict`, for the span."""
        self.verdicts = (*self.verdicts, verdict)

    def mark(self, name: str, seconds: float) -> None:
        """Keep when a layer decided, or what length it chose; a field of `Instants` by its name."""
        if self.marks is None:
            self.marks = {}
        self.marks[name] = seconds

    def lines_up(self, at: float) -> None:
        """Keep when it began to wait for a place, the first if it waits for several."""
        if self.marks is None or "lined" not in self.marks:
            self.mark("lined", at)

    def refuse(self, code: FailureCode, message: str, **fields: Any) -> ToolResult:
        """Build the result of a refusal; `may_have_run` is false while nothing was begun."""
        if "may_have_run" not in fields and not self.started:
            fields["may_have_run"] = False
        return ToolResult.failed(code, message, call_id=self.call_id, tool=self.tool.name, **fields)


# A struct's own way to set a field looks at what the collector must see, and takes six times as
# long; this one is seen by it from the start, for what it holds.
Invocation.__setattr__ = object.__setattr__  # type: ignore[method-assign]  # as in plain classes
Invocation.__delattr__ = object.__delattr__  # type: ignore[method-assign]  # both have one slot


def why_cancelled(cancel: BaseException) -> str:
    """Give the reason that whoever cancelled gave, if it is one of ours: `task.cancel(reason)`."""
    said = cancel.args[0] if cancel.args else None
    return said if isinstance(said, str) and said in REASONS else "cancelled"


_OF_ALL_ATTEMPTS = (
    "_arguments",
    "aside",
    "batch_id",
    "bound",
    "close_attempt",
    "deadline",
    "depth",
    "digest",
    "idempotency_key",
    "ignored",
    "key",
    "leftovers",
    "mended",
    "on_progress",
    "outer",
    "own_of",
    "passage",
    "pipeline",
    "rated",
    "refusal",
    "timeout_s",
    "unprepared",
    "verdicts",
)
"""What attempts that run beside each other have in common."""
