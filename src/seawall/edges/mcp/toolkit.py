"""Tools with which a model looks around among MCP servers, instead of being told of all tools.

`mcp_list` says what there is, `mcp_call` calls a server's tool, and `mcp_connect` connects a server
that the configuration names and that was left out so far. A model cannot name any other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from seawall.contract.annotations import Annotations, Risk
from seawall.contract.errors import ConfigurationError
from seawall.contract.failure import Failure, FailureCode, ToolFailed
from seawall.edges.mcp.definitions import McpTool
from seawall.pipeline.context import ToolContext  # noqa: TC001  # read from the signature
from seawall.registry.function import tool

if TYPE_CHECKING:
    from collections.abc import Mapping

    from seawall.contract.tool import Tool
    from seawall.edges.mcp.servers import Servers

DESCRIBED = 200
"""Characters of a tool's description in the list."""


class McpTools:
    """The three tools, over the servers that were given."""

    def __init__(self, servers: Servers) -> None:
        self._servers = servers

    def tools(self) -> tuple[Tool, ...]:
        """Give the tools, to be registered beside the servers' own.

        `mcp_call` asks for no approval itself: the call it makes goes through all layers of the
        tool that it names, its gate among them.
        """
        reading = Annotations.for_reading()
        changing = Annotations(read_only=False, destructive=False, open_world=True)
        common: dict[str, Any] = {"category": "mcp"}
        return (
            tool(self.mcp_list, annotations=reading, risk=Risk.LOW, **common),
            tool(self.mcp_call, annotations=changing, risk=Risk.LOW, **common),
            tool(self.mcp_connect, annotations=changing, risk=Risk.MEDIUM, **common),
        )

    async def mcp_list(self, server: str | None = None) -> dict[str, Any]:
        """List the MCP servers with their state, and their tools.

        Args:
            server: Only this server; its tools come with their arguments' schemas.
        """
        states = self._servers.states()
        if server is not None:
            states = [state for state in states if state.name == server]
            if not states:
                raise ToolFailed(self._no_server(server))
        listed = []
        for state in states:
            about: dict[str, Any] = {"server": state.name, "state": state.state}
            if state.why:
                about["why"] = state.why
            about["tools"] = [self._about(name, whole=server is not None) for name in state.tools]
            listed.append(about)
        return {"servers": listed}

    async def mcp_call(
        self, name: str, context: ToolContext, arguments: dict[str, Any] | None = None
    ) -> Any:
        """Call a tool of a connected MCP server.

        Args:
            name: The tool's whole name, as mcp_list gives it: server__tool.
            arguments: What the tool takes, as its schema in mcp_list says.
        """
        found = self._servers.registry.get(name)
        if found is not None and not isinstance(found, McpTool):
            raise ToolFailed(
                Failure(
                    code=FailureCode.NOT_FOUND,
                    message=f"{name!r} is no tool of an MCP server; call it by itself",
                )
            )
        return await context.call_tool(name, arguments or {})

    async def mcp_connect(self, server: str) -> dict[str, Any]:
        """Connect an MCP server that the configuration names, and list its tools.

        Args:
            server: The server's name, as mcp_list gives it.
        """
        try:
            await self._servers.connect(server)
        except ConfigurationError:
            raise ToolFailed(self._no_server(server)) from None
        return await self.mcp_list(server)

    def _no_server(self, server: str) -> Failure:
        there = ", ".join(self._servers.names) or "none"
        return Failure(
            code=FailureCode.NOT_FOUND,
            message=f"no MCP server {server[:80]!r} is configured; there are: {there}",
        )

    def _about(self, name: str, *, whole: bool) -> Mapping[str, Any]:
        registry = self._servers.registry
        found = registry.get(name)
        about: dict[str, Any] = {"name": name}
        if found is None:
            return about
        text = found.description
        about["description"] = text if whole or len(text) <= DESCRIBED else text[:DESCRIBED] + "…"
        reason = registry.quarantine_reason(name)
        if reason is not None:
            # What it says of itself has not been accepted: a model must not read it.
            return {"name": name, "set_aside": reason}
        if whole:
            about["input_schema"] = dict(found.input_schema)
        return about
