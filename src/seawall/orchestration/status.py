"""What can be seen of a pipeline's layers from outside: circuits, tokens, calls in flight."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from seawall.contract.errors import ConfigurationError
from seawall.layers.breaker.breaker import CircuitSlot
from seawall.recording.metrics import Gauge

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from seawall.layers.breaker import Circuit
    from seawall.pipeline.route import Route
    from seawall.pipeline.state import Slots, StateTable
    from seawall.pipeline.threads import Threads

STATES = ("closed", "open", "half_open")


class Breakers:
    """The circuits of a pipeline by tool name: to see, and to open or close by hand."""

    def __init__(self, pipeline: Any) -> None:
        self._pipeline = pipeline

    def state(self, tool: str) -> str:
        """`closed`, `open` or `half_open`."""
        slot = self._slot(tool)
        return "closed" if slot.circuit is None else slot.circuit.state

    def find_state(self, tool: str) -> str | None:
        """The same, or None for a tool that has no breaker."""
        slot = self._find(tool)
        return None if slot is None else self.state(tool)

    def circuit(self, tool: str) -> Circuit:
        """The circuit itself."""
        return self._slot(tool).made()

    def open(self, tool: str) -> None:
        """Refuse the tool's calls until `close` or `reset`."""
        self.circuit(tool).force_open()

    def close(self, tool: str) -> None:
        """Let the tool's calls through again, with no failures counted."""
        self.circuit(tool).force_close()

    def reset(self, tool: str | None = None) -> None:
        """Forget what was learnt about one tool, or about all."""
        names = self._pipeline.registry.names() if tool is None else (tool,)
        for name in names:
            slot = self._find(name)
            if slot is not None and slot.circuit is not None:
                slot.circuit.reset()

    def snapshot(self) -> Mapping[str, str]:
        """The state of each tool that has a breaker."""
        found: dict[str, str] = {}
        for name in self._pipeline.registry.names():
            slot = self._find(name)
            if slot is not None:
                found[name] = "closed" if slot.circuit is None else slot.circuit.state
        return found

    def _slot(self, tool: str) -> CircuitSlot:
        slot = self._find(tool)
        if slot is None:
            raise ConfigurationError(
                f"{tool!r} has no breaker: no such tool, or none by its policy"
            )
        return slot

    def _find(self, tool: str) -> CircuitSlot | None:
        policy = self._pipeline.policy_of(tool)
        if policy is None or policy.breaker is None:
            return None
        states: StateTable = self._pipeline.states
        shared = policy.breaker.shared
        slots = states.find(tool) if shared is None else states.shared(shared)
        found = None if slots is None else slots.find("circuit")
        return found if isinstance(found, CircuitSlot) else None


def gauges(routes: Mapping[str, Route], states: StateTable, threads: Threads) -> Iterator[Gauge]:
    """Everything that is read at a scrape."""
    for name, route in tuple(routes.items()):
        yield Gauge("seawall_in_flight", "Calls that are running", {"tool": name}, route.in_flight)
        slots = states.find(name)
        if slots is not None:
            yield from _of_slots(name, route, slots, states)
    yield Gauge(
        "seawall_abandoned_threads",
        "Threads still at work for calls that were already answered",
        {},
        threads.abandoned,
    )


def _of_slots(name: str, route: Route, slots: Slots, states: StateTable) -> Iterator[Gauge]:
    breaker = route.policy.breaker
    if breaker is not None and breaker.mode != "off":
        held = slots if breaker.shared is None else states.shared(breaker.shared)
        slot = held.find("circuit")
        now = "closed" if slot is None or slot.circuit is None else slot.circuit.state
        for state in STATES:
            labels = {"tool": name, "state": state}
            yield Gauge(
                "seawall_breaker_state", "1 for the state a circuit is in", labels, state == now
            )
    left = slots.find("tokens_left")
    if left is not None:
        yield Gauge(
            "seawall_limiter_tokens", "Calls that would be granted now", {"tool": name}, left()
        )
