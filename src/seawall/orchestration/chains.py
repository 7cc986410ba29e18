"""The chain of each tool that can be called, composed when it comes in, not when it is called."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from seawall.contract.errors import ConfigurationError
from seawall.layers.result_spill import RESULT_READ
from seawall.orchestration.result_read import (
    check_reads_results,
    check_result_read,
    offer_result_read,
)
from seawall.pipeline.collecting import uncollected

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from seawall.contract.tool import Tool
    from seawall.layers.risk_gate import Gate, RiskGate
    from seawall.pipeline.route import Route
    from seawall.policy.build import Builder
    from seawall.policy.model import Policies
    from seawall.registry.registry import Registry


class Chains:
    """The chains of a registry's tools, and the books of those that are set aside."""

    def __init__(
        self, registry: Registry, builder: Builder, forget_counts: Callable[[str], None]
    ) -> None:
        self.builder = builder
        self.routes: dict[str, Route] = {}
        """By name; always this one, so that it can be held on to."""
        self._registry = registry
        self._forget_counts = forget_counts
        self._set_aside: dict[str, Route] = {}
        """Books of quarantined tools that were called; never more than there are such tools."""

    def declared(self, name: Any) -> Route | None:
        """Find the chain of a tool by the name under which a provider knows it."""
        own = self._registry.own_name(name) if isinstance(name, str) else None
        return None if own is None else self.routes.get(own)

    def take_all(self) -> None:
        """Compose the chains of all tools that there are."""
        with uncollected():
            for tool in self._registry:
                if self._registry.quarantine_reason(tool.name) is None:
                    self._put(self.builder.route(tool))

    def take(self, tool: Tool) -> None:
        """Compose the chain of a tool that comes in; raises `ConfigurationError`.

        Then nothing is changed: the tool stays out, and so does its chain.
        """
        route = self.builder.route(tool)
        try:
            self._check_result_read(route)
        except ConfigurationError:
            if tool.name not in self.routes:
                self.builder.forget(tool.name)
            raise
        self._put(route)
        if route.spill is not None:
            offer_result_read(self._registry)

    def _check_result_read(self, route: Route) -> None:
        """Look that whoever is told to read on what was cut is not led to another tool."""
        if route.spill is not None:
            check_result_read(self._registry)
        elif route.tool.name == RESULT_READ and self._any_spills:
            check_reads_results(route.tool)

    @property
    def _any_spills(self) -> bool:
        return any(route.spill is not None for route in tuple(self.routes.values()))

    def _put(self, route: Route) -> None:
        self.routes[route.tool.name] = route
        self._set_aside.pop(route.tool.name, None)

    def forget(self, name: str) -> None:
        """Forget the chain of a tool that went."""
        self.routes.pop(name, None)
        self.builder.forget(name)

    def tried(self, policies: Policies, parts: Mapping[type, Any]) -> Callable[[], None]:
        """Compose all chains for other policies; they are run by once what is returned is called.

        Raises `ConfigurationError`, and changes nothing, if any tool's new policy cannot work.
        """
        present = tuple(self.routes.items())
        trial = self.builder.trial(policies, parts)
        with uncollected():
            tried = [trial.route(route.tool) for _, route in present]
        if any(route.spill is not None for route in tried):
            check_result_read(self._registry)

        def follow() -> None:
            self.builder = self.builder.following(trial)
            for name, route in present:
                if self.routes.get(name) is route:
                    replaced = self.routes[name] = self.builder.route(route.tool)
                    replaced.calls = route.calls  # those that go on are still under way
            self.offer_result_read()

        return follow

    def gate_of(self, route: Route, gate: Gate) -> RiskGate | None:
        """Make the risk gate of a tool, with somebody else to ask; None if it has none now."""
        return self.builder.gate_of(route, gate)

    def offer_result_read(self) -> None:
        """Let models read what is kept of cut results, if any is."""
        if self._any_spills:
            offer_result_read(self._registry)

    def of_set_aside(self, tool: Tool) -> Route:
        """Give the books of a quarantined tool; those of tools that are it no longer go."""
        route = self._set_aside.get(tool.name)
        if route is None or route.tool is not tool:
            aside = self._registry.quarantined()
            for name in [name for name in self._set_aside if name not in aside]:
                del self._set_aside[name]
                if name not in self.routes:
                    self._forget_counts(name)
            route = self._set_aside[tool.name] = self.builder.books(tool)
        return route

    def forget_loop(self) -> None:
        """Count calls anew: those of a loop that is gone will not end."""
        for route in tuple(self.routes.values()):
            route.forget_loop()
