"""FastMCP's servers behind a pipeline, in process; and a pipeline as middleware of a server."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple

import pydantic
from fastmcp import Client, FastMCP
from fastmcp.exceptions import FastMCPError, NotFoundError, ToolError
from fastmcp.exceptions import ValidationError as InvalidArguments
from fastmcp.server.middleware import CallNext, Middleware, MiddlewareContext
from fastmcp.tools.base import InputRequiredToolResult
from fastmcp.tools.base import Tool as ServedTool
from fastmcp.tools.base import ToolResult as ServedResult

from seawall.contract.annotations import Annotations
from seawall.contract.errors import ConfigurationError, Fault
from seawall.contract.failure import Failure, FailureCode, Issue, ToolFailed
from seawall.contract.result import ToolResult
from seawall.contract.tool import Tool
from seawall.edges.adapters._bridge import Bridge, Original, SessionOf
from seawall.edges.adapters._mcp_content import (
    Counted,
    content_for,
    content_of,
    meta_for,
    promised_by,
    structured_for,
)
from seawall.pipeline.foreign import attempted, described, first_line, guarded
from seawall.pipeline.output import told_as_promised
from seawall.registry.function import issue_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seawall.pipeline.context import ToolContext

RUN = "seawall.fastmcp"
"""The service under which a tool finds the request of the server that it is part of."""


_in_pipeline: ContextVar[OfServer | None] = ContextVar("seawall.fastmcp", default=None)
"""What a pipeline runs by calling its server: middleware of that pipeline lets this call through.

Not its name: another server may have a tool of the same name, behind a pipeline of its own.
"""


class Run(NamedTuple):
    """A request on its way through a server's middleware."""

    context: MiddlewareContext[Any]
    call_next: CallNext[Any, Any]


def tools_of(source: Any) -> list[Tool] | None:
    """Make tools of a server, of a client of one, or of a single tool."""
    if isinstance(source, ServedTool):
        return [_tool(source, _OfTool(source))]
    if isinstance(source, FastMCP):
        return [_tool(tool, OfServer(source, tool.name)) for tool in _listed(source)]
    if isinstance(source, Client):
        return [_tool(tool, _OfClient(source, tool.name)) for tool in _listed(source)]
    return None


def _listed(source: FastMCP[Any] | Client[Any]) -> Sequence[Any]:
    async def listing() -> Sequence[Any]:
        if isinstance(source, FastMCP):
            return await source.list_tools()
        async with source:
            return await source.list_tools()

    def run() -> Any:
        # In a thread of its own: a loop may be running here.
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(asyncio.run, listing()).result()

    found: Any = guarded("a server was asked for its tools and raised", run, lambda error: error)
    if isinstance(found, BaseException):
        name = getattr(source, "name", type(source).__name__)
        raise ConfigurationError([Fault(f"cannot be listed: {described(found)}", str(name))])
    listed: Sequence[Any] = found
    return listed


def _tool(served: Any, executor: Any) -> Tool:
    """Make a tool of one as a server has it, or as its client sees it."""
    hints = served.annotations
    schema = served.parameters if isinstance(served, ServedTool) else served.input_schema
    return Tool(
        name=served.name,
        description=served.description or "",
        input_schema=schema,
        executor=executor,
        title=served.title or getattr(hints, "title", None),
        output_schema=served.output_schema,
        annotations=Annotations.from_mcp(
            None if hints is None else hints.model_dump(by_alias=True, exclude_none=True)
        ),
        tags=tuple(sorted(getattr(served, "tags", None) or ())),
        imported=True,
    )


class OfServer:
    """Runs a tool of a server: what is left of a request that came in, or a call of our own."""

    def __init__(self, server: FastMCP[Any], name: str) -> None:
        self.server = server
        self._name = name

    async def __call__(self, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        """Run it once; the server's own middleware runs around it."""
        run: Run | None = context.services.get(RUN)
        if run is None or run.context.message.name != self._name:
            return await _answered(lambda: self._called(arguments))
        message = run.context.message.model_copy(update={"arguments": arguments})
        request = run.context.copy(message=message)
        return await _answered(lambda: run.call_next(request), in_request=True)

    async def _called(self, arguments: dict[str, Any]) -> Any:
        token = _in_pipeline.set(self)
        try:
            return await self.server.call_tool(self._name, arguments)
        finally:
            _in_pipeline.reset(token)


class _OfTool:
    def __init__(self, served: ServedTool) -> None:
        self._served = served

    async def __call__(self, arguments: dict[str, Any], _: ToolContext) -> ToolResult:
        return await _answered(lambda: self._served.run(arguments))


class _OfClient:
    """Runs a tool over the protocol, with its progress."""

    def __init__(self, client: Client[Any], name: str) -> None:
        self._client = client
        self._name = name

    async def __call__(self, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        async def progress(done: float, total: float | None, message: str | None) -> None:
            context.progress(message or "", done, total)

        async with self._client as client:
            found = await client.call_tool(
                self._name, arguments, progress_handler=progress, raise_on_error=False
            )
        return _result(found.content, found.structured_content, found.meta, found.is_error)


async def _answered(call: Any, *, in_request: bool = False) -> ToolResult:
    """Make a call; what the server hid behind an error of its own comes out again."""
    try:
        found = await call()
    except InvalidArguments as error:
        raise ToolFailed(_invalid(error)) from error
    except NotFoundError as error:
        failure = Failure(code=FailureCode.NOT_FOUND, message=first_line(error))
        raise ToolFailed(failure) from error
    except ToolError as error:
        cause = _hidden(error)
        if cause is not None:
            raise cause from cause.__cause__  # as it was raised
        raise ToolFailed(first_line(error)) from error
    if isinstance(found, InputRequiredToolResult):
        return _asking(found, in_request=in_request)
    result = _result(found.content, found.structured_content, found.meta, found.is_error)
    return result if result.is_error else _with_original(result, found)


def _with_original(result: ToolResult, found: Any) -> ToolResult:
    return ToolResult(
        content=result.content,
        structured_content=result.structured_content,
        metadata=result.metadata,
        details=Original(found, result.content, result.structured_content),
    )


def _asking(found: InputRequiredToolResult, *, in_request: bool) -> ToolResult:
    """A question to the client is a result of its own kind: it goes through as it is."""
    if in_request:
        return ToolResult(details=Original(found, ()))
    raise ToolFailed(
        Failure(
            code=FailureCode.UNSUPPORTED,
            message="it asks for input, which only a client of its server can give",
        )
    )


def _result(content: Any, structured: Any, meta: Any, is_error: Any) -> ToolResult:
    blocks = content_of(content or ())
    failure = None
    if is_error:
        said = ToolResult(content=blocks).text
        failure = Failure(code=FailureCode.EXECUTION_FAILED, message=said, retryable=False)
    return ToolResult(
        content=blocks,
        structured_content=structured,
        metadata=meta,
        is_error=failure is not None,
        failure=failure,
    )


def _invalid(error: InvalidArguments) -> Failure:
    cause = error.__cause__
    issues: tuple[Issue, ...] = ()
    if isinstance(cause, pydantic.ValidationError):
        issues = tuple(issue_of(fault) for fault in cause.errors(include_url=False))
    return Failure(code=FailureCode.INVALID_ARGUMENT, message=first_line(error), issues=issues)


def _hidden(error: ToolError) -> BaseException | None:
    """What a tool raised, if the server made its own error of that; None if the tool chose it.

    Retry and breaker go by the real cause. If the server masks what its tools raise, so does this:
    the cause then stays behind the server's error.
    """
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    raised_in = "" if trace is None else str(trace.tb_frame.f_globals.get("__name__", ""))
    cause = error.__cause__
    if cause is None or isinstance(cause, FastMCPError) or not raised_in.startswith("fastmcp."):
        return None
    told = attempted(lambda: str(cause) in str(error), otherwise=False)
    return cause if told else error


class PipelineMiddleware(Middleware):
    """Lets the calls of a server's tools run through a pipeline."""

    def __init__(self, bridge: Bridge) -> None:
        self._bridge = bridge

    async def on_call_tool(
        self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]
    ) -> ServedResult:
        """Make the call; a refusal or a failure is a result with `isError`."""
        name = context.message.name
        if self._runs(name):
            token = _in_pipeline.set(None)
            try:
                found: ServedResult = await call_next(context)
            finally:
                _in_pipeline.reset(token)
            return found
        await self._known(name, context)
        run = Run(context, call_next)
        session = self._bridge.session(_conversation(context), context, {RUN: run})
        async with Counted(lambda *news: _progress(context, *news)) as sending:
            result = await self._bridge.call(
                name,
                context.message.arguments or {},
                call_id=_request_id(context),
                session=session,
                on_progress=sending,
            )
        served = _unchanged(result)
        if served is not None:
            return served
        if promised_by(self._bridge.pipeline.registry.get(name)) is not None:
            result = told_as_promised(result, name)
        return ServedResult(
            content=content_for(result),
            structured_content=structured_for(result),
            meta=meta_for(result),
            is_error=result.is_error,
        )

    def _runs(self, name: str) -> bool:
        """Whether this pipeline made the call itself, and so has done its part."""
        running = _in_pipeline.get()
        tool = None if running is None else self._bridge.pipeline.registry.get(name)
        return tool is not None and tool.executor is running

    async def _known(self, name: str, context: MiddlewareContext[Any]) -> None:
        """Take in a tool that the server has got since."""
        pipeline, request = self._bridge.pipeline, context.fastmcp_context
        if request is None or name in pipeline.registry.names():
            return
        if pipeline.registry.quarantine_reason(name) is not None:
            return
        served = await request.fastmcp.get_tool(name)
        if served is not None:
            tool = _tool(served, OfServer(request.fastmcp, name))
            pipeline.registry.register(tool, on_duplicate="keep", on_invalid="quarantine")


def _unchanged(result: ToolResult) -> ServedResult | None:
    """What the server's tool gave, if nothing has changed it on the way."""
    original = Original.of(result)
    served = None if original is None else original.value
    if isinstance(served, ServedResult) and served.meta == result.metadata:
        return served
    return None


def _conversation(context: MiddlewareContext[Any]) -> str | None:
    request = context.fastmcp_context
    if request is None or request.request_context is None:
        return None
    return request.session_id


def _request_id(context: MiddlewareContext[Any]) -> str | None:
    request = context.fastmcp_context
    if request is None or request.request_context is None:
        return None
    return str(request.request_id)


async def _progress(
    context: MiddlewareContext[Any], done: float | None, total: float | None, text: str
) -> None:
    if context.fastmcp_context is not None:
        await context.fastmcp_context.report_progress(done or 0.0, total, text)


def to_fastmcp(pipeline: Any, *, session: SessionOf | None = None) -> Middleware:
    """Make middleware of a pipeline; see `seawall.to_fastmcp`."""
    return PipelineMiddleware(Bridge(pipeline, session=session))
