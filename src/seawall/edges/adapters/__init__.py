"""The frameworks that people already use, both ways. Each is imported when it is first needed.

`seawall.wrap` takes their tools; what stands here gives them a pipeline's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from seawall.pipeline.extras import imported
from seawall.registry.wrapping import DISTRIBUTIONS

if TYPE_CHECKING:
    from agents import FunctionTool
    from fastmcp.server.middleware import Middleware
    from langchain_core.tools import BaseTool
    from mcp.server.lowlevel import Server
    from pydantic_ai.toolsets import AbstractToolset

    from seawall.edges.adapters._bridge import Approvals, SessionOf

__all__ = ["to_fastmcp", "to_langchain", "to_mcp_server", "to_openai_agents", "to_pydantic_ai"]


def to_langchain(
    pipeline: Any, *, session: SessionOf | None = None, approvals: Approvals = "pipeline"
) -> list[BaseTool]:
    """Make LangChain tools of a pipeline's, for `create_agent`, LangGraph's `ToolNode` and chains.

    A call's id is the tool call's id, its session the graph's `thread_id` unless `session` says
    otherwise. Failures are messages with `status="error"`, never exceptions, so nothing around a
    tool tries it again. With `approvals="framework"` a call that needs a person interrupts the
    graph, as `HumanInTheLoopMiddleware` does.
    """
    return _adapter("langchain", "langchain").to_langchain(  # type: ignore[no-any-return]  # loaded now
        pipeline, session=session, approvals=approvals
    )


def to_pydantic_ai(
    pipeline: Any,
    *,
    session: SessionOf | None = None,
    approvals: Approvals = "pipeline",
    id: str | None = None,  # noqa: A002  # as its toolsets call it
) -> AbstractToolset[Any]:
    """Make a Pydantic AI toolset of a pipeline, for `Agent(toolsets=[…])`.

    A call's id is the agent's, its session the conversation unless `session` says otherwise. A
    failure is a failed tool return that uses up no retries of the agent. With
    `approvals="framework"` a call that needs a person is an `ApprovalRequired`, so the run ends
    with `DeferredToolRequests`.
    """
    return _adapter("pydantic_ai", "pydantic-ai").to_pydantic_ai(  # type: ignore[no-any-return]  # as above
        pipeline, session=session, approvals=approvals, id=id
    )


def to_openai_agents(
    pipeline: Any, *, session: SessionOf | None = None, approvals: Approvals = "pipeline"
) -> list[FunctionTool]:
    """Make tools of the OpenAI Agents SDK, for `Agent(tools=[…])`.

    A call's id is the model's, its session the run unless `session` says otherwise. With
    `approvals="framework"` a call that needs a person interrupts the run.
    """
    return _adapter("openai_agents", "openai-agents").to_openai_agents(  # type: ignore[no-any-return]  # as above
        pipeline, session=session, approvals=approvals
    )


def to_fastmcp(pipeline: Any, *, session: SessionOf | None = None) -> Middleware:
    """Make FastMCP middleware, for `server.add_middleware(to_fastmcp(Pipeline(wrap(server))))`.

    Calls of the server's tools then run through the pipeline; a refusal or a failure is a result
    with `isError`. Put it outermost of what may refuse or repeat a call: it wants to be the only
    one that tries again.
    """
    return _adapter("fastmcp", "fastmcp").to_fastmcp(pipeline, session=session)  # type: ignore[no-any-return]  # as above


def to_mcp_server(
    pipeline: Any, *, name: str = "seawall", session: SessionOf | None = None, **options: Any
) -> Server[Any]:
    """Make a server of the MCP SDK, whose tools are the pipeline's; `options` are the server's.

    Refusals and failures are results with `isError` and, in `_meta`, `seawall/failure`; an unknown
    name is the protocol's own error, with near names in its data.
    """
    return _adapter("mcp_server", "mcp").to_mcp_server(  # type: ignore[no-any-return]  # as above
        pipeline, name=name, session=session, **options
    )


def _adapter(module: str, extra: str) -> Any:
    return imported(f"{__name__}.{module}", extra, DISTRIBUTIONS.get(extra, extra))
