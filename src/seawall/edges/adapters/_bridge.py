"""What all bridges from a framework into a pipeline share: sessions, calls, questions."""

from __future__ import annotations

import asyncio
import functools
import itertools
import threading
import weakref
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, Self

import msgspec

from seawall.contract.errors import ConfigurationError, Fault
from seawall.contract.failure import FailureCode
from seawall.contract.result import ToolResult
from seawall.orchestration.approved import call_approved, call_approved_sync, would_ask
from seawall.orchestration.pipeline import Pipeline
from seawall.pipeline.foreign import guarded_async
from seawall.pipeline.session import Session

if TYPE_CHECKING:
    from types import TracebackType

    from seawall.pipeline.invocation import Progress

Approvals = Literal["pipeline", "framework"]
"""Who asks a person: the pipeline's own `confirm`, or the framework in its own way."""

SessionOf = Session | Callable[[Any], Session | None]
"""The session of all calls, or what gives it for what the framework says of a call."""

MAX_SESSIONS = 1_000
"""Conversations that are remembered; the one that was quiet for longest is forgotten first."""


MAX_WAITING = 100
"""Reports of one call's progress that wait to be sent."""


class Bridge:
    """One pipeline as a framework's tools see it."""

    def __init__(
        self, pipeline: Any, *, session: SessionOf | None = None, approvals: Approvals = "pipeline"
    ) -> None:
        if approvals not in ("pipeline", "framework"):
            said = f"must be 'pipeline' or 'framework'; it is {approvals!r}"
            raise ConfigurationError([Fault(said, "approvals")])
        self.pipeline = pipeline if isinstance(pipeline, Pipeline) else Pipeline(pipeline)
        self.by_framework = approvals == "framework"
        self._given = session
        self._sessions: OrderedDict[str, Session] = OrderedDict()
        self._runs: dict[int, tuple[weakref.ref[object], str]] = {}
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()  # frameworks make calls in threads of their own

    def session(self, conversation: str | None, run: Any, services: Mapping[str, Any]) -> Session:
        """Give the session of a call, offering what its framework hands to tools.

        `conversation` is the framework's own name for it; without one, and without a session that
        was given, each call is on its own.
        """
        given = self._given(run) if callable(self._given) else self._given
        return (given or self._known(conversation)).offering(services)

    def run_of(self, shared: object) -> str:
        """Name a run that has no name by an object that all its calls share, while it lives."""
        with self._lock:
            known = self._runs.get(id(shared))
            if known is None or known[0]() is not shared:
                known = (weakref.ref(shared), f"run-{next(self._numbers)}")
                self._runs[id(shared)] = known
                if len(self._runs) > MAX_SESSIONS:
                    del self._runs[next(iter(self._runs))]
            return known[1]

    def _known(self, conversation: str | None) -> Session:
        if conversation is None:
            return Session()
        with self._lock:
            found = self._sessions.pop(conversation, None) or Session(conversation)
            self._sessions[conversation] = found
            if len(self._sessions) > MAX_SESSIONS:
                self._sessions.popitem(last=False)
            return found

    async def call(
        self,
        name: str,
        arguments: str | Mapping[str, Any] | None,
        *,
        call_id: str | None,
        session: Session,
        approved: bool = False,
        on_progress: Progress | None = None,
    ) -> ToolResult:
        """Make a call that the framework's agent wants, under the framework's own call id."""
        if approved and self.by_framework:
            return await call_approved(
                self.pipeline,
                name,
                arguments,
                call_id=call_id,
                session=session,
                on_progress=on_progress,
            )
        return await self.pipeline.call(
            name, arguments, call_id=call_id, session=session, on_progress=on_progress
        )

    def call_sync(
        self, name: str, arguments: str | Mapping[str, Any] | None, **options: Any
    ) -> ToolResult:
        """Make the same call from code that is not async, in any thread but the loop's own."""
        if options.pop("approved", False) and self.by_framework:
            return call_approved_sync(self.pipeline, name, arguments, **options)
        return self.pipeline.call_sync(name, arguments, **options)

    def question(self, name: str, arguments: Any, session: Session) -> str | None:
        """What a person is to be asked about a call before it is made; None if nothing is.

        A pipeline with a `confirm` of its own asks by itself.
        """
        if not self.by_framework or self.pipeline._deciding.gate.confirm is not None:  # noqa: SLF001  # as `approved` does
            return None
        asked = would_ask(self.pipeline, name, arguments, session=session)
        if asked is None:
            return None
        return f"{name} needs a person's approval ({asked[1].reason})"

    def may_repeat(self, name: str) -> bool:
        """Whether a tool does no more when it runs twice than when it runs once."""
        registry = self.pipeline.registry
        tool = registry.get(registry.own_name(name) or name)
        return tool is not None and tool.retry_safe

    def asks(self, result: ToolResult) -> bool:
        """Whether a result means that the framework is to ask a person."""
        failure = result.failure
        return (
            self.by_framework
            and failure is not None
            and failure.reason == "approval_required"
            and failure.layer != "executor"
        )


def denied(call_id: str, tool: str, message: str = "") -> ToolResult:
    """Build the result of a call that a person did not allow."""
    said = f"{tool} was not run: a person denied this call"
    return ToolResult.failed(
        FailureCode.PERMISSION_DENIED,
        f"{said}: {message}" if message else said,
        call_id=call_id,
        tool=tool,
        reason="approval_denied",
        layer="risk_gate",
        guidance="Do not repeat this call; choose another way, or tell the user why it is needed.",
        may_have_run=False,
    )


class Sending:
    """Sends a tool's progress on while a call is made, in order and without holding the tool up.

    What is not sent yet when the call ends is sent before its result; if the call is cancelled, no
    more is. Of a tool that reports faster than anybody reads, the last `MAX_WAITING` are kept.
    """

    def __init__(self, send: Callable[[float | None, float | None, str], Any]) -> None:
        self._send = send
        self._waiting: deque[tuple[float | None, float | None, str]] = deque(maxlen=MAX_WAITING)
        self._sender: asyncio.Task[None] | None = None
        self.count = 0

    def __call__(self, report: Any, done: float | None, total: float | None) -> None:
        """Take a report of a running tool."""
        self.count += 1
        self._waiting.append((done, total, report if isinstance(report, str) else report.text))
        if self._sender is None or self._sender.done():
            self._sender = asyncio.ensure_future(self._sent())

    async def _sent(self) -> None:
        while self._waiting:
            news = self._waiting.popleft()
            await guarded_async(
                "progress could not be sent", functools.partial(self._send, *news), lambda _: None
            )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None
    ) -> None:
        if self._sender is None:
            return
        if kind is not None:
            self._sender.cancel()
            return
        try:
            await asyncio.wait([self._sender])
        finally:
            self._sender.cancel()


class Original(msgspec.Struct, frozen=True, eq=False):
    """In `details`: what the framework's tool gave, and the content that was made of it.

    It goes back as it is if nothing changed the content on the way, such as a hook that redacts.
    """

    value: Any
    content: Any
    structured: Any = None

    @classmethod
    def of(cls, result: ToolResult) -> Original | None:
        """Give it, if the result still says what the tool said."""
        found = result.details
        if not isinstance(found, cls) or result.is_error:
            return None
        same = found.content == result.content and found.structured == result.structured_content
        return found if same else None
