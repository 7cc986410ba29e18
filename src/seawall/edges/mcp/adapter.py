"""Tools of an MCP session that somebody else has opened, and keeps open.

    async with Client("http://127.0.0.1:8000/mcp") as client:
        registry = await tools_of_session(client)

Such a session is not opened again when it ends, and its messages have no bound of ours: where
Seawall is to open it, use `connect`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from seawall.contract.errors import ConfigurationError
from seawall.edges.mcp.answers import result_of_answer
from seawall.edges.mcp.codes import CONNECTION_CLOSED, result_of_error
from seawall.edges.mcp.config import ServerConfig
from seawall.edges.mcp.definitions import tool_from_mcp
from seawall.edges.mcp.detached import detached
from seawall.edges.mcp.extra import need_sdk
from seawall.edges.mcp.names import tool_name
from seawall.registry.registry import Registry

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Iterable

    from mcp import Client, ClientSession

    from seawall.contract.result import ToolResult
    from seawall.contract.tool import Executor, Tool
    from seawall.pipeline.context import ToolContext

MAX_PAGES = 200


def tools_of(source: Any) -> Iterable[Tool] | None:
    """Say how the tools of a session or of a server are had, which takes asking it.

    Gives None for what is neither.
    """
    kind = type(source).__name__
    if isinstance(source, ServerConfig):
        raise ConfigurationError(
            f"the tools of a {kind} have to be asked for: registry = (await connect(config))"
            ".registry, from seawall.edges.mcp"
        )
    need_sdk()
    if _is_session(source):
        raise ConfigurationError(
            f"the tools of a {kind} have to be asked for:"
            " registry = await tools_of_session(session), from seawall.edges.mcp"
        )
    return None


def _is_session(source: Any) -> bool:
    if not any(base.__module__.partition(".")[0] == "mcp" for base in type(source).__mro__):
        return False
    from mcp import Client, ClientSession  # noqa: PLC0415  # part of the extra

    return isinstance(source, (Client, ClientSession))


async def tools_of_session(
    session: Client | ClientSession,
    *,
    server: str | None = None,
    trusted: bool = False,
    into: Registry | None = None,
) -> Registry:
    """Register the tools of an open session.

    With `server` they have names such as `server__tool`. Hints count only if `trusted`. A tool
    whose schema is no good is set aside.
    """
    need_sdk()
    inner: Any = session
    opened: ClientSession = getattr(inner, "session", inner)
    registry = Registry() if into is None else into
    calls: set[asyncio.Task[Any]] = set()
    for declared in await _declared(opened):
        remote = declared["name"]
        tool = tool_from_mcp(
            declared,
            _executor(opened, server or "", remote, calls),
            name=remote if server is None else tool_name(server, remote),
            server=server or "",
            trusted=trusted,
        )
        registry.register(tool, on_invalid="quarantine")
    return registry


async def _declared(session: ClientSession) -> list[dict[str, Any]]:
    from mcp_types import PaginatedRequestParams  # noqa: PLC0415  # part of the extra

    found: list[dict[str, Any]] = []
    cursor: str | None = None
    for _ in range(MAX_PAGES):
        page = await session.list_tools(params=PaginatedRequestParams(cursor=cursor))
        found += [_as_json(tool) for tool in page.tools]
        cursor = page.next_cursor
        if cursor is None:
            break
    return found


def _as_json(model: Any) -> dict[str, Any]:
    found: dict[str, Any] = model.model_dump(by_alias=True, mode="json", exclude_unset=True)
    return found


def _executor(
    session: ClientSession, server: str, remote: str, calls: set[asyncio.Task[Any]]
) -> Executor:
    async def run(arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        from mcp.shared.exceptions import MCPError  # noqa: PLC0415  # part of the extra

        async def report(progress: float, total: float | None, message: str | None) -> None:
            context.progress(message or f"{progress:g}", progress, total)

        async def called() -> Any:
            return await session.call_tool(
                remote,
                arguments,
                progress_callback=report,
                allow_input_required=True,
            )

        try:
            answer = await detached(called(), tasks=calls)
        except MCPError as error:
            return result_of_error(server, error.code, error.message, error.data)
        if answer is None:
            return result_of_error(server, CONNECTION_CLOSED, "the session has ended")
        return result_of_answer(server, _as_json(answer))

    return run
