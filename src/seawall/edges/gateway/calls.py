"""`POST /tools/call`: one call of a tool, answered as JSON or as a stream of its progress.

A call whose client goes is cancelled, unless its tool says `detach`.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import msgspec

from seawall.contract.failure import FailureCode
from seawall.edges.gateway.answers import (
    CLIENT_GONE,
    STOPPED,
    Answer,
    answer_of,
    approval_of,
    refusal,
    stops,
)
from seawall.edges.gateway.asked import Refused, bad_request, identifier
from seawall.edges.gateway.asked_before import AskedBefore
from seawall.edges.gateway.kept_answers import REPLAYED, KeptAnswers
from seawall.edges.gateway.quota import quota_headers
from seawall.edges.gateway.sessions import Sessions
from seawall.edges.gateway.state_answers import Held, StateAnswers, ledger_replay
from seawall.edges.gateway.stream import Stream, event_of
from seawall.edges.requests import Gone, ended_first
from seawall.layers.ledger import scope_of
from seawall.pipeline.arguments.reading.text import ArgumentTextFault, parse_arguments
from seawall.pipeline.breaking_off import had_begun
from seawall.pipeline.clock import Deadlines, SystemClock

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from seawall.contract.result import ToolResult
    from seawall.contract.span import Digest
    from seawall.edges.gateway.asked import Asked
    from seawall.edges.gateway.kept_answers import Key
    from seawall.edges.gateway.settings import GatewaySettings
    from seawall.orchestration.pipeline import Pipeline
    from seawall.pipeline.invocation import Progress

EVENTS = b"text/event-stream"
MAX_SECONDS = 86_400
UNWATCHED_S = 0.02
"""How long a call runs before it is looked whether its client is still there."""


class CallBody(msgspec.Struct, frozen=True, rename="camel"):
    """What a client sends."""

    tool: str
    arguments: msgspec.Raw = msgspec.Raw(b"null")
    """An object, or JSON text of one as models write it."""
    request_id: str | None = None
    session_id: str | None = None
    timeout_s: float | None = msgspec.field(default=None, name="timeoutS")
    deadline_s: float | None = msgspec.field(default=None, name="deadlineS")


_read_call = msgspec.json.Decoder(CallBody).decode


class Calls:
    """Runs the calls of clients."""

    def __init__(self, pipeline: Pipeline, settings: GatewaySettings) -> None:
        self.pipeline = pipeline
        self.sessions = Sessions(settings.session_limit)
        self.kept = KeptAnswers(pipeline.clock.now, settings.keep_answers_s)
        # Kept with what else of the pipeline is bound to an event loop, and begun anew with it.
        self._unwatched: Deadlines = pipeline.states.shared("gateway").slot(
            "unwatched", lambda: Deadlines(SystemClock(), UNWATCHED_S)
        )
        self.kept_for_all = StateAnswers(pipeline, settings.keep_answers_s)
        self.asked_before = AskedBefore(pipeline, settings.keep_answers_s)
        self._max_body = settings.max_body_bytes
        self._attending: set[_Watch] = set()
        self._detached: set[asyncio.Task[Answer]] = set()
        self.stopping = False
        """Whether the gateway ends: a call that is broken off then is still answered."""

    async def serve(self, asked: Asked, *, released: Callable[[str], bool] | None = None) -> None:
        """Read the request, run the call, answer. `released` narrows which tools may be called."""
        body = await asked.json(self._max_body, _read_call)
        own = self.pipeline.registry.own_name(body.tool)
        if own not in (None, body.tool):
            body = msgspec.structs.replace(body, tool=own)  # as it was declared to a provider
        if released is not None and not released(body.tool):
            raise Refused(_not_released(body.tool))
        call = _Call(self, asked, body)
        if EVENTS in asked.headers.get(b"accept", b""):
            await self._streamed(asked, call)
        else:
            await asked.answer(await self._attended(asked, call, call.run(None)))

    async def _attended(
        self, asked: Asked, call: _Call, work: Coroutine[Any, Any, Answer]
    ) -> Answer:
        """Run a call while its client is there; it goes on without the client if it is detached."""
        if call.detached:
            return await self._detachable(asked, call, work)
        watch = _Watch(asked)
        self._attending.add(watch)
        self._unwatched.enter(watch)
        try:
            return await work
        except asyncio.CancelledError as error:
            if watch.saw_it_go():
                raise Gone from None
            if not self.stopping:
                raise
            return call.broken_off() if call.began(error) else stops()
        finally:
            self._unwatched.leave(watch)
            self._attending.discard(watch)
            watch.end()

    async def _detachable(
        self, asked: Asked, call: _Call, work: Coroutine[Any, Any, Answer]
    ) -> Answer:
        running = asyncio.ensure_future(work)
        self._detached.add(running)
        running.add_done_callback(self._ended)
        try:
            if not await ended_first(running, asked):
                raise Gone
        except asyncio.CancelledError:
            if not self.stopping:
                raise
            return call.broken_off()
        return call.broken_off() if running.cancelled() else running.result()

    def _ended(self, running: asyncio.Task[Answer]) -> None:
        self._detached.discard(running)
        if not running.cancelled():
            running.exception()  # looked at, as nobody else may be there to

    async def _streamed(self, asked: Asked, call: _Call) -> None:
        stream = Stream(asked, self.pipeline.clock)

        async def run() -> Answer:
            try:
                return await call.run(lambda *report: stream.put("progress", _progress(*report)))
            finally:
                stream.end()

        sending = asyncio.ensure_future(stream.drain())
        try:
            answer = await self._attended(asked, call, run())
            await sending
        finally:
            sending.cancel()
        if not stream.begun:
            await stream.begin(answer.status)
        await stream.close(event_of("result", msgspec.Raw(answer.body)))

    @property
    def is_busy(self) -> bool:
        """Whether calls go on without their client; of others their requests tell."""
        return bool(self._detached)

    async def drained(self) -> None:
        """Wait for the calls that go on without their client."""
        if self._detached:
            await asyncio.wait(self._detached)

    def break_off(self) -> None:
        """Cancel all calls, as their time is over; what came of them is then not known."""
        for watch in self._attending:
            watch.break_off()
        for running in self._detached:
            running.cancel(STOPPED)


class _Watch:
    """Cancels the task that makes it once the client of a request has gone.

    Begun only when a call takes longer than `UNWATCHED_S`: most are answered before a task for
    watching would have run.
    """

    __slots__ = ("_asked", "_gone", "_task", "_watching")

    def __init__(self, asked: Asked) -> None:
        self._asked = asked
        self._task: asyncio.Task[Any] = asyncio.current_task()  # type: ignore[assignment]  # a request always has one
        self._gone = False
        self._watching: asyncio.Task[None] | None = None

    def expire(self) -> None:
        """Begin to watch."""
        self._watching = asyncio.ensure_future(self._watch())

    async def _watch(self) -> None:
        await self._asked.until_gone()
        self._gone = True
        self._task.cancel(CLIENT_GONE)

    def saw_it_go(self) -> bool:
        """Whether it cancelled the task, and nobody else did; takes the cancel back."""
        return self._gone and self._task.uncancel() == 0

    def break_off(self) -> None:
        """Cancel the task, whether or not its client is there."""
        self._task.cancel(STOPPED)

    def end(self) -> None:
        """Watch no more."""
        if self._watching is not None:
            self._watching.cancel()


class _Call:
    """The call that one request asks for."""

    __slots__ = (
        "_arguments",
        "_asked_before",
        "_body",
        "_client",
        "_id",
        "_kept",
        "_kept_for_all",
        "_key",
        "_may_have_begun",
        "_pipeline",
        "_result",
        "_session",
        "_tool",
    )

    def __init__(self, calls: Calls, asked: Asked, body: CallBody) -> None:
        self._pipeline = calls.pipeline
        self._kept = calls.kept
        self._kept_for_all = calls.kept_for_all
        self._asked_before = calls.asked_before
        self._body = body
        self._id = identifier(body.request_id, "requestId")
        self._key = identifier(asked.header(b"idempotency-key"), "Idempotency-Key")
        self._client = asked.client.name
        session_id = identifier(body.session_id, "sessionId")
        if body.timeout_s is not None:
            _check_seconds(body.timeout_s, "timeoutS")
        if body.deadline_s is not None:
            _check_seconds(body.deadline_s, "deadlineS")
        self._session = calls.sessions.session_of(self._client, session_id)
        self._arguments = _given(body.arguments)
        self._tool = self._pipeline.registry.get(body.tool)
        self._may_have_begun = False
        self._result: ToolResult | None = None

    @property
    def detached(self) -> bool:
        """Whether the call goes on when its client has gone."""
        return self._tool is not None and self._tool.detach

    async def run(self, on_progress: Progress | None) -> Answer:
        """Run it; under an idempotency key only if that was not done already."""
        if not self._key:
            return self._answer(await self._ran(on_progress))
        key = (self._client, self._key)
        self._id = self._id or self._pipeline.new_key()  # known before it runs, to be given again
        about = {"request_id": self._id, "tool": self._body.tool}
        digest = self._pipeline.digester.of_any(
            f"gateway {self._body.tool}", _meant(self._arguments)
        )
        spare = self._kept_for_all.is_durable or self._may_be_repeated
        instead = self._kept.begin(key, digest, spare=spare, **about)
        if instead is not None:
            return instead
        self._pipeline.approvals.withdrawing.forget_key(*key)
        try:
            scope = scope_of(self._session)
            await self._kept_for_all.check(key, digest, self._tool, scope, about)
            instead = await self._asked_before.answer(key, digest, about)
            if instead is None:
                result = await self._result_once(key, digest, on_progress)
                instead = await self._asked_before.keep(key, digest, result, about)
        except Held as held:
            self._kept.forget(key)
            return held.answer
        except BaseException as error:
            self._was_broken_off(key, digest, error, about)
            raise
        if instead is not None:
            self._kept.forget(key)
            return instead
        return self._settle(key, digest, result, about)

    @property
    def _may_be_repeated(self) -> bool:
        return self._tool is not None and self._tool.retry_safe

    def _settle(
        self, key: Key, payload: Digest, result: ToolResult, about: dict[str, str]
    ) -> Answer:
        answer = self._answer(result)
        if result.failure is None or result.failure.may_have_run is not False:
            self._kept.keep(key, answer, **about)
        else:
            self._ran_nothing(key, payload)
        return answer

    def _was_broken_off(
        self, key: Key, payload: Digest, error: BaseException, about: dict[str, str]
    ) -> None:
        """Say under its key what is true of a call whose end the client did not see."""
        result = self._result
        waited = self._asked_before.stands_for(key) or self._ending(key) is not None
        if result is not None and approval_of(result) is None:
            self._settle(key, payload, result, about)
        elif waited or self._may_be_repeated or not self.began(error):
            self._ran_nothing(key, payload)
        else:
            self._kept.keep(key, _unknown(self._id, self._body.tool), **about)

    def began(self, error: BaseException) -> bool:
        """Whether what broke it off may have come after its tool began."""
        return self._may_have_begun and had_begun(error)

    def _ran_nothing(self, key: Key, payload: Digest) -> None:
        """Let a key be used again: at once, or when the request of its call is taken back.

        Until then its call is said to run. If somebody was faster with an answer to the request,
        the key stands for that one.
        """

        def free(approval: str | None) -> None:
            if approval is not None:
                self._asked_before.remember(key, payload, approval)
            self._kept.forget(key)

        self._afterwards(key, free)

    def _afterwards(self, key: Key, then: Callable[[str | None], None]) -> None:
        """Call once the request of this key's call is taken back, or now if there is none."""
        ending = self._ending(key)
        if ending is None:
            then(None)
        elif ending.done():
            then(ending.result())
        else:
            ending.add_done_callback(lambda ended: then(ended.result()))

    def _ending(self, key: Key) -> asyncio.Future[str | None] | None:
        """Tell of a request for an approval that is taken back, as its call was given up."""
        return self._pipeline.approvals.withdrawing.of_key(*key)

    async def _result_once(
        self, key: Key, payload: Digest, on_progress: Progress | None
    ) -> ToolResult:
        """Run it, unless another worker has; tools with a ledger ask that themselves."""
        tool = self._tool
        if tool is None or not self._kept_for_all.keeps(tool):
            return await self._ran(on_progress)
        scope = scope_of(self._session)
        begun = await self._kept_for_all.begin(key, payload, tool, scope, self._id)
        try:
            result = await self._ran(on_progress)
        except BaseException as error:
            if self._ending(key) is None and self.began(error):
                begun.broken_off()
            else:
                self._afterwards(key, lambda _: begun.ran_nothing())
            raise
        if result.failure is None or result.failure.may_have_run is not False:
            await begun.ended(result)
        else:
            self._afterwards(key, lambda _: begun.ran_nothing())
        return result

    def broken_off(self) -> Answer:
        """Say that the gateway ended before the call did."""
        return _unknown(self._id, self._body.tool, "the gateway was stopped")

    async def _ran(self, on_progress: Progress | None) -> ToolResult:
        body = self._body
        self._may_have_begun = True
        self._result = await self._pipeline.call(
            body.tool,
            self._arguments,
            call_id=self._id,
            session=self._session,
            timeout_s=body.timeout_s,
            deadline_s=body.deadline_s,
            idempotency_key=self._key or None,
            on_progress=on_progress,
        )
        return self._result

    def _answer(self, result: ToolResult) -> Answer:
        earlier = ledger_replay(result) if self._key else None
        if earlier is not None:
            return answer_of(result, earlier, headers=(REPLAYED,))
        headers = quota_headers(self._pipeline, self._body.tool)
        return answer_of(result, self._id, headers=headers)


def _given(raw: msgspec.Raw) -> str | None:
    """Give arguments as the text they were, so that they are read once, by the pipeline."""
    try:
        text = str(raw, "utf-8")
        if text == "null":
            return None
        return msgspec.json.decode(text, type=str) if text[:1] == '"' else text
    except (UnicodeDecodeError, msgspec.DecodeError) as error:
        # Read late: the decoder of the body skips them without a look inside.
        raise Refused(bad_request(f"arguments cannot be read: {error}")) from error


def _meant(arguments: str | None) -> Any:
    """Give what arguments say, so that the order of members and blanks make no other call."""
    if arguments is None:
        return {}
    try:
        return parse_arguments(arguments, repair=False)[0]
    except ArgumentTextFault:
        return arguments


def _check_seconds(seconds: float, name: str) -> None:
    if not 0 < seconds <= MAX_SECONDS:
        raise Refused(bad_request(f"{name} must be above 0 and at most {MAX_SECONDS}"))


def _progress(report: Any, done: float | None, total: float | None) -> dict[str, Any]:
    said = report if isinstance(report, str) else report.text
    return {"message": said, "done": done, "total": total}


def _not_released(tool: str) -> Answer:
    return refusal(
        FailureCode.PERMISSION_DENIED,
        "denied_by_policy",
        f"{tool} is not released on this console",
        tool=tool,
        guidance="Call it through /tools/call, or have the operator add it to console.allow.",
    )


def _unknown(request_id: str, tool: str, why: str = "the connection was closed") -> Answer:
    return refusal(
        FailureCode.UNKNOWN,
        "outcome_unknown",
        f"{why} while this call ran, and it was broken off",
        request_id=request_id,
        tool=tool,
        may_have_run=None,
    )
