"""What one server declares, as tools in a registry: added, replaced, set aside, taken out."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from seawall.contract.errors import ConfigurationError
from seawall.edges.mcp.definitions import McpTool, tool_from_mcp
from seawall.edges.mcp.names import tool_name

if TYPE_CHECKING:
    from collections.abc import Callable

    from seawall.contract.tool import Executor
    from seawall.edges.mcp.options import McpOptions
    from seawall.edges.mcp.pins import Change, Pins
    from seawall.registry.registry import Registry


MAX_NOTES = 50
"""Told of one list: a server may declare thousands of tools with something odd."""


class Listing:
    """The tools of one server in a registry."""

    def __init__(
        self,
        server: str,
        registry: Registry,
        pins: Pins,
        options: McpOptions,
        executor_of: Callable[[str], Executor],
        note: Callable[[str], None],
        origin: str = "",
    ) -> None:
        self._origin = origin
        self._server = server
        self._registry = registry
        self._pins = pins
        self._options = options
        self._executor_of = executor_of
        self._tell = note
        self._notes = 0
        self._asides: dict[str, str | None] = {}
        self._held: list[dict[str, Any]] | None = None
        self._holds = False

    def hold(self) -> None:
        """Keep what is declared until `release`: so that the order is not that of arrival."""
        self._holds = True

    def release(self) -> None:
        """Apply what was kept."""
        held, self._held, self._holds = self._held, None, False
        if held is not None:
            self.apply(held)

    @property
    def names(self) -> tuple[str, ...]:
        """The names, in the registry, of the tools there are."""
        return tuple(self._asides)

    def apply(self, declared: list[dict[str, Any]]) -> None:
        """Make the registry hold what was declared; what has not changed is left as it is."""
        if self._holds:
            self._held = declared
            return
        self._notes = 0
        wanted = self._wanted(declared)
        changes = self._changes(list(wanted.values()))
        for name in [name for name in self._asides if name not in wanted]:
            self._registry.unregister(name)
            del self._asides[name]
        for name, one in wanted.items():
            self._take(name, one, changes.get(str(one.get("name"))))
        if self._notes > MAX_NOTES:
            self._tell(f"there are {self._notes - MAX_NOTES} more notes of this kind")

    def _note(self, said: str) -> None:
        self._notes += 1
        if self._notes <= MAX_NOTES:
            self._tell(said)

    def _wanted(self, declared: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
        """Name the tools; of two with the same name the first is taken."""
        found: dict[str, dict[str, Any]] = {}
        for one in declared:
            remote = one.get("name")
            if not isinstance(remote, str) or not remote:
                self._note("declares a tool without a name; it is left out")
                continue
            name = tool_name(self._server, remote)
            if name in found:
                self._note(f"declares {remote!r} twice; the first is taken")
                continue
            found[name] = one
        return found

    def _changes(self, declared: list[dict[str, Any]]) -> dict[str, Change]:
        if self._options.on_change == "ignore":
            return {}
        return self._pins.check(self._server, list(declared))

    def _take(self, name: str, declared: dict[str, Any], change: Change | None) -> None:
        known = self._registry.get(name)
        if known is not None and not (isinstance(known, McpTool) and known.server == self._server):
            self._note(f"{name!r} is the name of another tool already; it is left out")
            return
        aside = str(change) if change is not None and self._options.on_change == "hold" else None
        if known is not None and self._is_same(known, declared) and self._asides.get(name) == aside:
            return
        if change is not None:
            self._note(f"{name}: {change}")
        tool = tool_from_mcp(
            declared,
            self._executor_of(str(declared["name"])),
            name=name,
            server=self._server,
            origin=self._origin,
            trusted=self._server in self._options.trust,
        )
        try:
            self._registry.register(
                tool, on_duplicate="replace", on_invalid="quarantine", aside=aside
            )
        except ConfigurationError as error:
            self._note(f"{name} is left out: {error}")
            return
        self._asides[name] = aside

    def _is_same(self, known: McpTool, declared: dict[str, Any]) -> bool:
        # As JSON: True and 1 are equal to Python, and are not the same to a schema.
        return json.dumps(known.declared, sort_keys=True) == json.dumps(declared, sort_keys=True)
