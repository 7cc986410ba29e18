"""Pydantic AI's toolsets behind a pipeline, and a pipeline as one of its toolsets."""

from __future__ import annotations

import asyncio
import base64
import dataclasses
import inspect
import json
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError
from pydantic_ai import exceptions, messages
from pydantic_ai.messages import BinaryContent, FileUrl, ToolReturn
from pydantic_ai.models.test import TestModel
from pydantic_ai.tools import RunContext, ToolDefinition
from pydantic_ai.tools import Tool as FunctionTool
from pydantic_ai.toolsets import AbstractToolset, FunctionToolset
from pydantic_ai.toolsets.abstract import ToolsetTool
from pydantic_ai.usage import RunUsage

from seawall.contract.annotations import Annotations, Risk
from seawall.contract.content import (
    AudioContent,
    Content,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
)
from seawall.contract.errors import ConfigurationError, Fault
from seawall.contract.failure import Failure, FailureCode, Issue, ToolFailed, dotted
from seawall.contract.result import ToolResult
from seawall.contract.sentences import joined
from seawall.contract.tool import Check, Tool
from seawall.edges.adapters._bridge import Approvals, Bridge, Original, Sending, SessionOf
from seawall.edges.adapters._data_urls import bytes_of, unreadable
from seawall.pipeline.clock import SystemClock
from seawall.pipeline.convert import parts_of
from seawall.pipeline.foreign import described, first_line, guarded
from seawall.registry.function import issue_of

if TYPE_CHECKING:
    from seawall.pipeline.context import ToolContext

RUN = "seawall.pydantic_ai"
"""The service under which a tool finds the `RunContext` of the agent that calls it."""

DEPS = "deps"
"""The service that stands for an agent's dependencies where no agent calls."""

LONGEST_S = 1e9
"""For a timeout that is held here: a toolset would ask the model to try again."""

UNSAID = -1
"""The `max_retries` of a tool that leaves it to its agent."""

_ASKS = (exceptions.ModelRetry, exceptions.ApprovalRequired, exceptions.CallDeferred)
_FAILED: Any = getattr(exceptions, "ToolFailed", None)  # not in the first versions
_ANSWERS: tuple[type[BaseException], ...] = () if _FAILED is None else (_FAILED,)
_ENDS = tuple(
    found
    for name in ("UsageLimitExceeded", "RunCancelled", "SkipToolExecution")
    if (found := getattr(exceptions, name, None)) is not None
)
_UPLOADED: tuple[Any, ...] = tuple(
    filter(None, [getattr(messages, "UploadedFile", None)])  # not in the first versions
)
_MEDIA = ("binary", "image-url", "audio-url", "document-url", "video-url", "uploaded-file")
"""The `kind` that the schemas of media name."""
CONTROL_FLOW: tuple[type[BaseException], ...] = (*_ASKS, *_ENDS)
"""What a tool raises to talk to its agent, and not because it failed."""


def tools_of(source: Any) -> list[Tool] | None:
    """Make tools of a toolset, or of one of Pydantic AI's tools."""
    if isinstance(source, FunctionTool):
        source = FunctionToolset([source])
    if not isinstance(source, AbstractToolset):
        return None
    listed = guarded("a toolset was asked for its tools and raised", lambda: _listed(source), _no)
    if isinstance(listed, _NotListed):
        raise ConfigurationError([Fault(f"cannot be listed: {listed.said}", source.label)])
    return [_tool(source, found) for found in listed.values() if found.tool_def.kind != "output"]


class _NotListed:
    def __init__(self, said: str) -> None:
        self.said = said


def _no(error: BaseException) -> _NotListed:
    return _NotListed(described(error))


def _listed(source: AbstractToolset[Any]) -> Any:
    async def listing() -> Any:
        async with source:
            run = dataclasses.replace(_run_context(None), max_retries=UNSAID)
            return await source.get_tools(run)

    # In a thread of its own: a loop may be running here.
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, listing()).result()


def _run_context(deps: Any) -> RunContext[Any]:
    """Make the context of a run that no agent makes."""
    return RunContext(deps=deps, model=TestModel(), usage=RunUsage())


def _tool(source: AbstractToolset[Any], found: ToolsetTool[Any]) -> Tool:
    declared = found.tool_def
    return Tool(
        name=declared.name,
        description=declared.description or "",
        input_schema=declared.parameters_json_schema,
        executor=Runner(source, found),
        output_schema=_promise(getattr(declared, "return_schema", None)),
        annotations=_annotations(declared.metadata),
        risk=Risk.HIGH if declared.kind == "unapproved" else None,
        execution="sequential" if declared.sequential else "parallel",
        check=_check(found),
        imported=True,
        control_flow=CONTROL_FLOW,
    )


def _promise(schema: Any) -> Any:
    """The schema of what a tool returns, if that is an object of data and no medium."""
    if not isinstance(schema, Mapping) or schema.get("type") != "object":
        return None
    kind = (schema.get("properties") or {}).get("kind")
    said = kind.get("const") if isinstance(kind, Mapping) else None
    return None if said in _MEDIA else schema


def _annotations(metadata: Mapping[str, Any] | None) -> Annotations:
    """Read MCP's hints, which `MCPToolset` leaves in the metadata."""
    hints = (metadata or {}).get("annotations", metadata)
    return Annotations.from_mcp(hints if isinstance(hints, Mapping) else None)


def _check(found: ToolsetTool[Any]) -> Check:
    def check(arguments: dict[str, Any]) -> tuple[Any, tuple[Issue, ...]]:
        try:
            found.args_validator.validate_python(arguments)
        except ValidationError as error:
            return None, _issues(error)
        return arguments, ()

    return check


def _issues(error: ValidationError) -> tuple[Issue, ...]:
    return tuple(issue_of(fault) for fault in error.errors(include_url=False))


class Runner:
    """Runs one tool of a toolset, in the agent's run if one calls."""

    def __init__(self, toolset: AbstractToolset[Any], listed: ToolsetTool[Any]) -> None:
        self._toolset = toolset
        self.listed = listed
        self._name = listed.tool_def.name
        self._clock = SystemClock()

    async def __call__(self, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        """Run it; what is meant for an agent passes through, and is a failure without one."""
        given = context.services.get(RUN)
        run = given or _run_context(context.services.get(DEPS))
        # An agent's tool may call others: what was approved is its own call alone.
        by_agent = given is not None and given.tool_call_id == context.call_id
        run = dataclasses.replace(
            run,
            tool_name=self._name,
            tool_call_id=context.call_id,
            tool_call_approved=by_agent and run.tool_call_approved,
        )
        try:
            return _result(await self._called(arguments, run))
        except CONTROL_FLOW as error:
            if by_agent:
                raise
            raise ToolFailed(_alone(self._name, error)) from error
        except _ANSWERS as error:
            raise ToolFailed(first_line(error)) from error

    async def _called(self, arguments: dict[str, Any], run: RunContext[Any]) -> Any:
        tool = (await self._toolset.get_tools(run)).get(self._name)
        if tool is None:
            said = f"{self._name} is not available now"
            raise ToolFailed(Failure(code=FailureCode.NOT_FOUND, message=said))
        if tool.tool_def.kind == "external":
            raise exceptions.CallDeferred
        values = await _validated(tool, arguments, run)
        seconds = tool.tool_def.timeout or getattr(self._toolset, "timeout", None)
        if seconds is None:
            return await self._toolset.call_tool(self._name, values, run, tool)
        patient = dataclasses.replace(tool.tool_def, timeout=LONGEST_S)
        tool = dataclasses.replace(tool, tool_def=patient)
        with self._clock.limit(seconds):
            return await self._toolset.call_tool(self._name, values, run, tool)
        raise TimeoutError(f"no answer within {seconds:g} s")


async def _validated(
    tool: ToolsetTool[Any], arguments: dict[str, Any], run: RunContext[Any]
) -> dict[str, Any]:
    try:
        values: dict[str, Any] = tool.args_validator.validate_python(
            arguments, context=run.validation_context
        )
    except ValidationError as error:
        issues = _issues(error)
        said = joined(f"{dotted(issue.path) or 'root'}: {issue.message}" for issue in issues)
        failure = Failure(code=FailureCode.INVALID_ARGUMENT, message=said, issues=issues)
        raise ToolFailed(failure) from error
    if tool.args_validator_func is not None:
        said = tool.args_validator_func(run, **values)
        if inspect.isawaitable(said):
            await said
    return values


def _alone(name: str, error: BaseException) -> Failure:
    """What control flow means where there is no agent."""
    if isinstance(error, exceptions.ApprovalRequired):
        return Failure(
            code=FailureCode.PERMISSION_DENIED,
            reason="approval_required",
            message=f"{name} was not run: it asks for a person's approval",
        )
    if isinstance(error, exceptions.CallDeferred):
        said = f"the result of {name} comes from outside, by an agent that can wait for it"
        return Failure(code=FailureCode.UNSUPPORTED, message=said)
    return Failure(
        code=FailureCode.EXECUTION_FAILED,
        message=first_line(error),
        guidance="Change the call as the message says, then try again."
        if isinstance(error, exceptions.ModelRetry)
        else "",
        retryable=False,
    )


def _result(value: Any) -> ToolResult:
    returned = value.return_value if isinstance(value, ToolReturn) else value
    content, structured = _parts(returned)
    return ToolResult(
        content=content, structured_content=structured, details=Original(value, content, structured)
    )


def _parts(returned: Any) -> tuple[tuple[Content, ...], Any]:
    items = returned if isinstance(returned, (list, tuple)) else [returned]
    if not any(_is_medium(item) for item in items):
        return parts_of(returned)
    content: list[Content] = []
    for item in items:
        content += [_medium(item)] if _is_medium(item) else parts_of(item)[0]
    return tuple(content), None


def _is_medium(item: Any) -> bool:
    return isinstance(item, (BinaryContent, FileUrl, *_UPLOADED))


def _medium(item: Any) -> Content:
    if isinstance(item, FileUrl):
        return ResourceLink(uri=item.url, name=str(getattr(item, "kind", "file")))
    if not isinstance(item, BinaryContent):
        return ResourceLink(uri=str(item.file_id), name="file")
    data, mime = base64.b64encode(item.data).decode(), item.media_type
    if mime.startswith("image/"):
        return ImageContent(data=data, mime_type=mime)
    if mime.startswith("audio/"):
        return AudioContent(data=data, mime_type=mime)
    return EmbeddedResource(resource={"uri": "data:,", "mimeType": mime, "blob": data})


class _Text(dict[str, Any]):
    """Arguments that are no JSON: the pipeline says so, or mends them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text


class _AnyArguments:
    """Takes what a model gives: the pipeline checks it, and says what is wrong."""

    def validate_json(self, input: Any, **_: Any) -> Any:  # noqa: A002  # pydantic's name
        text = input if isinstance(input, str) else bytes(input).decode("utf-8", "replace")
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            return _Text(text)
        return found if isinstance(found, dict) else _Text(text)

    def validate_python(self, input: Any, **_: Any) -> Any:  # noqa: A002  # pydantic's name
        return input


class HardenedToolset(AbstractToolset[Any]):
    """The tools of a pipeline, as they are at each step of a run."""

    def __init__(self, bridge: Bridge, name: str | None) -> None:
        self._bridge = bridge
        self._id = name

    @property
    def id(self) -> str | None:
        """What durable execution knows it by."""
        return self._id

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        """List the pipeline's tools."""
        declared = self._bridge.pipeline.registry.declared()
        return {name: self._declared(name, tool, ctx) for name, tool in declared.items()}

    def _declared(self, name: str, tool: Tool, ctx: RunContext[Any]) -> ToolsetTool[Any]:
        listed = tool.executor.listed if isinstance(tool.executor, Runner) else None
        known = ToolDefinition(name=tool.name) if listed is None else listed.tool_def
        declared = dataclasses.replace(
            known,
            name=name,
            description=tool.description,
            parameters_json_schema=dict(tool.input_schema),
            sequential=tool.execution == "sequential",
            # The gate asks for approval, and the timeout is held for each attempt.
            kind="external" if known.kind == "external" else "function",
            timeout=None,
        )
        if listed is None and (hints := tool.annotations.to_mcp()):
            declared = dataclasses.replace(declared, metadata={"annotations": hints})
        retries = UNSAID if listed is None else listed.max_retries
        return ToolsetTool(
            toolset=self,
            tool_def=declared,
            max_retries=ctx.max_retries if retries == UNSAID else retries,
            args_validator=_AnyArguments(),
        )

    async def call_tool(
        self,
        name: str,
        tool_args: dict[str, Any],
        ctx: RunContext[Any],
        tool: ToolsetTool[Any],  # noqa: ARG002  # the pipeline knows its own
    ) -> Any:
        """Make the call through the pipeline, under the agent's own call id."""
        conversation = ctx.conversation_id or ctx.run_id
        session = self._bridge.session(conversation, ctx, {RUN: ctx})
        async with _sending(ctx) as sending:
            result = await self._bridge.call(
                name,
                tool_args.text if isinstance(tool_args, _Text) else tool_args,
                call_id=ctx.tool_call_id,
                session=session,
                approved=ctx.tool_call_approved,
                on_progress=sending,
            )
        if self._bridge.asks(result) and result.failure is not None:
            raise exceptions.ApprovalRequired(metadata={"reason": result.failure.message})
        return _value(result)


def _value(result: ToolResult) -> Any:
    original = Original.of(result)
    if original is not None:
        return original.value
    if result.is_error:
        if _FAILED is not None:
            raise _FAILED(result.render())
        return result.render()
    value = result.structured_content
    if value is None:
        value = _written(result.content)
    details = None if isinstance(result.details, Original) else result.details
    return value if details is None else ToolReturn(return_value=value, metadata=details)


def _written(content: Sequence[Content]) -> Any:
    parts = [_part(block) for block in content]
    if all(isinstance(part, str) for part in parts):
        return "\n".join(parts)
    return parts


def _part(block: Content) -> Any:
    if isinstance(block, TextContent):
        return block.text
    if isinstance(block, (ImageContent, AudioContent)):
        return _binary(block.data, block.mime_type)
    if isinstance(block, ResourceLink):
        return f"{block.title or block.name}: {block.uri}"
    resource = block.resource
    if "blob" not in resource:
        return str(resource.get("text", ""))
    return _binary(resource["blob"], str(resource.get("mimeType") or ""))


def _binary(data: Any, mime: str) -> Any:
    """Make a medium; text where there is none to make, since its run would end otherwise."""
    found = bytes_of(data)
    if found is None:
        return unreadable(mime)
    return BinaryContent(data=found, media_type=mime or "application/octet-stream")


if hasattr(messages, "CustomEvent"):

    @dataclasses.dataclass
    class ToolProgress(messages.CustomEvent, name="seawall.progress"):
        """A tool's progress, in the agent's stream of events."""

        text: str = ""
        done: float | None = None
        total: float | None = None


def _sending(ctx: RunContext[Any]) -> AbstractAsyncContextManager[Sending | None]:
    """What emits progress into the run's stream of events, where there is one."""
    emit = getattr(ctx, "emit", None)
    if emit is None:
        return nullcontext()
    return Sending(lambda done, total, text: emit(ToolProgress(text=text, done=done, total=total)))


def to_pydantic_ai(
    pipeline: Any,
    *,
    session: SessionOf | None = None,
    approvals: Approvals = "pipeline",
    id: str | None = None,  # noqa: A002  # as its toolsets call it
) -> AbstractToolset[Any]:
    """Make a toolset of a pipeline; see `seawall.to_pydantic_ai`."""
    return HardenedToolset(Bridge(pipeline, session=session, approvals=approvals), id)
