"""Function tools of the OpenAI Agents SDK behind a pipeline, and a pipeline's tools for its agents.

What the SDK makes of a failure is left until the pipeline is done with it: by default it would turn
each into a text, which nothing could tell from an answer.
"""

from __future__ import annotations

import copy
import dataclasses
import inspect
import json
import mimetypes
from typing import TYPE_CHECKING, Any

from agents import FunctionTool, RunContextWrapper
from agents.exceptions import ModelBehaviorError
from agents.tool import ToolOutputFileContent, ToolOutputImage, ToolOutputText
from agents.tool_context import ToolContext as AgentsContext
from pydantic import ValidationError

from seawall.contract.annotations import Risk
from seawall.contract.content import (
    AudioContent,
    Content,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
)
from seawall.contract.failure import Failure, FailureCode, ToolFailed
from seawall.contract.result import ToolResult
from seawall.contract.tool import Tool
from seawall.edges.adapters._bridge import Approvals, Bridge, Original, SessionOf
from seawall.edges.adapters._data_urls import bytes_of, held_by, unreadable
from seawall.pipeline.clock import SystemClock
from seawall.pipeline.convert import parts_of
from seawall.pipeline.foreign import first_line

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from seawall.pipeline.context import ToolContext

RUN = "seawall.openai_agents"
"""The service under which a tool finds the SDK's context of the call it is part of."""

CONTEXT = "context"
"""The service that stands for the run's context where no agent calls."""


def tools_of(source: Any) -> list[Tool] | None:
    """Make a tool of a function tool; what the provider runs itself is none."""
    if not isinstance(source, FunctionTool):
        return None
    if source.is_enabled is False:
        return []
    return [
        Tool(
            name=source.name,
            description=source.description,
            input_schema=source.params_json_schema,
            executor=Runner(source),
            output_schema=getattr(source, "output_json_schema", None),
            risk=Risk.HIGH if source.needs_approval is True else None,
            imported=True,
        )
    ]


class Runner:
    """Runs one function tool, in the agent's run if one calls."""

    def __init__(self, source: FunctionTool) -> None:
        self.source = source
        self._bare = _without_failure_text(source)
        self._promises_data = getattr(source, "output_json_schema", None) is not None
        self._clock = SystemClock()

    async def __call__(self, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        """Run it, for as long as its own `timeout_seconds` allows."""
        source, text = self.source, json.dumps(arguments)
        run = _context(source.name, text, context)
        if callable(source.needs_approval) and not _was_asked_for(context):
            needed = source.needs_approval(run, arguments, context.call_id)
            if await needed:
                raise ToolFailed(_unapproved(source.name))
        with self._clock.limit(source.timeout_seconds):
            return await self._called(run, text)
        raise TimeoutError(f"no answer within {source.timeout_seconds:g} s")

    async def _called(self, run: AgentsContext[Any], text: str) -> ToolResult:
        try:
            value = await self._bare.on_invoke_tool(run, text)
        except ModelBehaviorError as error:
            said = first_line(error)
            raise ToolFailed(Failure(code=FailureCode.INVALID_ARGUMENT, message=said)) from error
        return _result(value, is_data=self._promises_data)

    def failure_text(self, context: AgentsContext[Any], failure: Failure) -> Any:
        """What the tool's own `failure_error_function` says of a failure.

        None if it has none of its own. A tool that was told to raise does so, and ends the run.
        """
        source = self.source
        if getattr(source, "_use_default_failure_error_function", True):
            return None
        function = getattr(source, "_failure_error_function", None)
        if function is None:
            raise ToolFailed(failure)
        return function(context, ToolFailed(failure))


def _without_failure_text(source: FunctionTool) -> FunctionTool:
    """Make a copy that raises what its function raises."""
    known = {field.name for field in dataclasses.fields(source)}
    if not {"_failure_error_function", "_use_default_failure_error_function"} <= known:
        return source
    return dataclasses.replace(
        source, _failure_error_function=None, _use_default_failure_error_function=False
    )


def _context(name: str, text: str, context: ToolContext) -> AgentsContext[Any]:
    given = context.services.get(RUN)
    if given is None:
        return AgentsContext(
            context=context.services.get(CONTEXT),
            tool_name=name,
            tool_call_id=context.call_id,
            tool_arguments=text,
        )
    own: AgentsContext[Any] = copy.copy(given)
    own.tool_name, own.tool_arguments = name, text
    return own


def _was_asked_for(context: ToolContext) -> bool:
    """Whether the agent itself made this call, and so has asked; other tools may call it too."""
    given = context.services.get(RUN)
    return given is not None and given.tool_call_id == context.call_id


def _unapproved(name: str) -> Failure:
    return Failure(
        code=FailureCode.PERMISSION_DENIED,
        reason="approval_required",
        message=f"{name} was not run: it asks for a person's approval of this call",
    )


_Output = ToolOutputText | ToolOutputImage | ToolOutputFileContent

_OUTPUTS: dict[str, type[_Output]] = {
    "text": ToolOutputText,
    "image": ToolOutputImage,
    "file": ToolOutputFileContent,
}
_BYTES = "application/octet-stream"


def _result(value: Any, *, is_data: bool = False) -> ToolResult:
    items = value if isinstance(value, (list, tuple)) else [value]
    outputs = [] if is_data else [_output_of(item) for item in items]
    content = tuple(_block(output) for output in outputs if output is not None)
    if content and len(content) == len(outputs):
        return ToolResult(content=content, details=Original(value, content))
    content, structured = parts_of(value)
    return ToolResult(
        content=content, structured_content=structured, details=Original(value, content, structured)
    )


def _output_of(item: Any) -> _Output | None:
    """What the SDK hands to its model as text, picture or file; None if the item is data.

    A dictionary may have a `type` of its own: it is an output if it says what such an output says,
    and nothing else, which would be lost.
    """
    if isinstance(item, (ToolOutputText, ToolOutputImage, ToolOutputFileContent)):
        return item
    kind = item.get("type") if isinstance(item, dict) else None
    output = _OUTPUTS.get(kind) if isinstance(kind, str) else None
    if output is None or not item.keys() <= output.model_fields.keys():
        return None
    try:
        return output.model_validate(item)
    except ValidationError:
        return None


def _block(output: _Output) -> Content:
    if isinstance(output, ToolOutputText):
        return TextContent(text=output.text)
    if isinstance(output, ToolOutputImage):
        address, name = output.image_url, "image"
        held = held_by(address or "")
        mime = "image/png"
    else:
        address, name = output.file_url, output.filename or "file"
        held = held_by(output.file_data or address or "")
        mime = mimetypes.guess_type(name)[0] or _BYTES
        if held is None and output.file_data is not None:
            return _medium(output.file_data, mime, name)
    if held is None:
        return ResourceLink(uri=address or output.file_id or "", name=name)
    return _medium(held.data, held.mime or mime, name)


def _medium(data: str, mime: str, name: str) -> Content:
    if mime.startswith("image/"):
        return ImageContent(data=data, mime_type=mime)
    if mime.startswith("audio/"):
        return AudioContent(data=data, mime_type=mime)
    return EmbeddedResource(resource={"uri": f"file:{name}", "mimeType": mime, "blob": data})


def to_openai_agents(
    pipeline: Any, *, session: SessionOf | None = None, approvals: Approvals = "pipeline"
) -> list[FunctionTool]:
    """Make function tools of a pipeline's; see `seawall.to_openai_agents`."""
    bridge = Bridge(pipeline, session=session, approvals=approvals)
    declared = bridge.pipeline.registry.declared()
    return [_Hardened(bridge, tool, name).tool() for name, tool in declared.items()]


class _Hardened:
    """One tool of a pipeline, as the SDK calls it."""

    def __init__(self, bridge: Bridge, tool: Tool, name: str) -> None:
        self._bridge = bridge
        self._tool = tool
        self._name = name
        """As the model knows it."""
        self._runner = tool.executor if isinstance(tool.executor, Runner) else None

    def tool(self) -> FunctionTool:
        """Make the SDK's tool, with all that its source says beside what the pipeline does."""
        tool = self._tool
        schema = {"properties": {}, **tool.input_schema}
        source = FunctionTool(
            name=self._name,
            description=tool.description,
            params_json_schema=schema,
            on_invoke_tool=self.invoke,
            strict_json_schema=False,
        )
        if self._runner is not None:
            source = self._runner.source
        return dataclasses.replace(
            source,
            name=self._name,
            description=tool.description,
            on_invoke_tool=self.invoke,
            needs_approval=self._needs_approval(),
            timeout_seconds=None,  # held for each attempt
        )

    def _needs_approval(self) -> Any:
        own = self._runner.source.needs_approval if self._runner is not None else False
        if self._bridge.by_framework or callable(own):
            return self.needs_approval
        return False

    async def needs_approval(
        self, context: RunContextWrapper[Any], arguments: dict[str, Any], call_id: str
    ) -> bool:
        """Whether the run is to be interrupted: the tool or the pipeline wants a person."""
        own = self._runner.source.needs_approval if self._runner is not None else False
        if callable(own) and await own(context, arguments, call_id):
            return True
        session = self._session(context)
        return self._bridge.question(self._tool.name, arguments, session) is not None

    async def invoke(self, context: AgentsContext[Any], text: str) -> Any:
        """Make the call through the pipeline, under the model's own call id."""
        name, call_id = self._tool.name, context.tool_call_id
        by_framework = self._bridge.by_framework
        approved = by_framework and context.is_tool_approved(self._name, call_id) is True
        result = await self._bridge.call(
            name, text, call_id=call_id, session=self._session(context), approved=approved
        )
        original = Original.of(result)
        if original is not None:
            return original.value
        if result.failure is None:
            return _written(result.content)
        return await self._said(context, result)

    async def _said(self, context: AgentsContext[Any], result: ToolResult) -> Any:
        failure = result.failure
        if failure is not None and failure.layer == "executor" and self._runner is not None:
            own = self._runner.failure_text(context, failure)
            own = await own if inspect.isawaitable(own) else own
            if own is not None:
                return own
        return result.render()

    def _session(self, context: RunContextWrapper[Any]) -> Any:
        # Its usage is what all contexts of a run have in common.
        run = self._bridge.run_of(context.usage)
        return self._bridge.session(run, context, {RUN: context})


def _written(content: Sequence[Content]) -> Any:
    if all(isinstance(block, TextContent) for block in content):
        return "\n".join(block.text for block in content if isinstance(block, TextContent))
    return [_output(block) for block in content]


def _output(block: Content) -> Any:
    if isinstance(block, TextContent):
        return ToolOutputText(text=block.text)
    if isinstance(block, ResourceLink):
        return ToolOutputText(text=f"{block.title or block.name}: {block.uri}")
    if isinstance(block, EmbeddedResource):
        return _resource(block.resource)
    if bytes_of(block.data) is None:
        return ToolOutputText(text=unreadable(block.mime_type))
    if isinstance(block, ImageContent):
        return ToolOutputImage(image_url=f"data:{block.mime_type};base64,{block.data}")
    return _file(block.mime_type, block.data, "audio")


def _resource(resource: Mapping[str, Any]) -> Any:
    if "blob" not in resource:
        return ToolOutputText(text=str(resource.get("text", "")))
    mime = str(resource.get("mimeType") or _BYTES)
    if bytes_of(resource["blob"]) is None:
        return ToolOutputText(text=unreadable(mime))
    name = str(resource.get("uri", "")).rpartition("/")[2].removeprefix("file:") or "file"
    return _file(mime, resource["blob"], name)


def _file(mime: str, data: str, name: str) -> ToolOutputFileContent:
    return ToolOutputFileContent(file_data=f"data:{mime};base64,{data}", filename=name)
