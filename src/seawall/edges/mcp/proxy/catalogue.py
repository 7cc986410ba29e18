"""The tools of the server behind the proxy, as its own lists say them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from seawall.contract.errors import ConfigurationError
from seawall.edges.mcp.definitions import tool_from_mcp
from seawall.edges.mcp.proxy.exchange import ServerGone
from seawall.edges.mcp.proxy.messages import (
    CAPABILITIES_KEY,
    VERSION_KEY,
    answer,
    decoded,
    encode,
    folded,
    is_misnamed,
)
from seawall.pipeline.foreign import log

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from seawall.contract.tool import Executor, Tool
    from seawall.edges.mcp.proxy.client import Client
    from seawall.edges.mcp.proxy.exchange import Upstream
    from seawall.edges.mcp.proxy.holding import Holding
    from seawall.edges.mcp.proxy.messages import Message
    from seawall.pipeline.clock import Clock
    from seawall.registry.registry import Registry

MAX_TOOLS = 10_000
MAX_PAGES = 1_000
LIST_WITHIN_S = 30.0
FRESH_S = 5.0
"""How long a complete list is believed when a name is not on it."""


LIST = folded("tools", "nextCursor", "_meta")
TOOL = folded(
    "name", "title", "description", "inputSchema", "outputSchema", "annotations", "_meta", "icons"
)
"""Fields of a list and of a tool. Some clients take `Description` for `description`."""


class NotListed(Exception):  # noqa: N818  # named by what happened
    """The server's tools cannot be listed; `error` is what it said, if it said so itself."""

    def __init__(self, why: str, error: msgspec.Raw | None = None) -> None:
        super().__init__(why)
        self.why = why
        self.error = error


class Catalogue:
    """Keeps the registry as the server's lists are; a definition that changed takes its place."""

    def __init__(
        self,
        registry: Registry,
        executor: Executor,
        clock: Clock,
        *,
        trusted: bool = False,
        holding: Holding | None = None,
        origin: str = "",
        is_denied: Callable[[Tool], bool] = lambda _: False,
        on_listed: Callable[[], None] = lambda: None,
    ) -> None:
        self._registry = registry
        self._executor = executor
        self._clock = clock
        self._trusted = trusted
        self._holding = holding
        self._origin = origin
        self._is_denied = is_denied
        self._on_listed: Callable[[], None] | None = on_listed
        """To be called once, when all tools are known for the first time."""
        self._raw: dict[str, bytes] = {}
        self._held: dict[str, str] = {}

    def knows(self, client: Client, name: str) -> bool:
        """Whether this client's server lists the tool, and nothing says that this has changed.

        One that is held back is asked for again: it may have been accepted meanwhile.
        """
        return client.listed_at is not None and name in client.names and name not in self._held

    def changed(self, client: Client) -> None:
        """The server says that its tools are others now."""
        client.listed_at = None

    async def update(self, client: Client, upstream: Upstream, meta: Mapping[str, Any]) -> None:
        """List all tools, unless that was just done; raises `NotListed`."""
        now = self._clock.now()
        if client.listed_at is not None and now - client.listed_at < FRESH_S:
            return
        with self._clock.limit(LIST_WITHIN_S):
            names = await self._listed(client, upstream, meta)
            client.names = names
            self._is_listed(client)
            return
        raise NotListed(f"the server did not list its tools within {LIST_WITHIN_S:g} s")

    async def _listed(
        self, client: Client, upstream: Upstream, meta: Mapping[str, Any]
    ) -> set[str]:
        names: set[str] = set()
        cursors: set[str] = set()
        cursor: Any = None
        for _ in range(MAX_PAGES):
            params = {"_meta": _envelope_of(meta), **({} if cursor is None else {"cursor": cursor})}
            try:
                message = await upstream.request(
                    client.new_id(), "tools/list", params if any(params.values()) else None, None
                )
            except ServerGone as gone:
                raise NotListed(gone.why) from None
            found, cursor = self._page(message)
            names |= found
            if not isinstance(cursor, str) or cursor in cursors:
                return names
            cursors.add(cursor)
        return names

    def _page(self, message: Message) -> tuple[set[str], Any]:
        envelope = message.envelope
        if envelope.error is not msgspec.UNSET:
            raise NotListed("the server refused to list its tools", envelope.error)
        listed = self.learn(message)
        if listed is None:
            raise NotListed("the server's list of tools cannot be read")
        return listed

    def seen(self, client: Client, message: Message) -> None:
        """Learn from a list that the client asked for itself; one page may not be all."""
        listed = self.learn(message)
        if listed is not None:
            client.names |= listed[0]
            if listed[1] is None and client.listed_at is None and client.names == listed[0]:
                self._is_listed(client)

    def _is_listed(self, client: Client) -> None:
        client.listed_at = self._clock.now()
        tell, self._on_listed = self._on_listed, None
        if tell is not None:
            tell()

    def learn(self, message: Message) -> tuple[set[str], Any] | None:
        """Take in the tools of one page: their names, and the cursor of the next page."""
        result = message.envelope.result
        if result is msgspec.UNSET:
            return None
        try:
            said = decoded(result)
        except (msgspec.MsgspecError, ValueError, RecursionError):
            return None
        tools = said.get("tools") if isinstance(said, dict) else None
        if not isinstance(tools, list):
            return None
        named = [tool for tool in tools[:MAX_TOOLS] if _name_of(tool) is not None]
        held = {} if self._holding is None else self._holding.reasons(named)
        for tool in named:
            odd = next((key for key in tool if is_misnamed(key, TOOL)), None)
            if odd is not None:
                held[tool["name"]] = f"some clients take its {odd[:100]!r} for another field"
        found = {name for tool in named if (name := self._take(tool, held)) is not None}
        return found, said.get("nextCursor")

    def shown(self, message: Message) -> bytes | None:
        """Give a list without the tools that cannot be used; None if all may be seen.

        These are the ones that are held back, and those that the policy denies.
        """
        result = message.envelope.result
        if result is msgspec.UNSET or message.envelope.id is msgspec.UNSET:
            return None
        try:
            said = _parts.decode(result)
            tools = _items.decode(said["tools"])
        except (msgspec.MsgspecError, ValueError, RecursionError, KeyError):
            return None
        kept = [tool for tool in tools if not self._is_hidden(_name_in(tool))]
        plain = {key: value for key, value in said.items() if not is_misnamed(key, LIST)}
        if len(kept) == len(tools) and len(plain) == len(said):
            return None
        return answer(message.envelope.id, {**plain, "tools": kept})

    def _is_hidden(self, name: str) -> bool:
        if name in self._held:
            return True
        tool = self._registry.get(name)
        return tool is not None and self._is_denied(tool)

    def _take(self, declared: dict[str, Any], held: Mapping[str, str]) -> str | None:
        name: str = declared["name"]
        raw, reason = encode(declared), held.get(name)
        if self._raw.get(name) == raw and self._held.get(name) == reason:
            return name
        if name not in self._raw and len(self._raw) >= MAX_TOOLS:
            log.warning("the server lists more than %d tools; %r is left out", MAX_TOOLS, name)
            return None
        tool = tool_from_mcp(declared, self._executor, origin=self._origin, trusted=self._trusted)
        try:
            self._registry.register(
                tool, on_duplicate="replace", on_invalid="quarantine", aside=reason
            )
        except ConfigurationError as error:
            log.warning("a tool of the server cannot be offered: %s", error)
            return None
        self._raw[name] = raw
        self._note(name, reason)
        return name

    def _note(self, name: str, reason: str | None) -> None:
        if reason is None:
            self._held.pop(name, None)
            return
        if self._held.get(name) != reason:
            log.warning("the tool %r is held back: %s", name, reason)
        self._held[name] = reason


def _name_of(declared: Any) -> str | None:
    name = declared.get("name") if isinstance(declared, dict) else None
    return name if isinstance(name, str) else None


_parts = msgspec.json.Decoder(dict[str, msgspec.Raw])
_items = msgspec.json.Decoder(list[msgspec.Raw])


def _name_in(raw: msgspec.Raw) -> str:
    return _name_of(decoded(raw)) or ""


def _envelope_of(meta: Mapping[str, Any]) -> dict[str, Any]:
    """What a request without a session must say, taken from the client's own."""
    if VERSION_KEY not in meta:
        return {}
    kept = (VERSION_KEY, CAPABILITIES_KEY, "io.modelcontextprotocol/clientInfo")
    return {key: meta[key] for key in kept if key in meta}
