"""The innermost handler: run the executor once and make a result of what comes.

Only here an executor is called, and only here what it raises is caught.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import logging
from typing import TYPE_CHECKING, Any

import msgspec

from seawall.contract.failure import GUIDANCE, FailureCode
from seawall.contract.result import ToolResult
from seawall.pipeline.arguments.faults.explain import Redaction
from seawall.pipeline.context import ToolContext
from seawall.pipeline.convert import (
    at_most_once,
    counted,
    failed_result,
    failure_of,
    is_answer,
    may_change,
    parts_of,
    result_of,
    result_of_text,
    settled,
)
from seawall.pipeline.copying import copied
from seawall.pipeline.extent import SCALARS, Extent, Unrolling, extent_of
from seawall.pipeline.foreign import NOT_OURS, NOT_OURS_AWAITED, is_cancelled, log, log_frames
from seawall.pipeline.retry_after import retry_after_of
from seawall.pipeline.threads import NoThread

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Generator, Iterator

    from seawall.contract.failure import Failure
    from seawall.contract.tool import Executor, Tool
    from seawall.pipeline.clock import Clock
    from seawall.pipeline.invocation import Handler, Invocation
    from seawall.pipeline.threads import Workers


SLICE_S = 0.01
"""Seconds for which iterators that an async tool gave, or is one, keep others waiting."""


def executing(
    tool: Tool, clock: Clock, workers: Callable[[], Workers], *, on_defect: str = "result"
) -> Handler:
    """Make the handler that runs this tool's executor.

    `on_defect="raise"` lets exceptions of executors through, for development.
    """
    executor = tool.executor
    run = _runner(executor, workers, clock)
    directly = run is None
    now, wall = clock.now, clock.wall
    passing: tuple[type[BaseException], ...] = (*NOT_OURS_AWAITED, *tool.control_flow)
    failed = _failing(tool, clock, raising=on_defect == "raise")

    async def execute(call: Invocation) -> ToolResult:
        if call.attempt:
            call.begun = False
            call.error = call.cancel_reason = None
        call.attempt = attempt = call.attempt + 1
        call.attempt_open = call.live = True
        call.attempt_wall = wall()
        call.attempt_started = now()
        context = ToolContext(call, attempt)
        error: BaseException | None = None
        value: Any = None
        made: ToolResult | BaseException | None
        try:
            if directly:
                call.started = call.begun = True
                own_of = call.own_of
                own = _own(call) if own_of is None else own_of(call._arguments)  # noqa: SLF001  # a frame less
                value = await executor(own, context)
            else:
                value = await run(call, context)
            if type(value) not in SCALARS and not _is_fine(value):  # most are: frames less
                value = await _settled(value, clock)
        except passing:
            raise
        except BaseException as raised:  # whatever a tool raises is its answer
            # But a cancel of the call; if nobody cancelled it, it was of what the tool waited for.
            if isinstance(raised, asyncio.CancelledError) and is_cancelled():
                raise
            error = raised
        finally:
            call.end_attempt(now(), attempt)
        if error is None:
            made = result_of_text(value, call, None) if type(value) is str else _made(value, call)
            if isinstance(made, ToolResult):
                return made
            error = made
        answer = failed(call, context, error)
        error = made = None  # this frame is in the traceback: a ring, and work for the collector
        return answer

    return execute


_LARGE = 1 << 63


def _made(value: Any, call: Invocation) -> ToolResult | BaseException:
    if type(value) is int and -_LARGE < value < _LARGE:  # its JSON is what Python writes
        return result_of_text(str(value), call, value)
    try:
        return result_of(value, call)
    except NOT_OURS:
        raise
    except BaseException as raised:  # noqa: BLE001  # of code that came with the value
        return raised


_CHANGE_IT = GUIDANCE[FailureCode.EXECUTION_FAILED]
_NOT_KNOWN = (
    "Whether it took effect is not known: check before you do it again, use another tool, or"
    " report it."
)
"""To who called a tool that changes something and raised: a payment whose connection broke."""


def _failing(
    tool: Tool, clock: Clock, *, raising: bool
) -> Callable[[Invocation, ToolContext, BaseException], ToolResult]:
    """Make what turns an exception of one tool into a result."""
    secrets_in = Redaction(tool.input_schema).secrets
    what = f"tool {tool.name!r} raised"
    changing = may_change(tool)

    def failed(call: Invocation, context: ToolContext, error: BaseException) -> ToolResult:
        if raising:
            raise error
        if call.attempt == context.attempt:
            call.error = error
        secrets = secrets_in(call.known_arguments())
        wait_s = retry_after_of(error, clock.wall)
        failure = failure_of(error, retry_after_s=wait_s, secrets=secrets)
        if failure.may_have_run is False:  # then it is the tool's own, or one that it hands on
            failure = counted(failure, getattr(error, "failure", None), call)
        elif changing and failure.guidance is _CHANGE_IT and failure.may_have_run is None:
            failure = msgspec.structs.replace(failure, guidance=_NOT_KNOWN)
        failure = at_most_once(failure, changing=changing)
        # Nothing is prepared for a log that nobody keeps.
        if log.isEnabledFor(logging.WARNING) and not is_answer(error):
            level = logging.INFO if _is_tried_again(call, failure) else logging.WARNING
            log_frames(what, error, level=level, secrets=secrets)
        return failed_result(failure, call)

    return failed


def _is_tried_again(call: Invocation, failure: Failure) -> bool:
    """Whether another attempt is to be expected, so that this one is no news yet."""
    return (
        failure.retryable is True
        and call.tool.retry_safe
        and call.attempt < call.policy.attempts
        and not call.shown
    )


def is_async(executor: Executor) -> bool:
    """Whether calling the executor gives an awaitable at once."""
    plain = executor
    while isinstance(plain, functools.partial):
        plain = plain.func
    if inspect.iscoroutinefunction(plain) or inspect.isasyncgenfunction(plain):
        return True
    entry = getattr(plain, "__call__", None)  # noqa: B004  # the method is looked at, not called
    return inspect.iscoroutinefunction(entry) or inspect.isasyncgenfunction(entry)


def _runner(executor: Executor, workers: Callable[[], Workers], clock: Clock) -> Any:
    """Give what runs an executor; None if calling it is all there is to do."""
    if not is_async(executor):
        return _in_thread(executor, workers, clock)
    plain = executor.func if isinstance(executor, functools.partial) else executor
    entry = getattr(plain, "__call__", None)  # noqa: B004  # the method is looked at, not called
    if inspect.isasyncgenfunction(plain) or inspect.isasyncgenfunction(entry):
        return _streaming(executor, clock)
    return None


def _own(call: Invocation) -> Any:
    """What this attempt may change as it likes: the next one begins with the same."""
    bound = call.bound
    if bound is None:
        return (call.own_of or copied)(call.arguments)
    return bound.__class__(copied(bound)) if isinstance(bound, dict) else bound


def _streaming(executor: Executor, clock: Clock) -> Any:
    async def run(call: Invocation, context: ToolContext) -> Any:
        call.started = call.begun = True
        return await _last(executor(_own(call), context), context, clock)

    return run


async def _last(items: AsyncIterator[Any], context: ToolContext, clock: Clock) -> Any:
    """Report each item but the last, which is the result.

    One that gives its items without ever waiting lets others work, and a cancel come, in between.
    """
    nothing = object()
    held: Any = nothing
    now, began = clock.now, clock.now()
    try:
        async for item in items:
            if held is not nothing:
                context.progress(_partial(held))
            held = item
            if now() - began > SLICE_S:
                await clock.sleep(0)
                began = now()
    finally:
        close = getattr(items, "aclose", None)
        if close is not None:
            await close()
    return None if held is nothing else held


def _partial(item: Any) -> ToolResult:
    if isinstance(item, ToolResult):
        return item
    content, structured = parts_of(item)
    return ToolResult(content=content, structured_content=structured)


def _in_thread(executor: Executor, workers: Callable[[], Workers], clock: Clock) -> Any:
    async def run(call: Invocation, context: ToolContext) -> Any:
        arguments = _own(call)

        def started() -> None:
            call.started = call.begun = True
            call.attempt_started = clock.now()  # the wait for a thread was no work

        def work() -> Any:
            value = executor(arguments, context)
            if inspect.isgenerator(value):
                return _consumed(value, context)
            return _unrolled(value, context) if _open(value) else value

        def left_behind() -> Callable[[], None]:
            return call.left_behind().ended

        try:
            value = await workers().run(work, started, left_behind)
        except NoThread:
            return _no_thread(call)
        if inspect.isasyncgen(value):
            return await _last(value, context, clock)
        return await value if inspect.isawaitable(value) else value

    return run


def _no_thread(call: Invocation) -> ToolResult:
    return ToolResult.failed(
        FailureCode.RATE_LIMITED,
        f"all {call.policy.max_threads} threads of {call.tool.name} wait for calls of it like this",
        reason="overloaded",
        guidance="It cannot be called from inside of itself so often.",
        retryable=False,
        may_have_run=False,
    )


def _consumed(items: Iterator[Any], context: ToolContext) -> Any:
    """Run a generator tool to its end, or until it was given up; all but the last is progress."""
    nothing = object()
    held: Any = nothing
    for item in items:
        if context.cancelled:
            break
        if held is not nothing:
            context.progress(_partial(held))
        held = item
    return None if held is nothing else held


def _open(value: Any) -> bool:
    if isinstance(value, ToolResult):
        return value.structured_content is not None and _open(value.structured_content)
    return extent_of(value) is Extent.OPEN


def _unrolling(value: Any) -> Generator[None, None, Any]:
    if not isinstance(value, ToolResult):
        return (yield from Unrolling().steps(value))
    structured = yield from Unrolling().steps(value.structured_content)
    return msgspec.structs.replace(value, structured_content=structured)


def _unrolled(value: Any, context: ToolContext) -> Any:
    """Take what iterators give while their call is wanted: they may work, and block, as they go."""
    steps = _unrolling(value)
    try:
        while not context.cancelled:
            next(steps)
    except StopIteration as stop:
        return stop.value
    steps.close()
    return None


def _is_fine(value: Any) -> bool:
    """Whether a value is settled as it is; of a result, only its parts are looked at, later."""
    return not isinstance(value, ToolResult) and extent_of(value) is Extent.FINE


async def _settled(value: Any, clock: Clock) -> Any:
    """Bound what an executor gave; iterators are asked here if no thread has done it."""
    if _open(value):
        value = await _unrolled_here(value, clock)
    return settled(value)


async def _unrolled_here(value: Any, clock: Clock) -> Any:
    """Take what iterators give, and let others work, and a cancel come, in between."""
    steps = _unrolling(value)
    began = clock.now()
    try:
        while True:
            next(steps)
            if clock.now() - began > SLICE_S:
                await clock.sleep(0)
                began = clock.now()
    except StopIteration as stop:
        return stop.value
    finally:
        steps.close()
