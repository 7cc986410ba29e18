"""LangChain's tools behind a pipeline, and a pipeline's tools for LangChain and LangGraph."""

from __future__ import annotations

import dataclasses
import functools
import importlib
import inspect
import typing
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import msgspec
from langchain_core.callbacks import (
    AsyncCallbackManagerForToolRun,  # noqa: TC002  # LangChain reads the hints of `_arun`
    CallbackManagerForToolRun,  # noqa: TC002  # as above
)
from langchain_core.messages import ToolMessage
from langchain_core.runnables import RunnableConfig  # noqa: TC002  # as above
from langchain_core.runnables.config import patch_config
from langchain_core.tools import BaseTool, InjectedToolArg, StructuredTool, ToolException
from langchain_core.tools import Tool as TextTool
from pydantic import BaseModel, PrivateAttr, ValidationError, create_model

from seawall.contract.annotations import Annotations
from seawall.contract.failure import Failure, FailureCode, Issue, ToolFailed
from seawall.contract.result import ToolResult
from seawall.contract.tool import Check, Tool
from seawall.edges.adapters._bridge import Approvals, Bridge, Original, SessionOf
from seawall.edges.adapters._langchain_content import content_for, content_of
from seawall.edges.adapters._langchain_questions import Answer, Approved, Asked, Questions
from seawall.pipeline.foreign import first_line
from seawall.registry.function import issue_of

if TYPE_CHECKING:
    from seawall.pipeline.context import ToolContext

RUN = "seawall.langchain"
"""The service under which a tool finds the run of LangChain's that it is part of."""

RUNTIME = "runtime"
"""The argument in which LangGraph hands its state to a tool; no model sees it."""


class Run(NamedTuple):
    """What LangChain hands to a tool beside its arguments."""

    config: RunnableConfig
    runtime: Any
    """LangGraph's `ToolRuntime`; None outside of a graph."""


def tools_of(source: Any) -> list[Tool] | None:
    """Make a tool of one of LangChain's, or of all in a toolkit."""
    if isinstance(source, BaseTool):
        return [_tool(source)]
    listed = getattr(source, "get_tools", None)
    if callable(listed) and not isinstance(source, type):
        return [_tool(tool) for tool in listed()]
    return None


def _tool(source: BaseTool) -> Tool:
    injected = _injected(source)
    executor = (_Runner if _is_async(source) else _ThreadRunner)(source, injected)
    return Tool(
        name=source.name,
        description=source.description,
        input_schema=_schema(source),
        executor=executor,
        annotations=_annotations(source),
        tags=tuple(source.tags or ()),
        check=_check(source, injected),
        imported=True,
        control_flow=_control_flow(),
    )


def _schema(source: BaseTool) -> dict[str, Any]:
    if isinstance(source, TextTool) and source.args_schema is None:
        return {"type": "object", "properties": dict(source.args), "required": list(source.args)}
    declared: Any = source.tool_call_schema
    if not isinstance(declared, dict):
        make = getattr(declared, "model_json_schema", None) or declared.schema
        declared = make()
    schema = {key: value for key, value in declared.items() if key not in ("title", "description")}
    return {"type": "object", "properties": {}, **schema}


def _annotations(source: BaseTool) -> Annotations:
    """Read MCP's hints where adapters of MCP leave them, in the metadata."""
    metadata = source.metadata or {}
    hints = metadata.get("annotations", metadata)
    return Annotations.from_mcp(hints if isinstance(hints, Mapping) else None)


def _is_async(source: BaseTool) -> bool:
    if isinstance(source, (StructuredTool, TextTool)):
        return source.coroutine is not None
    return type(source)._arun is not BaseTool._arun  # noqa: SLF001  # what a tool is to override


@functools.cache
def _control_flow() -> tuple[type[BaseException], ...]:
    """What LangGraph raises to interrupt a run, or to leave a graph."""
    try:
        errors = importlib.import_module("langgraph.errors")
    except ModuleNotFoundError:
        return ()
    return (errors.GraphBubbleUp,)


class _Injection(NamedTuple):
    """An argument that comes from the run and not from the model."""

    kind: str
    marker: Any


_KINDS = ("InjectedState", "InjectedStore", "ToolRuntime", "InjectedToolCallId", "InjectedToolArg")


def _injected(source: BaseTool) -> dict[str, _Injection]:
    hints: dict[str, Any] = {}
    for function in (getattr(source, "func", None), getattr(source, "coroutine", None)):
        hints |= _hints(function or type(source)._run)  # noqa: SLF001  # what a tool is to override
    schema = source.args_schema
    if isinstance(schema, type) and issubclass(schema, BaseModel):
        hints |= _hints(schema)
    found = {name: _injection(hint) for name, hint in hints.items()}
    return {name: injection for name, injection in found.items() if injection is not None}


def _hints(thing: Any) -> dict[str, Any]:
    try:
        return typing.get_type_hints(inspect.unwrap(thing), include_extras=True)
    except (NameError, TypeError):
        return {}  # LangChain cannot read them either


def _injection(hint: Any) -> _Injection | None:
    for part in _parts(hint):
        kind = part if isinstance(part, type) else type(part)
        names = {base.__name__ for base in kind.__mro__}
        for known in _KINDS:
            if known in names:
                return _Injection(known, part)
    return None


def _parts(hint: Any) -> Iterator[Any]:
    yield hint
    if (origin := typing.get_origin(hint)) is not None:
        yield origin
    for part in typing.get_args(hint):
        yield from _parts(part)


def _check(source: BaseTool, injected: Mapping[str, _Injection]) -> Check | None:
    """Validate by the tool's own model, which may know more than its schema says."""
    schema: Any = source.args_schema
    if injected and schema is not None:
        schema = source.tool_call_schema
    if not (isinstance(schema, type) and issubclass(schema, BaseModel)):
        return None

    def check(arguments: dict[str, Any]) -> tuple[Any, tuple[Issue, ...]]:
        try:
            schema.model_validate(arguments)
        except ValidationError as error:
            return None, tuple(issue_of(fault) for fault in error.errors(include_url=False))
        return arguments, ()

    return check


class _Base:
    """What both ways of running one of LangChain's tools share."""

    def __init__(self, source: BaseTool, injected: Mapping[str, _Injection]) -> None:
        self.source = source
        self._injected = injected

    def _call(self, arguments: dict[str, Any], context: ToolContext, run: Run) -> dict[str, Any]:
        args = dict(arguments)
        for name, injection in self._injected.items():
            args.pop(name, None)  # a model may not forge what comes from the run
            if injection.kind != "InjectedToolCallId":
                args[name] = self._value(name, injection, context, run)
        return {
            "type": "tool_call",
            "name": self.source.name,
            "args": args,
            "id": context.call_id,
        }

    def _value(self, name: str, injection: _Injection, context: ToolContext, run: Run) -> Any:
        if injection.kind == "InjectedState":
            state = dict(context.state) if run.runtime is None else run.runtime.state
            return _of_state(state, getattr(injection.marker, "field", None))
        if injection.kind == "InjectedStore":
            return context.services.get("store") if run.runtime is None else run.runtime.store
        if injection.kind == "ToolRuntime":
            return run.runtime or _runtime(injection.marker, context, run.config)
        return context.services.get(name)


def _of_state(state: Any, field: str | None) -> Any:
    if field is None:
        return state
    return state.get(field) if isinstance(state, Mapping) else getattr(state, field, None)


def _runtime(kind: type, context: ToolContext, config: RunnableConfig) -> Any:
    """Make a runtime for a tool that is called outside of any graph."""

    def write(said: Any) -> None:
        context.progress(said if isinstance(said, str) else ToolResult(structured_content=said))

    known = {
        "state": dict(context.state),
        "context": context.services.get("context"),
        "config": config,
        "stream_writer": write,
        "tool_call_id": context.call_id,
        "store": context.services.get("store"),
    }
    taken = {field.name for field in dataclasses.fields(kind)}  # its fields differ by version
    return kind(**{name: value for name, value in known.items() if name in taken})


class _Runner(_Base):
    async def __call__(self, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        run = _run_of(context)
        try:
            output = await self.source.ainvoke(self._call(arguments, context, run), run.config)
        except ToolException as error:
            raise _answer(error) from error
        return _result(output, context.call_id)


class _ThreadRunner(_Base):
    """In one of the pipeline's threads, which are counted and bounded."""

    def __call__(self, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        run = _run_of(context)
        try:
            output = self.source.invoke(self._call(arguments, context, run), run.config)
        except ToolException as error:
            raise _answer(error) from error
        return _result(output, context.call_id)


def _run_of(context: ToolContext) -> Run:
    return context.services.get(RUN) or Run({}, None)


def _answer(error: ToolException) -> ToolFailed:
    return ToolFailed(_failure(first_line(error)))


def _failure(message: str) -> Failure:
    return Failure(code=FailureCode.EXECUTION_FAILED, message=message, retryable=False)


def _result(output: Any, call_id: str) -> ToolResult:
    if isinstance(output, ToolMessage):
        return _of_message(output)
    messages = [message for message in _messages(output) if message.tool_call_id == call_id]
    content = tuple(block for message in messages for block in content_of(message.content))
    return ToolResult(content=content, details=Original(output, content))


def _of_message(message: ToolMessage) -> ToolResult:
    content = content_of(message.content)
    failure = None
    if message.status == "error":
        failure = _failure(message.text if isinstance(message.text, str) else str(message.content))
    return ToolResult(
        content=content, is_error=failure is not None, failure=failure, details=message.artifact
    )


def _messages(output: Any) -> Iterator[ToolMessage]:
    """The tool messages in what a tool gave: commands, messages, or lists of them."""
    if isinstance(output, ToolMessage):
        yield output
    elif isinstance(output, (list, tuple)):
        for item in output:
            yield from _messages(item)
    else:
        update = getattr(output, "update", None)
        yield from _messages(update.get("messages") if isinstance(update, Mapping) else None)


class _Call(NamedTuple):
    """A call as LangChain makes it."""

    arguments: Any
    id: str | None
    runtime: Any

    @property
    def answered_under(self) -> str | None:
        """The id that its message bears: a graph takes nothing but messages."""
        return "" if self.id is None and self.runtime is not None else self.id


class HardenedTool(BaseTool):
    """A tool of a pipeline, for LangChain's agents, LangGraph's `ToolNode` and chains.

    A call under a tool call id gives a `ToolMessage`, with `status="error"` for a failure; a call
    without one gives the content, or raises `ToolException`.
    """

    _bridge: Bridge = PrivateAttr()
    _questions: Questions = PrivateAttr()
    _takes_runtime: bool = PrivateAttr(default=True)

    def __init__(self, bridge: Bridge, questions: Questions, **fields: Any) -> None:
        super().__init__(**fields)
        self._bridge = bridge
        self._questions = questions
        self._takes_runtime = RUNTIME not in self.args

    def get_input_schema(self, config: RunnableConfig | None = None) -> Any:
        """Give what a graph is to inject; what a model is to give stands in `args_schema`."""
        return _TakesRuntime if self._takes_runtime else super().get_input_schema(config)

    def _filter_injected_args(self, tool_input: dict[str, Any]) -> dict[str, Any]:
        """Show no tracer the whole state of a graph."""
        return {
            name: value
            for name, value in tool_input.items()
            if not (self._takes_runtime and name == RUNTIME)
        }

    def _to_args_and_kwargs(
        self, tool_input: str | dict[str, Any], tool_call_id: str | None
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Hand on the call as a whole: an argument may have any name."""
        arguments = dict(tool_input) if isinstance(tool_input, dict) else tool_input
        runtime = None
        if self._takes_runtime and isinstance(arguments, dict):
            runtime = arguments.pop(RUNTIME, None)
        return (), {"call": _Call(arguments, tool_call_id, runtime)}

    async def _arun(
        self,
        call: _Call,
        config: RunnableConfig,
        run_manager: AsyncCallbackManagerForToolRun | None = None,
    ) -> Any:
        run, asked = self._asked(call, config, run_manager)
        about = Asked(self.name, call.arguments, call.id)
        answer: Answer | None = self._questions.before(about, *run, asked["session"])
        if answer is None:
            result = await self._bridge.call(self.name, call.arguments, **asked)
            answer = self._questions.after(about, *run, result)
        if isinstance(answer, Approved):
            answer = await self._bridge.call(self.name, answer.arguments, approved=True, **asked)
        return _output(self.name, answer, call.answered_under)

    def _run(
        self,
        call: _Call,
        config: RunnableConfig,
        run_manager: CallbackManagerForToolRun | None = None,
    ) -> Any:
        run, asked = self._asked(call, config, run_manager)
        about = Asked(self.name, call.arguments, call.id)
        answer: Answer | None = self._questions.before(about, *run, asked["session"])
        if answer is None:
            result = self._bridge.call_sync(self.name, call.arguments, **asked)
            answer = self._questions.after(about, *run, result)
        if isinstance(answer, Approved):
            answer = self._bridge.call_sync(self.name, answer.arguments, approved=True, **asked)
        return _output(self.name, answer, call.answered_under)

    def _asked(
        self, call: _Call, config: RunnableConfig, run_manager: Any
    ) -> tuple[tuple[Any, RunnableConfig], dict[str, Any]]:
        if run_manager is not None:
            config = patch_config(config, callbacks=run_manager.get_child())
        run = Run(config, call.runtime)
        conversation = (config.get("configurable") or {}).get("thread_id")
        session = self._bridge.session(
            None if conversation is None else str(conversation), run, {RUN: run}
        )
        told = _progress(self.name, call)
        options = {"call_id": call.id, "session": session, "on_progress": told}
        return (call.runtime, config), options


_TakesRuntime = create_model("TakesRuntime", runtime=(Annotated[Any, InjectedToolArg], None))


def _progress(name: str, call: _Call) -> Callable[..., None] | None:
    write = getattr(call.runtime, "stream_writer", None)
    if write is None:
        return None

    def told(report: Any, done: float | None, total: float | None) -> None:
        text = report if isinstance(report, str) else report.text
        news = {"tool": name, "tool_call_id": call.id, "text": text, "done": done, "total": total}
        write(news)

    return told


def _output(name: str, result: ToolResult, call_id: str | None) -> Any:
    original = Original.of(result)
    if original is not None and call_id is not None:
        return original.value
    failed = result.failure
    content = content_for(result.content) if failed is None else result.render()
    if call_id is None:
        if failed is not None:
            raise ToolException(result.render())
        return content
    details = None if isinstance(result.details, Original) else result.details
    return ToolMessage(
        content=content,
        artifact=result.structured_content if details is None else details,
        tool_call_id=call_id,
        name=name,
        status="success" if failed is None else "error",
        response_metadata={} if failed is None else {"seawall": _said(failed)},
    )


def _said(failure: Failure) -> dict[str, Any]:
    """A failure for programs, as plain data: a checkpoint keeps it."""
    said: dict[str, Any] = msgspec.to_builtins(failure)
    return {
        key: said[key] for key in ("code", "reason", "retryable", "retry_after_s", "may_have_run")
    }


def to_langchain(
    pipeline: Any, *, session: SessionOf | None = None, approvals: Approvals = "pipeline"
) -> list[BaseTool]:
    """Make LangChain tools of a pipeline's; see `seawall.to_langchain`."""
    bridge = Bridge(pipeline, session=session, approvals=approvals)
    questions = Questions(bridge)
    declared = bridge.pipeline.registry.declared()
    return [_hardened(bridge, questions, name, tool) for name, tool in declared.items()]


def _hardened(bridge: Bridge, questions: Questions, name: str, tool: Tool) -> BaseTool:
    schema = {"type": "object", "properties": {}, **tool.input_schema}
    fields: dict[str, Any] = {"metadata": tool.annotations.to_mcp() or None}
    executor: Any = tool.executor
    if isinstance(executor, _Base):
        source = executor.source
        fields = {"metadata": source.metadata, "return_direct": source.return_direct}
        fields |= {"extras": extras} if (extras := getattr(source, "extras", None)) else {}
    return HardenedTool(
        bridge,
        questions,
        name=name,
        description=tool.description,
        args_schema=schema,
        tags=list(tool.tags) or None,
        **fields,
    )
