"""A tool as an MCP server declares it, and a tool of ours as a server would declare it.

What the server wrote is kept beside what Seawall reads of it, so that it can be said again without
loss: icons, `_meta`, fields of later revisions, and hints that did not count.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from seawall.contract.annotations import Annotations
from seawall.contract.tool import Executor, Tool
from seawall.registry.declarations import declaration

if TYPE_CHECKING:
    from collections.abc import Mapping


class McpTool(Tool, frozen=True, eq=False):
    """A tool that lives on an MCP server."""

    server: str = ""
    """The server's name in the configuration."""
    remote: str = ""
    """The tool's name on that server."""
    declared: dict[str, Any] = msgspec.field(default_factory=dict)
    """The declaration as it came over the wire; never changed."""
    trusted: bool = False
    """Whether the server's hints count."""


def tool_from_mcp(
    declared: Mapping[str, Any],
    executor: Executor,
    *,
    name: str | None = None,
    server: str = "",
    origin: str = "",
    trusted: bool = False,
) -> McpTool:
    """Read one element of `tools/list`.

    Hints count only from a trusted server. From any other they are kept in `declared`, and the tool
    is never tried again blindly; its risk is MEDIUM, or HIGH where the server itself says that the
    tool destroys: a warning is believed from anybody. Nothing is refused here: a schema that is no
    good is found when the tool is registered, where it can be set aside.
    """
    remote = _text(declared.get("name")) or ""
    hints = declared.get("annotations")
    hints = hints if isinstance(hints, dict) else {}
    schema: Any = declared.get("inputSchema", {})
    output: Any = declared.get("outputSchema")
    return McpTool(
        name=remote if name is None else name,
        description=_text(declared.get("description")) or "",
        input_schema=schema,
        executor=executor,
        title=_text(declared.get("title")) or _text(hints.get("title")),
        output_schema=output,
        annotations=_counting(hints, trusted=trusted),
        category=server or "utility",
        imported=True,
        origin=origin,
        server=server,
        remote=remote,
        declared=dict(declared),
        trusted=trusted,
    )


def tool_to_mcp(tool: Tool) -> dict[str, Any]:
    """Write a tool as an element of `tools/list`.

    Of a tool that came from a server, all that the server said and nobody has changed since is said
    again as it was, hints with an explicit `false` among it.
    """
    if not isinstance(tool, McpTool):
        return declaration(tool)
    before = tool_from_mcp(tool.declared, tool.executor, server=tool.server, trusted=tool.trusted)
    said = {**tool.declared, "name": tool.name}
    for key, field in _FIELDS.items():
        value = getattr(tool, field)
        if value != getattr(before, field):
            said[key] = value
    if tool.annotations != before.annotations:
        own = said.get("annotations")
        said["annotations"] = {
            **(own if isinstance(own, dict) else {}),
            **tool.annotations.to_mcp(),
        }
    return msgspec.to_builtins(said)  # type: ignore[no-any-return]  # a mapping stays one


_FIELDS = {
    "description": "description",
    "title": "title",
    "inputSchema": "input_schema",
    "outputSchema": "output_schema",
}


def _counting(hints: Mapping[str, Any], *, trusted: bool) -> Annotations:
    if trusted:
        return Annotations.from_mcp(hints)
    return Annotations(destructive=True) if hints.get("destructiveHint") is True else Annotations()


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
