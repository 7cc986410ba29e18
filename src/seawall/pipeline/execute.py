"""The innermost handler: run the executor once and make a result of what comes.

Only here an executor is called, and only here what it raises is caught.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
from typing import TYPE_CHECKING, Any

import msgspec

from seawall.contract.failure import Failure, FailureCode
from seawall.contract.result import ToolResult
from seawall.pipeline.context import ToolContext
from seawall.pipeline.convert import failure_of, parts_of, result_of
from seawall.pipeline.foreign import Foreign, log_frames
from seawall.pipeline.retry_after import retry_after_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from seawall.contract.tool import Executor, Tool
    from seawall.pipeline.clock import Clock
    from seawall.pipeline.invocation import Handler, Invocation
    from seawall.pipeline.threads import Workers


def executing(
    tool: Tool, clock: Clock, workers: Callable[[], Workers], *, on_defect: str = "result"
) -> Handler:
    """Make the handler that runs this tool's executor.

    `on_defect="raise"` lets exceptions of executors through, for development.
    """
    run = _runner(tool.executor, workers)
    now, wall = clock.now, clock.wall

    async def execute(call: Invocation) -> ToolResult:
        call.attempt += 1
        call.attempt_open = True
        call.error = None
        call.attempt_wall = wall()
        call.attempt_started = begun = now()
        context = ToolContext(call)
        call.live = True
        error: BaseException | None = None
        value: Any = None
        try:
            value = await run(call, context)
        except Foreign as raised:
            error = raised
        except asyncio.CancelledError as cancel:
            if _is_cancelled():
                context.give_up(call.cancel_reason or "cancelled")
                raise
            error = cancel  # of something the tool waited for: nobody has cancelled this call
        finally:
            call.live = False
            call.executed_s = (call.executed_s or 0.0) + now() - begun
        if error is None:
            return result_of(value, call)
        if on_defect == "raise":
            raise error
        return _failed(call, error, clock)

    return execute


def _is_cancelled() -> bool:
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


def _failed(call: Invocation, error: BaseException, clock: Clock) -> ToolResult:
    call.error = error
    log_frames(f"tool {call.tool.name!r} raised", error)
    failure = failure_of(error, retry_after_s=retry_after_of(error, clock.wall))
    failure = _bounded(failure)
    result = ToolResult.of_failure(failure)
    return result_of(result, call)


def _bounded(failure: Failure) -> Failure:
    """A tool's own failure may be of any size; what reaches the model may not."""
    if len(failure.message) <= 2_000 and len(failure.guidance) <= 1_000:
        return failure
    return msgspec.structs.replace(
        failure, message=failure.message[:2_000] + "…", guidance=failure.guidance[:1_000]
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


def _runner(executor: Executor, workers: Callable[[], Workers]) -> Any:
    if not is_async(executor):
        return _in_thread(executor, workers)
    plain = executor.func if isinstance(executor, functools.partial) else executor
    entry = getattr(plain, "__call__", None)  # noqa: B004  # the method is looked at, not called
    if inspect.isasyncgenfunction(plain) or inspect.isasyncgenfunction(entry):
        return _streaming(executor)

    def run(call: Invocation, context: ToolContext) -> Any:
        call.started = True
        return executor(call.arguments if call.bound is None else call.bound, context)

    return run


def _streaming(executor: Executor) -> Any:
    async def run(call: Invocation, context: ToolContext) -> Any:
        call.started = True
        arguments = call.arguments if call.bound is None else call.bound
        return await _last(executor(arguments, context), context)

    return run


async def _last(items: AsyncIterator[Any], context: ToolContext) -> Any:
    """Report each item but the last, which is the result."""
    nothing = object()
    held: Any = nothing
    try:
        async for item in items:
            if held is not nothing:
                context.progress(_partial(held))
            held = item
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


def _in_thread(executor: Executor, workers: Callable[[], Workers]) -> Any:
    async def run(call: Invocation, context: ToolContext) -> Any:
        arguments = call.arguments if call.bound is None else call.bound

        def started() -> None:
            call.started = True

        def work() -> Any:
            value = executor(arguments, context)
            return _consumed(value, context) if inspect.isgenerator(value) else value

        # Made before the thread starts: both sides then look at the same flag.
        _ = context.cancelled
        value = await workers().run(work, started)
        if inspect.isasyncgen(value):
            return await _last(value, context)
        return await value if inspect.isawaitable(value) else value

    return run


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


def refused_overload(call: Invocation, message: str, *, layer: str) -> ToolResult:
    """Build the refusal of a call for which there is no room."""
    return call.refuse(
        FailureCode.RATE_LIMITED, message, reason="overloaded", layer=layer, retry_after_s=1.0
    )
