"""The demo's visit to MCP servers of one's own: what they offer, and a call that can do no harm.

A tool is only called if it takes no arguments, and a server that is trusted says that it only
reads. Of any other the arguments are checked, which runs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from seawall.edges.cli.check_arguments import checked_arguments
from seawall.edges.mcp.definitions import McpTool
from seawall.orchestration.pipeline import Pipeline
from seawall.policy.model import Policies

if TYPE_CHECKING:
    from seawall.edges.cli.demo_witness import Audience
    from seawall.edges.mcp.server import ServerState
    from seawall.edges.mcp.servers import Servers


async def visit(servers: Servers, policies: Policies | None, audience: Audience) -> None:
    """Show every server, and one call of each."""
    policies = policies or Policies.default()
    async with Pipeline(servers.registry, policies=policies) as pipeline:
        for state in servers.states():
            audience.show(
                "server",
                name=state.name,
                state=state.state,
                version=state.version,
                tools=len(state.tools),
                trusted=state.trusted,
                why=state.why,
            )
            tool = _chosen(servers, state)
            if tool is None:
                continue
            if _is_harmless(tool):
                failure = (result := await pipeline.call(tool.name, {})).failure
                said = result.render()
            else:
                failure = checked_arguments(tool, policies.for_tool(tool), "{}").failure
                said = "would be run" if failure is None else failure.render()
            audience.show(
                "server_call",
                tool=tool.name,
                ran=_is_harmless(tool),
                ok=failure is None,
                text=said,
            )


def _chosen(servers: Servers, state: ServerState) -> McpTool | None:
    """A tool that may be called, else one whose arguments show what is refused."""
    registry = servers.registry
    tools = [
        tool
        for name in state.tools
        if isinstance(tool := registry.get(name), McpTool)
        and registry.quarantine_reason(name) is None
    ]
    tools.sort(key=lambda tool: (not _is_harmless(tool), not tool.input_schema.get("required")))
    return tools[0] if tools else None


def _is_harmless(tool: McpTool) -> bool:
    return tool.annotations.is_read_only and not tool.input_schema.get("required")
