"""A pipeline as a server of the Model Context Protocol, by its Python SDK."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcp import MCPError
from mcp.server.lowlevel import Server
from mcp_types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    ToolAnnotations,
)
from mcp_types import Tool as ServedTool

from seawall.contract.failure import FailureCode
from seawall.edges.adapters._bridge import Bridge, SessionOf
from seawall.edges.adapters._mcp_content import (
    Counted,
    content_for,
    failure_for,
    meta_for,
    promised_by,
    structured_for,
)
from seawall.pipeline.output import told_as_promised

if TYPE_CHECKING:
    from seawall.contract.tool import Tool


class _Serving:
    """Answers the requests of one server."""

    def __init__(self, bridge: Bridge) -> None:
        self._bridge = bridge

    async def list_tools(self, context: Any, _: PaginatedRequestParams | None) -> ListToolsResult:
        """List the tools as they are now, in the order they came."""
        registry = self._bridge.pipeline.registry
        version = str(context.protocol_version)
        tools = [t for t in registry if registry.quarantine_reason(t.name) is None]
        return ListToolsResult(tools=[_served(tool, version) for tool in tools])

    async def call_tool(self, context: Any, params: CallToolRequestParams) -> CallToolResult:
        """Make a call; only an unknown name is an error of the protocol."""
        async with Counted(context.session.report_progress) as sending:
            result = await self._bridge.call(
                params.name,
                params.arguments or {},
                call_id=None if context.request_id is None else str(context.request_id),
                session=self._session(context),
                on_progress=sending,
            )
        failure = result.failure
        if failure is not None and failure.code is FailureCode.NOT_FOUND and not result.attempts:
            raise MCPError(INVALID_PARAMS, failure.render(), failure_for(failure))
        version = str(context.protocol_version)
        if promised_by(self._bridge.pipeline.registry.get(params.name), version) is not None:
            result = told_as_promised(result, params.name)
        return CallToolResult(
            content=content_for(result),
            structured_content=structured_for(result, version),
            is_error=result.is_error,
            _meta=meta_for(result),
        )

    def _session(self, context: Any) -> Any:
        # A connection of the older kind is one conversation; a request of the newer is on its own.
        stateless = str(context.protocol_version) >= "2026"
        run = None if stateless else self._bridge.run_of(context.session)
        return self._bridge.session(run, context, {"seawall.mcp": context})


def _served(tool: Tool, version: str) -> ServedTool:
    output = promised_by(tool, version)
    return ServedTool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema={"type": "object", **tool.input_schema},
        output_schema=None if output is None else dict(output),
        annotations=ToolAnnotations.model_validate(tool.annotations.to_mcp()),
    )


def to_mcp_server(
    pipeline: Any, *, name: str = "seawall", session: SessionOf | None = None, **options: Any
) -> Server[Any]:
    """Make a server of a pipeline; see `seawall.to_mcp_server`."""
    serving = _Serving(Bridge(pipeline, session=session))
    return Server(name, on_list_tools=serving.list_tools, on_call_tool=serving.call_tool, **options)
