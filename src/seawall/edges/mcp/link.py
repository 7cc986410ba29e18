"""One live connection to a server, by the official SDK.

The SDK speaks: transports, revisions, correlation of requests, its own notifications. Lists and
calls of tools go through its dispatcher as JSON, not through its models: so nothing a server says
is lost, and one tool that the models would refuse does not take the whole list with it.

All of it lives in one task of its own. A call that is given up leaves at once, and the server is
told of it by that task.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from typing import TYPE_CHECKING, Any

import mcp_types as types
from mcp.client.session import ClientRequestContext, ClientSession
from mcp.client.streamable_http import streamable_http_client
from mcp.client.subscriptions import listen
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import (
    MCP_METHOD_HEADER,
    MCP_NAME_HEADER,
    MCP_PROTOCOL_VERSION_HEADER,
    encode_header_value,
    find_invalid_x_mcp_header,
    mcp_param_headers,
    x_mcp_header_map,
)
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp_types import (
    CLIENT_CAPABILITIES_META_KEY,
    CLIENT_INFO_META_KEY,
    PROTOCOL_VERSION_META_KEY,
    UNSUPPORTED_PROTOCOL_VERSION,
)
from mcp_types.version import LATEST_MODERN_VERSION, MODERN_PROTOCOL_VERSIONS
from pydantic import TypeAdapter, ValidationError

from seawall import __version__
from seawall.edges.mcp.codes import HTTP_STATUS, TOO_LARGE, UNREACHABLE
from seawall.edges.mcp.detached import detached
from seawall.edges.mcp.http import bare, http_client
from seawall.edges.mcp.lines import Tail
from seawall.edges.mcp.stdio import Child

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from mcp.client.session import ElicitationFnT

    from seawall.edges.mcp.config import ServerConfig
    from seawall.edges.mcp.options import McpOptions
    from seawall.pipeline.clock import Clock

    Progress = Callable[[float, float | None, str | None], Any]

FIRST_ID = 1_000_000
"""Of calls: ids that the SDK gives out itself begin at 1."""
MAX_PAGES = 200
MAX_TOOLS = 10_000
DISCOVER_S = 5.0
"""For a server to say that it speaks the stateless revision; then the handshake is tried."""

POLL_S = 0.05
MAX_POLLS = 1_000
"""Of one call, while a server asks only to be called again; the policy's time ends it before."""
RELISTEN_S = 0.5
"""Before the first attempt to hear of changes again; it doubles up to `max_delay_s`."""

_CLIENT = types.Implementation(name="seawall", version=__version__)
_NO_FALLBACK = (UNREACHABLE, HTTP_STATUS, TOO_LARGE)
_INPUTS: TypeAdapter[dict[str, types.InputRequest]] = TypeAdapter(dict[str, types.InputRequest])


class Wire(JSONRPCDispatcher):
    """The SDK's dispatcher; tells when it is closed, and servers why a call was given up."""

    def __init__(self, read: Any, write: Any) -> None:
        super().__init__(read, write)
        self.closed = asyncio.Event()
        self.reasons: dict[Any, str] = {}

    async def run(self, *args: Any, **named: Any) -> None:
        """Drive it to its end."""
        try:
            await super().run(*args, **named)
        finally:
            self.closed.set()

    async def notify(self, method: str, params: Any, opts: Any = None, **named: Any) -> None:
        """Send a notification; a cancellation with the reason that was given for it."""
        if method == "notifications/cancelled" and params is not None:
            reason = self.reasons.get(params.get("requestId"))
            if reason is not None:
                params = {**params, "reason": reason}
        await super().notify(method, params, opts, **named)


class Link:
    """A connection: opened by `serve`, used until `closed` is set."""

    def __init__(
        self,
        config: ServerConfig,
        options: McpOptions,
        clock: Clock,
        changed: Callable[[], None],
    ) -> None:
        self._config = config
        self._options = options
        self._clock = clock
        self._changed = changed
        self._elicit: ElicitationFnT | None = options.elicit
        self._wire: Wire | None = None
        self._session: ClientSession | None = None
        self._headers: dict[str, Mapping[tuple[str, ...], str]] = {}
        self._child: Child | None = None
        self._ids = FIRST_ID
        self._calls: set[asyncio.Task[Any]] = set()
        self.tail = Tail()
        """What the server said beside the protocol."""
        self.dropped: list[str] = []
        """Tools that the revision forbids to be used, with the reason."""
        self.broken = False
        """Whether an answer said that this connection is of no more use."""
        self._leave = asyncio.Event()

    @property
    def version(self) -> str:
        """The revision that is spoken."""
        return (self._session and self._session.protocol_version) or ""

    @property
    def about(self) -> dict[str, str]:
        """What the server calls itself."""
        info = self._session.server_info if self._session else None
        return {} if info is None else {"name": info.name, "version": info.version}

    @property
    def alive(self) -> bool:
        """Whether a call may be sent."""
        wire = self._wire
        return wire is not None and not wire.closed.is_set() and not self.broken

    @property
    def fault(self) -> str | None:
        """What ended it, if it was not the server itself."""
        return None if self._child is None else self._child.fault

    def leave(self, *, broken: bool = False) -> None:
        """End the connection; calls that run are told."""
        self.broken = self.broken or broken
        self._leave.set()

    async def serve(self, ready: asyncio.Future[None]) -> None:
        """Connect, say so, and stay until the server ends it or `leave` is called.

        Raises what kept it from being ready.
        """
        async with self._streams() as (read, write):
            wire = self._wire = Wire(read, write)
            session = ClientSession(
                dispatcher=wire,
                client_info=_CLIENT,
                elicitation_callback=self._elicit,
                message_handler=self._heard,
            )
            async with session:
                await self._negotiate(session)
                self._session = session
                if not ready.done():
                    ready.set_result(None)
                await self._stay(session, wire)

    async def _stay(self, session: ClientSession, wire: Wire) -> None:
        listening = asyncio.create_task(self._listen(session))
        ends = [asyncio.create_task(one.wait()) for one in (wire.closed, self._leave)]
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (listening, *ends, *self._calls):
                task.cancel()
            await asyncio.wait({listening, *ends, *self._calls}, timeout=1)

    @contextlib.asynccontextmanager
    async def _streams(self) -> AsyncIterator[tuple[Any, Any]]:
        config, most = self._config, self._options.max_message_bytes
        if config.url is None:
            self._child = Child(config, self._clock, most, self.tail)
            async with self._child.streams() as streams:
                yield streams
            return
        async with (
            http_client(config, self._clock, most) as client,
            streamable_http_client(
                bare(config.url), http_client=client, max_sse_event_size=most
            ) as streams,
        ):
            yield streams

    async def _negotiate(self, session: ClientSession) -> None:
        """Find the newest revision that both speak: without a handshake, else with one."""
        if self._options.protocol == "handshake" or not await self._discovered(session):
            await session.initialize()

    async def _discovered(self, session: ClientSession) -> bool:
        scope = self._clock.limit(DISCOVER_S)
        with scope:
            try:
                await session.discover()
            except MCPError as error:
                if error.code in _NO_FALLBACK and not _is_status_of_old(error):
                    raise
                if error.code == UNSUPPORTED_PROTOCOL_VERSION and _is_only_newer(error.data):
                    raise
                return False
            except (ValidationError, RuntimeError):
                return False  # it answers, and not as a server of that revision does
        return not scope.expired

    async def _listen(self, session: ClientSession) -> None:
        """Where changes are told only to those who ask for them, ask, and ask again.

        What changed while nobody listened is found by listing once more.
        """
        tools = session.server_capabilities and session.server_capabilities.tools
        if session.protocol_version not in MODERN_PROTOCOL_VERSIONS or not tools:
            return
        wait_s, before = RELISTEN_S, False
        while tools.list_changed:
            try:
                async with listen(session, tools_list_changed=True) as events:
                    wait_s = RELISTEN_S
                    if before:
                        self._changed()
                    before = True
                    async for _ in events:
                        self._changed()
            except MCPError as error:
                if error.code in (types.METHOD_NOT_FOUND, types.INVALID_PARAMS):
                    return  # it said that it would, and does not know how
            except (RuntimeError, TimeoutError):
                pass
            await self._clock.sleep(wait_s)
            wait_s = min(2 * wait_s, self._options.max_delay_s)

    async def _heard(self, message: Any) -> None:
        # In the newer revision the subscription tells of it.
        if isinstance(message, types.ToolListChangedNotification):
            self._changed()

    async def tools(self) -> list[dict[str, Any]]:
        """List all tools as the server declares them; raises MCPError."""
        most, size = self._options.max_message_bytes, 0
        found: list[dict[str, Any]] = []
        cursor: str | None = None
        seen: set[str] = set()
        for _ in range(MAX_PAGES):
            page = await self._request("tools/list", {} if cursor is None else {"cursor": cursor})
            listed = page.get("tools")
            if not isinstance(listed, list):
                raise MCPError(types.INVALID_REQUEST, "its list of tools is no list")
            size += len(json.dumps(listed))
            if size > most:
                raise MCPError(TOO_LARGE, f"its list of tools has more than {most} bytes")
            found.extend(one for one in listed if isinstance(one, dict))
            cursor = page.get("nextCursor")
            if not isinstance(cursor, str) or cursor in seen or len(found) >= MAX_TOOLS:
                break
            seen.add(cursor)
        return self._with_headers(found[:MAX_TOOLS])

    def _with_headers(self, tools: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Leave out tools whose arguments cannot be mirrored into headers as they ask for."""
        if self.version not in MODERN_PROTOCOL_VERSIONS:
            return tools
        kept = []
        self._headers, self.dropped = {}, []
        for tool in tools:
            schema = tool.get("inputSchema")
            try:
                if (fault := find_invalid_x_mcp_header(schema)) is not None:
                    self.dropped.append(f"{tool.get('name')!r} is left out: {fault}")
                    continue
                found = x_mcp_header_map(schema)
            except (TypeError, ValueError, AttributeError, RecursionError):
                found = {}  # a schema that is no good is told of when the tool is registered
            if found:
                self._headers[str(tool.get("name"))] = found
            kept.append(tool)
        return kept

    async def call(
        self,
        name: str,
        arguments: dict[str, Any],
        progress: Progress,
        meta: Mapping[str, Any],
        why: Callable[[], str | None],
    ) -> dict[str, Any]:
        """Call a tool; raises MCPError.

        Given up, it leaves at once; the server is told with the reason that `why` gives.
        """
        params: dict[str, Any] = {"name": name, "arguments": arguments}
        asked = polled = 0
        while True:
            answer = await self._call(params, progress, meta, why)
            if answer.get("resultType") != "input_required":
                return answer
            if answer.get("inputRequests"):
                asked += 1
                if self._elicit is None or asked > self._options.max_input_rounds:
                    return answer
                given = await self._answers(answer["inputRequests"])
            else:
                polled += 1
                if polled > MAX_POLLS or "requestState" not in answer:
                    return answer
                # It asks for nothing but to be called again with what it said.
                await self._clock.sleep(min(POLL_S * 2.0 ** min(polled - 1, 10), 1.0))
                given = None
            params = {"name": name, "arguments": arguments}
            if given is not None:
                params["inputResponses"] = given
            if "requestState" in answer:
                params["requestState"] = answer["requestState"]

    async def _call(
        self,
        params: dict[str, Any],
        progress: Progress,
        meta: Mapping[str, Any],
        why: Callable[[], str | None],
    ) -> dict[str, Any]:
        self._ids += 1
        request_id = self._ids
        said = {**params, "_meta": dict(meta)} if meta else params

        async def report(done: float, total: float | None, message: str | None) -> None:
            progress(done, total, message)

        def given_up(task: asyncio.Task[Any]) -> None:
            if (wire := self._wire) is not None:
                wire.reasons[request_id] = why() or "cancelled"
                task.add_done_callback(lambda _: wire.reasons.pop(request_id, None))

        work = self._request("tools/call", said, request_id=request_id, on_progress=report)
        answer = await detached(work, tasks=self._calls, given_up=given_up)
        if answer is None:
            raise MCPError(types.CONNECTION_CLOSED, "Connection closed")
        return answer

    async def _answers(self, requests: Any) -> dict[str, Any]:
        """Ask the user what the server wants to know."""
        session, elicit = self._session, self._elicit
        try:
            wanted = _INPUTS.validate_python(requests)
        except ValidationError:
            raise MCPError(types.INVALID_REQUEST, "it asks for input in an unknown form") from None
        given: dict[str, Any] = {}
        for key, request in wanted.items():
            if not isinstance(request, types.ElicitRequest) or session is None or elicit is None:
                raise MCPError(types.INVALID_REQUEST, f"it asks for {request.method}")
            context = ClientRequestContext(session=session, request_id=key)
            said = await elicit(context, request.params)
            if isinstance(said, types.ErrorData):
                raise MCPError.from_error_data(said)
            given[key] = said.model_dump(by_alias=True, mode="json", exclude_none=True)
        return given

    async def _request(self, method: str, params: dict[str, Any], **options: Any) -> dict[str, Any]:
        wire, version = self._wire, self.version
        if wire is None:
            raise MCPError(types.CONNECTION_CLOSED, "Connection closed")
        headers = {MCP_PROTOCOL_VERSION_HEADER: version}
        if version in MODERN_PROTOCOL_VERSIONS:
            params = {**params, "_meta": {**params.get("_meta", {}), **self._envelope(version)}}
            headers[MCP_METHOD_HEADER] = method
            if method == "tools/call":
                name = params["name"]
                headers[MCP_NAME_HEADER] = encode_header_value(name)
                if (wanted := self._headers.get(name)) is not None:
                    headers.update(mcp_param_headers(wanted, params["arguments"]))
        how: Any = {"headers": headers, **options}
        return await wire.send_raw_request(method, params, how)

    def _envelope(self, version: str) -> dict[str, Any]:
        """What the stateless revision wants to hear with every request."""
        can: dict[str, Any] = {}
        if self._elicit is not None:
            can["elicitation"] = {"form": {}, "url": {}}
        return {
            PROTOCOL_VERSION_META_KEY: version,
            CLIENT_INFO_META_KEY: _CLIENT.model_dump(by_alias=True, exclude_none=True),
            CLIENT_CAPABILITIES_META_KEY: can,
        }


def _is_status_of_old(error: MCPError) -> bool:
    """Whether a server of an older revision may answer so to what it does not know."""
    data = error.data
    return (
        error.code == HTTP_STATUS
        and isinstance(data, dict)
        and data.get("status") in (400, 404, 405, 406, 415, 422)
    )


def _is_only_newer(data: Any) -> bool:
    """Whether a server names revisions, and none that a handshake could agree on."""
    supported = data.get("supported") if isinstance(data, dict) else None
    if not isinstance(supported, list) or not supported:
        return False
    return all(isinstance(one, str) and one >= LATEST_MODERN_VERSION for one in supported)
