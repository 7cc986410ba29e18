"""MCP: tools of other programs' servers through the pipeline, and the proxy before a server.

    from seawall.edges.mcp import connect

Names are loaded when they are first used: the official SDK is not, until a server is connected.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from seawall.edges.mcp.adapter import tools_of_session
    from seawall.edges.mcp.config import ServerConfig, load_servers, servers_of
    from seawall.edges.mcp.definitions import McpTool, tool_from_mcp, tool_to_mcp
    from seawall.edges.mcp.options import McpOptions
    from seawall.edges.mcp.pins import Change, Pins
    from seawall.edges.mcp.results import result_from_mcp, result_to_mcp
    from seawall.edges.mcp.servers import Servers, connect
    from seawall.edges.mcp.toolkit import McpTools

_HOMES = {
    "Change": "pins",
    "McpOptions": "options",
    "McpTool": "definitions",
    "McpTools": "toolkit",
    "Pins": "pins",
    "ServerConfig": "config",
    "Servers": "servers",
    "connect": "servers",
    "load_servers": "config",
    "result_from_mcp": "results",
    "result_to_mcp": "results",
    "servers_of": "config",
    "tool_from_mcp": "definitions",
    "tool_to_mcp": "definitions",
    "tools_of_session": "adapter",
}

__all__ = [
    "Change",
    "McpOptions",
    "McpTool",
    "McpTools",
    "Pins",
    "ServerConfig",
    "Servers",
    "connect",
    "load_servers",
    "result_from_mcp",
    "result_to_mcp",
    "servers_of",
    "tool_from_mcp",
    "tool_to_mcp",
    "tools_of_session",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'seawall.edges.mcp' has no attribute {name!r}")
    return getattr(importlib.import_module(f"seawall.edges.mcp.{home}"), name)
